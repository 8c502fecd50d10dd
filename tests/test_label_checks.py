"""Leaks, rules and classes that look alike are named; ordinary tables are left in peace."""

import os
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_iris, load_wine, make_classification

from unflip import NoiseRates, flip_labels
from unflip._diagnostics.labels import judge_classes, judge_table, look_alike


def codes(X, y):
    return [diagnostic.code for diagnostic in judge_table(X, y)]


def frame(seed=0, n=600):
    """Ordinary columns of all kinds, and a label that they tell something about."""
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 80, n)
    table = pd.DataFrame(
        {
            "age": age,
            "income": rng.lognormal(10, 1, n),
            "city": rng.choice(["Oslo", "Bergen", None], n),
            "id": [f"row {k}" for k in range(n)],
            "empty": np.nan,
            "seen": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 900, n), "D"),
        }
    )
    return table, np.where(rng.random(n) < 1 / (1 + np.exp((50 - age) / 6)), "left", "stayed")


@pytest.mark.parametrize("seed", range(5))
def test_an_ordinary_table_with_names_gaps_and_dates_raises_no_alarm(seed):
    X, y = frame(seed)
    assert judge_table(X, y) == []
    assert judge_table(pl.from_pandas(X), y) == []


@pytest.mark.parametrize("load", [load_breast_cancer, load_iris, load_wine])
def test_well_known_clean_tables_raise_no_alarm(load):
    assert judge_table(*load(return_X_y=True)) == []


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("classes", [2, 5])
def test_simulated_classes_raise_no_alarm_with_or_without_noise(seed, classes):
    X, y = make_classification(
        800, 12, n_informative=6, n_classes=classes, flip_y=0, class_sep=2, random_state=seed
    )
    assert judge_table(X, y) == []
    if classes == 2:
        assert judge_table(X, flip_labels(y, NoiseRates(0.2, 0.1), random_state=seed)) == []


def benchmark_tables():
    folder = os.environ.get("UNFLIP_DATA")
    return sorted(Path(folder).rglob("*.csv")) if folder else []


@pytest.mark.skipif(not benchmark_tables(), reason="UNFLIP_DATA does not say where the tables are")
def test_the_benchmark_tables_raise_no_alarm():
    for path in benchmark_tables():
        table = pd.read_csv(path)
        assert judge_table(table.iloc[:, :-1], table.iloc[:, -1]) == [], path.name


@pytest.mark.parametrize("pack", [pd.DataFrame, pl.from_pandas], ids=["pandas", "polars"])
@pytest.mark.parametrize("values", [("yes", "no"), (3.0, 7.0), (True, False)])
def test_a_copy_of_the_label_is_named_as_a_leak(values, pack):
    X, y = frame()
    X["cancelled"] = np.where(y == "left", *values)
    (found,) = judge_table(pack(X), y)
    assert (found.code, found.severity) == ("leak", "warning")
    assert str(found).startswith("Column 'cancelled' is the label under another name")


def test_a_copy_with_a_few_other_values_is_still_a_leak_with_its_share():
    X, y = frame(n=2000)
    X["cancelled"] = np.where(np.arange(2000) % 250 == 0, y[::-1], y)
    (found,) = judge_table(X, y)
    assert found.code == "leak"
    agreement = np.mean(X["cancelled"] == y)
    assert found.numbers["share"] == pytest.approx(agreement, abs=0.004)


def test_gaps_that_give_the_label_away_are_named():
    X, y = frame()
    X["left on"] = X["seen"].where(y == "left")
    (found,) = judge_table(X, y)
    assert (found.code, found.severity) == ("determined", "note")
    assert "'left on' alone determines the label" in str(found)


def test_many_categories_that_determine_the_label_are_named():
    X, y = frame(n=2000)
    rng = np.random.default_rng(1)
    X["tariff"] = np.where(y == "left", "old ", "new ") + rng.integers(0, 30, 2000).astype(str)
    (found,) = judge_table(X, y)
    assert found.code == "determined"
    assert "'tariff'" in str(found)


def test_a_threshold_of_one_column_is_named_by_its_position():
    X = np.random.default_rng(0).normal(size=(3000, 20))
    (found,) = judge_table(X, X[:, 7] > 0.3)
    assert (found.code, found.severity, found.numbers["column"]) == ("determined", "note", 7)
    (found,) = judge_table(sparse.csr_array(X), X[:, 7] > 0.3)
    assert found.numbers["column"] == 7


def test_a_rare_class_by_a_threshold_is_found():
    X = np.random.default_rng(0).normal(size=(20_000, 8))
    (found,) = judge_table(X, X[:, 2] > np.quantile(X[:, 2], 0.99))
    assert found.code == "determined"
    assert found.numbers["column"] == 2


def test_a_rule_of_two_columns_is_named():
    X = np.random.default_rng(0).normal(size=(3000, 20))
    (found,) = judge_table(X, (X[:, 3] > 0.2) & (X[:, 11] < 0.7))
    assert (found.code, found.severity) == ("rule", "note")
    assert "columns 3 and 11" in str(found) or "columns 11 and 3" in str(found)


def test_labels_that_are_flipped_at_random_follow_no_rule():
    X = np.random.default_rng(0).normal(size=(3000, 20))
    y = flip_labels((X[:, 3] > 0.2).astype(int), NoiseRates(0.05, 0.05), random_state=0)
    assert judge_table(X, y) == []


def test_classes_that_every_column_tells_apart_are_no_leak():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 500)
    assert judge_table(rng.normal(size=(500, 4)) + 10 * y[:, None], y) == []


def test_the_order_of_the_rows_does_not_matter_to_what_is_found():
    X, y = frame(n=3000)
    X["cancelled"] = y
    order = np.argsort(y, kind="stable")
    assert codes(X, y) == codes(X.iloc[order], y[order]) == ["leak"]


@pytest.mark.parametrize(
    ("labels", "groups"),
    [
        (["Stayed", "stayed ", "STAYED", "left"], [["Stayed", "stayed ", "STAYED"]]),
        (["no churn", "no_churn", "churn"], [["no churn", "no_churn"]]),
        (["1", "1.0", "2"], [["1", "1.0"]]),
        (["yes.", "yes", "no"], [["yes.", "yes"]]),
        (["ﬁne", "fine"], [["ﬁne", "fine"]]),
        (["-1", "1"], []),
        (["+", "-"], []),
        (["1.5", "15"], []),
        (["a1", "a 1"], []),
        (["grade-1", "grade-2"], []),
        (["1e3", "1000", "NaN", "nan"], [["1e3", "1000"], ["NaN", "nan"]]),
        (["nan", "none"], []),
        ([0, 1, 2], []),
        (list("AaBbCc"), []),
    ],
)
def test_classes_are_alike_where_only_their_spelling_differs(labels, groups):
    assert look_alike(labels) == groups


def test_classes_alike_and_classes_of_few_rows_are_named_with_their_counts():
    X, y = frame()
    y = y.astype(object)
    y[:40] = "stayed "
    y[40:43] = "unknown"
    alike, few = judge_table(X, y)
    assert (alike.code, alike.severity) == ("classes_look_alike", "warning")
    assert "'stayed', 'stayed '" in str(alike)
    assert (few.code, few.severity) == ("classes_of_few_rows", "warning")
    assert "'unknown' (3)" in str(few)


def test_a_rare_class_of_few_rows_is_named_with_the_option_that_leaves_it_out():
    classes = np.array(["by post", "left", "stayed"])
    (few,) = judge_classes(classes, np.array([20, 9000, 10_980]))
    assert "Too few of the 20,000 rows are labelled 'by post' (20) to tell" in str(few)
    assert "--drop-classes 'by post'" in str(few)
    # as many rows, but no rare class; and a rare one with rows enough
    assert judge_classes(classes, np.array([20, 900, 1080])) == []
    assert judge_classes(classes, np.array([60, 9000, 10_940])) == []


def test_where_two_classes_are_left_none_is_to_be_dropped():
    (few,) = judge_classes(np.array(["a", "b"]), np.array([5, 7]))
    assert "drop" not in str(few)
    assert str(few).endswith("are mislabelled. Add rows.")


def test_all_groups_of_spellings_are_one_sentence():
    classes = np.array(["Left", "Stayed", "left", "stayed"])
    (alike,) = judge_classes(classes, np.array([50, 50, 50, 50]))
    assert "'Left', 'left'; 'Stayed', 'stayed' look like one class" in str(alike)


def test_many_classes_and_tiny_tables_are_no_problem():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 3))
    assert codes(X, rng.integers(0, 700, 3000)) == ["classes_of_few_rows"]
    assert codes(X[:12], [0, 1] * 6) == ["classes_of_few_rows"]
    assert codes(np.where(rng.random(X.shape) < 0.2, np.nan, X), X[:, 0] > 0) == []
    assert codes(np.where(X > 2, np.inf, X), X.sum(axis=1) > 0) == []


def test_columns_of_one_name_are_told_by_position():
    X, y = frame()
    doubled = pd.concat([X[["age"]], X[["age"]], pd.Series(y == "left", name="age")], axis=1)
    (found,) = judge_table(doubled, y)
    assert found.numbers["column"] == 2
