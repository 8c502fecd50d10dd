"""Temperature scaling by held-out labels, and what follows for T."""

import numpy as np
import pytest
from scipy.special import expit, logit, softmax

from tests.channel.test_engine import design_of
from unflip import TransitionMatrix, flip_labels
from unflip.channel._design import ChannelDesign
from unflip.channel._explore import _estimates
from unflip.channel._maximise import Mode, maximise
from unflip.channel._structure import structures
from unflip.channel._temperature import temperature_scaling
from unflip.posterior import ChannelPosterior


def drawn(factor, rate, n_classes=4, n_rows=4000, weight=None):
    """Return logits, and labels drawn by softmax(factor * logits) and one rate."""
    rng = np.random.default_rng(0)
    t = rng.normal(size=(n_rows, n_classes)) * 1.5
    g = softmax(factor * t, axis=1)
    true = (g.cumsum(axis=1) < rng.uniform(size=(n_rows, 1))).sum(axis=1)
    codes = flip_labels(true, TransitionMatrix.uniform(n_classes, rate), random_state=0)
    weight = np.ones(n_rows) if weight is None else weight
    return t, ChannelDesign(np.ones((n_rows, 1)), np.zeros(1, int), codes, weight, n_classes)


def test_logits_that_are_too_flat_are_scaled_along_with_the_rate():
    t, design = drawn(factor=1.8, rate=0.2)
    one = structures(4, free=False)[1]
    found = temperature_scaling(t, design, one, one.start())
    assert found.factor == pytest.approx(1.8, abs=0.25)
    assert expit(found.theta[0]) == pytest.approx(0.2, abs=0.03)


def test_the_likeliest_factor_is_that_of_a_grid():
    weight = np.random.default_rng(1).uniform(0.5, 2, 600)
    t, design = drawn(factor=2.0, rate=0.2, n_rows=600, weight=weight)
    one = structures(4, free=False)[1]
    found = temperature_scaling(t, design, one, one.start())

    def height(factor, rate):
        T = TransitionMatrix.uniform(4, rate).matrix
        p = (softmax(factor * t, axis=1) @ T)[np.arange(600), design.codes]
        return weight @ np.log(p) + one.log_prior(np.array([logit(rate)]))[0]

    there = height(found.factor, expit(found.theta[0]))
    factors, rates = np.linspace(1, 4, 31), np.linspace(0.05, 0.4, 36)
    on_grid = max((height(f, r), f, r) for f in factors for r in rates)
    assert there >= on_grid[0] - 1e-6
    assert found.factor == pytest.approx(on_grid[1], abs=0.1)
    assert expit(found.theta[0]) == pytest.approx(on_grid[2], abs=0.01)

    # the rate's standard deviation of the joint curvature is that of both parts together
    def at(x):
        return -height(np.exp(x[0]), expit(x[1]))

    top, h = np.array([np.log(found.factor), found.theta[0]]), 1e-3
    e = h * np.eye(2)
    bend = [
        [
            (at(top + u + v) - at(top + u - v) - at(top - u + v) + at(top - u - v)) / (4 * h * h)
            for u in e
        ]
        for v in e
    ]
    covariance = np.linalg.inv(bend)
    expected = covariance[0, 1] / np.sqrt(covariance[0, 0])
    assert found.spread[0] == pytest.approx(expected, rel=0.1)


@pytest.mark.parametrize("factor", [0.5, 1.0])
def test_logits_that_are_large_enough_stay_as_they_are(factor):
    t, design = drawn(factor, rate=0.2)
    one = structures(4, free=False)[1]
    found = temperature_scaling(t, design, one, one.start())
    assert found.factor == 1
    assert found.theta == pytest.approx(one.start())


def test_a_known_matrix_stays_where_logits_are_scaled():
    t, design = drawn(factor=1.8, rate=0.2)
    one = structures(4, free=False)[1]
    T = TransitionMatrix.uniform(4, 0.2).matrix
    found = temperature_scaling(t, design, one, one.start(), T)
    assert found.factor == pytest.approx(1.8, abs=0.2)
    assert found.theta == pytest.approx(one.start())


def test_many_classes_of_few_rows_are_not_taken_for_noise():
    """At the maximum over w alone, a third of the labels would seem flipped, and trees object."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 15, 600)
    X = rng.normal(size=(15, 30))[y] * 4 / np.sqrt(30) + rng.normal(size=(600, 30))
    y_noisy = flip_labels(y, TransitionMatrix.uniform(15, 0.2), random_state=0)
    channel = ChannelPosterior(random_state=0).fit(X, y_noisy)
    assert channel.rates_.matrix.diagonal().mean() == pytest.approx(0.8, abs=0.05)
    assert channel.check_.verdict == "not_rejected"
    low, high = channel.interval_.label_error_rate
    assert low < np.mean(y != y_noisy) < high


def test_the_estimate_falls_to_none_as_noise_becomes_unlikely():
    design = design_of(4, 300)
    none, one = structures(4, free=False)[:2]
    modes = [maximise(design, each, each.start(), design.first_variance()) for each in (none, one)]
    given_noise = np.sort(np.random.default_rng(0).beta(2, 8, 1000))
    rates = []
    for p in (0.0, 0.2, 0.4, 0.49, 0.51):
        n_clean = round(1000 * p / (1 - p))
        shares = np.append(np.zeros(n_clean), given_noise)
        T, mean = _estimates(modes, np.array([p, 1 - p]), shares)
        rates.append(1 - T[0, 0])
        assert mean == pytest.approx(p * np.eye(4) + (1 - p) * modes[1].fit.T)
        assert T.sum(axis=1) == pytest.approx(np.ones(4))
    assert rates[0] == pytest.approx(1 - modes[1].fit.T[0, 0])
    assert rates[0] > rates[1] > rates[2] > rates[3] > rates[4] == 0
    assert rates[3] < 0.2 * rates[0]


def test_a_moved_maximum_is_as_sure_as_before_but_for_how_far_it_moved():
    design = design_of(4, 300)
    one = structures(4, free=False)[1]
    mode = maximise(design, one, one.start(), design.first_variance())
    moved = mode.at(mode.fit.theta + 0.5, np.zeros(1))
    assert isinstance(moved, Mode)
    assert moved.mean_matrix == pytest.approx(one.matrix(mode.fit.theta + 0.5))
    wider = mode.at(mode.fit.theta + 0.5, np.array([0.7]))
    draws = [
        logit(1 - each.draws(4000, np.random.RandomState(0))[:, 0, 0])
        for each in (mode, moved, wider)
    ]
    assert draws[1].mean() == pytest.approx(draws[0].mean() + 0.5, abs=0.02)
    assert draws[1].std() == pytest.approx(draws[0].std(), rel=0.05)
    assert draws[2].std() == pytest.approx(np.hypot(draws[0].std(), 0.7), rel=0.05)


def two_classes(n_rows=1500, n_columns=150, seed=0):
    """Return rows of two classes far apart, and labels a fifth of which are flipped."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n_rows)
    X = rng.normal(size=(2, n_columns))[y] * 4 / np.sqrt(n_columns)
    X += rng.normal(size=X.shape)
    return X, flip_labels(y, TransitionMatrix.uniform(2, 0.2), random_state=seed)


def test_wide_rows_of_two_classes_are_not_rejected():
    """Too flat a posterior is something that trees can see."""
    statistics = [
        ChannelPosterior(random_state=0).fit(*two_classes(seed=seed)).check_.statistic
        for seed in range(3)
    ]
    assert np.mean(statistics) < 1.5
