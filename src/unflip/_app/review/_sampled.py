"""Rows drawn from the table: a plain random sample, and draws with recorded probabilities."""

import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from unflip._app.review._fingerprint import Fingerprint

DRAWN = ("count", "train")
"""Goals whose rows are drawn one after the other, each with a recorded probability."""

BLIND = ("sample", *DRAWN)
"""Queues of rows that are drawn: they check the model, so its opinion is hidden."""


@dataclass(frozen=True)
class Decision:
    """The current decision on a row.

    Examples
    --------
    >>> from unflip.review import Decision
    >>> Decision(3, version=1, verdict="keep", label=0).verdict
    'keep'
    """

    # Position in the table.
    row: int
    # Number of times the row was written to.
    version: int = 0
    # "keep", "change" or "unsure"; None: not decided, or undone.
    verdict: str | None = None
    # Class index of the true label; None if unknown.
    label: int | None = None


class KnownRow(NamedTuple):
    """A row of the file: its position in the table (None if missing), and its stored facts."""

    row: int | None
    place: int
    id: str | None
    given: str


class Draw(NamedTuple):
    """A row that was drawn from those not drawn before."""

    # Position in the table.
    row: int
    # The probability with which it was drawn at its turn.
    probability: float
    # What it was drawn for: one of DRAWN, or "sample".
    goal: str


class SampledRows(ABC):
    """The part of a file of decisions that knows which rows were drawn, and how."""

    notes: list[str]
    _fingerprint: Fingerprint
    _rows: dict[int, KnownRow]
    _standing: dict[int, sqlite3.Row]
    # Number of this table's random sample in the file; None until it is drawn.
    _sample: int | None
    # Keys of the random sample, and the draws, each in the order drawn.
    _sampled: list[int]
    _draws: list[sqlite3.Row]

    @abstractmethod
    def at_once(self) -> AbstractContextManager[None]:
        """Read the file once for everything that is asked inside.

        Returns
        -------
        context manager
            Other processes' decisions are seen when it is entered.
        """

    @abstractmethod
    def all(self) -> dict[int, Decision]:
        """Return the current decision on every row of the table that was ever written to.

        Returns
        -------
        dict of int to Decision
            By row.
        """

    @abstractmethod
    def _key_of(self, row: int) -> int: ...

    @abstractmethod
    def _writing(self) -> AbstractContextManager[sqlite3.Connection]: ...

    def decided_in_sample(self) -> set[int]:
        """Return the rows that were decided in the queue of the random sample.

        Returns
        -------
        set of int
            Rows.
        """
        with self.at_once():
            return self._decided_in("sample")

    def _decided_in(self, *queues: str) -> set[int]:
        """Return the rows that were decided in these queues, as rows of the present sample."""
        rows = {
            self._rows[event["key"]].row
            for event in self._standing.values()
            if event["queue"] in queues and event["sample"] == self._sample is not None
        }
        return {row for row in rows if row is not None}

    def _sampled_rows(self) -> list[int]:
        rows = (self._rows[key].row for key in self._sampled)
        return [row for row in rows if row is not None]

    def reviewed_sample(self) -> list[int]:
        """Return the reviewed part of the stored random sample, in the order drawn.

        It ends with the last row that was decided in the sample queue, or with the sample, if all
        of it is decided. Decisions made in other queues do not extend it: those rows were chosen
        because they are suspicious.

        Returns
        -------
        list of int
            Rows.
        """
        with self.at_once():
            drawn, decided, decisions = self._sampled_rows(), self._decided_in("sample"), self.all()
        if all(row in decisions and decisions[row].verdict for row in drawn):
            return drawn
        positions = [k for k, row in enumerate(drawn) if row in decided]
        return drawn[: max(positions, default=-1) + 1]

    def sample(self, size: int, *, random_state: int | None = None) -> list[int]:
        """Return a random sample of the table's rows, in the order drawn; drawn once and stored.

        A larger size later continues the draw: a smaller sample is the beginning of a larger one.
        If rows are added, removed or changed, a new sample is drawn, as the former is no longer a
        random sample of the table.

        Parameters
        ----------
        size : int
            Number of rows, at most all.
        random_state : int, default=None
            Seed of the rows that are still to be drawn.

        Returns
        -------
        list of int
            Rows.
        """
        with self._writing() as connection:
            number, former, drawn = self._sample, set[int](), self._sampled_rows()
            if number is None:
                standing = self._standing.values()
                former = {event["key"] for event in standing if event["sample"] is not None}
                number = connection.execute(
                    "INSERT INTO samples (population) VALUES (?)", (self._fingerprint.population,)
                ).lastrowid
            n_missing = min(size, self._fingerprint.n_rows) - len(drawn)
            if n_missing > 0:
                rest = np.setdiff1d(np.arange(self._fingerprint.n_rows), drawn)
                new = np.random.default_rng(random_state).choice(rest, n_missing, replace=False)
                new_keys = [self._key_of(row) for row in new.tolist()]
                connection.executemany(
                    "INSERT INTO sampled VALUES (?, ?, ?)",
                    ((number, place, key) for place, key in enumerate(new_keys, start=len(drawn))),
                )
                drawn += new.tolist()
        if former:
            self.notes.append(
                "The rows of the table have changed since the random sample was drawn, so it is no "
                "longer a random sample. A new one was drawn, and the estimate of the noise starts "
                f"again; the decisions on {len(former)} rows of the former sample are kept."
            )
        return drawn[:size]

    def draws(self) -> list[Draw]:
        """Return the rows drawn from this table so far, in the order drawn.

        Returns
        -------
        list of Draw
            Rows, each with the probability with which it was drawn.
        """
        with self.at_once():
            return [
                Draw(row, each["probability"], each["goal"])
                for each in self._draws
                if (row := self._rows[each["key"]].row) is not None
            ]

    def begin_draws(self) -> list[Draw]:
        """Return the draws so far; the reviewed part of the random sample begins them.

        Returns
        -------
        list of Draw
            In the order drawn.
        """
        draws = self.draws()
        if not draws:
            n_rows, reviewed = self._fingerprint.n_rows, self.reviewed_sample()
            plain = [Draw(row, 1 / (n_rows - k), "sample") for k, row in enumerate(reviewed)]
            self.add_draws(plain, after=0)
            draws = self.draws()
        return draws

    def add_draws(self, draws: Sequence[Draw], *, after: int) -> None:
        """Store more draws, unless another process has drawn since.

        Parameters
        ----------
        draws : sequence of Draw
            The draws, in order, each from the rows that were not drawn before.
        after : int
            Number of draws before them.
        """
        with self._writing() as connection:
            if len(self._draws) != after:
                return
            connection.executemany(
                "INSERT INTO draws VALUES (?, ?, ?, ?, ?)",
                [
                    (self._sample, place, self._key_of(draw.row), draw.probability, draw.goal)
                    for place, draw in enumerate(draws, start=after)
                ],
            )

    def reviewed_draws(self) -> list[Draw]:
        """Return the reviewed part of the draws, in the order drawn.

        It ends with the last row that was decided as drawn. Rows that were passed by before it
        belong to it, without an answer.

        Returns
        -------
        list of Draw
            Rows, each with the probability with which it was drawn.
        """
        with self.at_once():
            draws, decisions, decided = self.draws(), self.all(), self._decided_in(*DRAWN)
        if all(draw.row in decisions and decisions[draw.row].verdict for draw in draws):
            return draws
        ends = [k for k, draw in enumerate(draws) if draw.goal == "sample" or draw.row in decided]
        return draws[: max(ends, default=-1) + 1]

    def counted(self) -> list[Draw]:
        """Return the reviewed rows that say how noisy all labels are, in the order drawn.

        The reviewed draws; where only the random sample was reviewed, its rows, each as likely to
        be in it as every other.

        Returns
        -------
        list of Draw
            Rows, each with the probability with which it was drawn.
        """
        with self.at_once():
            draws = self.reviewed_draws()
            if any(draw.goal in DRAWN for draw in draws):
                return draws
            sample = self.reviewed_sample()
        return [Draw(row, len(sample) / self._fingerprint.n_rows, "sample") for row in sample]
