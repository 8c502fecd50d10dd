"""When the file of decisions cannot be used: it is said, and nothing is acknowledged."""

import errno
import os
import socket
import sqlite3
import threading
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.review.made import client_of, made_audit, made_table
from unflip.review import Decision, Decisions, DecisionsUnavailableError, ReviewTable, export, serve

TABLE = made_table(60)
AUDIT = made_audit(TABLE)
REVIEW_TABLE = ReviewTable(TABLE, "kind", id_column="name")
FINGERPRINT = REVIEW_TABLE.fingerprint
LOCK_TIMEOUT = "unflip._app.review._file.LOCK_TIMEOUT"
UNWRITABLE = Path("/proc")
"""Where nobody may make a file, root neither."""

no_proc = pytest.mark.skipif(not UNWRITABLE.is_dir(), reason="there is no /proc")


@pytest.fixture
def path(tmp_path):
    """A file with some decisions in it."""
    with Decisions(tmp_path / "d.sqlite", FINGERPRINT) as store:
        for row in range(20):
            store.decide(row, 0, "unsure", None)
    return tmp_path / "d.sqlite"


@pytest.fixture
def review(path, tmp_path, monkeypatch):
    monkeypatch.setattr(LOCK_TIMEOUT, 0.2)
    with Decisions(path, FINGERPRINT) as store:
        client = client_of(
            REVIEW_TABLE, AUDIT, store, tmp_path / "out", title="Fruit", sample_size=5
        )
        yield client, store
        client.close()


def decide(client, row, version=0):
    body = {"row": row, "version": version, "verdict": "unsure", "queue": "suspicious"}
    return client.post("api/decide", body)


def kept(path):
    with Decisions(path, FINGERPRINT) as store:
        return set(store.all())


# ---------------------------------------------------------------- before anything is done


def folder(tmp_path):
    (tmp_path / "folder").mkdir()
    return tmp_path / "folder"


def below_a_file(tmp_path):
    (tmp_path / "file").write_text("x")
    return tmp_path / "file" / "d.sqlite"


def empty(tmp_path):
    (tmp_path / "d.sqlite").touch()
    return tmp_path / "d.sqlite"


def empty_database(tmp_path):
    with sqlite3.connect(tmp_path / "d.sqlite") as connection:
        connection.execute("VACUUM")
    connection.close()
    return tmp_path / "d.sqlite"


def pipe(tmp_path):
    os.mkfifo(tmp_path / "d.sqlite")
    return tmp_path / "d.sqlite"


@pytest.mark.parametrize(
    ("place", "message"),
    [
        (folder, "is a folder: name a file"),
        (below_a_file, "is a file, not a folder"),
        (empty, "is empty"),
        (empty_database, "is not a file of decisions"),
        (pipe, "is a device, a pipe or a socket"),
        pytest.param(lambda _: UNWRITABLE / "d.sqlite", "is not writable", marks=no_proc),
        pytest.param(lambda _: UNWRITABLE / "below" / "d.sqlite", "is not writable", marks=no_proc),
    ],
)
def test_a_place_for_no_decisions_is_refused_in_words(tmp_path, place, message):
    path = place(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    for attempt in (
        lambda: Decisions(path, FINGERPRINT),
        lambda: serve(TABLE, "kind", AUDIT, path, started=pytest.fail),
    ):
        with pytest.raises((ValueError, OSError), match=message):
            attempt()
    assert sorted(tmp_path.rglob("*")) == before


@contextmanager
def without_privileges():
    """Be a user to whom permissions matter, which they do not to root."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.mark.parametrize(("file_mode", "folder_mode"), [(0o444, 0o777), (0o666, 0o555)])
def test_what_may_not_be_written_to_is_refused(path, file_mode, folder_mode):
    with TemporaryDirectory() as name:  # pytest's own folders are closed to others
        other = Path(name) / "d.sqlite"
        other.write_bytes(path.read_bytes())
        other.chmod(file_mode)
        other.parent.chmod(folder_mode)
        with without_privileges(), pytest.raises(OSError, match="is not writable"):
            serve(TABLE, "kind", AUDIT, other, out=other.parent, started=pytest.fail)
        other.parent.chmod(0o777)


@no_proc
def test_a_folder_that_cannot_be_exported_to_is_refused_before_anything_is_done(tmp_path):
    (tmp_path / "file").write_text("x")
    for out in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(OSError, match="not a folder"):
            serve(TABLE, "kind", AUDIT, tmp_path / "d.sqlite", out=out, started=pytest.fail)
    assert not (tmp_path / "d.sqlite").exists()


def test_a_port_that_is_taken_is_refused_before_anything_is_done(tmp_path):
    with (
        socket.create_server(("127.0.0.1", 0)) as taken,
        pytest.raises(OSError, match=r"port \d+ of 127.0.0.1 cannot be used"),
    ):
        serve(TABLE, "kind", AUDIT, tmp_path / "d.sqlite", port=taken.getsockname()[1])
    assert list(tmp_path.iterdir()) == []


def test_a_new_file_is_never_seen_unfinished(tmp_path):
    failures = []

    def look():
        while not finished.is_set():
            if path.exists() and path.stat().st_size == 0:
                failures.append("empty")

    for k in range(10):
        path = tmp_path / f"{k}.sqlite"
        finished = threading.Event()
        looking = threading.Thread(target=look)
        looking.start()
        Decisions(path, FINGERPRINT).close()
        finished.set()
        looking.join()
    assert failures == []
    assert sorted(each.name for each in tmp_path.iterdir()) == [f"{k}.sqlite" for k in range(10)]


# ---------------------------------------------------------------- damage


def test_damage_anywhere_in_the_file_is_said_and_never_a_traceback(path):
    whole = path.read_bytes()
    refused = []
    for start in range(0, len(whole), 1500):
        path.write_bytes(whole[:start] + b"\xa5" * 700 + whole[start + 700 :])
        try:
            # what is free in a page may hold anything
            assert kept(path) == set(range(20))
        except ValueError as error:
            refused.append(str(error))
    assert len(refused) >= 5
    assert all("cannot be read as a file of decisions" in message for message in refused)


def test_a_file_that_was_cut_off_is_refused(path):
    whole = path.read_bytes()
    for size in (100, 4096, len(whole) // 2, len(whole) - 4096):
        path.write_bytes(whole[:size])
        with pytest.raises(ValueError, match="cannot be read"):
            Decisions(path, FINGERPRINT)


def test_tables_that_are_not_ours_are_refused(path):
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TRIGGER more AFTER INSERT ON rows BEGIN DELETE FROM events; END")
    connection.close()
    with pytest.raises(ValueError, match="its tables are not those"):
        Decisions(path, FINGERPRINT)


def test_damage_while_it_runs_is_a_503_in_words(review, path):
    client, store = review
    store._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    store._connection.execute("PRAGMA cache_size = 0")
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xa5" * (path.stat().st_size - 4096))
    # another connection's commit empties the cache of this one
    answer = decide(client, 40)
    assert answer.status_code == 503
    assert "it is damaged" in answer.json()["error"]


# ---------------------------------------------------------------- while it runs


def test_a_lock_that_is_held_for_long_is_a_503_and_goes_by(review, path):
    client, _ = review
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    answer = decide(client, 40)
    assert answer.status_code == 503
    assert "another process has locked it" in answer.json()["error"]
    assert client.get("api/tally").status_code == 200  # reading goes on
    other.execute("ROLLBACK")
    other.close()
    assert 40 not in kept(path)
    assert decide(client, 40).status_code == 200
    assert 40 in kept(path)


def test_a_lock_that_is_held_for_long_is_said_at_the_start(path, monkeypatch):
    monkeypatch.setattr(LOCK_TIMEOUT, 0.2)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(DecisionsUnavailableError, match="locked"):
        serve(TABLE, "kind", AUDIT, path, started=pytest.fail)
    other.close()


MOVES = {
    "renamed": lambda path: path.rename(path.with_name("elsewhere")),
    "deleted": lambda path: path.unlink(),
    "replaced": lambda path: (
        path.with_name("copy").write_bytes(path.read_bytes()),
        path.with_name("copy").replace(path),
    ),
    "its log deleted": lambda path: path.with_name(f"{path.name}-wal").unlink(),
    "its folder renamed": lambda path: path.parent.rename(path.parent.with_name("moved")),
}


@pytest.mark.parametrize("how", MOVES)
@pytest.mark.parametrize("written", [False, True])
def test_a_file_that_was_moved_away_is_a_503_and_no_decision_is_acknowledged(
    tmp_path, how, written
):
    (tmp_path / "sub").mkdir()
    path = tmp_path / "sub" / "d.sqlite"
    with Decisions(path, FINGERPRINT) as store:
        client = client_of(REVIEW_TABLE, AUDIT, store, tmp_path / "out", title="", sample_size=5)
        if written:
            assert decide(client, 39).status_code == 200
        MOVES[how](path)
        for answer in (
            decide(client, 40),
            client.post("api/undo", {"row": 39, "version": 1}),
            client.get("api/tally"),
            client.get("api/queue?queue=sample"),
            client.post("api/export", {}),
        ):
            assert answer.status_code == 503
            assert "was moved, replaced or deleted" in answer.json()["error"]
        client.close()
    assert not (tmp_path / "out").exists()


def test_a_file_that_was_put_back_goes_on(review, path):
    client, _ = review
    path.rename(path.with_name("away"))
    assert decide(client, 40).status_code == 503
    path.with_name("away").rename(path)
    assert decide(client, 40).status_code == 200
    assert 40 in kept(path)


def test_a_file_behind_a_link_is_watched_where_it_is(path, tmp_path):
    (tmp_path / "link").symlink_to(path)
    with Decisions(tmp_path / "link", FINGERPRINT) as store:
        assert store.decide(40, 0, "unsure", None) == Decision(40, 1, "unsure")
        path.rename(path.with_name("away"))
        with pytest.raises(DecisionsUnavailableError, match="moved"):
            store.decide(41, 0, "unsure", None)


def test_moved_away_during_the_commit_it_is_not_acknowledged(path, monkeypatch):
    with Decisions(path, FINGERPRINT) as store:
        checks = []
        in_place = store._file.check_in_place

        def moving():
            checks.append(1)
            if len(checks) == 2:  # after the commit
                path.rename(path.with_name("away"))
            in_place()

        monkeypatch.setattr(store._file, "check_in_place", moving)
        with pytest.raises(DecisionsUnavailableError, match="moved"):
            store.decide(40, 0, "unsure", None)


def test_a_full_disk_is_a_503_and_what_was_acknowledged_is_kept(review, path):
    client, store = review
    pages = store._connection.execute("PRAGMA page_count").fetchone()[0]
    store._connection.execute(f"PRAGMA max_page_count = {pages}")
    acknowledged, answer = set(), None
    for version in range(1000):
        answer = decide(client, 40, version)
        if answer.status_code != 200:
            break
        acknowledged.add(version + 1)
    assert answer.status_code == 503
    assert "database or disk is full" in answer.json()["error"]
    assert "Free some space" in answer.json()["error"]
    with Decisions(path, FINGERPRINT) as other:
        assert other.current(40).version == max(acknowledged, default=0)
    # when there is room again, it goes on
    store._connection.execute("PRAGMA max_page_count = 100000")
    assert decide(client, 40, max(acknowledged, default=0)).status_code == 200


class Broken:
    """A connection on which one statement fails, as on a bad disk or network."""

    def __init__(self, connection, statement, error):
        self._connection, self._statement, self._error = connection, statement, error

    def __getattr__(self, name):
        return getattr(self._connection, name)

    def execute(self, statement, *values):
        if statement.startswith(self._statement):
            raise self._error
        return self._connection.execute(statement, *values)


@pytest.mark.parametrize("statement", ["BEGIN", "INSERT", "COMMIT"])
@pytest.mark.parametrize("words", ["locking protocol", "disk I/O error", "unable to open"])
def test_whatever_fails_nothing_is_acknowledged_and_the_next_one_is_written(
    review, path, monkeypatch, statement, words
):
    client, store = review
    broken = Broken(store._connection, statement, sqlite3.OperationalError(words))
    monkeypatch.setattr(store, "_connection", broken)
    answer = decide(client, 40)
    assert answer.status_code == 503
    assert words in answer.json()["error"]
    monkeypatch.undo()
    assert 40 not in kept(path)
    assert decide(client, 40).status_code == 200
    assert 40 in kept(path)


def test_an_export_that_cannot_be_written_is_a_503(review, tmp_path):
    client, _ = review
    (tmp_path / "out").write_text("in the way")
    answer = client.post("api/export", {})
    assert answer.status_code == 503
    assert "out" in answer.json()["error"]


def test_an_export_to_a_full_disk_is_a_503(review, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("unflip._app.review._export.write_whole", full)
    answer = review[0].post("api/export", {})
    assert answer.status_code == 503
    assert answer.json()["error"] == "writing failed: No space left on device"


def test_an_export_from_a_damaged_file_writes_nothing(path, tmp_path):
    content = path.read_bytes()
    path.write_bytes(content[:4096] + bytes(len(content) - 4096))
    with pytest.raises(ValueError, match="cannot be read"):
        export(TABLE, "kind", path, tmp_path / "out")
    assert not (tmp_path / "out").exists()
