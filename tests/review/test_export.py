"""The corrected table, the reviewed labels and the log; the source is never changed."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from unflip import CheckedLabels
from unflip.review import Decisions, ReviewTable, export

ROWS = {"id": ["q", "r", "s", "t"], "x": [1.5, None, 3.0, 4.25], "y": ["n", "p", "n", "p"]}
TABLES = {
    "polars": pl.DataFrame(ROWS),
    "polars categories": pl.DataFrame(ROWS).with_columns(pl.col("y").cast(pl.Categorical)),
    "pandas": pd.DataFrame(ROWS, index=[9, 8, 7, 6]),
    "pandas categories": pd.DataFrame(ROWS).astype({"y": "category"}),
    "mapping": ROWS | {"x": ["1.5", "", "3.0", "4.25"]},
}


def decided(path, table, label="y"):
    """Change row 0, keep row 1, be unsure of row 2, and change row 3 and take it back."""
    with Decisions(path, ReviewTable(table, label).fingerprint) as store:
        store.decide(0, 0, "change", 1, queue="suspicious", suggested=1, probability=0.75)
        store.decide(1, 0, "keep", 1, queue="sample")
        store.decide(2, 0, "unsure", None)
        store.decide(3, 0, "change", 0)
        store.undo(3, 1)
    return path


@pytest.mark.parametrize("kind", TABLES)
def test_only_changed_rows_have_other_labels(tmp_path, kind):
    table = TABLES[kind]
    before = repr(table)
    written = export(table, "y", decided(tmp_path / "d.sqlite", table), tmp_path / "out")
    assert written.corrected.read_text().splitlines() == [
        "id,x,y",
        "q,1.5,p",
        "r,,p",
        "s,3.0,n",
        "t,4.25,p",
    ]
    assert repr(table) == before
    assert (written.n_changed, written.n_kept, written.n_unsure) == (1, 1, 1)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "corrected.csv",
        "log.csv",
        "reviewed.csv",
    ]


def test_reviewed_labels_are_those_that_are_known_now(tmp_path):
    table = TABLES["polars"]
    written = export(table, "y", decided(tmp_path / "d.sqlite", table), tmp_path)
    reviewed = pl.read_csv(written.reviewed)
    assert reviewed.columns == ["row", "label", "given", "fingerprint"]
    assert reviewed["row"].to_list() == [0, 1]
    assert reviewed["label"].to_list() == ["p", "p"]
    assert reviewed["given"].to_list() == ["n", "p"]
    assert reviewed["fingerprint"].n_unique() == 2


def test_the_log_has_every_step(tmp_path):
    table = TABLES["polars"]
    path = decided(tmp_path / "d.sqlite", table)
    log = pl.read_csv(export(table, "y", path, tmp_path, id_column="id").log)
    assert log["action"].to_list() == ["change", "keep", "unsure", "change", "undo"]
    assert log["row"].to_list() == [0, 1, 2, 3, 3]
    assert log["id"].to_list() == ["q", "r", "s", "t", "t"]
    assert log["given"].to_list() == ["n", "p", "n", "p", "p"]
    assert log["label"].to_list() == ["p", "p", None, "n", None]
    assert log["version"].to_list() == [1, 1, 1, 1, 2]
    assert log.row(0, named=True)["probability"] == 0.75
    assert log.row(0, named=True)["suggested"] == "p"


@pytest.mark.parametrize("labels", [[0, 1, 0, 1], [False, True, False, True]])
def test_labels_beside_the_table_become_a_column(tmp_path, labels):
    table = pl.DataFrame({"x": [1, 2, 3, 4]})
    written = export(table, labels, decided(tmp_path / "d.sqlite", table, labels), tmp_path)
    corrected = pl.read_csv(written.corrected)
    assert corrected["label"].to_list() == [labels[1], labels[1], labels[2], labels[3]]
    array = np.arange(4.0)[:, None]
    written = export(array, labels, decided(tmp_path / "e.sqlite", array, labels), tmp_path)
    assert written.corrected.read_text().startswith("x0,label\n0.0,")


def test_boolean_and_numeric_columns_keep_their_type(tmp_path):
    for name, labels in {"b": [False, True, False, True], "i": [3, 5, 3, 5]}.items():
        table = pl.DataFrame({"y": labels})
        path = decided(tmp_path / f"{name}.sqlite", table)
        corrected = pl.read_csv(export(table, "y", path, tmp_path).corrected)
        assert corrected["y"].dtype == table["y"].dtype
        assert corrected["y"].to_list() == [labels[1], *labels[1:]]


def test_there_is_nothing_to_export_without_decisions(tmp_path):
    with pytest.raises(FileNotFoundError, match="no file of decisions"):
        export(TABLES["polars"], "y", tmp_path / "none.sqlite", tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_rows_of_the_random_sample_are_exported_as_drawn(tmp_path):
    rng = np.random.default_rng(0)
    table = {"size": rng.normal(size=40), "y": np.where(rng.random(40) < 0.5, "big", "small")}
    review = ReviewTable(table, "y")
    with Decisions(tmp_path / "d.sqlite", review.fingerprint) as store:
        sample = store.sample(10, random_state=0)
        for row in sample[:6]:
            if row != sample[2]:  # skipped, so unsure
                store.decide(row, 0, "keep", int(review.codes[row]), queue="sample")
        by_hand = next(row for row in range(40) if row not in sample)
        store.decide(by_hand, 0, "change", int(1 - review.codes[by_hand]))
    path = export(table, "y", tmp_path / "d.sqlite", tmp_path / "out").reviewed
    checked = CheckedLabels.from_file(path, table["y"])
    assert checked.rows.tolist() == [*sample[:6], by_hand]
    assert checked.labels[2] == "unsure"
    assert checked.is_drawn.tolist() == [True] * 6 + [False]
    found = checked.label_error_rate(table["y"])
    assert (found.n_rows, found.n_unsure, found.value) == (6, 1, 0.0)
