"""The label posterior: Bayes's rule, and one formula for classifier and audit."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from unflip import (
    ImportanceReweightingClassifier,
    LabelAudit,
    NoiseRates,
    TransitionMatrix,
    flip_labels,
)
from unflip.weights import LabelPosterior

RATES = NoiseRates(positive=0.3, negative=0.1)
POSTERIORS = ["channel", "probabilistic", "selected", "kde", "kliep", "ulsif", "rulsif", "kmm"]


@given(st.integers(2, 5), st.integers(0, 1000))
def test_it_is_bayes_rule(n_classes, seed):
    rng = np.random.default_rng(seed)
    clean = rng.dirichlet(np.ones(n_classes), size=20)
    matrix = 0.7 * np.eye(n_classes) + 0.3 * rng.dirichlet(np.ones(n_classes), size=n_classes)
    codes = rng.integers(0, n_classes, 20)
    found = LabelPosterior(clean @ matrix, codes, matrix, np.arange(n_classes))
    for i, y in enumerate(codes):
        joint = [clean[i, k] * matrix[k, y] for k in range(n_classes)]
        assert_allclose(found.proba[i], np.array(joint) / sum(joint), atol=1e-9)
        assert found.mislabel_proba[i] == pytest.approx(1 - joint[y] / sum(joint), abs=1e-9)
        assert found.weights[i] == pytest.approx(clean[i, y] / sum(joint), abs=1e-9)
        assert found.suggested_label[i] == np.argmax(joint)
    assert not found.clipped.any()


@given(st.integers(2, 5), st.integers(0, 1000))
def test_whatever_the_posterior_rows_are_probabilities_and_agree_with_the_weights(n_classes, seed):
    rng = np.random.default_rng(seed)
    posterior = rng.uniform(size=(30, n_classes)) * rng.integers(0, 2, (30, n_classes))
    matrix = 0.6 * np.eye(n_classes) + 0.4 * rng.dirichlet(np.ones(n_classes), size=n_classes)
    codes = rng.integers(0, n_classes, 30)
    found = LabelPosterior(posterior, codes, matrix, np.arange(n_classes))
    assert_allclose(found.proba.sum(axis=1), 1)
    assert (found.proba >= 0).all()
    stays = matrix[codes, codes]
    possible = found.observed_proba > 0
    believed = (1 - found.mislabel_proba)[possible]
    assert_allclose((stays * found.weights)[possible], believed, rtol=1e-7, atol=1e-15)
    assert (found.weights[~possible] == 0).all()


@pytest.fixture(scope="module")
def two_classes():
    X = np.random.default_rng(0).normal(size=(300, 2))
    return X, flip_labels(np.where(X[:, 0] > 0, "yes", "no"), RATES, random_state=0)


@pytest.mark.filterwarnings("ignore::unflip.LabelNoiseWarning")
@pytest.mark.parametrize("posterior", POSTERIORS)
@pytest.mark.parametrize("cv", [None, pytest.param(3, marks=pytest.mark.slow)])
def test_classifier_and_audit_agree_exactly(two_classes, posterior, cv):
    X, y = two_classes
    clf = ImportanceReweightingClassifier(
        posterior=posterior, noise_rates=RATES, cv=cv, random_state=0
    ).fit(X, y)
    audit = LabelAudit(posterior, RATES, cv=cv, random_state=0).fit(X, y)
    assert_array_equal(clf.mislabel_proba_, audit.mislabel_proba_)
    assert_allclose(
        clf.sample_weight_,
        (1 - audit.mislabel_proba_) / np.where(y == "yes", 0.7, 0.9),
        atol=1e-14,  # 1 - P holds no more digits than that
    )


@pytest.mark.filterwarnings("ignore::unflip.LabelNoiseWarning")
@pytest.mark.parametrize("posterior", ["probabilistic", "kde", "kliep", "ulsif"])
def test_classifier_and_audit_agree_exactly_for_three_classes(posterior):
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, 300)
    X = rng.normal(size=(300, 2)) + 2 * np.eye(3)[codes][:, :2]
    noise = TransitionMatrix.uniform(3, 0.3)
    y = flip_labels(codes, noise, random_state=0)
    clf = ImportanceReweightingClassifier(
        posterior=posterior, noise_rates=noise, random_state=0
    ).fit(X, y)
    audit = LabelAudit(posterior, noise, cv=None, random_state=0).fit(X, y)
    assert_array_equal(clf.mislabel_proba_, audit.mislabel_proba_)
