"""The sampling design of checked rows: the order of the draws, and the probability of each."""

from typing import NamedTuple

import numpy as np

from unflip._utils.typing import Codes, Floats

MIN_RANDOM_SHARE = 0.7
"""Minimum probability of drawing a row, relative to a simple random draw."""


class Draws(NamedTuple):
    """Rows that were drawn with known probabilities, in the order of the draws."""

    rows: Codes
    # Positions of their true labels among the classes; n_classes: no class, -1: unsure.
    truth: Codes
    # The probability of each draw, relative to a simple random draw from the rows left.
    relative: Floats
    # Whether the probabilities are those of successive draws; otherwise, of inclusion.
    in_turn: bool
    # Of the table.
    n_rows: int
    n_classes: int

    @property
    def is_plain(self) -> bool:
        """Whether all rows were equally likely."""
        return bool(np.ptp(self.relative) <= 1e-9 * self.relative.max()) if self.rows.size else True

    @property
    def floor(self) -> float:
        """A lower bound of the relative probability of any row at any draw."""
        return 1.0 if self.is_plain else min(MIN_RANDOM_SHARE, float(self.relative.min()))

    @property
    def weight(self) -> Floats:
        """How many rows of the table each row represents; they sum to `n_rows`.

        Draw t estimates the sum over the table as (sum before it) + (its row) / q_t. The variance
        of this estimate is about proportional to L (L - 1), with L the rows left, and the estimates
        are averaged by inverse variance: equal weights for simple draws, 1 once all were drawn.
        """
        inverse = 1 / self.relative
        if self.in_turn and self.rows.size:
            left = self.left
            if left[-1] == 1:
                return np.ones(self.rows.size)
            share = 1 / (left - 1) - 1 / left
            inverse = share * left * inverse + share[::-1].cumsum()[::-1] - share
        return np.asarray(self.n_rows * inverse / inverse.sum())

    @property
    def n_open(self) -> int:
        """Number of rows not drawn."""
        return self.n_rows - self.rows.size

    @property
    def left(self) -> Floats:
        """Number of rows left at each draw."""
        return self.n_rows - np.arange(self.rows.size, dtype=float)


def relative_probability(probability: Floats, n_rows: int) -> tuple[Floats, bool]:
    """Return probabilities relative to simple random draws, and whether they are of single draws.

    1 / P(drawn at its turn) has expectation the number of rows left, and 1 / P(in the sample) sums
    to the number of rows: whichever is closer is assumed.
    """
    n_draws = probability.size
    left = n_rows - np.arange(n_draws, dtype=float)
    if not n_draws or np.ptp(probability) <= 1e-9 * probability.max():
        return np.ones(n_draws), True
    total = np.log((1 / probability).sum())
    in_turn = abs(total - np.log(left.sum())) <= abs(total - np.log(n_rows))
    return probability * (left if in_turn else n_rows / n_draws), bool(in_turn)
