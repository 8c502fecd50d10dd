"""Copies of a row are not evidence."""

import numpy as np

from unflip._row_weights import common_unit, effective_rows
from unflip._typing import Array, Floats
from unflip.posterior._noisy_channel import MIN_MIXED_SHARE, row_keys, shuffled_keys


def distinct_rows(
    rows: Floats, labels: Array, weight: Floats, random_state: np.random.RandomState
) -> tuple[Floats, Array, Floats, Array]:
    """Return the distinct pairs of row and label in random order, and the sums of their weights.

    Last comes the position of every given row among them.

    If repeated rows have only one label each, they count as copies, and the weights are scaled to
    the effective number of distinct rows. If some have several, every row counts.

    Parameters
    ----------
    rows : ndarray of shape (n_samples, n_columns)
        The rows.
    labels : ndarray of shape (n_samples,)
        Small whole numbers >= 0, or booleans.
    weight : ndarray of shape (n_samples,)
        Weight of each row.
    random_state : RandomState instance
        Generator of the order.
    """
    keys = row_keys(rows)
    order = np.lexsort([keys, shuffled_keys(rows, weight, random_state)])
    group = np.empty_like(order)
    group[order] = np.cumsum(np.append(False, np.diff(keys[order]) != 0))
    base = int(labels.max(initial=0)) + 1
    pairs, first, position = np.unique(
        base * group + labels, return_index=True, return_inverse=True
    )
    total: Floats = np.bincount(position, weight).astype(float)
    repeated = np.bincount(pairs // base, total) > 1
    mixed = np.bincount(pairs // base) > 1
    if not repeated.any() or mixed[repeated].mean() < MIN_MIXED_SHARE:
        total *= effective_rows(total) / total.sum()
    else:
        total /= common_unit(total) or 1.0
    return rows[first], labels[first], total, position
