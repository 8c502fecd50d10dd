"""Exact intervals of shares."""

from bisect import bisect_left

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaincinv
from scipy.stats import hypergeom

from unflip._utils.typing import Floats
from unflip._utils.validation import check_level, check_numbers
from unflip.diagnostics import LEVEL


def clopper_pearson(found: ArrayLike, n: ArrayLike, level: float = LEVEL) -> Floats:
    """Return the exact interval of a share given `found` of `n`, of shape (..., 2)."""
    check_level(level)
    seen, among = check_counts(found, "found"), check_counts(n, "n")
    try:
        k, size = np.broadcast_arrays(seen, among)
    except ValueError:
        raise ValueError(
            f"found has shape {seen.shape} and n {among.shape}: give one n, or one for each."
        ) from None
    if (k > size).any():
        at = np.argmax(np.ravel(k > size))
        raise ValueError(f"found must not exceed n, got {k.flat[at]:g} of {size.flat[at]:g}.")
    tail = (1 - level) / 2
    low = np.where(k > 0, betaincinv(np.maximum(k, 1), size - k + 1, tail), 0.0)
    high = np.where(k < size, betaincinv(k + 1, np.maximum(size - k, 1), 1 - tail), 1.0)
    return np.stack([low, high], axis=-1)


def finite_interval(found: int, n: int, n_rows: int, level: float = LEVEL) -> tuple[float, float]:
    """Return the exact interval of a share, given `found` of `n` rows drawn from `n_rows`.

    It inverts the hypergeometric test: narrower than :func:`clopper_pearson`, and the share itself
    once all rows were drawn.
    """
    if not n:
        return 0.0, 1.0
    tail = (1 - level) / 2
    # both probabilities are monotone in the number of successes among all rows
    counts = range(found, n_rows - (n - found) + 1)
    low = bisect_left(
        counts, True, key=lambda total: hypergeom.sf(found - 1, n_rows, total, n) > tail
    )
    high = bisect_left(
        counts, True, key=lambda total: hypergeom.cdf(found, n_rows, total, n) <= tail
    )
    return counts[low] / n_rows, counts[high - 1] / n_rows


def check_counts(values: ArrayLike, name: str) -> Floats:
    """Return the counts, from 0 to 2^53, up to which floats are exact."""
    numbers = check_numbers(values, name)
    wrong = ~((numbers >= 0) & (numbers <= 2.0**53))
    if wrong.any():
        raise ValueError(f"{name} must hold counts from 0 to 2^53, got {numbers[wrong].flat[0]:g}.")
    return numbers
