"""Labels in any container: one behaviour of every public estimator and function."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import DataConversionWarning

from tests.test_common import INSTANCES
from unflip import (
    ImportanceReweightingClassifier,
    InverseRates,
    LabelNoiseWarning,
    NoiseRates,
    TransitionMatrix,
    flip_labels,
    importance_weights,
)
from unflip.audit import LabelAudit, find_label_issues
from unflip.inspection import (
    MislabelCalibrationDisplay,
    NoiseRatesDisplay,
    SensitivityDisplay,
    WeightsDisplay,
    posterior_histogram,
    rate_sensitivity,
    summary,
    weight_histogram,
)
from unflip.metrics import (
    clean_accuracy_score,
    clean_balanced_accuracy_score,
    clean_brier_score_loss,
    clean_f1_score,
    clean_log_loss,
    clean_precision_score,
    clean_recall_score,
    clean_roc_auc_score,
)
from unflip.noise import as_transition_matrix
from unflip.noise_rates import ScottRates, SelectiveRates, estimate_rates
from unflip.posterior import ProbabilisticPosterior, fit_posterior
from unflip.report import make_report
from unflip.streaming import ArrayBatches, StreamingAudit, StreamingReweighting
from unflip.weights import (
    clipped_share,
    importance_weights_from_inverse,
    mislabel_probability,
    printed_lemma_2_weights,
)

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

RATES = NoiseRates(positive=0.2, negative=0.1)
X = np.random.default_rng(0).normal(size=(60, 2))
Y = flip_labels((X[:, 0] > 0).astype(int), RATES, random_state=0)
NAMES = np.where(Y == 1, "yes", "no")
P = 1 / (1 + np.exp(-X[:, 0]))

CONTAINERS: dict[str, Callable[[Any], Any]] = {
    "list": lambda y: y.tolist(),
    "objects": lambda y: y.astype(object),
    "pandas": pd.Series,
    "pandas, other index": lambda y: pd.Series(y, index=np.arange(60) + 7),
    "pandas categories": lambda y: pd.Series(y, dtype="category"),
    "Categorical": pd.Categorical,
    "pandas nullable": lambda y: pd.Series(y).convert_dtypes(),
    "pandas objects": lambda y: pd.Series(y, dtype=object),
    "polars": pl.Series,
}


def values_of(fitted: BaseEstimator) -> Any:
    """Return what an estimator has learnt, for comparison."""
    if hasattr(fitted, "mislabel_proba_"):
        return fitted.mislabel_proba_
    if hasattr(fitted, "rates_"):
        return as_transition_matrix(fitted.rates_).matrix
    if hasattr(fitted, "predict_proba"):
        return fitted.predict_proba(X)
    return fitted.decision_function(X)


def seeded(estimator: BaseEstimator) -> BaseEstimator:
    copy = clone(estimator)
    seeds = [name for name in copy.get_params() if name.endswith("random_state")]
    return copy.set_params(**dict.fromkeys(seeds, 0))


@pytest.mark.parametrize("estimator", INSTANCES, ids=repr)
def test_every_estimator_ravels_a_column_with_a_warning(estimator: BaseEstimator) -> None:
    expected = values_of(seeded(estimator).fit(X, Y))
    with pytest.warns(DataConversionWarning, match="column-vector y"):
        fitted = seeded(estimator).fit(X, Y[:, None])
    np.testing.assert_array_equal(values_of(fitted), expected)


@pytest.mark.parametrize("estimator", INSTANCES, ids=repr)
def test_every_estimator_names_the_rows_without_a_label(estimator: BaseEstimator) -> None:
    missing = NAMES.astype(object)
    missing[[4, 9]] = None, np.nan
    with pytest.raises(ValueError, match=r"no label \(NaN or None\) in 2 of 60 rows: 4, 9\. Leave"):
        clone(estimator).fit(X, missing)


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "flip_labels": lambda y: np.asarray(flip_labels(y, RATES, random_state=0), dtype=str),
    "importance_weights": lambda y: importance_weights(P, y, RATES),
    "importance_weights of all classes": lambda y: importance_weights(
        np.column_stack([1 - P, P]), y, RATES
    ),
    "importance_weights_from_inverse": lambda y: importance_weights_from_inverse(
        P, y, InverseRates(0.1, 0.1), 0.5
    ),
    "printed_lemma_2_weights": lambda y: printed_lemma_2_weights(P, y, InverseRates(0.1, 0.1)),
    "mislabel_probability": lambda y: mislabel_probability(P, y, RATES),
    "clipped_share": lambda y: clipped_share(P, y, RATES),
    "accuracy": lambda y: clean_accuracy_score(y, y, RATES),
    "balanced accuracy": lambda y: clean_balanced_accuracy_score(y, y, RATES),
    "precision": lambda y: clean_precision_score(y, y, RATES),
    "recall": lambda y: clean_recall_score(y, y, RATES),
    "f1": lambda y: clean_f1_score(y, y, RATES),
    "auc": lambda y: clean_roc_auc_score(y, P, RATES),
    "log-loss": lambda y: clean_log_loss(y, P, RATES),
    "brier": lambda y: clean_brier_score_loss(y, P, RATES),
    "posterior_histogram": lambda y: posterior_histogram(P, y, RATES).counts,
    "weight_histogram": lambda y: weight_histogram(P, y, RATES).shares,
    "fit_posterior": lambda y: fit_posterior(ProbabilisticPosterior(), X, y, cv=3, random_state=0)[
        1
    ],
    "ScottRates": lambda y: ScottRates("probabilistic", random_state=0).fit(X, y).rates_.both(),
    "estimate_rates": lambda y: estimate_rates("selective", X, y, random_state=0).both(),
    "find_label_issues": lambda y: find_label_issues(
        X, y, posterior="probabilistic", noise_rates=RATES, random_state=0
    ),
    "StreamingAudit": lambda y: (
        StreamingAudit("probabilistic", RATES).fit(ArrayBatches(X, y, batch_rows=25)).n_errors_
    ),
}


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)
@pytest.mark.parametrize("container", CONTAINERS.values(), ids=CONTAINERS)
def test_a_container_of_labels_changes_nothing(
    function: Callable[[Any], Any], container: Callable[[Any], Any]
) -> None:
    np.testing.assert_array_equal(function(container(NAMES)), function(NAMES))


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)
def test_every_function_ravels_a_column_with_a_warning(function: Callable[[Any], Any]) -> None:
    with pytest.warns(DataConversionWarning, match="column-vector y"):
        found = function(NAMES[:, None])
    np.testing.assert_array_equal(found, function(NAMES))


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)
@pytest.mark.parametrize("missing", [None, np.nan, pd.NA, pd.NaT])
def test_every_function_names_the_rows_without_a_label(
    function: Callable[[Any], Any], missing: Any
) -> None:
    labels = NAMES.astype(object)
    labels[5] = missing
    with pytest.raises(ValueError, match=r"in 1 of (60|25) rows: 5"):
        function(labels)


@pytest.fixture(scope="module")
def overlapping() -> tuple[Any, Any]:
    """Rows of which no positive one is sure, so that `fit` names a class in its warning."""
    rng = np.random.default_rng(0)
    rows = rng.uniform(-3, 0.5, (400, 1))
    clean = rng.uniform(size=400) < 1 / (1 + np.exp(-2 * rows[:, 0]))
    return rows, np.where(flip_labels(clean, NoiseRates(0.3, 0.0), random_state=0), "yes", "no")


@pytest.mark.parametrize(
    "container",
    [
        lambda y: pd.Series(y, dtype="string"),
        lambda y: y.astype(object),
        pd.Categorical,
        lambda y: pd.Series(y, dtype="category"),
        pl.Series,
    ],
    ids=["string", "object", "Categorical", "category", "polars"],
)
class TestStringsOfAnyKind:
    """What a first user does with a column of words."""

    def test_fit_warns_of_a_class_by_its_name(
        self, overlapping: tuple[Any, Any], container: Callable[[Any], Any]
    ) -> None:
        rows, y = overlapping
        clf = ImportanceReweightingClassifier(noise_rates="channel").fit(rows, container(y))
        assert any("'yes'" in sentence for sentence in clf.diagnostics_)
        audit = LabelAudit(random_state=0).fit(rows, container(y))
        assert any("'yes'" in sentence for sentence in audit.diagnostics_)
        assert find_label_issues(rows, container(y), random_state=0).size

    def test_report_and_displays_show_it(self, container: Callable[[Any], Any]) -> None:
        pyplot = pytest.importorskip("matplotlib.pyplot")
        y = container(NAMES)
        clf = ImportanceReweightingClassifier(posterior="probabilistic", noise_rates=RATES)
        clf.fit(X, y)
        assert clf.classes_.tolist() == ["no", "yes"]
        assert json.loads(make_report(clf, X, y).to_json())["summary"]["classes"] == ["no", "yes"]
        assert summary(clf)["per_class"][1]["label"] == "yes"
        assert NoiseRatesDisplay.from_estimator(clf, X, y).histogram.pos_label == "yes"
        assert WeightsDisplay.from_estimator(clf, y).histogram.n_samples == 60
        display = MislabelCalibrationDisplay.from_estimator(clf, y, container(NAMES))
        assert (display.calibration.observed == 0).all()
        curves = rate_sensitivity(clf, X, y, X, y, grid=[0.1], labels=container(NAMES)[:1])
        assert curves[0].label in ("no", "yes")
        assert SensitivityDisplay.from_estimator(clf, X, y, X, y, grid=[0.1]).curves
        pyplot.close("all")

    def test_streaming_takes_it(self, container: Callable[[Any], Any]) -> None:
        from sklearn.linear_model import SGDClassifier

        data = ArrayBatches(X, container(NAMES), batch_rows=25)
        clf = StreamingReweighting(
            SGDClassifier(random_state=0), posterior="probabilistic", noise_rates=RATES
        ).fit(data)
        assert clf.estimator_.classes_.tolist() == ["no", "yes"]


def test_a_stranger_in_a_later_batch_is_not_cut_to_a_known_class() -> None:
    audit = StreamingAudit("probabilistic", RATES).fit(ArrayBatches(X, np.where(Y == 1, "b", "a")))
    with pytest.raises(ValueError, match="label 'ab', which is not one of the classes"):
        audit.issues(ArrayBatches(X, np.where(Y == 1, "ab", "a")), n=3)


def test_flipped_labels_keep_their_container() -> None:
    for series in (
        pd.Series(NAMES, dtype="string", name="label"),
        pd.Series(NAMES, dtype="category", name="label"),
        pd.Series(Y, name="label").astype("Int64"),
        pl.Series("label", NAMES),
        pl.Series("label", NAMES, dtype=pl.Categorical),
    ):
        flipped = flip_labels(series, NoiseRates(0.9, 0.0), random_state=0)
        assert type(flipped) is type(series)
        assert (flipped.name, flipped.dtype) == ("label", series.dtype)
        assert not (np.asarray(flipped) == np.asarray(series)).all()


class TestMissingValuesInRows:
    """The guide: a classifier that takes missing values, with cv=5."""

    ROWS = np.where(np.random.default_rng(1).random((400, 3)) < 0.1, np.nan, 0) + (
        np.random.default_rng(0).normal(size=(400, 3))
    )
    LABELS = flip_labels(np.nan_to_num(ROWS[:, 0]) > 0, NoiseRates(0.3, 0.1), random_state=0)

    def test_the_classifier_takes_them_and_reads_the_rates_off_the_posterior(self) -> None:
        trees = HistGradientBoostingClassifier(max_iter=20)
        clf = ImportanceReweightingClassifier(trees, posterior=trees, cv=5, random_state=0)
        clf.fit(self.ROWS, self.LABELS)
        assert isinstance(clf.rate_estimator_, SelectiveRates)
        assert clf.noise_rates_.positive == pytest.approx(0.3, abs=0.12)
        assert clf.noise_rates_.negative == pytest.approx(0.1, abs=0.1)

    def test_the_audit_takes_them(self) -> None:
        audit = LabelAudit(HistGradientBoostingClassifier(max_iter=20), random_state=0)
        audit.fit(self.ROWS, self.LABELS)
        assert isinstance(audit.rate_estimator_, SelectiveRates)
        assert np.isfinite(audit.mislabel_proba_).all()

    def test_the_default_classifier_takes_them(self) -> None:
        clf = ImportanceReweightingClassifier(random_state=0).fit(self.ROWS, self.LABELS)
        assert np.isfinite(clf.sample_weight_).all()
        assert clf.predict(self.ROWS).shape == np.shape(self.LABELS)


@pytest.mark.parametrize("estimator", [ImportanceReweightingClassifier, LabelAudit])
def test_classes_that_look_like_one_are_named_by_every_fit(estimator):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 1)) * 4
    y = np.where(X[:, 0] + rng.normal(size=300) > 0, "stayed", "left")
    y = np.where(rng.random(300) < 0.3, np.char.capitalize(y), y)
    with pytest.warns(LabelNoiseWarning) as caught:
        fitted = estimator(random_state=0).fit(X, y)
    named = "'Left', 'left'; 'Stayed', 'stayed'"
    assert sum(named in str(warning.message) for warning in caught) == 1
    (found,) = [one for one in fitted.noise_.findings if one.code == "classes_look_alike"]
    assert found.severity == "warning"
    assert named in str(found)


def test_a_class_of_20_rows_among_20_000_is_named_with_what_to_do():
    rng = np.random.default_rng(0)
    codes = rng.permutation(np.repeat([0, 1, 2], [9980, 10_000, 20]))
    y = np.array(["left", "stayed", "died"])[codes]
    proba = 0.94 * np.eye(3)[codes][:, [2, 0, 1]] + 0.02
    noise = LabelAudit(noise_rates="selective").fit_posterior(proba, y).noise_
    (found,) = [one for one in noise.findings if one.code == "classes_of_few_rows"]
    assert found.severity == "note"
    assert "20,000" in str(found)
    assert "'died' (20)" in str(found)
    # rates that are given need no rows
    given = TransitionMatrix(np.eye(3))
    assert LabelAudit(noise_rates=given).fit_posterior(proba, y).diagnostics_ == []
