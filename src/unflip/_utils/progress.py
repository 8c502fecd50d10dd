"""Progress of long work: reported by inner loops to a listener, if there is one.

The reported share never decreases.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

import numpy as np


@dataclass
class _Work:
    """Units of work between two shares of the whole, and the number of units done."""

    report_to: Callable[[float], None]
    ends: Sequence[float] = (0.0, 1.0)
    done: int = 0

    def tick(self) -> None:
        self.done = min(self.done + 1, len(self.ends) - 1)
        self.report_to(self.ends[self.done])

    def unit(self) -> tuple[float, float]:
        """Return the share at which the current unit begins, and that at which it ends."""
        return self.ends[self.done], self.ends[min(self.done + 1, len(self.ends) - 1)]


_current: ContextVar[_Work | None] = ContextVar("work", default=None)


@contextmanager
def heard(report_to: Callable[[float], None]) -> Iterator[None]:
    """Call `report_to` with the share of the work inside that is done."""
    last = 0.0

    def report(share: float) -> None:
        nonlocal last
        if share > last:
            last = share
            report_to(share)

    token = _current.set(_Work(report))
    try:
        yield
    finally:
        _current.reset(token)


@contextmanager
def work(weights: int | Sequence[float]) -> Iterator[None]:
    """Divide the current unit of work into parts; :func:`tick` reports that one is done.

    Examples
    --------
    >>> from unflip._utils.progress import heard, tick, work
    >>> with heard(print), work([1, 3]):
    ...     tick()
    ...     with work(2):
    ...         tick()
    ...     tick()
    0.25
    0.625
    1.0
    """
    outer = _current.get()
    if outer is None:
        yield
        return
    start, end = outer.unit()
    lengths = np.ones(weights) if isinstance(weights, int) else np.asarray(weights, dtype=float)
    shares = np.concatenate([[0.0], lengths.cumsum() / lengths.sum()])
    token = _current.set(_Work(outer.report_to, (start + (end - start) * shares).tolist()))
    try:
        yield
    finally:
        _current.reset(token)


def tick() -> None:
    """Report that one part of the current work is done."""
    current = _current.get()
    if current is not None:
        current.tick()
