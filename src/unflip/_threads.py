"""Rows shared out among threads."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import TypeVar

from threadpoolctl import ThreadpoolController

T = TypeVar("T")

LEAST_ROWS = 2**15
"""A thread is worth its while for so many rows."""


def by_threads(work: Callable[[slice], T], n_items: int, n_rows: int) -> list[T]:
    """Return work(items) of consecutive slices of all items, each in a thread of its own.

    There are as many threads as BLAS may use, which is kept to one thread in each of them: on
    blocks of rows that fit in the processor's cache, threads of its own would mostly wait.

    Parameters
    ----------
    work : callable
        What to do with some items; numpy works on them in parallel.
    n_items : int
        How many items there are: rows, or blocks of rows.
    n_rows : int
        How many rows they have: few of them are left to one thread.
    """
    most = min(n_items, n_rows // LEAST_ROWS)
    if most < 2:
        return [work(slice(0, n_items))]
    blas = ThreadpoolController().select(user_api="blas")
    n_threads = min([most, *(library.num_threads for library in blas.lib_controllers)])
    if n_threads < 2:
        return [work(slice(0, n_items))]
    edges = [n_items * k // n_threads for k in range(n_threads + 1)]
    with blas.limit(limits=1), ThreadPoolExecutor(n_threads) as pool:
        return list(pool.map(work, [slice(*ends) for ends in pairwise(edges)]))
