"""Sampling error of estimated rates, by the bootstrap on scores."""

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
"""Number of resamples of `interval_`."""

MAX_QUICK_SAMPLES = 20_000
"""Maximum number of samples for which `interval_` resamples by itself, in a second or two."""


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
    refitted, so that its own error is not included. A resample that lacks a class, or from which no
    rates can be estimated, is drawn again.
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
                        f"the interval cannot be computed: most resamples of these {codes.size} "
                        f"samples (total weight {weight.sum():.3g}) give no rates ({error}). Use "
                        "more samples."
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
    shares = np.array([ndtr(shift + ndtri(p)) for p in ((1 - level) / 2, (1 + level) / 2)])
    by_entry = zip(draws.reshape(len(draws), -1).T, shares.reshape(2, -1).T, strict=True)
    ends = [np.quantile(drawn, share) for drawn, share in by_entry]
    return np.array(ends).T.reshape(shares.shape)
