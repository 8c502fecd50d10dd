"""The queues of rows to review, and their filters."""

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import entropy
from sklearn.utils.validation import check_is_fitted

from unflip._app.review._sampled import BLIND, DRAWN, Decision
from unflip._app.review._table import ReviewTable
from unflip._utils.simplex import scaled_rows
from unflip._utils.typing import Floats
from unflip.audit import LabelAudit

Positions = NDArray[np.intp]

QUEUES = ("suspicious", *DRAWN, "informative", "sample")
"""By P(mislabelled), rows drawn for a goal, by information, and the random sample."""

GOAL_QUEUES = {"find": "suspicious", "count": "count", "train": "train"}
"""The queue of each goal."""

STATUSES = ("open", "all", "keep", "change", "unsure")
"""Filters by verdict; open: no verdict yet."""


class Opinion:
    """The model's opinion of every row, from a fitted audit."""

    def __init__(self, audit: LabelAudit, table: ReviewTable) -> None:
        check_is_fitted(audit, "mislabel_proba_")
        self.wrong: Floats = np.asarray(audit.mislabel_proba_, dtype=float)
        if self.wrong.shape != (table.n_rows,):
            raise ValueError(
                f"the audit was fitted to {self.wrong.size} rows, but the table has "
                f"{table.n_rows}. Fit it to the table under review."
            )
        # compared as text too: readers of tables may have parsed dates, or whole floats
        names = [str(value) for value in np.asarray(audit.classes_).tolist()]
        if not (names == table.names or np.array_equal(audit.classes_, table.classes)):
            raise ValueError(
                f"the audit was fitted to the classes {audit.classes_.tolist()}, but the table has "
                f"{table.classes.tolist()}. Fit it to the labels under review."
            )
        # P(noisy != i | true=i) of each class, the share of wrong labels, and their number by label
        self.rates: Floats = 1 - np.diagonal(audit.transition_matrix_)
        self.error_rate = audit.noise_.error_rate
        self.errors: Floats = audit.noise_.errors_by_label
        self.suggested: Positions = np.searchsorted(audit.classes_, audit.suggested_label_)
        # P(true y | x, label) for a row of some class, and P(no class)
        self.truth: Floats = np.asarray(audit.label_proba_)
        self.none: Floats = audit.none_proba_
        self.noisy: Floats = scaled_rows(audit.noisy_proba_)
        self._rank()

    def _rank(self) -> None:
        self.by_suspicion: Positions = np.argsort(-self.wrong, kind="stable")
        self.by_information: Positions = np.argsort(-self.information(), kind="stable")

    def with_truth(self, truth: Floats, given: Positions) -> "Opinion":
        """Return the same opinion with another P(true y | x, label)."""
        other = copy(self)
        other.truth, other.suggested = truth, truth.argmax(axis=1)
        right = truth[np.arange(given.size), given]
        other.wrong = np.clip(1 - (1 - self.none) * right, 0, 1)
        other._rank()
        return other

    def information(self) -> Floats:
        """Return H(true y | x, label) in bits: the expected information of a decision."""
        return np.asarray(entropy(self.truth, base=2, axis=1))

    def other_label(self, row: int, given: int) -> int:
        """Return the most likely label other than the given one."""
        truth = self.truth[row].copy()
        truth[given] = -1
        return int(np.argmax(truth))


@dataclass(frozen=True)
class QueueFilter:
    """A queue, and which of its rows to show."""

    queue: str
    status: str = "open"
    given: int | None = None
    least: float = 0.0
    words: str = ""


class Queues:
    """The queues of one table."""

    def __init__(self, table: ReviewTable, first: Opinion, sample: list[int]) -> None:
        self._table, self._first = table, first
        self._sample = np.asarray(sample, dtype=np.intp)

    def _order(self, queue: str, opinion: Opinion, drawn: Sequence[int]) -> Positions:
        if queue in DRAWN:
            return np.asarray(drawn, dtype=np.intp)
        if queue == "sample":
            return self._sample
        return opinion.by_suspicion if queue == "suspicious" else opinion.by_information

    def members(
        self,
        queue_filter: QueueFilter,
        opinion: Opinion | None = None,
        *,
        decided: Positions | None = None,
        drawn: Sequence[int] = (),
    ) -> Positions:
        """Return the rows of a queue, with any verdict; `decided` ones keep their places.

        Drawn rows are never filtered: a subset selected by content is not a random sample.
        """
        opinion = self._first if opinion is None else opinion
        order = self._order(queue_filter.queue, opinion, drawn)
        if queue_filter.queue in BLIND:
            return order
        kept = opinion.wrong >= queue_filter.least
        if decided is not None:
            kept[decided] = self._first.wrong[decided] >= queue_filter.least
        if queue_filter.given is not None:
            kept &= self._table.codes == queue_filter.given
        if queue_filter.words.strip():
            kept &= self._table.matches(queue_filter.words)
        return order[kept[order]]

    def page(
        self,
        queue_filter: QueueFilter,
        decisions: dict[int, Decision],
        *,
        after: int,
        limit: int,
        opinion: Opinion | None = None,
        drawn: Sequence[int] = (),
    ) -> tuple[Positions, int, int, bool]:
        """Return the next rows, the numbers of decided and of all rows, and whether more follow."""
        verdicts = np.full(self._table.n_rows, "open", dtype=object)
        for row, decision in decisions.items():
            verdicts[row] = decision.verdict or "open"
        opinion = self._first if opinion is None else opinion
        decided = np.array([row for row in decisions if verdicts[row] != "open"], dtype=np.intp)
        members = self.members(queue_filter, opinion, decided=decided, drawn=drawn)
        status = verdicts[members]
        start = 0
        if after >= 0:
            # positions in the full order, since the row may have left the filtered queue
            position = np.empty(self._table.n_rows, dtype=np.intp)
            position.fill(-1)
            order = self._order(queue_filter.queue, opinion, drawn)
            position[order] = np.arange(order.size)
            start = int(np.searchsorted(position[members], position[after], side="right"))
        hits = np.arange(members.size) >= start
        if queue_filter.status != "all":
            hits &= status == queue_filter.status
        rows = members[hits]
        return rows[:limit], int(np.sum(status != "open")), members.size, rows.size > limit
