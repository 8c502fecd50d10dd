"""Checked labels: the true labels of some rows, and how these rows were selected."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from unflip._utils.docs import documented_like
from unflip._utils.typing import Array, Codes, Floats, PlainLabel, RandomState
from unflip._utils.validation import (
    Labels,
    check_labels,
    check_level,
    check_probabilities,
    is_number,
)
from unflip.checked import _ratios
from unflip.checked._counting import Estimate, estimate
from unflip.checked._draws import Draws, relative_probability
from unflip.checked._error_model import MIN_CHECKED
from unflip.checked._input import (
    NONE,
    UNSURE,
    as_class,
    chance,
    check_answers,
    check_chances,
    check_given,
    check_rows,
    objects,
    once,
    read_csv,
    whole_number,
)
from unflip.checked._next_rows import Goal, NextRows, choose_rows, rows_needed
from unflip.checked._ratios import Ratio
from unflip.noise import NoiseRates, RatesInterval
from unflip.noise_rates import admissible_rates


class CheckedLabels:
    r"""True labels of some samples, and the probability with which each was drawn.

    Samples that were drawn with known probabilities (a probability sample) estimate how noisy all
    labels are, whatever the noise: sum_drawn 1{wrong} / probability has the number of wrong labels
    as its expectation. Samples picked by hand, because they looked wrong (a convenience sample), do
    not; a classifier learns from them all the same.

    Parameters
    ----------
    rows : array-like of shape (n_checked,)
        Positions of the rows in the table, counted from 0, in the order in which they were drawn.
    labels : array-like of shape (n_checked,)
        Their true labels. "none of these": the sample belongs to no class; "unsure": the person
        who checked it could not decide.
    probability : float or array-like of shape (n_checked,), default=None
        The probability with which each row was drawn: at its turn, from the rows not drawn before,
        as :meth:`next_rows` records it; or of being in the sample at all. A plain random sample may
        have any constant. NaN, or None for all: picked by hand.

    Notes
    -----
    A row that was checked twice with the same answer counts once, and as drawn if either was.
    Rows marked unsure are left out of the estimate; the ends of its interval count them either way.

    Examples
    --------
    >>> import numpy as np
    >>> from unflip import CheckedLabels
    >>> rng = np.random.default_rng(0)
    >>> y_true = rng.integers(0, 2, 5000)
    >>> y = np.where(rng.random(5000) < 0.1, 1 - y_true, y_true)
    >>> rows = rng.choice(5000, 200, replace=False)
    >>> checked = CheckedLabels(rows, y_true[rows], probability=200 / 5000)
    >>> print(checked.label_error_rate(y))
    0.0950 (0.0590 to 0.1432)
    """

    NONE, UNSURE = NONE, UNSURE

    rows: Codes
    labels: Array
    probability: Floats

    def __init__(
        self, rows: ArrayLike, labels: ArrayLike, probability: ArrayLike | None = None
    ) -> None:
        positions = check_rows(rows)
        answers = check_answers(labels, positions)
        chances = check_chances(probability, positions)
        kept = once(positions, answers, chances)
        self.rows, self.labels, self.probability = positions[kept], answers[kept], chances[kept]

    @classmethod
    def from_ids(
        cls,
        ids: ArrayLike,
        labels: ArrayLike,
        probability: ArrayLike | None = None,
        *,
        table_ids: ArrayLike,
    ) -> Self:
        """Return the checked labels of rows that are identified by a name.

        Parameters
        ----------
        ids : array-like of shape (n_checked,)
            The identifiers of the checked rows.
        labels, probability
            As for :class:`CheckedLabels`.
        table_ids : array-like of shape (n_rows,)
            The identifiers of all rows of the table, each once.

        Returns
        -------
        CheckedLabels
            The same rows by position.
        """
        known: dict[object, int] = {}
        for row, name in enumerate(np.asarray(table_ids, dtype=object).tolist()):
            if known.setdefault(name, row) != row:
                raise ValueError(
                    f"table_ids holds {name!r} twice, in rows {known[name]} and {row}: an "
                    "identifier must name one row."
                )
        names = np.asarray(ids, dtype=object).tolist()
        strangers = [name for name in names if name not in known]
        if strangers:
            raise ValueError(
                f"the checked id {strangers[0]!r} is not in the table"
                + (f", nor are {len(strangers) - 1} others" if strangers[1:] else "")
                + ". Is this the table that was checked?"
            )
        rows = check_rows([known[name] for name in names])
        once(rows, check_answers(labels, rows), check_chances(probability, rows), names)
        return cls(rows, labels, probability)

    @classmethod
    def from_file(cls, path: str | Path, y: ArrayLike | None = None) -> Self:
        """Read a file of checked labels, such as the `reviewed.csv` that the review page exports.

        Parameters
        ----------
        path : str or Path
            A CSV file with the columns `row`, counted from 0, and `label`; `probability`, where
            rows were drawn (empty: by hand); `given`, the label that was checked.
        y : array-like of shape (n_rows,), default=None
            The labels of the table, which the column `given` is compared with.

        Returns
        -------
        CheckedLabels
            The rows of the file.
        """
        lines = read_csv(Path(path))
        rows = [whole_number(line["row"], path, number) for number, line in enumerate(lines, 2)]
        chances = [chance(line.get("probability"), path, n) for n, line in enumerate(lines, 2)]
        labels: list[Any] = [line["label"] or None for line in lines]
        if y is not None:
            table = check_labels(y, binary=False)
            labels = [None if each is None else as_class(each, table.classes) for each in labels]
            check_given(path, rows, [line.get("given") for line in lines], table)
        return cls(rows, objects(labels), np.array(chances))

    def __len__(self) -> int:
        return self.rows.size

    def __add__(self, other: "CheckedLabels") -> "CheckedLabels":
        return CheckedLabels(
            np.r_[self.rows, other.rows],
            np.r_[self.labels, other.labels],
            np.r_[self.probability, other.probability],
        )

    def __repr__(self) -> str:
        return f"CheckedLabels({len(self)} rows, {int(self.is_drawn.sum())} of them drawn)"

    @property
    def is_drawn(self) -> Array:
        """Whether each row was drawn with a known probability; else it was picked by hand."""
        return ~np.isnan(self.probability)

    def truth(self, labels: Labels) -> Codes:
        """Return the positions of the true labels among the classes; n_classes: none, -1: unsure.

        Returns
        -------
        ndarray of int, shape (n_checked,)
            Positions.
        """
        n_rows, classes = labels.codes.size, labels.classes
        outside = self.rows >= n_rows
        if outside.any():
            raise ValueError(
                f"row {self.rows[outside][0]} was checked, and the table has rows 0 to "
                f"{n_rows - 1}. Is this the table that was checked?"
            )
        places = {label: k for k, label in enumerate(classes.tolist())}
        places = {NONE: classes.size, UNSURE: -1, **places}
        codes = np.empty(self.rows.size, dtype=np.intp)
        for i, label in enumerate(self.labels.tolist()):
            if label not in places:
                raise ValueError(
                    f"the checked label of row {self.rows[i]} is {label!r}, which is not one of "
                    f"the classes {classes.tolist()}, nor {NONE!r} or {UNSURE!r}."
                )
            codes[i] = places[label]
        return codes

    def is_representative(self, n_rows: int) -> Array:
        """Return which rows are a probability sample: those drawn, or all if every row was checked.

        Returns
        -------
        ndarray of bool
            One entry per checked row.
        """
        return np.ones(len(self), dtype=bool) if len(self) == n_rows else self.is_drawn

    def draws(self, labels: Labels) -> Draws:
        """Return the rows that were drawn and their probabilities.

        Returns
        -------
        Draws
            Rows, true labels and probabilities.
        """
        truth, drawn = self.truth(labels), self.is_representative(labels.codes.size)
        chances = self.probability[drawn]
        if drawn.size == labels.codes.size:  # however they were picked, it is all of them
            chances = np.ones(drawn.size)
        relative, in_turn = relative_probability(chances, labels.codes.size)
        return Draws(
            self.rows[drawn],
            truth[drawn],
            relative,
            in_turn,
            labels.codes.size,
            labels.classes.size,
        )

    def label_error_rate(
        self, y: ArrayLike, label_proba: ArrayLike | None = None, *, level: float = 0.95
    ) -> Estimate:
        """Return the label error rate: the share of labels that are wrong.

        Parameters
        ----------
        y : array-like of shape (n_rows,)
            The observed labels of the table.
        label_proba : array-like of shape (n_rows,) or (n_rows, n_classes), default=None
            P(the label is wrong) or P(true = k | x, observed label) by a model, for all rows, such
            as `LabelAudit().label_proba_`. The model must not have seen the checked labels.
        level : float, default=0.95
            Confidence level of the intervals.

        Returns
        -------
        Estimate
            The error rate and its intervals.
        """
        table, draws, proba = self._ready(y, label_proba)
        ratio = _ratios.label_error_rate(table.codes)
        return estimate([ratio], draws, proba, check_level(level))

    @documented_like(label_error_rate)
    def label_error_rate_by_label(
        self, y: ArrayLike, label_proba: ArrayLike | None = None, *, level: float = 0.95
    ) -> dict[PlainLabel, Estimate]:
        """Return the label error rate among the rows of each observed label.

        Returns
        -------
        dict of label to Estimate
            By observed label.
        """
        return self._by_class(_ratios.label_error_rate, y, label_proba, level)

    @documented_like(label_error_rate)
    def noise_rates(
        self, y: ArrayLike, label_proba: ArrayLike | None = None, *, level: float = 0.95
    ) -> dict[PlainLabel, Estimate]:
        """Return P(observed != true | true) for each true class.

        Parameters
        ----------
        label_proba : array-like of shape (n_rows, n_classes), default=None
            P(true = k | x, observed label) by a model.

        Returns
        -------
        dict of label to Estimate
            By true class.
        """
        return self._by_class(_ratios.flip_rate, y, label_proba, level, per_class=True)

    @documented_like(noise_rates)
    def transition(
        self, y: ArrayLike, label_proba: ArrayLike | None = None, *, level: float = 0.95
    ) -> list[list[Estimate]]:
        """Return P(observed = j | true = i) as rows of estimates, classes sorted.

        Returns
        -------
        list of list of Estimate
            One row per true class.
        """
        table, draws, proba = self._ready(y, label_proba, per_class=True)
        classes = range(table.classes.size)
        return [
            [
                estimate([_ratios.transition(table.codes, i, j)], draws, proba, check_level(level))
                for j in classes
            ]
            for i in classes
        ]

    @documented_like(noise_rates)
    def count_rates(
        self, y: ArrayLike, label_proba: ArrayLike | None = None, *, level: float = 0.95
    ) -> tuple[Floats, RatesInterval] | None:
        """Return T and its interval, or None if too few rows were drawn.

        If no checked row is of a class, its row of T is NaN.

        Returns
        -------
        (T, interval) or None
            The transition matrix, and the bounds of its entries.
        """
        if np.count_nonzero(self.is_representative(np.shape(y)[0])) < MIN_CHECKED:
            return None
        found = self.transition(y, label_proba, level=level)
        value = np.array([[each.value for each in row] for row in found])
        ends = np.array([[each.interval for each in row] for row in found])
        share = self.label_error_rate(y, label_proba, level=level)
        return value, RatesInterval(ends[..., 0], ends[..., 1], level, share.interval)

    @documented_like(noise_rates)
    def score(
        self,
        y: ArrayLike,
        y_pred: ArrayLike,
        metric: str = "accuracy",
        label_proba: ArrayLike | None = None,
        *,
        level: float = 0.95,
    ) -> Estimate:
        """Return a model's score on the true labels.

        Parameters
        ----------
        y_pred : array-like of shape (n_rows,)
            The model's predictions for its rows, made without the checked labels.
        metric : {"accuracy", "balanced_accuracy", "f1"}, default="accuracy"
            "f1": of the positive one of two classes (the last in sorted order), or the mean over
            more classes.

        Returns
        -------
        Estimate
            The score and its interval.
        """
        table, draws, proba = self._ready(y, label_proba, per_class=True)
        predicted = check_labels(y_pred, classes=table.classes, binary=False).codes
        if predicted.size != table.codes.size:
            raise ValueError(
                f"y_pred has {predicted.size} entries, and y has {table.codes.size}: one per row."
            )
        n_classes = table.classes.size
        ratios = {
            "accuracy": lambda: [_ratios.accuracy(predicted)],
            "balanced_accuracy": lambda: [_ratios.recall(predicted, k) for k in range(n_classes)],
            "f1": lambda: [
                _ratios.f1(predicted, k) for k in range(1 if n_classes == 2 else 0, n_classes)
            ],
        }
        if metric not in ratios:
            raise ValueError(f"metric must be one of {', '.join(ratios)}, got {metric!r}.")
        return estimate(ratios[metric](), draws, proba, check_level(level))

    @documented_like(label_error_rate)
    def next_rows(
        self,
        y: ArrayLike,
        label_proba: ArrayLike,
        *,
        goal: Goal = "count",
        n: int = 10,
        random_state: RandomState = None,
    ) -> NextRows:
        """Return which rows to check next, and the probability with which each was drawn.

        Parameters
        ----------
        label_proba : array-like of shape (n_rows,) or (n_rows, n_classes)
            P(the label is wrong) or P(true = k | x, observed label) by a model, for all rows.
        goal : {"count", "find", "train"}, default="count"
            "find": the most suspicious rows first (a convenience sample). "count": drawn at random,
            favouring rows of which the model is unsure as far as that has helped so far, so that
            the interval narrows fastest. "train": drawn at random, favouring rows whose answers
            change most training weights.
        n : int, default=10
            Number of rows. A row that was picked by hand before may be drawn again.
        random_state : int, RandomState instance or None, default=None
            Seed of the draws.

        Returns
        -------
        NextRows
            Rows and probabilities.
        """
        table, draws, proba = self._ready(y, label_proba, counting=False)
        assert proba is not None
        return choose_rows(goal, n, draws, self.rows, table.codes, proba, random_state)

    @documented_like(label_error_rate)
    def rows_needed(
        self,
        y: ArrayLike,
        label_proba: ArrayLike | None = None,
        *,
        half_width: float = 0.02,
        level: float = 0.95,
    ) -> int:
        """Return about how many more rows to check for an interval of a given half-width.

        Parameters
        ----------
        half_width : float, default=0.02
            Half the width of the fixed-n interval of the label error rate.

        Returns
        -------
        int
            Number of rows to check in addition.
        """
        if not (is_number(half_width) and 0 < half_width < 1):
            raise ValueError(f"half_width must lie between 0 and 1, got {half_width!r}.")
        table, draws, proba = self._ready(y, label_proba, counting=False)
        ratio = _ratios.label_error_rate(table.codes)
        found = estimate([ratio], draws, proba, check_level(level))
        return rows_needed(found, np.asarray(y).shape[0], half_width)

    @documented_like(noise_rates)
    def rates(self, y: ArrayLike, label_proba: ArrayLike | None = None) -> NoiseRates:
        """Return the noise rates of two classes.

        Returns
        -------
        NoiseRates
            The estimate of each rate. If they sum to nearly 1 or more, so that the labels would
            carry no information, both are scaled back with a warning.
        """
        found = self.noise_rates(y, label_proba)
        if len(found) != 2:
            raise ValueError(
                f"y holds {len(found)} classes, and rates() takes two: use transition()."
            )
        for label, rate in found.items():
            if np.isnan(rate.value):
                raise ValueError(
                    f"no row that was drawn and checked is truly {label!r}, so its noise rate "
                    "cannot be estimated: check more rows."
                )
        negative, positive = found.values()
        return admissible_rates(positive=positive.value, negative=negative.value)

    def _by_class(
        self,
        ratio: Callable[[Codes, int], Ratio],
        y: ArrayLike,
        label_proba: ArrayLike | None,
        level: float,
        *,
        per_class: bool = False,
    ) -> dict[PlainLabel, Estimate]:
        """Return the estimate of a ratio for each class."""
        table, draws, proba = self._ready(y, label_proba, per_class=per_class)
        return {
            label: estimate([ratio(table.codes, k)], draws, proba, check_level(level))
            for k, label in enumerate(table.classes.tolist())
        }

    def _ready(
        self,
        y: ArrayLike,
        label_proba: ArrayLike | None,
        *,
        per_class: bool = False,
        counting: bool = True,
    ) -> tuple[Labels, Draws, Floats | None]:
        """Return the labels, the drawn rows and the model's probabilities, validated."""
        table = check_labels(y, binary=False)
        proba = None if label_proba is None else _label_proba(label_proba, table, per_class)
        draws = self.draws(table)
        if counting and len(self) and not draws.rows.size:
            raise ValueError(
                f"none of the {len(self)} checked rows was drawn with known probability, and rows "
                "picked by hand do not represent the others. If they were drawn at random, use "
                f"CheckedLabels(rows, labels, probability={len(self)} / {table.codes.size})."
            )
        return table, draws, proba


def _label_proba(label_proba: ArrayLike, table: Labels, per_class: bool) -> Floats:
    """Return P(true = k | x, observed label) with a last column for no class."""
    n_rows, n_classes = table.codes.size, table.classes.size
    proba = check_probabilities(label_proba, "label_proba")
    if proba.shape == (n_rows,) and not (per_class and n_classes > 2):
        return label_proba_of(proba, table)
    if proba.shape != (n_rows, n_classes):
        raise ValueError(
            f"label_proba has shape {proba.shape}, expected {(n_rows, n_classes)}: P(true = k) of "
            "every row and class."
        )
    return np.column_stack([proba, np.clip(1 - proba.sum(axis=1), 0, 1)])


def label_proba_of(wrong: Floats, table: Labels) -> Floats:
    """Return P(true = k | x, observed label) from P(wrong) alone: one class for all others."""
    n_rows, n_classes = table.codes.size, table.classes.size
    whole = np.zeros((n_rows, n_classes + 1))
    whole[np.arange(n_rows), table.codes] = 1 - wrong
    whole[np.arange(n_rows), (table.codes + 1) % n_classes] = wrong
    return whole
