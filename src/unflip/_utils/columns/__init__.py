"""Columns of any kind as numbers in double precision."""

import warnings
from dataclasses import replace
from typing import Any, Self

import narwhals as nw
import numpy as np
import polars as pl
from sklearn.base import BaseEstimator, TransformerMixin

from unflip._utils.columns._kinds import FORMATS as FORMATS
from unflip._utils.columns._kinds import MAX_CATEGORIES as MAX_CATEGORIES
from unflip._utils.columns._kinds import MAX_CHARACTERS as MAX_CHARACTERS
from unflip._utils.columns._kinds import CategoryColumn as CategoryColumn
from unflip._utils.columns._kinds import DateColumn as DateColumn
from unflip._utils.columns._kinds import NumberColumn as NumberColumn
from unflip._utils.columns._kinds import as_floats, cleaned, holds_numbers, is_number
from unflip._utils.columns._text import N_COMPONENTS as N_COMPONENTS
from unflip._utils.columns._text import TextColumn as TextColumn
from unflip._utils.typing import Floats
from unflip._utils.validation import is_missing

Column = NumberColumn | DateColumn | CategoryColumn | TextColumn


def as_polars(table: Any) -> "pl.DataFrame":
    """Return a dataframe of any library, an array of objects or a list of texts as polars'."""
    frame = nw.from_native(table, allow_series=True, pass_through=True)
    if isinstance(frame, nw.Series):
        frame = frame.alias(frame.name or "text").to_frame()
    if isinstance(frame, nw.DataFrame):
        if frame.implementation.is_polars():
            return frame.to_native()
        # by position: the name of a column may be a number
        names = map(str, frame.columns)
        return pl.DataFrame([*map(_polars_column, names, frame.iter_columns())])
    values = np.asarray(table, dtype=object)
    values = values[:, None] if values.ndim == 1 else values
    return pl.DataFrame(
        [_column_of_objects(f"column_{i}", column) for i, column in enumerate(values.T)]
    )


def _polars_column(name: str, column: "nw.Series[Any]") -> "pl.Series":
    kind = column.dtype
    if kind.is_numeric() or kind == nw.Boolean or kind.is_temporal():
        values = column.to_numpy()
        if values.dtype != object:
            return pl.Series(name, values, nan_to_null=True)
    return _column_of_objects(name, np.array(column.to_list(), dtype=object))


def _column_of_objects(name: str, values: Any) -> "pl.Series":
    """Return objects as a column: of one type where they have one, else as text."""
    present = [None if is_missing(value) else value for value in values]
    types = {type(value) for value in present if value is not None}
    if len(types) > 1 and not all(issubclass(each, (int, float)) for each in types):
        present = [None if value is None else str(value) for value in present]
    return pl.Series(name, present, strict=False)


class ColumnEncoder(TransformerMixin, BaseEstimator):
    """Encode columns of any kind as numbers in double precision; missing ones are NaN.

    The kinds of columns are

    - numbers, durations, times of the day, and text of numbers: one number;
    - dates, and text of dates: seconds since 1970, year, month, day and, unless all are whole
      days, hour;
    - categories, text of at most 40 values: a number, 0 or 1, for each value;
    - text: 30 numbers, by tf-idf of n-grams of characters and an SVD.

    A column without values is dropped. Only the first 10 000 characters of a cell are read. The
    encoding is deterministic.

    Attributes
    ----------
    columns_ : list of Column
        How each column is encoded: plain values and arrays.
    """

    columns_: list[Column]

    def fit(self, table: Any, y: Any = None) -> Self:
        """Learn the kind of each column, and how to encode categories and text; y is ignored."""
        found = [_fitted(column) for column in as_polars(table)]
        encoded = [column for column in found if column is not None and column.width]
        # numbers first: the noise model draws its centres by the order of the columns
        self.columns_ = sorted(encoded, key=lambda column: not isinstance(column, NumberColumn))
        if not self.columns_:
            raise ValueError(
                "all values of all columns are missing: there is nothing to learn from."
            )
        return self

    def transform(self, table: Any) -> Floats:
        """Return the rows as numbers, and warn of categories that the fit has not seen."""
        table = as_polars(table)
        self.warn_of_strangers(table)
        return self.encode(table)

    def encode(self, table: "pl.DataFrame") -> Floats:
        """Return the rows as numbers, without a warning."""
        width = sum(column.width for column in self.columns_)
        encoded, start = np.empty((table.height, width)), 0
        for column in self.columns_:
            encoded[:, start : start + column.width] = column.encode(_nameless(table[column.name]))
            start += column.width
        return encoded

    def warn_of_strangers(self, table: "pl.DataFrame") -> None:
        """Warn of categories that the fit has not seen, by the names of their columns."""
        for column in self.columns_:
            if not isinstance(column, CategoryColumn):
                continue
            strange = column.strange(_nameless(table[column.name]))
            if len(strange):
                some = ", ".join(map(repr, strange.unique().sort().head(3).to_list()))
                warnings.warn(
                    f"column {column.name!r} has values that were not seen in training, in "
                    f"{len(strange)} of {table.height} rows, such as {some}: they are encoded as "
                    "none of the known values.",
                    stacklevel=3,
                )

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "columns_")


def _nameless(column: "pl.Series") -> "pl.Series":
    """Return a column without its name, since polars takes names such as ^x$ for patterns."""
    if column.dtype == pl.Object:  # Python's own objects, which polars cannot cast
        return pl.Series(column.to_list(), strict=False)
    return column.alias("")


def _fitted(column: "pl.Series") -> Column | None:
    """Return how to encode a column; None where it has no values."""
    found = _kind(_nameless(column))
    return None if found is None else replace(found, name=column.name)


def _kind(column: "pl.Series") -> Column | None:
    """Return how to encode a column without a name; None where it has no values."""
    if is_number(column.dtype):
        return None if np.isnan(as_floats(column)).all() else NumberColumn(column.name)
    if column.null_count() == len(column):
        return None
    if not column.dtype.is_temporal():
        column = cleaned(column)
        if column.null_count() == len(column):
            return None
        if holds_numbers(column):
            return None if np.isnan(as_floats(column)).all() else NumberColumn(column.name)
    dates = DateColumn.fit(column)
    if dates is not None:
        return dates
    if column.n_unique() <= MAX_CATEGORIES:
        return CategoryColumn.fit(column)
    return TextColumn.fit(column)
