"""Batches of Parquet files and of other Arrow datasets."""

import glob
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

from unflip._utils.typing import Array
from unflip._utils.validation import check_count
from unflip.streaming._batches import BATCH_ROWS, Batch, Batches, LabelBatch

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow import dataset as ds
    from pyarrow import fs

BUFFER_BYTES = 1 << 20
"""Read buffer of a column: a row group need not fit in memory."""


class ArrowBatches(Batches):
    """Batches of rows of an Arrow dataset or table with a column of noisy labels.

    Parameters
    ----------
    source : pyarrow.dataset.Dataset
        The rows: `pyarrow.dataset.dataset` of Parquet, Feather, ORC or CSV files. A dataset reads
        ahead; for Parquet files, :class:`ParquetBatches` needs less memory. Every file must have
        the columns that are read (Arrow alone would fill a missing column with nulls).
    label : str, default=None
        The column of noisy labels. None: the rows are only to be predicted.
    columns : sequence of str, default=None
        The numeric feature columns; missing values become NaN. None: every other column.
    weight : str, default=None
        The column of sample weights.
    batch_rows : int, default=65_536
        Maximum number of rows of a batch.

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
        source: "ds.Dataset",
        label: str | None = None,
        *,
        columns: Sequence[str] | None = None,
        weight: str | None = None,
        batch_rows: int = BATCH_ROWS,
    ) -> None:
        self.source = source
        self._set(source.schema, label, columns, weight, batch_rows)
        if isinstance(getattr(source, "filesystem", None), _local_filesystem()):
            self.files = source.files
        for fragment in source.get_fragments():
            self._check_fragment(fragment)

    def __iter__(self) -> Iterator[Batch]:
        """Yield (X, y, sample_weight); X is float32 if all features are, else float64."""
        for batch in self._read([*self.columns, *self._label_columns()]):
            features = [_numbers(batch.column(name)) for name in self.columns]
            dtype = np.result_type(np.float32, *features)
            X = np.empty((batch.num_rows, len(features)), dtype=dtype)
            for k, column in enumerate(features):
                X[:, k] = column
            yield X, *self._labels_and_weight(batch)

    def labels(self) -> Iterator[LabelBatch]:
        """Yield (y, sample_weight), reading only these columns."""
        for batch in self._read(self._label_columns()):
            yield self._labels_and_weight(batch)

    def _set(
        self,
        schema: "pa.Schema",
        label: str | None,
        columns: Sequence[str] | None,
        weight: str | None,
        batch_rows: int,
    ) -> None:
        check_count(batch_rows, "batch_rows", least=1)
        self.label, self.weight, self.batch_rows = label, weight, batch_rows
        features = [name for name in schema.names if name not in self._label_columns()]
        self.columns = features if columns is None else list(columns)
        self._check_names(schema)
        self._label_kind = None if label is None else _kind(schema.field(label).type)
        self._check_kinds(schema)

    def _check_names(
        self, schema: "pa.Schema", beside: Collection[str] = (), place: str = ""
    ) -> None:
        """Raise an error if a column is missing or duplicated."""
        for name in [*self._label_columns(), *self.columns]:
            if name not in schema.names and name not in beside:
                names = ", ".join(schema.names)
                raise ValueError(f"{place}there is no column {name!r} among {names}.")
            if schema.names.count(name) > 1:
                raise ValueError(f"{place}there are two columns {name!r}: rename one of them.")

    def _check_kinds(self, schema: "pa.Schema", place: str = "") -> None:
        """Raise an error if a feature is not numeric or the labels are of another kind."""
        for name in schema.names:
            kind = schema.field(name).type if name in self.columns or name == self.weight else None
            if kind is not None and str(kind) not in NUMBERS:
                what = "weights" if name == self.weight else "features"
                raise ValueError(
                    f"{place}column {name!r} holds {kind}, but {what} must be numbers. Leave it "
                    "out with columns=[...], or encode it as numbers in the file."
                )
        if self.label is not None and self.label in schema.names:
            kind = _kind(schema.field(self.label).type)
            if kind != self._label_kind:
                raise ValueError(
                    f"{place}column {self.label!r} holds labels of kind {kind}, but in the first "
                    f"file they are {self._label_kind}. Write all files with the same type."
                )

    def _check_fragment(self, fragment: "ds.Fragment") -> None:
        """Raise an error if a file lacks a column or has values of another kind."""
        from pyarrow.dataset import get_partition_keys

        schema, place = fragment.physical_schema, f"{getattr(fragment, 'path', 'a part')}: "
        self._check_names(schema, get_partition_keys(fragment.partition_expression), place)
        # text files have no types: Arrow reads them by the schema of the dataset
        if getattr(getattr(fragment, "format", None), "default_extname", "") not in TEXT_FORMATS:
            self._check_kinds(schema, place)

    def _read(self, columns: list[str]) -> Iterator["pa.RecordBatch"]:
        for batch in self.source.to_batches(columns=columns, batch_size=self.batch_rows):
            if batch.num_rows:  # an empty file gives an empty batch
                yield batch

    def no_rows(self) -> "pa.Table":
        """Return a table with the feature columns."""
        arrow, _ = arrow_modules()
        return arrow.table({name: arrow.array([], "float64") for name in self.columns})

    def _label_columns(self) -> list[str]:
        return [name for name in (self.label, self.weight) if name is not None]

    def _labels_and_weight(self, batch: "pa.RecordBatch") -> tuple[Array | None, Array | None]:
        weight = None if self.weight is None else _numbers(batch.column(self.weight))
        if self.label is None:
            return None, weight
        column = batch.column(self.label)
        if column.null_count:
            raise ValueError(
                f"column {self.label!r} has {column.null_count} missing labels in one batch: drop "
                "these rows."
            )
        return _labels(column), weight


class ParquetBatches(ArrowBatches):
    """Batches of rows of Parquet files with a column of noisy labels.

    Parameters
    ----------
    path : str, Path or sequence of those
        A file, a folder of ``*.parquet`` files, a pattern such as ``day-*.parquet``, or several of
        these. Files are read in the order of their names.
    label, columns, weight, batch_rows
        As for :class:`ArrowBatches`. If `columns` is None, all files must have the same columns;
        otherwise they may have further columns.

    Notes
    -----
    A column is read in pieces of 1 MiB, so a row group need not fit in memory. Columns are matched
    by name, in any order, and may be integers in one file and floats in another. Page checksums are
    verified if a file has them.

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
        label: str | None = None,
        *,
        columns: Sequence[str] | None = None,
        weight: str | None = None,
        batch_rows: int = BATCH_ROWS,
    ) -> None:
        self.files = _files(path)
        _, parquet = arrow_modules()
        with _named(self.files[0]):
            schema = parquet.read_schema(self.files[0])
        self._set(schema, label, columns, weight, batch_rows)
        self._all_columns = columns is None
        for file in self.files[1:]:
            with _named(file):
                schema = parquet.read_schema(file)
            self._check_file(schema, file)

    def _check_file(self, schema: "pa.Schema", path: str | Path) -> None:
        self._check_names(schema, place=f"{path}: ")
        self._check_kinds(schema, f"{path}: ")
        extra = set(schema.names).difference(self.columns, self._label_columns())
        if self._all_columns and extra:
            raise ValueError(
                f"{path}: there is a column {min(extra)!r} that {self.files[0]} does not have. "
                "Name the features with columns=[...]."
            )

    def _read(self, columns: list[str]) -> Iterator["pa.RecordBatch"]:
        _, parquet = arrow_modules()
        for path in self.files:
            with (
                _named(path),
                parquet.ParquetFile(
                    path,
                    buffer_size=BUFFER_BYTES,
                    pre_buffer=False,
                    page_checksum_verification=True,
                ) as file,
            ):
                self._check_file(file.schema_arrow, path)
                yield from file.iter_batches(self.batch_rows, columns=columns, use_threads=False)


@contextmanager
def _named(path: str | Path) -> Iterator[None]:
    """Name the file in Arrow's errors about what is in it."""
    arrow, _ = arrow_modules()
    try:
        yield
    except arrow.ArrowInvalid as error:
        raise ValueError(f"{path} is damaged: {error}") from error
    except OSError as error:
        if error.errno is not None:  # raised by the system, and names the file
            raise
        raise OSError(f"{path} is damaged: {error}") from error


NUMBERS = {
    "bool",
    *(f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)),
    "halffloat",
    "float",
    "double",
}
"""Arrow types that are accepted as features."""

TEXT_FORMATS = ("csv", "json")
"""File extensions of formats without column types."""


def _kind(kind: "pa.DataType") -> str:
    """Return the kind of an Arrow type; types of one kind give the same labels."""
    from pyarrow.types import is_dictionary

    name = str(kind.value_type if is_dictionary(kind) else kind)
    if name in ("string", "large_string", "string_view"):
        return "text"
    return "numbers" if name in NUMBERS and name != "bool" else name


def _local_filesystem() -> "type[fs.LocalFileSystem]":
    from pyarrow.fs import LocalFileSystem

    return LocalFileSystem


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


def _numbers(column: "pa.Array") -> Array:
    """Return a column as floats, with NaN for missing values."""
    values = column.to_numpy(zero_copy_only=False)
    if values.dtype.kind == "f" and values.dtype.itemsize <= 4:
        return np.asarray(values, dtype=np.float32)
    return np.asarray(values, dtype=np.float64)


def _labels(column: "pa.Array") -> Array:
    """Return labels as a numpy array, text as objects."""
    if hasattr(column, "dictionary_decode"):
        column = column.dictionary_decode()
    return np.asarray(column.to_numpy(zero_copy_only=False))


def arrow_modules() -> tuple[ModuleType, ModuleType]:
    """Return pyarrow and pyarrow.parquet, or say how to install them."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError(
            f"Parquet files need {error.name}: pip install 'unflip[arrow]'"
        ) from error
    return pyarrow, pyarrow.parquet
