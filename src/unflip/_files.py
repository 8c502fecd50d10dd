"""Files are written whole or not at all."""

import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path


def write_whole(path: Path, content: str | bytes) -> None:
    """Write the content to a temporary file beside `path`, then put it in its place."""
    with whole_file(path) as temporary:
        temporary.write_bytes(content.encode() if isinstance(content, str) else content)


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Give a temporary file beside `path` to write to, and put it in its place at the end.

    Where writing fails, it is removed, and what was at `path` stays.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    os.close(handle)
    try:
        yield Path(name)
        # mkstemp makes files that nobody else may read
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(name, 0o666 & ~umask)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def check_free(path: Path, *, force: bool) -> None:
    """Refuse a file that is there already, or a folder that cannot be written to.

    To be asked before long work, which would else be lost.
    """
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder: name a file.")
    if path.exists() and not force:
        raise FileExistsError(f"{path} exists: choose another name, or overwrite it with --force.")
    folder = path.absolute().parent
    while not folder.exists():
        folder = folder.parent
    if not folder.is_dir():
        raise NotADirectoryError(f"{folder} is a file, and {path} is to be written below it.")
    if not os.access(folder, os.W_OK):
        raise PermissionError(f"{folder} may not be written to: choose another place.")


def check_no_input(path: Path, inputs: Iterable[str | Path]) -> None:
    """Refuse to write over a file that is read, by whatever name or link.

    Parameters
    ----------
    path : Path
        Where to write.
    inputs : iterable of str or Path
        What is read.
    """
    for read in inputs:
        if same_file(path, Path(read)):
            raise FileExistsError(f"{path} is read from, so it is not written to: name another.")


def same_file(one: Path, other: Path) -> bool:
    """Return whether two names lead to one file, there or not yet."""
    if one.exists() and other.exists():
        return one.samefile(other)
    return one.resolve() == other.resolve()
