"""Read tables from files, split them into features and labels, turn them into numbers, write them.

CSV, TSV, Parquet, Arrow and JSON lines, by the ending of the name. A file that is no table is
refused with :class:`TableError`, which says where and what to do.
"""

import codecs
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import numpy as np
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from unflip._app.columns import ColumnEncoder
from unflip._files import write_whole
from unflip._typing import Array, Record

if TYPE_CHECKING:
    import polars as pl
else:
    try:
        import polars as pl
    except ImportError as error:
        raise ImportError("tables need polars: pip install 'unflip[cli]'") from error

TEXT = {".csv": ",", ".tsv": "\t", ".tab": "\t"}
"""Extensions of text files, and their column separators."""

JSON_LINES = (".jsonl", ".ndjson")
ARROW = (".arrow", ".feather", ".ipc")
ENDINGS = (*TEXT, ".parquet", *ARROW, *JSON_LINES)

MISSING_VALUES = ["", "NA", "N/A", "NaN", "nan", "null", "NULL"]
"""Strings that are read as missing values in text files."""

CHUNK_BYTES = 2**20
LONGEST_LINE = 2**24
"""Maximum length of a line in bytes: longer ones could exhaust the memory."""

MAX_CLASSES = 50
"""Maximum number of distinct labels: a column with more holds numbers or names."""


class TableError(ValueError):
    """A file or a column that cannot be used as asked."""


@dataclass(frozen=True)
class LabelledTable:
    """Features and labels of the same rows.

    Parameters
    ----------
    features : polars.DataFrame
        The columns to learn from.
    y : ndarray of shape (n_samples,)
        Labels.
    label : str
        Name of the label's column.
    whole : polars.DataFrame
        The table as it was read.
    set_aside : tuple of str
        Columns that are not learnt from, besides the label.
    """

    features: "pl.DataFrame"
    y: Array
    label: str
    whole: "pl.DataFrame"
    set_aside: tuple[str, ...] = ()

    @property
    def classes(self) -> Array:
        """The distinct labels, sorted."""
        return np.unique(self.y)


def read_table(path: Path, *, separator: str | None = None) -> "pl.DataFrame":
    """Return the table that a file holds.

    Parameters
    ----------
    path : Path
        A file whose name ends in .csv, .tsv, .parquet, .arrow, .feather, .jsonl or the like.
    separator : str, default=None
        One character between the columns of a text file. None: a comma, or a tab in .tsv.
    """
    ending = path.suffix.lower()
    _check_is_table_file(path, ending)
    try:
        if ending in (*TEXT, *JSON_LINES):
            _check_text(path)
        # opened here, since to polars a name is UTF-8 and may be a pattern
        with path.open("rb") as file:
            if ending in TEXT:
                table = _read_text(path, file, TEXT[ending] if separator is None else separator)
            elif ending in JSON_LINES:
                table = pl.read_ndjson(file, infer_schema_length=None)
            elif ending == ".parquet":
                table = pl.read_parquet(file)
            else:
                table = pl.read_ipc(file)
    except (pl.exceptions.PolarsError, OSError) as error:
        reason = str(error).strip().split("\n")[0]
        if "more fields" in reason:
            reason = (
                "a line has more fields than the first one has names. Put quotes about values that "
                "hold the separator."
            )
        raise TableError(f"{path} cannot be read as {ending[1:]}: {reason}") from error
    if not table.height:
        raise TableError(f"{path} holds no rows.")
    floats = [name for name, kind in table.schema.items() if kind.is_float()]
    return table.with_columns(pl.col(floats).fill_nan(None))


def write_table(table: "pl.DataFrame", path: Path) -> None:
    """Write a table in the format that the name ends in, whole or not at all.

    Parameters
    ----------
    table : polars.DataFrame
        What to write.
    path : Path
        Where to.
    """
    ending = path.suffix.lower()
    check_ending(path)
    buffer = io.BytesIO()
    if ending in TEXT:
        table.write_csv(buffer, separator=TEXT[ending])
    elif ending in JSON_LINES:
        table.write_ndjson(buffer)
    elif ending == ".parquet":
        table.write_parquet(buffer)
    else:
        table.write_ipc(buffer)
    write_whole(path, buffer.getvalue())


def check_writable(table: "pl.DataFrame", path: Path) -> None:
    """Refuse a table with a column that the format of the name cannot hold.

    To be asked before long work, which would else be lost.

    Parameters
    ----------
    table : polars.DataFrame
        What is to be written.
    path : Path
        Where to.
    """
    ending = path.suffix.lower()
    for name, kind in table.schema.items():
        is_bytes = kind in (pl.Binary, pl.Object)
        if (ending in JSON_LINES and is_bytes) or (
            ending in TEXT and (is_bytes or kind.is_nested() or kind == pl.Duration)
        ):
            raise TableError(
                f"column {name!r} holds {kind}, which {ending} files cannot: write .parquet."
            )


def check_ending(path: Path, endings: Sequence[str] = ENDINGS) -> None:
    """Raise an error unless the name ends in one of the formats."""
    if path.suffix.lower() not in endings:
        raise TableError(
            f"{path}: the name must end in one of {', '.join(endings)}, which says the format."
        )


def split_label(
    table: "pl.DataFrame",
    label: str,
    *,
    drop: Sequence[str] = (),
    identifier: str | None = None,
    learnt_from: bool = True,
) -> LabelledTable:
    """Split a table into the label's column and the columns to learn from.

    Parameters
    ----------
    table : polars.DataFrame
        Rows.
    label : str
        The column of labels: two to 50 distinct values, and none missing.
    drop : sequence of str, default=()
        Columns to leave out of the features.
    identifier : str, default=None
        A column that identifies the rows; it is not a feature.
    learnt_from : bool, default=True
        Whether there must be columns to learn from.
    """
    set_aside = tuple(dict.fromkeys([*([] if identifier is None else [identifier]), *drop]))
    check_has_columns(table, [label, *set_aside])
    if label in set_aside:
        raise TableError(f"column {label!r} is the label: it cannot be dropped or be the id.")
    features = table.drop(label, *set_aside)
    if learnt_from:
        check_features(features)
    return LabelledTable(features, _labels(table[label]), label, table, set_aside)


def check_has_columns(table: "pl.DataFrame", names: Sequence[str]) -> None:
    """Refuse a name that no column has."""
    for name in names:
        if name not in table.columns:
            near = get_close_matches(name, table.columns, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise TableError(
                f"there is no column {name!r}.{hint} The columns are: {listed(table.columns)}."
            )


def check_features(features: "pl.DataFrame") -> None:
    """Refuse columns from which no numbers can be made."""
    if not features.width:
        raise TableError("no column is left to learn from.")
    for name, kind in features.schema.items():
        if kind.is_nested() or kind in (pl.Binary, pl.Object):
            raise TableError(
                f"column {name!r} holds {kind}, which is neither numbers, text nor dates: leave "
                f"it out with --drop {name!r}, or flatten it."
            )
        if kind.is_float() and features[name].is_infinite().any():
            raise TableError(
                f"column {name!r} holds infinity: replace it by a number or by a gap, or leave "
                f"the column out with --drop {name!r}."
            )


def kind_of(column: "pl.Series") -> str:
    """Return what a column holds, in one word; "gaps" where it holds nothing."""
    kind = column.dtype
    if column.null_count() == len(column):
        return "gaps"
    if kind.is_temporal():
        return "dates"
    if kind == pl.Boolean:
        return "booleans"
    return "numbers" if kind.is_numeric() else "text"


def make_vectorizer(random_state: int | None = None) -> Pipeline:
    """Return what turns columns of any kind into numbers without gaps.

    Numbers and dates stay in double precision; skrub encodes categories and text. Then the mean
    fills the gaps, with a column that says where they were, and every column is centred: what
    works in single precision, such as a forest, loses nothing where values are large and close
    together. It does not look at labels.

    Parameters
    ----------
    random_state : int or None, default=None
        Seed of the encoding of text.
    """
    return Pipeline(
        [
            ("columns", ColumnEncoder(random_state)),
            ("gaps", SimpleImputer(add_indicator=True)),
            ("centre", StandardScaler(with_std=False)),
        ]
    )


def matched(table: "pl.DataFrame", kinds: dict[str, str], ignored: Sequence[str]) -> "pl.DataFrame":
    """Return the columns that a model was trained on; raise an error if they differ.

    Parameters
    ----------
    table : polars.DataFrame
        New rows.
    kinds : dict
        The name and the kind (:func:`kind_of`) of each column that the model learnt from.
    ignored : sequence of str
        Columns that may be there and are not used.
    """
    wrong = [f"missing: {name!r}" for name in kinds if name not in table.columns]
    wrong += [
        f"not seen in training: {name!r}"
        for name in table.columns
        if name not in kinds and name not in ignored
    ]
    for name, kind in kinds.items():
        if name in table.columns:
            found = kind_of(table[name])
            if found != kind and "gaps" not in (found, kind):
                wrong.append(f"{name!r} holds {found}, and held {kind}")
    if wrong:
        raise TableError(
            "the columns differ from those the model was trained on:\n"
            + "\n".join(f"  {line}" for line in wrong)
        )
    features = table.select(list(kinds))
    check_features(features)
    return features


def add_columns(table: "pl.DataFrame", columns: Record) -> "pl.DataFrame":
    """Return the table with new columns behind its own, whose names must be free."""
    taken = [name for name in columns if name in table.columns]
    for name in columns:
        try:
            name.encode()
        except UnicodeEncodeError as error:
            raise TableError(f"{name!r} cannot name a column: it is not UTF-8.") from error
    if taken:
        raise TableError(
            f"the table has a column {taken[0]!r} already, and one of that name is to be added: "
            "rename it, or start from a table without it."
        )
    return table.with_columns(pl.Series(name, values) for name, values in columns.items())


def listed(names: Sequence[object], most: int = 20) -> str:
    """Return names as a comma-separated list, truncated after the first ones."""
    shown = ", ".join(repr(name) for name in names[:most])
    return shown + (f", ... ({len(names)} in all)" if len(names) > most else "")


def _check_is_table_file(path: Path, ending: str) -> None:
    if not path.exists():
        raise TableError(f"{path} does not exist.")
    if not path.is_file():
        raise TableError(f"{path} is not a file.")
    check_ending(path)
    if not path.stat().st_size:
        raise TableError(f"{path} is empty.")


def _check_text(path: Path) -> None:
    """Refuse what is not text of lines in UTF-8, before anything tries to hold it in memory."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    line, length = 1, 0
    with path.open("rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            if b"\0" in chunk:
                raise TableError(
                    f"{path} holds binary data, not text in UTF-8: does its name tell its format? "
                    f"Known endings: {', '.join(ENDINGS)}."
                )
            try:
                decoder.decode(chunk)
            except UnicodeDecodeError as error:
                at = line + error.object[: error.start].count(b"\n")
                raise TableError(
                    f"line {at} of {path} is not UTF-8 (byte 0x{error.object[error.start]:02x}): "
                    "the file has another encoding, or mixes several. Convert it first, for "
                    "example with: iconv -f latin1 -t utf-8"
                ) from error
            first, last = chunk.find(b"\n"), chunk.rfind(b"\n")
            length += len(chunk) if first < 0 else first
            if length > LONGEST_LINE:
                raise TableError(
                    f"line {line} of {path} is longer than {LONGEST_LINE / 2**20:.0f} MB: this is "
                    "no table of rows. Look for a quote that is never closed, or for line ends "
                    "that are missing."
                )
            if first >= 0:
                length = len(chunk) - last - 1
                line += chunk.count(b"\n")


def _read_text(path: Path, file: BinaryIO, separator: str) -> "pl.DataFrame":
    if len(separator.encode()) != 1:
        raise TableError(f"the separator must be one character, got {separator!r}.")
    table = pl.read_csv(
        file,
        separator=separator,
        null_values=MISSING_VALUES,
        try_parse_dates=True,
        infer_schema_length=None,
    )
    if table.width == 1:
        others = [mark for mark in ";\t|," if mark in table.columns[0] and mark != separator]
        if others:
            raise TableError(
                f"{path} has one column, {table.columns[0]!r}: its columns seem to be separated by "
                f"{others[0]!r}, not {separator!r}. Say so: --separator {others[0]!r}"
            )
    for name in table.columns:
        twin = re.fullmatch(r"(.*)_duplicated_\d+", name)
        if twin and twin[1] in table.columns:
            raise TableError(f"{path} has two columns called {twin[1]!r}: rename one of them.")
    return table


def _labels(column: "pl.Series") -> Array:
    """Return the labels as numbers, booleans or strings, without gaps."""
    gaps = column.is_null()
    if gaps.any():
        rows = gaps.arg_true().to_list()
        raise TableError(
            f"{len(rows)} of {len(column)} rows have no label in column {column.name!r} (rows "
            f"{listed(rows, 5)}, counted from 0): fill them in, or leave these rows out."
        )
    kind = column.dtype
    if kind.is_nested() or kind in (pl.Binary, pl.Object, pl.Duration):
        raise TableError(f"column {column.name!r} holds {kind}, which cannot be labels.")
    n_classes = column.n_unique()
    if n_classes > MAX_CLASSES:
        raise TableError(
            f"column {column.name!r} holds {n_classes} distinct values, and more than "
            f"{MAX_CLASSES} classes are not supported: is it a column of labels? Merge rare "
            "classes, or cut numbers into ranges."
        )
    if n_classes < 2:
        raise TableError(
            f"column {column.name!r} holds one class only, {column[0]!r}: there is nothing to tell "
            "apart. Look at how the rows were chosen."
        )
    if kind.is_numeric():
        if not kind.is_integer() and not (whole := column == column.round()).all():
            raise TableError(
                f"column {column.name!r} holds fractions such as {column.filter(~whole)[0]}: "
                "labels are classes, not measurements."
            )
        numbers = column.cast(pl.Int64, strict=False)
        if numbers.null_count():
            raise TableError(
                f"column {column.name!r} holds {column.filter(numbers.is_null())[0]}, which is no "
                "whole number of 64 bits: name the classes otherwise."
            )
        return numbers.to_numpy()
    if kind == pl.Boolean:
        return column.to_numpy()
    return column.cast(pl.String).to_numpy().astype(str)
