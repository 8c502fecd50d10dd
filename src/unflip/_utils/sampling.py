"""Random subsets of rows, which depend only on the number of rows and the seed."""

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils.random import sample_without_replacement

SPARSE = 10
"""Minimum number of rows per drawn row for sampling without a permutation of all rows."""

ALL_LISTED = 2**24
"""Maximum number of rows for which all are permuted."""


def shuffled(n_rows: int, size: int, random_state: np.random.RandomState) -> NDArray[np.intp]:
    """Return the positions of `size` rows drawn without replacement, in random order."""
    if n_rows <= max(ALL_LISTED, SPARSE * size):
        return random_state.permutation(n_rows)[:size]
    return sample_without_replacement(
        n_rows, size, method="tracking_selection", random_state=random_state
    )


def drawn_rows(
    n_rows: int, size: int, random_state: int | np.random.RandomState | None
) -> NDArray[np.intp]:
    """Return the ascending positions of at most `size` rows drawn without replacement.

    Rows in memory, in files and on a cluster are drawn alike, so that they give the same estimates.
    Memory is proportional to `size`.
    """
    if n_rows <= size:
        return np.arange(n_rows)
    seed = check_random_state(0 if random_state is None else random_state)
    # a generator of its own: what else the seed is used for does not depend on this draw
    random = np.random.RandomState(seed.randint(np.iinfo(np.int32).max))
    if n_rows <= SPARSE * size:
        return np.sort(random.permutation(n_rows)[:size])
    return np.sort(
        sample_without_replacement(n_rows, size, method="tracking_selection", random_state=random)
    )
