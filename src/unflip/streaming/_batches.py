"""Rows in batches, read one after the other, as often as they are asked for."""

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

from unflip._blocks import Blocks, first_rows
from unflip._validation import check_count, check_rows_of

T = TypeVar("T")

BATCH_ROWS = 65_536
"""Rows of a batch, where nothing else is said."""


class Batches(Blocks):
    """Rows, noisy labels and the rows' own weights in batches: an iterable that begins anew.

    For data of your own, write `__iter__`; where labels can be read without the rows, also
    `labels`. Several passes are made, and the batches must be the same each time: `__iter__` begins
    anew whenever it is called.

    Attributes
    ----------
    files : sequence of str or Path
        The files that are read, where it is known, so that nothing is written over them.

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
        """Yield (X, y, weight), weight being None where every row counts once."""

    def labels(self) -> Iterator[tuple[Any, Any]]:
        """Yield (y, weight) of the same batches."""
        for _, y, weight in self:
            yield y, weight

    def map_labels(self, kernel: Callable[[Any, Any], T]) -> list[T]:
        """Return kernel(y, weight) of every batch, in order."""
        return [kernel(y, weight) for y, weight in self.labels()]

    def map_each(
        self, kernel: Callable[[Any, Any, Any, Any, Any], T], own: Sequence[Any], shared: Any
    ) -> list[T]:
        """Return kernel(X, y, weight, own[k], shared) of every batch k, in order."""
        return [kernel(*batch, k, shared) for batch, k in zip(self, own, strict=True)]

    def sum(self, kernel: Callable[[Any, Any, Any, Any], T], shared: Any) -> T:
        """Return the sum of kernel(X, y, weight, shared); one batch is held at a time."""
        return reduce(add, (kernel(X, y, weight, shared) for X, y, weight in self))

    def head(self, k: int) -> Any:
        """Return the first rows of batch k."""
        return first_rows(next(islice(self, k, None))[0])


class ArrayBatches(Batches):
    """Batches of consecutive rows of arrays, such as a :class:`numpy.memmap`.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
        Rows: anything that has a length and gives a slice of rows as an array.
    y : array-like of shape (n_samples,)
        Noisy labels.
    sample_weight : array-like of shape (n_samples,), default=None
        How often each row counts.
    batch_rows : int, default=65_536
        Rows of a batch.

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
        (rows,) = indexable(X)  # sparse rows become such as can be cut
        rows = np.asarray(rows) if isinstance(rows, list) else rows
        self.X, self.y, self.sample_weight = rows, y, sample_weight
        self.batch_rows = batch_rows
        mapped = (getattr(values, "filename", None) for values in (X, y, sample_weight))
        self.files = [name for name in mapped if isinstance(name, str | Path)]

    def __iter__(self) -> Iterator[tuple[Any, Any, Any]]:
        """Yield (X, y, weight) of consecutive rows."""
        for rows, (y, weight) in zip(self._slices(), self.labels(), strict=True):
            yield self.X[rows], y, weight

    def labels(self) -> Iterator[tuple[Any, Any]]:
        """Yield (y, weight) of consecutive rows."""
        y: Any = self.y
        own: Any = self.sample_weight
        for rows in self._slices():
            yield y[rows], None if own is None else own[rows]

    def _slices(self) -> Iterator[slice]:
        n_rows = self.X.shape[0] if issparse(self.X) else len(self.X)
        for start in range(0, n_rows, self.batch_rows):
            yield slice(start, start + self.batch_rows)


class RepeatedBatches(Batches):
    """Batches that are read in several passes, each of which must see the rows of the first.

    Parameters
    ----------
    data : Batches
        What the user gave.
    """

    def __init__(self, data: Batches) -> None:
        check_batches(data)
        self._data = data
        self._n_rows: list[int] | None = None

    def __iter__(self) -> Iterator[tuple[Any, Any, Any]]:
        """Yield (X, y, weight)."""
        return self._checked(self._data, 1)

    def labels(self) -> Iterator[tuple[Any, Any]]:
        """Yield (y, weight)."""
        return self._checked(self._data.labels(), 0)

    def _checked(self, batches: Iterable[Any], label_place: int) -> Iterator[Any]:
        first, k = self._n_rows, 0
        n_rows = []
        for k, batch in enumerate(batches, start=1):
            n_rows.append(len(batch[label_place]))
            if first is not None and [n_rows[-1]] != first[k - 1 : k]:
                was = f"{first[k - 1]} rows" if k <= len(first) else "no such batch"
                raise ValueError(f"batch {k} has {n_rows[-1]} rows, and there were {was} {CHANGED}")
            yield batch
        if first is None:
            self._n_rows = n_rows
        elif first and not n_rows:
            raise ValueError(
                f"there are no batches on a later pass, and there were {len(first)} on the first: "
                "several passes are made. Let __iter__ begin anew whenever it is called, and not "
                "return an iterator that is used up."
            )
        elif k < len(first):
            raise ValueError(f"there are {k} batches, and there were {len(first)} {CHANGED}")


CHANGED = (
    "on the first pass: the data changed while they were read, or __iter__ does not give the same "
    "batches each time."
)


def single_pass(data: Any) -> Iterator[tuple[Any, Any, Any]]:
    """Yield (X, y, weight) of data of which there must be some.

    Parameters
    ----------
    data : Batches
        What the user gave.
    """
    check_batches(data)
    is_empty = True
    for batch in data:
        is_empty = False
        yield batch
    if is_empty:
        raise ValueError(
            "there are no batches. If the data were read before: __iter__ must begin anew whenever "
            "it is called."
        )


def check_batches(data: Any) -> None:
    """Refuse data that do not come in batches.

    Parameters
    ----------
    data : Batches
        What the user gave.
    """
    if not isinstance(data, Batches):
        raise TypeError(
            f"data must be batches, got {type(data).__name__}: ArrayBatches(X, y), "
            "ParquetBatches(path, label=...), or a class of your own that derives from Batches."
        )
