"""Work on rows split among threads, with BLAS limited to one."""

import os
import re
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from functools import cache
from itertools import pairwise
from threading import RLock
from typing import Any, TypeVar

from numpy.exceptions import ComplexWarning, VisibleDeprecationWarning
from threadpoolctl import OpenBLASController, ThreadpoolController

T = TypeVar("T")

ROWS_PER_THREAD = 2**15
"""Minimum number of rows per thread."""

_is_worker: ContextVar[bool] = ContextVar("is_worker", default=False)
"""Whether this thread is one of those that :func:`by_threads` starts."""

SCIKIT_LEARN = RLock()
"""Lock that is held while scikit-learn grows trees.

Its `Parallel`, which bins columns and grows forests, exchanges the warning filters of the whole
process meanwhile: two threads that leave it in the order in which they entered would leave the
filters changed.
"""


EXCHANGED = [
    ("error", None, ComplexWarning, None, 0),
    ("error", None, VisibleDeprecationWarning, None, 0),
]
"""Filters that scikit-learn's `check_array` and `type_of_target` put first for a moment.

Every fit calls them, in places that no lock can hold: they too leave the filters changed where
another thread comes between.
"""


class _OneBlasThread:
    """Keeps the BLAS of the whole process to one thread while anybody asks for it.

    The first to enter saves and limits the number of threads, the last to leave restores it. So
    they do with the filters of warnings, as far as scikit-learn has exchanged them.
    """

    def __init__(self) -> None:
        self.lock = RLock()
        self.n_users = 0
        self.n_before = 1
        self.limit: Any = None
        self.filters: Any = warnings.filters

    def __enter__(self) -> None:
        with self.lock:
            if self.n_users == 0:
                self.n_before = _n_blas_threads()
                with _control_of_openblas():
                    self.limit = _blas().limit(limits=1)
                self.filters = warnings.filters
            self.n_users += 1

    def __exit__(self, *error: object) -> None:
        with self.lock:
            self.n_users -= 1
            if self.n_users == 0:
                with _control_of_openblas():
                    self.limit.restore_original_limits()
                # what anybody else has changed meanwhile stays
                if _own(warnings.filters) == _own(self.filters):
                    warnings.filters = self.filters

    def n_allowed(self) -> int:
        """Return how many threads BLAS has when nobody limits it here."""
        with self.lock:
            return self.n_before if self.n_users else _n_blas_threads()


def _own(filters: Any) -> list[tuple[Any, ...]]:
    """Return filters without those of scikit-learn; patterns, which it compiles, as their text."""
    return [
        tuple(part.pattern if isinstance(part, re.Pattern) else part for part in each)
        for each in filters
        if each not in EXCHANGED
    ]


@contextmanager
def _control_of_openblas() -> Iterator[None]:
    """Let this thread set the number of threads that OpenBLAS may use.

    Since 3.8 threadpoolctl ignores every thread but the first that sets it, for as long as that one
    lives. Here the thread that restores the number need not be the one that limited it.
    """
    release = getattr(OpenBLASController, "clear_controlling_thread", lambda force: None)
    release(force=True)
    try:
        yield
    finally:
        release(force=True)


_one_blas_thread = _OneBlasThread()

if hasattr(os, "register_at_fork"):  # a process forked from a thread must not inherit a held lock
    for _lock in (SCIKIT_LEARN, _one_blas_thread.lock):
        os.register_at_fork(
            before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release
        )


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Keep BLAS to one thread; :func:`by_threads` may have as many as BLAS had.

    With more threads BLAS adds up in another order, so that the last bits of a result would depend
    on their number: every public fit and prediction is within this context. Little is lost by it.
    Matrices of a hundred columns are too small for more threads, which would mostly wait for each
    other, and where other programs use the processor too, for long.
    """
    with _one_blas_thread:
        yield


@contextmanager
def threads_for(n_rows: int) -> Iterator[None]:
    """Keep BLAS to one thread, and OpenMP too where there are few rows.

    Many small fits, as of trees on folds, mostly wait for each other's threads: on a busy machine a
    fit of 600 rows may take minutes instead of a tenth of a second.
    """
    # OpenMP counts by thread, so that a limit needs no lock: each thread restores its own number
    trees = nullcontext() if n_rows >= ROWS_PER_THREAD else _openmp().limit(limits=1)
    with one_blas_thread(), trees:
        yield


def by_threads(work: Callable[[slice], T], n_items: int, n_rows: int) -> list[T]:
    """Return work(items) of consecutive slices of all items, shared out among threads.

    There are at most as many threads as BLAS may use, which is kept to one in each of them. The
    slices do not depend on how many, so that neither do the results, to the last bit.
    """
    with one_blas_thread():
        n_slices = max(1, min(n_items, n_rows // ROWS_PER_THREAD))
        edges = [n_items * k // n_slices for k in range(n_slices + 1)]
        slices = [slice(*ends) for ends in pairwise(edges)]
        n_threads = 1 if _is_worker.get() else min(n_slices, _one_blas_thread.n_allowed())
        if n_threads < 2:
            return [work(some) for some in slices]
        with ThreadPoolExecutor(n_threads, initializer=_is_worker.set, initargs=(True,)) as pool:
            return list(pool.map(work, slices))


def _n_blas_threads() -> int:
    """Return how many threads BLAS may use now."""
    return min((library.num_threads for library in _blas().lib_controllers), default=1)


@cache
def _openmp() -> Any:
    """Return what controls the threads of scikit-learn's compiled loops."""
    return ThreadpoolController().select(user_api="openmp")


@cache
def _blas() -> Any:
    """Return what controls numpy's and scipy's BLAS; to look for them takes ten milliseconds."""
    return ThreadpoolController().select(user_api="blas")
