"""Shares, rates and scores counted in checked rows."""

from math import comb

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.metrics import accuracy_score, balanced_accuracy_score, f1_score

from unflip import CheckedLabels
from unflip.checked._counting import estimate
from unflip.checked._draws import Draws
from unflip.checked.internals import NONE, UNSURE, label_error_rate
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
    found = CheckedLabels(rows, true[rows], 100 / N).label_error_rate(given)
    k = int((given != true)[rows].sum())
    assert_allclose(found.value, k / 100)
    # between the ends so many, and so few, errors have a probability above 2.5 %
    errors = np.round(np.array(found.interval) * N).astype(int)

    def probability(total: int, counts: range) -> float:
        ways = sum(comb(total, j) * comb(N - total, 100 - j) for j in counts)
        return ways / comb(N, 100)

    few, many = range(k + 1), range(k, 101)
    assert probability(errors[0], many) > 0.025 >= probability(errors[0] - 1, many)
    assert probability(errors[1], few) > 0.025 >= probability(errors[1] + 1, few)
    assert "exact" in found.method


def drawn_in_turn(
    true: np.ndarray, value: np.ndarray, n: int, rng: np.random.Generator, n_classes: int
) -> Draws:
    """Return n rows that were drawn one after the other, in proportion to their values."""
    order = np.argsort(rng.exponential(size=true.size) / value)[:n]
    left = true.size - np.arange(n)
    relative = value[order] / (value.sum() - np.cumsum(value[order]) + value[order]) * left
    return Draws(order, true[order], relative, True, true.size, n_classes)


def test_a_row_weighs_as_in_the_mean_of_all_draws_sums_by_inverse_variance() -> None:
    rng = np.random.default_rng(0)
    true, value = rng.integers(0, 2, 40), rng.uniform(0.7, 2, 40)
    for n in (1, 7, 39, 40):
        draws = drawn_in_turn(true, value, n, rng, 2)
        coefficients, shares = np.zeros((n, n)), np.zeros(n)
        for t in range(n):
            left = 40 - t
            coefficients[t, :t] = 1.0
            coefficients[t, t] = left / draws.relative[t]
            shares[t] = 1 / (left * (left - 1)) if left > 1 else 1e12
        expected = shares @ coefficients / shares.sum()
        assert_allclose(draws.weight, 40 * expected / expected.sum())
    assert_allclose(drawn_in_turn(true, np.ones(40), 8, rng, 2).weight, 5.0)


@pytest.mark.parametrize("n_open", [1, 6, 30])
def test_intervals_hold_when_few_rows_are_left(n_open: int) -> None:
    rng = np.random.default_rng(n_open)
    n_rows, truth, covered = 120, [], []
    true, wrong = rng.integers(0, 2, n_rows), rng.random(n_rows) < 0.15
    said = np.clip(0.1 + 0.3 * wrong + rng.uniform(-0.1, 0.3, n_rows), 0, 1)
    given = np.where(wrong, 1 - true, true)
    proba = np.zeros((n_rows, 3))
    proba[np.arange(n_rows), given], proba[np.arange(n_rows), 1 - given] = 1 - said, said
    for _ in range(200):
        draws = drawn_in_turn(true, 0.7 + said, n_rows - n_open, rng, 2)
        found = estimate([label_error_rate(given)], draws, proba, 0.95, sequence=False)
        truth.append(found.value - wrong.mean())
        covered.append(found.interval[0] <= wrong.mean() <= found.interval[1])
    assert abs(np.mean(truth)) < 0.3 * np.std(truth)
    assert np.mean(covered) >= 0.92


@pytest.mark.parametrize("picked", ["in turn", "by hand", "both"])
def test_every_row_checked_is_the_truth_however_it_was_picked(picked: str) -> None:
    given, true, proba = (each[:300] for each in world())
    nobody = CheckedLabels([], [])
    picks = nobody.next_rows(given, proba, n=300, random_state=0)
    by_hand = np.arange(300) >= {"in turn": 300, "by hand": 0, "both": 100}[picked]
    chances = np.where(by_hand, np.nan, picks.probability)
    checked = CheckedLabels(picks.rows, true[picks.rows], chances)
    for model in (None, proba):
        found = checked.label_error_rate(given, model)
        share = (given != true).mean()
        assert_allclose([found.value, *found.interval, *found.anytime], share)
        for label, rate in checked.noise_rates(given, model).items():
            share = (given != true)[true == label].mean()
            assert_allclose([rate.value, *rate.interval, *rate.anytime], share)
        score = checked.score(given, given, "f1", model)
        share = f1_score(true, given, average="macro")
        assert_allclose([score.value, *score.interval, *score.anytime], share)
    # of all rows, only those that nobody could tell are open
    answers = true[picks.rows].astype(object)
    answers[:30] = UNSURE
    found = CheckedLabels(picks.rows, answers, chances).label_error_rate(given, proba)
    known = (given != true)[picks.rows[30:]].sum()
    assert_allclose(found.interval, [known / 300, (known + 30) / 300])
    assert_allclose(found.anytime, found.interval)


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
    by_label = [each.value for each in checked.label_error_rate_by_label(given, model).values()]
    assert_allclose(by_label, 1 - np.diagonal(counts) / counts.sum(axis=0))
    found = checked.label_error_rate(given, proba)
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
    with pytest.raises(ValueError, match="'recall'"):
        checked.score(given, predicted, "recall")


def test_the_prediction_powered_estimate_is_that_of_its_formula() -> None:
    given, true, proba = world()
    wrong, said = (given != true).astype(float), 1 - proba[np.arange(N), given]
    rows = np.random.default_rng(3).choice(N, 200, replace=False)
    found = CheckedLabels(rows, true[rows], 1.0).label_error_rate(given, proba)
    f, g = wrong[rows], said[rows]
    power = np.cov(f, g)[0, 1] / np.var(g, ddof=1)
    assert_allclose(found.power, power)
    assert_allclose(found.value, power * said.mean() + (f - power * g).mean())
    # wider than the asymptotic interval by the row that was not seen, and no more than that
    variance = np.var(f - power * g, ddof=1) / 200 * (1 - 200 / N)
    reach = 1.972 * np.sqrt(variance + (1 - 200 / N) / 200**2) + 0.5 / N
    assert_allclose(found.half_width, reach, rtol=1e-3)


def test_a_model_of_suspicions_counts_as_one_of_classes() -> None:
    given, true, proba = world()
    rows = np.random.default_rng(3).choice(N, 200, replace=False)
    checked = CheckedLabels(rows, true[rows], 1.0)
    said = 1 - proba[np.arange(N), given]
    assert_allclose(
        checked.label_error_rate(given, said).interval,
        checked.label_error_rate(given, proba).interval,
    )
    with pytest.raises(ValueError, match="label_proba"):
        checked.noise_rates(given, said)


def test_unsure_rows_are_counted_either_way_at_the_ends() -> None:
    given, true, _ = world()
    rows = np.random.default_rng(4).choice(N, 100, replace=False)
    answers = true[rows].astype(object)
    answers[:10] = UNSURE
    found = CheckedLabels(rows, answers, 1.0).label_error_rate(given)
    best, worst = true[rows].copy(), true[rows].copy()
    best[:10], worst[:10] = given[rows[:10]], (given[rows[:10]] + 1) % 3
    ends = [
        CheckedLabels(rows, each, 1.0).label_error_rate(given).interval for each in (best, worst)
    ]
    assert_allclose(found.interval, (ends[0][0], ends[1][1]))
    assert_allclose(found.value, (given != true)[rows[10:]].mean())
    assert found.n_unsure == 10


def test_rows_of_no_class_are_wrong_and_of_no_true_class() -> None:
    given, true, _ = world()
    answers = true.astype(object)
    answers[:300] = NONE
    checked = CheckedLabels(np.arange(N), answers, 1.0)
    assert_allclose(
        checked.label_error_rate(given).value, (np.r_[np.ones(300), (given != true)[300:]]).mean()
    )
    rate = checked.noise_rates(given)[0]
    assert_allclose(rate.value, (given != true)[300:][true[300:] == 0].mean())


def test_no_drawn_row_tells_nothing() -> None:
    given, _, proba = world()
    found = CheckedLabels([], []).label_error_rate(given, proba)
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
        draws = drawn_in_turn(true, value, 150, rng, 3)
        found = estimate([label_error_rate(given)], draws, whole, 0.95, sequence=False)
        low, high = found.interval
        covered.append(low <= truth <= high)
    assert 0.92 <= np.mean(covered) <= 0.985


@pytest.mark.parametrize(("said_of_wrong", "rate"), [(0.0, 0.01), (0.99, 0.012)])
def test_mistakes_that_the_model_misses_are_covered_though_none_may_be_drawn(
    said_of_wrong: float, rate: float
) -> None:
    """Two in 200 rows: none at all in a tenth of the sessions, of which 400 have an error of .9."""
    rng = np.random.default_rng(7)
    n_rows, n = 2000, 200
    said = np.where(rng.random(n_rows) < 0.1, said_of_wrong, 0.005)
    wrong = (said > 0.5) | (rng.random(n_rows) < rate)
    proba = np.column_stack([1 - said, said, np.zeros(n_rows)])
    given, true = np.zeros(n_rows, dtype=int), wrong.astype(int)
    covered = []
    for _ in range(400):
        draws = drawn_in_turn(true, np.ones(n_rows), n, rng, 2)
        found = estimate([label_error_rate(given)], draws, proba, 0.95, sequence=False)
        covered.append(found.interval[0] <= wrong.mean() <= found.interval[1])
    assert np.mean(covered) >= 0.93


def test_a_model_that_was_right_in_every_row_may_be_wrong_in_three_of_so_many() -> None:
    given = np.zeros(N, dtype=int)
    given[:5] = 1
    true, rows = given.copy(), np.arange(1000, 1150)
    proba = np.eye(2)[given]
    found = CheckedLabels(rows, true[rows], 1.0).label_error_rate(given, proba, level=0.95)
    # (1 - share)^n = .05, and half a row
    reach = -np.log(0.05) / 150 * np.sqrt(1 - 150 / N) + 0.5 / N
    assert_allclose(found.interval, [0, reach])
    assert_allclose((1 - found.interval[1]) ** 150, 0.05, rtol=0.1)


def test_either_end_reaches_as_far_as_rows_that_could_move_it() -> None:
    """Rows that the model calls wrong weigh less, and only they could move it down."""
    rng = np.random.default_rng(0)
    true = (np.arange(2000) % 5 == 0).astype(int)
    given, proba = np.zeros(2000, dtype=int), np.eye(3)[true]
    draws = drawn_in_turn(true, 1.0 + 0.3 * true, 200, rng, 2)
    found = estimate([label_error_rate(given)], draws, proba, 0.95, sequence=False)
    assert_allclose(found.value, 0.2)
    assert_allclose(found.power, 1)
    for end, kind in ((found.interval[1], 0), (found.interval[0], 1)):
        weight = draws.weight[draws.truth == kind]
        one_row = (weight**3 * np.sqrt(1 - 1 / weight)).sum() / (weight**2).sum() / 2000
        assert_allclose(abs(end - 0.2), -np.log(0.05) * one_row + 0.5 / 2000)
    assert found.interval[1] - 0.2 > 1.2 * (0.2 - found.interval[0])


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
    with pytest.raises(ValueError, match="sample_weight"):
        clean_accuracy_score(given, predicted, checked=checked, sample_weight=np.ones(N))


def test_rates_that_leave_no_information_are_scaled_back_and_unknown_ones_refused() -> None:
    y = np.array([0, 1] * 50)
    true = np.where(np.arange(100) < 10, y, 1 - y)
    with pytest.warns(UserWarning, match="0.833 and 0.833 sum to 1.667"):
        found = CheckedLabels(np.arange(60), true[:60], 0.6).rates(y)
    assert_allclose([found.positive, found.negative], 0.475)
    with pytest.raises(ValueError, match="truly 1"):
        CheckedLabels(np.arange(60), np.zeros(60, dtype=int), 0.6).rates(y)
