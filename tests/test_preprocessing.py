"""Tables as they are: text, categories, dates and gaps reach the stages as numbers."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.feature_selection import SelectKBest
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils import get_tags

from unflip import (
    ImportanceReweightingClassifier,
    LabelAudit,
    NoiseRates,
    TransitionMatrix,
    find_label_issues,
    flip_labels,
)
from unflip._utils.columns import as_polars
from unflip.inspection import NoiseRatesDisplay
from unflip.posterior import ChannelPosterior

N = 600
QUICK = {"posterior": "probabilistic", "noise_rates": NoiseRates(0.1, 0.1)}
PLANS = np.array(["month-to-month", "one year", "two years"])


@pytest.fixture(scope="module")
def churn():
    """Rows of a table with an index of its own, noisy labels, and true ones."""
    rng = np.random.default_rng(0)
    age, plan = rng.normal(40, 12, N), rng.integers(0, 3, N)
    margin = (age - 40) / 6 + np.array([-3.0, 2.0, 4.0])[plan]
    true = np.where(margin + rng.logistic(size=N) > 0, "stayed", "left")
    table = pd.DataFrame(
        {
            "age": np.where(rng.random(N) < 0.1, np.nan, age),
            "plan": PLANS[plan],
            "since": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 700, N), "D"),
        },
        index=np.arange(1000, 1000 + N),
    )
    rates = NoiseRates(positive=0.25, negative=0.1)
    return table, flip_labels(true, rates, random_state=0), true


def pipeline():
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    columns = make_column_transformer((numbers, ["age"]), (OneHotEncoder(), ["plan"]))
    return make_pipeline(columns, LogisticRegression())


def texts(true, rng):
    words = np.where(true == "left", "leaving this bad service", "happy with a good plan")
    return [f"{words[i]} {' '.join(rng.choice(list('abcdefgh'), 4))}" for i in range(true.size)]


@pytest.mark.parametrize("cv", [None, 3])
def test_the_posterior_sees_rows_as_the_pipeline_makes_them(churn, cv):
    table, y, true = churn
    clf = ImportanceReweightingClassifier(pipeline(), cv=cv, random_state=0).fit(table, y)
    numbers = pipeline()[:-1].fit_transform(table)
    same = ImportanceReweightingClassifier(cv=cv, random_state=0).fit(numbers, y)
    assert clf.noise_rates_ == same.noise_rates_
    np.testing.assert_array_equal(clf.sample_weight_, same.sample_weight_)
    assert clf.score(table, true) > 0.85


def test_a_search_over_a_pipeline_is_looked_into(churn):
    table, y, _ = churn
    search = GridSearchCV(pipeline(), {"logisticregression__C": [0.1, 1.0]}, cv=2)
    clf = ImportanceReweightingClassifier(search, random_state=0).fit(table, y)
    plain = ImportanceReweightingClassifier(pipeline(), random_state=0).fit(table, y)
    assert clf.noise_rates_ == plain.noise_rates_


def test_a_step_that_learns_from_labels_is_not_for_the_posterior():
    # columns chosen by their labels would tell the labels to the posterior
    rng = np.random.default_rng(1)
    X = rng.normal(size=(100, 40))
    X[0, 0] = np.nan
    chosen = make_pipeline(SimpleImputer(), SelectKBest(k=3), LogisticRegression())
    clf = ImportanceReweightingClassifier(chosen, **QUICK).fit(X, rng.integers(0, 2, 100))
    assert list(clf.preprocessing_.named_steps) == ["simpleimputer"]
    assert clf.posterior_.n_features_in_ == 40


def test_numbers_are_left_as_they_are():
    X = np.random.default_rng(0).normal(np.arange(20)[:, None] % 2, 1.0, (20, 3))
    scaled = make_pipeline(StandardScaler(with_mean=False), LogisticRegression())
    for rows in (X, X.tolist(), sparse.csr_matrix(X), pd.DataFrame(X), X.astype(object)):
        clf = ImportanceReweightingClassifier(scaled, **QUICK).fit(rows, np.arange(20) % 2)
        assert clf.preprocessing_ is None


@pytest.mark.parametrize("container", ["pandas", "polars", "objects"])
def test_the_default_classifier_takes_a_mixed_table(churn, container):
    table, y, true = churn
    X = {"pandas": table, "polars": pl.from_pandas(table), "objects": table.to_numpy()}[container]
    clf = ImportanceReweightingClassifier(random_state=0).fit(X, y)
    assert clf.score(X, true) > 0.85
    assert abs(clf.noise_rates_.positive - 0.25) < 0.15
    assert clf.predict_proba(X).shape == (N, 2)


@pytest.mark.filterwarnings("ignore::unflip.LabelNoiseWarning")  # no row is surely "left"
@pytest.mark.parametrize("container", [list, pd.Series, np.array])
def test_texts_go_through_the_pipeline(churn, container):
    _, y, true = churn
    X = container(texts(true, np.random.default_rng(0)))
    model = make_pipeline(TfidfVectorizer(), LogisticRegression())
    clf = ImportanceReweightingClassifier(model, random_state=0).fit(X, y)
    assert clf.score(X, true) > 0.95
    assert sparse.issparse(clf.preprocessing_.transform(X))


@pytest.mark.filterwarnings("ignore::unflip.LabelNoiseWarning")  # no label is flipped
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("pack", [np.asarray, pd.DataFrame])
def test_gaps_are_filled_for_the_classifier_that_is_trained_by_default(n_classes, pack):
    rng = np.random.default_rng(0)
    y = rng.integers(0, n_classes, 200)
    X = rng.normal(4.0 * np.eye(n_classes)[y], 1.0)
    X[rng.random(X.shape) < 0.1] = np.nan
    noise = TransitionMatrix.uniform(n_classes, 0.1)
    clf = ImportanceReweightingClassifier(noise_rates=noise).fit(pack(X), y)
    assert np.mean(clf.predict(pack(X)) == y) > 0.85
    assert np.isfinite(clf.predict_proba(pack(X))).all()
    assert get_tags(clf).input_tags.allow_nan
    own = ImportanceReweightingClassifier(LogisticRegression(), noise_rates=noise)
    assert not get_tags(own).input_tags.allow_nan


@pytest.mark.filterwarnings("ignore::unflip.LabelNoiseWarning")  # the classes overlap
def test_gaps_work_wherever_the_classifier_takes_them(churn):
    table, y, _ = churn
    X = np.column_stack([table["age"], np.arange(N) % 7])
    boosting = HistGradientBoostingClassifier(max_iter=10)
    for labels in (y, np.where((y == "left") & (X[:, 1] > 3), "moved", y)):
        clf = ImportanceReweightingClassifier(boosting, random_state=0).fit(X, labels)
        assert clf.predict(X).shape == (N,)
    with pytest.raises(ValueError, match="NaN"):
        ImportanceReweightingClassifier(LogisticRegression()).fit(X, y)


def test_an_audit_takes_the_table_and_keeps_its_index(churn):
    table, y, true = churn
    audit = LabelAudit(random_state=0).fit(table, y)
    frame = audit.to_frame()
    assert frame.index.equals(table.index)
    worst = audit.issues(n=30)
    assert np.mean(y[worst] != true[worst]) > 0.6
    named = find_label_issues(table.assign(status=y), "status", random_state=0, return_frame=False)
    np.testing.assert_array_equal(named, audit.issues())


def test_a_classifier_shows_its_rows_with_their_index(churn):
    table, y, _ = churn
    clf = ImportanceReweightingClassifier(random_state=0).fit(table, y)
    frame = clf.to_frame()
    assert frame.index.equals(table.index)
    np.testing.assert_array_equal(frame["given_label"], y)
    np.testing.assert_array_equal(frame["sample_weight"], clf.sample_weight_)
    assert isinstance(clf.fit(table.to_numpy(), pl.Series(y)).to_frame(), pl.DataFrame)


def test_a_label_column_that_is_not_there_is_named(churn):
    table, y, _ = churn
    with pytest.raises(ValueError, match=r"no column 'statsu'\. Did you mean 'status'"):
        find_label_issues(table.assign(status=y), "statsu")
    with pytest.raises(ValueError, match="no dataframe but a ndarray"):
        find_label_issues(np.zeros((N, 2)), "status")


@pytest.mark.parametrize("rates", ["auto", "channel", "selective", "minimum", "scott"])
def test_a_posterior_that_is_a_pipeline_works_with_every_way_to_rates(churn, rates):
    table, y, _ = churn
    clf = ImportanceReweightingClassifier(
        pipeline(), posterior=pipeline(), noise_rates=rates, cv=5, random_state=0
    ).fit(table, y)
    assert clf.noise_rates_.known


def test_displays_take_the_rows_that_the_classifier_takes(churn):
    table, y, _ = churn
    clf = ImportanceReweightingClassifier(pipeline(), random_state=0).fit(table, y)
    shown = NoiseRatesDisplay.from_estimator(clf, table, y)
    assert shown.histogram.counts.sum() == N


def test_tables_of_any_library_become_the_same_columns():
    pandas = pd.DataFrame(
        {
            "whole": pd.array([1, None, 3], dtype="Int64"),
            "text": ["a", None, "b"],
            "kind": pd.Categorical(["u", "v", None]),
            "flag": [True, False, True],
            "when": pd.to_datetime(["2024-01-01", None, "2024-01-03"]),
            "mixed": [1, "a", None],
        }
    )
    made = as_polars(pandas)
    assert made["whole"].to_list() == [1, None, 3]
    assert made["text"].to_list() == ["a", None, "b"]
    assert made["kind"].to_list() == ["u", "v", None]
    assert made["flag"].to_list() == [True, False, True]
    assert made["when"].dtype.is_temporal()
    assert made["when"].null_count() == 1
    assert made["mixed"].to_list() == ["1", "a", None]
    assert as_polars(pd.DataFrame([["a", 1], ["b", 2]]))["1"].to_list() == [1, 2]
    assert as_polars(["a", "b"]).to_dict(as_series=False) == {"column_0": ["a", "b"]}
    assert as_polars(pl.Series("text", ["a"])).columns == ["text"]


@pytest.mark.slow
def test_sparse_rows_that_trees_explain_can_be_predicted():
    rng = np.random.default_rng(0)
    X = np.where(rng.random((1500, 6)) < 0.5, 0.0, rng.normal(size=(1500, 6)))
    y = ((X[:, 0] > 0) ^ (X[:, 1] > 0) ^ (X[:, 2] > 0)).astype(int)
    rows = sparse.csr_matrix(X)
    found = ChannelPosterior(random_state=0).fit(rows, y)
    assert found.check_.verdict != "not_rejected"
    np.testing.assert_allclose(found.predict_proba(rows), found.predict_proba(X))
