"""Pictures named by a column, read from one folder only."""

import os
import stat
import weakref
from pathlib import Path

from unflip._app.review._table import Column

MAX_BYTES = 20 * 2**20
"""Maximum size of a picture in bytes."""

N_TRIED = 50
"""Number of cells tested to decide whether a column names files."""

MAGIC = (
    (0, b"\x89PNG\r\n\x1a\n", "image/png"),
    (0, b"\xff\xd8\xff", "image/jpeg"),
    (0, b"GIF87a", "image/gif"),
    (0, b"GIF89a", "image/gif"),
    (8, b"WEBP", "image/webp"),
)
"""Position and bytes that identify a kind of picture. Nothing else is sent, whatever its name."""


# Links are not followed, and opening a pipe does not wait for a writer. Windows has only O_BINARY.
READ = (
    os.O_RDONLY
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_BINARY", 0)
)
"""Flags that open a picture."""

# O_PATH, on Linux, needs no permission to list the folder
ENTER = (
    getattr(os, "O_DIRECTORY", 0)
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_PATH", os.O_RDONLY)
)
"""Flags that open a folder, to open what is in it."""


class ImageError(Exception):
    """The reason that a picture is not shown."""


class Images:
    """The pictures of a table.

    The browser names a row and a column, never a path. A path out of the folder, even through a
    symbolic link, is rejected, and so is content that is not a picture. The folder itself may be a
    link, which is followed once at the start; links inside may lead to places in the folder.
    """

    def __init__(self, folder: Path, columns: list[Column]) -> None:
        if not folder.is_dir():
            raise ValueError(f"the folder of pictures {folder} does not exist.")
        self._folder = folder.resolve()
        self._handle = None
        if os.open in os.supports_dir_fd:
            # pictures come from this folder, even if its name leads elsewhere later
            self._handle = os.open(self._folder, ENTER)
            weakref.finalize(self, os.close, self._handle)
        self.columns = {k: column for k, column in enumerate(columns) if self._names_files(column)}
        if not self.columns:
            raise ValueError(
                f"no column of the table names files in {folder}: a column of pictures holds "
                "paths relative to that folder, such as cats/1.jpg."
            )

    def _names_files(self, column: Column) -> bool:
        levels = column.levels[:: max(1, len(column.levels) // N_TRIED)]
        return bool(levels) and 2 * sum(self._is_file(level) for level in levels) >= len(levels)

    def _is_file(self, cell: str) -> bool:
        try:
            return os.path.isfile(self._path(cell))  # false where a name is too long
        except ImageError:
            return False

    def _path(self, cell: str) -> Path:
        """Return the real path of a cell, if it lies in the folder."""
        try:
            path = (self._folder / cell).resolve()
        except (OSError, ValueError, RuntimeError) as error:
            raise ImageError(f"it is not a path: {error}") from error
        if not path.is_relative_to(self._folder):
            raise ImageError("it is not in the folder of pictures")
        return path

    def read(self, row: int, column: int) -> tuple[bytes, str]:
        """Return a picture and its content type."""
        if column not in self.columns:
            raise ImageError(f"column {column} does not hold pictures")
        cell = self.columns[column].text(row)
        if cell is None:
            raise ImageError("the cell is empty")
        try:
            handle = self._opened(self._path(cell))
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                os.close(handle)  # open() would leave a folder's handle open
                raise ImageError("it is not a file")
            with open(handle, "rb") as file:
                content = file.read(MAX_BYTES + 1)
        except OSError as error:
            raise ImageError(f"it cannot be read: {error.strerror}") from error
        if len(content) > MAX_BYTES:
            raise ImageError(f"it has more than {MAX_BYTES // 2**20} MB")
        return content, _kind(content)

    def _opened(self, path: Path) -> int:
        """Open a real path in the folder; no part of it may have become a link."""
        if self._handle is None:
            # Windows cannot open relative to a folder: a link that exists only between the two
            # checks of the path goes unnoticed
            opened = os.open(path, READ)
            if path.resolve() != path:
                os.close(opened)
                raise ImageError("it was moved while it was read")
            return opened
        *folders, name = path.relative_to(self._folder).parts or (".",)
        at = os.dup(self._handle)
        try:
            for folder in folders:
                inner = os.open(folder, ENTER, dir_fd=at)
                os.close(at)
                at = inner
            return os.open(name, READ, dir_fd=at)
        finally:
            os.close(at)


def _kind(content: bytes) -> str:
    for start, magic, kind in MAGIC:
        riff = kind != "image/webp" or content.startswith(b"RIFF")
        if riff and content[start : start + len(magic)] == magic:
            return kind
    raise ImageError("it is not PNG, JPEG, GIF or WebP")
