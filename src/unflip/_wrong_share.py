"""The share of labels that may be wrong if mistakes may depend on x."""

import numpy as np
from numpy.typing import NDArray

from unflip._typing import Array, Floats

SURE_SHARE = 0.5
"""Of the labels that class-conditional noise calls wrong, the share that surely are: a model that
is confident and wrong leaves the same traces as a wrong label."""


def wrong_share_range(
    noisy_posterior: Floats,
    codes: Array,
    expected: tuple[float, float],
    sample_weight: Floats | None = None,
) -> tuple[float, float]:
    r"""Return the lowest and the highest share of wrong labels that these data leave possible.

    Labels alone do not tell classes that overlap from mistakes that are made where classes are
    hard to tell apart: P(noisy | x) is the same. What they leave open is a range.

    - Low end: all doubt at single rows is overlap, and mistakes are only those that hit a class
      alike wherever its rows are, of which half may be the model's own.
    - High end: no class overlaps another, and where classes are hard to tell apart a label says no
      more than the model does: a label is wrong with probability 1 - P(noisy=y | x).

    Parameters
    ----------
    noisy_posterior : ndarray of shape (n_samples, n_classes)
        P(noisy | x) of rows that the model was not fitted to, calibrated on the labels.
    codes : ndarray of shape (n_samples,)
        Positions of the given labels among the classes.
    expected : (low, high)
        Interval of the share of wrong labels if mistakes depend on the true class alone; its low
        end is 0 where the labels do not show such mistakes.
    sample_weight : ndarray of shape (n_samples,), default=None
        How much each row counts; None: once.

    Notes
    -----
    Mistakes that a model learns, such as those of a rule that it can repeat, leave no trace in the
    labels: neither end knows of them. Rows checked by a person do.
    """
    own = noisy_posterior[np.arange(codes.size), codes]
    return range_of(own, noisy_posterior.argmax(axis=1) != codes, expected, sample_weight)


def range_of(
    own: Floats,
    disagrees: NDArray[np.bool_],
    expected: tuple[float, float],
    sample_weight: Floats | None = None,
) -> tuple[float, float]:
    """Return the same from P(noisy=given | x) and whether another class is likelier.

    Parameters
    ----------
    own : ndarray of shape (n_samples,)
        P(noisy=y | x), calibrated on the labels.
    disagrees : ndarray of shape (n_samples,)
        Whether the given label is not the likeliest.
    expected, sample_weight
        As for :func:`wrong_share_range`.
    """
    unlikely = float(np.average(1 - own, weights=sample_weight))
    disagree = float(np.average(disagrees, weights=sample_weight))
    low, high = expected
    return SURE_SHARE * low, min(1.0, max(high, unlikely, disagree))
