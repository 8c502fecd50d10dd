"""Vectors of probabilities."""

import numpy as np

from unflip._typing import Floats


def onto_simplex(values: Floats) -> Floats:
    """Return the values with negative ones at 0, scaled to sum to one along the last axis.

    Parameters
    ----------
    values : ndarray of shape (..., n_classes)
        Any numbers. Where none is positive nothing is known, and all are made equal.
    """
    positive = np.maximum(values, 0.0)
    positive[positive.sum(axis=-1) <= 0] = 1.0
    return np.asarray(positive / positive.sum(axis=-1, keepdims=True))


def scaled_rows(values: Floats) -> Floats:
    """Return rows scaled to sum to one; rows of zeros stay.

    Parameters
    ----------
    values : ndarray of shape (n_samples, n_classes)
        Numbers >= 0.
    """
    total = values.sum(axis=1, keepdims=True)
    return np.asarray(values / np.where(total > 0, total, 1))
