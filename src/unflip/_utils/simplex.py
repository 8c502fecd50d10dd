"""Vectors of probabilities."""

import numpy as np
from numpy.typing import NDArray

from unflip._utils.typing import Array, Floats

BARRIER = 1e-10
"""Weight of the log-barrier that keeps mixtures off the faces, so that tiny entries are ranked."""

NEARLY_FLAT = 1 - 1e-3
"""Maximum g_k at which q_k is 0 but for the barrier: q_k = BARRIER / (1 - g_k)."""

MAX_SUBOPTIMALITY = 1e-6
"""Maximum difference of a row's mean log-likelihood from its maximum."""

MAX_EM_STEPS = 1000
"""Maximum number of accelerated steps; hardly any row takes a hundred."""

SOLVED_AT_ONCE = 1 << 21
"""Maximum number of array entries per block."""


def onto_simplex(values: Floats) -> Floats:
    """Return the values with negative ones at 0, scaled to sum to one along the last axis."""
    positive = np.maximum(values, 0.0)
    positive[positive.sum(axis=-1) <= 0] = 1.0
    return np.asarray(positive / positive.sum(axis=-1, keepdims=True))


def scaled_rows(values: Floats) -> Floats:
    """Return rows scaled to sum to one; rows of zeros stay."""
    total = values.sum(axis=1, keepdims=True)
    return np.asarray(values / np.where(total > 0, total, 1))


ROUNDING = 1e-6
"""Maximum rounding error of a sum of probabilities, in single precision too."""


def of_another_class(proba: Floats, codes: NDArray[np.intp]) -> Floats:
    """Return the probability that each row is not of a given class: of another, or of none.

    It is summed over the other classes: 1 - P(given class) is 0 below 1e-16, and such rows could
    not be ranked.
    """
    others = np.ones(proba.shape, dtype=bool)
    others[np.arange(codes.size), codes] = False
    elsewhere = np.sum(proba, axis=1, where=others, dtype=np.float64)
    return np.clip(elsewhere + left_over(proba), 0.0, 1.0)


def left_over(proba: Floats) -> Floats:
    """Return one minus the sum of each row, or 0 if that is only rounding."""
    left = 1 - proba.sum(axis=1, dtype=np.float64)
    return np.where(left > ROUNDING, left, 0.0)


def likeliest_mixture(rows: Floats, matrix: Floats, inverted: Floats | None = None) -> Floats:
    r"""Return argmax_q sum_j p_j log (q T)_j over probability vectors q, one for each row p.

    That is p T^-1 where all its entries are above 0; elsewhere q lies on the boundary. A vanishing
    barrier, `BARRIER` sum_k log q_k, takes it just off there: no entry is 0, and of two entries
    that are all but ruled out the less likely one is smaller.

    Notes
    -----
    The objective is concave and q is optimal where g_k = sum_j p_j T_kj / (q T)_j is at most 1 for
    every k; no q does better by more than the largest g_k - 1. A corner of the simplex is checked
    by that alone; other rows take steps q_k <- q_k g_k (EM), every third of them a leap.
    """
    mixture: Floats = np.array(
        np.linalg.solve(matrix.T, rows.T).T if inverted is None else inverted, dtype=np.float64
    )
    outside = np.flatnonzero(mixture.min(axis=1) <= 0)
    n_block = max(1, SOLVED_AT_ONCE // matrix.shape[0])
    for start in range(0, outside.size, n_block):
        block = outside[start : start + n_block]
        mixture[block] = _on_the_boundary(rows[block], matrix, mixture[block])
    return mixture


def _on_the_boundary(rows: Floats, matrix: Floats, inverted: Floats) -> Floats:
    mixture, is_corner = _corners(rows, matrix, inverted.argmax(axis=1))
    between = np.flatnonzero(~is_corner)
    start = scaled_rows(np.maximum(inverted[between], 1e-3))
    mixture[between] = _maximised(start, rows[between], matrix)
    return mixture


def _corners(rows: Floats, matrix: Floats, guess: Array) -> tuple[Floats, NDArray[np.bool_]]:
    """Return the best q beside the corner of each guess, and whether it is the best of all."""
    mixture = np.zeros_like(rows)
    gradient = np.empty_like(rows)
    for k in np.unique(guess):
        at = guess == k
        ratio = matrix / np.maximum(matrix[k], 1e-300)
        gradient[at] = rows[at] @ np.minimum(ratio, 1e300).T
    own = np.arange(len(rows)), guess
    gradient[own] = 0.0  # it is 1 there
    is_corner = (gradient.max(axis=1) < NEARLY_FLAT) & (rows.max(axis=1) > 0)
    np.divide(BARRIER, 1 - gradient, out=mixture, where=is_corner[:, None])
    mixture[own] = 0.0
    mixture[own] = 1 - mixture.sum(axis=1)
    return mixture, is_corner


def _maximised(start: Floats, rows: Floats, matrix: Floats) -> Floats:
    """Return the best q inside the simplex, from starts that are inside."""
    mixture = start.copy()
    moving = np.arange(len(rows))
    for _ in range(MAX_EM_STEPS):
        if not moving.size:
            break
        p = rows[moving]
        old = mixture[moving]
        first, _ = _em_step(old, p, matrix)
        second, _ = _em_step(first, p, matrix)
        leap = _extrapolated(old, first, second)
        worse = ~(_objective(leap, p, matrix) >= _objective(second, p, matrix))
        leap[worse] = second[worse]
        mixture[moving], gap = _em_step(leap, p, matrix)
        converged = gap <= MAX_SUBOPTIMALITY
        done = moving[converged]
        settled, cost = _settled(mixture[done], p[converged], matrix)
        good = cost <= MAX_SUBOPTIMALITY
        mixture[done[good]] = settled[good]
        moving = moving[~converged]
    return mixture


def _settled(q: Floats, p: Floats, matrix: Floats) -> tuple[Floats, Floats]:
    """Return q with what is ruled out where the barrier leaves it, and how much that costs."""
    gradient = _gradient(q, p, matrix)
    settled = q.copy()
    np.divide(BARRIER, 1 - gradient, out=settled, where=gradient < NEARLY_FLAT)
    settled = scaled_rows(settled)
    return settled, _gradient(settled, p, matrix).max(axis=1, initial=0.0) - 1


def _gradient(q: Floats, p: Floats, matrix: Floats) -> Floats:
    return np.asarray((p / np.maximum(q @ matrix, 1e-300)) @ matrix.T)


def _em_step(q: Floats, p: Floats, matrix: Floats) -> tuple[Floats, Floats]:
    """Return q after one step, and how much the objective before it is below the highest."""
    gradient = _gradient(q, p, matrix)
    gap = gradient.max(axis=1) - 1
    gradient *= q
    gradient += BARRIER
    gradient /= gradient.sum(axis=1, keepdims=True)
    return gradient, gap


def _extrapolated(old: Floats, first: Floats, second: Floats) -> Floats:
    """Return where the logarithms lead to if each goes on as in two steps (Aitken), or part of it.

    A leap of an entry by more than a factor of e would leave the small ones astray.
    """
    middle, logs = np.log(first), np.log(second)
    step, next_step = middle - np.log(old), logs - middle
    ratio = np.clip(next_step / np.where(step == 0, 1.0, step), 0.0, 0.999)
    logs += np.clip(next_step * ratio / (1 - ratio), -1.0, 1.0)
    logs -= logs.max(axis=1, keepdims=True)
    leap = np.exp(np.maximum(logs, np.log(BARRIER) - 5))
    return np.asarray(leap / leap.sum(axis=1, keepdims=True))


def _objective(q: Floats, p: Floats, matrix: Floats) -> Floats:
    fit = np.einsum("ij,ij->i", p, np.log(np.maximum(q @ matrix, 1e-300)))
    return np.asarray(fit + BARRIER * np.log(q).sum(axis=1))
