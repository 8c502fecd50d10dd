"""Noise rates from a random sample that a person has reviewed."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from unflip._utils.typing import Floats
from unflip._utils.validation import check_level
from unflip.checked.internals import check_counts, clopper_pearson
from unflip.diagnostics import LEVEL


@dataclass(frozen=True)
class SampleEstimate:
    """Label error rate and noise rates from a random sample; NaN where no row is known."""

    n_rows: int  # including unsure ones
    n_unsure: int
    wrong: float  # P(noisy != true), with its Clopper-Pearson interval
    wrong_interval: Floats
    wrong_by_label: Floats  # P(true != j | noisy=j), each with its Clopper-Pearson interval
    wrong_by_label_interval: Floats
    rates: Floats  # P(noisy != i | true=i), with conservative intervals; (rho_neg, rho_pos) for two
    rates_interval: Floats


def sample_estimate(
    counts: ArrayLike, unsure: ArrayLike, label_counts: ArrayLike, *, level: float = LEVEL
) -> SampleEstimate:
    r"""P(noisy != i | true=i) = 1 - q_i W[i, i] / sum_j q_j W[j, i], W[j, i] = P(true=i | noisy=j).

    q_j is the share of label j in the whole table; W is counted in a random sample of its rows.

    Parameters
    ----------
    counts : array-like of shape (n_classes, n_classes)
        counts[j, i] is the number of reviewed rows labelled j whose true class is i.
    unsure : array-like of shape (n_classes,)
        Number of rows labelled j that the reviewer was unsure about.
    label_counts : array-like of shape (n_classes,)
        Number of rows of the table with each label.
    level : float, default=0.95
        Confidence of each interval.

    Returns
    -------
    SampleEstimate
        `wrong`, `wrong_by_label` and `rates`, each with its interval (`wrong_interval`, ...), and
        the numbers of rows, `n_rows` and `n_unsure`.

    Notes
    -----
    The number of wrong labels among the sampled rows labelled j is binomial, so `wrong_by_label`
    is unbiased and has an exact interval (Clopper and Pearson), as has `wrong`. The rates are
    ratios of such shares: consistent, but not unbiased. Rate i increases with every W[j, i],
    j != i, and decreases with W[i, i]; its interval combines the ends of their exact intervals,
    each at level^(1/K) because rows with different labels are independent. It is conservative: it
    covers the rate with at least the given level.

    Estimates leave out unsure rows; intervals count them as right for one end and wrong for the
    other. All this holds for a sample size fixed in advance.

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
    check_level(level)
    labels = check_counts(label_counts, "label_counts")
    n_classes = labels.size
    seen, open_rows = check_counts(counts, "counts"), check_counts(unsure, "unsure")
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
        raise ValueError("label_counts is zero for every class: the table has no rows.")
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
        wrong_interval=_share_intervals(
            sure.sum() - right.sum(), open_rows.sum(), sampled.sum(), level
        ),
        wrong_by_label=1 - np.diagonal(by_label),
        wrong_by_label_interval=_share_intervals(sure - right, open_rows, sampled, level),
        rates=rates,
        rates_interval=_rate_intervals(
            _share_intervals(seen, open_rows[:, None], sampled[:, None], level ** (1 / n_classes)),
            labels,
        ),
    )


def _share_intervals(found: Any, unsure: Any, n: Any, level: float) -> Floats:
    """Return an interval that counts no unsure row for the lower end, all for the upper end."""
    low, high = clopper_pearson(found, n, level), clopper_pearson(found + unsure, n, level)
    return np.stack([low[..., 0], high[..., 1]], axis=-1)


def _rate_intervals(shares: Floats, labels: Floats) -> Floats:
    """Return the minimum and maximum of P(noisy != i | true=i) over the intervals of W."""
    ends = np.empty((labels.size, 2))
    for i in range(labels.size):
        for end in (0, 1):
            # W[j, i] of the other labels at this end, W[i, i] at the opposite end
            joint = labels * shares[:, i, end]
            joint[i] = labels[i] * shares[i, i, 1 - end]
            total = joint.sum()
            # no row has class i: its rate is unknown
            ends[i, end] = 1 - joint[i] / total if total > 0 else end
    return ends
