"""Read and write tables: CSV, TSV, Excel, Parquet, Arrow and JSON lines, by the file's extension.

Text may be compressed by gzip or come from standard input. Invalid files raise :class:`TableError`.
Reading returns the cells as the file holds them, which are written back unchanged, and the values
inferred from them, from which models learn.
"""

import codecs
import csv
import gzip
import io
import re
import sys
import warnings
import zipfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import MAXYEAR, MINYEAR
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from unflip._utils.files import write_whole

if TYPE_CHECKING:
    import polars as pl
else:
    try:
        import polars as pl
    except ImportError as error:
        raise ImportError("tables need polars: pip install 'unflip[cli]'") from error

TEXT = {".csv": ",", ".tsv": "\t", ".tab": "\t"}
"""Column separators of text files, by extension."""

JSON_LINES = (".jsonl", ".ndjson")
ARROW = (".arrow", ".feather", ".ipc")
ENDINGS = (*TEXT, ".parquet", *ARROW, *JSON_LINES)
"""Extensions of files that unflip writes."""

EXCEL, COMPRESSED = (".xlsx",), ".gz"
READ = (*ENDINGS, *EXCEL, *(ending + COMPRESSED for ending in (*TEXT, *JSON_LINES)))
"""Extensions of files that unflip reads."""

STDIN = Path("-")
"""Name that stands for CSV from standard input."""

MISSING_VALUES = ["", "NA", "N/A", "NaN", "nan", "null", "NULL"]
"""Strings that stand for missing values in text files."""

DOUBLE = 'Quote the cell and double the quotes in it: "say ""yes"" or ""no""".'

CHUNK_BYTES = 2**20
LONGEST_LINE = 2**24
"""Maximum length of a line in bytes; longer ones could exhaust the memory."""

MAX_COLUMNS = 50_000
"""Maximum number of columns, which take 6 kB each and 1 s to read (polars 2.1). A text file of a
million columns made polars abort the process."""

MAX_EXCEL_CELLS = 10**8
"""Maximum number of cells of a worksheet, which take 8 bytes each while they are read, even empty
ones: 0.8 GB."""

LARGEST_UNPACKED = 4 * 2**30
"""Maximum size in bytes of unpacked or piped input."""


class TableError(ValueError):
    """A file or column that cannot be used."""


@dataclass(frozen=True)
class FileTable:
    """A table from a file: typed values to learn from, and cells to write back."""

    # Numbers, dates, booleans and text; missing values are null.
    values: "pl.DataFrame"
    # The same rows and columns as in the file: text for text files, typed values for others.
    cells: "pl.DataFrame"

    def take(self, rows: Any) -> "FileTable":
        """Return the rows of a mask."""
        return FileTable(self.values.filter(rows), self.cells.filter(rows))


def read_table(
    path: Path, *, separator: str | None = None, encoding: str | None = None
) -> "pl.DataFrame":
    """Return the values of a table, as :func:`read_file` infers them."""
    return read_file(path, separator=separator, encoding=encoding).values


def read_file(
    path: Path, *, separator: str | None = None, encoding: str | None = None
) -> FileTable:
    """Return the table in a file: its cells, and the values inferred from them."""
    ending = _ending(path)
    _check_encoding(path, ending, encoding)
    values: pl.DataFrame | None = None
    try:
        if ending in (*TEXT, *JSON_LINES):
            with _text_of(path, encoding) as file:
                _check_text(path, file)
                _rewind(file)
                if ending in TEXT:
                    mark = TEXT[ending] if separator is None else separator
                    values, cells = _read_text(path, file, mark)
                else:
                    cells = pl.read_ndjson(file, infer_schema_length=None)
        else:
            cells = _read_binary(path, ending)
    except (pl.exceptions.PolarsError, OSError, EOFError) as error:
        reason = str(error).strip().split("\n")[0]
        if "more fields" in reason:
            reason = (
                "a line has more fields than the header. Put quotes around values that contain "
                "the separator."
            )
        elif "malformed" in reason or "as dtype `str`" in str(error):  # all else is text
            reason = f"an unquoted cell contains a quote. {DOUBLE}"
        raise TableError(f"{path} cannot be read as {ending[1:]}: {reason}") from error
    _check_width(path, cells.width)
    if not cells.height:
        raise TableError(f"{path} holds no rows.")
    if values is None:
        values = cells
    # as a dict: in a list, polars renames columns without a name, such as pandas' index
    return FileTable(pl.DataFrame({column.name: _modelled(column) for column in values}), cells)


def unnamed(column: "pl.Series") -> "pl.Series":
    """Return a column without its name, since polars takes names such as ^x$ for patterns."""
    return column.alias("")


def _modelled(column: "pl.Series") -> "pl.Series":
    """Return a column for models: without NaN, in 64 bits, with dates of the years 1 to 9999."""
    name, column = column.name, unnamed(column)
    if column.dtype.is_float():
        return column.fill_nan(None)
    if column.dtype in (pl.Int128, pl.UInt128):
        # an integer if it fits, so that labels and identifiers stay whole numbers
        narrow = column.cast(pl.Int64, strict=False)
        same = narrow.null_count() == column.null_count()
        return narrow if same else column.cast(pl.Float64)
    if column.dtype in (pl.Date, pl.Datetime):
        years = column.dt.year()
        if years.null_count() > column.null_count():
            raise TableError(
                f"column {name!r} holds dates out of range, more than 262 000 years away: "
                "delete them, or store the column as text."
            )
        if not years.is_between(MINYEAR, MAXYEAR).fill_null(value=True).all():
            return column.cast(pl.String)  # Python has no such dates
    return column


def _check_width(path: Path, n_columns: int) -> None:
    if n_columns > MAX_COLUMNS:
        raise TableError(
            f"{path} has {n_columns:,} columns, but at most {MAX_COLUMNS:,} are supported: leave "
            "some out. Are rows and columns swapped?"
        )


def _ending(path: Path) -> str:
    """Return the extension that determines the format, or raise an error."""
    if path == STDIN:
        return ".csv"
    if not path.exists():
        raise TableError(f"{path} does not exist.")
    if not path.is_file():
        raise TableError(f"{path} is not a file.")
    check_ending(path, READ)
    if not path.stat().st_size:
        raise TableError(f"{path} is empty.")
    return path.suffixes[-2].lower() if path.suffix.lower() == COMPRESSED else path.suffix.lower()


def _check_encoding(path: Path, ending: str, encoding: str | None) -> None:
    if encoding is None:
        return
    try:
        # codecs such as zlib convert bytes to bytes
        "".encode(encoding), b"".decode(encoding)
    except (LookupError, ValueError):
        raise TableError(
            f"--encoding {encoding!r} is not known as a text encoding: try utf-8, latin-1, cp1252 "
            "or utf-16."
        ) from None
    if ending not in (*TEXT, *JSON_LINES):
        raise TableError(f"--encoding is for text files, and {path} is not one: leave it out.")


def _text_of(path: Path, encoding: str | None) -> BinaryIO:
    """Return the text of a file, unpacked and in UTF-8."""
    # opened here, since polars takes names for UTF-8 and for patterns
    if path == STDIN:
        file: BinaryIO = io.BytesIO(_within_limit(path, sys.stdin.buffer))
    elif path.suffix.lower() == COMPRESSED:
        with gzip.open(path) as packed:
            file = io.BytesIO(_within_limit(path, packed))
    else:
        file = path.open("rb")
    if encoding is None:
        return file
    with file:
        data = file.read()
    try:
        return io.BytesIO(data.decode(encoding).encode())
    except UnicodeDecodeError as error:
        line = 1 + data[: error.start].count(b"\n")
        raise TableError(f"line {line} of {path} is not {encoding}: {error.reason}.") from None
    except UnicodeError as error:  # codecs such as idna raise it without a position
        raise TableError(f"{path} is not {encoding}: {error}.") from None


def _rewind(file: BinaryIO) -> None:
    """Go to the start, also of the file descriptor, from which polars 1 reads."""
    file.seek(0, io.SEEK_END)  # outside the buffer, which this empties
    file.seek(0)


def _within_limit(path: Path, file: Any) -> bytes:
    """Return unpacked or piped input up to the maximum size."""
    data: bytes = file.read(LARGEST_UNPACKED + 1)
    if len(data) > LARGEST_UNPACKED:
        raise TableError(
            f"{path} holds more than {LARGEST_UNPACKED / 2**30:.0f} GB: save it as .parquet."
        )
    if not data:
        raise TableError(f"{'standard input' if path == STDIN else path} is empty.")
    return data


def _read_binary(path: Path, ending: str) -> "pl.DataFrame":
    with path.open("rb") as file:
        if ending == ".parquet":
            return pl.read_parquet(file)
        if ending in ARROW:
            return pl.read_ipc(file)
        return _read_excel(path, file)


def _read_excel(path: Path, file: BinaryIO) -> "pl.DataFrame":
    """Return the table in the first worksheet.

    It is the Excel table if there is exactly one; else the first non-empty row has the names.
    """
    try:
        from openpyxl import load_workbook
    except ImportError as error:
        raise ImportError("Excel files need openpyxl: pip install 'unflip[excel]'") from error
    try:
        with zipfile.ZipFile(file) as book:
            size = sum(member.file_size for member in book.infolist())
            if size > LARGEST_UNPACKED:
                raise TableError(f"{path} unpacks to {size / 2**30:.0f} GB: save it as .parquet.")
            sheets = load_workbook(file, read_only=True, data_only=True).worksheets
            if not sheets:
                raise TableError(f"{path} has no worksheet of cells, only charts.")
            tables = _excel_tables(book, sheets[0]._worksheet_path)
        # otherwise a stray cell far away makes every row that wide
        sheets[0].reset_dimensions()
        rows = sheets[0].iter_rows(values_only=True)
        if len(tables) == 1:
            left, top, right, bottom = tables[0]
            rows = (row[left - 1 : right] for row in islice(rows, top - 1, bottom))
        names, columns = _excel_columns(path, rows)
    except TableError:
        raise
    except Exception as error:  # openpyxl raises many types on damaged files
        reason = " ".join(str(error).split())[:200]
        raise TableError(
            f"{path} cannot be read as xlsx: the file is damaged ({type(error).__name__}: "
            f"{reason}). Open it in a spreadsheet program and save it again."
        ) from error
    _check_distinct(path, names)
    return pl.DataFrame(
        {name: _excel_series(name, values) for name, values in zip(names, columns, strict=True)}
    )


def _excel_tables(book: zipfile.ZipFile, sheet: str) -> list[tuple[int, int, int, int]]:
    """Return the left, top, right and bottom cells of a sheet's tables with headers."""
    from openpyxl.packaging.relationship import get_dependents, get_rels_path
    from openpyxl.utils import range_boundaries
    from openpyxl.worksheet.table import Table
    from openpyxl.xml.functions import fromstring

    relations = get_rels_path(sheet)
    if relations not in book.namelist():
        return []
    found = []
    for relation in get_dependents(book, relations):
        if relation.Type.endswith("/table"):
            table = Table.from_tree(fromstring(book.read(relation.target)))
            left, top, right, bottom = range_boundaries(table.ref)
            if table.headerRowCount != 0:
                found.append((left, top, right, bottom - (table.totalsRowCount or 0)))
    return found


def _excel_columns(
    path: Path, rows: Iterator[Sequence[object]]
) -> tuple[list[str], list[list[object]]]:
    """Return the names and cells of the named columns, without empty rows."""
    header = next((row for row in rows if any(cell is not None for cell in row)), ())
    places = [k for k, name in enumerate(header) if name is not None]
    columns: list[list[object]] = [[] for _ in places]
    nameless = 0
    for row in rows:
        cells = [row[k] if k < len(row) else None for k in places]
        n_filled = sum(cell is not None for cell in cells)
        nameless += sum(cell is not None for cell in row) - n_filled
        if not n_filled:
            continue
        for column, cell in zip(columns, cells, strict=True):
            column.append(cell)
        if len(places) * len(columns[0]) > MAX_EXCEL_CELLS:
            raise TableError(
                f"{path} has more than {MAX_EXCEL_CELLS:,} cells: save it as .parquet or .csv."
            )
    if nameless:
        warnings.warn(
            f"{path}: {nameless:,} cells are skipped: their columns have no name in the first row.",
            stacklevel=2,
        )
    return [str(header[k]) for k in places], columns


def _excel_series(name: str, values: list[object]) -> "pl.Series":
    """Return cells as a column of their type, or as text if the types differ."""
    kinds = {type(value) for value in values if value is not None}
    whole = [value for value in values if type(value) is int]
    if kinds == {int} and all(-(2**63) <= value < 2**63 for value in whole):
        return pl.Series(name, values, dtype=pl.Int64)
    # above 2^53 floats skip whole numbers
    if kinds == {int, float} and all(abs(value) <= 2**53 for value in whole):
        return pl.Series(name, values, dtype=pl.Float64, strict=False)
    if len(kinds) <= 1 and kinds != {int}:
        return pl.Series(name, values)
    return pl.Series(name, [_excel_text(value) for value in values], dtype=pl.String)


def _excel_text(value: object) -> str | None:
    if isinstance(value, bool):
        return str(value).lower()  # as in polars
    return None if value is None else str(value)


def for_format(table: FileTable, path: Path) -> "pl.DataFrame":
    """Return the cells of a table as they are written to a file of this name.

    Typed formats get a text column in its inferred type if this loses nothing, that is if every
    value as text is the cell that was read: `00501` and `0.60` stay text.
    """
    if path.suffix.lower() in TEXT:
        return table.cells
    return table.cells.with_columns(
        values
        for values, cells in zip(table.values, table.cells, strict=True)
        if cells.dtype == pl.String
        and values.dtype != pl.String
        and unnamed(values).cast(pl.String).eq_missing(unnamed(cells)).all()
    )


def write_table(table: "pl.DataFrame", path: Path) -> None:
    """Write a table in the format of the file's extension, whole or not at all."""
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
    """Reject, before long work, a table with a column that the file's format cannot hold."""
    ending = path.suffix.lower()
    for name, kind in table.schema.items():
        is_bytes = kind in (pl.Binary, pl.Object)
        if (ending in JSON_LINES and is_bytes) or (
            ending in TEXT and (is_bytes or kind.is_nested() or kind == pl.Duration)
        ):
            raise TableError(
                f"column {name!r} holds {kind}, which {ending} files cannot store: write .parquet, "
                "or remove the column from the table."
            )


def check_ending(path: Path, endings: Sequence[str] = ENDINGS) -> None:
    """Raise an error unless the file has one of the extensions."""
    if not path.name.lower().endswith(tuple(endings)):
        raise TableError(
            f"{path}: the name must end in one of {', '.join(endings)}, which is the format."
        )


def listed(names: Sequence[object], most: int = 20) -> str:
    """Return names as a comma-separated list, truncated after the first `most`."""
    shown = ", ".join(repr(name) for name in names[:most])
    return shown + (f", ... ({len(names)} in all)" if len(names) > most else "")


def _check_text(path: Path, file: BinaryIO) -> None:
    """Reject what is not lines of UTF-8 text, before anything loads it into memory."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    line, length = 1, 0
    while chunk := file.read(CHUNK_BYTES):
        if line == 1 and chunk.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            raise TableError(f"{path} is not UTF-8 but UTF-16: add --encoding utf-16")
        if b"\0" in chunk:
            raise TableError(
                f"{path} holds binary data, not UTF-8 text: give it the extension of its format, "
                f"one of {', '.join(READ)}."
            )
        try:
            decoder.decode(chunk)
        except UnicodeDecodeError as error:
            at = line + error.object[: error.start].count(b"\n")
            raise TableError(
                f"line {at} of {path} is not UTF-8 (byte 0x{error.object[error.start]:02x}): the "
                f"file is probably {_likely_encoding(chunk)}. Add --encoding "
                f"{_likely_encoding(chunk)}"
            ) from error
        first, last = chunk.find(b"\n"), chunk.rfind(b"\n")
        length += len(chunk) if first < 0 else first
        if length > LONGEST_LINE:
            raise TableError(
                f"line {line} of {path} is longer than {LONGEST_LINE / 2**20:.0f} MB. Look for a "
                "quote that is never closed, or for missing line ends."
            )
        if first >= 0:
            length = len(chunk) - last - 1
            line += chunk.count(b"\n")


def _likely_encoding(chunk: bytes) -> str:
    """Return the likely encoding of western text that is not UTF-8."""
    # 0x80 to 0x9f are quotes, dashes and the euro sign in cp1252, and nothing in latin-1
    special = any(0x80 <= byte <= 0x9F for byte in chunk)
    try:
        chunk.decode("cp1252")
    except UnicodeDecodeError:
        return "latin-1"
    return "cp1252" if special else "latin-1"


def _read_text(path: Path, file: BinaryIO, separator: str) -> tuple["pl.DataFrame", "pl.DataFrame"]:
    """Return the values inferred from a text file, and the text of its cells."""
    if len(separator.encode()) != 1:
        raise TableError(f"the separator must be one character, got {separator!r}.")
    head = file.readline().decode(errors="replace").strip()
    others = [mark for mark in ";\t|," if mark in head and mark != separator]
    if others and separator not in head:
        raise TableError(
            f"{path} has one column, {head!r}: its columns seem to be separated by {others[0]!r}, "
            f"not {separator!r}. Add --separator {others[0]!r}"
        )
    _rewind(file)
    names = _header(path, file, separator)
    _check_width(path, len(names))
    _check_distinct(path, names)
    _check_quotes(path, file, separator)
    _rewind(file)
    cells = pl.read_csv(file, separator=separator, infer_schema=False)
    # by position, since polars leaves the quotes of a name doubled
    known = dict(zip(cells.columns, names, strict=False)) if len(names) == cells.width else {}
    values = _inferred(file, separator, cells.columns)
    return values.rename(known), cells.rename(known)


def _inferred(file: BinaryIO, separator: str, names: Sequence[str]) -> "pl.DataFrame":
    """Return the table with inferred types.

    Columns that polars cannot read in the type that it infers become text, such as whole numbers of
    more than 128 bits and dates in several formats.
    """
    texts: dict[str, type[pl.String]] = {}
    while True:
        _rewind(file)
        try:
            return pl.read_csv(
                file,
                separator=separator,
                null_values=MISSING_VALUES,
                try_parse_dates=True,
                infer_schema_length=None,
                schema_overrides=texts,
            )
        except pl.exceptions.PolarsError as error:
            text = _unparsed(str(error), names)
            if text is None or text in texts:
                raise
            texts[text] = pl.String


def _unparsed(error: str, names: Sequence[str]) -> str | None:
    """Return the column that polars could not read, from its error message."""
    number = re.search(r"could not parse .* \(column number (\d+)\)", error, re.DOTALL)
    if number is not None:
        return names[int(number[1]) - 1]
    # times of day in several formats
    name = re.search(r"conversion from .* failed in column '(.*)' for \d+ out of", error, re.DOTALL)
    return name[1] if name is not None and name[1] in names else None


def _check_quotes(path: Path, file: BinaryIO, separator: str) -> None:
    """Reject a cell that continues after its closing quote; polars would drop its quotes."""
    _rewind(file)
    data = file.read()
    start = len(codecs.BOM_UTF8) if data.startswith(codecs.BOM_UTF8) else 0
    # unquoted cells, to the end of one that holds a quote; or a quoted cell
    cells = rb'(?:[^"]++(?:(?<![%b\n])"[^%b\n]*+)?+|"(?:[^"]++|"")*+"(?=%b|\r?\n|\Z))*+'
    mark = re.escape(separator.encode())
    found = re.compile(cells % (mark, mark, mark)).match(data, start)
    if found is not None and found.end() < len(data):
        line = 1 + data.count(b"\n", 0, found.end())
        raise TableError(
            f"line {line} of {path}: a cell has no closing quote, or goes on after it. {DOUBLE}"
        )


def _header(path: Path, file: BinaryIO, separator: str) -> list[str]:
    """Return the column names in the first line."""
    lines = (line.decode("utf-8-sig", errors="replace") for line in file)
    try:
        return next((names for names in csv.reader(lines, delimiter=separator) if names), [])
    except csv.Error as error:
        raise TableError(
            f"the first line of {path} cannot be read as names of columns: {error}."
        ) from error


def _check_distinct(path: Path, names: Sequence[str]) -> None:
    """Reject two columns with the same name, which options could not tell apart."""
    name, count = max(Counter(names).items(), key=lambda item: item[1], default=("", 0))
    if count > 1:
        raise TableError(f"{path} has two columns called {name!r}: rename one of them.")
