"""Decisions follow their rows: wherever these stand, and never to another one."""

import sqlite3

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unflip.review import Decision, Decisions, OtherTableError, ReviewTable, export

TABLE = pl.DataFrame(
    {
        "id": [1042, 1043, 1044, 1045, 1046, 1047],
        "x": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
        "y": ["n", "p", "n", "p", "n", "p"],
    }
)


def opened(path, table, **settings):
    return Decisions(path, ReviewTable(table, "y", **settings).fingerprint)


@pytest.fixture
def path(tmp_path):
    """A file in which row 0 (id 1042) is changed to p, and row 3 (id 1045) kept."""
    with opened(tmp_path / "d.sqlite", TABLE, id_column="id") as store:
        store.decide(0, 0, "change", 1)
        store.decide(3, 0, "keep", 1)
    return tmp_path / "d.sqlite"


def exported(path, table, match=None, **settings):
    """Return the labels after the export, by id."""
    out = path.parent / "out"
    if match is None:
        written = export(table, "y", path, out, **settings)
    else:
        with pytest.warns(UserWarning, match=match):
            written = export(table, "y", path, out, **settings)
    corrected = pl.read_csv(written.corrected)
    return dict(zip(corrected["id"], corrected["y"], strict=True))


LABELS = dict(zip(TABLE["id"], TABLE["y"], strict=True)) | {1042: "p"}

SAME_ROWS = {
    "as it was": TABLE,
    "columns in another order": TABLE.select("y", "x", "id"),
    "integers as floats": TABLE.with_columns(pl.col("id").cast(pl.Float64)),
}
MOVED_ROWS = {
    "sorted the other way": TABLE.reverse(),
    "two rows swapped": TABLE[[2, 1, 0, 3, 4, 5]],  # with the labels in the same order as before
    "rows added in front": pl.concat([TABLE[:2].with_columns(pl.col("id") - 9), TABLE]),
    "rows taken away": TABLE[[3, 0]],
}


@pytest.mark.parametrize("kind", SAME_ROWS)
def test_the_same_rows_are_as_before_and_nothing_is_said(path, kind):
    assert exported(path, SAME_ROWS[kind]) == LABELS
    with opened(path, SAME_ROWS[kind]) as store:
        assert store.notes == []
        assert store.all() == {0: Decision(0, 1, "change", 1), 3: Decision(3, 1, "keep", 1)}


@pytest.mark.parametrize("kind", MOVED_ROWS)
@pytest.mark.parametrize("settings", [{}, {"id_column": "id"}])
def test_decisions_go_where_their_rows_are(path, kind, settings):
    table = MOVED_ROWS[kind]
    found = exported(path, table, "decisions? moved along", **settings)
    given_labels = dict(zip(table["id"], table["y"], strict=True))
    assert found == given_labels | {1042: "p"}
    with opened(path, table, **settings) as store:
        places = table["id"].to_list()
        assert store.all() == {
            places.index(1042): Decision(places.index(1042), 1, "change", 1),
            places.index(1045): Decision(places.index(1045), 1, "keep", 1),
        }
        assert not any("could not be matched" in note for note in store.notes)


@pytest.mark.parametrize("column", ["x", "y", "id"])
def test_a_row_whose_cell_has_changed_keeps_its_label_and_is_named(path, column):
    values = {"x": 9.0, "y": "p", "id": 7}
    changed = TABLE.with_columns(
        pl.when(pl.col("id") == 1042).then(pl.lit(values[column])).otherwise(column).alias(column)
    )
    reason = "gone" if column == "id" else "cells have changed"
    match = rf"1 decision could not be matched .* row 0 \(id 1042, {reason}\)\. They are kept"
    found = exported(path, changed, match, id_column="id")
    assert list(found.values()) == changed["y"].to_list()
    log = pl.read_csv(path.parent / "out" / "log.csv")
    assert log["matched"].to_list() == ["no", "yes"]
    assert log["id"].to_list() == [1042, 1045]
    assert log["label"].to_list() == ["p", "p"]
    # as it was before, the decision holds again
    assert exported(path, TABLE) == LABELS


def test_without_ids_a_row_that_is_not_found_is_named_by_its_old_place(tmp_path):
    with opened(tmp_path / "d.sqlite", TABLE) as store:
        store.decide(0, 0, "change", 1)
        store.decide(3, 0, "keep", 1)
    with opened(tmp_path / "d.sqlite", TABLE[1:]) as store:
        (_, lost) = store.notes
        assert (
            "1 decision could not be matched with the table and will not be applied: row 0." in lost
        )
        assert store.all() == {2: Decision(2, 1, "keep", 1)}


def test_an_id_that_several_rows_have_tells_nothing_of_one(tmp_path):
    table = pl.DataFrame({"id": ["a", "a", "b"], "x": [1, 2, 3], "y": ["n", "p", "n"]})
    with opened(tmp_path / "d.sqlite", table, id_column="id") as store:
        for row in range(3):
            store.decide(row, 0, "unsure", None)
    other = table.with_columns(x=pl.Series([9, 8, 3]))
    with opened(tmp_path / "d.sqlite", other, id_column="id") as store:
        assert "row 0 (id a), row 1 (id a). They" in store.notes[-1]
        assert store.all() == {2: Decision(2, 1, "unsure")}


def test_only_the_first_of_many_unmatched_rows_are_named(tmp_path):
    table = pl.DataFrame({"id": range(100), "y": ["n", "p"] * 50})
    with opened(tmp_path / "d.sqlite", table, id_column="id") as store:
        for row in range(100):
            store.decide(row, 0, "unsure", None)
    with opened(tmp_path / "d.sqlite", table[40:], id_column="id") as store:
        lost = store.notes[-1]
        assert lost.startswith("40 decisions could not be matched")
        assert "row 19 (id 19, gone), ..." in lost
        assert "row 20" not in lost
        assert len(store.all()) == 60


def test_an_id_cannot_write_to_the_terminal(tmp_path):
    table = pl.DataFrame({"id": ["\x1b[2Jx", "b", "c"], "y": ["n", "p", "n"]})
    with opened(tmp_path / "d.sqlite", table, id_column="id") as store:
        store.decide(0, 0, "unsure", None)
        store.decide(1, 0, "unsure", None)
    with opened(tmp_path / "d.sqlite", table[1:], id_column="id") as store:
        assert "\x1b" not in store.notes[-1]
        assert r"\x1b[2Jx" in store.notes[-1]


def test_a_decision_that_was_undone_is_not_missed(path):
    with opened(path, TABLE) as store:
        store.undo(0, 1)
    with opened(path, TABLE[1:]) as store:
        assert not any("could not be matched" in note for note in store.notes)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (TABLE.with_columns(pl.col("x") * 10), "cells or labels of its rows were different"),
        (TABLE.rename({"x": "z"}), "its columns were id, x, y and its label y, these are id, z, y"),
        (TABLE.with_columns(z=1), "these are id, x, y, z"),
        (TABLE[[1, 2, 4, 5]], "it had 6 rows, this one has 4"),
        (TABLE.with_columns(pl.col("y").replace({"n": "m", "p": "q"})), "its labels were n, p"),
    ],
)
def test_a_table_with_none_of_the_rows_is_refused(path, table, message):
    before = path.read_bytes()
    with pytest.raises(OtherTableError, match=message):
        opened(path, table)
    with pytest.raises(OtherTableError, match="another table"):
        export(table, "y", path, path.parent / "out")
    assert not (path.parent / "out").exists()
    assert path.read_bytes() == before


def test_another_label_column_is_refused(path):
    table = TABLE.with_columns(z=pl.col("y"))
    with Decisions(path.parent / "z.sqlite", ReviewTable(table, "y").fingerprint) as store:
        store.decide(0, 0, "change", 1)
    with pytest.raises(OtherTableError, match="its label y, these are id, x, y, z and z"):
        Decisions(path.parent / "z.sqlite", ReviewTable(table, "z").fingerprint)


def test_the_corrected_table_is_not_corrected_twice(path):
    exported(path, TABLE)
    corrected = pl.read_csv(path.parent / "out" / "corrected.csv")
    match = r"1 decision could not be matched .* row 0 \(id 1042, cells have changed\)"
    assert exported(path, corrected, match, id_column="id") == LABELS
    with opened(path, corrected) as store:
        assert store.current(0) == Decision(0)
        assert store.current(3) == Decision(3, 1, "keep", 1)


def test_labels_keep_their_names_when_classes_come_and_go(tmp_path):
    table = pl.DataFrame({"x": range(6), "y": list("bcbcdd")})
    with opened(tmp_path / "d.sqlite", table) as store:
        store.decide(0, 0, "change", 1)  # to c
        store.decide(1, 0, "change", 2)  # to d
    more = pl.concat([table, pl.DataFrame({"x": [9], "y": ["a"]})])
    with opened(tmp_path / "d.sqlite", more) as store:  # a is the first class now
        assert store.all() == {0: Decision(0, 1, "change", 2), 1: Decision(1, 1, "change", 3)}
    with opened(tmp_path / "d.sqlite", table[:4]) as store:
        assert store.all() == {0: Decision(0, 1, "change", 1), 1: Decision(1, 1)}
        assert "row 1 (no row has the label d any more)" in store.notes[-1]
        assert store.decide(1, 1, "keep", 1) == Decision(1, 2, "keep", 1)
    with opened(tmp_path / "d.sqlite", table) as store:
        assert store.notes == []
        assert store.current(1) == Decision(1, 2, "keep", 1)


def test_rows_that_are_the_same_are_told_apart_by_their_order(tmp_path):
    twins = pl.DataFrame({"x": [1, 1, 2, 1], "y": ["n", "n", "p", "n"]})
    with opened(tmp_path / "d.sqlite", twins) as store:
        store.decide(1, 0, "change", 1)
        store.decide(3, 0, "unsure", None)
    with opened(tmp_path / "d.sqlite", twins[[2, 0, 1, 3]]) as store:
        assert store.all() == {2: Decision(2, 1, "change", 1), 3: Decision(3, 1, "unsure")}
    with opened(tmp_path / "d.sqlite", twins[[2, 0, 1]]) as store:  # there are two of them only
        assert store.all() == {2: Decision(2, 1, "change", 1)}
        assert "row 3" in store.notes[-1]


@settings(max_examples=40)
@given(st.data())
def test_whatever_is_done_to_the_rows_a_decision_is_on_a_row_with_the_same_cells(
    tmp_path_factory, data
):
    cells = st.tuples(st.integers(0, 2), st.sampled_from("np"))
    some = st.lists(cells, min_size=2, max_size=8).filter(
        lambda rows: len({y for _, y in rows}) == 2
    )
    before, after = data.draw(some), data.draw(some)
    tables = [
        pl.DataFrame({"x": [x for x, _ in t], "y": [y for _, y in t]}) for t in (before, after)
    ]
    path = tmp_path_factory.mktemp("store") / "d.sqlite"
    with opened(path, tables[0]) as store:
        for row in range(len(before)):
            store.decide(row, 0, "change", row % 2)
    common = {cell: min(before.count(cell), after.count(cell)) for cell in set(before)}
    if not any(common.values()):
        with pytest.raises(OtherTableError):
            opened(path, tables[1])
        return
    with opened(path, tables[1]) as store:
        found = store.all()
        assert len(found) == sum(common.values())
        for row, said in found.items():
            k = after[:row].count(after[row])  # the k-th of its kind, as it was before
            then = [old for old in range(len(before)) if before[old] == after[row]][k]
            assert said == Decision(row, 1, "change", then % 2)


def test_two_processes_may_have_the_rows_in_different_orders(path):
    with opened(path, TABLE) as one, opened(path, TABLE.reverse()) as other:
        one.decide(1, 0, "keep", 1)
        assert other.current(4) == Decision(4, 1, "keep", 1)
        other.decide(4, 1, "unsure", None)
        assert one.current(1) == Decision(1, 2, "unsure")


# ---------------------------------------------------------------- the random sample


def test_the_sample_is_the_same_rows_when_they_stand_elsewhere(tmp_path):
    table = pl.DataFrame({"x": range(50), "y": ["n", "p"] * 25})
    with opened(tmp_path / "d.sqlite", table) as store:
        before = store.sample(10, random_state=0)
        store.decide(before[0], 0, "unsure", None, queue="sample")
    with opened(tmp_path / "d.sqlite", table.reverse()) as store:
        assert store.sample(10) == [49 - row for row in before]
        assert store.drawn.decided_in("sample") == {49 - before[0]}
        assert not any("sample" in note for note in store.notes)


@pytest.mark.parametrize("change", ["added", "removed", "changed"])
def test_a_sample_of_other_rows_is_drawn_anew_and_that_is_said(tmp_path, change):
    table = pl.DataFrame({"x": range(50), "y": ["n", "p"] * 25})
    tables = {
        "added": pl.concat([table, pl.DataFrame({"x": [50], "y": ["n"]})]),
        "removed": table[1:],
        "changed": table.with_columns(x=pl.when(pl.col("x") == 7).then(99).otherwise("x")),
    }
    with opened(tmp_path / "d.sqlite", table) as store:
        first = store.sample(30, random_state=0)
        for row in first[:5]:
            store.decide(row, 0, "unsure", None, queue="sample")
    other = tables[change]
    with opened(tmp_path / "d.sqlite", other) as store:
        drawn = store.sample(30, random_state=1)
        assert len(set(drawn)) == 30
        # what was reviewed in the former sample does not count in this one
        assert store.drawn.decided_in("sample") == set()
        assert "no longer a random sample" in store.notes[-1]
        assert "on 5 rows of the former" in store.notes[-1]
        version = store.current(drawn[2]).version
        store.decide(drawn[2], version, "unsure", None, queue="sample")
        assert store.drawn.decided_in("sample") == {drawn[2]}
    with opened(tmp_path / "d.sqlite", other) as store:  # drawn once
        assert store.sample(30) == drawn
        assert not any("sample" in note for note in store.notes)
    with opened(tmp_path / "d.sqlite", table) as store:  # the former rows have their sample still
        assert store.sample(30) == first
        assert store.drawn.decided_in("sample") >= set(first[:5])


@pytest.mark.parametrize("version", [0, 3])
def test_a_file_of_another_version_is_refused(path, version):
    with sqlite3.connect(path) as connection:
        connection.execute(f"PRAGMA user_version = {version}")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(ValueError, match="another version of unflip"):
        opened(path, TABLE)
    assert path.read_bytes() == before


def test_rows_are_found_again_among_a_million():
    rng = np.random.default_rng(0)
    table = {"x": rng.normal(size=1_000_000), "y": rng.integers(0, 2, 1_000_000)}
    fingerprint = ReviewTable(table, "y").fingerprint
    rows = rng.choice(1_000_000, 1000, replace=False).tolist()
    assert fingerprint.find([fingerprint.key(row) for row in rows]) == rows
    assert fingerprint.find([(bytes(16), 0), (bytes([255] * 16), 5)]) == [None, None]
