"""The distribution of T given the labels, and the intervals that follow from it."""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from unflip._utils.typing import Array, Floats
from unflip.channel._rates import RatePosterior
from unflip.diagnostics import error_rate_bounds
from unflip.noise import RatesInterval


class Distribution(Protocol):
    """The distribution of T."""

    @property
    def is_known(self) -> bool:
        """Whether T was given."""

    def interval(self, level: float) -> RatesInterval:
        """Return the shortest range that holds each rate with probability `level`."""


@dataclass(frozen=True)
class RatesOfTwo:
    """The distribution of two rates, by quadrature."""

    rates: RatePosterior
    # The share of labels of the positive class.
    noisy_prior: float
    is_known: bool = False

    def interval(self, level: float) -> RatesInterval:
        """Return the shortest range that holds each rate with probability `level`."""
        positive, negative = self.rates.interval(level)
        wrong = error_rate_bounds(positive, negative, self.noisy_prior)
        return RatesInterval.from_pairs(positive, negative, level, wrong)


@dataclass(frozen=True)
class DrawnMatrices:
    """Draws from the distribution of T around the modes of its structures."""

    # Every entry of T, sorted, of shape (n_draws, n_classes, n_classes).
    matrices: Floats
    # The share of wrong labels, sorted.
    label_error_rate: Floats
    # How often each label was observed.
    label_counts: Array
    # Whether T is known.
    is_known: bool

    def interval(self, level: float) -> RatesInterval:
        """Return the shortest range that holds each entry of T with probability `level`."""
        low, high = shortest_ranges(self.matrices, level)
        share = shortest_ranges(self.label_error_rate, level)
        ends = float(share[0]), float(share[1])
        if self.is_known:
            return RatesInterval(low, high, level, ends)
        # a flip may happen this often though it has not happened once in so many rows
        unseen = largest_unseen(self.label_counts, level)
        high = np.maximum(high, unseen[:, None])
        np.fill_diagonal(low, np.minimum(np.diag(low), 1 - unseen))
        most = largest_unseen(self.label_counts.sum(), level)
        return RatesInterval(low, high, level, (ends[0], max(ends[1], float(most))))


def largest_unseen(counts: Any, level: float) -> Any:
    """Return the largest rate at which none of so many rows is flipped with chance 1 - `level`."""
    return -np.expm1(np.log1p(-level) / (counts + 1))


def shortest_ranges(ordered: Floats, level: float) -> tuple[Floats, Floats]:
    """Return the ends of the shortest range of each entry that holds the share `level` of draws.

    Parameters
    ----------
    ordered : ndarray of shape (n_draws, ...)
        Numbers, sorted along the first axis.
    level : float
        Share of the draws.
    """
    n = len(ordered)
    held = min(n, max(1, int(np.ceil(level * n))))
    lengths = ordered[held - 1 :] - ordered[: n - held + 1]
    first = np.argmin(lengths, axis=0)[None]
    low = np.take_along_axis(ordered, first, axis=0)[0]
    high = np.take_along_axis(ordered, first + held - 1, axis=0)[0]
    # no draw is 0 or 1, though a range that ends with the last of them near there reaches that far
    tail, length = (n - held) // 4, high - low
    low = np.where((first[0] <= tail) & (low < length), 0.0, low)
    high = np.where((first[0] >= n - held - tail) & (1 - high < length) & (low > 0), 1.0, high)
    return np.asarray(low), np.asarray(high)
