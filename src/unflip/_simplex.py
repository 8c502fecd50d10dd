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
