"""What a user's `sample_weight` says of how many rows there are, whatever its scale."""

import numpy as np
from numpy.typing import ArrayLike

from unflip._utils.typing import Floats
from unflip._utils.validation import check_weights

RESTS_ON_ONE_ROW = 2.0
"""Weights of 200 rows or more that leave fewer effective rows rest on a single row."""

MAX_COPIES = 10
"""Fractions are read as numbers of copies up to this many: weights rounded to two digits, which
are multiples of 0.01, are not."""


def relative_weights(sample_weight: ArrayLike | None, n_samples: int) -> Floats:
    """Return how many rows each row counts as; the scale of `sample_weight` does not matter.

    Whole numbers are numbers of copies, up to a common factor: 2, 2 and 4 are 1, 1 and 2 rows.
    Fractions that are small multiples of a common unit are too, as 0.2, 0.2 and 0.4. All other
    weights sum to their effective number of rows, (sum w)^2 / sum w^2.
    """
    weight = check_weights(sample_weight, n_samples)
    if sample_weight is None:
        return weight
    effective = effective_rows(weight)
    if effective < min(RESTS_ON_ONE_ROW, np.count_nonzero(weight) / 100):
        raise ValueError(
            f"sample_weight leaves {effective:.2g} effective rows of {n_samples}: one weight of "
            f"{weight.max():.3g} outweighs all others (median {np.median(weight):.3g}), so that "
            "nothing could be learnt but that row. Clip the largest weights."
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
    """Return the largest number that all weights are multiples of; None where there is none.

    Of whole numbers the greatest common divisor. Of others by Euclid's algorithm, up to rounding;
    there is none where the largest weight would be more than 10 units.
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
