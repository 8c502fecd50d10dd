"""Columns of numbers, dates and categories, and how each becomes numbers."""

from dataclasses import dataclass
from itertools import product
from typing import ClassVar, Self

import numpy as np
import polars as pl

from unflip._utils.typing import Floats

MAX_CATEGORIES = 40
"""Maximum number of values of a categorical column; those with more are text."""

MAX_CHARACTERS = 10_000
"""Maximum number of characters of a cell, about four pages of text. Longer cells are cut to bound
memory: 300 rows with a cell of 1 MB are fitted in 35 MB."""

MISSING = (
    *("", "?", "...", "NA", "N/A", "n/a", "#NA", "#N/A", "#N/A N/A", "<NA>", "NULL", "null"),
    *("None", "none", "NaN", "nan", "-NaN", "-nan", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN"),
)
"""Words for a missing value, as pandas reads them, and those of R, SQL, Python and UCI's tables."""

SAMPLE_ROWS = 30
"""Number of rows on which formats of dates are tried before all rows."""

_DAYS = (
    # two digits of a year first: %Y would take them for a year of the Roman empire. The month is
    # first where both would do, but for dots, with which it never is
    *("%Y-%m-%d", "%Y/%m/%d", "%Y.%m.%d", "%m/%d/%y", "%d/%m/%y", "%d.%m.%y"),
    *("%m/%d/%Y", "%d/%m/%Y", "%m-%d-%Y", "%d-%m-%Y", "%d.%m.%Y", "%m.%d.%Y"),
    *("%d %b %Y", "%d %B %Y", "%d-%b-%Y", "%b %d, %Y", "%B %d, %Y", "%b %d %Y", "%B %d %Y"),
)
_TIMES = ("%H:%M", "%H:%M:%S", "%H:%M:%S%.f", "%I:%M %p", "%I:%M:%S %p")

_ZONES = ("", "Z", "%z", " %z")

FORMATS = (
    *_DAYS,
    *(
        f"{day}{separator}{time}{zone}"
        for day, separator, time, zone in product(_DAYS, " T", _TIMES, _ZONES)
    ),
)
"""Formats of dates in text; the first that fits all rows is used. Model files number them."""


@dataclass(frozen=True)
class NumberColumn:
    """A column of numbers, durations, times of the day, or text of numbers."""

    kind: ClassVar[str] = "number"
    width: ClassVar[int] = 1

    name: str

    def encode(self, column: "pl.Series") -> Floats:
        """Return floats, NaN where a number is missing or infinite."""
        return as_floats(column)[:, None]


@dataclass(frozen=True)
class DateColumn:
    """A column of dates: seconds since 1970, and the parts down to the day or the hour.

    The parts are those of the column's own time zone.
    """

    kind: ClassVar[str] = "date"

    name: str
    format: int | None
    has_time: bool

    @classmethod
    def fit(cls, column: "pl.Series") -> Self | None:
        """Learn the format of dates, and whether they are whole days; None if not dates."""
        written = None
        if not _is_date(column.dtype):
            written = date_format(column)
            if written is None:
                return None
            column = _parsed(column, written)
        days = column.cast(pl.Datetime("us")).dt.truncate("1d") == column.cast(pl.Datetime("us"))
        return cls(column.name, written, has_time=not days.all())

    @property
    def width(self) -> int:
        """Number of columns of the encoding."""
        return 5 if self.has_time else 4

    def encode(self, column: "pl.Series") -> Floats:
        """Return seconds and parts, NaN where a date is missing or is written in another way."""
        if not _is_date(column.dtype):
            texts = cleaned(column)
            written = date_format(texts) if self.format is None else self.format
            column = pl.Series(texts.name, [None] * len(texts), dtype=pl.Datetime("us"))
            column = column if written is None else _parsed(texts, written)
        if column.dtype == pl.Date:
            column = column.cast(pl.Datetime("us"))
        parts = [column.dt.year(), column.dt.month(), column.dt.day()]
        parts += [column.dt.hour()] if self.has_time else []
        seconds = column.dt.timestamp("us").cast(pl.Float64) / 1e6
        return np.column_stack([one.cast(pl.Float64).to_numpy() for one in (seconds, *parts)])


@dataclass(frozen=True)
class CategoryColumn:
    """A column of few texts: a number, 0 or 1, for each, of two for the second only."""

    kind: ClassVar[str] = "category"

    name: str
    values: tuple[str, ...]
    has_missing: bool

    @classmethod
    def fit(cls, texts: "pl.Series") -> Self:
        """Learn the values; where some are missing, that is a value too."""
        values = sorted(texts.drop_nulls().unique().to_list())
        return cls(texts.name, tuple(values), texts.null_count() > 0)

    @property
    def width(self) -> int:
        """Number of columns of the encoding."""
        n_values = len(self.values) + self.has_missing
        return 1 if n_values == 2 else n_values

    def encode(self, column: "pl.Series") -> Floats:
        """Return a 1 in the column of each value; none for a value that the fit has not seen."""
        texts = cleaned(column)
        columns = [texts == value for value in self.values]
        columns += [texts.is_null()] if self.has_missing else []
        encoded = np.zeros((len(texts), self.width))
        for k, column in enumerate(columns[-self.width :]):
            encoded[:, k] = column.fill_null(False).to_numpy()
        return encoded

    def strange(self, column: "pl.Series") -> "pl.Series":
        """Return the values that the fit has not seen, as often as they are there."""
        texts = cleaned(column)
        return texts.filter(texts.is_not_null() & ~texts.is_in(list(self.values)))


def is_number(kind: "pl.DataType") -> bool:
    """Return whether a type is one of numbers."""
    return kind.is_numeric() or kind in (pl.Boolean, pl.Duration, pl.Time)


def holds_numbers(texts: "pl.Series") -> bool:
    """Return whether a column of text is one of numbers."""
    return texts.cast(pl.Float64, strict=False).null_count() == texts.null_count()


def as_floats(column: "pl.Series") -> Floats:
    """Return a column as floats, NaN if missing; durations and times of the day in seconds."""
    if column.dtype == pl.Duration:
        column = column.dt.total_microseconds() / 1e6
    elif column.dtype == pl.Time:
        column = column.cast(pl.Int64) / 1e9
    elif column.dtype == pl.String:
        column = column.str.strip_chars()  # polars reads no number beside a space
    numbers = column.cast(pl.Float64, strict=False).to_numpy()
    return np.where(np.isfinite(numbers), numbers, np.nan)  # text may say "inf"


def cleaned(column: "pl.Series") -> "pl.Series":
    """Return a column as text, null if missing, cut if too long, and without surrounding spaces."""
    texts = column.cast(pl.String).str.head(MAX_CHARACTERS).str.strip_chars()
    missing = texts.is_in(MISSING)
    return texts.set(missing.fill_null(False), None)


def date_format(texts: "pl.Series") -> int | None:
    """Return the first format in which all texts are dates, by its number."""
    present = texts.drop_nulls()
    first, sample = present.head(1), present.head(SAMPLE_ROWS)
    if present.is_empty() or not first.str.contains(r"^[\w /.,:+-]{6,40}$")[0]:
        return None
    for number in range(len(FORMATS)):
        if all(not _parsed(some, number).null_count() for some in (first, sample, present)):
            return number
    return None


def _parsed(texts: "pl.Series", number: int) -> "pl.Series":
    return texts.str.strptime(pl.Datetime("us"), FORMATS[number], strict=False)


def _is_date(kind: "pl.DataType") -> bool:
    return kind in (pl.Date, pl.Datetime)
