"""The two samples of a density ratio, in memory or in blocks."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial, reduce
from operator import add
from typing import TypeVar

import numpy as np
from scipy.sparse import issparse

from unflip._utils.sampling import shuffled
from unflip._utils.threads import by_threads
from unflip._utils.typing import Array, Rows

S = TypeVar("S")
T = TypeVar("T")
TwoSampleFunction = Callable[[Rows, Array, Array, S], T]
"""function(rows, weight_num, weight_den, shared): a pure function; its values are summed."""


class Samples(ABC):
    """Weighted rows of the numerator and of the denominator."""

    n_num: int
    n_den: int
    # Sums of the weights.
    total_num: float
    total_den: float
    # Whether the rows are sparse.
    sparse: bool

    @abstractmethod
    def num_rows(self, positions: Array) -> tuple[Rows, Array]:
        """Return rows of the numerator, and their weights."""

    @abstractmethod
    def rows(self, num: Array, den: Array) -> "TwoSamples":
        """Return rows of the numerator and of the denominator, in memory."""

    @abstractmethod
    def sum(self, function: TwoSampleFunction[S, T], shared: S) -> T:
        """Return the sum of a function over blocks of rows.

        A row's weight is 0 in a sample that it does not belong to.
        """

    def drawn(self, n_rows: int, random_state: np.random.RandomState) -> "TwoSamples":
        """Return at most `n_rows` rows of each sample, in random order."""
        num = shuffled(self.n_num, n_rows, random_state)
        return self.rows(num, shuffled(self.n_den, n_rows, random_state))


class TwoSamples(Samples):
    """Both samples in memory; `num_mask` marks rows of `den` that are those of `num`, if known."""

    def __init__(
        self,
        num: Rows,
        den: Rows,
        weight_num: Array,
        weight_den: Array,
        num_mask: Array | None = None,
    ) -> None:
        self.num, self.den, self.num_mask = num, den, num_mask
        self.weight_num, self.weight_den = weight_num, weight_den
        self.n_num, self.n_den = int(num.shape[0]), int(den.shape[0])
        self.total_num, self.total_den = float(weight_num.sum()), float(weight_den.sum())
        self.sparse = bool(issparse(num))

    @classmethod
    def within(cls, X: Rows, is_num: Array, weight: Array) -> "TwoSamples":
        """Return samples with all rows in the denominator, the marked ones in the numerator too."""
        return cls(X[is_num], X, weight[is_num], weight, is_num)

    def num_rows(self, positions: Array) -> tuple[Rows, Array]:
        """Return rows of the numerator, and their weights."""
        return self.num[positions], self.weight_num[positions]

    def rows(self, num: Array, den: Array) -> "TwoSamples":
        """Return rows of the numerator and of the denominator."""
        return TwoSamples(self.num[num], self.den[den], self.weight_num[num], self.weight_den[den])

    def sum(self, function: TwoSampleFunction[S, T], shared: S) -> T:
        """Return the sum of a function over all rows."""
        sums: list[T] = []
        for part in self._parts():
            n_rows = part[0].shape[0]
            sums += by_threads(partial(_on_some, function, part, shared), n_rows, n_rows)
        return reduce(add, sums)

    def _parts(self) -> list[tuple[Rows, Array, Array]]:
        """Return rows with their weights in each sample."""
        if self.num_mask is not None:
            return [(self.den, np.where(self.num_mask, self.weight_den, 0.0), self.weight_den)]
        none_num, none_den = np.zeros_like(self.weight_den), np.zeros_like(self.weight_num)
        return [(self.num, self.weight_num, none_den), (self.den, none_num, self.weight_den)]


def _on_some(
    function: TwoSampleFunction[S, T], part: tuple[Rows, Array, Array], shared: S, some: slice
) -> T:
    rows, weight_num, weight_den = part
    return function(rows[some], weight_num[some], weight_den[some], shared)
