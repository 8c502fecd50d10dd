"""unflip's own warnings, which one thread can silence without changing those of another."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_silenced: ContextVar[bool] = ContextVar("silenced", default=False)


def warn(message: str, category: type[Warning], *, stacklevel: int) -> None:
    """Do what `warnings.warn` does, except inside :func:`silenced`."""
    if not _silenced.get():
        warnings.warn(message, category, stacklevel=stacklevel + 1)


@contextmanager
def silenced() -> Iterator[None]:
    """Give no warning of unflip's in this thread, for fits that are only steps of another one.

    `warnings.catch_warnings` would exchange the filters of the whole process: two threads that
    leave it in the order in which they entered lose each other's warnings, and the filters stay
    changed. Warnings of other packages are left to them and to the user.
    """
    before = _silenced.set(True)
    try:
        yield
    finally:
        _silenced.reset(before)
