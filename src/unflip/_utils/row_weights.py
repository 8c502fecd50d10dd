"""Number of samples that `sample_weight` amounts to, whatever its scale."""

import numpy as np
from numpy.typing import ArrayLike

from unflip._utils.typing import Floats
from unflip._utils.validation import check_weights

RESTS_ON_ONE_ROW = 2.0
"""Minimum effective sample size of 200 samples or more: below it, one sample dominates."""

MAX_COPIES = 10
"""Maximum number of copies that fractional weights stand for; with more, weights rounded to two
digits would count as multiples of 0.01."""


def relative_weights(sample_weight: ArrayLike | None, n_samples: int) -> Floats:
    """Return how many samples each one counts as, whatever the scale of `sample_weight`.

    Whole numbers are numbers of copies, up to a common factor: 2, 2 and 4 are 1, 1 and 2 samples.
    So are fractions that are small multiples of a common unit, such as 0.2, 0.2 and 0.4. All other
    weights sum to the effective sample size, (sum w)^2 / sum w^2.
    """
    weight = check_weights(sample_weight, n_samples)
    if sample_weight is None:
        return weight
    effective = effective_rows(weight)
    if effective < min(RESTS_ON_ONE_ROW, np.count_nonzero(weight) / 100):
        raise ValueError(
            f"sample_weight leaves {effective:.2g} effective rows of {n_samples}: one weight of "
            f"{weight.max():.3g} outweighs all others (median {np.median(weight):.3g}). Clip the "
            "largest weights."
        )
    unit = common_unit(weight)
    if unit is not None:
        return np.rint(weight / unit)
    share = weight / weight.max()  # the sum of large weights would overflow
    return share * (effective / share.sum())


def effective_rows(weight: Floats) -> float:
    """Return (sum w)^2 / sum w^2 (Kish); 0 where all weights are zero."""
    largest = weight.max(initial=0.0)
    if not largest > 0:
        return 0.0
    scaled = weight / largest  # the squares of large weights would overflow
    return float(scaled.sum() ** 2 / (scaled**2).sum())


def common_unit(weight: Floats) -> float | None:
    """Return the largest number that all weights are multiples of, or None.

    For whole numbers it is the greatest common divisor, for others found by Euclid's algorithm up
    to rounding; None if the largest weight is more than `MAX_COPIES` units.
    """
    values = np.unique(weight[weight > 0])
    largest = unit = float(values[-1])
    if largest < 2**53 and (values == np.rint(values)).all():
        return float(np.gcd.reduce(values.astype(np.int64)))
    for value in values[-2::-1].tolist():
        while value > 1e-9 * largest:
            unit, value = value, abs(unit - value * round(unit / value))
        if largest > MAX_COPIES * unit:
            return None
    return unit
