"""Confidence sequences by betting."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from unflip.checked._betting import (
    MAX_WON,
    STAKES,
    _bounds,
    _game,
    _log_capital,
    running_sequence,
)
from unflip.checked._draws import Draws

N = 400


def a_game(seed: int, n: int = 60, power: bool = True):
    rng = np.random.default_rng(seed)
    a = (rng.random(N) < 0.3).astype(float)
    model = np.clip(0.6 * a + 0.4 * rng.random(N), 0, 1) * power
    value = 0.7 + 0.3 * rng.random(N)
    order = np.argsort(rng.exponential(size=N) / value)[:n]
    left = N - np.arange(n)
    relative = value[order] / (value.sum() - np.cumsum(value[order]) + value[order]) * left
    draws = Draws(order, np.zeros(n, dtype=np.intp), relative, True, N, 2)
    both = np.column_stack([a, np.ones(N)]), np.column_stack([model, np.full(N, float(power))])
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


def test_the_capital_is_the_mean_product_of_all_stakes() -> None:
    _, _, draws, (values, model) = a_game(1, n=5)
    game = _game(values[draws.rows], model[draws.rows], model.mean(axis=0), draws, 1.0)
    grid = np.array([0.1, 0.6])
    capital = np.exp(_log_capital(grid, game))
    z, (below, above) = game.at(game.terms, grid), _bounds(grid, game)
    for side, outcome in ((0, z / below), (1, -z / above)):
        outcome = np.minimum(outcome, MAX_WON)
        by_hand = np.mean([np.prod(1 + stake * outcome[:4], axis=0) for stake in STAKES], axis=0)
        assert_allclose(capital[side, 3], by_hand)


@pytest.mark.parametrize("power", [False, True])
def test_no_moment_misses_the_truth_in_more_than_one_session_of_twenty(power: bool) -> None:
    missed = 0
    for seed in range(200):
        a, _, draws, (values, model) = a_game(100 + seed, n=150, power=power)
        ends = running_sequence(
            values[draws.rows],
            model[draws.rows],
            model.mean(axis=0),
            draws,
            largest=1.0,
            level=0.95,
            grid=np.linspace(0, 1, 101),
        )
        missed += bool(((ends[:, 0] > a.mean()) | (ends[:, 1] < a.mean())).any())
    # at most 5 % in expectation, and 18 of 200 by chance in one of a hundred runs
    assert missed <= 17
