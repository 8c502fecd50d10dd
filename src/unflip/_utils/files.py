"""Files that are written whole or not at all."""

import errno
import os
import secrets
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

ACL = "system.posix_acl_access"
"""Attribute in which Linux keeps the access control list of a file (acl(5))."""


def write_whole(path: Path, content: str | bytes) -> None:
    """Write the content to a temporary file beside `path`, then put it in its place."""
    with whole_file(path) as temporary:
        temporary.write_bytes(content.encode() if isinstance(content, str) else content)


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Yield a temporary file beside `path`, and move it to `path` at the end.

    If writing fails, it is removed and `path` is unchanged. A link stays, and its target is
    replaced. A replaced file keeps its permissions, and its owner and group if this user may set
    them; a new one has the permissions that `open` gives. The content is on disk before it replaces
    anything, so that a power failure leaves the old file or the new one.
    """
    target = _regular(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    # a short name of its own: one made of the target's could be too long
    temporary = target.with_name(f".unflip-{secrets.token_hex(8)}")
    # The kernel applies the umask. What replaces a file is private until it has its permissions.
    mode = 0o600 if target.exists() else 0o666
    handle = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL, mode)
    try:
        try:
            yield temporary
            if os.name == "posix" and target.exists():
                _keep_access(target, handle)
            os.fsync(handle)
        finally:
            os.close(handle)  # Windows cannot rename or remove an open file
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(target.parent)


def sync_folder(folder: Path) -> None:
    """Write the names of a folder's files to disk, where the system can."""
    if not hasattr(os, "O_DIRECTORY"):  # Windows opens no folders
        return
    # Some file systems cannot, and a folder may be closed to reading. The file is in its place.
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _keep_access(old: Path, handle: int) -> None:
    """Give an open file the owner, group, permissions and access control list of another.

    It is changed by its handle, because its name may lead elsewhere by now.
    """
    before = old.stat()
    mode = stat.S_IMODE(before.st_mode)
    with suppress(OSError):  # only root gives files away
        os.fchown(handle, before.st_uid, -1)
    try:
        os.fchown(handle, -1, before.st_gid)
    except OSError:
        mode &= ~stat.S_IRWXG  # these were rights of another group
    if hasattr(os, "setxattr"):
        try:
            os.setxattr(handle, ACL, os.getxattr(old, ACL))
        except OSError as error:
            if error.errno not in (errno.ENODATA, errno.ENOTSUP):  # it has a list
                mode &= ~stat.S_IRWXG  # with one, these bits say what anyone in it may do
    os.fchmod(handle, mode)


def check_outputs(
    outputs: Mapping[str, Path | None], inputs: Iterable[Path | None] = (), *, force: bool
) -> None:
    """Raise an error if outputs cannot be written, or would overwrite another file of the command.

    To be called before long work, which would otherwise be lost.
    """
    asked = [(option, path) for option, path in outputs.items() if path is not None]
    read = [path for path in inputs if path is not None]
    for option, path in asked:
        check_no_input(path, read)
        check_free(path, force=force)
        for other, second in asked[: asked.index((option, path))]:
            if same_file(path, second):
                raise FileExistsError(
                    f"{other} and {option} are both {path}: name two different files."
                )
            if path.resolve() in second.resolve().parents:
                raise FileExistsError(f"{other} {second} is below {path}, the file of {option}.")
            if second.resolve() in path.resolve().parents:
                raise FileExistsError(f"{option} {path} is below {second}, the file of {other}.")


def check_free(path: Path, *, force: bool) -> None:
    """Raise an error if a file exists already, or its folder cannot be written to."""
    target = _regular(path)
    if target.exists() and not force:
        raise FileExistsError(f"{path} exists: choose another name, or overwrite it with --force.")
    folder = target.parent
    while not folder.exists():
        folder = folder.parent
    if not folder.is_dir():
        raise NotADirectoryError(f"{path} cannot be written: {folder} is a file, not a folder.")
    if not os.access(folder, os.W_OK):
        raise PermissionError(f"{folder} is not writable: choose another folder.")


def check_no_input(path: Path, inputs: Iterable[str | Path]) -> None:
    """Raise an error if an output is one of the files that are read, under any name or link."""
    for read in inputs:
        if same_file(path, Path(read)):
            raise FileExistsError(
                f"{path} is an input, so it cannot be written to: choose another name."
            )


def same_file(one: Path, other: Path) -> bool:
    """Return whether two names lead to the same file, which need not exist yet."""
    if one.exists() and other.exists():
        return one.samefile(other)
    return one.resolve() == other.resolve()


def _regular(path: Path) -> Path:
    """Return the target of a name, which must be a regular file or not exist yet."""
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return path.resolve()
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(f"{path} is a folder: name a file.")
    if not stat.S_ISREG(mode):
        raise FileExistsError(f"{path} is a device, a pipe or a socket: name a regular file.")
    return path.resolve()
