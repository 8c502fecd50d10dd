"""Rows drawn to count errors or to train the model, and the error rate estimated from them."""

import math
from dataclasses import replace

import numpy as np

from unflip._app.review._sampled import Draw
from unflip._app.review._store import Decisions
from unflip._utils.typing import Codes, Floats, Record
from unflip._utils.validation import Labels
from unflip.checked import CheckedLabels
from unflip.checked.internals import (
    UNSURE,
    Predicted,
    choose_rows,
    estimate_predicted,
    label_error_rate,
    label_proba_of,
    rows_needed,
)
from unflip.diagnostics import LEVEL

BATCH = 10
"""Number of rows drawn at a time; the answers so far decide how the next are drawn."""

LEAST_OPEN = 3
"""Minimum number of open drawn rows; with fewer, more are drawn."""

HALF_WIDTH = 0.02
"""Half-width of the interval that a review is to reach."""


class Counting:
    """The draws of one review, and the label error rate that they show."""

    def __init__(
        self, given: Codes, wrong: Floats, store: Decisions, *, random_state: int | None = None
    ) -> None:
        self._given, self._store, self._seed = given, store, random_state
        self._wrong = np.clip(wrong, 0, 1)
        # computed once, for all decisions
        self._labels = Labels(np.arange(given.max() + 1), given)
        self._mean = float(self._wrong.mean())
        self._label_proba = label_proba_of(self._wrong, self._labels)

    def draw(self, goal: str) -> list[Draw]:
        """Return the draws so far, with more of them if few are open.

        Rows drawn for another goal stay in place: if reviewers could choose which drawn rows to
        answer, the estimate would depend on their choice.
        """
        draws, decisions = self._store.drawn.begin_draws(), self._store.all()
        n_open = sum(
            draw.row not in decisions or decisions[draw.row].verdict is None for draw in draws
        )
        if n_open >= LEAST_OPEN or len(draws) == self._given.size:
            return draws
        seed = None
        if self._seed is not None:
            # a new seed for every batch: the same one would repeat its numbers
            seed = int(np.random.SeedSequence([self._seed, len(draws)]).generate_state(1)[0])
        checked = self._checked(draws)
        drawn = checked.draws(self._labels)
        picked = choose_rows(goal, BATCH, drawn, checked.rows, self._given, self._label_proba, seed)
        new = [Draw(row, p, goal) for row, p in zip(*map(np.ndarray.tolist, picked), strict=True)]
        self._store.drawn.add_draws(new, after=len(draws))
        return self._store.drawn.draws()

    def estimate(self) -> Record:
        """Return the label error rate from the drawn rows, and how many more are needed."""
        draws = self._checked(self._store.drawn.counted()).draws(self._labels)
        said = self._wrong[draws.rows]
        found = estimate_predicted(
            [label_error_rate(self._given)],
            draws,
            [Predicted(said, np.ones(said.size), self._mean, 1.0)],
            LEVEL,
            with_model=True,
        )
        # until the interval that is valid at any time is as narrow
        always = replace(found, interval=found.anytime)
        return {
            "n_rows": found.n_rows,
            "n_unsure": found.n_unsure,
            "value": None if math.isnan(found.value) else found.value,
            "low": found.anytime[0],
            "high": found.anytime[1],
            "fixed": list(found.interval),
            "method": found.method,
            "more": rows_needed(found, self._given.size, HALF_WIDTH),
            "more_always": rows_needed(always, self._given.size, HALF_WIDTH),
        }

    def _checked(self, draws: list[Draw]) -> CheckedLabels:
        decisions = self._store.all()
        labels = [
            UNSURE
            if draw.row not in decisions or decisions[draw.row].label is None
            else decisions[draw.row].label
            for draw in draws
        ]
        rows = [draw.row for draw in draws]
        return CheckedLabels(
            rows, np.array(labels, dtype=object), [draw.probability for draw in draws]
        )
