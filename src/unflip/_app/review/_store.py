"""Decisions on disk: an append-only log in SQLite with a version per row."""

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from unflip._app.review._file import OpenFile, OtherTableError, add_row, difference, unavailable
from unflip._app.review._fingerprint import Fingerprint, RowKey
from unflip._app.review._sampled import BLIND, Decision, KnownRow, Sampled
from unflip._utils.typing import Record

VERDICTS = ("keep", "change", "unsure")
"""The possible verdicts on a label."""

MAX_NAMED = 20
"""Maximum number of rows named in a message."""

MAX_NAME_CHARACTERS = 60
"""Maximum number of characters of an id in a message."""


class StaleDecisionError(Exception):
    """The row was written to after it was read; `current` is the decision now.

    Examples
    --------
    >>> from unflip.review import Decision, StaleDecisionError
    >>> StaleDecisionError(Decision(3, version=2)).current.version
    2
    """

    def __init__(self, current: Decision) -> None:
        super().__init__(f"row {current.row} is now at version {current.version}.")
        self.current = current


class Decisions:
    """The decisions on one table, on disk before a method returns.

    Rows are identified by their cells: decisions are matched after rows were reordered, added or
    removed. A decision on a row with a changed cell is kept, but not applied. Every write names the
    version of the row that it was made for and raises an error if the row has another version now,
    so that no page or process overwrites a decision unseen.

    Parameters
    ----------
    path : Path
        The SQLite file; created if missing.
    fingerprint : Fingerprint
        The identity of the table (`ReviewTable.fingerprint`). A file without any row of the table
        raises an error.
    checker : str, default=None
        Name of the person who decides. Decisions of others on a row then do not make a decision
        stale, and `mine` and `undo` refer to this person's decisions.

    Attributes
    ----------
    path : Path
        The file.
    notes : list of str
        Notes for the user on decisions whose rows moved or could not be matched, and on the random
        sample.
    drawn : Sampled
        The rows that were drawn at random, for the review page.

    Examples
    --------
    >>> import polars as pl
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from unflip.review import Decisions, ReviewTable
    >>> table = ReviewTable(pl.DataFrame({"x": [1, 2], "y": ["no", "yes"]}), "y")
    >>> with TemporaryDirectory() as folder:
    ...     with Decisions(Path(folder) / "y.sqlite", table.fingerprint) as store:
    ...         store.current(0).version
    0
    """

    def __init__(self, path: Path, fingerprint: Fingerprint, checker: str | None = None) -> None:
        self.path, self.checker = path, None if checker is None else check_name(checker)
        self.notes: list[str] = []
        self._fingerprint = fingerprint
        self._lock = threading.RLock()
        self._is_read = False
        self._labels = {name: position for position, name in enumerate(fingerprint.classes)}
        self._rows: dict[int, KnownRow] = {}
        self._keys: dict[int, int] = {}
        self._known: dict[int, Decision] = {}
        self._unapplied: dict[int, sqlite3.Row] = {}
        self._last_key = self._read_until = 0
        # decisions that were not undone, by the number of their event, in chronological order
        self._standing: dict[int, sqlite3.Row] = {}
        self._numbers: dict[tuple[int, int], int] = {}
        self._checkers: set[str] = set()
        self.drawn = Sampled(self, fingerprint.population, fingerprint.n_rows)
        self._file = OpenFile(path, fingerprint)
        self._connection = self._file.connection
        try:
            self._match()
        except BaseException:
            self.close()
            raise

    def _match(self) -> None:
        """Match the rows of the file with the table, and add notes on what has changed."""
        with self._reading():
            self._read()
        about, table = self._file.about, self._fingerprint
        matched = any(known.row is not None for known in self._rows.values())
        same = about.get("population") == table.population or matched
        if about["label"] != table.label or not same:
            raise OtherTableError(
                f"{self.path} holds decisions on another table: {difference(about, table)}. Open "
                "it with its own table, or choose another file."
            )
        n_moved = sum(
            decision.verdict is not None and self._rows[self._keys[row]].place != row
            for row, decision in self._known.items()
        )
        if n_moved:
            self.notes.append(
                f"{_decisions(n_moved)} moved along with rows that are now at another position in "
                "the table."
            )
        lost = [self._lost(key) for key, event in self._unapplied.items() if event["verdict"]]
        if lost:
            named = ", ".join(lost[:MAX_NAMED]) + (", ..." if len(lost) > MAX_NAMED else "")
            self.notes.append(
                f"{_decisions(len(lost))} could not be matched with the table and will not be "
                f"applied: {named}. They are kept in {self.path}."
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
        """Store a decision on a row at this version, and return it.

        Parameters
        ----------
        row : int
            Position in the table.
        version : int
            The version of the row that the decision was made for.
        verdict : {"keep", "change", "unsure"}
            The verdict.
        label : int or None
            Class index of the true label; None if unknown.
        queue, suggested, probability : default=None
            The queue in which the row was shown and the model's opinion of it, for the log.

        Returns
        -------
        Decision
            The stored decision.
        """
        with self._writing() as connection:
            key, version = self._key_at(row, version)
            sample = self.drawn.number if queue in BLIND else None
            added = connection.execute(
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
            self._sign(added.lastrowid)
        return Decision(row, version + 1, verdict, label)

    def undo(self, row: int, version: int) -> Decision:
        """Undo the latest decision on a row at this version, so that the one before it holds.

        Parameters
        ----------
        row : int
            Position in the table.
        version : int
            The version of the row that the caller has seen.

        Returns
        -------
        Decision
            The current decision. The log keeps both.
        """
        with self._writing() as connection:
            key, version = self._key_at(row, version)
            standing = [each for each in self._standing.values() if each["key"] == key]
            own = [each for each in standing if self.checker in (None, each["name"])]
            if not own:
                raise ValueError(f"row {row} has no decision to undo.")
            rest = [each for each in standing if each["number"] != own[-1]["number"]]
            before = rest[-1] if rest else {"verdict": None, "label": None}
            added = connection.execute(
                "INSERT INTO events (at, key, version, verdict, label, undoes) "
                "VALUES (?, ?, ?, ?, ?, ?)",
                (_now(), key, version + 1, before["verdict"], before["label"], own[-1]["version"]),
            )
            self._sign(added.lastrowid)
        return self._decision(row, version + 1, before["verdict"], before["label"])

    def current(self, row: int) -> Decision:
        """Return the current decision on a row.

        Returns
        -------
        Decision
            Of version 0 where nothing was decided.
        """
        with self.at_once():
            return self._known.get(row, Decision(row))

    def all(self) -> dict[int, Decision]:
        """Return the current decision on every row of the table that was ever written to.

        Returns
        -------
        dict of int to Decision
            By row.
        """
        with self.at_once():
            return dict(self._known)

    def mine(self) -> dict[int, Decision]:
        """Return this checker's decision on every row ever written to; without a name, all.

        Returns
        -------
        dict of int to Decision
            By row.
        """
        with self.at_once():
            if self.checker is None:
                return self.all()
            own = self.answers(self.checker)
            return {
                row: Decision(row, known.version, *own.get(row, (None, None)))
                for row, known in self._known.items()
            }

    def answers(self, checker: str) -> dict[int, tuple[str | None, int | None]]:
        """Return the verdict and the label of a checker's latest decision on each row.

        Returns
        -------
        dict of int to (str or None, int or None)
            Verdict and label by row.
        """
        said = {}
        with self.at_once():
            for event in self._standing.values():
                row = self._rows[event["key"]].row
                if row is not None and event["name"] == checker:
                    decision = self._decision(row, 0, event["verdict"], event["label"])
                    said[row] = decision.verdict, decision.label
        return said

    def checkers(self) -> list[str]:
        """Return the sorted names of everyone who decided.

        Returns
        -------
        list of str
            Names.
        """
        with self.at_once():
            return sorted(self._checkers)

    def last(self) -> Decision | None:
        """Return the latest decision that can be undone, or None.

        Returns
        -------
        Decision or None
            The latest one.
        """
        with self.at_once():
            for event in reversed(self._standing.values()):
                row = self._rows[event["key"]].row
                if row in self._known and self.checker in (None, event["name"]):
                    return self._known[row]
        return None

    def log(self) -> list[Record]:
        """Return every event in chronological order, labels as text.

        `row` is the position of the row in the table, or its former position if `matched` is False.

        Returns
        -------
        list of dict
            One per event.
        """
        with self._reading() as connection:
            events = connection.execute(
                "SELECT events.*, name AS checker FROM events LEFT JOIN checkers "
                "ON event = number ORDER BY number"
            ).fetchall()
            self._read()
        entries = []
        for event in events:
            known = self._rows[event["key"]]
            matched = known.row is not None
            row = known.row if matched else known.place
            entry = {"row": row, "matched": matched, "id": known.id, "given": known.given}
            entries.append(dict(event) | entry)
        return entries

    def sample(self, size: int, *, random_state: int | None = None) -> list[int]:
        """Return a random sample of the table's rows, in the order drawn; drawn once and stored.

        A smaller sample is the beginning of a larger one. If rows are added, removed or changed, a
        new sample is drawn, since the former is no longer a random sample of the table.

        Parameters
        ----------
        size : int
            Number of rows, at most all.
        random_state : int, default=None
            Random seed of the rows that are still to be drawn.

        Returns
        -------
        list of int
            Rows.
        """
        rows, n_former = self.drawn.sample(size, random_state)
        if n_former:
            self.notes.append(
                "The rows of the table have changed since the random sample was drawn, so it is no "
                "longer a random sample. A new one was drawn, and the estimate of the label error "
                f"rate starts again; the decisions on {n_former} rows of the former one are kept."
            )
        return rows

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ------------------------------------------------------------ rows and decisions

    def _read(self) -> None:
        """Read what was added to the file; never reads uncommitted rows."""
        # everything is append-only, for other processes too: reading what is new is enough
        events = self._connection.execute(
            "SELECT events.*, name FROM events LEFT JOIN checkers ON event = number "
            "WHERE number > ? ORDER BY number",
            (self._read_until,),
        ).fetchall()
        sampled, draws = self.drawn.unread(self._connection)
        # last, since the others may refer to new rows
        keys = [each["key"] for part in (events, sampled, draws) for each in part]
        if not self._rows or max(keys, default=0) > self._last_key:
            self._read_rows()
        self.drawn.add(sampled, draws)
        for event in events:
            self._read_event(event)

    def _read_rows(self) -> None:
        """Match the rows added to the file."""
        new = self._connection.execute(
            "SELECT * FROM rows WHERE key > ? ORDER BY key", (self._last_key,)
        ).fetchall()
        keys: list[RowKey] = [(entry["fingerprint"], entry["occurrence"]) for entry in new]
        for entry, row in zip(new, self._fingerprint.find(keys), strict=True):
            known = KnownRow(row, entry["place"], entry["id"], entry["given"])
            self._last_key = entry["key"]
            self._rows[entry["key"]] = known
            if row is not None:
                self._keys[row] = entry["key"]

    def _read_event(self, event: sqlite3.Row) -> None:
        """Apply one event: it is the current decision on its row, or undoes one."""
        self._read_until = event["number"]
        key, row = event["key"], self._rows[event["key"]].row
        self._numbers[key, event["version"]] = event["number"]
        if event["undoes"] is None:
            self._standing[event["number"]] = event
        else:
            self._standing.pop(self._numbers[key, event["undoes"]], None)
        if event["name"] is not None:
            self._checkers.add(event["name"])
        if row is not None:
            decision = self._decision(row, event["version"], event["verdict"], event["label"])
            self._known[row] = decision
        if row is None or decision.verdict != event["verdict"]:
            self._unapplied[key] = event
        else:
            self._unapplied.pop(key, None)

    def _decision(self, row: int, version: int, verdict: str | None, label: str | None) -> Decision:
        """Return a decision from stored text; undecided if the table has no such label."""
        if label is None:
            return Decision(row, version, verdict)
        if label not in self._labels:
            return Decision(row, version)
        return Decision(row, version, verdict, self._labels[label])

    def _lost(self, key: int) -> str:
        """Return the name of a row whose decision is not applied, and the reason."""
        known = self._rows[key]
        details = [] if known.id is None else [f"id {_printable(known.id)}"]
        if known.row is not None:
            label = _printable(self._unapplied[key]["label"])
            details.append(f"no row has the label {label} any more")
        elif self._fingerprint.ids is not None and known.id is not None:
            # an id that several rows share does not identify this row
            reasons = {0: ["gone"], 1: ["cells have changed"]}
            details += reasons.get(self._fingerprint.id_count(known.id), [])
        return f"row {known.place}" + (f" ({', '.join(details)})" if details else "")

    def _name(self, label: int | None) -> str | None:
        return None if label is None else self._fingerprint.classes[label]

    def _key_of(self, row: int) -> int:
        """Return the key of a row in the file, inserting the row if it is new."""
        if not 0 <= row < self._fingerprint.n_rows:
            raise IndexError(f"there is no row {row}: the table has {self._fingerprint.n_rows}.")
        # a new key is not cached here, as it may not be committed
        key = self._keys.get(row)
        return add_row(self._connection, self._fingerprint, row) if key is None else key

    def _key_at(self, row: int, version: int) -> tuple[int, int]:
        """Return the key and version of a row, after checking that the caller has seen the latest.

        For a checker with a name, later decisions of others do not count.
        """
        key = self._key_of(row)
        current = self._known.get(row, Decision(row))
        if current.version != version:
            own = self._connection.execute(
                "SELECT 1 FROM events LEFT JOIN checkers ON event = number "
                "WHERE key = ? AND version > ? AND coalesce(name, ?) = ?",
                (key, version, self.checker, self.checker),
            ).fetchone()
            if self.checker is None or own or version > current.version:
                raise StaleDecisionError(current)
        return key, current.version

    def _sign(self, event: int | None) -> None:
        if self.checker is not None:
            self._connection.execute("INSERT INTO checkers VALUES (?, ?)", (event, self.checker))

    # ------------------------------------------------------------ the file

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """Read the file once for all methods called inside.

        Returns
        -------
        context manager
            On entry, decisions of other processes are read.
        """
        with self._lock:
            if self._is_read:
                yield
                return
            with self._reading():
                self._read()
            self._is_read = True
            try:
                yield
            finally:
                self._is_read = False

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        """Lock the connection, after checking that the file was not replaced."""
        with self._lock:
            try:
                self._file.check_in_place()
                yield self._connection
            except sqlite3.Error as error:
                raise unavailable(self.path, error) from error

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """Run one exclusive transaction, so that nothing changes between its reads and writes."""
        with self._reading() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                self._read()
                yield connection
                connection.execute("COMMIT")
                self._is_read = False  # inside `at_once`, the next method reads this too
            finally:
                # not after a commit, nor if SQLite has already rolled back
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
            # a commit to a file that was replaced meanwhile is lost
            self._file.check_in_place()


def check_name(checker: str) -> str:
    """Return the name of a checker without surrounding spaces; reject an invalid one."""
    name = checker.strip()
    if not (0 < len(name) <= MAX_NAME_CHARACTERS and name.isprintable()):
        raise ValueError(
            f"the checker {checker!r} is not a name: give 1 to {MAX_NAME_CHARACTERS} printable "
            "characters."
        )
    return name


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _decisions(n: int) -> str:
    return f"{n:,} decision{'' if n == 1 else 's'}"


def _printable(text: str) -> str:
    """Return text for a message: short, and without control characters."""
    short = text if len(text) <= MAX_NAME_CHARACTERS else text[: MAX_NAME_CHARACTERS - 1] + "…"
    return short if short.isprintable() else repr(short)
