"""Decisions on disk: an append-only log in SQLite, with a version per row."""

import json
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

import numpy as np

VERDICTS = ("keep", "change", "unsure")
"""What a person may say of a label."""

APPLICATION = 0x756E6672
"""SQLite's application_id of these files."""

SCHEMA = """
CREATE TABLE source (fingerprint TEXT NOT NULL);
CREATE TABLE events (
    number INTEGER PRIMARY KEY,
    at TEXT NOT NULL,
    row INTEGER NOT NULL,
    version INTEGER NOT NULL,
    verdict TEXT CHECK (verdict IN ('keep', 'change', 'unsure')),
    label INTEGER,
    queue TEXT,
    suggested INTEGER,
    probability REAL,
    undoes INTEGER,
    UNIQUE (row, version)
);
CREATE TABLE sample (position INTEGER PRIMARY KEY, row INTEGER NOT NULL UNIQUE);
CREATE VIEW standing AS SELECT * FROM events AS decision WHERE undoes IS NULL AND NOT EXISTS (
    SELECT 1 FROM events WHERE row = decision.row AND undoes = decision.version
);
"""
"""`events` is only ever added to; `standing` are the decisions in it that were not undone."""

CURRENT = (
    "SELECT row, version, verdict, label FROM events WHERE row = ? ORDER BY version DESC LIMIT 1"
)


@dataclass(frozen=True)
class Decision:
    """What is said of a row's label at present.

    Parameters
    ----------
    row : int
        Position in the table.
    version : int
        How often the row was written to; 0: never.
    verdict : {"keep", "change", "unsure"} or None
        None: nothing is said, or it was undone.
    label : int or None
        The right label's position among the classes; None where it is not known.
    """

    row: int
    version: int = 0
    verdict: str | None = None
    label: int | None = None


class StaleDecisionError(Exception):
    """The row was written to since it was read; `current` is what it says now."""

    def __init__(self, current: Decision) -> None:
        super().__init__(f"row {current.row} has version {current.version} by now.")
        self.current = current


class Decisions:
    """The decisions on one table, on disk before a method returns.

    Every write names the version of the row that it was made for, and is refused where the row
    has another by now: nothing is overwritten unseen, by another page or another process.

    Parameters
    ----------
    path : Path
        The SQLite file; made where it is missing.
    fingerprint : dict
        What tells the table from others, as JSON. A file of another table is refused.
    """

    def __init__(self, path: Path, fingerprint: dict[str, Any]) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self._lock = threading.Lock()
        self._known: dict[int, Decision] = {}
        self._read_until = 0
        # every statement commits by itself, unless it is within `_writing`
        self._connection = sqlite3.connect(
            path, timeout=30, isolation_level=None, check_same_thread=False
        )
        self._connection.row_factory = sqlite3.Row
        try:
            self._open(fingerprint)
        except BaseException as error:
            self.close()
            if isinstance(error, sqlite3.DatabaseError):
                raise ValueError(
                    f"{path} cannot be read as a file of decisions ({error}). Name another file."
                ) from error
            raise

    def _open(self, fingerprint: dict[str, Any]) -> None:
        # a commit returns when the log is on the disk, not before
        self._connection.execute("PRAGMA synchronous = FULL")
        with self._writing() as connection:
            application = connection.execute("PRAGMA application_id").fetchone()[0]
            tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
            if application == 0 and tables == 0:
                for statement in filter(str.strip, SCHEMA.split(";")):
                    connection.execute(statement)
                connection.execute(f"PRAGMA application_id = {APPLICATION}")
                connection.execute("INSERT INTO source VALUES (?)", (json.dumps(fingerprint),))
            elif application != APPLICATION:
                raise ValueError(f"{self.path} is a database of something else. Name another file.")
            text = connection.execute("SELECT fingerprint FROM source").fetchone()[0]
        self._connection.execute("PRAGMA journal_mode = WAL")
        known = json.loads(text)
        differing = [key for key in fingerprint if known.get(key) != fingerprint[key]]
        if differing:
            raise ValueError(
                f"{self.path} holds decisions on another table: {_difference(known, fingerprint)}. "
                "Give the table that it was made for, unsorted and with its labels unchanged, or "
                "name another file."
            )

    def decide(
        self,
        row: int,
        version: int,
        verdict: str,
        label: int | None,
        *,
        queue: str | None = None,
        suggested: int | None = None,
        probability: float | None = None,
    ) -> Decision:
        """Write a decision for a row that is at `version`, and return it.

        Parameters
        ----------
        row : int
            Position in the table.
        version : int
            The row's version that the decision was made for.
        verdict : {"keep", "change", "unsure"}
            What is said.
        label : int or None
            The right label's position among the classes; None where it is not known.
        queue : str, default=None
            The order in which the row came up, for the log.
        suggested, probability : default=None
            What the model said of it, for the log.
        """
        with self._writing() as connection:
            self._check_version(row, version)
            connection.execute(
                "INSERT INTO events (at, row, version, verdict, label, queue, suggested, "
                "probability) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (_now(), row, version + 1, verdict, label, queue, suggested, probability),
            )
        return Decision(row, version + 1, verdict, label)

    def undo(self, row: int, version: int) -> Decision:
        """Take back the latest decision on a row that is at `version`, and return what it says now.

        What was said of the row before holds again. Nothing is deleted: the log keeps both.

        Parameters
        ----------
        row : int
            Position in the table.
        version : int
            The row's version that the caller has seen.
        """
        with self._writing() as connection:
            self._check_version(row, version)
            standing = connection.execute(
                "SELECT * FROM standing WHERE row = ? ORDER BY number DESC LIMIT 2", (row,)
            ).fetchall()
            if not standing:
                raise ValueError(f"row {row} has no decision that could be undone.")
            before = standing[1] if len(standing) == 2 else {"verdict": None, "label": None}
            connection.execute(
                "INSERT INTO events (at, row, version, verdict, label, undoes) "
                "VALUES (?, ?, ?, ?, ?, ?)",
                (
                    _now(),
                    row,
                    version + 1,
                    before["verdict"],
                    before["label"],
                    standing[0]["version"],
                ),
            )
        return Decision(row, version + 1, before["verdict"], before["label"])

    def current(self, row: int) -> Decision:
        """Return what is said of a row."""
        found = self._read(CURRENT, row)
        return Decision(*found[0]) if found else Decision(row)

    def all(self) -> dict[int, Decision]:
        """Return what is said of every row that was ever written to."""
        with self._lock:
            # the log is only ever added to, by other processes too: what is new in it is enough
            for number, *said in self._connection.execute(
                "SELECT number, row, version, verdict, label FROM events WHERE number > ? "
                "ORDER BY number",
                (self._read_until,),
            ):
                self._read_until, decision = number, Decision(*said)
                self._known[decision.row] = decision
            return dict(self._known)

    def last(self) -> Decision | None:
        """Return the row that was decided last, as it is now; None: there is nothing to undo."""
        found = self._read("SELECT row FROM standing ORDER BY number DESC LIMIT 1")
        return self.current(found[0]["row"]) if found else None

    def log(self) -> list[dict[str, Any]]:
        """Return every event, the oldest first."""
        return [dict(entry) for entry in self._read("SELECT * FROM events ORDER BY number")]

    def decided_in_sample(self) -> set[int]:
        """Return the rows of the random sample that were decided when they came up in it."""
        # a cross join goes through the sample, which is short, and not through the log
        found = self._read(
            "SELECT DISTINCT row FROM sample CROSS JOIN standing USING (row) WHERE queue = 'sample'"
        )
        return {entry[0] for entry in found}

    def sample(self, size: int, n_rows: int, random_state: int | None = None) -> list[int]:
        """Return a random sample of rows, in the order drawn; drawn once, and kept.

        A larger size later goes on where the drawing stopped, so a smaller sample is the beginning
        of a larger one.

        Parameters
        ----------
        size : int
            How many rows, at most all.
        n_rows : int
            Rows of the table.
        random_state : int, default=None
            Seed of what is still to be drawn.
        """
        with self._writing() as connection:
            drawn = [
                entry[0] for entry in connection.execute("SELECT row FROM sample ORDER BY position")
            ]
            lacking = min(size, n_rows) - len(drawn)
            if lacking > 0:
                rest = np.setdiff1d(np.arange(n_rows), drawn)
                new = np.random.default_rng(random_state).choice(rest, lacking, replace=False)
                connection.executemany(
                    "INSERT INTO sample VALUES (?, ?)", enumerate(new.tolist(), start=len(drawn))
                )
                drawn += new.tolist()
        return drawn[:size]

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _check_version(self, row: int, version: int) -> None:
        current = self._connection.execute(CURRENT, (row,)).fetchone()
        decision = Decision(*current) if current else Decision(row)
        if decision.version != version:
            raise StaleDecisionError(decision)

    def _read(self, query: str, *values: Any) -> list[sqlite3.Row]:
        with self._lock:
            return self._connection.execute(query, values).fetchall()

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction, alone: what is read in it is still so when it is written."""
        with self._lock:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _difference(known: dict[str, Any], given: dict[str, Any]) -> str:
    """Say what differs first."""
    if known["n_rows"] != given["n_rows"]:
        return f"it had {known['n_rows']} rows, this one has {given['n_rows']}"
    if (known["columns"], known["label"]) != (given["columns"], given["label"]):
        return (
            f"its columns were {', '.join(known['columns'])} and its label {known['label']}, these "
            f"are {', '.join(given['columns'])} and {given['label']}"
        )
    return "its labels were others, or in another order"
