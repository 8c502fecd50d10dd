"""Noise rates from a random sample that a person has reviewed."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv

from unflip._validation import check_numbers, is_number

Floats = NDArray[np.float64]

LEVEL = 0.95
"""Confidence of the intervals."""


@dataclass(frozen=True)
class SampleEstimate:
    """How often labels are wrong, by a random sample; NaN where no row tells.

    Parameters
    ----------
    n_rows : int
        Rows of the sample, the unsure ones among them.
    n_unsure : int
        Rows of which the reviewer could not say what they are.
    wrong : float
        P(noisy != true).
    wrong_interval : ndarray of shape (2,)
        Its Clopper-Pearson interval.
    wrong_by_label : ndarray of shape (n_classes,)
        P(true != j | noisy=j).
    wrong_by_label_interval : ndarray of shape (n_classes, 2)
        Their Clopper-Pearson intervals, each by itself.
    rates : ndarray of shape (n_classes,)
        P(noisy != i | true=i): of two classes (rho_neg, rho_pos).
    rates_interval : ndarray of shape (n_classes, 2)
        Intervals that cover each rate at least as often as they say.
    """

    n_rows: int
    n_unsure: int
    wrong: float
    wrong_interval: Floats
    wrong_by_label: Floats
    wrong_by_label_interval: Floats
    rates: Floats
    rates_interval: Floats


def sample_estimate(
    counts: ArrayLike, unsure: ArrayLike, label_counts: ArrayLike, *, level: float = LEVEL
) -> SampleEstimate:
    r"""P(noisy != i | true=i) = 1 - q_i W[i, i] / sum_j q_j W[j, i], W[j, i] = P(true=i | noisy=j).

    q_j is the share of label j in the whole table, and W is counted in a random sample of its rows.

    Parameters
    ----------
    counts : array-like of shape (n_classes, n_classes)
        How many reviewed rows labelled j are of class i, labels in rows.
    unsure : array-like of shape (n_classes,)
        How many rows of the sample labelled j could not be told.
    label_counts : array-like of shape (n_classes,)
        How many rows of the table have each label.
    level : float, default=0.95
        Confidence of each interval.

    Returns
    -------
    SampleEstimate
        The rates and their intervals.

    Notes
    -----
    Of the rows of the sample labelled j, the number of wrong ones is binomial, whatever the model
    says: `wrong_by_label` is unbiased, and its interval exact (Clopper and Pearson), as is that of
    `wrong`. The rates are ratios of such shares: consistent, not unbiased. Rate i rises with every
    W[j, i], j != i, and falls with W[i, i]; its interval is where these lead from the ends of their
    own exact intervals, each at level^(1/K), since rows of different labels are independent. It
    covers the rate with at least the level at every sample size, and is wider than it need be.

    An unsure row is left out of the estimates; the intervals take it both ways, as right for one
    end and as wrong for the other. All this holds for a sample size that was set beforehand.

    Examples
    --------
    >>> from unflip._app.review import sample_estimate
    >>> found = sample_estimate([[57, 3], [8, 32]], unsure=[0, 0], label_counts=[6000, 4000])
    >>> found.wrong_by_label
    array([0.05, 0.2 ])
    >>> found.wrong_by_label_interval.round(3)
    array([[0.01 , 0.139],
           [0.091, 0.356]])
    >>> found.rates.round(3)
    array([0.123, 0.086])
    """
    _check_level(level)
    labels = _check_counts(label_counts, "label_counts")
    n_classes = labels.size
    seen, open_rows = _check_counts(counts, "counts"), _check_counts(unsure, "unsure")
    for values, name, shape in (
        (labels, "label_counts", (n_classes,)),
        (open_rows, "unsure", (n_classes,)),
        (seen, "counts", (n_classes, n_classes)),
    ):
        if values.shape != shape:
            raise ValueError(
                f"{name} has shape {values.shape}, expected {shape}: label_counts has an entry "
                f"for each of {n_classes} classes."
            )
    if not labels.any():
        raise ValueError("label_counts is zero for every class: there are no rows to speak of.")
    sure = seen.sum(axis=1)
    sampled = sure + open_rows
    right = np.diagonal(seen)
    with np.errstate(invalid="ignore", divide="ignore"):
        by_label = seen / sure[:, None]
        joint = (labels / labels.sum())[:, None] * by_label
        rates = 1 - np.diagonal(joint) / joint.sum(axis=0)
        wrong = float((sure.sum() - right.sum()) / sure.sum())
    return SampleEstimate(
        n_rows=int(sampled.sum()),
        n_unsure=int(open_rows.sum()),
        wrong=wrong,
        wrong_interval=_shares_between(
            sure.sum() - right.sum(), open_rows.sum(), sampled.sum(), level
        ),
        wrong_by_label=1 - np.diagonal(by_label),
        wrong_by_label_interval=_shares_between(sure - right, open_rows, sampled, level),
        rates=rates,
        rates_interval=_rates_between(
            _shares_between(seen, open_rows[:, None], sampled[:, None], level ** (1 / n_classes)),
            labels,
        ),
    )


def clopper_pearson(found: ArrayLike, n: ArrayLike, level: float = LEVEL) -> Floats:
    """Return the exact interval of a share of which `found` in `n` were seen, of shape (..., 2).

    Parameters
    ----------
    found : array-like
        How many were seen.
    n : array-like
        Among how many; 0: the interval is all of [0, 1].
    level : float, default=0.95
        Confidence.
    """
    _check_level(level)
    seen, among = _check_counts(found, "found"), _check_counts(n, "n")
    try:
        k, size = np.broadcast_arrays(seen, among)
    except ValueError:
        raise ValueError(
            f"found has shape {seen.shape} and n {among.shape}: give one n, or one for each."
        ) from None
    if (k > size).any():
        at = np.argmax(np.ravel(k > size))
        raise ValueError(
            f"found must not exceed n, got {k.flat[at]:g} of {size.flat[at]:g}: it counts those of "
            "the n that were seen."
        )
    tail = (1 - level) / 2
    low = np.where(k > 0, betaincinv(np.maximum(k, 1), size - k + 1, tail), 0.0)
    high = np.where(k < size, betaincinv(k + 1, np.maximum(size - k, 1), 1 - tail), 1.0)
    return np.stack([low, high], axis=-1)


def _check_level(level: float) -> None:
    if not (is_number(level) and 0 < level < 1):
        raise ValueError(f"level must lie between 0 and 1, got {level!r}.")


def _check_counts(values: ArrayLike, name: str) -> Floats:
    """Return numbers from 0 to 2^53, below which floats count exactly."""
    numbers = check_numbers(values, name)
    wrong = ~((numbers >= 0) & (numbers <= 2.0**53))
    if wrong.any():
        raise ValueError(f"{name} must hold counts from 0 to 2^53, got {numbers[wrong].flat[0]:g}.")
    return numbers


def _shares_between(found: Any, unsure: Any, n: Any, level: float) -> Floats:
    """Return the interval's lower end with no unsure row among the found, its upper with all."""
    low, high = clopper_pearson(found, n, level), clopper_pearson(found + unsure, n, level)
    return np.stack([low[..., 0], high[..., 1]], axis=-1)


def _rates_between(shares: Floats, labels: Floats) -> Floats:
    """Return the least and the greatest P(noisy != i | true=i) for W between its ends."""
    ends = np.empty((labels.size, 2))
    for i in range(labels.size):
        for end in (0, 1):
            # the labels other than i at this end, label i itself at the other one
            joint = labels * shares[:, i, end]
            joint[i] = labels[i] * shares[i, i, 1 - end]
            total = joint.sum()
            # no row is of class i: nothing is known of its rate
            ends[i, end] = 1 - joint[i] / total if total > 0 else end
    return ends
