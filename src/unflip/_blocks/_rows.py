"""Blocks of rows: the interface, the label counts, and fetching single rows."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any, TypeVar

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import _safe_indexing
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length

from unflip._utils.typing import Array, Floats, PlainLabel, Rows, Vector
from unflip._utils.validation import MIN_SAMPLES, check_labels, check_weights, plain_labels
from unflip.posterior import BasePosterior

T = TypeVar("T")


class Blocks(ABC):
    """Blocks of (X, y, sample_weight), always in the same order.

    `sample_weight` is None if every row counts once. Functions of a block are pure: a lost block
    can be computed again.
    """

    @abstractmethod
    def map_labels(self, function: Callable[..., T]) -> list[T]:
        """Return function(y, sample_weight) of every block, in order.

        Returns
        -------
        list
            What `function` returned, one item per block.
        """

    @abstractmethod
    def map(
        self, function: Callable[..., T], shared: Any, items: Sequence[Any] | None = None
    ) -> Iterable[T]:
        """Return function(X, y, sample_weight, shared) of every block, in order.

        With `items`, it is function(X, y, sample_weight, items[k], shared) of block k.

        Returns
        -------
        iterable
            What `function` returned, one item per block.
        """

    @abstractmethod
    def head(self, k: int) -> Rows:
        """Return the first rows of block k, unchanged.

        Returns
        -------
        array or dataframe
            Rows of X.
        """

    def sum(self, function: Callable[..., T], shared: Any) -> T:
        """Return the sum of function(X, y, sample_weight, shared) over all blocks.

        Returns
        -------
        object
            The sum of what `function` returned.
        """
        return reduce(add, self.map(function, shared))

    @abstractmethod
    def fold(self, function: Callable[..., T], state: T, shared: Any) -> T:
        """Return state = function(state, X, y, sample_weight, shared), one block after another.

        Returns
        -------
        object
            The last state.
        """

    def row_values(
        self, function: Callable[..., Array], shared: Any, name: str | Array, like: Array
    ) -> Any:
        """Return function(X, y, sample_weight, shared), one value per row, block by block.

        `like` is the value of one row, `name` its name, or a name for each column of `like`; for
        collections that need them.

        Returns
        -------
        array
            One value per row.
        """
        return self.map(function, shared)

    def no_rows(self) -> Rows | None:
        """Return a table with the columns of X but no rows; None if the columns are not known.

        Returns
        -------
        array, dataframe or None
            Columns without rows.
        """
        return None


def first_rows(X: Rows) -> Rows:
    """Return at most two rows of a block that is not empty, with its columns."""
    return _safe_indexing(X, np.arange(min(2, X.shape[0])))


@dataclass(frozen=True)
class LabelCounts:
    """Row counts and total weight per class, of all blocks or of one."""

    # The labels, sorted.
    classes: Array
    # Rows of positive weight in each block and class; in each class, of one block.
    n_rows: NDArray[np.int64]
    # Total weight of each class.
    mass: Floats
    # Number of rows, including those of weight 0.
    n_all: int


def count_labels(blocks: Blocks) -> LabelCounts:
    """Return the label counts of all blocks, in one pass over the labels."""
    found = blocks.map_labels(_label_counts)
    n_counting = int(sum(part.n_rows.sum() for part in found))
    if n_counting < MIN_SAMPLES:
        raise ValueError(
            f"Found {n_counting} rows of positive weight, at least {MIN_SAMPLES} are required: "
            "label noise cannot be told apart from chance on fewer."
        )
    labels = np.concatenate([part.classes for part in found if part.classes.size])
    classes = check_labels(labels, binary=False)[0]
    n_rows = np.zeros((len(found), classes.size), dtype=np.int64)
    mass = np.zeros(classes.size)
    for block, part in zip(n_rows, found, strict=True):
        places = np.searchsorted(classes, part.classes)
        block[places] = part.n_rows
        mass[places] += part.mass
    return LabelCounts(classes, n_rows, mass, sum(part.n_all for part in found))


def _label_counts(y: Vector, sample_weight: Vector | None) -> LabelCounts:
    if not len(y):
        return LabelCounts(np.empty(0), np.empty(0, dtype=np.int64), np.empty(0), 0)
    labels = plain_labels(y)
    check_classification_targets(labels)
    weight = block_weight(sample_weight, len(labels))
    found, codes = np.unique(labels, return_inverse=True)
    counted = codes if weight is None else codes[weight > 0]
    return LabelCounts(
        found,
        np.bincount(counted, minlength=found.size),
        np.bincount(codes, weight, minlength=found.size).astype(float),
        labels.size,
    )


def check_labelled(y: Vector | None) -> None:
    """Raise an error if a block has no labels."""
    if y is None:
        raise ValueError(
            "these rows have no labels, so they can only be predicted. Name the labels: "
            "ArrayBatches(X, y), or label=... for files."
        )


def label_codes(y: Vector, classes: Array) -> NDArray[np.intp]:
    """Return the index into `classes` of every label of a block."""
    return check_labels(y, classes=classes, binary=False)[1]


@dataclass(frozen=True)
class RowRequest:
    """Rows to fetch: positions among the rows of positive weight, of all classes or of one."""

    # Positions across all blocks, in any order.
    positions: Array
    # Number of rows to count positions by, in each block.
    n_rows: Array
    # The class; None for all classes.
    label: PlainLabel | None = None

    def by_block(self) -> list["_BlockRequest"]:
        """Return the requests of each block, with ascending positions within the block."""
        ascending = np.sort(self.positions)
        ends = np.cumsum(self.n_rows)
        cuts = np.searchsorted(ascending, ends)
        return [
            _BlockRequest(ascending[first:last] - start, end - start, self.label)
            for first, last, start, end in zip(
                [0, *cuts[:-1]], cuts, [0, *ends[:-1]], ends, strict=True
            )
        ]

    def in_order(self, rows: Rows) -> Rows:
        """Reorder the rows fetched at ascending positions into the order requested."""
        if (np.diff(self.positions) > 0).all():
            return rows
        order = np.empty(self.positions.size, dtype=np.intp)
        order[np.argsort(self.positions)] = np.arange(order.size)
        return _safe_indexing(rows, order)


@dataclass(frozen=True)
class _BlockRequest:
    positions: Array
    n_rows: int
    label: PlainLabel | None

    def rows(self, y: Vector, weight: Floats | None) -> Array:
        """Return the requested rows of a block, after checking its number of rows."""
        included = np.ones(len(y), dtype=bool) if weight is None else weight > 0
        if self.label is not None:
            included = included & (plain_labels(y) == self.label)
        rows = np.flatnonzero(included)
        check_same_rows(rows.size, self.n_rows)
        return rows[self.positions]


def check_same_rows(found: int, counted: int) -> None:
    """Raise an error if the data changed between two passes."""
    if found != counted:
        raise ValueError(
            f"Expected {counted} rows as in the first pass, found {found}: the data changed while "
            "they were read. Run again on data that are not being written to."
        )


@dataclass(frozen=True)
class Fetched:
    """Fetched rows; `weight` is None if every row counts once."""

    X: Rows
    y: Array
    weight: Floats | None


def fetch_rows(
    blocks: Blocks, requests: Sequence[RowRequest], predictor: BasePosterior | None = None
) -> list[Fetched]:
    """Fetch rows, in one pass for all requests."""
    by_block = list(zip(*(request.by_block() for request in requests), strict=True))
    parts = blocks.map(_fetch, predictor, by_block)
    results = []
    for request, blockwise in zip(requests, zip(*parts, strict=True), strict=True):
        full = [part for part in blockwise if part is not None]
        weight = None
        if full[0].weight is not None:
            weight = request.in_order(np.concatenate([part.weight for part in full]))
        rows = request.in_order(_stacked([part.X for part in full]))
        labels = request.in_order(np.concatenate([part.y for part in full]))
        results.append(Fetched(rows, labels, weight))
    return results


def _fetch(
    X: Rows,
    y: Vector,
    sample_weight: Vector | None,
    requests: tuple[_BlockRequest, ...],
    predictor: BasePosterior | None,
) -> list[Fetched | None]:
    """Return the rows of each request; None for no rows, so that nothing is transferred."""
    if not any(request.positions.size for request in requests):
        return [None] * len(requests)
    check_consistent_length(X, y)
    weight = block_weight(sample_weight, len(y))
    fetched: list[Fetched | None] = []
    for request in requests:
        if not request.positions.size:
            fetched.append(None)
            continue
        rows = request.rows(y, weight)
        values = _safe_indexing(X, rows)
        if predictor is not None:
            values = np.asarray(predictor.predict_proba(values), dtype=float)
        fetched.append(
            Fetched(values, plain_labels(y)[rows], None if weight is None else weight[rows])
        )
    return fetched


def _stacked(parts: Sequence[Rows]) -> Rows:
    if sparse.issparse(parts[0]):
        return sparse.vstack(parts, format="csr")
    if hasattr(parts[0], "columns"):
        return nw.concat([nw.from_native(part) for part in parts]).to_native()
    return np.concatenate(parts)


def block_weight(sample_weight: Vector | None, n_rows: int) -> Floats | None:
    """Return the checked weights of a block; None if every row counts once."""
    if sample_weight is None or not n_rows:
        return None
    return check_weights(sample_weight, n_rows, all_zero=True)
