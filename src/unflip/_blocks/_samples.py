"""Density ratios of every class against all rows, where the rows lie in blocks."""

from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils import check_array
from sklearn.utils.validation import check_consistent_length

from unflip._blocks._rows import Blocks, Counts, Wanted, fetched, label_codes
from unflip._samples import Kernel, Samples, TwoSamples
from unflip._validation import FLOATS, check_weights, within_range

Array = NDArray[Any]
T = TypeVar("T")


@dataclass
class ClassSamples(Samples):
    """The numerator: rows of one class. The denominator: all rows.

    Parameters
    ----------
    blocks : Blocks
        The noisy data.
    counts : Counts
        How many rows there are.
    k : int
        The class, by its place among the labels.
    """

    blocks: Blocks
    counts: Counts
    k: int
    _sparse: bool = False

    @property
    def n_num(self) -> int:
        """How many rows the class has."""
        return int(self.counts.n_rows[:, self.k].sum())

    @property
    def n_den(self) -> int:
        """How many rows there are."""
        return int(self.counts.n_rows.sum())

    @property
    def total_num(self) -> float:
        """Sum of the class's weights."""
        return float(self.counts.mass[self.k])

    @property
    def total_den(self) -> float:
        """Sum of all weights."""
        return float(self.counts.mass.sum())

    @property
    def sparse(self) -> bool:
        """Whether the rows are sparse, which is known once some were fetched."""
        return self._sparse

    def num_rows(self, positions: Array) -> tuple[Any, Array]:
        """Return the class's rows at these positions, and their weights."""
        return self._fetched([self._of_the_class(positions)])[0]

    def rows(self, num: Array, den: Array) -> TwoSamples:
        """Return the rows at these positions of the class and of all rows, in one pass."""
        every = Wanted(den, self.counts.n_rows.sum(axis=1))
        (X_num, weight_num), (X_den, weight_den) = self._fetched([self._of_the_class(num), every])
        return TwoSamples(X_num, X_den, weight_num, weight_den)

    def sum(self, kernel: Kernel[T], shared: Any) -> T:
        """Return the sum over all blocks."""
        return self.blocks.sum(_of_class, (kernel, shared, self.counts.classes, self.k))

    def _of_the_class(self, positions: Array) -> Wanted:
        return Wanted(positions, self.counts.n_rows[:, self.k], self.counts.classes[self.k])

    def _fetched(self, wanted: list[Wanted]) -> list[tuple[Any, Array]]:
        found = fetched(self.blocks, wanted)
        pairs = [(numbers(part.X), check_weights(part.weight, len(part.y))) for part in found]
        self._sparse = bool(issparse(pairs[0][0]))
        return pairs


def numbers(X: Any) -> Any:
    """Return rows as an array of floats, or as a sparse one.

    Parameters
    ----------
    X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)
        Rows.
    """
    rows = check_array(X, accept_sparse="csr", dtype=FLOATS, input_name="X")
    return within_range(rows, "X")


def _of_class(X: Any, y: Any, weight: Any, shared: tuple[Kernel[T], Any, Array, int]) -> T:
    """Return the kernel's value for a block, of which one class is the numerator."""
    kernel, inner, classes, k = shared
    if not len(y):
        return kernel(None, np.empty(0), np.empty(0), inner)
    check_consistent_length(X, y)
    codes = label_codes(y, classes)
    own = check_weights(weight, len(codes), all_zero=True)
    return kernel(numbers(X), np.where(codes == k, own, 0.0), own, inner)
