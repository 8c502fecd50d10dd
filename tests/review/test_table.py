"""Tables of any kind, read as columns; searched; told apart."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_array_equal

from unflip.review import ReviewTable

COLUMNS = {
    "size": [1.5, None, 3.0],
    "count": [1, 2, 30],
    "colour": ["red", None, "Blue"],
    "y": ["n", "p", "n"],
}
TABLES = {
    "polars": pl.DataFrame(COLUMNS),
    "pandas": pd.DataFrame(COLUMNS),
    "nullable pandas": pd.DataFrame(COLUMNS).convert_dtypes(),
    "mapping": COLUMNS | {"size": [1.5, np.nan, 3.0]},
}


@pytest.mark.parametrize("kind", TABLES)
def test_every_kind_of_table_is_read_alike(kind):
    source = ReviewTable(TABLES[kind], "y")
    assert [column.name for column in source.columns] == ["size", "count", "colour"]
    cells = [[column.text(row) for row in range(3)] for column in source.columns]
    assert cells == [["1.5", None, "3"], ["1", "2", "30"], ["red", None, "Blue"]]
    assert source.names == ["n", "p"]
    assert source.fingerprint == ReviewTable(TABLES["polars"], "y").fingerprint


def test_labels_may_stand_beside_an_array():
    source = ReviewTable(np.arange(6.0).reshape(3, 2), [True, False, True])
    assert [column.name for column in source.columns] == ["x0", "x1"]
    assert source.names == ["False", "True"]
    assert_array_equal(source.codes, [1, 0, 1])


def test_search_finds_cells_labels_ids_and_row_numbers():
    source = ReviewTable(TABLES["polars"], "y", id_column="colour")
    assert_array_equal(source.matches("blue"), [False, False, True])
    assert_array_equal(source.matches(" P "), [False, True, False])
    assert_array_equal(source.matches("3"), [False, False, True])
    assert_array_equal(source.matches("row 1"), [False, True, False])
    assert_array_equal(source.matches("#0"), [True, False, False])
    assert not source.matches("9" * 50).any()
    assert [column.name for column in source.columns] == ["size", "count"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (({"a": [1, 2]}, "y"), "no column 'y'; its columns are a"),
        (({"a": [1, 2], "y": [0, 1]}, "y", "id"), "no column 'id'"),
        (({"a": [1, 2, 3]}, [0, 1]), "column 'a' has 3 rows, but there are 2 labels"),
        (({"label": [1, 2]}, [0, 1]), "already has a column 'label'"),
        (({"a": [1, 2], "y": [1, 1]}, "y"), "one class only"),
        ((np.zeros(3), [0, 1, 1]), r"shape \(3,\)"),
    ],
)
def test_what_cannot_be_reviewed_is_refused(arguments, message):
    table, label, *rest = arguments
    with pytest.raises(ValueError, match=message):
        ReviewTable(table, label, id_column=rest[0] if rest else None)
