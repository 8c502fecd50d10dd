"""Rows that lie in blocks: what is asked of them, what is counted, and how some are fetched."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import _safe_indexing
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length

from unflip._validation import MINIMUM_ROWS, check_labels, check_weights, plain_labels

Array = NDArray[Any]
Floats = NDArray[np.float64]
T = TypeVar("T")


class Blocks(ABC):
    """Rows, noisy labels and the rows' own weights, in blocks whose order does not change.

    A weight block is None where every row counts once. Kernels are pure functions of a block, so
    that one may be run again.
    """

    @abstractmethod
    def map_labels(self, kernel: Callable[[Any, Any], T]) -> list[T]:
        """Return kernel(y, weight) of every block, in order."""

    @abstractmethod
    def map_each(
        self, kernel: Callable[[Any, Any, Any, Any, Any], T], own: Sequence[Any], shared: Any
    ) -> list[T]:
        """Return kernel(X, y, weight, own[k], shared) of every block k, in order."""

    @abstractmethod
    def head(self, k: int) -> Any:
        """Return the first rows of block k, as they are."""

    @abstractmethod
    def sum(self, kernel: Callable[[Any, Any, Any, Any], T], shared: Any) -> T:
        """Return the sum of kernel(X, y, weight, shared) over all blocks."""


def first_rows(X: Any) -> Any:
    """Return a few rows of a block, for their columns.

    Parameters
    ----------
    X : {array, sparse matrix, dataframe} of shape (n_rows, n_features)
        A block with rows.
    """
    return _safe_indexing(X, np.arange(min(2, X.shape[0])))


@dataclass(frozen=True)
class Counts:
    """What a first pass over the labels tells.

    Parameters
    ----------
    classes : ndarray of shape (n_classes,)
        The labels, sorted.
    n_rows : ndarray of shape (n_blocks, n_classes)
        Rows of each block and class that count.
    mass : ndarray of shape (n_classes,)
        The sums of their weights.
    n_all : int
        All rows, also those that do not count.
    """

    classes: Array
    n_rows: NDArray[np.int64]
    mass: Floats
    n_all: int


def counted(blocks: Blocks) -> Counts:
    """Return how many rows of which class every block has.

    Parameters
    ----------
    blocks : Blocks
        The noisy data.
    """
    found = blocks.map_labels(_label_counts)
    n_counting = int(sum(part.n_rows.sum() for part in found))
    if n_counting < MINIMUM_ROWS:
        raise ValueError(
            f"Found {n_counting} rows that count, at least {MINIMUM_ROWS} are required: label "
            "noise cannot be told apart from chance on fewer."
        )
    labels = np.concatenate([part.labels for part in found if part.labels.size])
    classes = check_labels(labels, binary=False)[0]
    n_rows = np.zeros((len(found), classes.size), dtype=np.int64)
    mass = np.zeros(classes.size)
    for block, part in zip(n_rows, found, strict=True):
        places = np.searchsorted(classes, part.labels)
        block[places] = part.n_rows
        mass[places] += part.mass
    return Counts(classes, n_rows, mass, sum(part.n_all for part in found))


@dataclass(frozen=True)
class _LabelCounts:
    labels: Array
    n_rows: NDArray[np.int64]
    mass: Floats
    n_all: int


def _label_counts(y: Any, weight: Any) -> _LabelCounts:
    if not len(y):
        return _LabelCounts(np.empty(0), np.empty(0, dtype=np.int64), np.empty(0), 0)
    labels = plain_labels(y)
    check_classification_targets(labels)
    own = own_weight(weight, len(labels))
    found, codes = np.unique(labels, return_inverse=True)
    counts = codes if own is None else codes[own > 0]
    return _LabelCounts(
        found,
        np.bincount(counts, minlength=found.size),
        np.bincount(codes, own, minlength=found.size).astype(float),
        labels.size,
    )


def label_codes(y: Any, classes: Array) -> NDArray[np.intp]:
    """Return the place of every label of a block among the classes.

    Parameters
    ----------
    y : array-like of shape (n_rows,)
        The labels.
    classes : ndarray of shape (n_classes,)
        The labels of all blocks, sorted.
    """
    return check_labels(y, classes=classes, binary=False)[1]


@dataclass(frozen=True)
class Wanted:
    """Positions among the rows that count, of all classes or of one.

    Parameters
    ----------
    positions : ndarray of shape (n,)
        Positions, from the first block to the last, in any order.
    n_rows : ndarray of shape (n_blocks,)
        How many rows of each block they count.
    label : object, default=None
        The class; None: all.
    """

    positions: Array
    n_rows: Array
    label: Any = None

    def by_block(self) -> list["_WantedHere"]:
        """Return each block's positions, rising, within the block."""
        rising = np.sort(self.positions)
        ends = np.cumsum(self.n_rows)
        cuts = np.searchsorted(rising, ends)
        return [
            _WantedHere(rising[first:last] - start, end - start, self.label)
            for first, last, start, end in zip(
                [0, *cuts[:-1]], cuts, [0, *ends[:-1]], ends, strict=True
            )
        ]

    def in_order(self, found: Any) -> Any:
        """Return what was found for rising positions in the order of the positions."""
        if (np.diff(self.positions) > 0).all():
            return found
        order = np.empty(self.positions.size, dtype=np.intp)
        order[np.argsort(self.positions)] = np.arange(order.size)
        return _safe_indexing(found, order)


@dataclass(frozen=True)
class _WantedHere:
    positions: Array
    n_rows: int
    label: Any

    def places(self, y: Any, own: Floats | None) -> Array:
        """Return the rows of a block, which must have as many as were counted."""
        counts = np.ones(len(y), dtype=bool) if own is None else own > 0
        if self.label is not None:
            counts = counts & (plain_labels(y) == self.label)
        places = np.flatnonzero(counts)
        check_same_rows(places.size, self.n_rows)
        return places[self.positions]


def check_same_rows(found: int, counted: int) -> None:
    """Refuse data that changed between two passes.

    Parameters
    ----------
    found : int
        Rows that a later pass met.
    counted : int
        Rows that the first one counted.
    """
    if found != counted:
        raise ValueError(
            f"a pass met {found} rows where the first one counted {counted}: the data changed "
            "while they were read. Run again on data that nobody writes to."
        )


@dataclass(frozen=True)
class Fetched:
    """Rows that were fetched from the blocks; `weight` is None where every row counts once."""

    X: Any
    y: Array
    weight: Floats | None


def fetched(blocks: Blocks, wanted: Sequence[Wanted], read: Any = None) -> list[Fetched]:
    """Return the wanted rows, in one pass for all that are wanted.

    Parameters
    ----------
    blocks : Blocks
        The noisy data.
    wanted : sequence of Wanted
        Which rows.
    read : estimator, default=None
        What is fetched in place of the rows: its `predict_proba` of them.
    """
    own = list(zip(*(each.by_block() for each in wanted), strict=True))
    parts = blocks.map_each(_fetch, own, read)
    results = []
    for each, blockwise in zip(wanted, zip(*parts, strict=True), strict=True):
        full = [part for part in blockwise if part is not None]
        weight = None
        if full[0].weight is not None:
            weight = each.in_order(np.concatenate([part.weight for part in full]))
        rows = each.in_order(_stacked([part.X for part in full]))
        labels = each.in_order(np.concatenate([part.y for part in full]))
        results.append(Fetched(rows, labels, weight))
    return results


def _fetch(
    X: Any, y: Any, weight: Any, wanted: tuple[_WantedHere, ...], read: Any
) -> list[Fetched | None]:
    """Return what is wanted of a block; None: nothing is shipped."""
    if not any(here.positions.size for here in wanted):
        return [None] * len(wanted)
    check_consistent_length(X, y)
    weights = own_weight(weight, len(y))
    found: list[Fetched | None] = []
    for here in wanted:
        if not here.positions.size:
            found.append(None)
            continue
        places = here.places(y, weights)
        rows = _safe_indexing(X, places)
        found.append(
            Fetched(
                rows if read is None else np.asarray(read.predict_proba(rows), dtype=float),
                plain_labels(y)[places],
                None if weights is None else weights[places],
            )
        )
    return found


def _stacked(parts: Sequence[Any]) -> Any:
    if sparse.issparse(parts[0]):
        return sparse.vstack(parts, format="csr")
    if hasattr(parts[0], "columns"):
        return nw.concat([nw.from_native(part) for part in parts]).to_native()
    return np.concatenate(parts)


def own_weight(weight: Any, n_rows: int) -> Floats | None:
    """Return the rows' own weights, checked; None where every row counts once.

    Parameters
    ----------
    weight : array-like of shape (n_rows,) or None
        What a block has.
    n_rows : int
        How many rows the block has.
    """
    return None if weight is None or not n_rows else check_weights(weight, n_rows, all_zero=True)
