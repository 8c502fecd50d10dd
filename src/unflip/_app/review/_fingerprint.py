"""Fingerprints that identify a table and its rows."""

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from unflip._app.row_hashes import Hashes
from unflip._utils.typing import Record

RowKey = tuple[bytes, int]
"""The hash of a row's cells, and the number of earlier rows with the same hash."""


@dataclass(frozen=True, eq=False)
class Fingerprint:
    """The identity of a table and of each of its rows."""

    columns: tuple[str, ...]
    label: str
    classes: tuple[str, ...]
    codes: NDArray[np.intp]
    ids: list[str] | None
    hashes: Hashes

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Fingerprint)
            and self.label == other.label
            and np.array_equal(self.hashes, other.hashes)
        )

    __hash__ = None  # type: ignore[assignment]

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.codes.size)

    @cached_property
    def population(self) -> str:
        """A hash of all rows, independent of their order."""
        # `_order` does not sort rows whose first half of the hash is equal
        order = np.lexsort((self.hashes[:, 1], self.hashes[:, 0]))
        return hashlib.blake2b(self.hashes[order].tobytes(), digest_size=16).hexdigest()

    def about(self) -> Record:
        """Return what a file of decisions stores about the table."""
        return {
            "columns": list(self.columns),
            "label": self.label,
            "n_rows": self.n_rows,
            "classes": list(self.classes),
            "population": self.population,
        }

    def given(self, row: int) -> str:
        """Return the observed label of a row as text."""
        return self.classes[self.codes[row]]

    def key(self, row: int) -> RowKey:
        """Return the key that identifies a row."""
        return self.hashes[row].tobytes(), int(self._occurrences[row])

    def find(self, keys: Sequence[RowKey]) -> list[int | None]:
        """Return the row of each key, or None; identical rows are matched in order."""
        if not keys:
            return []
        wanted = np.frombuffer(b"".join(key for key, _ in keys), dtype=np.uint64).reshape(-1, 2)
        occurrences = np.array([occurrence for _, occurrence in keys], dtype=np.intp)
        places = np.searchsorted(self._first_halves, wanted[:, 0]) + occurrences
        rows = self._order[np.minimum(places, self.n_rows - 1)]
        found = (places < self.n_rows) & np.all(self.hashes[rows] == wanted, axis=1)
        return [int(row) if here else None for row, here in zip(rows, found, strict=True)]

    def id_count(self, name: str) -> int:
        """Return the number of rows with an id."""
        return self._id_counts[name]

    @cached_property
    def _order(self) -> NDArray[np.intp]:
        # stable: identical rows keep their order
        return np.argsort(self.hashes[:, 0], kind="stable")

    @cached_property
    def _first_halves(self) -> Hashes:
        return self.hashes[self._order, 0]

    @cached_property
    def _occurrences(self) -> NDArray[np.intp]:
        places = np.empty(self.n_rows, dtype=np.intp)
        places[self._order] = np.arange(self.n_rows)
        return places - np.searchsorted(self._first_halves, self.hashes[:, 0])

    @cached_property
    def _id_counts(self) -> Counter[str]:
        return Counter(self.ids or ())
