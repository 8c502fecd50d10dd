"""P(observed | x) of the samples that a noise model was fitted to, each without its own label.

In memory these come with the fit. Blocks are read again after it, and a model that has seen a
sample agrees with its label: samples that it was fitted to are recognised by their values.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from unflip._utils.typing import Codes, Floats, Rows

FIRST, SECOND = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9)
"""Odd multipliers of SplitMix64 (Steele, Lea and Flood 2014), whose mixing tells samples apart."""


@dataclass(frozen=True)
class HeldOut:
    """Held-out probabilities of known samples, found by their features and label."""

    # ascending, one per distinct sample
    keys: NDArray[np.uint64]
    proba: Floats

    @classmethod
    def of(cls, X: Rows, codes: Codes, proba: Floats) -> Self:
        """Return the probabilities of the samples that a model was fitted to."""
        # equal samples of equal label have equal probabilities: the first stands for all
        keys, first = np.unique(sample_keys(X, codes), return_index=True)
        return cls(keys, proba[first])

    def replace(self, proba: Floats, X: Rows, codes: Codes) -> Floats:
        """Return predicted probabilities with those of known samples held out."""
        wanted = sample_keys(X, codes)
        place = np.minimum(np.searchsorted(self.keys, wanted), self.keys.size - 1)
        known = self.keys[place] == wanted
        return np.where(known[:, None], self.proba[place], proba)


def sample_keys(X: Rows, codes: Codes) -> NDArray[np.uint64]:
    """Return a 64-bit key of each sample's features and label: equal where all are equal."""
    entries = X.tocoo() if sparse.issparse(X) else None
    if entries is None:
        values = np.asarray(X, dtype=np.float64) + 0.0  # -0.0 is 0.0
        keys = np.zeros(len(values), dtype=np.uint64)
        for j, column in enumerate(values.T):
            keys += _mixed(column.copy().view(np.uint64), j)
    else:
        # a zero adds nothing, whether it is stored or not
        values = np.asarray(entries.data, dtype=np.float64)
        stored = values != 0
        parts = _mixed(values[stored].view(np.uint64), entries.col[stored])
        keys = np.zeros(X.shape[0], dtype=np.uint64)
        np.add.at(keys, entries.row[stored], parts)
    return keys + _mixed(codes.astype(np.uint64), -1)


def _mixed(bits: NDArray[np.uint64], column: int | Codes) -> NDArray[np.uint64]:
    """Return bits of a column scattered over 64 bits; sums wrap around, in any order alike."""
    mixed = (bits ^ (np.asarray(column, dtype=np.int64).astype(np.uint64) * SECOND)) * FIRST
    mixed ^= mixed >> np.uint64(29)
    mixed *= SECOND
    return np.asarray(mixed ^ (mixed >> np.uint64(32)))
