"""Files are written whole or not at all."""

import os
import tempfile
from pathlib import Path


def write_whole(path: Path, content: str | bytes) -> None:
    """Write the content to a temporary file beside `path`, then put it in its place."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
        # mkstemp makes files that nobody else may read
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, 0o666 & ~umask)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
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
