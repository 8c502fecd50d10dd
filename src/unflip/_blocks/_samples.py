"""The samples of a density ratio of one class against all rows, in blocks."""

from typing import TypeVar

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import check_array
from sklearn.utils.validation import check_consistent_length

from unflip._blocks._rows import Blocks, LabelCounts, RowRequest, fetch_rows, label_codes
from unflip._utils.samples import Samples, TwoSampleFunction, TwoSamples
from unflip._utils.typing import Array, Rows, Vector
from unflip._utils.validation import FLOATS, check_weights, within_range

S = TypeVar("S")
T = TypeVar("T")


class ClassSamples(Samples):
    """The rows of class k as the numerator, all rows as the denominator."""

    sparse = False  # known once the first rows were fetched

    def __init__(self, blocks: Blocks, counts: LabelCounts, k: int) -> None:
        self.blocks, self.counts, self.k = blocks, counts, k
        self.n_num, self.n_den = int(counts.n_rows[:, k].sum()), int(counts.n_rows.sum())
        self.total_num, self.total_den = float(counts.mass[k]), float(counts.mass.sum())

    def num_rows(self, positions: Array) -> tuple[Rows, Array]:
        """Return rows of the class, and their weights."""
        return self._fetch([self._request(positions)])[0]

    def rows(self, num: Array, den: Array) -> TwoSamples:
        """Return rows of the class and rows of all, in one pass."""
        of_all = RowRequest(den, self.counts.n_rows.sum(axis=1))
        (X_num, weight_num), (X_den, weight_den) = self._fetch([self._request(num), of_all])
        return TwoSamples(X_num, X_den, weight_num, weight_den)

    def sum(self, function: TwoSampleFunction[S, T], shared: S) -> T:
        """Return the sum over all blocks."""
        return self.blocks.sum(_of_class, (function, shared, self.counts.classes, self.k))

    def _request(self, positions: Array) -> RowRequest:
        return RowRequest(positions, self.counts.n_rows[:, self.k], self.counts.classes[self.k])

    def _fetch(self, requests: list[RowRequest]) -> list[tuple[Rows, Array]]:
        parts = fetch_rows(self.blocks, requests)
        pairs = [(numbers(part.X), check_weights(part.weight, len(part.y))) for part in parts]
        self.sparse = bool(issparse(pairs[0][0]))
        return pairs


def numbers(X: Rows) -> Rows:
    """Return the rows as a dense or sparse array of floats."""
    rows = check_array(X, accept_sparse="csr", dtype=FLOATS, input_name="X")
    return within_range(rows, "X")


def _of_class(
    X: Rows,
    y: Vector,
    sample_weight: Vector | None,
    shared: tuple[TwoSampleFunction[S, T], S, Array, int],
) -> T:
    """Return the value of a function of both samples for one block."""
    function, inner, classes, k = shared
    if not len(y):
        return function(None, np.empty(0), np.empty(0), inner)
    check_consistent_length(X, y)
    codes = label_codes(y, classes)
    weight = check_weights(sample_weight, len(codes), all_zero=True)
    return function(numbers(X), np.where(codes == k, weight, 0.0), weight, inner)
