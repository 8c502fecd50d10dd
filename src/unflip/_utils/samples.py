"""The two samples of a density ratio, in memory or in blocks."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
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

    @property
    @abstractmethod
    def n_num(self) -> int:
        """Number of rows of the numerator."""

    @property
    @abstractmethod
    def n_den(self) -> int:
        """Number of rows of the denominator."""

    @property
    @abstractmethod
    def total_num(self) -> float:
        """Total weight of the numerator."""

    @property
    @abstractmethod
    def total_den(self) -> float:
        """Total weight of the denominator."""

    @property
    @abstractmethod
    def sparse(self) -> bool:
        """Whether the rows are sparse."""

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


@dataclass(frozen=True)
class TwoSamples(Samples):
    """Both samples in memory."""

    num: Rows
    den: Rows
    weight_num: Array
    weight_den: Array
    num_mask: Array | None = None
    """Mask of the rows of `den` that are those of `num`, if `num` is a part of `den`."""

    @classmethod
    def within(cls, X: Rows, is_num: Array, weight: Array) -> "TwoSamples":
        """Return samples with all rows in the denominator, the marked ones in the numerator too."""
        return cls(X[is_num], X, weight[is_num], weight, is_num)

    @property
    def n_num(self) -> int:
        """Number of rows of the numerator."""
        return int(self.num.shape[0])

    @property
    def n_den(self) -> int:
        """Number of rows of the denominator."""
        return int(self.den.shape[0])

    @property
    def total_num(self) -> float:
        """Total weight of the numerator."""
        return float(self.weight_num.sum())

    @property
    def total_den(self) -> float:
        """Total weight of the denominator."""
        return float(self.weight_den.sum())

    @property
    def sparse(self) -> bool:
        """Whether the rows are sparse."""
        return bool(issparse(self.num))

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
