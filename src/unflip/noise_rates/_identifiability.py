"""Whether the data say anything about the rates, and what to tell a user where they do not."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from unflip.noise import as_transition_matrix
from unflip.noise_rates._channel import ChannelRates

Array = NDArray[Any]
Floats = NDArray[np.float64]

SURE = 0.9
"""A row of this clean probability surely is of its class."""

LEAST_SURE_SHARE = 0.02
"""A class with a smaller share of sure rows shows no plateau."""

LEAST_RATE = 0.02
"""A class flipped less often needs none."""

WIDEST = 0.4
"""An interval that is wider leaves the rate open."""


def doubts(
    clean_posterior: Floats, weight: Floats | None, classes: Array, rates: Any, estimator: Any
) -> list[str]:
    """Return, in words, why estimated rates may be far off; nothing where they were given.

    Parameters
    ----------
    clean_posterior : ndarray of shape (n_samples, n_classes)
        P(true y | x) of the rows.
    weight : ndarray of shape (n_samples,) or None
        How often each row counts.
    classes, rates, estimator
        As for :func:`doubts_by_shares`.
    """
    sure = np.average(clean_posterior >= SURE, axis=0, weights=weight)
    return doubts_by_shares(np.asarray(sure), classes, rates, estimator)


def doubts_by_shares(sure: Floats, classes: Array, rates: Any, estimator: Any) -> list[str]:
    """Return the same from the shares of rows that surely are of each class.

    A rate is read off the plateau that noise leaves: among rows that surely are of a class, the
    labels are wrong as often as it is flipped. Without such rows the shape of the model decides.

    Parameters
    ----------
    sure : ndarray of shape (n_classes,)
        The share of rows whose P(true y | x) is at least `SURE`.
    classes : ndarray of shape (n_classes,)
        The labels.
    rates : NoiseRates or TransitionMatrix
        The estimate.
    estimator : BaseRates or None
        What it was estimated by.
    """
    if estimator is None:
        return []
    flipped = 1 - np.diag(as_transition_matrix(rates, classes.size).matrix)
    found = []
    lacking = (sure < LEAST_SURE_SHARE) & (flipped > LEAST_RATE)
    if lacking.all():
        found.append(
            "the classes overlap everywhere: next to no row surely is of one of them, and overlap "
            "cannot be told from noise there. The estimated rates rest on the model's shape alone. "
            "Add features that tell the classes apart, or give the rates you know."
        )
    elif isinstance(estimator, ChannelRates):  # others' clean posteriors are too rough for this
        found += [
            f"P(noisy y | x) shows no plateau for class {classes[k].item()!r}: {sure[k]:.1%} of "
            f"the rows surely are of it, and the rate at which it is flipped ({flipped[k]:.2f}) "
            "is read off such rows. Give that rate or bounds of it, if you know them."
            for k in np.flatnonzero(lacking)
        ]
    if isinstance(estimator, ChannelRates):  # others would have to resample for an interval
        ends = dict(zip(classes[::-1].tolist(), estimator.interval_.bounds, strict=True))
        found += [
            f"the labels leave the rate at which class {label!r} is flipped open: with 95 % "
            f"probability it lies anywhere from {low:.2f} to {high:.2f}. More rows, or bounds that "
            "you know, would narrow it."
            for label, (low, high) in ends.items()
            if high - low > WIDEST
        ]
    return found
