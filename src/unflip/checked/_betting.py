r"""Confidence sequences: intervals that hold at every moment, by betting against each value.

At draw t, given the draws before it, the terms

    Z_t(m) = 1/N [ sum_before y_i + lambda_t sum_left y^_i + (y_I - lambda_t y^_I) / q_t(I) ],

with y = a - m b, have mean 0 if theta = m. Betting on their sign with stakes nu_t that depend on
the past only turns a capital of 1 into prod_t (1 + nu_t Z_t(m)). If theta = m, the capital ever
reaches 1/alpha with probability at most alpha (Ville). The confidence sequence holds the values m
whose capital has not reached 1/alpha.

References
----------
Waudby-Smith, Ramdas (2024), "Estimating means of bounded random variables by betting", JRSS B 86.
Shekhar, Xu, Lipton, Liang, Ramdas (2023), "Risk-limiting financial audits via weighted sampling
without replacement", UAI.
"""

from typing import NamedTuple

import numpy as np

from unflip._utils.typing import Floats
from unflip.checked._draws import Draws

STAKES = 0.9 * 0.5 ** np.arange(8)
"""Stakes per largest stake that cannot lose all the capital, which is split equally among them."""

PRIOR_POWER_ROWS = 10.0
"""Number of prior rows with which the power of the model's predictions is shrunk to one half."""

GRID = 128
"""Number of intervals of the first grid of values; the ends are then refined."""

DRAWS_PER_BLOCK, MIN_FACTOR = 128, 1e-300
"""Number of draws whose factors are multiplied before taking the logarithm, and minimum product."""

MAX_WON = 10.0
"""Maximum gain of a draw, in stakes: a bet may be less than optimal."""

MIN_BOUND = 1e-3
"""Minimum bound on a term, against rounding."""


def confidence_sequence(
    values: Floats, model: Floats, model_mean: Floats, draws: Draws, *, largest: float, level: float
) -> tuple[float, float]:
    """Return the range of values that no draw so far has ruled out."""
    if not draws.rows.size:
        return 0.0, 1.0
    game = _game(values, model, model_mean, draws, largest)
    needed = np.log(2 / (1 - level))

    def open_values(grid: Floats) -> Floats:
        capital = _log_capital(grid, game)
        return grid[(capital.max(axis=1) < needed).all(axis=0)]

    grid = np.linspace(0, 1, GRID + 1)
    left = open_values(grid)
    if not left.size:  # the open values lie between two points of the grid
        left = np.array([_least_refuted(grid, game)])
    low, high = float(left[0]), float(left[-1])
    below = np.linspace(max(low - 1 / GRID, 0), low, GRID // 8 + 1)
    above = np.linspace(high, min(high + 1 / GRID, 1), GRID // 8 + 1)
    step = 8 / GRID**2
    finer_low, finer_high = open_values(below), open_values(above)
    # one step outwards: values between two points of the grid count as open
    low = float(finer_low[0]) - step if finer_low.size else low - step
    high = float(finer_high[-1]) + step if finer_high.size else high + step
    return max(low, 0.0), min(high, 1.0)


class _Game(NamedTuple):
    """Parts of Z_t, of shape (n_draws, 2), for a and b.

    `terms` make up Z_t, `base` is known before the draw, `power` is lambda_t.
    """

    terms: Floats
    base: Floats
    power: Floats
    draws: Draws
    largest: float

    def at(self, parts: Floats, grid: Floats) -> Floats:
        """Return a - m b, of shape (n_draws, n_values)."""
        return np.asarray(parts[:, :1] - grid * parts[:, 1:])


def _game(values: Floats, model: Floats, model_mean: Floats, draws: Draws, largest: float) -> _Game:
    n_rows, left = draws.n_rows, draws.left
    share = float(model_mean[0])
    power = _powers(values, model, share * (1 - share), draws)
    seen = _before(values)
    predicted_left = n_rows * model_mean - _before(model)
    base = (seen + power[:, None] * predicted_left) / n_rows
    drawn = (values - power[:, None] * model) * (left / draws.relative)[:, None]
    return _Game(base + drawn / n_rows, base, power, draws, largest)


def _powers(values: Floats, model: Floats, model_variance: float, draws: Draws) -> Floats:
    """Return lambda_t, the power of minimum variance in earlier draws, shrunk to one half."""
    w = 1 / draws.relative
    totals = _before(w[:, None] * values)
    theta = (totals[:, 0] + 0.5) / (totals[:, 1] + 1.0)
    squares = {
        (i, j): _before((w**2 * left * right)[:, None])[:, 0]
        for i, left in enumerate((*values.T, *model.T, np.ones(w.size)))
        for j, right in enumerate((*values.T, *model.T, np.ones(w.size)))
        if i <= j
    }

    def cross(first: int, second: int) -> Floats:
        """Return sum w^2 (a - theta b)_first (a - theta b)_second, centred."""
        f, s = 2 * first, 2 * second

        def total(i: int, j: int) -> Floats:
            return squares[min(i, j), max(i, j)]

        products = (
            total(f, s)
            - theta * (total(f, s + 1) + total(f + 1, s))
            + theta**2 * total(f + 1, s + 1)
        )
        sums = [total(k, 4) - theta * total(k + 1, 4) for k in (f, s)]
        return np.asarray(products - sums[0] * sums[1] / np.maximum(total(4, 4), 1e-300))

    prior = PRIOR_POWER_ROWS * model_variance + 1e-12
    return np.clip((cross(0, 1) + 0.5 * prior) / (cross(1, 1) + prior), 0, 1)


def _before(values: Floats) -> Floats:
    """Return cumulative sums over earlier draws."""
    return np.cumsum(values, axis=0) - values


def _log_capital(grid: Floats, game: _Game) -> Floats:
    """Return the log capital after every draw, of shape (2, n_draws, n_values): up and down."""
    z = game.at(game.terms, grid)
    below, above = _bounds(grid, game)
    outcomes = z / below, -z / above
    # a smaller gain than possible keeps the bet fair
    return np.stack([_log_mean_product(np.minimum(each, MAX_WON)) for each in outcomes])


def _log_mean_product(outcome: Floats) -> Floats:
    """Return the log of the mean over stakes of prod (1 + stake * outcome), after every draw."""
    stakes = STAKES[:, None, None]
    logs = np.zeros((STAKES.size, 1, outcome.shape[1]))
    found = np.empty_like(outcome)
    for start in range(0, len(outcome), DRAWS_PER_BLOCK):
        part = slice(start, start + DRAWS_PER_BLOCK)
        products = np.cumprod(1 + stakes * outcome[part], axis=1)
        top = logs.max(axis=0)
        mean = np.einsum("jim,jtm->tm", np.exp(logs - top), products) / STAKES.size
        found[part] = top + np.log(np.maximum(mean, MIN_FACTOR))
        logs = logs + np.log(np.maximum(products[:, -1:], MIN_FACTOR))
    return found


def _bounds(grid: Floats, game: _Game) -> tuple[Floats, Floats]:
    """Return bounds of each term below and above 0, whatever is drawn."""
    # y = a - m b, and the model's, lie between -m and largest (1 - m)
    lowest, highest = grid, game.largest * (1 - grid)
    draws, lam = game.draws, game.power[:, None]
    base = game.at(game.base, grid)
    scale = (draws.left / (draws.n_rows * draws.floor))[:, None]
    below = scale * (lowest + lam * highest) - base
    above = scale * (highest + lam * lowest) + base
    return np.maximum(below, MIN_BOUND), np.maximum(above, MIN_BOUND)


def _least_refuted(grid: Floats, game: _Game) -> float:
    capital = _log_capital(grid, game).max(axis=(0, 1))
    return float(grid[capital.argmin()])
