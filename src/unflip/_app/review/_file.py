"""The SQLite file of decisions: created atomically, validated, and monitored while open."""

import json
import os
import sqlite3
import tempfile
from pathlib import Path

from unflip._app.review._fingerprint import Fingerprint
from unflip._utils.files import check_free, sync_folder
from unflip._utils.typing import Record

APPLICATION = 0x756E6672
"""SQLite's application_id of files of decisions."""

VERSION = 2
"""SQLite's user_version of files of decisions."""

LOCK_TIMEOUT = 5.0
"""Seconds to wait for another process that is writing."""

SCHEMA = """
CREATE TABLE source (fingerprint TEXT NOT NULL);
CREATE TABLE rows (
    key INTEGER PRIMARY KEY,
    fingerprint BLOB NOT NULL CHECK (typeof(fingerprint) = 'blob' AND length(fingerprint) = 16),
    occurrence INTEGER NOT NULL CHECK (typeof(occurrence) = 'integer' AND occurrence >= 0),
    place INTEGER NOT NULL CHECK (typeof(place) = 'integer'),
    id TEXT,
    given TEXT NOT NULL,
    UNIQUE (fingerprint, occurrence)
);
CREATE TABLE events (
    number INTEGER PRIMARY KEY,
    at TEXT NOT NULL,
    key INTEGER NOT NULL REFERENCES rows,
    version INTEGER NOT NULL CHECK (typeof(version) = 'integer'),
    verdict TEXT CHECK (verdict IN ('keep', 'change', 'unsure')),
    label TEXT,
    queue TEXT,
    suggested TEXT,
    probability REAL,
    undoes INTEGER,
    sample INTEGER REFERENCES samples,
    UNIQUE (key, version)
);
CREATE INDEX reviewed_in_sample ON events (sample, key) WHERE sample IS NOT NULL;
CREATE TABLE samples (number INTEGER PRIMARY KEY, population TEXT NOT NULL UNIQUE);
CREATE TABLE sampled (
    sample INTEGER NOT NULL REFERENCES samples,
    place INTEGER NOT NULL,
    key INTEGER NOT NULL REFERENCES rows,
    PRIMARY KEY (sample, place),
    UNIQUE (sample, key)
);
CREATE TABLE draws (
    sample INTEGER NOT NULL REFERENCES samples,
    place INTEGER NOT NULL,
    key INTEGER NOT NULL REFERENCES rows,
    probability REAL NOT NULL CHECK (probability > 0 AND probability <= 1),
    goal TEXT NOT NULL CHECK (goal IN ('sample', 'count', 'train')),
    PRIMARY KEY (sample, place),
    UNIQUE (sample, key)
);
CREATE TABLE checkers (event INTEGER PRIMARY KEY REFERENCES events, name TEXT NOT NULL);
CREATE VIEW standing AS SELECT * FROM events AS decision WHERE undoes IS NULL AND NOT EXISTS (
    SELECT 1 FROM events WHERE key = decision.key AND undoes = decision.version
);
"""
"""`rows` are identified by their cells; `place` is the position of a row at its first decision.
`events` is append-only; `standing` are the decisions that were not undone. Every set of rows
(`population`) has its own random sample and `draws`. `checkers` names who made an event, if known.
"""

BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL)
FORBIDDEN = (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_CANTOPEN)
DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


class DecisionsUnavailableError(OSError):
    """The file of decisions cannot be used now, and nothing was stored.

    Examples
    --------
    >>> from unflip.review import DecisionsUnavailableError
    >>> issubclass(DecisionsUnavailableError, OSError)
    True
    """


class OtherTableError(ValueError):
    """The file holds decisions on another table.

    Examples
    --------
    >>> from unflip.review import OtherTableError
    >>> issubclass(OtherTableError, ValueError)
    True
    """


def unavailable(path: Path, error: sqlite3.Error) -> DecisionsUnavailableError:
    """Return an error with SQLite's reason and a remedy."""
    code = _code(error)
    if code in BUSY:
        remedy = "another process has locked it. Wait for that process, or end it"
    elif code == sqlite3.SQLITE_FULL:
        remedy = "the disk is full. Free some space"
    elif code in FORBIDDEN:
        remedy = "it is not writable. Check the permissions of the file and its folder"
    elif code in DAMAGED:
        remedy = "it is damaged. Restore a backup or choose another file, and start again"
    else:
        remedy = "check the disk; a local folder is safer than a network drive"
    return DecisionsUnavailableError(f"{path} cannot be used ({error}): {remedy}.")


def check_place(path: Path) -> None:
    """Raise an error, before long work, if decisions cannot be stored at the path."""
    check_free(path, force=True)
    if path.exists() and not path.stat().st_size:
        raise ValueError(
            f"{path} is empty, so it is not a file of decisions: it was truncated, or created by "
            "another program. Restore a backup, or choose another file to start a new review."
        )
    folder = path.absolute().parent
    while not folder.exists():
        folder = folder.parent
    try:
        # SQLite creates further files in the folder; only trying shows whether it is writable
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        raise PermissionError(
            f"{folder} is not writable ({error.strerror}): choose another folder."
        ) from error


def make_file(path: Path, about: Record) -> None:
    """Create a file without decisions atomically, unless another process creates it first."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}.") as folder:
        new = Path(folder) / "new.sqlite"
        connection = sqlite3.connect(new, isolation_level=None)
        try:
            connection.execute("BEGIN")
            for statement in _statements():
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {APPLICATION}")
            connection.execute(f"PRAGMA user_version = {VERSION}")
            connection.execute("INSERT INTO source VALUES (?)", (json.dumps(about),))
            connection.execute("COMMIT")
        except sqlite3.Error as error:
            raise unavailable(path, error) from error
        finally:
            connection.close()
        try:
            os.link(new, path)
        except FileExistsError:
            return
        except OSError:  # some file systems have no hard links
            os.rename(new, path)
    sync_folder(path.parent)


class OpenFile:
    """An open file of decisions that detects when it is replaced."""

    def __init__(self, path: Path, fingerprint: Fingerprint) -> None:
        check_place(path)
        if not path.exists():
            make_file(path, fingerprint.about())
        self._path = path.absolute()
        self.connection = sqlite3.connect(
            path, timeout=LOCK_TIMEOUT, isolation_level=None, check_same_thread=False
        )
        self.connection.row_factory = sqlite3.Row
        try:
            self.about = self._opened()
            # SQLite resolves symbolic links to name the log
            log = Path(f"{os.path.realpath(path)}-wal")
            self._files = {each: _identity(each) for each in (self._path, log) if each.exists()}
        except BaseException as error:
            self.connection.close()
            if isinstance(error, sqlite3.Error):
                if _code(error) in (*DAMAGED, sqlite3.SQLITE_ERROR):
                    raise ValueError(
                        f"{path} cannot be read as a file of decisions ({error}). Restore a "
                        "backup, or choose another file."
                    ) from error
                raise unavailable(path, error) from error
            raise

    def _opened(self) -> Record:
        connection = self.connection
        # a commit returns only after the log is on disk
        connection.execute("PRAGMA synchronous = FULL")
        application = connection.execute("PRAGMA application_id").fetchone()[0]
        if application != APPLICATION:
            raise ValueError(f"{self._path} is not a file of decisions. Choose another file.")
        connection.execute("BEGIN IMMEDIATE")
        try:
            about = _read_about(connection)
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            if version != VERSION:
                raise ValueError(
                    f"{self._path} was written by another version of unflip: use that version, or "
                    "choose another file."
                )
            _check_whole(connection)
            # writing the same value checks that the file is writable
            connection.execute(f"PRAGMA user_version = {VERSION}")
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        connection.execute("PRAGMA journal_mode = WAL").fetchone()
        connection.execute("SELECT count(*) FROM source").fetchone()  # creates the log
        return about

    def check_in_place(self) -> None:
        """Raise an error if the file at the path is no longer the open one."""
        for path, identity in self._files.items():
            if _identity(path) != identity:
                raise DecisionsUnavailableError(
                    f"{path} was moved, replaced or deleted while it was open, and nothing is "
                    "stored. Put it back, or start again."
                )


def difference(known: Record, fingerprint: Fingerprint) -> str:
    """Describe the first difference between the table of a file and another one."""
    if known["n_rows"] != fingerprint.n_rows:
        return f"it had {known['n_rows']} rows, this one has {fingerprint.n_rows}"
    if (set(known["columns"]), known["label"]) != (set(fingerprint.columns), fingerprint.label):
        return (
            f"its columns were {', '.join(known['columns'])} and its label {known['label']}, these "
            f"are {', '.join(fingerprint.columns)} and {fingerprint.label}"
        )
    if known["classes"] != list(fingerprint.classes):
        return (
            f"its labels were {', '.join(known['classes'])}, these are "
            f"{', '.join(fingerprint.classes)}"
        )
    return "the cells or labels of its rows were different"


def _read_about(connection: sqlite3.Connection) -> Record:
    entry = connection.execute("SELECT fingerprint FROM source").fetchone()
    try:
        about = json.loads(entry[0])
        assert {"columns", "label", "n_rows", "classes"} <= set(about)
    except (TypeError, ValueError, AssertionError) as error:
        raise sqlite3.DatabaseError("the description of its table is missing") from error
    return dict(about)


def _check_whole(connection: sqlite3.Connection) -> None:
    """Raise an error if the file is damaged or its tables are not the expected ones."""
    found = connection.execute("SELECT sql FROM sqlite_master WHERE name NOT LIKE 'sqlite%'")
    if {sql for (sql,) in found} != set(_statements()):
        raise sqlite3.DatabaseError("its tables are not those of a file of decisions")
    # quick_check verifies the CHECK constraints too, so the types of the cells
    damage = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    if damage != "ok" or connection.execute("PRAGMA foreign_key_check").fetchone():
        reason = "a row of it is missing" if damage == "ok" else damage.splitlines()[-1]
        raise sqlite3.DatabaseError(reason)


def _statements() -> list[str]:
    return [statement.strip() for statement in SCHEMA.split(";") if statement.strip()]


def add_row(connection: sqlite3.Connection, fingerprint: Fingerprint, row: int) -> int:
    """Insert a row and return its key in the file."""
    key, occurrence = fingerprint.key(row)
    added = connection.execute(
        "INSERT INTO rows (fingerprint, occurrence, place, id, given) VALUES (?, ?, ?, ?, ?)",
        (
            key,
            occurrence,
            row,
            None if fingerprint.ids is None else fingerprint.ids[row],
            fingerprint.given(row),
        ),
    )
    assert added.lastrowid is not None
    return added.lastrowid


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def _code(error: sqlite3.Error) -> int:
    """Return SQLite's primary error code, SQLITE_ERROR if unknown."""
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
