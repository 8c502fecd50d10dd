"""From a table to a model: orientation of the rates, reviewed rows, estimators by name."""

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

from tests.cli.mixed import mixed_table
from unflip import CheckedLabels, LabelNoiseWarning, NoiseRates, flip_labels
from unflip._app.table_files import TableError
from unflip._app.tables import split_label
from unflip._app.words import headline
from unflip._app.workflow import (
    class_named,
    learn,
    make_estimator,
    oriented,
    parse_rates,
)
from unflip.posterior import ChannelPosterior

RATES = NoiseRates(positive=0.3, negative=0.1)


@pytest.fixture(scope="module")
def truth():
    return mixed_table(800)["churn"].to_numpy().astype(str)


@pytest.fixture(scope="module")
def data(truth):
    noisy = pl.Series("churn", flip_labels(truth, RATES, random_state=0))
    return split_label(mixed_table(800).with_columns(noisy), "churn", identifier="customer")


def test_rates_of_the_named_class_come_first(data):
    as_greater = learn(data, rates=RATES, positive="yes")
    as_lesser = learn(data, rates=RATES.swapped(), positive="no")
    assert as_greater.classifier.noise_rates_ == as_lesser.classifier.noise_rates_ == RATES
    assert as_lesser.found["noise_rates"] == {"positive": 0.1, "negative": 0.3}


def test_the_audit_has_the_classifiers_probabilities(data):
    learnt = learn(data, random_state=3)
    audit = learnt.audit()
    np.testing.assert_array_equal(audit.mislabel_proba_, learnt.classifier.mislabel_proba_)


def test_an_audit_costs_no_fit(data, monkeypatch):
    learnt = learn(data, random_state=3)
    monkeypatch.setattr(ChannelPosterior, "fit", lambda *_: pytest.fail("it was fitted again"))
    assert learnt.audit().mislabel_proba_.size == data.y.size


def test_rows_are_ranked_where_no_noise_is_the_likeliest():
    X = np.random.default_rng(0).normal(size=(400, 2))
    table = pl.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": (X[:, 0] > 0).astype(int)})
    found = learn(split_label(table, "y"), random_state=0)
    assert found.classifier.noise_rates_.both() == (0, 0)
    assert np.unique(found.audit().mislabel_proba_).size > 10


def test_reviewed_rows_weigh_one_and_say_nothing_of_others(data, truth):
    rows = np.arange(0, 800, 2)
    before, after = learn(data), learn(data, reviewed=CheckedLabels(rows, truth[rows]))
    assert after.classifier.noise_rates_ == before.classifier.noise_rates_
    assert (after.weights[rows] == 1).all()
    # each of the others trains with its label as far as that is right, by the labels alone
    assert_allclose(after.weights[1::2], 1 - before.classifier.mislabel_proba_[1::2])
    assert np.array_equal(after.noise.observed, data.y)


def test_all_rows_reviewed_give_the_model_of_clean_labels(data, truth):
    learnt = learn(data, reviewed=CheckedLabels(np.arange(truth.size), truth))
    clean = make_estimator("logistic").fit(learnt.X, truth)
    expected = clean.predict_proba(learnt.X)
    assert learnt.model.predict_proba(data.features) == pytest.approx(expected)


@pytest.mark.slow
def test_reviewing_suspicious_rows_brings_the_model_closer_to_the_truth(truth):
    new = mixed_table(2000, seed=9)
    before, after = [], []
    for seed in range(3):
        noisy = flip_labels(truth, NoiseRates(0.4, 0.3), random_state=seed)
        table = mixed_table(800).with_columns(pl.Series("churn", noisy))
        data = split_label(table, "churn", identifier="customer")
        plain = learn(data, rates=NoiseRates(0.4, 0.3))
        rows = plain.audit().issues(n=250)
        reviewed = CheckedLabels(rows, truth[rows])
        features = new.drop("churn", "customer")
        before.append(np.mean(plain.model.predict(features) == new["churn"].to_numpy()))
        again = learn(data, rates=NoiseRates(0.4, 0.3), reviewed=reviewed)
        after.append(np.mean(again.model.predict(features) == new["churn"].to_numpy()))
    assert np.mean(after) > np.mean(before)


@pytest.mark.parametrize(
    ("classes", "text", "expected"),
    [
        (["no", "yes"], "yes", "yes"),
        ([0, 1], "1", 1),
        ([0, 1], "1.0", 1),
        ([0, 1], 1, 1),
        ([False, True], "true", True),
        (["1", "01"], "01", "01"),
    ],
)
def test_classes_are_found_by_their_text(classes, text, expected):
    found = class_named(np.array(classes), text)
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize("text", ["Yes", "1", ""])
def test_a_class_that_is_not_there_is_refused(text):
    with pytest.raises(TableError, match="is not one of the classes: 'no', 'yes'"):
        class_named(np.array(["no", "yes"]), text)


def test_estimators_are_made_by_alias_or_path():
    assert isinstance(make_estimator("logistic")[-1], LogisticRegression)
    for path in (
        "sklearn.ensemble.RandomForestClassifier",
        "sklearn.ensemble:RandomForestClassifier",
    ):
        assert isinstance(make_estimator(path), RandomForestClassifier)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0.3,0.1", NoiseRates(0.3, 0.1)),
        (" 0.1:0.3 , ? ", NoiseRates((0.1, 0.3), None)),
        ("?,?", NoiseRates(None, None)),
    ],
)
def test_rates_are_read_as_numbers_bounds_or_unknown(text, expected):
    assert parse_rates(text) == expected


FOUND = {
    "classes": ["no", "yes"],
    "information_left": 0.6,
    "noise_rates": {"positive": 0.3, "negative": 0.1},
    "interval": {"level": 0.95, "positive": [0.2, 0.4], "negative": [0.0, 0.2]},
    "per_class": [{"label": "no"}, {"label": "yes"}],
}


def test_intervals_go_with_their_class_whichever_is_positive():
    for positive in ("no", "yes"):
        found = oriented(FOUND, positive)
        assert [row["interval"] for row in found["per_class"]] == [[0.0, 0.2], [0.2, 0.4]]
        assert found["interval"]["level"] == 0.95
    assert oriented(FOUND, "no")["interval"]["positive"] == [0.0, 0.2]
    assert oriented(FOUND, "no")["noise_rates"] == {"positive": 0.1, "negative": 0.3}
    assert FOUND["noise_rates"] == {"positive": 0.3, "negative": 0.1}


def test_a_copy_of_the_label_is_named_and_is_to_be_dropped():
    X = np.random.default_rng(0).normal(size=(400, 2))
    y = flip_labels(X[:, 0] > 0, RATES, random_state=0)
    columns = {"a": X[:, 0], "b": X[:, 1], "paid": np.where(y, "in full", "open")}
    found = learn(split_label(pl.DataFrame({**columns, "y": y.astype(int)}), "y")).found
    assert found["leaks"] == ["paid"]
    assert any("'paid' is the label under another name" in said for said in found["warnings"])


def test_given_rates_that_the_labels_contradict_are_contradicted():
    X = np.random.default_rng(0).normal(size=(1500, 2))
    y = flip_labels(X[:, 0] > 0, RATES, random_state=0).astype(int)
    table = split_label(pl.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": y}), "y")
    assert not learn(table, rates=RATES).found["warnings"]
    with pytest.warns(LabelNoiseWarning, match="contradicted by the labels"):
        found = learn(table, rates=NoiseRates(0.02, 0.02)).found
    assert any("contradicted by the labels" in said for said in found["warnings"])
    assert "not sure" in headline(found)
