"""Tables come back as they were written, and become numbers without gaps."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cli.mixed import mixed_table
from unflip._app import table_files
from unflip._app.table_files import ENDINGS, TableError, read_table, write_table
from unflip._app.tables import kind_of, matched, split_label
from unflip._utils.preprocessing import make_vectorizer


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_table_comes_back_as_it_was_written(tmp_path, ending):
    table = mixed_table(50)
    write_table(table, tmp_path / f"table{ending}")
    back = read_table(tmp_path / f"table{ending}")
    if ending in (".jsonl", ".ndjson"):  # which have no dates
        table = table.with_columns(pl.col("since").cast(pl.String))
    assert back.equals(table)


def test_a_byte_order_mark_is_no_part_of_a_name(tmp_path):
    (tmp_path / "t.csv").write_bytes(b"\xef\xbb\xbfa,b\n1,2\n")
    assert read_table(tmp_path / "t.csv").columns == ["a", "b"]


@given(st.binary(max_size=300))
def test_any_bytes_are_a_table_or_refused(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("any") / "t.csv"
    path.write_bytes(content)
    try:
        said = f"{path}: {read_table(path).height} rows"
    except TableError as error:
        said = str(error)
    assert str(path) in said
    assert ": 0 rows" not in said


@pytest.mark.parametrize("cut", [1, 7, 64])
def test_a_character_cut_by_the_end_of_a_chunk_is_read(tmp_path, monkeypatch, cut):
    monkeypatch.setattr(table_files, "CHUNK_BYTES", cut)
    (tmp_path / "t.csv").write_text("a,b\n1,käse\n2,grün\n", encoding="utf-8")
    assert read_table(tmp_path / "t.csv")["b"].to_list() == ["käse", "grün"]


@pytest.mark.parametrize("cut", [1, 3, 64])
def test_the_line_of_a_wrong_byte_is_counted_across_chunks(tmp_path, monkeypatch, cut):
    monkeypatch.setattr(table_files, "CHUNK_BYTES", cut)
    (tmp_path / "t.csv").write_bytes("a,b\n1,ä\n2,".encode() + b"\xe4\n")
    with pytest.raises(TableError, match=r"line 3 of .* \(byte 0xe4\)"):
        read_table(tmp_path / "t.csv")


def test_mixed_columns_become_numbers_without_gaps():
    data = split_label(mixed_table(), "churn", identifier="customer")
    X = make_vectorizer().fit_transform(data.features)
    assert X.shape[0] == 500
    assert np.isfinite(X).all()
    assert np.array_equal(X, make_vectorizer().fit_transform(data.features))


def test_new_categories_and_gaps_become_numbers_too():
    data = split_label(mixed_table(), "churn", identifier="customer")
    vectorizer = make_vectorizer().fit(data.features.with_columns(pl.col("visits").fill_null(0)))
    new = data.features[:20].with_columns(
        pl.lit(None, pl.Int64).alias("visits"), pl.lit("unheard of").alias("note")
    )
    assert np.isfinite(vectorizer.transform(new)).all()


def test_labels_are_numbers_booleans_or_strings():
    def labels(values, kind=None):
        table = pl.DataFrame({"x": [1, 2], "y": pl.Series(values, dtype=kind)})
        return split_label(table, "y").y

    assert labels([0.0, 1.0]).dtype == np.int64
    assert labels([True, False]).dtype == bool
    assert labels(["a", "b"], pl.Categorical).tolist() == ["a", "b"]
    assert labels(["a", "b"]).dtype.kind == "U"


def test_wide_integers_are_labels_as_far_as_64_bits_go():
    table = pl.DataFrame({"x": [1, 2], "y": pl.Series([1, 2], dtype=pl.Int128)})
    assert split_label(table, "y").y.tolist() == [1, 2]
    with pytest.raises(TableError, match="holds 1180591620717411303424"):
        split_label(table.with_columns(pl.Series("y", [1, 2**70], dtype=pl.Int128)), "y")


def test_columns_in_another_order_or_with_the_label_are_matched():
    table = mixed_table(20)
    kinds = {name: kind_of(table[name]) for name in ("amount", "since", "note")}
    shuffled = table.select("note", "churn", "since", "amount")
    assert matched(shuffled, kinds, ["churn"]).columns == ["amount", "since", "note"]


def test_a_column_of_gaps_matches_any_kind():
    table = pl.DataFrame({"a": pl.Series([None, None], dtype=pl.String)})
    assert matched(table, {"a": "numbers"}, []).columns == ["a"]
    with pytest.raises(TableError, match="'a' holds text instead of numbers"):
        matched(pl.DataFrame({"a": ["x", "y"]}), {"a": "numbers"}, [])
