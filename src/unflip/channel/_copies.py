"""Copies of a row are not evidence."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unflip._utils.row_weights import common_unit, effective_rows
from unflip._utils.typing import Array, Bools, Floats
from unflip.channel._features import row_keys, shuffled_keys
from unflip.channel._settings import SETTINGS


@dataclass(frozen=True)
class DistinctRows:
    """The distinct pairs of row and label, in random order."""

    # The first row of each pair.
    first: NDArray[np.intp]
    # The pair of each row.
    position: NDArray[np.intp]
    # The weight of each pair.
    weight: Floats
    # What the weights of the rows were divided by, so that each row counts; None where repeated
    # rows are copies, and weights were scaled to the effective number of distinct rows.
    unit: float | None
    # The rows, sorted by their pairs.
    order: NDArray[np.intp]


def distinct_rows(
    rows: Floats, labels: Array, weight: Floats, random_state: np.random.RandomState
) -> DistinctRows:
    """Return the distinct pairs of row and label.

    If repeated rows have only one label each, they count as copies. If some have several, every row
    counts.

    Parameters
    ----------
    rows : ndarray of shape (n_samples, n_columns)
        The rows.
    labels : ndarray of shape (n_samples,)
        Small whole numbers, or booleans.
    weight : ndarray of shape (n_samples,)
        Weight of each row.
    random_state : RandomState instance
        Generator of the order.
    """
    keys = row_keys(rows)
    order = np.lexsort([labels, keys, shuffled_keys(rows, weight, random_state)])
    starts_row = np.append(True, np.diff(keys[order]) != 0)
    starts_pair = starts_row | np.append(True, np.diff(labels[order]) != 0)
    first = np.flatnonzero(starts_pair)
    row = np.cumsum(starts_row)[first] - 1
    position = np.empty_like(order)
    position[order] = np.cumsum(starts_pair) - 1
    total: Floats = np.add.reduceat(weight[order], first)
    repeated = np.bincount(row, total) > 1
    mixed = np.bincount(row) > 1
    if not repeated.any() or mixed[repeated].mean() < SETTINGS.mixed_label_share:
        total = total * (effective_rows(total) / total.sum())
        return DistinctRows(order[first], position, total, None, order)
    unit = common_unit(total) or 1.0
    return DistinctRows(order[first], position, total / unit, unit, order)


def starts_of_equal(rows: Floats) -> Bools:
    """Return which rows differ from the one before: the first of equal rows, if side by side.

    Parameters
    ----------
    rows : ndarray of shape (n_samples, n_columns)
        Rows, equal ones side by side.
    """
    return np.asarray((np.diff(rows, axis=0, prepend=np.nan) != 0).any(axis=1))
