"""The two samples of a density ratio, in memory or in blocks elsewhere."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial, reduce
from operator import add
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from unflip._sampling import shuffled
from unflip._threads import by_threads

Array = NDArray[Any]
T = TypeVar("T")
Kernel = Callable[[Any, Array, Array, Any], T]
"""kernel(rows, weight_num, weight_den, shared): a pure function of a block; its values add up."""


class Samples(ABC):
    """Rows of the numerator's and of the denominator's distribution, and how often each counts."""

    @property
    @abstractmethod
    def n_num(self) -> int:
        """How many rows the numerator has."""

    @property
    @abstractmethod
    def n_den(self) -> int:
        """How many rows the denominator has."""

    @property
    @abstractmethod
    def total_num(self) -> float:
        """Sum of the numerator's weights."""

    @property
    @abstractmethod
    def total_den(self) -> float:
        """Sum of the denominator's weights."""

    @property
    @abstractmethod
    def sparse(self) -> bool:
        """Whether the rows are sparse."""

    @abstractmethod
    def num_rows(self, positions: Array) -> tuple[Any, Array]:
        """Return the numerator's rows at these positions, and their weights."""

    @abstractmethod
    def rows(self, num: Array, den: Array) -> "TwoSamples":
        """Return the rows at these positions of the numerator and of the denominator, in memory."""

    @abstractmethod
    def sum(self, kernel: Kernel[T], shared: Any) -> T:
        """Return the sum over blocks of rows, in which each row appears once or more.

        A row's weights are zero where it does not belong to a sample, or is counted elsewhere.
        """

    def drawn(self, n_rows: int, random_state: np.random.RandomState) -> "TwoSamples":
        """Return at most `n_rows` rows of each sample, in random order."""
        num = shuffled(self.n_num, n_rows, random_state)
        return self.rows(num, shuffled(self.n_den, n_rows, random_state))


@dataclass(frozen=True)
class TwoSamples(Samples):
    """Both samples in memory."""

    num: Any
    den: Any
    weight_num: Array
    weight_den: Array
    among: Array | None = None
    """Which rows of `den` are those of `num`, in their order, where all of `num` are among them."""

    @classmethod
    def within(cls, X: Any, is_num: Array, weight: Array) -> "TwoSamples":
        """Take all rows as the denominator's, and the marked ones as the numerator's too."""
        return cls(X[is_num], X, weight[is_num], weight, is_num)

    @property
    def n_num(self) -> int:
        """How many rows the numerator has."""
        return int(self.num.shape[0])

    @property
    def n_den(self) -> int:
        """How many rows the denominator has."""
        return int(self.den.shape[0])

    @property
    def total_num(self) -> float:
        """Sum of the numerator's weights."""
        return float(self.weight_num.sum())

    @property
    def total_den(self) -> float:
        """Sum of the denominator's weights."""
        return float(self.weight_den.sum())

    @property
    def sparse(self) -> bool:
        """Whether the rows are sparse."""
        return bool(issparse(self.num))

    def num_rows(self, positions: Array) -> tuple[Any, Array]:
        """Return the numerator's rows at these positions, and their weights."""
        return self.num[positions], self.weight_num[positions]

    def rows(self, num: Array, den: Array) -> "TwoSamples":
        """Return the rows at these positions of the numerator and of the denominator."""
        return TwoSamples(self.num[num], self.den[den], self.weight_num[num], self.weight_den[den])

    def sum(self, kernel: Kernel[T], shared: Any) -> T:
        """Return the sum over all rows, each of which appears once."""
        sums: list[T] = []
        for part in self._parts():
            n_rows = part[0].shape[0]
            sums += by_threads(partial(_on_some, kernel, part, shared), n_rows, n_rows)
        return reduce(add, sums)

    def _parts(self) -> list[tuple[Any, Array, Array]]:
        """Return rows with their weights in both samples."""
        if self.among is not None:
            return [(self.den, np.where(self.among, self.weight_den, 0.0), self.weight_den)]
        none_num, none_den = np.zeros_like(self.weight_den), np.zeros_like(self.weight_num)
        return [(self.num, self.weight_num, none_den), (self.den, none_num, self.weight_den)]


def _on_some(kernel: Kernel[T], part: tuple[Any, Array, Array], shared: Any, some: slice) -> T:
    rows, weight_num, weight_den = part
    return kernel(rows[some], weight_num[some], weight_den[some], shared)
