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
from unflip.diagnostics import diagnose_classes, diagnose_features, look_alike


def diagnose_table(X, y):
    classes, codes = np.unique(np.asarray(y), return_inverse=True)
    found = diagnose_classes(classes, np.bincount(codes))
    return [*found, *diagnose_features(X, codes, classes)]


def codes(X, y):
    return [diagnostic.code for diagnostic in diagnose_table(X, y)]


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


def simulated(n_classes, rates=None):
    X, y = make_classification(
        800, 12, n_informative=6, n_classes=n_classes, flip_y=0, class_sep=2, random_state=0
    )
    return X, y if rates is None else flip_labels(y, rates, random_state=0)


def flipped_rule():
    X = np.random.default_rng(0).normal(size=(3000, 20))
    return X, flip_labels((X[:, 3] > 0.2).astype(int), NoiseRates(0.05, 0.05), random_state=0)


def far_apart():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 500)
    return rng.normal(size=(500, 4)) + 10 * y[:, None], y


ORDINARY = {
    "names, gaps and dates": frame,
    "the same in polars": lambda: (pl.from_pandas(frame(1)[0]), frame(1)[1]),
    "breast cancer": lambda: load_breast_cancer(return_X_y=True),
    "iris": lambda: load_iris(return_X_y=True),
    "wine": lambda: load_wine(return_X_y=True),
    "two classes": lambda: simulated(2),
    "two noisy classes": lambda: simulated(2, NoiseRates(0.2, 0.1)),
    "five classes": lambda: simulated(5),
    "a rule and random flips": flipped_rule,
    "classes that every column tells apart": far_apart,
}


@pytest.mark.parametrize("kind", ORDINARY)
def test_ordinary_tables_raise_no_alarm(kind):
    assert diagnose_table(*ORDINARY[kind]()) == []


def benchmark_tables():
    folder = os.environ.get("UNFLIP_DATA")
    return sorted(Path(folder).rglob("*.csv")) if folder else []


@pytest.mark.skipif(not benchmark_tables(), reason="UNFLIP_DATA does not say where the tables are")
def test_the_benchmark_tables_raise_no_alarm():
    for path in benchmark_tables():
        table = pd.read_csv(path)
        found = diagnose_table(table.iloc[:, :-1], table.iloc[:, -1])
        # some tables hold copies, which is a note
        assert [one for one in found if one.severity == "warning"] == [], path.name


@pytest.mark.parametrize("pack", [pd.DataFrame, pl.from_pandas], ids=["pandas", "polars"])
@pytest.mark.parametrize("values", [("yes", "no"), (3.0, 7.0), (True, False)])
def test_a_copy_of_the_label_is_named_as_a_leak(values, pack):
    X, y = frame(n=2000)
    X["cancelled"] = np.where(y == "left", *values)
    (found,) = diagnose_table(pack(X), y)
    assert (found.code, found.severity) == ("leak", "warning")
    assert "'cancelled'" in str(found)
    # and also with a few other values
    X["cancelled"] = np.where(np.arange(2000) % 250 == 0, X["cancelled"][::-1], X["cancelled"])
    (found,) = diagnose_table(pack(X), y)
    assert found.code == "leak"
    agreement = np.mean(X["cancelled"] == np.where(y == "left", *values))
    assert found.numbers["share"] == pytest.approx(agreement, abs=0.004)


def gaps():
    X, y = frame()
    X["left on"] = X["seen"].where(y == "left")
    return X, y, "left on"


def categories():
    X, y = frame(n=2000)
    kind = np.random.default_rng(1).integers(0, 30, 2000).astype(str)
    X["tariff"] = np.where(y == "left", "old ", "new ") + kind
    return X, y, "tariff"


def same_names():
    X, y = frame()
    doubled = pd.concat([X[["age"]], X[["age"]], pd.Series(y == "left", name="age")], axis=1)
    return doubled, y, 2


def threshold(pack=np.asarray, n=3000, share=0.4):
    X = np.random.default_rng(0).normal(size=(n, 20))
    return pack(X), X[:, 7] > np.quantile(X[:, 7], 1 - share), 7


@pytest.mark.parametrize(
    "made",
    [
        gaps,
        categories,
        threshold,
        lambda: threshold(sparse.csr_array),
        lambda: threshold(n=20_000, share=0.01),
    ],
)
def test_a_column_that_determines_the_label_is_named(made):
    X, y, column = made()
    (found,) = [one for one in diagnose_table(X, y) if one.severity == "warning"]
    assert (found.code, found.numbers["names"]) == ("rule", [column])


def test_columns_of_one_name_are_told_by_position():
    X, y, column = same_names()
    (found,) = [one for one in diagnose_table(X, y) if one.severity == "warning"]
    assert found.numbers["column"] == column


def test_a_rule_of_two_columns_is_named():
    X = np.random.default_rng(0).normal(size=(3000, 20))
    (found,) = diagnose_table(X, (X[:, 3] > 0.2) & (X[:, 11] < 0.7))
    assert (found.code, found.severity) == ("rule", "warning")
    assert sorted(found.numbers["names"]) == [3, 11]
    assert "X[:, 3] > 0.2" in str(found)


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
    alike, few = diagnose_table(X, y)
    assert (alike.code, alike.severity) == ("classes_look_alike", "warning")
    assert "'stayed', 'stayed '" in str(alike)
    assert (few.code, few.severity) == ("classes_of_few_rows", "note")
    assert "'unknown' (3)" in str(few)


@pytest.mark.parametrize(
    ("counts", "code", "drop"),
    [
        ([20, 9000, 10_980], ["classes_of_few_rows"], True),
        ([20, 900, 1080], [], False),  # as many rows, but no rare class
        ([60, 9000, 10_940], [], False),  # a rare one with rows enough
        ([5, 7], ["classes_of_few_rows"], False),  # of two classes none is to be dropped
    ],
)
def test_a_rare_class_of_few_rows_is_named_with_the_option_that_leaves_it_out(counts, code, drop):
    classes = np.array(["by post", "left", "stayed"][: len(counts)])
    found = diagnose_classes(classes, np.array(counts))
    assert [each.code for each in found] == code
    assert any("--drop-classes 'by post'" in str(each) for each in found) == drop


def test_many_classes_and_tiny_tables_are_no_problem():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 8))
    assert codes(X, rng.integers(0, 700, 3000).astype(str)) == ["classes_of_few_rows"]
    assert codes(X[:12], [0, 1] * 6) == ["classes_of_few_rows"]
    assert codes(np.where(rng.random(X.shape) < 0.2, np.nan, X), X[:, 0] > 0) == []
    assert codes(np.where(X > 2, np.inf, X), X.sum(axis=1) > 0) == []
