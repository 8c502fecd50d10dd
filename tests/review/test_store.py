"""Decisions on disk: versions, undo, the sample, and whose file it is."""

import sqlite3
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unflip.review import Decision, Decisions, ReviewTable, StaleDecisionError

TABLE = {"a": [1.0, 2.0, 3.0, 4.0], "y": ["n", "p", "n", "p"]}
FINGERPRINT = ReviewTable(TABLE, "y").fingerprint


@pytest.fixture
def store(tmp_path):
    with Decisions(tmp_path / "d.sqlite", FINGERPRINT) as opened:
        yield opened


def test_a_decision_outlives_the_object(tmp_path):
    with Decisions(tmp_path / "d.sqlite", FINGERPRINT) as store:
        assert store.decide(2, 0, "change", 1) == Decision(2, 1, "change", 1)
    with Decisions(tmp_path / "d.sqlite", FINGERPRINT) as store:
        assert store.current(2) == Decision(2, 1, "change", 1)
        assert store.all() == {2: Decision(2, 1, "change", 1)}


def test_a_stale_write_is_refused_and_told_the_newer_decision(store):
    store.decide(1, 0, "keep", 1)
    for version in (0, 2):
        with pytest.raises(StaleDecisionError) as refused:
            store.decide(1, version, "change", 0)
        assert refused.value.current == Decision(1, 1, "keep", 1)
        with pytest.raises(StaleDecisionError):
            store.undo(1, version)
    assert store.current(1) == Decision(1, 1, "keep", 1)


def test_two_processes_cannot_overwrite_each_other(tmp_path):
    with (
        Decisions(tmp_path / "d.sqlite", FINGERPRINT) as one,
        Decisions(tmp_path / "d.sqlite", FINGERPRINT) as other,
    ):
        one.decide(0, 0, "keep", 0)
        assert one.all() == other.all() == {0: Decision(0, 1, "keep", 0)}
        with pytest.raises(StaleDecisionError):
            other.decide(0, 0, "unsure", None)
        assert other.decide(0, 1, "unsure", None).version == 2
        assert one.current(0) == Decision(0, 2, "unsure", None)
        assert one.all() == {0: Decision(0, 2, "unsure", None)}


def test_of_many_writers_at_once_exactly_one_wins(tmp_path):
    won = []

    def write():
        with Decisions(tmp_path / "d.sqlite", FINGERPRINT) as store:
            barrier.wait()
            try:
                won.append(store.decide(3, 0, "keep", 1))
            except StaleDecisionError:
                return

    barrier = threading.Barrier(6)
    writers = [threading.Thread(target=write) for _ in range(6)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert won == [Decision(3, 1, "keep", 1)]


def test_undo_brings_back_what_was_said_before_and_deletes_nothing(store):
    store.decide(0, 0, "keep", 0)
    store.decide(0, 1, "change", 1)
    assert store.undo(0, 2) == Decision(0, 3, "keep", 0)
    assert store.undo(0, 3) == Decision(0, 4, None, None)
    with pytest.raises(ValueError, match="no decision"):
        store.undo(0, 4)
    assert [event["version"] for event in store.log()] == [1, 2, 3, 4]
    assert [event["undoes"] for event in store.log()] == [None, None, 2, 1]


def test_the_last_decision_is_the_last_that_was_not_undone(store):
    assert store.last() is None
    store.decide(0, 0, "keep", 0)
    store.decide(1, 0, "keep", 1)
    assert store.last() == Decision(1, 1, "keep", 1)
    store.undo(1, 1)
    assert store.last() == Decision(0, 1, "keep", 0)
    store.undo(0, 1)
    assert store.last() is None


ACTION = st.tuples(st.integers(0, 2), st.sampled_from(["keep", "change", "unsure", "undo"]))


@settings(max_examples=30)  # every action waits for the disk
@given(st.lists(ACTION, max_size=20))
def test_the_store_is_a_stack_per_row(tmp_path_factory, actions):
    said = {row: [] for row in range(3)}
    versions = dict.fromkeys(range(3), 0)
    with Decisions(tmp_path_factory.mktemp("store") / "d.sqlite", FINGERPRINT) as store:
        for row, action in actions:
            if action != "undo":
                store.decide(row, versions[row], action, None)
                said[row].append(action)
            elif said[row]:
                store.undo(row, versions[row])
                said[row].pop()
            else:
                with pytest.raises(ValueError, match="no decision"):
                    store.undo(row, versions[row])
                continue
            versions[row] += 1
        found = store.all()
        for row in range(3):
            expected = said[row][-1] if said[row] else None
            assert found.get(row, Decision(row)).verdict == expected
            assert found.get(row, Decision(row)) == store.current(row)
            assert store.current(row).version == versions[row]


def test_the_sample_is_drawn_once_and_extended(tmp_path):
    table = ReviewTable({"a": range(100), "y": [0, 1] * 50}, "y").fingerprint
    with Decisions(tmp_path / "d.sqlite", table) as store:
        first = store.sample(5, random_state=0)
    with Decisions(tmp_path / "d.sqlite", table) as store:
        longer = store.sample(100, random_state=1)
        assert longer[:5] == first
        assert sorted(longer) == list(range(100))
        assert store.sample(3) == first[:3]
        assert store.sample(500) == longer


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"a": [1.0, 2.0], "y": ["n", "p"]}, "it had 4 rows, this one has 2"),
        ({"b": [1.0] * 4, "y": ["n", "p", "n", "p"]}, "its columns were a, y"),
        ({"a": [1.0] * 4, "y": ["p", "n", "n", "p"]}, "cells or labels of its rows were different"),
        ({"a": [1.0] * 4, "y": ["n", "q", "n", "q"]}, "its labels were n, p, these are n, q"),
    ],
)
def test_a_file_of_another_table_is_refused(tmp_path, table, message):
    Decisions(tmp_path / "d.sqlite", FINGERPRINT).close()
    with pytest.raises(ValueError, match=message):
        Decisions(tmp_path / "d.sqlite", ReviewTable(table, "y").fingerprint)


def test_a_file_of_something_else_is_refused_and_left_alone(tmp_path):
    text = tmp_path / "notes.txt"
    text.write_text("not a database, and long enough to be read as the head of one " * 20)
    before = text.read_bytes()
    with pytest.raises(ValueError, match="cannot be read"):
        Decisions(text, FINGERPRINT)
    assert text.read_bytes() == before
    with sqlite3.connect(tmp_path / "other.sqlite") as other:
        other.execute("CREATE TABLE events (x)")
    other.close()
    before = (tmp_path / "other.sqlite").read_bytes()
    with pytest.raises(ValueError, match="not a file"):
        Decisions(tmp_path / "other.sqlite", FINGERPRINT)
    assert (tmp_path / "other.sqlite").read_bytes() == before
