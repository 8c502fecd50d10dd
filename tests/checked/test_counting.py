"""Shares, rates and scores counted in checked rows."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import binom
from sklearn.metrics import accuracy_score, balanced_accuracy_score, f1_score

from unflip import CheckedLabels
from unflip.checked import NONE, UNSURE, Draws
from unflip.checked._counting import estimate_ratio
from unflip.checked._ratios import wrong_share
from unflip.metrics import clean_accuracy_score, clean_balanced_accuracy_score, clean_f1_score

N = 3000


def world(seed: int = 0, n_classes: int = 3) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return given labels, true ones and P(true | x, given) of a model that knows something."""
    rng = np.random.default_rng(seed)
    true = rng.integers(0, n_classes, N)
    wrong = rng.random(N) < rng.beta(0.3, 2, N)
    given = np.where(wrong, (true + rng.integers(1, n_classes, N)) % n_classes, true)
    proba = rng.dirichlet(np.ones(n_classes), N) + 0.3 * np.eye(n_classes)[true]
    return given, true, proba / proba.sum(axis=1, keepdims=True)


def test_a_plain_random_sample_is_counted_exactly() -> None:
    given, true, _ = world()
    rows = np.random.default_rng(1).choice(N, 100, replace=False)
    found = CheckedLabels(rows, true[rows], 100 / N).wrong_share(given)
    k = int((given != true)[rows].sum())
    assert_allclose(found.value, k / 100)
    # the ends are where so many, or so few, errors have a probability of 2.5 %
    assert_allclose(binom.sf(k - 1, 100, found.interval[0]), 0.025)
    assert_allclose(binom.cdf(k, 100, found.interval[1]), 0.025)
    assert "exact" in found.method


@pytest.mark.parametrize("with_model", [False, True])
def test_all_rows_checked_leave_nothing_open(with_model: bool) -> None:
    given, true, proba = world()
    checked = CheckedLabels(np.arange(N), true, 1.0)
    model = proba if with_model else None
    matrix = [[each.value for each in row] for row in checked.transition(given, model)]
    counts = np.zeros((3, 3))
    np.add.at(counts, (true, given), 1)
    assert_allclose(matrix, counts / counts.sum(axis=1, keepdims=True))
    rates = [each.value for each in checked.noise_rates(given, model).values()]
    assert_allclose(rates, 1 - np.diagonal(matrix))
    by_label = [each.value for each in checked.wrong_share_by_label(given, model).values()]
    assert_allclose(by_label, 1 - np.diagonal(counts) / counts.sum(axis=0))
    found = checked.wrong_share(given, proba)
    assert_allclose(found.interval, (given != true).mean())


def test_scores_of_all_rows_are_those_of_scikit_learn() -> None:
    given, true, proba = world(n_classes=2)
    predicted = np.random.default_rng(2).permutation(true)
    checked = CheckedLabels(np.arange(N), true, 1.0)
    for metric, score in (
        ("accuracy", accuracy_score),
        ("balanced_accuracy", balanced_accuracy_score),
        ("f1", f1_score),
    ):
        for model in (None, proba):
            found = checked.score(given, predicted, metric, model)
            assert_allclose(found.value, score(true, predicted))
    given, true, _ = world()
    predicted = np.random.default_rng(2).permutation(true)
    found = CheckedLabels(np.arange(N), true, 1.0).score(given, predicted, "f1")
    assert_allclose(found.value, f1_score(true, predicted, average="macro"))
    with pytest.raises(ValueError, match=r"metric must be one of accuracy.*'recall'"):
        checked.score(given, predicted, "recall")


def test_the_prediction_powered_estimate_is_that_of_its_formula() -> None:
    given, true, proba = world()
    wrong, said = (given != true).astype(float), 1 - proba[np.arange(N), given]
    rows = np.random.default_rng(3).choice(N, 200, replace=False)
    found = CheckedLabels(rows, true[rows], 1.0).wrong_share(given, proba)
    f, g = wrong[rows], said[rows]
    power = np.cov(f, g)[0, 1] / np.var(g, ddof=1)
    assert_allclose(found.power, power)
    assert_allclose(found.value, power * said.mean() + (f - power * g).mean())
    # wider than the asymptotic interval by the row that was not seen, and no more than that
    variance = np.var(f - power * g, ddof=1) / 200 * (1 - 200 / N)
    assert_allclose(found.half_width, 1.972 * np.sqrt(variance + (1 - 200 / N) / 200**2), rtol=1e-3)


def test_a_model_of_suspicions_counts_as_one_of_classes() -> None:
    given, true, proba = world()
    rows = np.random.default_rng(3).choice(N, 200, replace=False)
    checked = CheckedLabels(rows, true[rows], 1.0)
    said = 1 - proba[np.arange(N), given]
    assert_allclose(
        checked.wrong_share(given, said).interval, checked.wrong_share(given, proba).interval
    )
    with pytest.raises(ValueError, match=r"label_proba has shape \(3000,\), expected \(3000, 3\)"):
        checked.noise_rates(given, said)


def test_unsure_rows_are_counted_either_way_at_the_ends() -> None:
    given, true, _ = world()
    rows = np.random.default_rng(4).choice(N, 100, replace=False)
    answers = true[rows].astype(object)
    answers[:10] = UNSURE
    found = CheckedLabels(rows, answers, 1.0).wrong_share(given)
    best, worst = true[rows].copy(), true[rows].copy()
    best[:10], worst[:10] = given[rows[:10]], (given[rows[:10]] + 1) % 3
    ends = [CheckedLabels(rows, each, 1.0).wrong_share(given).interval for each in (best, worst)]
    assert_allclose(found.interval, (ends[0][0], ends[1][1]))
    assert_allclose(found.value, (given != true)[rows[10:]].mean())
    assert found.n_unsure == 10


def test_rows_of_no_class_are_wrong_and_of_no_true_class() -> None:
    given, true, _ = world()
    answers = true.astype(object)
    answers[:300] = NONE
    checked = CheckedLabels(np.arange(N), answers, 1.0)
    assert_allclose(
        checked.wrong_share(given).value, (np.r_[np.ones(300), (given != true)[300:]]).mean()
    )
    rate = checked.noise_rates(given)[0]
    assert_allclose(rate.value, (given != true)[300:][true[300:] == 0].mean())


def test_no_drawn_row_tells_nothing() -> None:
    given, true, proba = world()
    found = CheckedLabels([0, 1], true[:2]).wrong_share(given, proba)
    assert np.isnan(found.value)
    assert found.interval == (0.0, 1.0) == found.anytime
    assert found.n_rows == 0


@pytest.mark.parametrize("active", [False, True])
def test_intervals_cover_the_truth_whatever_the_model(active: bool) -> None:
    """Fixed n: 93 to 98 of 100; 500 sessions have a standard error of 1."""
    rng = np.random.default_rng(5)
    given, true, proba = world(6)
    truth = (given != true).mean()
    whole = np.column_stack([proba, np.zeros(N)])
    said = 1 - proba[np.arange(N), given]
    value = 0.7 + 0.3 * said / said.mean() if active else np.ones(N)
    covered = []
    for _ in range(500):
        order = np.argsort(rng.exponential(size=N) / value)[:150]
        left = N - np.arange(150)
        relative = value[order] / (value.sum() - np.cumsum(value[order]) + value[order]) * left
        draws = Draws(order, true[order], relative, True, N, 3)
        low, high = estimate_ratio(wrong_share(given), draws, whole, 0.95).interval
        covered.append(low <= truth <= high)
    assert 0.92 <= np.mean(covered) <= 0.985


def test_metrics_take_checked_rows_in_the_place_of_rates() -> None:
    given, true, _ = world(n_classes=2)
    predicted = np.random.default_rng(2).permutation(true)
    rows = np.random.default_rng(1).choice(N, 200, replace=False)
    checked = CheckedLabels(rows, true[rows], 200 / N)
    score = clean_accuracy_score(given, predicted, checked=checked)
    share = (predicted == true)[rows].mean()
    assert score == pytest.approx(share)
    assert score.standard_error == pytest.approx(np.sqrt(share * (1 - share) / 200), rel=0.1)
    for clean, plain in (
        (clean_f1_score, f1_score),
        (clean_balanced_accuracy_score, balanced_accuracy_score),
    ):
        score = clean(given, predicted, checked=checked)
        assert score == pytest.approx(plain(true[rows], predicted[rows]))
        assert abs(score - plain(true, predicted)) < 4 * score.standard_error
    with pytest.raises(TypeError, match=r"(?s)rates must be NoiseRates.*checked="):
        clean_accuracy_score(given, predicted)
    with pytest.raises(ValueError, match="without sample_weight"):
        clean_accuracy_score(given, predicted, checked=checked, sample_weight=np.ones(N))
