"""What the page asks for and what it says, as plain dictionaries."""

import math
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from unflip._app.review._explain import Explainer
from unflip._app.review._export import write_export
from unflip._app.review._queue import Opinion, Queues, Wanted
from unflip._app.review._sample import LEVEL, sample_estimate
from unflip._app.review._source import Source
from unflip._app.review._store import Decision, Decisions

PAGE_ROWS = 50
"""Rows of a queue that are sent at once."""

FEATURES = 8
"""Features that differ most, shown for a row."""

SIMILAR = 6
"""Similar rows, shown for a row."""

MOST_CELLS = 200
"""Features of which a row's values are sent."""

LONGEST_CELL = 300
"""Characters of a cell that are sent."""


class Desk:
    """One review: the table, what the model says, and the decisions.

    Parameters
    ----------
    source : Source
        The table.
    opinion : Opinion
        What the model says of it.
    store : Decisions
        Where the decisions are kept.
    out : Path
        Folder of the export.
    title : str
        What the page is called.
    sample_size : int
        Rows of the random sample.
    random_state : int, default=None
        Seed of the sample.
    """

    def __init__(
        self,
        source: Source,
        opinion: Opinion,
        store: Decisions,
        out: Path,
        *,
        title: str,
        sample_size: int,
        random_state: int | None = None,
    ) -> None:
        self._source, self._store, self._out, self._title = source, store, out, title
        self._opinion = opinion
        self._sample = store.sample(sample_size, random_state=random_state)
        self._queues = Queues(source, opinion, self._sample)
        self._explainer = Explainer(source)
        self._label_counts = np.bincount(source.codes, minlength=source.classes.size)
        wrong = np.bincount(source.codes, opinion.wrong, minlength=source.classes.size)
        self._model_wrong = wrong / self._label_counts

    @property
    def n_rows(self) -> int:
        """Rows of the table."""
        return self._source.n_rows

    @property
    def n_classes(self) -> int:
        """Classes of the labels."""
        return int(self._source.classes.size)

    def about(self) -> dict[str, Any]:
        """Return what does not change while the page is open."""
        return {
            "title": self._title,
            "n_rows": self.n_rows,
            "n_features": len(self._source.columns),
            "classes": self._source.names,
            "expected_wrong": float(self._opinion.wrong.sum()),
            "decisions": str(self._store.path),
            "sample_size": len(self._sample),
            "level": LEVEL,
            "notes": self._store.notes,
        }

    def queue(self, wanted: Wanted, after: int) -> dict[str, Any]:
        """Return the next rows of a queue, and how far it is."""
        decisions = self._store.all()
        rows, n_decided, n_members, more = self._queues.page(
            wanted, decisions, after=after, limit=PAGE_ROWS
        )
        blind = wanted.queue == "sample"
        return {
            "rows": [
                self._head(row, blind) | said(decisions.get(row, Decision(row)))
                for row in rows.tolist()
            ],
            "decided": n_decided,
            "total": n_members,
            "more": more,
        }

    def row(self, row: int, queue: str) -> dict[str, Any]:
        """Return all that is shown of one row.

        In the random sample the model is not quoted: who has read its opinion is swayed by it, and
        the sample is there to check it.
        """
        blind = queue == "sample"
        given = int(self._source.codes[row])
        other = self._opinion.other_label(row, given) if not blind or self.n_classes == 2 else None
        similar = self._explainer.similar(row, SIMILAR)
        features = self._explainer.differences(row, other, FEATURES)
        columns = self._source.columns[:MOST_CELLS]
        shown = {feature.name for feature in features}
        return {
            **self._head(row, blind),
            **said(self._store.current(row)),
            "other": other,
            "truth": None if blind else self._opinion.truth[row].tolist(),
            "features": [
                asdict(feature) | {"value": _short(feature.value)} for feature in features
            ],
            "similar": [
                self._head(near, blind)
                | said(self._store.current(near))
                | {
                    "values": {
                        column.name: _short(column.text(near))
                        for column in self._source.columns
                        if column.name in shown
                    }
                }
                for near in similar
            ],
            "values": [[column.name, _short(column.text(row))] for column in columns],
            "n_more_values": len(self._source.columns) - len(columns),
        }

    def tally(self) -> dict[str, Any]:
        """Return how many rows are decided, what can be undone, and what the sample says."""
        decisions = self._store.all()
        verdicts = Counter(decision.verdict for decision in decisions.values())
        last = self._store.last()
        return {
            "keep": verdicts["keep"],
            "change": verdicts["change"],
            "unsure": verdicts["unsure"],
            "last": None if last is None else {"row": last.row, "version": last.version},
            "estimate": self._estimate(decisions),
        }

    def decide(
        self, row: int, version: int, verdict: str, label: int | None, queue: str
    ) -> Decision:
        """Write a decision, with what the model said of the row."""
        return self._store.decide(
            row,
            version,
            verdict,
            {"keep": int(self._source.codes[row]), "change": label, "unsure": None}[verdict],
            queue=queue,
            suggested=int(self._opinion.suggested[row]),
            probability=float(self._opinion.wrong[row]),
        )

    def undo(self, row: int, version: int) -> Decision:
        """Take back the latest decision on a row."""
        return self._store.undo(row, version)

    def given(self, row: int) -> int:
        """Return the position of a row's label among the classes."""
        return int(self._source.codes[row])

    def export(self) -> dict[str, Any]:
        """Write the files, and return their names and how many rows were changed."""
        written = write_export(self._source, self._store, self._out)
        return {
            "folder": str(self._out),
            "files": [path.name for path in (written.corrected, written.reviewed, written.log)],
            "changed": written.n_changed,
            "kept": written.n_kept,
            "unsure": written.n_unsure,
        }

    def _head(self, row: int, blind: bool) -> dict[str, Any]:
        return {
            "row": row,
            "id": None if self._source.ids is None else _short(self._source.ids[row]),
            "given": int(self._source.codes[row]),
            "suggested": None if blind else int(self._opinion.suggested[row]),
            "probability": None if blind else float(self._opinion.wrong[row]),
        }

    def _estimate(self, decisions: dict[int, Decision]) -> dict[str, Any]:
        """Return the noise rates by the part of the sample that was gone through, and the model's.

        That part ends with the last row that was decided as a row of the sample: what was decided
        elsewhere was chosen for its suspicion, and does not stretch it. Rows in it that were passed
        by count as unsure.
        """
        through = self._store.decided_in_sample()
        places = [place for place, row in enumerate(self._sample) if row in through]
        n_through = max(places, default=-1) + 1
        if all(row in decisions and decisions[row].verdict for row in self._sample):
            n_through = len(self._sample)
        counts = np.zeros((self.n_classes, self.n_classes))
        unsure = np.zeros(self.n_classes)
        for row in self._sample[:n_through]:
            label = decisions[row].label if row in decisions else None
            if label is None:
                unsure[self._source.codes[row]] += 1
            else:
                counts[self._source.codes[row], label] += 1
        found = sample_estimate(counts, unsure, self._label_counts)
        return {
            "n_rows": found.n_rows,
            "n_unsure": found.n_unsure,
            "wrong": _figure(found.wrong, found.wrong_interval, self._opinion.wrong.mean()),
            "wrong_by_label": [
                _figure(*each)
                for each in zip(
                    found.wrong_by_label,
                    found.wrong_by_label_interval,
                    self._model_wrong,
                    strict=True,
                )
            ],
            "rates": [
                _figure(*each)
                for each in zip(found.rates, found.rates_interval, self._opinion.rates, strict=True)
            ],
        }


def _figure(estimate: float, interval: Any, model: float) -> dict[str, Any]:
    return {
        "sample": None if math.isnan(estimate) else float(estimate),
        "low": float(interval[0]),
        "high": float(interval[1]),
        "model": float(model),
    }


def said(decision: Decision) -> dict[str, Any]:
    """Return a decision as the page reads it."""
    return {
        "version": decision.version,
        "verdict": decision.verdict,
        "label": decision.label,
    }


def _short(text: str | None) -> str | None:
    if text is None or len(text) <= LONGEST_CELL:
        return text
    return text[: LONGEST_CELL - 1] + "…"
