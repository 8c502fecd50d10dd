"""Rows drawn from the table: a plain random sample, and draws with recorded probabilities."""

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from unflip._app.review._store import Decisions

DRAWN = ("count", "train")
"""Goals whose rows are drawn one by one, each with a recorded probability."""

BLIND = ("sample", *DRAWN)
"""Queues of drawn rows: they check the model, so its opinion is hidden."""


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
    """A row of the file: its position in the table (None if missing) and its stored facts."""

    row: int | None
    place: int
    id: str | None
    given: str


class Draw(NamedTuple):
    """A row drawn from those not drawn before."""

    # Position in the table.
    row: int
    # Probability with which it was drawn at its turn.
    probability: float
    # One of DRAWN, or "sample".
    goal: str


class Sampled:
    """The rows of a file of decisions that were drawn at random, and with which probability."""

    def __init__(self, store: "Decisions", population: str, n_rows: int) -> None:
        self._store, self._population, self._n_rows = store, population, n_rows
        # number of this table's random sample in the file; None until it is drawn
        self.number: int | None = None
        # keys of the random sample, and the draws, each in the order drawn
        self._keys: list[int] = []
        self._draws: list[sqlite3.Row] = []

    def unread(self, connection: sqlite3.Connection) -> tuple[list[sqlite3.Row], list[sqlite3.Row]]:
        """Return the entries of the sample and of the draws that are not known yet."""
        if self.number is None:
            query = "SELECT number FROM samples WHERE population = ?"
            found = connection.execute(query, (self._population,)).fetchone()
            if found is None:
                return [], []
            self.number = found[0]
        after = "WHERE sample = ? AND place >= ? ORDER BY place"
        sampled = f"SELECT key FROM sampled {after}"  # noqa: S608
        draws = f"SELECT key, probability, goal FROM draws {after}"  # noqa: S608
        return (
            connection.execute(sampled, (self.number, len(self._keys))).fetchall(),
            connection.execute(draws, (self.number, len(self._draws))).fetchall(),
        )

    def add(self, sampled: list[sqlite3.Row], draws: list[sqlite3.Row]) -> None:
        """Take up entries whose rows are known."""
        self._keys += [key for (key,) in sampled]
        self._draws += draws

    def decided_in(self, *queues: str) -> set[int]:
        """Return the rows that were decided in these queues, as rows of the present sample."""
        with self._store.at_once():
            return {
                row
                for event in self._store._standing.values()
                if event["queue"] in queues
                and event["sample"] == self.number is not None
                and (row := self._row(event["key"])) is not None
            }

    def _row(self, key: int) -> int | None:
        return self._store._rows[key].row

    def _are_decided(self, rows: Sequence[int]) -> bool:
        decisions = self._store.all()
        return all(row in decisions and decisions[row].verdict for row in rows)

    def _sampled_rows(self) -> list[int]:
        rows = map(self._row, self._keys)
        return [row for row in rows if row is not None]

    def reviewed_sample(self) -> list[int]:
        """Return the reviewed part of the random sample, in the order drawn.

        It ends with the last row decided in the sample queue. Decisions in other queues do not
        extend it, since those rows were chosen because they are suspicious.
        """
        with self._store.at_once():
            drawn, decided = self._sampled_rows(), self.decided_in("sample")
            if self._are_decided(drawn):
                return drawn
        positions = [k for k, row in enumerate(drawn) if row in decided]
        return drawn[: max(positions, default=-1) + 1]

    def sample(self, size: int, random_state: int | None) -> tuple[list[int], int]:
        """Return a random sample, and how many decisions a former sample had that it replaces."""
        with self._store._writing() as connection:
            number, former, drawn = self.number, set[int](), self._sampled_rows()
            if number is None:
                standing = self._store._standing.values()
                former = {event["key"] for event in standing if event["sample"] is not None}
                number = connection.execute(
                    "INSERT INTO samples (population) VALUES (?)", (self._population,)
                ).lastrowid
            n_missing = min(size, self._n_rows) - len(drawn)
            if n_missing > 0:
                rest = np.setdiff1d(np.arange(self._n_rows), drawn)
                new = np.random.default_rng(random_state).choice(rest, n_missing, replace=False)
                new_keys = [self._store._key_of(row) for row in new.tolist()]
                connection.executemany(
                    "INSERT INTO sampled VALUES (?, ?, ?)",
                    ((number, place, key) for place, key in enumerate(new_keys, start=len(drawn))),
                )
                drawn += new.tolist()
        return drawn[:size], len(former)

    def draws(self) -> list[Draw]:
        """Return the rows drawn so far, in the order drawn."""
        with self._store.at_once():
            return [
                Draw(row, each["probability"], each["goal"])
                for each in self._draws
                if (row := self._row(each["key"])) is not None
            ]

    def begin_draws(self) -> list[Draw]:
        """Return the draws so far, which begin with the reviewed part of the random sample."""
        if not self.draws():
            reviewed = self.reviewed_sample()
            plain = [Draw(row, 1 / (self._n_rows - k), "sample") for k, row in enumerate(reviewed)]
            self.add_draws(plain, after=0)
        return self.draws()

    def add_draws(self, draws: Sequence[Draw], *, after: int) -> None:
        """Store more draws after the first `after`, unless another process has drawn since."""
        with self._store._writing() as connection:
            if len(self._draws) != after:
                return
            connection.executemany(
                "INSERT INTO draws VALUES (?, ?, ?, ?, ?)",
                [
                    (self.number, place, self._store._key_of(draw.row), draw.probability, draw.goal)
                    for place, draw in enumerate(draws, start=after)
                ],
            )

    def reviewed_draws(self) -> list[Draw]:
        """Return the draws up to the last one decided as drawn; those skipped before it count."""
        with self._store.at_once():
            draws, decided = self.draws(), self.decided_in(*DRAWN)
            if self._are_decided([draw.row for draw in draws]):
                return draws
        ends = [k for k, draw in enumerate(draws) if draw.goal == "sample" or draw.row in decided]
        return draws[: max(ends, default=-1) + 1]

    def counted(self) -> list[Draw]:
        """Return the reviewed rows from which the label error rate is estimated.

        These are the reviewed draws or, if only the random sample was reviewed, its rows with equal
        probabilities.
        """
        with self._store.at_once():
            draws = self.reviewed_draws()
            if any(draw.goal in DRAWN for draw in draws):
                return draws
            sample = self.reviewed_sample()
        return [Draw(row, len(sample) / self._n_rows, "sample") for row in sample]
