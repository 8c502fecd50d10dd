"""Identifiers and copies are noticed; measurements, messages and categories are left in peace."""

import numpy as np
import polars as pl
import pytest

from unflip._app.noticed import is_identifier, notice
from unflip._app.table_files import read_file
from unflip._app.tables import split_label

N = 60
RNG = np.random.default_rng(0)
IDENTIFIERS = {
    "numbers": np.arange(N),
    "from 1000 on": RNG.permutation(N) + 1000,
    "with gaps between": np.cumsum(RNG.integers(1, 3, N)),
    "codes": [f"C{k:04d}" for k in range(N)],
    "hashes": [f"{k * 2654435761 % 2**32:08x}" for k in range(N)],
}
OTHERS = {
    "measurements": RNG.normal(size=N),
    "large numbers": RNG.choice(10**9, N, replace=False),
    "few numbers": np.arange(N) % 7,
    "messages": [f"order {k} has not come" for k in range(N)],
    "long words": ["x" * 80 + str(k) for k in range(N)],
    "names with a gap": [None, *(f"C{k}" for k in range(N - 1))],
    "a few rows, which differ by chance": range(10),
    "names twice": [f"C{k // 2}" for k in range(N)],
}


@pytest.mark.parametrize("kind", IDENTIFIERS | OTHERS)
def test_what_names_the_rows_is_an_identifier_and_nothing_else(kind):
    found = is_identifier(pl.Series((IDENTIFIERS | OTHERS)[kind]))
    assert found == (kind in IDENTIFIERS)


def said(table, **options):
    return [str(one) for one in notice(split_label(table, "y", **options))]


LABELS = pl.Series("y", ["a", "b"] * (N // 2))
NUMBERS = pl.DataFrame({"u": RNG.normal(size=N), "v": RNG.integers(0, 3, N)})


def test_identifiers_are_told_with_the_options_that_leave_them_out():
    table = NUMBERS.with_columns(LABELS, **{"the key": pl.Series(IDENTIFIERS["codes"])})
    (only,) = said(table)
    assert only.startswith("Column 'the key' has another value in every row")
    assert "--id 'the key'" in only
    assert said(table, identifier="the key") == []
    (both,) = said(table.with_columns(row=pl.Series(IDENTIFIERS["numbers"])))
    assert "'the key' and 'row'" in both
    assert "--id 'the key' --drop row" in both


def test_copies_are_counted_whatever_their_identifier():
    table = NUMBERS.with_columns(LABELS)
    thrice = pl.concat([table, table[:10], table[:10]])
    (copies,) = said(thrice)
    assert copies.startswith("20 of 80 rows are copies of others")
    _, again = said(thrice.with_columns(key=pl.Series([f"K{k}" for k in range(80)])))
    assert again == copies
    assert said(table) == []


def test_equal_rows_with_different_labels_are_told_apart_and_named():
    table = NUMBERS.with_columns(LABELS)
    other = table[3:5].with_columns(y=pl.lit("c"))
    (told,) = said(pl.concat([table, other]))
    assert "in 2 cases (rows 3 and 60, counted from 0, are the first)" in told


def test_integers_of_20_digits_that_differ_in_the_last_ones_are_no_copies(tmp_path):
    rows = [f"{10**19 + k},{'ab'[k % 2]}" for k in range(N)]
    (tmp_path / "t.csv").write_text("\n".join(["n,y", *rows]))
    assert said(read_file(tmp_path / "t.csv")) == []


def test_rows_of_a_few_categories_are_alike_and_no_copies():
    kinds = pl.DataFrame({"v": RNG.integers(0, 3, N), "w": RNG.integers(0, 4, N)})
    assert said(kinds.with_columns(LABELS)) == []


def test_gaps_are_equal_and_names_of_columns_are_free():
    table = pl.DataFrame({"y" * 3: [None, *np.arange(N - 1.0)], "kk": [None] * N})
    table = table.with_columns(LABELS)
    (copies,) = said(pl.concat([table, table[:1]]))
    assert copies.startswith("1 of 61 rows")
