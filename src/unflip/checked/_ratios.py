"""What is counted: shares, rates and scores, each a ratio of two sums over rows.

theta = sum_i a_i / sum_i b_i, where a_i and b_i follow from the true label of row i and what is
known of it. A model's P(true = k | x, given label) gives their expectations, row by row.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from unflip._utils.typing import Codes, Floats

Values = Callable[[Codes, Codes], tuple[Floats, Floats]]
"""From rows and their true labels (n_classes: none of them) to a and b."""


class Predicted(NamedTuple):
    """What a model expects of a and b."""

    # At the drawn rows.
    a: Floats
    b: Floats
    # On average over all rows.
    a_all: float
    b_all: float


class Ratio(NamedTuple):
    """theta = sum a / sum b over all rows of a table."""

    # a and b of rows, given their true labels.
    values: Values
    # The largest value of a; b - a and a are never negative.
    largest: float = 1.0

    def predicted(self, label_proba: Floats | None, n_rows: int, drawn: Codes) -> Predicted:
        """Return what a model expects at drawn rows, and of all; zeros without one."""
        a, b = self.expected(label_proba, n_rows)
        return Predicted(a[drawn], b[drawn], float(a.mean()), float(b.mean()))

    def expected(self, label_proba: Floats | None, n_rows: int) -> tuple[Floats, Floats]:
        """Return E[a] and E[b] of every row under a model; zeros without one."""
        a, b = np.zeros(n_rows), np.zeros(n_rows)
        if label_proba is None:
            return a, b
        rows = np.arange(n_rows)
        for k, proba in enumerate(label_proba.T):
            if_k = self.values(rows, np.full(n_rows, k))
            a += proba * if_k[0]
            b += proba * if_k[1]
        return a, b


def label_error_rate(given: Codes, label: int | None = None) -> Ratio:
    """P(true != given), of all rows or of those with a given label."""

    def values(rows: Codes, truth: Codes) -> tuple[Floats, Floats]:
        labels = given[rows]
        among = np.ones(rows.size) if label is None else (labels == label).astype(float)
        return among * (truth != labels), among

    return Ratio(values)


def transition(given: Codes, true: int, label: int) -> Ratio:
    """P(given = label | true)."""

    def values(rows: Codes, truth: Codes) -> tuple[Floats, Floats]:
        among = (truth == true).astype(float)
        return among * (given[rows] == label), among

    return Ratio(values)


def flip_rate(given: Codes, true: int) -> Ratio:
    """P(given != true | true)."""

    def values(rows: Codes, truth: Codes) -> tuple[Floats, Floats]:
        among = (truth == true).astype(float)
        return among * (given[rows] != true), among

    return Ratio(values)


def accuracy(predicted: Codes) -> Ratio:
    """P(predicted = true)."""

    def values(rows: Codes, truth: Codes) -> tuple[Floats, Floats]:
        return (predicted[rows] == truth).astype(float), np.ones(rows.size)

    return Ratio(values)


def recall(predicted: Codes, true: int) -> Ratio:
    """P(predicted = true | true)."""
    return transition(predicted, true, true)


def f1(predicted: Codes, label: int) -> Ratio:
    """2 #(predicted and true) / (#predicted + #true)."""

    def values(rows: Codes, truth: Codes) -> tuple[Floats, Floats]:
        is_predicted, is_true = predicted[rows] == label, truth == label
        return 2.0 * (is_predicted & is_true), 1.0 * is_predicted + is_true

    return Ratio(values, largest=2.0)
