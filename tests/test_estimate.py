"""The one result: its identities for every source, and one number through every entry point."""

import json
import pickle
import warnings

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from typer.testing import CliRunner

from unflip import (
    CheckedLabels,
    ImportanceReweightingClassifier,
    LabelAudit,
    LabelNoiseWarning,
    NoiseRates,
    TransitionMatrix,
    flip_labels,
)
from unflip.cli import app
from unflip.estimate import NoiseEstimate
from unflip.inspection import summary

pytestmark = pytest.mark.filterwarnings("ignore::unflip.LabelNoiseWarning")

CLASSES = np.array(["a", "b", "c"])


def table(n_classes: int, *, noisy: bool = True, n_samples: int = 600):
    X, true = make_classification(
        n_samples,
        6,
        n_informative=4,
        n_redundant=0,
        n_classes=n_classes,
        n_clusters_per_class=1,
        class_sep=1.5,
        flip_y=0,
        random_state=1,
    )
    noise = TransitionMatrix.uniform(n_classes, 0.2)
    return X, np.asarray(flip_labels(true, noise, random_state=0)) if noisy else true, true


def held_out(X, y):
    return cross_val_predict(LogisticRegression(), X, y, cv=5, method="predict_proba")


def sources():
    for n_classes in (2, 3):
        X, y, true = table(n_classes)
        weight = np.random.default_rng(0).uniform(0.5, 2.0, y.size)
        drawn = np.arange(0, y.size, 6)
        checked = CheckedLabels(drawn, true[drawn], probability=1 / 6)
        proba, known = held_out(X, y), TransitionMatrix.uniform(n_classes, 0.2)
        classifier, audit = ImportanceReweightingClassifier, LabelAudit
        yield f"{n_classes} features", audit(random_state=0).fit(X, y)
        yield f"{n_classes} classifier", classifier(random_state=0).fit(X, y)
        yield f"{n_classes} weighted", classifier(random_state=0).fit(X, y, weight)
        yield f"{n_classes} clean", audit(random_state=0).fit(X, true)
        yield f"{n_classes} known", audit(noise_rates=known).fit(X, y, weight)
        yield f"{n_classes} probabilities", audit(random_state=0).fit_posterior(proba, y, weight)
        yield f"{n_classes} checked", audit(random_state=0).fit(X, y, checked=checked)
        yield f"{n_classes} both", audit().fit_posterior(proba, y, checked=checked)
        yield f"{n_classes} taught", classifier(random_state=0).fit(X, y, checked=checked)
        if n_classes == 2:
            yield "the paper's", classifier(posterior="kde", noise_rates="minimum").fit(X, y)


@pytest.fixture(scope="module")
def fitted():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LabelNoiseWarning)
        return dict(sources())


def test_p_mislabelled_is_what_the_label_posterior_leaves_and_its_mean_is_the_rate(fitted) -> None:
    for name, estimator in fitted.items():
        noise = estimator.noise_
        own = noise.label_proba[np.arange(noise.codes.size), noise.codes]
        assert_allclose(noise.mislabel_proba, 1 - own, atol=1e-9, err_msg=name)
        mean = np.average(noise.mislabel_proba, weights=noise.sample_weight)
        assert estimator.label_error_rate_ == pytest.approx(mean, abs=1e-9), name
        low, high = estimator.label_error_range_
        assert low <= high, name
        assert noise.errors_by_label.sum() == pytest.approx(estimator.n_errors_), name


def test_the_fitted_attributes_are_those_of_the_estimate(fitted) -> None:
    for estimator in fitted.values():
        noise = estimator.noise_
        assert estimator.mislabel_proba_ is noise.mislabel_proba
        assert estimator.noise_rates_ is noise.noise_rates
        assert_array_equal(estimator.transition_matrix_, noise.transition)
        assert_array_equal(noise.transition.sum(axis=1).round(9), 1)
        assert estimator.label_error_interval_ == noise.error_rate.interval
        assert_array_equal(pickle.loads(pickle.dumps(noise)).mislabel_proba, noise.mislabel_proba)  # noqa: S301


def test_the_summary_reports_the_same_rate(fitted) -> None:
    for name, estimator in fitted.items():
        found = summary(estimator)
        assert found["expected_error_share"] == estimator.label_error_rate_, name
        shares = [row["expected_errors"] for row in found["per_class"]]
        assert sum(shares) == pytest.approx(estimator.n_errors_), name


def test_rates_are_called_given_only_if_they_were(fitted) -> None:
    given = {name for name, one in fitted.items() if summary(one)["rates_given"]}
    assert given == {"2 known", "3 known"}


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("noisy", [True, False])
def test_classifier_audit_and_commands_give_one_number(tmp_path, n_classes, noisy) -> None:
    X, y, _ = table(n_classes, noisy=noisy)
    classifier = ImportanceReweightingClassifier(cv=5, random_state=0).fit(X, y)
    audit = LabelAudit(random_state=0).fit(X, y)
    assert_array_equal(classifier.mislabel_proba_, audit.mislabel_proba_)
    file = tmp_path / "table.csv"
    columns = {f"x{k}": column for k, column in enumerate(X.T)}
    pl.DataFrame({**columns, "label": CLASSES[y]}).write_csv(file)
    rates = []
    for command in ("estimate", "audit"):
        out = ["--out", str(tmp_path / "out.csv")] if command == "audit" else []
        arguments = [command, str(file), "--label", "label", *out, "--json", "--quiet"]
        result = CliRunner().invoke(app, arguments)
        assert result.exit_code == 0, result.output
        found = json.loads(result.stdout)
        rates.append(found.get("summary", found)["expected_error_share"])
    assert rates[0] == rates[1]


def test_a_sample_of_no_class_is_mislabelled_and_has_no_clear_label() -> None:
    label_proba = np.array([[0.1, 0.1], [0.9, 0.1], [0.2, 0.8]])
    noise = NoiseEstimate(
        CLASSES[:2],
        np.array([0, 0, 0]),
        NoiseRates(positive=0.1, negative=0.1),
        label_proba,
        label_proba,
        label_proba,
        error_range=(0.0, 1.0),
    )
    assert_allclose(noise.mislabel_proba, [0.9, 0.1, 0.8])
    assert_allclose(noise.none_proba, [0.8, 0.0, 0.0])
    assert noise.unclear.tolist() == [True, False, False]
    assert noise.suggested_label.tolist() == ["a", "a", "b"]
    assert noise.error_rate.interval == (noise.error_rate.value,) * 2
