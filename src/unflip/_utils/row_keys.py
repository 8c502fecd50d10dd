"""64-bit keys by which equal rows are recognised."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from unflip._utils.typing import Array, Codes, Rows

Keys = NDArray[np.uint64]

FIRST, SECOND = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9)
"""Odd multipliers of SplitMix64 (Steele, Lea and Flood 2014), whose mixing tells rows apart."""


def row_keys(columns: Iterable[Array], n_rows: int) -> Keys:
    """Return a key of each row, given its columns of numbers: equal where all numbers are equal."""
    keys = np.zeros(n_rows, dtype=np.uint64)
    for j, column in enumerate(columns):
        values = np.array(column, dtype=np.float64) + 0.0  # -0.0 is 0.0
        keys += _mixed(values.view(np.uint64), j)
    return keys


def sample_keys(X: Rows, codes: Codes) -> Keys:
    """Return a key of the features and the label of each sample."""
    if sparse.issparse(X):
        # a zero adds nothing, whether it is stored or not
        entries = X.tocoo()
        values = np.asarray(entries.data, dtype=np.float64)
        stored = values != 0
        keys = np.zeros(X.shape[0], dtype=np.uint64)
        parts = _mixed(values[stored].view(np.uint64), entries.col[stored])
        np.add.at(keys, entries.row[stored], parts)
    else:
        keys = row_keys(np.asarray(X).T, codes.size)
    return keys + _mixed(codes.astype(np.uint64), -1)


def _mixed(bits: Keys, column: int | Codes) -> Keys:
    """Return the bits of a column scattered over 64 bits; sums wrap around, in any order alike."""
    mixed = (bits ^ (np.asarray(column, dtype=np.int64).astype(np.uint64) * SECOND)) * FIRST
    mixed ^= mixed >> np.uint64(29)
    mixed *= SECOND
    return np.asarray(mixed ^ (mixed >> np.uint64(32)))
