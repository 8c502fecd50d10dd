"""The estimands: error rates, noise rates and scores, each a ratio of two sums over samples.

theta = sum_i a_i / sum_i b_i, where a_i and b_i follow from the true label of sample i. A model's
P(true = k | x, observed label) gives their expectations.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from unflip._utils.typing import Bools, Codes, Floats

Values = Callable[[Codes, Codes], tuple[Floats, Floats]]
"""From rows and their true labels (n_classes: no class) to a and b."""

Condition = Callable[[Codes, Codes], Bools]
"""From the same to whether each row meets a condition."""


class Predicted(NamedTuple):
    """Expectations of a and b under a model."""

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
        """Return the expectations at drawn rows and over all rows; zeros without a model."""
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


def _share(among: Condition, hit: Condition) -> Ratio:
    """Return the share of samples that meet a second condition, of those that meet the first."""

    def values(rows: Codes, truth: Codes) -> tuple[Floats, Floats]:
        b = among(rows, truth).astype(float)
        return b * hit(rows, truth), b

    return Ratio(values)


def label_error_rate(given: Codes, label: int | None = None) -> Ratio:
    """P(true != observed), for all samples or for those with a given observed label."""
    return _share(
        lambda rows, _: (given[rows] == label) | (label is None),
        lambda rows, truth: truth != given[rows],
    )


def transition(given: Codes, true: int, label: int) -> Ratio:
    """P(observed = label | true)."""
    return _share(lambda _, truth: truth == true, lambda rows, _: given[rows] == label)


def flip_rate(given: Codes, true: int) -> Ratio:
    """P(observed != true | true)."""
    return _share(lambda _, truth: truth == true, lambda rows, _: given[rows] != true)


def accuracy(predicted: Codes) -> Ratio:
    """P(predicted = true)."""
    return _share(lambda rows, _: rows >= 0, lambda rows, truth: predicted[rows] == truth)


def recall(predicted: Codes, true: int) -> Ratio:
    """P(predicted = true | true)."""
    return transition(predicted, true, true)


def f1(predicted: Codes, label: int) -> Ratio:
    """2 #(predicted and true) / (#predicted + #true)."""

    def values(rows: Codes, truth: Codes) -> tuple[Floats, Floats]:
        is_predicted, is_true = predicted[rows] == label, truth == label
        return 2.0 * (is_predicted & is_true), 1.0 * is_predicted + is_true

    return Ratio(values, largest=2.0)
