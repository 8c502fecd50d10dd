"""Decisions on disk: an append-only log in SQLite, with a version per row."""

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

from unflip._app.review._file import OpenFile, OtherTableError, add_row, difference, unavailable
from unflip._app.review._fingerprint import Fingerprint, RowKey

VERDICTS = ("keep", "change", "unsure")
"""What a person may say of a label."""

MOST_NAMED = 20
"""Rows that are named in a message."""

LONGEST_NAME = 60
"""Characters of an id in a message."""


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


class KnownRow(NamedTuple):
    """A row that the file knows: where it is now, None for nowhere, and what was noted of it."""

    row: int | None
    place: int
    id: str | None
    given: str


class Decisions:
    """The decisions on one table, on disk before a method returns.

    Rows are known by their cells: a table whose rows were sorted, added to or taken from finds its
    decisions again. A decision on a row of which a cell has changed is kept, and not applied.

    Every write names the version of the row that it was made for, and is refused where the row
    has another by now: nothing is overwritten unseen, by another page or another process.

    Parameters
    ----------
    path : Path
        The SQLite file; made where it is missing.
    fingerprint : Fingerprint
        What tells the table from others (`Source.fingerprint`). A file of which no row is in the
        table is refused.

    Attributes
    ----------
    path : Path
        The file.
    notes : list of str
        What the user has to know of decisions that were moved with their rows, or could not be
        matched, and of the random sample.
    """

    def __init__(self, path: Path, fingerprint: Fingerprint) -> None:
        self.path = path
        self.notes: list[str] = []
        self._table = fingerprint
        self._lock = threading.Lock()
        self._labels = {name: position for position, name in enumerate(fingerprint.classes)}
        self._rows: dict[int, KnownRow] = {}
        self._keys: dict[int, int] = {}
        self._known: dict[int, Decision] = {}
        self._unapplied: dict[int, sqlite3.Row] = {}
        self._last_key = self._read_until = 0
        self._file = OpenFile(path, fingerprint)
        self._connection = self._file.connection
        try:
            self._match()
        except BaseException:
            self.close()
            raise

    def _match(self) -> None:
        """Find the rows of the file in the table, or refuse the table; note what has changed."""
        with self._reading():
            self._read_events()
        about, table = self._file.about, self._table
        matched = any(known.row is not None for known in self._rows.values())
        same = about.get("population") == table.population or matched
        if about["label"] != table.label or not same:
            raise OtherTableError(
                f"{self.path} holds decisions on another table: {difference(about, table)}. Give "
                "the table that it was made for, or name another file."
            )
        n_moved = sum(
            said.verdict is not None and self._rows[self._keys[row]].place != row
            for row, said in self._known.items()
        )
        if n_moved:
            self.notes.append(
                f"{_decisions(n_moved)} moved along with rows that stand elsewhere in the table "
                "now."
            )
        lost = [self._lost(key) for key, event in self._unapplied.items() if event["verdict"]]
        if lost:
            named = ", ".join(lost[:MOST_NAMED]) + (", ..." if len(lost) > MOST_NAMED else "")
            self.notes.append(
                f"{_decisions(len(lost))} could not be matched with the table and will not be "
                f"applied: {named}. What was decided stays in {self.path}."
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
            key = self._key_at(row, version)
            sample = self._sample_number() if queue == "sample" else None
            connection.execute(
                "INSERT INTO events (at, key, version, verdict, label, queue, suggested, "
                "probability, sample) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    _now(),
                    key,
                    version + 1,
                    verdict,
                    self._name(label),
                    queue,
                    self._name(suggested),
                    probability,
                    sample,
                ),
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
            key = self._key_at(row, version)
            standing = connection.execute(
                "SELECT * FROM standing WHERE key = ? ORDER BY number DESC LIMIT 2", (key,)
            ).fetchall()
            if not standing:
                raise ValueError(f"row {row} has no decision that could be undone.")
            before = standing[1] if len(standing) == 2 else {"verdict": None, "label": None}
            connection.execute(
                "INSERT INTO events (at, key, version, verdict, label, undoes) "
                "VALUES (?, ?, ?, ?, ?, ?)",
                (
                    _now(),
                    key,
                    version + 1,
                    before["verdict"],
                    before["label"],
                    standing[0]["version"],
                ),
            )
        return self._said(row, version + 1, before["verdict"], before["label"])

    def current(self, row: int) -> Decision:
        """Return what is said of a row."""
        with self._reading():
            self._read_events()
            return self._known.get(row, Decision(row))

    def all(self) -> dict[int, Decision]:
        """Return what is said of every row that was ever written to, and is in the table."""
        with self._reading():
            self._read_events()
            return dict(self._known)

    def last(self) -> Decision | None:
        """Return the row that was decided last, as it is now; None: there is nothing to undo."""
        with self._reading() as connection:
            self._read_events()
            for (key,) in connection.execute("SELECT key FROM standing ORDER BY number DESC"):
                known = self._rows.get(key)
                if known is not None and known.row in self._known:
                    return self._known[known.row]
        return None

    def log(self) -> list[dict[str, Any]]:
        """Return every event, the oldest first.

        `row` is where the row is, or, where `matched` is False, where it was; labels are names.
        """
        with self._reading() as connection:
            events = connection.execute("SELECT * FROM events ORDER BY number").fetchall()
            self._read_rows()
        entries = []
        for event in events:
            known = self._rows[event["key"]]
            matched = known.row is not None
            row = known.row if matched else known.place
            entry = {"row": row, "matched": matched, "id": known.id, "given": known.given}
            entries.append(dict(event) | entry)
        return entries

    def decided_in_sample(self) -> set[int]:
        """Return the rows of the random sample that were decided when they came up in it."""
        with self._reading() as connection:
            found = connection.execute(
                "SELECT DISTINCT key FROM standing WHERE sample = ?", (self._sample_number(),)
            ).fetchall()
            self._read_rows()
            rows = (self._rows[key].row for (key,) in found)
            return {row for row in rows if row is not None}

    def sample(self, size: int, *, random_state: int | None = None) -> list[int]:
        """Return a random sample of the table's rows, in the order drawn; drawn once, and kept.

        A larger size later goes on where the drawing stopped, so a smaller sample is the beginning
        of a larger one. When rows are added, taken away or changed, the sample is no random sample
        of them any more, and another is drawn.

        Parameters
        ----------
        size : int
            How many rows, at most all.
        random_state : int, default=None
            Seed of what is still to be drawn.
        """
        with self._writing() as connection:
            number = self._sample_number()
            if number is None:
                former = connection.execute(
                    "SELECT count(DISTINCT key) FROM standing WHERE sample IS NOT NULL"
                ).fetchone()[0]
                number = connection.execute(
                    "INSERT INTO samples (population) VALUES (?)", (self._table.population,)
                ).lastrowid
            else:
                former = 0
            places = connection.execute(
                "SELECT key FROM sampled WHERE sample = ? ORDER BY place", (number,)
            )
            drawn = [row for (key,) in places if (row := self._rows[key].row) is not None]
            lacking = min(size, self._table.n_rows) - len(drawn)
            if lacking > 0:
                rest = np.setdiff1d(np.arange(self._table.n_rows), drawn)
                new = np.random.default_rng(random_state).choice(rest, lacking, replace=False)
                keys = [self._key_of(row) for row in new.tolist()]
                connection.executemany(
                    "INSERT INTO sampled VALUES (?, ?, ?)",
                    ((number, place, key) for place, key in enumerate(keys, start=len(drawn))),
                )
                drawn += new.tolist()
        if former:
            self.notes.append(
                "The rows of the table have changed since the random sample was drawn, so it is no "
                "random sample of them. Another one was drawn, and the estimate of the noise "
                f"begins anew; what was decided on {former} rows of the former one is kept."
            )
        return drawn[:size]

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ------------------------------------------------------------ rows and what is said of them

    def _read_rows(self) -> None:
        """Find the rows that the file knows by now; what is not committed must not be read."""
        new = self._connection.execute(
            "SELECT * FROM rows WHERE key > ? ORDER BY key", (self._last_key,)
        ).fetchall()
        keys: list[RowKey] = [(entry["fingerprint"], entry["occurrence"]) for entry in new]
        for entry, row in zip(new, self._table.find(keys), strict=True):
            known = KnownRow(row, entry["place"], entry["id"], entry["given"])
            self._last_key = entry["key"]
            self._rows[entry["key"]] = known
            if row is not None:
                self._keys[row] = entry["key"]

    def _read_events(self) -> None:
        # the log is only ever added to, by other processes too: what is new in it is enough
        new = self._connection.execute(
            "SELECT * FROM events WHERE number > ? ORDER BY number", (self._read_until,)
        ).fetchall()
        self._read_rows()  # after the events, which may be of rows that are new
        for event in new:
            self._read_until = event["number"]
            key, row = event["key"], self._rows[event["key"]].row
            if row is not None:
                said = self._said(row, event["version"], event["verdict"], event["label"])
                self._known[row] = said
            if row is None or said.verdict != event["verdict"]:
                self._unapplied[key] = event
            else:
                self._unapplied.pop(key, None)

    def _said(self, row: int, version: int, verdict: str | None, label: str | None) -> Decision:
        """Return a decision by the label's name; none where the table has no such label."""
        if label is None:
            return Decision(row, version, verdict)
        if label not in self._labels:
            return Decision(row, version)
        return Decision(row, version, verdict, self._labels[label])

    def _lost(self, key: int) -> str:
        """Return a row whose decision is not applied, by name, and why."""
        known = self._rows[key]
        details = [] if known.id is None else [f"id {_printable(known.id)}"]
        if known.row is not None:
            label = _printable(self._unapplied[key]["label"])
            details.append(f"no row has the label {label} any more")
        elif self._table.ids is not None and known.id is not None:
            # an id that several rows have tells nothing of this one
            reasons = {0: ["gone"], 1: ["cells have changed"]}
            details += reasons.get(self._table.id_count(known.id), [])
        return f"row {known.place}" + (f" ({', '.join(details)})" if details else "")

    def _name(self, label: int | None) -> str | None:
        return None if label is None else self._table.classes[label]

    def _sample_number(self) -> int | None:
        found = self._connection.execute(
            "SELECT number FROM samples WHERE population = ?", (self._table.population,)
        ).fetchone()
        return None if found is None else int(found[0])

    def _key_of(self, row: int) -> int:
        """Return the number by which the file knows a row, which it may learn now."""
        if not 0 <= row < self._table.n_rows:
            raise IndexError(f"there is no row {row}: the table has {self._table.n_rows}.")
        # not remembered here: it is known once it is committed
        key = self._keys.get(row)
        return add_row(self._connection, self._table, row) if key is None else key

    def _key_at(self, row: int, version: int) -> int:
        """Return a row's number, where the row is at that version."""
        key = self._key_of(row)
        current = self._known.get(row, Decision(row))
        if current.version != version:
            raise StaleDecisionError(current)
        return key

    # ------------------------------------------------------------ the file

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        """Use the file alone, as long as it is where it was."""
        with self._lock:
            try:
                self._file.check_in_place()
                yield self._connection
            except sqlite3.Error as error:
                raise unavailable(self.path, error) from error

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction, alone: what is read in it is still so when it is written."""
        with self._reading() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                self._read_events()
                yield connection
                connection.execute("COMMIT")
            finally:
                # not after a commit, nor where SQLite has rolled back by itself
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
            # what was committed to a file that was moved meanwhile is not stored
            self._file.check_in_place()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _decisions(n: int) -> str:
    return f"{n:,} decision{'' if n == 1 else 's'}"


def _printable(text: str) -> str:
    """Return text for a message: short, and without what a terminal would act on."""
    short = text if len(text) <= LONGEST_NAME else text[: LONGEST_NAME - 1] + "…"
    return short if short.isprintable() else repr(short)
