"""unflip's own warnings, which one thread can silence without changing those of another."""

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_silenced: ContextVar[bool] = ContextVar("silenced", default=False)


def warn(message: str, category: type[Warning]) -> None:
    """Warn at the line that called unflip, except inside :func:`silenced`."""
    if _silenced.get():
        return
    frame, level = sys._getframe(), 1
    # decorators such as `one_blas_thread()` put a call of contextlib between two of unflip's
    while frame.f_back and frame.f_globals["__name__"].split(".")[0] in ("unflip", "contextlib"):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


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
