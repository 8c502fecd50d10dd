"""A review session, which answers the page's requests with plain dictionaries."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from unflip._app.review._agreement import agreement
from unflip._app.review._counting import HALF_WIDTH, Counting
from unflip._app.review._explain import Explainer
from unflip._app.review._export import answers_of, write_export
from unflip._app.review._images import ImageError, Images
from unflip._app.review._learning import Learning
from unflip._app.review._queue import GOAL_QUEUES, Opinion, QueueFilter, Queues
from unflip._app.review._sample import sample_estimate
from unflip._app.review._sampled import BLIND, DRAWN, Decision
from unflip._app.review._store import Decisions
from unflip._app.review._table import ReviewTable
from unflip._app.review._texts import WordMarks, is_text
from unflip._utils.typing import Record, Rows
from unflip._utils.validation import check_choice
from unflip.checked.internals import GOALS
from unflip.diagnostics import LEVEL

PAGE_ROWS = 50
"""Number of rows of a queue per request."""

N_SHOWN_CELLS = 12
"""Maximum number of cells shown first for a row, the most unusual ones."""

UNUSUAL = 2.0
"""Minimum distance of a marked cell from the mean of its class, in standard deviations."""

MAX_DISPUTED = 20
"""Maximum number of disputed rows that are listed."""

N_FEATURES = 8
"""Number of differing features shown for a row."""

N_SIMILAR = 6
"""Number of similar rows shown for a row."""

MAX_CELLS = 200
"""Maximum number of values sent for a row."""

MAX_CELL_CHARACTERS = 300
"""Maximum number of characters sent for a cell."""


class ReviewSession:
    """One review: the table, the model's opinion of it, and the decisions."""

    def __init__(
        self,
        table: ReviewTable,
        opinion: Opinion,
        store: Decisions,
        out: Path,
        *,
        title: str,
        sample_size: int,
        verdict: Sequence[str] = (),
        random_state: int | None = None,
        goal: str = "find",
        images: Images | None = None,
        features: Rows | None = None,
    ) -> None:
        self._table, self._store, self._out, self._title = table, store, out, title
        self._first, self._verdict = opinion, list(verdict)
        self._sample = store.sample(sample_size, random_state=random_state)
        check_choice(goal, tuple(GOAL_QUEUES), "goal")
        self._goal = goal
        self._counting = Counting(table.codes, opinion.wrong, store, random_state=random_state)
        self._queues = Queues(table, opinion, self._sample)
        self._learning = Learning(opinion, table.codes, features)
        self._update_model()
        self._explainer = Explainer(table)
        self._images = images
        self._pictures = {} if images is None else images.columns
        self._texts = {
            column.name: WordMarks(column, table.codes, table.classes.size)
            for k, column in enumerate(table.columns)
            if k not in self._pictures and is_text(column)
        }
        shown = {column.name for column in self._pictures.values()} | set(self._texts)
        self._compared = [column for column in table.columns if column.name not in shown]
        self._label_counts = np.bincount(table.codes, minlength=table.classes.size)
        self._model_wrong = opinion.errors / self._label_counts

    @property
    def learning(self) -> Learning:
        """The model that is updated with the decisions."""
        return self._learning

    @property
    def n_rows(self) -> int:
        """Number of rows of the table."""
        return self._table.n_rows

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return int(self._table.classes.size)

    def about(self) -> Record:
        """Return what does not change while the page is open."""
        return {
            "title": self._title,
            "n_rows": self.n_rows,
            "n_features": len(self._table.columns),
            "classes": self._table.names,
            "verdict": self._verdict,
            "decisions": str(self._store.path),
            "sample_size": len(self._sample),
            "queue": GOAL_QUEUES[self._goal],
            "goals": {GOAL_QUEUES[goal]: line for goal, line in GOALS.items()},
            "half_width": HALF_WIDTH,
            "checker": self._store.checker,
            "level": LEVEL,
            "notes": self._store.notes,
        }

    def queue(self, queue_filter: QueueFilter, after: int) -> Record:
        """Return the next rows of a queue, and its progress."""
        drawn: list[int] = []
        if queue_filter.queue in DRAWN:
            drawn = [draw.row for draw in self._counting.draw(queue_filter.queue)]
        decisions, now = self._store.mine(), self._learning.now
        rows, n_decided, n_members, more = self._queues.page(
            queue_filter, decisions, after=after, limit=PAGE_ROWS, opinion=now.opinion, drawn=drawn
        )
        if drawn:  # there are more to draw
            more = more or len(drawn) < self.n_rows
        blind = queue_filter.queue in BLIND
        return {
            "rows": [self._head(row, now.opinion, blind, decisions) for row in rows.tolist()],
            "model": now.version,
            "decided": n_decided,
            "total": n_members,
            "more": more,
        }

    def row(self, row: int, queue: str) -> Record:
        """Return everything shown for one row.

        The model's opinion of drawn rows is hidden: they check the model, and a reviewer who knows
        the opinion is biased.
        """
        blind, opinion = queue in BLIND, self._learning.now.opinion
        given = int(self._table.codes[row])
        other = opinion.other_label(row, given) if not blind or self.n_classes == 2 else None
        # without columns to compare, all rows are equally similar
        similar = self._explainer.similar(row, N_SIMILAR) if self._compared else []
        compared = {column.name for column in self._compared}
        found = self._explainer.differences(row, other, len(self._table.columns))
        decisions = self._store.mine()
        differences = [feature for feature in found if feature.name in compared]
        features = differences[:N_FEATURES]
        columns = self._table.columns[:MAX_CELLS]
        shown = {feature.name for feature in features}
        return {
            **self._head(row, opinion, blind, decisions),
            "other": other,
            "truth": None if blind else opinion.truth[row].tolist(),
            "texts": [{"name": n, "parts": marks.parts(row)} for n, marks in self._texts.items()],
            "pictures": [
                {"column": k, "name": column.name, "value": _short(column.text(row))}
                for k, column in self._pictures.items()
            ],
            "cells": self._cells(row, {each.name: each.score for each in differences}),
            "features": [
                asdict(feature) | {"value": _short(feature.value)} for feature in features
            ],
            "similar": [
                self._head(near, opinion, blind, decisions)
                | {
                    "values": {
                        column.name: _short(column.text(near))
                        for column in self._table.columns
                        if column.name in shown
                    }
                }
                for near in similar
            ],
            "values": [[column.name, _short(column.text(row))] for column in columns],
            "n_more_values": len(self._table.columns) - len(columns),
        }

    def _cells(self, row: int, scores: dict[str, float]) -> list[Record]:
        """Return the cells to show first, in the order of the table, with unusual ones marked."""
        columns = self._compared
        if len(columns) > N_SHOWN_CELLS:
            ranked = sorted(columns, key=lambda column: -abs(scores.get(column.name, 0.0)))
            kept = {column.name for column in ranked[:N_SHOWN_CELLS]}
            columns = [column for column in columns if column.name in kept]
        return [
            {
                "name": column.name,
                "value": _short(column.text(row)),
                "unusual": abs(scores.get(column.name, 0.0)) >= UNUSUAL,
            }
            for column in columns
        ]

    def image(self, row: int, column: int) -> tuple[bytes, str]:
        """Return a picture of a row and its content type."""
        if self._images is None:
            raise ImageError("the page was started without --images")
        return self._images.read(row, column)

    def tally(self) -> Record:
        """Return the counts of decisions, the one to undo, and the estimates."""
        with self._store.at_once():
            verdicts = Counter(decision.verdict for decision in self._store.mine().values())
            last = self._store.last()
            return {
                "keep": verdicts["keep"],
                "change": verdicts["change"],
                "unsure": verdicts["unsure"],
                "last": None if last is None else {"row": last.row, "version": last.version},
                "estimate": self._estimate(self._store.all()),
                "counted": self._counting.estimate(),
                "agreement": self._agreement(),
                "model": self._learning.about(),
            }

    def decide(
        self, row: int, version: int, verdict: str, label: int | None, queue: str
    ) -> Decision:
        """Store a decision, with the model's opinion of the row."""
        opinion = self._learning.now.opinion
        decided = self._store.decide(
            row,
            version,
            verdict,
            {"keep": int(self._table.codes[row]), "change": label, "unsure": None}[verdict],
            queue=queue,
            suggested=int(opinion.suggested[row]),
            probability=float(opinion.wrong[row]),
        )
        self._update_model()
        return decided

    def undo(self, row: int, version: int) -> Decision:
        """Undo the latest decision on a row."""
        undone = self._store.undo(row, version)
        self._update_model()
        return self._store.mine().get(row, undone)

    def given(self, row: int) -> int:
        """Return the class index of a row's observed label."""
        return int(self._table.codes[row])

    def export(self) -> Record:
        """Write the export, and return the file names and the counts of decisions."""
        written = write_export(self._table, self._store, self._out)
        return {
            "folder": str(self._out),
            "files": [path.name for path in (written.corrected, written.reviewed, written.log)],
            "changed": written.n_changed,
            "kept": written.n_kept,
            "unsure": written.n_unsure,
        }

    def _update_model(self) -> None:
        """Pass the current decisions to the model."""
        answers = {
            row: decision.label
            for row, decision in self._store.all().items()
            if decision.label is not None
        }
        self._learning.update(answers)

    def _head(
        self, row: int, opinion: Opinion, blind: bool, decisions: dict[int, Decision]
    ) -> Record:
        return {
            **decision_dict(decisions.get(row, Decision(row))),
            "row": row,
            "id": None if self._table.ids is None else _short(self._table.ids[row]),
            "given": int(self._table.codes[row]),
            "suggested": None if blind else int(opinion.suggested[row]),
            "probability": None if blind else float(opinion.wrong[row]),
            "none": None if blind else float(opinion.none[row]),
        }

    def _agreement(self) -> Record | None:
        """Return how far the checkers agree; None if fewer than two have decided."""
        checkers = self._store.checkers()
        if len(checkers) < 2:
            return None
        answers = answers_of(self._store)
        alpha, n_rows, disputed = agreement(answers, self.n_classes)
        return {
            "checkers": checkers,
            "alpha": None if math.isnan(alpha) else alpha,
            "n_rows": n_rows,
            "n_disputed": len(disputed),
            "disputed": [
                {"row": row, "answers": list(answers[row].items())}
                for row in disputed[:MAX_DISPUTED]
            ],
        }

    def _estimate(self, decisions: dict[int, Decision]) -> Record:
        """Return the noise rates from the reviewed sample, with skipped rows unsure, and of T."""
        counts = np.zeros((self.n_classes, self.n_classes))
        unsure = np.zeros(self.n_classes)
        for row in self._store.drawn.reviewed_sample():
            label = decisions[row].label if row in decisions else None
            if label is None:
                unsure[self._table.codes[row]] += 1
            else:
                counts[self._table.codes[row], label] += 1
        found = sample_estimate(counts, unsure, self._label_counts)
        by_label = found.wrong_by_label, found.wrong_by_label_interval, self._model_wrong
        rates = found.rates, found.rates_interval, self._first.rates
        wrong = found.wrong, found.wrong_interval, self._first.error_rate.value
        return {
            "n_rows": found.n_rows,
            "n_unsure": found.n_unsure,
            "wrong": _estimate_dict(*wrong),
            "wrong_by_label": [_estimate_dict(*each) for each in zip(*by_label, strict=True)],
            "rates": [_estimate_dict(*each) for each in zip(*rates, strict=True)],
        }


def _estimate_dict(estimate: float, interval: Any, model: float) -> Record:
    return {
        "sample": None if math.isnan(estimate) else float(estimate),
        "low": float(interval[0]),
        "high": float(interval[1]),
        "model": float(model),
    }


def decision_dict(decision: Decision) -> Record:
    """Return a decision as a dictionary for the page."""
    return {"version": decision.version, "verdict": decision.verdict, "label": decision.label}


def _short(text: str | None) -> str | None:
    if text is None or len(text) <= MAX_CELL_CHARACTERS:
        return text
    return text[: MAX_CELL_CHARACTERS - 1] + "…"
