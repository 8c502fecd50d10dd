"""The file of reviewed labels is for the rows that were reviewed, and for no others."""

import polars as pl
import pytest

from unflip._app.reviewed import read_reviewed
from unflip._app.table_files import read_table
from unflip._app.tables import split_label
from unflip.review import Decisions, ReviewTable, export

TABLE = pl.DataFrame(
    {
        "id": range(8),
        "day": pl.date_range(pl.date(2024, 1, 1), pl.date(2024, 1, 8), eager=True),
        "x": [0.1, 0.2, None, 0.4, 0.5, 0.6, 0.7, 0.8],
        "colour": ["red", "blue", None, "red", "blue", "red", "blue", "red"],
        "y": [0, 1, 0, 1, 0, 1, 0, 1],
    }
)


@pytest.fixture
def path(tmp_path):
    """What was exported of a review in which row 1 was changed, and row 2 kept."""
    TABLE.write_csv(tmp_path / "table.csv")
    table = read_table(tmp_path / "table.csv")
    with Decisions(tmp_path / "d.sqlite", ReviewTable(table, "y").fingerprint) as store:
        store.decide(1, 0, "change", 0)
        store.decide(2, 0, "keep", 0)
    return export(table, "y", tmp_path / "d.sqlite", tmp_path / "out").reviewed


def read(path, table=TABLE, *, ending=".csv", drop=()):
    """Read reviewed labels for a table that has been through a file."""
    again = path.parent / f"again{ending}"
    table.write_csv(again) if ending == ".csv" else table.write_parquet(again)
    checked = read_reviewed(path, split_label(read_table(again), "y", drop=drop))
    return dict(zip(checked.rows.tolist(), checked.labels.tolist(), strict=True))


def changed(column, value, row=1):
    there = pl.col("id") == row
    return TABLE.with_columns(pl.when(there).then(pl.lit(value)).otherwise(column).alias(column))


def test_an_exported_file_is_read_with_its_table(path):
    assert read(path) == {1: 0, 2: 0}
    assert read(path, TABLE.select(*reversed(TABLE.columns))) == {1: 0, 2: 0}
    assert read(path, ending=".parquet", drop=["colour"]) == {1: 0, 2: 0}


OTHERS = {
    "another order": TABLE.reverse(),
    "rows swapped that have the same label": TABLE[[0, 3, 2, 1, 4, 5, 6, 7]],
    "another number": changed("x", 0.21),
    "another word": changed("colour", "red"),
    "a cell that was missing": changed("x", 0.3, row=2),
    "another label": changed("y", 0),
    "another column": TABLE.with_columns(z=1),
}


@pytest.mark.parametrize("kind", OTHERS)
def test_rows_that_are_not_what_they_were_are_refused_by_number(path, kind):
    with pytest.raises(ValueError, match=r"of the 2 rows in .* rows \d"):
        read(path, OTHERS[kind])


def test_only_reviewed_rows_have_to_be_what_they_were(path):
    assert read(path, changed("x", 9.0, row=5)) == {1: 0, 2: 0}


def test_without_fingerprints_the_given_labels_are_compared(path):
    pl.read_csv(path).drop("fingerprint").write_csv(path)
    assert read(path) == {1: 0, 2: 0}
    assert read(path, changed("x", 0.21)) == {1: 0, 2: 0}  # which they do not tell
    with pytest.raises(ValueError, match=r"column 'given': rows 1, 2"):
        read(path, TABLE.reverse())
    with pytest.raises(ValueError, match=r"1 of the 2 rows .* 'given': rows 1,"):
        read(path, changed("y", 0))


def test_positions_and_labels_alone_are_taken_as_they_are(path):
    pl.read_csv(path).select("row", "label").write_csv(path)
    assert read(path) == read(path, TABLE.reverse()) == {1: 0, 2: 0}


def test_labels_are_compared_as_classes(path, tmp_path):
    path.write_text("row,label,given\n1,0.0,1.0\n")
    assert read(path) == {1: 0}
    path.write_text("row,label,given\n1,0,perhaps\n")
    with pytest.raises(ValueError, match="differ from those reviewed"):
        read(path)
