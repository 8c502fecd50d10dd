"""How checked rows came about: the order of the draws, and the probability of each."""

from typing import NamedTuple

import numpy as np

from unflip._utils.typing import Codes, Floats

MIN_RANDOM_SHARE = 0.7
"""Rows are drawn with at least this share of the probability of a plain random draw."""


class Draws(NamedTuple):
    """Rows that were drawn with known probabilities, in the order of the draws."""

    rows: Codes
    # Positions of their true labels among the classes; n_classes: none of them, -1: unsure.
    truth: Codes
    # The probability of each draw, relative to that of a plain random draw from the rows left.
    relative: Floats
    # Whether the probabilities are those of single draws; else rows were included on their own.
    in_turn: bool
    # Of the table.
    n_rows: int
    n_classes: int

    @property
    def is_plain(self) -> bool:
        """Whether every row was as likely as every other."""
        return bool(np.ptp(self.relative) <= 1e-9 * self.relative.max()) if self.rows.size else True

    @property
    def floor(self) -> float:
        """A lower bound of the relative probability of any row at any draw."""
        return 1.0 if self.is_plain else min(MIN_RANDOM_SHARE, float(self.relative.min()))

    @property
    def weight(self) -> Floats:
        """How many rows of the table each stands for; they sum to `n_rows`.

        A draw t tells the sum over the table as (sum before it) + (its row) / q_t. Of these sums,
        whose errors are about proportional to L (L - 1) with L the rows left, the mean by inverse
        variance is taken: each row alike for plain draws, and 1 once all rows were drawn.
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
        """How many rows were not drawn."""
        return self.n_rows - self.rows.size

    @property
    def left(self) -> Floats:
        """How many rows were left at each draw."""
        return self.n_rows - np.arange(self.rows.size, dtype=float)


def relative_probability(probability: Floats, n_rows: int) -> tuple[Floats, bool]:
    """Return probabilities relative to plain random draws, and whether they are of single draws.

    1 / P(drawn at its turn) has the number of rows left as its expectation, and
    1 / P(in the sample at all) sums to the number of rows: whichever is closer is meant.
    """
    n_draws = probability.size
    left = n_rows - np.arange(n_draws, dtype=float)
    if not n_draws or np.ptp(probability) <= 1e-9 * probability.max():
        return np.ones(n_draws), True
    total = np.log((1 / probability).sum())
    in_turn = abs(total - np.log(left.sum())) <= abs(total - np.log(n_rows))
    return probability * (left if in_turn else n_rows / n_draws), bool(in_turn)
