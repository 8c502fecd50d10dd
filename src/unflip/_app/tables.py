"""Tables of features and labels."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from unflip._app.table_files import FileTable, TableError, for_format, listed, unnamed
from unflip._utils.typing import Array, Record
from unflip._utils.validation import MANY_VALUES, did_you_mean, plain_labels
from unflip.diagnostics import look_alike

if TYPE_CHECKING:
    import polars as pl
else:
    try:
        import polars as pl
    except ImportError as error:
        raise ImportError("tables need polars: pip install 'unflip[cli]'") from error

MAX_CLASSES = MANY_VALUES
"""Maximum number of distinct labels; a column with more holds numbers or names."""

MOST_DIFFERENCES = 20
"""Maximum number of differing columns in a message."""

LONGEST_LABEL = 1000
"""Maximum number of characters of a label. Arrays of labels have a fixed width of 4 bytes per
character, so that one long label would cost this for every row."""


@dataclass(frozen=True)
class LabelledTable:
    """Features and labels of the same rows."""

    # Columns to learn from.
    features: "pl.DataFrame"
    y: Array
    # Name of the label's column.
    label: str
    # All columns, with inferred types.
    whole: "pl.DataFrame"
    # The same rows and columns as in the file, to be written back.
    cells: "pl.DataFrame"
    # Other columns, besides the label.
    set_aside: tuple[str, ...] = ()

    @property
    def classes(self) -> Array:
        """The distinct labels, sorted."""
        return np.unique(self.y)

    @property
    def reviewed_as(self) -> "pl.DataFrame":
        """All columns as a review compares them, with the labels as classes."""
        return self.whole.with_columns(_series(self.label, self.y))

    def for_format(self, path: Path) -> "pl.DataFrame":
        """Return the cells as they are written to this file."""
        return for_format(FileTable(self.whole, self.cells), path)

    def relabelled(self, codes: NDArray[np.intp]) -> NDArray[np.intp]:
        """Return, for each row, a row from which to copy the label cell of the class `codes`.

        A row that keeps its class copies from itself, so that its label stays as it was read.
        """
        first = np.unique(self.y, return_index=True)[1]
        same = np.searchsorted(self.classes, self.y) == codes
        return np.where(same, np.arange(self.y.size), first[codes])


def split_label(
    table: "FileTable | pl.DataFrame",
    label: str,
    *,
    drop: Sequence[str] = (),
    identifier: str | None = None,
    check_columns: bool = True,
) -> LabelledTable:
    """Split a table into the label's column and the columns to learn from."""
    whole, cells = (table.values, table.cells) if isinstance(table, FileTable) else (table, table)
    set_aside = tuple(dict.fromkeys([*([] if identifier is None else [identifier]), *drop]))
    check_has_columns(whole, [label, *set_aside])
    if label in set_aside:
        raise TableError(f"column {label!r} is the label: it cannot be dropped or be the id.")
    features = without(whole, [label, *set_aside])
    if check_columns:
        check_features(features)
    return LabelledTable(features, _labels(whole[label]), label, whole, cells, set_aside)


def without(table: "pl.DataFrame", names: Collection[str]) -> "pl.DataFrame":
    """Return the other columns; polars' `drop` and `select` take `*` and `^x$` for patterns."""
    return table.select(column for column in table if column.name not in names)


def clean_labels(
    table: FileTable,
    label: str,
    *,
    skip_unlabelled: bool = False,
    merge_labels: bool = False,
    drop_classes: Sequence[str] = (),
) -> FileTable:
    """Return a table whose labels are cleaned as requested."""
    check_has_columns(table.values, [label])
    if skip_unlabelled:
        table = table.take(unnamed(table.values[label]).is_not_null())
    if merge_labels and table.values.schema[label] == pl.String:
        counts = table.values[label].alias("label").drop_nulls().value_counts(sort=True)
        spelling = {
            other: alike[0].strip()
            for alike in look_alike(counts["label"].to_list())
            for other in alike
        }
        table = FileTable(
            *(
                frame.with_columns(unnamed(frame[label]).replace(spelling).alias(label))
                for frame in (table.values, table.cells)
            )
        )
    for name in drop_classes:
        given = unnamed(table.values[label])
        kept = given.is_null() | (given.cast(pl.String) != name)
        if kept.all():
            classes = given.drop_nulls().unique().sort().to_list()
            raise TableError(
                f"--drop-classes {name!r}: no row has this label. There are: {listed(classes)}."
            )
        table = table.take(kept)
    return table


def check_has_columns(table: "pl.DataFrame", names: Sequence[str]) -> None:
    """Reject names that no column has."""
    for name in names:
        if name not in table.columns:
            hint = did_you_mean(name, table.columns)
            raise TableError(
                f"there is no column {name!r}.{hint} The columns are: {listed(table.columns)}."
            )


def check_features(features: "pl.DataFrame") -> None:
    """Reject columns that cannot be encoded."""
    if not features.width:
        raise TableError("no column is left to learn from.")
    for name, kind in features.schema.items():
        if kind.is_nested() or kind in (pl.Binary, pl.Object):
            raise TableError(
                f"column {name!r} holds {kind}, which is not numbers, text or dates: leave it "
                f"out with --drop {name!r}, or flatten it."
            )
        if kind.is_float() and unnamed(features[name]).is_infinite().any():
            raise TableError(
                f"column {name!r} holds infinity: replace it by a number or a missing value, or "
                f"leave the column out with --drop {name!r}."
            )


def kind_of(column: "pl.Series") -> str:
    """Return the kind of a column's values; "missing" if all are missing."""
    kind = column.dtype
    if column.null_count() == len(column):
        return "missing"
    if kind.is_temporal():
        return "dates"
    if kind == pl.Boolean:
        return "booleans"
    return "numbers" if kind.is_numeric() else "text"


def matched(table: "pl.DataFrame", kinds: dict[str, str], ignored: Sequence[str]) -> "pl.DataFrame":
    """Return the columns that a model was trained on, or raise an error if they differ."""
    wrong = [f"missing: {name!r}" for name in kinds if name not in table.columns]
    wrong += [
        f"not seen in training: {name!r}"
        for name in table.columns
        if name not in kinds and name not in ignored
    ]
    for name, kind in kinds.items():
        if name in table.columns:
            found = kind_of(table[name])
            if found != kind and "missing" not in (found, kind):
                wrong.append(f"{name!r} holds {found} instead of {kind}")
    if wrong:
        more = [f"... ({len(wrong)} in all)"] if len(wrong) > MOST_DIFFERENCES else []
        raise TableError(
            "\n  ".join(
                [
                    "the columns differ from those the model was trained on:",
                    *wrong[:MOST_DIFFERENCES],
                    *more,
                ]
            )
        )
    features = table[list(kinds)]
    check_features(features)
    return features


def add_columns(table: "pl.DataFrame", columns: Record) -> "pl.DataFrame":
    """Return the table with new columns after its own; their names must be free."""
    taken = [name for name in columns if name in table.columns]
    for name in columns:
        try:
            name.encode()
        except UnicodeEncodeError as error:
            raise TableError(f"{name!r} cannot name a column: it is not UTF-8.") from error
    if taken:
        raise TableError(
            f"the table already has a column {taken[0]!r}, which would be added: rename it, or "
            "start from a table without it."
        )
    return table.with_columns(_series(name, values) for name, values in columns.items())


def _series(name: str, values: "Array | pl.Series") -> "pl.Series":
    """Return a column; objects are texts, even if there are none."""
    is_text = isinstance(values, np.ndarray) and values.dtype == object
    return pl.Series(name, values, dtype=pl.String if is_text else None)


def _labels(column: "pl.Series") -> Array:
    """Return the labels as numbers, booleans or strings, or raise an error if some are missing."""
    name, column = column.name, unnamed(column)
    missing = column.is_null()
    if missing.any():
        rows = missing.arg_true().to_list()
        raise TableError(
            f"{len(rows)} of {len(column)} rows have no label in column {name!r} (rows "
            f"{listed(rows, 5)}, counted from 0): add labels, or skip these rows with "
            "--skip-unlabelled."
        )
    kind = column.dtype
    if kind.is_nested() or kind in (pl.Binary, pl.Object, pl.Duration):
        raise TableError(f"column {name!r} holds {kind}, which cannot be labels.")
    n_classes = column.n_unique()
    if n_classes > MAX_CLASSES:
        raise TableError(
            f"column {name!r} holds {n_classes} distinct values, but at most {MAX_CLASSES} "
            "classes are supported: is it the label column? Merge rare classes, or bin numbers."
        )
    if n_classes < 2:
        raise TableError(
            f"column {name!r} holds one class only, {column[0]!r}. Check how rows were selected."
        )
    if kind.is_numeric():
        if not kind.is_integer() and not (whole := column == column.round()).all():
            raise TableError(
                f"column {name!r} holds fractions such as {column.filter(~whole)[0]}: labels must "
                "be classes, not measurements."
            )
        numbers = column.cast(pl.Int64, strict=False)
        if numbers.null_count():
            raise TableError(
                f"column {name!r} holds {column.filter(numbers.is_null())[0]}, which is not a "
                "64-bit integer: rename the classes."
            )
        return numbers.to_numpy()
    if kind == pl.Boolean:
        return column.to_numpy()
    texts = column.cast(pl.String)
    if texts.str.len_chars().max() > LONGEST_LABEL:  # type: ignore[operator]
        raise TableError(
            f"column {name!r} holds texts of more than {LONGEST_LABEL} characters, which are not "
            "class names: is it the label column?"
        )
    return plain_labels(texts.to_numpy())
