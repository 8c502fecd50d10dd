"""Read tables from files, and write them.

CSV, TSV, Excel, Parquet, Arrow and JSON lines, by the ending of the name; text also compressed by
gzip, and from standard input. A file that is no table is refused with :class:`TableError`, which
says where and what to do.
"""

import codecs
import gzip
import io
import re
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from unflip._files import write_whole

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
"""Of files that are written."""

EXCEL, COMPRESSED = (".xlsx",), ".gz"
READ = (*ENDINGS, *EXCEL, *(ending + COMPRESSED for ending in (*TEXT, *JSON_LINES)))
"""Of files that are read."""

STDIN = Path("-")
"""In the place of a file: CSV from standard input."""

MISSING_VALUES = ["", "NA", "N/A", "NaN", "nan", "null", "NULL"]
"""Strings that are read as missing values in text files."""

CHUNK_BYTES = 2**20
LONGEST_LINE = 2**24
"""Maximum length of a line in bytes: longer ones could exhaust the memory."""

LARGEST_UNPACKED = 4 * 2**30
"""Maximum size in bytes of what is unpacked, or piped in: a small file may hold any number."""


class TableError(ValueError):
    """A file or a column that cannot be used as asked."""


def read_table(
    path: Path, *, separator: str | None = None, encoding: str | None = None
) -> "pl.DataFrame":
    """Return the table that a file holds.

    Parameters
    ----------
    path : Path
        A file whose name ends in .csv, .tsv, .parquet, .arrow, .feather, .jsonl, .xlsx or the
        like; .csv.gz and the like too; - is CSV from standard input.
    separator : str, default=None
        One character between the columns of a text file. None: a comma, or a tab in .tsv.
    encoding : str, default=None
        Of a text file, such as "latin-1". None: UTF-8.
    """
    ending = _ending(path)
    _check_encoding(path, ending, encoding)
    try:
        if ending in (*TEXT, *JSON_LINES):
            with _text_of(path, encoding) as file:
                _check_text(path, file)
                _rewind(file)
                if ending in TEXT:
                    table = _read_text(path, file, TEXT[ending] if separator is None else separator)
                else:
                    table = pl.read_ndjson(file, infer_schema_length=None)
        else:
            table = _read_binary(path, ending)
    except (pl.exceptions.PolarsError, OSError, EOFError) as error:
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


def _ending(path: Path) -> str:
    """Return the ending that says the format, or raise an error if nothing can be read."""
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
        codecs.lookup(encoding)
    except LookupError:
        raise TableError(
            f"--encoding {encoding!r} is not known: try utf-8, latin-1, cp1252 or utf-16."
        ) from None
    if ending not in (*TEXT, *JSON_LINES):
        raise TableError(f"--encoding is for text, and {path} is none: leave it out.")


def _text_of(path: Path, encoding: str | None) -> BinaryIO:
    """Return the text of a file, unpacked and in UTF-8."""
    # opened here, since to polars a name is UTF-8 and may be a pattern
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


def _rewind(file: BinaryIO) -> None:
    """Go back to the start, with the descriptor below the buffer, from which polars 1 reads."""
    file.seek(0, io.SEEK_END)  # a place outside the buffer, which is dropped
    file.seek(0)


def _within_limit(path: Path, file: Any) -> bytes:
    """Return what is packed, or piped in, up to a size that memory holds."""
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
        try:
            with zipfile.ZipFile(file) as book:
                size = sum(member.file_size for member in book.infolist())
            if size > LARGEST_UNPACKED:
                raise TableError(f"{path} unpacks to {size / 2**30:.0f} GB: save it as .parquet.")
            file.seek(0)
            return pl.read_excel(io.BytesIO(file.read()), engine="openpyxl")
        except ImportError as error:
            raise ImportError("Excel files need openpyxl: pip install 'unflip[excel]'") from error
        except (KeyError, zipfile.BadZipFile) as error:
            raise TableError(f"{path} cannot be read as xlsx: {error}") from error


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
    if not path.name.lower().endswith(tuple(endings)):
        raise TableError(
            f"{path}: the name must end in one of {', '.join(endings)}, which says the format."
        )


def listed(names: Sequence[object], most: int = 20) -> str:
    """Return names as a comma-separated list, truncated after the first ones."""
    shown = ", ".join(repr(name) for name in names[:most])
    return shown + (f", ... ({len(names)} in all)" if len(names) > most else "")


def _check_text(path: Path, file: BinaryIO) -> None:
    """Refuse what is not text of lines in UTF-8, before anything tries to hold it in memory."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    line, length = 1, 0
    while chunk := file.read(CHUNK_BYTES):
        if line == 1 and chunk.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            raise TableError(f"{path} is not UTF-8 but UTF-16. Say so: --encoding utf-16")
        if b"\0" in chunk:
            raise TableError(
                f"{path} holds binary data, not text in UTF-8: does its name tell its format? "
                f"Known endings: {', '.join(READ)}."
            )
        try:
            decoder.decode(chunk)
        except UnicodeDecodeError as error:
            at = line + error.object[: error.start].count(b"\n")
            raise TableError(
                f"line {at} of {path} is not UTF-8 (byte 0x{error.object[error.start]:02x}): the "
                f"file is probably {_likely_encoding(chunk)}. Say so: --encoding "
                f"{_likely_encoding(chunk)}"
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


def _likely_encoding(chunk: bytes) -> str:
    """Return which encoding of western text bytes are in, not being UTF-8."""
    # 0x80 to 0x9f are quotes, dashes and the euro in Windows' code page, and nothing in latin-1
    special = any(0x80 <= byte <= 0x9F for byte in chunk)
    try:
        chunk.decode("cp1252")
    except UnicodeDecodeError:
        return "latin-1"
    return "cp1252" if special else "latin-1"


def _read_text(path: Path, file: BinaryIO, separator: str) -> "pl.DataFrame":
    if len(separator.encode()) != 1:
        raise TableError(f"the separator must be one character, got {separator!r}.")
    head = file.readline().decode(errors="replace").strip()
    others = [mark for mark in ";\t|," if mark in head and mark != separator]
    if others and separator not in head:
        raise TableError(
            f"{path} has one column, {head!r}: its columns seem to be separated by {others[0]!r}, "
            f"not {separator!r}. Say so: --separator {others[0]!r}"
        )
    _rewind(file)
    table = pl.read_csv(
        file,
        separator=separator,
        null_values=MISSING_VALUES,
        try_parse_dates=True,
        infer_schema_length=None,
    )
    for name in table.columns:
        twin = re.fullmatch(r"(.*)_duplicated_\d+", name)
        if twin and twin[1] in table.columns:
            raise TableError(f"{path} has two columns called {twin[1]!r}: rename one of them.")
    return table
