"""Hashes of rows: the same for the same cells, another for any other."""

import datetime

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from unflip._app.row_hashes import hash_rows, hash_texts


def hashes(table):
    if isinstance(table, dict):
        return hash_rows({name: np.asarray(values) for name, values in table.items()})
    frame = nw.from_native(table, eager_only=True)
    return hash_rows({name: frame[name] for name in frame.columns})


COLUMNS = {
    "size": [1.5, None, 3.0, -0.0],
    "count": [1, 2, 30, 0],
    "gaps": [1, None, 3, 4],
    "colour": ["red", None, "Blue", ""],
    "sold": [True, False, True, True],
}
TABLES = {
    "pandas": pd.DataFrame(COLUMNS),
    "nullable pandas": pd.DataFrame(COLUMNS).convert_dtypes(),
    "arrow": pl.DataFrame(COLUMNS).to_arrow(),
    "categories": pl.DataFrame(COLUMNS).with_columns(pl.col("colour").cast(pl.Categorical)),
    "narrow numbers": pl.DataFrame(COLUMNS).with_columns(pl.col("size", "count").cast(pl.Float32)),
    "columns in another order": pl.DataFrame(COLUMNS).select(*reversed(COLUMNS)),
    "mapping": COLUMNS | {"size": [1.5, np.nan, 3.0, 0.0], "gaps": [1.0, np.nan, 3.0, 4.0]},
}


@pytest.mark.parametrize("kind", TABLES)
def test_the_same_cells_have_the_same_hash_in_every_kind_of_table(kind):
    assert_array_equal(hashes(TABLES[kind]), hashes(pl.DataFrame(COLUMNS)))


CELL = st.one_of(
    st.none(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False),
    st.text(max_size=3),
    st.sampled_from(["1", "1.0", "True", "None", "nan", ""]),
)


def kept(cell):
    """What a cell is by itself: whole floats are integers, text is text."""
    if isinstance(cell, float) and abs(cell) < 2**63 and cell.is_integer():
        return int(cell)
    return cell


@settings(max_examples=300)
@given(CELL, CELL)
def test_two_cells_have_the_same_hash_only_where_they_are_the_same(one, other):
    found = [hashes(pl.DataFrame({"a": [cell]}, strict=False)).tolist() for cell in (one, other)]
    same = type(kept(one)) is type(kept(other)) and kept(one) == kept(other)
    assert (found[0] == found[1]) == same


def test_neighbouring_integers_that_no_float_tells_apart_are_told_apart():
    table = pl.DataFrame({"id": [2**60, 2**60 + 1, None]})
    assert len(np.unique(hashes(table), axis=0)) == 3


@pytest.mark.parametrize(
    "columns",
    [
        {"a": [1, 2], "b": [2, 1]},  # the same values in other columns
        {"a": ["x", "y"], "b": ["y", "x"]},
        {"a": [1, 1], "b": [None, 0]},
        {"a": [[1.0] * 2000, [1.0] * 1000 + [2.0] + [1.0] * 999]},  # whose text is cut short
        {"a": [datetime.date(2020, 1, 1), datetime.date(2020, 1, 2)]},
        {"a": [b"\x00", b"\x01"]},
    ],
)
def test_different_rows_have_different_hashes(columns):
    assert len(np.unique(hashes(pl.DataFrame(columns)), axis=0)) == 2


def test_a_column_is_known_by_its_name():
    assert not np.any(hashes({"a": [1, 2]}) == hashes({"b": [1, 2]}))


def test_of_many_rows_that_hardly_differ_no_two_hashes_are_the_same_even_in_half():
    grid = np.indices((20, 20, 20, 20)).reshape(4, -1)
    found = hashes(dict(zip("abcd", grid, strict=True)))
    assert len(np.unique(found[:, 0])) == len(np.unique(found[:, 1])) == 20**4


def test_as_text_a_hash_is_never_read_as_a_number(tmp_path):
    texts = hash_texts(np.array([[1, 2], [10**18, 3]], dtype=np.uint64))
    assert texts[0] == "x" + "0" * 15 + "1" + "0" * 15 + "2"
    pl.DataFrame({"fingerprint": texts}).write_csv(tmp_path / "t.csv")
    assert pl.read_csv(tmp_path / "t.csv")["fingerprint"].to_list() == texts


def test_text_that_utf8_has_no_place_for_is_hashed():
    assert hashes({"a": ["\ud800", "b"]}).shape == (2, 2)
