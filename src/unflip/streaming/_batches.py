"""Batches of rows that can be read in several passes."""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import reduce
from itertools import islice
from operator import add
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import issparse
from sklearn.utils import indexable
from sklearn.utils.validation import check_consistent_length

from unflip._blocks import BlockFunction, Blocks, first_rows
from unflip._validation import check_count, check_rows_of

T = TypeVar("T")

BATCH_ROWS = 65_536
"""Default number of rows of a batch."""


class Batches(Blocks):
    """Re-iterable batches of (X, y, sample_weight).

    For your own data, implement `__iter__`, and `labels` if labels can be read without the rows.
    Several passes are made: every call of `__iter__` must start again and yield the same batches.

    Attributes
    ----------
    files : sequence of str or Path
        The files that are read, if known; they are never overwritten.

    Examples
    --------
    >>> import numpy as np
    >>> from unflip.streaming import Batches
    >>> class Simulated(Batches):
    ...     def __iter__(self):
    ...         for seed in range(3):
    ...             X = np.random.default_rng(seed).normal(size=(1000, 2))
    ...             yield X, X[:, 0] > 0, None
    >>> sum(len(y) for _, y, _ in Simulated())
    3000
    """

    files: Sequence[str | Path] = ()

    @abstractmethod
    def __iter__(self) -> Iterator[tuple[Any, Any, Any]]:
        """Yield (X, y, sample_weight); sample_weight is None if every row counts once."""

    def labels(self) -> Iterator[tuple[Any, Any]]:
        """Yield (y, sample_weight) of the same batches."""
        for _, y, sample_weight in self:
            yield y, sample_weight

    def map_labels(self, function: Callable[[Any, Any], T]) -> list[T]:
        """Return function(y, sample_weight) of every batch, in order."""
        return [function(y, sample_weight) for y, sample_weight in self.labels()]

    def map_each(
        self, function: Callable[[Any, Any, Any, Any, Any], T], items: Sequence[Any], shared: Any
    ) -> list[T]:
        """Return function(X, y, sample_weight, items[k], shared) of every batch k, in order."""
        return [function(*batch, item, shared) for batch, item in zip(self, items, strict=True)]

    def sum(self, function: BlockFunction[T], shared: Any) -> T:
        """Return the sum of function(X, y, sample_weight, shared), holding one batch at a time."""
        return reduce(add, (function(*batch, shared) for batch in self))

    def head(self, k: int) -> Any:
        """Return the first rows of batch k."""
        return first_rows(next(islice(self, k, None))[0])


class ArrayBatches(Batches):
    """Batches of consecutive rows of arrays, such as a :class:`numpy.memmap`.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
        Rows: any object with a length whose slices are arrays of rows.
    y : array-like of shape (n_samples,)
        Noisy labels.
    sample_weight : array-like of shape (n_samples,), default=None
        Weight of each row.
    batch_rows : int, default=65_536
        Number of rows of a batch.

    Examples
    --------
    >>> import numpy as np
    >>> from unflip.streaming import ArrayBatches
    >>> data = ArrayBatches(np.zeros((10, 2)), np.arange(10) % 2, batch_rows=4)
    >>> [len(y) for X, y, weight in data]
    [4, 4, 2]
    """

    def __init__(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        batch_rows: int = BATCH_ROWS,
    ) -> None:
        check_count(batch_rows, "batch_rows", least=1)
        check_rows_of(X, y)
        check_consistent_length(X, sample_weight)
        (rows,) = indexable(X)  # converts sparse formats that cannot be sliced
        rows = np.asarray(rows) if isinstance(rows, list) else rows
        self.X, self.y, self.sample_weight = rows, y, sample_weight
        self.batch_rows = batch_rows
        mapped = (getattr(values, "filename", None) for values in (X, y, sample_weight))
        self.files = [name for name in mapped if isinstance(name, str | Path)]

    def __iter__(self) -> Iterator[tuple[Any, Any, Any]]:
        """Yield (X, y, sample_weight) of consecutive rows."""
        for rows, (y, sample_weight) in zip(self._slices(), self.labels(), strict=True):
            yield self.X[rows], y, sample_weight

    def labels(self) -> Iterator[tuple[Any, Any]]:
        """Yield (y, sample_weight) of consecutive rows."""
        y: Any = self.y
        weight: Any = self.sample_weight
        for rows in self._slices():
            yield y[rows], None if weight is None else weight[rows]

    def _slices(self) -> Iterator[slice]:
        n_rows = self.X.shape[0] if issparse(self.X) else len(self.X)
        for start in range(0, n_rows, self.batch_rows):
            yield slice(start, start + self.batch_rows)


class RepeatedBatches(Batches):
    """Batches that raise an error if a later pass differs from the first.

    Parameters
    ----------
    data : Batches
        The user's batches.
    """

    def __init__(self, data: Batches) -> None:
        check_batches(data)
        self._data = data
        self._n_rows: list[int] | None = None

    def __iter__(self) -> Iterator[tuple[Any, Any, Any]]:
        """Yield (X, y, sample_weight)."""
        return self._checked(self._data, 1)

    def labels(self) -> Iterator[tuple[Any, Any]]:
        """Yield (y, sample_weight)."""
        return self._checked(self._data.labels(), 0)

    def _checked(self, batches: Iterable[Any], label_index: int) -> Iterator[Any]:
        first, k = self._n_rows, 0
        n_rows = []
        for k, batch in enumerate(batches, start=1):
            n_rows.append(len(batch[label_index]))
            if first is not None and [n_rows[-1]] != first[k - 1 : k]:
                was = f"{first[k - 1]} rows" if k <= len(first) else "no such batch"
                raise ValueError(f"batch {k} has {n_rows[-1]} rows, but there were {was} {CHANGED}")
            yield batch
        if first is None:
            self._n_rows = n_rows
        elif first and not n_rows:
            raise ValueError(
                f"there were {len(first)} batches on the first pass, but none on a later one. "
                "Several passes are made: every call of __iter__ must start again, and not "
                "return an iterator that is exhausted."
            )
        elif k < len(first):
            raise ValueError(f"there are {k} batches, but there were {len(first)} {CHANGED}")


CHANGED = (
    "on the first pass: the data changed while they were read, or __iter__ does not yield the same "
    "batches each time."
)


def single_pass(data: Any) -> Iterator[tuple[Any, Any, Any]]:
    """Yield (X, y, sample_weight), and raise an error if there are no batches.

    Parameters
    ----------
    data : Batches
        The user's batches.
    """
    check_batches(data)
    is_empty = True
    for batch in data:
        is_empty = False
        yield batch
    if is_empty:
        raise ValueError(
            "there are no batches. If the data were read before: every call of __iter__ must start "
            "again."
        )


def check_batches(data: Any) -> None:
    """Raise an error unless `data` are Batches.

    Parameters
    ----------
    data : Batches
        The user's batches.
    """
    if not isinstance(data, Batches):
        raise TypeError(
            f"data must be batches, got {type(data).__name__}: ArrayBatches(X, y), "
            "ParquetBatches(path, label=...), or your own subclass of Batches."
        )
