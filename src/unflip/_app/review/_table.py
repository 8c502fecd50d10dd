"""The table under review, its labels and its fingerprint."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from unflip._app.review._fingerprint import Fingerprint
from unflip._app.row_hashes import coded_texts, hash_rows
from unflip._utils.typing import ArrayLike, Codes, Floats, Record, Rows
from unflip._utils.validation import check_labels

if TYPE_CHECKING:
    import polars as pl

LABEL = "label"
"""Name of the label column if the labels are not a column of the table."""


@dataclass(frozen=True)
class Column:
    """One feature: numbers or categories."""

    name: str
    # NaN where missing; None for categories.
    numbers: Floats | None
    # Indices into `levels`, -1 where missing; None for numbers.
    codes: Codes | None
    levels: list[str]

    def text(self, row: int) -> str | None:
        """Return a cell as text; None if it is missing."""
        if self.numbers is not None:
            return number_text(float(self.numbers[row]))
        assert self.codes is not None
        code = self.codes[row]
        return None if code < 0 else self.levels[code]

    def matches(self, words: str) -> NDArray[np.bool_]:
        """Return a mask of the rows that contain the words, which are in lower case."""
        if self.numbers is not None:
            return np.array([words in text for text in self._number_texts])
        # the last entry is for missing cells, code -1
        found = np.array([words in level.lower() for level in self.levels] + [False])
        return found[self.codes]

    @cached_property
    def _number_texts(self) -> list[str]:
        assert self.numbers is not None
        return [number_text(value) or "" for value in self.numbers.tolist()]


@dataclass(frozen=True)
class RowsOfFile:
    """Rows read from a file: values to show and compare, and cells to export."""

    # With the types that were inferred.
    values: "pl.DataFrame"
    # As the file holds them.
    cells: "pl.DataFrame"


class ReviewTable:
    """A table and its labels, never changed.

    Parameters
    ----------
    table : dataframe, mapping of columns or array of shape (n_rows, n_columns)
        The rows: a pandas, polars or other dataframe that narwhals supports; or plain columns.
    label : str or array-like of shape (n_rows,)
        The name of the label column, or the labels.
    id_column : str, default=None
        A column of row names: shown and searched, but not compared.

    Attributes
    ----------
    columns : list of Column
        The features.
    classes : ndarray of shape (n_classes,)
        The labels, sorted.
    codes : ndarray of shape (n_rows,)
        Class index of each label.
    names : list of str
        The classes as text.
    ids : list of str or None
        The id column as text.

    Examples
    --------
    >>> import polars as pl
    >>> from unflip.review import ReviewTable
    >>> table = ReviewTable(pl.DataFrame({"x": ["cold", "hot"], "y": ["no", "yes"]}), "y")
    >>> table.given(1)
    'yes'
    >>> table.matches("cold")
    array([ True, False])
    """

    def __init__(self, table: Rows, label: ArrayLike, *, id_column: str | None = None) -> None:
        self.cells: pl.DataFrame | None = None
        if isinstance(table, RowsOfFile):
            table, self.cells = table.values, table.cells
        series = named_columns(table)
        self.header = list(series)
        self.label_name = label if isinstance(label, str) else LABEL
        for name in [label] * isinstance(label, str) + [id_column] * (id_column is not None):
            if name not in series:
                raise ValueError(
                    f"the table has no column {name!r}; its columns are {', '.join(series)}."
                )
        if not isinstance(label, str) and LABEL in series:
            raise ValueError(
                f"the table already has a column {LABEL!r}, which is the name of the exported "
                f"labels. Pass label={LABEL!r}, or rename the column."
            )
        labels = nw.to_native(series[label], pass_through=True) if isinstance(label, str) else label
        self.classes, self.codes = check_labels(labels, binary=False)
        self.n_rows = self.codes.size
        self.names = [str(value) for value in self.classes.tolist()]
        self.ids = None if id_column is None else [str(value) for value in series[id_column]]
        not_features = {id_column, label if isinstance(label, str) else None}
        self.columns = [
            _column(name, values) for name, values in series.items() if name not in not_features
        ]
        for name, values in series.items():
            if len(values) != self.n_rows:
                raise ValueError(
                    f"column {name!r} has {len(values)} rows, but there are {self.n_rows} labels: "
                    "give one label per row."
                )
        self.data = table

    @cached_property
    def fingerprint(self) -> Fingerprint:
        """The identity of the table and of each of its rows."""
        columns = named_columns(self.data)
        # labels that are not in the table count as a column
        columns.setdefault(self.label_name, self.classes[self.codes])
        return Fingerprint(
            columns=tuple(self.header),
            label=self.label_name,
            classes=tuple(self.names),
            codes=self.codes,
            ids=self.ids,
            hashes=hash_rows(columns),
        )

    def given(self, row: int) -> str:
        """Return the observed label of a row as text.

        Returns
        -------
        str
            A class.
        """
        return self.names[self.codes[row]]

    def matches(self, words: str) -> NDArray[np.bool_]:
        """Search for words in cells, ids, labels and row numbers.

        Returns
        -------
        ndarray of bool, shape (n_rows,)
            Mask of the rows with the words.
        """
        text = words.strip().lower()
        found = np.array([text in name.lower() for name in self.names])[self.codes]
        if self.ids is not None:
            found |= np.array([text in name.lower() for name in self.ids])
        for column in self.columns:
            found |= column.matches(text)
        number = text.removeprefix("row ").removeprefix("#")
        if number.isascii() and number.isdigit() and len(number) < 19 and int(number) < self.n_rows:
            found[int(number)] = True
        return found


def number_text(value: float) -> str | None:
    """Return a number in up to six significant digits, whole numbers in full; None for NaN."""
    if math.isnan(value):
        return None
    whole = abs(value) < 1e15 and value.is_integer()
    return str(int(value)) if whole else f"{value:.6g}"


def named_columns(table: Rows) -> Record:
    """Return the columns by name: narwhals series of a dataframe, else arrays."""
    if isinstance(table, Mapping):
        return {str(name): np.asarray(values) for name, values in table.items()}
    if isinstance(table, np.ndarray):
        if table.ndim != 2:
            raise ValueError(f"the table has shape {table.shape}, expected (n_rows, n_columns).")
        return {f"x{k}": table[:, k] for k in range(table.shape[1])}
    frame: nw.DataFrame[Any] = nw.from_native(table, eager_only=True)
    return {name: frame[name] for name in frame.columns}


def _column(name: str, values: Any) -> Column:
    if isinstance(values, nw.Series):
        if values.dtype.is_numeric():
            return Column(name, values.cast(nw.Float64).to_numpy().astype(float), None, [])
    elif values.dtype.kind in "iuf":
        return Column(name, values.astype(float), None, [])
    return Column(name, None, *coded_texts(values))
