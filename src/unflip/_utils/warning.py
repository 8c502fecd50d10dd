"""unflip's own warnings, which one thread can silence without changing those of another."""

import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import FrameType

_silenced: ContextVar[bool] = ContextVar("silenced", default=False)


NOT_THE_USERS = ("unflip", "contextlib", "sklearn", "joblib")
"""Packages whose frames may stand between a user's call and a warning: decorators such as
`one_blas_thread()`, Pipelines and searches."""

GIVEN = "__unflip_warned__"
"""Name under which a frame keeps the warnings given during its call."""


def warn(message: str, category: type[Warning]) -> None:
    """Warn at the line of the user, once per call of theirs, except inside :func:`silenced`.

    Messages that differ in numbers only count as one, since a search fits a classifier repeatedly.
    """
    if _silenced.get():
        return
    frame, level = sys._getframe(), 1
    while frame.f_back and _package(frame.f_back) in NOT_THE_USERS:
        frame, level = frame.f_back, level + 1
    # what the user called; a frame keeps names that are no variables of its function
    given = frame.f_locals.setdefault(GIVEN, set())
    kind = (category, re.sub(r"\d", "", message))
    if kind not in given:
        given.add(kind)
        warnings.warn(message, category, stacklevel=level + 1)


def _package(frame: FrameType) -> str:
    """Return the package that a frame belongs to; code that is executed may have no name."""
    name: str = frame.f_globals.get("__name__", "")
    return name.split(".")[0]


@contextmanager
def silenced() -> Iterator[None]:
    """Suppress unflip's warnings in this thread, for fits that are only steps of another one.

    `warnings.catch_warnings` would change the filters of the whole process, and permanently if two
    threads leave it in the order in which they entered.
    """
    before = _silenced.set(True)
    try:
        yield
    finally:
        _silenced.reset(before)
