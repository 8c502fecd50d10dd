"""The paper's synthetic data: uniform on the cube, cut in two by a hyperplane."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from unflip._utils.validation import check_count


def make_separable(
    n_samples: int = 1000,
    n_features: int = 2,
    *,
    random_state: int | np.random.RandomState | None = None,
) -> tuple[NDArray[np.float64], NDArray[np.int_]]:
    """Draw x uniformly from [0, 1]^m; y = +1 where x_1 + ... + x_m is above its median, else -1.

    The classes are balanced (for odd `n_samples` there is one more negative) and a hyperplane
    separates them, so that every mistake of a classifier is the noise's doing.

    Parameters
    ----------
    n_samples : int, default=1000
        Number of rows, at least 2.
    n_features : int, default=2
        Number of columns m, at least 1.
    random_state : int, RandomState instance or None, default=None
        Seed of the points.

    Returns
    -------
    X : array of shape (n_samples, n_features)
        The points.
    y : array of shape (n_samples,)
        Their classes, -1 and +1.

    Examples
    --------
    >>> from unflip.datasets import make_separable
    >>> X, y = make_separable(200, 3, random_state=0)
    >>> X.shape, int((y == 1).sum())
    ((200, 3), 100)
    """
    check_count(n_samples, "n_samples", least=2)
    check_count(n_features, "n_features", least=1)
    random: Any = check_random_state(random_state)
    X = random.uniform(size=(n_samples, n_features))
    total = X.sum(axis=1)
    return X, np.where(total > np.median(total), 1, -1)
