"""Which rows to check next."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from unflip import CheckedLabels

N = 500


def table(seed: int = 0):
    rng = np.random.default_rng(seed)
    true = rng.integers(0, 2, N)
    said = rng.beta(0.5, 3, N)
    return np.where(rng.random(N) < said, 1 - true, true), true, said


def test_to_find_errors_the_most_suspicious_unchecked_rows_come_first() -> None:
    y, true, said = table()
    order = np.argsort(-said)
    checked = CheckedLabels(order[:3], true[order[:3]])
    picks = checked.next_rows(y, said, goal="find", n=5)
    assert_array_equal(picks.rows, order[3:8])
    assert np.isnan(picks.probability).all()


@pytest.mark.parametrize("goal", ["count", "train"])
def test_recorded_probabilities_are_those_with_which_rows_are_drawn(goal) -> None:
    y, true, said = table()
    start = CheckedLabels(np.arange(20), true[:20], 1 / (N - np.arange(20)))
    firsts, chances = np.zeros(N), np.full(N, np.nan)
    for seed in range(1000):
        picks = start.next_rows(y, said, goal=goal, n=2, random_state=seed)
        firsts[picks.rows[0]] += 1
        chances[picks.rows[0]] = picks.probability[0]
        assert picks.probability.min() >= 0.7 / N  # the floor
    assert not firsts[:20].any()
    seen = ~np.isnan(chances)
    # counts of the draws scatter about the probabilities as they should
    expected = 1000 * chances[seen]
    statistic = ((firsts[seen] - expected) ** 2 / expected).sum()
    assert statistic < seen.sum() + 5 * np.sqrt(2 * seen.sum())
    assert_allclose(np.mean(1 / chances[seen], where=True), N, rtol=0.2)


def test_probabilities_of_a_batch_are_of_draws_in_turn() -> None:
    y, _, said = table()
    picks = CheckedLabels([], []).next_rows(y, said, n=N, random_state=0)
    assert_array_equal(np.sort(picks.rows), np.arange(N))
    assert_allclose(picks.probability[-1], 1.0)


def test_rows_that_a_sure_model_calls_wrong_are_drawn_more_often_while_they_are_few() -> None:
    said = np.where(np.arange(N) < N // 10, 0.999, 0.001)
    y = np.arange(N) % 2
    picks = CheckedLabels([], []).next_rows(y, said, n=N, random_state=0)
    relative = picks.probability * (N - np.arange(N))
    first = picks.rows[:20]  # before the draws change what is left
    few = relative[:20][first < N // 10]
    assert few.size
    # sqrt(s (1 - s) + .02 r), r = 1 / .2 and 1 / 1.8, to the power of a half before any answer
    value = (0.000999 + 0.02 * np.array([5, 1 / 1.8])) ** 0.25
    expected = 0.7 + 0.3 * value / (0.1 * value[0] + 0.9 * value[1])
    assert_allclose(relative[0], expected[0 if first[0] < N // 10 else 1], rtol=1e-2)
    assert few.min() > 1.05


def test_a_model_that_knows_nothing_is_soon_ignored() -> None:
    rng = np.random.default_rng(3)
    true = rng.integers(0, 2, 4000)
    y = np.where(rng.random(4000) < 0.1, 1 - true, true)
    said = rng.beta(0.3, 3, 4000)
    checked = CheckedLabels([], [])
    for seed in range(10):
        picks = checked.next_rows(y, said, n=40, random_state=seed)
        checked += CheckedLabels(picks.rows, true[picks.rows], picks.probability)
    relative = picks.probability * (4000 - 360 - np.arange(40))
    assert np.ptp(relative) < 0.1
    random = CheckedLabels(np.arange(400), true[:400], 1.0)
    assert (
        checked.label_error_rate(y, said).half_width < 1.1 * random.label_error_rate(y).half_width
    )


def test_rows_needed_fall_as_rows_are_checked() -> None:
    y, true, _ = table()
    few, many = (CheckedLabels(np.arange(n), true[:n], 1.0) for n in (50, 100))
    needed = few.rows_needed(y, half_width=0.05), many.rows_needed(y, half_width=0.05)
    assert needed[0] > needed[1] > 0
    assert many.rows_needed(y, half_width=0.2) == 0
    assert CheckedLabels([], []).rows_needed(y, half_width=0.05) > 50
    # of a small table most rows, and the interval is then as wide as was asked for
    n = 100 + many.rows_needed(y, half_width=0.03)
    assert n < N
    reached = CheckedLabels(np.arange(n), true[:n], 1.0).label_error_rate(y)
    assert reached.half_width == pytest.approx(0.03, rel=0.1)
    with pytest.raises(ValueError, match="half_width"):
        few.rows_needed(y, half_width=2)


def test_draws_of_another_kind_and_other_goals_are_refused() -> None:
    y, true, said = table()
    apart = CheckedLabels([1, 2, 3], true[1:4], [0.01, 0.004, 0.006])
    with pytest.raises(ValueError, match="drawn independently"):
        apart.next_rows(y, said)
    with pytest.raises(ValueError, match="goal"):
        apart.next_rows(y, said, goal="win")


@pytest.mark.parametrize("goal", ["count", "train"])
def test_probabilities_are_never_above_one_when_all_rows_are_drawn(goal) -> None:
    for seed in range(50):
        suspicion = np.random.default_rng(seed).random(45)
        picks = CheckedLabels([], []).next_rows(
            np.arange(45) % 2, suspicion, goal=goal, n=45, random_state=seed
        )
        assert picks.probability.max() <= 1
        assert picks.probability[-1] == pytest.approx(1)
