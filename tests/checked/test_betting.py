"""Confidence sequences by betting."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from unflip import CheckedLabels
from unflip.checked._betting import _game
from unflip.checked._draws import Draws

N = 400


def a_game(seed: int, n: int = 60):
    rng = np.random.default_rng(seed)
    a = (rng.random(N) < 0.3).astype(float)
    model = np.clip(0.6 * a + 0.4 * rng.random(N), 0, 1)
    value = 0.7 + 0.3 * rng.random(N)
    order = np.argsort(rng.exponential(size=N) / value)[:n]
    left = N - np.arange(n)
    relative = value[order] / (value.sum() - np.cumsum(value[order]) + value[order]) * left
    draws = Draws(order, np.zeros(n, dtype=np.intp), relative, True, N, 2)
    both = np.column_stack([a, np.ones(N)]), np.column_stack([model, np.ones(N)])
    return a, value, draws, both


def test_terms_have_mean_zero_at_the_truth_whatever_came_before() -> None:
    a, value, draws, (values, model) = a_game(0)
    game = _game(values[draws.rows], model[draws.rows], model.mean(axis=0), draws, 1.0)
    for t in (0, 1, 30, 59):
        left = np.setdiff1d(np.arange(N), draws.rows[:t])
        q = value[left] / value[left].sum()
        # every row that might have been drawn at t, with its probability
        means = np.zeros(2)
        for row, chance in zip(left, q, strict=True):
            rows = np.r_[draws.rows[:t], row]
            relative = np.r_[draws.relative[:t], chance * left.size]
            other = Draws(rows, np.zeros(t + 1, dtype=np.intp), relative, True, N, 2)
            terms = _game(values[rows], model[rows], model.mean(axis=0), other, 1.0).terms
            means += chance * terms[-1]
        assert_allclose(means[0] - a.mean() * means[1], 0, atol=1e-12)
        assert_allclose(means, [a.mean(), 1.0], atol=1e-12)
    assert game.power[0] == 0.5  # no row has spoken yet


@pytest.mark.parametrize("with_model", [False, True])
def test_no_moment_misses_the_truth_in_more_than_one_session_of_twenty(with_model: bool) -> None:
    missed = 0
    for seed in range(200):
        wrong, _, draws, (_, model) = a_game(100 + seed, n=150)
        chances = draws.relative / (N - np.arange(150))
        truth = (wrong[draws.rows] > 0).astype(int)
        checked = CheckedLabels(draws.rows, truth, chances)
        given = np.zeros(N, dtype=int)
        given[np.setdiff1d(np.arange(N), draws.rows)[:1]] = 1  # two classes
        rate = np.mean(np.where(given, wrong == 0, wrong > 0))
        # a value that was ruled out once stays so: the last interval is that of every moment
        found = checked.label_error_rate(given, model[:, 0] if with_model else None)
        missed += not found.anytime[0] <= rate <= found.anytime[1]
    # at most 5 % in expectation, and 18 of 200 by chance in one of a hundred runs
    assert missed <= 17
