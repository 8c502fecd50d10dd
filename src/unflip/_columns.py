"""Columns of any kind as numbers in double precision."""

import warnings
from typing import TYPE_CHECKING, Any, Self

import narwhals as nw
import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin

from unflip._typing import Floats, RandomState
from unflip._validation import is_missing

NEEDED = "columns of text, categories or dates need {}: pip install 'unflip[cli]'"

if TYPE_CHECKING:
    import polars as pl
else:
    try:
        import polars as pl
    except ImportError as error:
        raise ImportError(NEEDED.format("polars")) from error


MOST_CATEGORIES = 40
"""Columns of text with as many values, or fewer, are categories; those with more are text."""


def as_polars(table: Any) -> "pl.DataFrame":
    """Return a table of any library, or an array of objects, or a sequence of texts, as polars'.

    Parameters
    ----------
    table : dataframe, or array-like of shape (n_samples, n_features) or (n_samples,)
        Rows.
    """
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
    told = [None if is_missing(value) else value for value in values]
    types = {type(value) for value in told if value is not None}
    if len(types) > 1 and not all(issubclass(each, (int, float)) for each in types):
        told = [None if value is None else str(value) for value in told]
    return pl.Series(name, told, strict=False)


class ColumnEncoder(TransformerMixin, BaseEstimator):
    """Numbers, durations and dates in double precision, and the rest as skrub encodes it.

    skrub's `TableVectorizer` casts to single precision, in which seconds since 1970 are told apart
    by minutes only. It is given what needs no more than that: categories, text, and the parts of
    dates. Gaps become NaN; a column of nothing but gaps is left out.

    Parameters
    ----------
    random_state : int, RandomState instance or None, default=None
        Seed of the encoding of text.

    Attributes
    ----------
    numbers_, dates_, others_ : list of str
        The columns that are numbers, or text of numbers; those that are dates, or text of dates;
        and all that are of another type than numbers.
    timed_ : list of str
        Of the others, those of a type of dates.
    categories_ : dict
        The values of each column of text that has few.
    cleaner_, vectorizer_ : transformer or None
        skrub's, fitted to the columns that need them; None where there are no such columns.
    """

    numbers_: list[str]
    dates_: list[str]
    others_: list[str]
    categories_: dict[str, list[str]]
    cleaner_: Any
    vectorizer_: Any

    def __init__(self, random_state: RandomState = None) -> None:
        self.random_state = random_state

    def fit(self, table: Any, y: Any = None) -> Self:
        """Learn which columns are of which kind, and how to encode categories and text.

        Parameters
        ----------
        table : dataframe, or array-like of objects or texts
            Rows.
        y : None
            Ignored.
        """
        try:
            from skrub import Cleaner, DatetimeEncoder, StringEncoder, TableVectorizer
        except ImportError as error:
            raise ImportError(NEEDED.format("skrub")) from error
        table = as_polars(table)
        told = [column for column in table if column.null_count() < len(column)]
        numbers = [column.name for column in told if _is_number(column.dtype)]
        self.others_ = [column.name for column in told if column.name not in numbers]
        rest = table.select(self.others_)
        self.timed_ = [name for name, kind in rest.schema.items() if kind.is_temporal()]
        self.cleaner_ = None
        if self.others_:
            self.cleaner_ = Cleaner()
            rest = self.cleaner_.fit_transform(rest)
        self.numbers_ = numbers + [column.name for column in rest if _holds_numbers(column)]
        rest = rest.drop(self.numbers_, strict=False)
        self.dates_ = [name for name, kind in rest.schema.items() if kind.is_temporal()]
        self.categories_ = {
            column.name: sorted(column.drop_nulls().unique().to_list())
            for column in rest
            if column.dtype == pl.String and column.n_unique() <= MOST_CATEGORIES
        }
        self.vectorizer_ = None
        if rest.width:
            self.vectorizer_ = TableVectorizer(
                high_cardinality=StringEncoder(random_state=self.random_state),
                datetime=DatetimeEncoder(add_total_seconds=False),
            ).fit(rest)
        elif not self.numbers_:
            raise ValueError("every column to learn from holds nothing but gaps.")
        return self

    def transform(self, table: Any) -> Floats:
        """Return the rows as numbers.

        Parameters
        ----------
        table : dataframe, or array-like of objects or texts
            Rows with the columns of the fit.
        """
        table = as_polars(table)
        parts = [_as_numbers(column) for column in table.select(self.numbers_)]
        if self.vectorizer_ is not None:
            rest = self.cleaner_.transform(table.select(map(self._typed, table[self.others_])))
            rest = rest.drop(self.numbers_, strict=False)
            parts += [_seconds(column) for column in rest.select(self.dates_)]
            self._warn_of_strangers(rest)
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", message="Found unknown categories")
                parts.append(self.vectorizer_.transform(rest).to_numpy())
        return np.column_stack(parts).astype(float, copy=False)

    def _warn_of_strangers(self, rest: "pl.DataFrame") -> None:
        """Warn of categories that the fit has not seen, by the names of their columns."""
        for name, known in self.categories_.items():
            if rest.schema[name] != pl.String:
                continue
            strange = rest[name].filter(~rest[name].is_in(known) & rest[name].is_not_null())
            if len(strange):
                some = ", ".join(map(repr, strange.unique().sort().head(3).to_list()))
                warnings.warn(
                    f"column {name!r} holds what was not seen in training, in {len(strange)} of "
                    f"{rest.height} rows, such as {some}: it counts as none of the known values.",
                    stacklevel=2,
                )

    def _typed(self, column: "pl.Series") -> "pl.Series":
        """Return a column without values in the type of the fit, which a file need not tell."""
        if column.null_count() < len(column):
            return column
        kind = pl.Datetime if column.name in self.timed_ else pl.String
        return pl.Series(column.name, [None] * len(column), dtype=kind)


def _is_number(kind: "pl.DataType") -> bool:
    return kind.is_numeric() or kind in (pl.Boolean, pl.Duration, pl.Time)


def _holds_numbers(column: "pl.Series") -> bool:
    """Return whether a column of text is one of numbers."""
    if column.dtype != pl.String:
        return False
    return column.cast(pl.Float64, strict=False).null_count() == column.null_count()


def _as_numbers(column: "pl.Series") -> Floats:
    """Return a column as floats, NaN in gaps; durations and times of the day in seconds."""
    if column.dtype == pl.Duration:
        column = column.dt.total_microseconds() / 1e6
    elif column.dtype == pl.Time:
        column = column.cast(pl.Int64) / 1e9
    numbers = column.cast(pl.Float64, strict=False).to_numpy()
    return np.where(np.isfinite(numbers), numbers, np.nan)  # text may say "inf"


def _seconds(dates: "pl.Series") -> Floats:
    """Return dates as seconds since 1970, NaN in gaps."""
    return dates.dt.timestamp("us").cast(pl.Float64).to_numpy() / 1e6
