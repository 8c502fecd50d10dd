"""What users pass in is checked in one place."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from tests.test_labels import CONTAINERS, NAMES, RATES, Y
from tests.test_refusals import refused
from unflip import ImportanceReweightingClassifier, LabelAudit, flip_labels
from unflip.density_ratio import KLIEP
from unflip.metrics import make_clean_scorer
from unflip.weights import importance_weights


@pytest.mark.parametrize("container", CONTAINERS.values(), ids=CONTAINERS)
@pytest.mark.parametrize("labels", [Y, NAMES, Y == 1], ids=["numbers", "strings", "booleans"])
def test_labels_become_plain_arrays(container: Callable[[Any], Any], labels: Any) -> None:
    _, codes = np.unique(labels, return_inverse=True)
    sure = np.where(codes[:, None] == [0, 1], 0.8, 0.2)
    found = LabelAudit(noise_rates=RATES).fit_posterior(sure, container(labels)).suggested_label_
    assert type(found) is np.ndarray
    assert found.dtype.kind == labels.dtype.kind
    np.testing.assert_array_equal(found, labels)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (["a", 1, "b"], "holds labels of type int and str"),
        ([(1, 2), (3, 4)], "1d array"),
        (np.array(["2020-01-01", "2020-01-02"], dtype="datetime64[D]"), "type datetime64"),
        ([2**70, 1], "holds labels of type int"),
        (pd.Series(["a", None]), "in 1 of 2 rows: 1"),
        (pd.Series([1, None], dtype="Int64"), "in 1 of 2 rows: 1"),
        (pl.Series([True, None]), "in 1 of 2 rows: 1"),
        (pd.Categorical(["a", None]), "in 1 of 2 rows: 1"),
        ([0.0, np.nan, 1.0], "in 1 of 3 rows: 1"),
        ([0.0, np.inf, 1.0], "infinity"),
        ([], "y is empty"),
        (None, "requires y"),
    ],
)
def test_what_are_no_labels_is_told(labels: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        flip_labels(labels, RATES)
    with pytest.raises(ValueError, match=message):
        LabelAudit().fit_posterior(np.full((2, 2), 0.5), labels)


@pytest.mark.parametrize("classes", [[], ["a"], ["a", "a"], [None, "a"]])
def test_classes_that_are_not_two_are_refused(classes: Any) -> None:
    message = "no label" if None in classes else "at least two are needed"
    with pytest.raises(ValueError, match=message):
        make_clean_scorer("accuracy", RATES, classes=classes)


def test_parameters_of_another_type_are_refused() -> None:
    X = np.arange(60.0)[:, None]
    refused(lambda: KLIEP(n_centers=True).fit(X, X), "n_centers must be an integer >= 1, got True")
    for odd in (np.array(["rho", "pi"]), ["rho"]):
        classifier = ImportanceReweightingClassifier(weighting=odd)
        refused(lambda classifier=classifier: classifier.fit(X, Y), "weighting=")
    refused(lambda: KLIEP(bandwidths=["a"]).fit(X, X), r"bandwidths must hold numbers, got \['a'\]")
    refused(lambda: importance_weights(["a"] * 60, Y, RATES), "noisy_posterior must hold numbers")
