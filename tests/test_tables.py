"""Files are tables or refused, and labels keep their type."""

import json

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from tests.cli.mixed import mixed_table
from tests.cli.through import through_flip
from unflip._app.table_files import TableError, read_table
from unflip._app.tables import kind_of, matched
from unflip.cli import app


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
    monkeypatch.setattr("unflip._app.table_files.CHUNK_BYTES", cut)
    (tmp_path / "t.csv").write_text("a,y\n1,käse\n2,grün\n", encoding="utf-8")
    assert through_flip(tmp_path / "t.csv")[0]["y"].to_list() == ["käse", "grün"]


@pytest.mark.parametrize("cut", [1, 3, 64])
def test_the_line_of_a_wrong_byte_is_counted_across_chunks(tmp_path, monkeypatch, cut):
    monkeypatch.setattr("unflip._app.table_files.CHUNK_BYTES", cut)
    (tmp_path / "t.csv").write_bytes("a,y\n1,ä\n2,".encode() + b"\xe4\n")
    with pytest.raises(ValueError, match=r"line 3 of .* \(byte 0xe4\)"):
        through_flip(tmp_path / "t.csv")


@pytest.mark.parametrize(
    ("values", "kind", "expected"),
    [
        ([0.0, 1.0], None, 1),
        ([False, True], None, True),
        (["a", "b"], pl.Categorical, "b"),
        (["a", "b"], None, "b"),
        ([1, 2], pl.Int128, 2),
    ],
)
def test_labels_are_numbers_booleans_or_strings(tmp_path, values, kind, expected):
    path = tmp_path / "t.arrow"
    pl.DataFrame({"x": [1, 2], "y": pl.Series(values, dtype=kind)}).write_ipc(path)
    words = ["flip", str(path), "--label", "y", "--rates", "0,0", "--json", "--out"]
    result = CliRunner().invoke(app, [*words, str(tmp_path / "o.arrow")])
    found = json.loads(result.stdout)["positive_class"]
    assert (found, type(found)) == (expected, type(expected))


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
