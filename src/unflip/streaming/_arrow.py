"""Batches of Arrow data: of Parquet files, and of whatever else Arrow reads."""

import glob
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unflip._validation import check_count
from unflip.streaming._batches import BATCH_ROWS, Batches

Array = NDArray[Any]

BUFFER_BYTES = 1 << 20
"""Read at once of a column: a row group need not fit in memory."""


class ArrowBatches(Batches):
    """Batches of rows of an Arrow dataset or table with a column of noisy labels.

    Parameters
    ----------
    source : pyarrow.dataset.Dataset
        The rows: what `pyarrow.dataset.dataset` makes of Parquet, Feather, ORC or CSV files. It
        reads ahead: of Parquet files, :class:`ParquetBatches` holds less in memory.
    label : str
        The column of noisy labels.
    columns : sequence of str, default=None
        The features. None: every other column. They must be numbers; a missing one is NaN.
    weight : str, default=None
        The column that says how often each row counts.
    batch_rows : int, default=65_536
        Rows of a batch, at most.

    Examples
    --------
    >>> import pyarrow as pa, pyarrow.dataset as ds
    >>> from unflip.streaming import ArrowBatches
    >>> table = pa.table({"age": [31, 44, 60], "churned": ["no", "yes", "no"]})
    >>> X, y, weight = next(iter(ArrowBatches(ds.dataset(table), label="churned")))
    >>> X.tolist(), y.tolist()
    ([[31.0], [44.0], [60.0]], ['no', 'yes', 'no'])
    """

    def __init__(
        self,
        source: Any,
        label: str,
        *,
        columns: Sequence[str] | None = None,
        weight: str | None = None,
        batch_rows: int = BATCH_ROWS,
    ) -> None:
        self.source = source
        self._set(source.schema, label, columns, weight, batch_rows)

    def __iter__(self) -> Iterator[tuple[Any, Any, Any]]:
        """Yield (X, y, weight): features in single precision where all are, else in double."""
        for batch in self._read([*self.columns, *self._apart()]):
            features = [_numbers(batch.column(name)) for name in self.columns]
            dtype = np.result_type(np.float32, *features)
            X = np.empty((batch.num_rows, len(features)), dtype=dtype)
            for k, column in enumerate(features):
                X[:, k] = column
            yield X, *self._label_and_weight(batch)

    def labels(self) -> Iterator[tuple[Any, Any]]:
        """Yield (y, weight), reading these columns only."""
        for batch in self._read(self._apart()):
            yield self._label_and_weight(batch)

    def _set(
        self,
        schema: Any,
        label: str,
        columns: Sequence[str] | None,
        weight: str | None,
        batch_rows: int,
    ) -> None:
        check_count(batch_rows, "batch_rows", least=1)
        self.label, self.weight, self.batch_rows = label, weight, batch_rows
        features = [name for name in schema.names if name not in self._apart()]
        self.columns = features if columns is None else list(columns)
        for name in [*self._apart(), *self.columns]:
            if name not in schema.names:
                raise ValueError(f"there is no column {name!r} among {', '.join(schema.names)}.")
        for name in self.columns:
            kind = schema.field(name).type
            if str(kind) not in NUMBERS:
                raise ValueError(
                    f"column {name!r} holds {kind}, and features must be numbers. Leave it out by "
                    "columns=[...], or encode it when the file is made."
                )

    def _read(self, columns: list[str]) -> Iterator[Any]:
        for batch in self.source.to_batches(columns=columns, batch_size=self.batch_rows):
            if batch.num_rows:  # a file without rows is a batch too
                yield batch

    def _apart(self) -> list[str]:
        return [self.label] if self.weight is None else [self.label, self.weight]

    def _label_and_weight(self, batch: Any) -> tuple[Array, Array | None]:
        column = batch.column(self.label)
        if column.null_count:
            raise ValueError(
                f"column {self.label!r} lacks {column.null_count} labels in one batch: leave out "
                "the rows that have none."
            )
        weight = None if self.weight is None else _numbers(batch.column(self.weight))
        return _labels(column), weight


class ParquetBatches(ArrowBatches):
    """Batches of rows of Parquet files with a column of noisy labels.

    Parameters
    ----------
    path : str, Path or sequence of those
        A file, a folder of ``*.parquet`` files, a pattern such as ``day-*.parquet``, or several of
        these; the rows are in the order of the files' names.
    label, columns, weight, batch_rows
        As for :class:`ArrowBatches`.

    Notes
    -----
    A column is read by pieces of 1 MiB, so that a row group need not fit in memory.

    Examples
    --------
    >>> import tempfile, pyarrow as pa, pyarrow.parquet as pq
    >>> from unflip.streaming import ParquetBatches
    >>> path = f"{tempfile.mkdtemp()}/people.parquet"
    >>> table = {"age": [31, 44, 60], "income": [1.2, 3.1, 0.4], "churned": ["no", "yes", "no"]}
    >>> pq.write_table(pa.table(table), path)
    >>> data = ParquetBatches(path, label="churned", batch_rows=2)
    >>> data.columns
    ['age', 'income']
    >>> X, y, weight = next(iter(data))
    >>> X.tolist(), y.tolist()
    ([[31.0, 1.2], [44.0, 3.1]], ['no', 'yes'])
    """

    def __init__(
        self,
        path: str | Path | Sequence[str | Path],
        label: str,
        *,
        columns: Sequence[str] | None = None,
        weight: str | None = None,
        batch_rows: int = BATCH_ROWS,
    ) -> None:
        self.files = _files(path)
        schema = arrow_modules()[1].read_schema(self.files[0])
        self._set(schema, label, columns, weight, batch_rows)

    def _read(self, columns: list[str]) -> Iterator[Any]:
        _, parquet = arrow_modules()
        for path in self.files:
            with parquet.ParquetFile(path, buffer_size=BUFFER_BYTES, pre_buffer=False) as file:
                yield from file.iter_batches(self.batch_rows, columns=columns, use_threads=False)


NUMBERS = {
    "bool",
    *(f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)),
    "halffloat",
    "float",
    "double",
}
"""Arrow's names of the types that are taken for features."""


def _files(path: str | Path | Sequence[str | Path]) -> list[str]:
    given = [path] if isinstance(path, (str, Path)) else list(path)
    files: list[str] = []
    for one in given:
        if Path(one).is_dir():
            found = [str(file) for file in Path(one).glob("*.parquet")]
        else:
            found = [str(one)] if Path(one).exists() else glob.glob(str(one))
        if not found:
            raise FileNotFoundError(f"no Parquet file at {one}.")
        files += sorted(found)
    return files


def _numbers(column: Any) -> Array:
    """Return a column as floats, NaN where nothing is."""
    values = column.to_numpy(zero_copy_only=False)
    if values.dtype.kind == "f" and values.dtype.itemsize <= 4:
        return np.asarray(values, dtype=np.float32)
    return np.asarray(values, dtype=np.float64)


def _labels(column: Any) -> Array:
    """Return labels as numpy knows them: strings rather than objects."""
    if hasattr(column, "dictionary_decode"):
        column = column.dictionary_decode()
    values = column.to_numpy(zero_copy_only=False)
    return values.astype(str) if values.dtype == object else values


def arrow_modules() -> tuple[Any, Any]:
    """Return pyarrow and pyarrow.parquet, or say how to get them."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError(
            f"Parquet files need {error.name}: pip install 'unflip[arrow]'"
        ) from error
    return pyarrow, pyarrow.parquet
