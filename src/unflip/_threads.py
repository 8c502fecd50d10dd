"""Rows shared out among threads, in place of BLAS's own."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from itertools import pairwise
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

T = TypeVar("T")

LEAST_ROWS = 2**15
"""A slice of so many rows is worth a thread's while."""

_allowed: ContextVar[int | None] = ContextVar("allowed", default=None)
"""How many threads BLAS had before it was kept to one."""


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Keep BLAS to one thread; :func:`by_threads` may have as many as BLAS had.

    Matrices of a hundred columns are too small for more: threads would mostly wait for each other,
    and where other programs use the processor too, for long.
    """
    if _allowed.get() is not None:  # it already is
        yield
        return
    before = _allowed.set(_n_threads())
    try:
        with _blas().limit(limits=1):
            yield
    finally:
        _allowed.reset(before)


@contextmanager
def threads_for(n_rows: int) -> Iterator[None]:
    """Keep BLAS and OpenMP to one thread where there are few rows.

    Many small fits, as of trees on folds, mostly wait for each other's threads: on a busy machine a
    fit of 600 rows may take minutes instead of a tenth of a second.

    Parameters
    ----------
    n_rows : int
        How many rows there are.
    """
    if n_rows >= LEAST_ROWS:
        yield
        return
    with one_blas_thread(), _openmp().limit(limits=1):
        yield


def by_threads(work: Callable[[slice], T], n_items: int, n_rows: int) -> list[T]:
    """Return work(items) of consecutive slices of all items, shared out among threads.

    There are at most as many threads as BLAS may use, which is kept to one in each of them. The
    slices do not depend on how many, so that neither do the results, to the last bit.

    Parameters
    ----------
    work : callable
        What to do with some items; numpy works on them in parallel.
    n_items : int
        How many items there are: rows, or blocks of rows.
    n_rows : int
        How many rows they have: few of them are left to one thread.
    """
    with one_blas_thread():
        n_slices = max(1, min(n_items, n_rows // LEAST_ROWS))
        edges = [n_items * k // n_slices for k in range(n_slices + 1)]
        slices = [slice(*ends) for ends in pairwise(edges)]
        n_threads = min(n_slices, _n_threads())
        if n_threads < 2:
            return [work(some) for some in slices]
        with ThreadPoolExecutor(n_threads) as pool:
            return list(pool.map(work, slices))


def _n_threads() -> int:
    allowed = _allowed.get()
    if allowed is not None:
        return allowed
    return min((library.num_threads for library in _blas().lib_controllers), default=1)


@cache
def _openmp() -> Any:
    """Return what controls the threads of scikit-learn's compiled loops."""
    return ThreadpoolController().select(user_api="openmp")


@cache
def _blas() -> Any:
    """Return what controls numpy's and scipy's BLAS; to look for them takes ten milliseconds."""
    return ThreadpoolController().select(user_api="blas")
