"""One dictionary: its numbers, its words, and that it is JSON."""

import json
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression

from unflip import (
    ImportanceReweightingClassifier,
    LabelNoiseWarning,
    NoiseRates,
    TransitionMatrix,
    flip_labels,
)
from unflip.audit import LabelAudit
from unflip.inspection import summary

RATES = NoiseRates(positive=0.3, negative=0.1)


def noisy_sample(n: int = 600) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, noisy labels and true ones: "no" and "yes"."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, n)
    X = rng.normal(2 * y[:, None], 1.0, (n, 2))
    true = np.array(["no", "yes"])[y]
    return X, flip_labels(true, RATES, random_state=0), true


def reweighting(rates: NoiseRates) -> ImportanceReweightingClassifier:
    return ImportanceReweightingClassifier(posterior="probabilistic", noise_rates=rates)


def three_classes(n: int = 900) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, n)
    X = rng.normal(np.array([[0, 0], [4, 0], [0, 4]])[y], 1.0)
    return X, flip_labels(y, TransitionMatrix.pair_flip(3, 0.2), random_state=0)


@pytest.mark.parametrize("estimator", [ImportanceReweightingClassifier, LabelAudit])
def test_a_summary_survives_json(estimator):
    X, y, _ = noisy_sample()
    found = summary(estimator(noise_rates=RATES, random_state=0).fit(X, y))
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    X, y = three_classes()
    found = summary(estimator(random_state=0).fit(X, y))
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert found["classes"] == [0, 1, 2]
    assert found["noise_rates"] is None


def test_its_numbers_are_those_of_the_classifier():
    X, y, _ = noisy_sample()
    clf = reweighting(RATES).fit(X, y)
    found = summary(clf)
    beta = clf.sample_weight_
    assert found["noise_rates"] == {"positive": 0.3, "negative": 0.1}
    assert_allclose(found["transition_matrix"], [[0.9, 0.1], [0.3, 0.7]])
    assert_allclose(found["information_left"], 0.6)
    weights = found["weights"]
    assert_allclose(weights["mean"], beta.sum() / 600)
    assert_allclose(weights["effective_sample_size"], beta.sum() ** 2 / (beta**2).sum())
    assert_allclose(weights["effective_share"] * 600, weights["effective_sample_size"])
    assert_allclose(list(weights["quantiles"].values())[::6], [beta.min(), beta.max()])
    assert_allclose(weights["quantiles"]["0.5"], np.median(beta))
    assert weights["clipped_share"] == clf.clipped_share_
    assert_allclose(found["expected_error_share"], clf.mislabel_proba_.mean())
    assert_allclose(found["expected_errors"], 600 * found["expected_error_share"])


def test_its_classes_add_up_to_the_whole():
    X, y, _ = noisy_sample()
    found = summary(LabelAudit("probabilistic", RATES, random_state=0).fit(X, y))
    no, yes = found["per_class"]
    share = np.mean(y == "yes")
    assert (no["label"], yes["label"]) == ("no", "yes")
    assert yes["n_labels"] == np.sum(y == "yes")
    assert_allclose(yes["label_share"], share)
    assert_allclose(yes["true_share"], (share - 0.1) / 0.6)  # the algebra of two classes
    assert_allclose(no["true_share"] + yes["true_share"], 1)
    assert_allclose(no["expected_errors"] + yes["expected_errors"], found["expected_errors"])
    # two estimates of one number: by the rates, and by the samples
    of_classes = sum(600 * a["true_share"] * a["flip_rate"] for a in (no, yes))
    assert_allclose(of_classes, found["expected_errors"], rtol=0.1)
    assert_allclose([no["flip_rate"], yes["flip_rate"]], [0.1, 0.3])
    assert_allclose([no["largest_weight"], yes["largest_weight"]], [1 / 0.9, 1 / 0.7])
    assert found["weights"] is None


def test_the_expected_number_of_errors_is_near_the_true_one():
    X, y, true = noisy_sample(4000)
    found = summary(LabelAudit("probabilistic", RATES, random_state=0).fit(X, y))
    assert_allclose(found["expected_errors"], np.sum(y != true), rtol=0.15)


def test_rates_that_the_labels_contradict_give_no_negative_shares():
    X, y, _ = noisy_sample()
    with pytest.warns(LabelNoiseWarning, match="contradicted_rates:"):
        audit = LabelAudit("probabilistic", NoiseRates(0.0, 0.7), random_state=0).fit(X, y)
    shares = [row["true_share"] for row in summary(audit)["per_class"]]
    assert_allclose(shares, [1, 0])


def test_a_weight_of_two_is_a_row_twice():
    X, y, _ = noisy_sample(200)
    weight = np.random.default_rng(1).integers(1, 3, y.size)
    again = np.repeat(np.arange(y.size), weight)
    posterior = LogisticRegression(tol=1e-10)
    clf = ImportanceReweightingClassifier(posterior=posterior, noise_rates=RATES)
    weighted = summary(clf.fit(X, y, sample_weight=weight))
    repeated = summary(clf.fit(X[again], y[again]))
    assert_allclose(weighted["expected_errors"], repeated["expected_errors"], rtol=1e-5)
    assert_allclose(weighted["expected_error_share"], repeated["expected_error_share"], rtol=1e-5)
    assert_allclose(weighted["weights"]["mean"], repeated["weights"]["mean"], rtol=1e-5)
    for one, other in zip(weighted["per_class"], repeated["per_class"], strict=True):
        assert_allclose(one["expected_errors"], other["expected_errors"], rtol=1e-5)


@pytest.mark.filterwarnings("ignore::unflip.LabelNoiseWarning")
def test_a_class_that_is_always_flipped_has_no_largest_weight():
    X, y = three_classes()
    noise = TransitionMatrix([[0, 0.5, 0.5], [0, 1, 0], [0.4, 0, 0.6]])
    found = summary(LabelAudit("probabilistic", noise, random_state=0).fit(X, y))
    assert [a["largest_weight"] for a in found["per_class"]] == [None, 1.0, 1 / 0.6]


def test_nothing_is_said_where_all_is_well():
    X, y, _ = noisy_sample()
    assert summary(reweighting(RATES).fit(X, y))["warnings"] == []


@pytest.mark.parametrize(
    ("rates", "warning", "note"),
    [
        (NoiseRates(0.45, 0.4), "little_information", "clipped"),
        (NoiseRates(0.0, 0.5), "contradicted_rates", "mean weight"),
    ],
)
@pytest.mark.filterwarnings("ignore::unflip.LabelNoiseWarning")
def test_warnings_and_notes_are_put_into_words(rates, warning, note):
    X, y, _ = noisy_sample()
    clf = reweighting(rates).fit(X, y)
    found = summary(clf)
    (words,) = {str(one) for one in clf.noise_.findings if one.code == warning}
    assert words in found["warnings"]
    assert any(note in sentence for sentence in found["notes"]), found["notes"]


def test_few_rows_of_much_weight_are_said_to_be_few():
    X, y, _ = noisy_sample()
    weight = np.where(np.arange(600) < 40, 1.0, 1e-3)
    clf = reweighting(RATES).fit(X, y, sample_weight=weight)
    assert summary(clf)["warnings"] == []
    assert any("as much as " in note for note in summary(clf)["notes"])


def test_what_cannot_be_summed_up_is_refused():
    X, y, _ = noisy_sample(100)
    with pytest.raises(NotFittedError):
        summary(LabelAudit())
    with pytest.raises(TypeError, match="noise_"):
        summary(LogisticRegression().fit(X, y))


def test_rates_are_given_only_where_the_user_gave_them():
    X, y, _ = noisy_sample(200)
    proba = np.tile([0.4, 0.6], (y.size, 1)) + 0.1 * np.sign(X[:, :1]) * [[-1, 1]]
    for noise_rates, given in (("auto", False), ("selective", False), (RATES, True)):
        audit = LabelAudit(noise_rates=noise_rates, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", LabelNoiseWarning)
            assert summary(audit.fit_posterior(proba, y))["rates_given"] is given
            clf = ImportanceReweightingClassifier(noise_rates=noise_rates, random_state=0)
            assert summary(clf.fit(X, y))["rates_given"] is given
