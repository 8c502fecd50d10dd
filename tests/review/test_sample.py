"""Noise rates from a reviewed random sample: unbiased shares, exact intervals, Bayes' rule."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.stats import binom, binomtest, hypergeom

from unflip import InverseRates, TransitionMatrix
from unflip.review import sample_estimate


@given(st.integers(0, 60), st.integers(0, 60), st.sampled_from([0.8, 0.95, 0.99]))
def test_the_interval_is_clopper_and_pearsons(found, rest, level):
    n = found + rest
    ends = sample_estimate([[rest, found], [0, 1]], [0, 0], [70, 30], level=level)
    exact = [0.0, 1.0]
    if n:
        exact = binomtest(found, n).proportion_ci(level, method="exact")
    assert_allclose(ends.wrong_by_label_interval[0], exact, atol=1e-12)


def ends_of(found, n):
    """Return the interval of the share of wrong labels of one class, for each count found."""
    intervals = [
        sample_estimate([[n - k, k], [0, 1]], [0, 0], [700, 300]).wrong_by_label_interval[0]
        for k in found.tolist()
    ]
    return np.array(intervals)


@pytest.mark.parametrize("n", [1, 7, 40])
def test_it_covers_every_share_at_least_as_often_as_it_says(n):
    found = np.arange(n + 1)
    ends = ends_of(found, n)
    for share in np.linspace(0, 1, 101):
        covers = (ends[:, 0] <= share) & (share <= ends[:, 1])
        assert binom.pmf(found, n, share) @ covers >= 0.95 - 1e-12


def test_it_covers_the_share_of_a_small_table_too():
    # rows are drawn without replacement: the wrong ones among them are hypergeometric
    n_rows, n = 60, 25
    found = np.arange(n + 1)
    ends = ends_of(found, n)
    for n_wrong in range(n_rows + 1):
        covers = (ends[:, 0] <= n_wrong / n_rows) & (n_wrong / n_rows <= ends[:, 1])
        assert hypergeom.pmf(found, n_rows, n_wrong, n) @ covers >= 0.95 - 1e-12


def test_the_rates_are_bayes_rule_for_two_classes():
    found = sample_estimate([[57, 3], [8, 32]], [0, 0], [6000, 4000])
    # wrong among labels 0 and labels 1, in the words of `InverseRates`
    rates = InverseRates(positive=8 / 40, negative=3 / 60).to_rates(noisy_prior=0.4)
    assert_allclose(found.rates, [rates.negative, rates.positive])
    assert_allclose(found.wrong_by_label, [3 / 60, 8 / 40])
    assert_allclose(found.wrong, 11 / 100)


def test_the_population_gives_back_its_transition_matrix():
    noise = TransitionMatrix([[0.8, 0.2, 0.0], [0.0, 0.9, 0.1], [0.1, 0.1, 0.8]])
    joint = np.array([0.5, 0.3, 0.2])[:, None] * noise.matrix  # true in rows
    found = sample_estimate(1e6 * joint.T, np.zeros(3), 1e7 * joint.sum(axis=0))
    assert_allclose(found.rates, [0.2, 0.1, 0.2])
    assert np.all(found.rates_interval[:, 0] < found.rates)
    assert np.all(found.rates < found.rates_interval[:, 1])
    assert np.all(np.diff(found.rates_interval) < 0.01)


def test_the_rates_interval_covers_at_least_as_often_as_it_says():
    rng = np.random.default_rng(0)
    rho = np.array([0.1, 0.3])
    true = np.array([0.6, 0.4])
    joint = true[:, None] * np.array([[1 - rho[0], rho[0]], [rho[1], 1 - rho[1]]])
    labels = 1e6 * joint.sum(axis=0)
    covered = []
    for _ in range(400):
        counts = rng.multinomial(60, joint.T.ravel()).reshape(2, 2)
        ends = sample_estimate(counts, [0, 0], labels).rates_interval
        covered.append((ends[:, 0] <= rho) & (rho <= ends[:, 1]))
    # 400 runs of a coverage of 0.95 are below 0.93 once in thirty times, and it is above 0.95
    assert np.all(np.mean(covered, axis=0) >= 0.95)


def test_random_rows_give_unbiased_shares_and_intervals_that_cover():
    rng = np.random.default_rng(1)
    given_labels = np.repeat([0, 1], [700, 300])
    wrong = rng.random(1000) < np.where(given_labels == 0, 0.05, 0.3)
    truth = np.array([wrong[given_labels == k].mean() for k in (0, 1)])
    shares, covered = [], []
    for _ in range(600):
        rows = rng.choice(1000, 80, replace=False)
        counts = np.zeros((2, 2))
        np.add.at(counts, (given_labels[rows], given_labels[rows] ^ wrong[rows]), 1)
        found = sample_estimate(counts, [0, 0], [700, 300])
        ends = found.wrong_by_label_interval
        shares.append(found.wrong_by_label)
        covered.append((ends[:, 0] <= truth) & (truth <= ends[:, 1]))
    error = np.std(shares, axis=0) / np.sqrt(600)
    assert np.all(np.abs(np.mean(shares, axis=0) - truth) < 4 * error)
    assert np.all(np.mean(covered, axis=0) >= 0.95)


COUNTS = st.lists(st.integers(0, 30), min_size=4, max_size=4)


@given(COUNTS, st.lists(st.integers(0, 10), min_size=2, max_size=2), st.data())
def test_the_interval_holds_whatever_the_unsure_rows_are(counts, unsure, data):
    seen = np.array(counts).reshape(2, 2)
    found = sample_estimate(seen, unsure, [700, 300])
    told = seen.copy()
    for label, n in enumerate(unsure):
        wrong = data.draw(st.integers(0, n))
        told[label, 1 - label] += wrong
        told[label, label] += n - wrong
    exact = sample_estimate(told, [0, 0], [700, 300])
    for name in ("wrong_interval", "wrong_by_label_interval", "rates_interval"):
        ours, theirs = getattr(found, name), getattr(exact, name)
        assert np.all(ours[..., 0] <= theirs[..., 0] + 1e-12)
        assert np.all(ours[..., 1] >= theirs[..., 1] - 1e-12)
    assert found.n_rows == exact.n_rows
    assert found.n_unsure == sum(unsure)


def test_nothing_reviewed_is_nothing_known():
    found = sample_estimate(np.zeros((2, 2)), [0, 0], [5, 5])
    assert np.isnan(found.wrong)
    assert np.isnan(found.rates).all()
    assert_allclose(found.rates_interval, [[0, 1], [0, 1]])
    assert_allclose(found.wrong_interval, [0, 1])


def test_an_impossible_level_is_refused():
    with pytest.raises(ValueError, match="level"):
        sample_estimate(np.eye(2), [0, 0], [5, 5], level=1)
