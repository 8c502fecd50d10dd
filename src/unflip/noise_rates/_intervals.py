"""How far an estimate of the rates may be off by chance: the bootstrap on scores."""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr, ndtri
from sklearn.utils import check_random_state

from unflip._utils.typing import Array, Floats, RandomState
from unflip._utils.validation import check_count, check_level
from unflip._utils.warning import silenced
from unflip.diagnostics import LEVEL

RESAMPLES = 200
"""Resamples that `interval_` is taken from."""

MAX_QUICK_SAMPLES = 20_000
"""`interval_` resamples at most this many samples unasked: it takes a second or two."""


def bootstrap_matrices(
    estimate: Callable[[Array, Array, Array], Floats],
    noisy_posterior: Floats,
    codes: Array,
    weight: Floats,
    *,
    n_draws: int = RESAMPLES,
    random_state: RandomState = None,
) -> Floats:
    """Return the transition matrices of resamples, of shape (n_draws, n_classes, n_classes).

    Samples are drawn with replacement, each in proportion to its weight; P(observed | x) is not
    fitted again, so that what its own estimation adds is not in the spread. A resample that leaves
    out a class, or from which no rates can be estimated, is drawn again.
    """
    check_count(n_draws, "n_draws", least=1)
    generator = check_random_state(random_state)
    n_rows, share = max(1, round(weight.sum())), weight / weight.sum()
    n_present = np.unique(codes).size
    matrices: list[Floats] = []
    failures = 0
    with silenced():  # the estimate itself has given the same warnings
        while len(matrices) < n_draws:
            counts = generator.multinomial(n_rows, share)
            drawn = np.flatnonzero(counts)
            try:
                if np.count_nonzero(np.bincount(codes[drawn])) < n_present:
                    raise ValueError(f"a resample of {n_rows} samples lacks a class")
                matrices.append(
                    estimate(noisy_posterior[drawn], codes[drawn], counts[drawn].astype(float))
                )
            except ValueError as error:
                failures += 1
                if failures > n_draws:
                    raise ValueError(
                        f"no interval: most resamples of these {codes.size} samples give no rates "
                        f"({error}). They count as {weight.sum():.3g} samples by their weights."
                    ) from error
    return np.array(matrices)


def corrected_interval(draws: Floats, estimate: ArrayLike, level: float = LEVEL) -> Floats:
    """Return the ends of Efron's bias-corrected percentile interval, of shape (2, ...).

    The quantiles are shifted by twice the normal score of the share of draws below the estimate:
    an estimate that takes the smallest of many shares is too low, and so are its resamples, again.
    """
    check_level(level)
    centre = np.asarray(estimate, dtype=float)
    below = (np.mean(draws < centre, axis=0) + np.mean(draws <= centre, axis=0)) / 2
    edge = 1 / (2 * len(draws))
    shift = 2 * ndtri(np.clip(below, edge, 1 - edge))
    ends = [ndtr(shift + ndtri(share)) for share in ((1 - level) / 2, (1 + level) / 2)]
    return _quantiles(np.sort(draws, axis=0), np.array(ends))


def _quantiles(ascending: Floats, shares: Floats) -> Floats:
    """Return, for every entry of a draw, its own quantiles: `shares` has one more axis in front."""
    position = shares * (len(ascending) - 1)
    lower = np.floor(position).astype(np.intp)
    upper = np.minimum(lower + 1, len(ascending) - 1)
    at_lower = np.take_along_axis(ascending, lower, axis=0)
    at_upper = np.take_along_axis(ascending, upper, axis=0)
    return np.asarray(at_lower + (position - lower) * (at_upper - at_lower))
