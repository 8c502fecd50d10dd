"""The model's opinion, updated with the answers during the review."""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np

from unflip._app.review._queue import Opinion
from unflip._utils.typing import Codes, Record, Rows
from unflip._utils.validation import Labels
from unflip.checked import CheckedLabels
from unflip.checked.internals import MIN_CHECKED, recalibrate

EVERY = 5
"""Number of new or changed answers after which the model is updated."""

TURN = 0.0005
"""Seconds after which the updating thread lets others run, which answer the page."""

FEWEST = MIN_CHECKED
"""Minimum number of answers to update the model with."""

Answers = dict[int, int]
"""Class index of the true label of each decided row."""


@contextmanager
def short_turns() -> Iterator[None]:
    """Let threads take turns ten times as often as by default."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(min(before, TURN))
    try:
        yield
    finally:
        sys.setswitchinterval(before)


class Known(NamedTuple):
    """The model's opinion, the answers it includes, and the number of updates."""

    opinion: Opinion
    answers: Answers
    version: int


class Learning:
    """Updates P(true | x, observed label) with the answers, in a background thread."""

    def __init__(self, first: Opinion, given: Codes, features: Rows | None) -> None:
        self.now = Known(first, {}, 0)
        self._first, self._features = first, features
        self._labels = Labels(np.arange(first.truth.shape[1]), given)
        self._lock = threading.Lock()
        self._wanted: Answers = {}
        self._thread: threading.Thread | None = None
        self._trouble: str | None = None

    def update(self, answers: Answers) -> None:
        """Take the current answers, and start an update if enough of them are new."""
        with self._lock:
            self._wanted = answers
            if self._thread is None and self._is_due():
                self._thread = threading.Thread(target=self._run, daemon=True)
                self._thread.start()

    def wait(self) -> None:
        """Wait for the running update, if any."""
        thread = self._thread
        if thread is not None:
            thread.join()

    def about(self) -> Record:
        """Return the state of the model."""
        return {
            "version": self.now.version,
            "n_answers": len(self.now.answers),
            "is_learning": self._thread is not None,
            "trouble": self._trouble,
        }

    def _is_due(self) -> bool:
        few = len(self._wanted) < FEWEST and not self.now.answers
        if few or self._trouble is not None:
            return False
        n_new = len(self._wanted.items() ^ self.now.answers.items())
        return n_new >= EVERY

    def _run(self) -> None:
        while True:
            with self._lock:
                if not self._is_due():
                    self._thread = None
                    return
                answers = self._wanted
            try:
                opinion = self._learn(answers)
            except (ValueError, ArithmeticError, MemoryError) as error:
                # the review continues with the last model, and the page shows the reason
                self._trouble = f"{type(error).__name__}: {error}"
                continue
            self.now = Known(opinion, answers, self.now.version + 1)

    def _learn(self, answers: Answers) -> Opinion:
        checked = CheckedLabels(np.array(list(answers), dtype=np.intp), list(answers.values()))
        first = self._first
        truth = recalibrate(
            checked, self._features, self._labels, first.truth, first.noisy, first.error_rate
        )
        return first.with_truth(truth, self._labels.codes)
