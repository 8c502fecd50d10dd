"""Batches of rows that can be read in several passes."""

import sys
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import blake2b
from itertools import islice, repeat
from pathlib import Path
from typing import Any, TypeVar

import narwhals as nw
import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import issparse
from sklearn.utils import check_array, indexable
from sklearn.utils.validation import check_consistent_length

from unflip._blocks import Blocks, check_labelled, first_rows
from unflip._utils.typing import Rows, Vector
from unflip._utils.validation import check_count, check_rows_of

T = TypeVar("T")

LabelBatch = tuple[Any, Vector | None]
"""(y, sample_weight) of a batch; y is None if the rows are only to be predicted."""

Batch = tuple[Rows, Any, Vector | None]
"""(X, y, sample_weight) of a batch."""

BATCH_ROWS = 65_536
"""Default number of rows of a batch."""


class Batches(Blocks):
    """Re-iterable batches of (X, y, sample_weight).

    For other data formats, implement `__iter__`, and `labels` if labels can be read alone. Several
    passes are made: every call of `__iter__` must start again and yield the same batches.

    Attributes
    ----------
    files : sequence of str or Path
        The files that are read, if known; outputs must not overwrite them.

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
    def __iter__(self) -> Iterator[Batch]:
        """Yield (X, y, sample_weight).

        sample_weight is None if every row counts once, y is None if rows are only to be predicted.
        """

    def labels(self) -> Iterator[LabelBatch]:
        """Yield (y, sample_weight) of the same batches.

        Yields
        ------
        (y, sample_weight)
            One pair per batch.
        """
        for _, y, sample_weight in self:
            yield y, sample_weight

    def map_labels(self, function: Callable[..., T]) -> list[T]:
        """Return function(y, sample_weight) of every batch, in order."""
        return [function(y, sample_weight) for y, sample_weight in self.labels()]

    def map(
        self, function: Callable[..., T], shared: Any, items: Sequence[Any] | None = None
    ) -> Iterator[T]:
        """Yield function(X, y, sample_weight, shared) of every batch, holding one at a time."""
        batch = None
        each = repeat(()) if items is None else ((item,) for item in items)
        for batch, item in zip(self, each, strict=False):
            yield function(*batch, *item, shared)
        if batch is None:
            raise ValueError(
                "there are no batches. If the data were read before: every call of __iter__ must "
                "start again."
            )

    def fold(self, function: Callable[..., T], state: T, shared: Any) -> T:
        """Return state = function(state, X, y, sample_weight, shared), one batch after another."""
        for batch in self:
            state = function(state, *batch, shared)
        return state

    def head(self, k: int) -> Rows:
        """Return the first rows of batch k."""
        return first_rows(next(islice(self, k, None))[0])


class ArrayBatches(Batches):
    """Batches of consecutive rows of arrays, such as a :class:`numpy.memmap`.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
        Rows: any object with a length whose slices are arrays of rows.
    y : array-like of shape (n_samples,), default=None
        Noisy labels. None: the rows are only to be predicted.
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
        X: Rows,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        batch_rows: int = BATCH_ROWS,
    ) -> None:
        check_count(batch_rows, "batch_rows", least=1)
        check_rows_of(X, X if y is None else y)
        check_consistent_length(X, sample_weight)
        (rows,) = indexable(X)  # converts sparse formats that cannot be sliced
        if isinstance(rows, list):
            rows = check_array(rows, dtype=None, ensure_all_finite=False)
        self.X, self.y, self.sample_weight = rows, y, sample_weight
        self.batch_rows = batch_rows
        mapped = (getattr(values, "filename", None) for values in (X, y, sample_weight))
        self.files = [name for name in mapped if isinstance(name, str | Path)]

    def __iter__(self) -> Iterator[Batch]:
        """Yield (X, y, sample_weight) of consecutive rows."""
        for rows, (y, sample_weight) in zip(self._slices(), self.labels(), strict=True):
            yield self.X[rows], y, sample_weight

    def labels(self) -> Iterator[LabelBatch]:
        """Yield (y, sample_weight) of consecutive rows."""
        y: Any = self.y
        weight: Any = self.sample_weight
        for rows in self._slices():
            yield None if y is None else y[rows], None if weight is None else weight[rows]

    def no_rows(self) -> Rows:
        """Return no rows of X."""
        return self.X[:0]

    def _slices(self) -> Iterator[slice]:
        n_rows = self.X.shape[0] if issparse(self.X) else len(self.X)
        for start in range(0, n_rows, self.batch_rows):
            yield slice(start, start + self.batch_rows)


class RepeatedBatches(Batches):
    """Batches that raise an error if a later pass differs from the first."""

    def __init__(self, data: Batches, *, progress: bool = False) -> None:
        self._data = check_batches(data)
        self._n_rows: list[int] | None = None
        self._digests: dict[tuple[int, str], bytes] = {}
        self._progress, self._n_passes = progress, 0

    def __iter__(self) -> Iterator[Batch]:
        """Yield (X, y, sample_weight)."""
        return self._checked(self._shown(self._data), 1)

    def labels(self) -> Iterator[LabelBatch]:
        """Yield (y, sample_weight)."""
        return self._checked(self._shown(self._data.labels()), 0)

    def no_rows(self) -> Rows:
        """Return the columns of the user's batches."""
        return self._data.no_rows()

    def _shown(self, batches: Iterable[T]) -> Iterator[T]:
        """Yield the batches, and show on stderr how many there were if that is wanted."""
        if not self._progress:
            yield from batches
            return
        self._n_passes += 1
        of_all = "" if self._n_rows is None else f" of {len(self._n_rows)}"
        try:
            for k, batch in enumerate(batches, start=1):
                yield batch
                print(f"\rpass {self._n_passes}: {k}{of_all} batches", end="", file=sys.stderr)
        finally:
            print(file=sys.stderr)

    def _checked(self, batches: Iterable[Any], label_index: int) -> Iterator[Any]:
        first, k = self._n_rows, 0
        n_rows = []
        for k, batch in enumerate(batches, start=1):
            check_labelled(batch[label_index])
            n_rows.append(len(batch[label_index]))
            if first is not None and [n_rows[-1]] != first[k - 1 : k]:
                was = f"{first[k - 1]} rows" if k <= len(first) else "no such batch"
                raise ValueError(f"batch {k} has {n_rows[-1]} rows, but there were {was} {CHANGED}")
            self._check_values(k, dict(zip(PARTS[-len(batch) :], batch, strict=True)))
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

    def _check_values(self, k: int, parts: dict[str, Any]) -> None:
        """Raise an error if the labels, weights or first columns of batch k are other ones."""
        for name, values in parts.items():
            found = _digest(values)
            if self._digests.setdefault((k, name), found) != found:
                raise ValueError(f"batch {k} has other {name} than {CHANGED}")


PARTS = ("values in its first columns", "labels", "sample weights")
"""Names of the parts of a batch that are compared between passes."""

DIGESTED_COLUMNS = 2
"""Number of columns compared between passes: rows in another order differ in these too, and hashing
all columns would take as long as reading them."""


def _digest(values: Any) -> bytes:
    """Return a hash of a vector, or of the first columns of a table."""
    if issparse(values):
        values = values.tocsr()[:, :DIGESTED_COLUMNS].toarray()
    frame = nw.from_native(values, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        values = frame[:, :DIGESTED_COLUMNS].to_numpy()
    array = np.asarray(values)
    if array.ndim > 1:
        array = array[:, :DIGESTED_COLUMNS]
    # objects are compared by their representation
    plain = repr(array.tolist()).encode() if array.dtype.hasobject else array.tobytes()
    return blake2b(plain, digest_size=16).digest()


CHANGED = (
    "on the first pass: the data changed while they were read, or __iter__ yields other batches "
    "each time."
)


def check_batches(data: object) -> Batches:
    """Return `data`, or raise an error unless they are Batches."""
    if not isinstance(data, Batches):
        raise TypeError(
            f"data must be batches, got {type(data).__name__}: ArrayBatches(X, y), "
            "ParquetBatches(path, label=...), or your own subclass of Batches."
        )
    return data
