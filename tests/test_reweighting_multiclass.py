"""More than two classes: the transition matrix in the place of the two rates."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from unflip import (
    ImportanceReweightingClassifier,
    NoiseRates,
    TransitionMatrix,
    flip_labels,
    importance_weights,
)
from unflip.density_ratio import KLIEP
from unflip.learners import LinearClassifier
from unflip.noise_rates import MinimumRates
from unflip.posterior import DensityRatioPosterior, KernelDensityPosterior
from unflip.weights import mislabel_probability

NAMES = np.array(["ape", "bee", "cat"])
NOISE = TransitionMatrix([[0.6, 0.4, 0.0], [0.0, 0.9, 0.1], [0.3, 0.0, 0.7]])


@pytest.fixture(scope="module")
def data():
    """Three Gaussian classes that overlap, their names and the noisy names."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, 900)
    centers = np.array([[0.0, 0.0, 0.0, 0.0], [2.0, 0.0, 0.0, 0.0], [0.0, 2.0, 0.0, 0.0]])
    X = centers[codes] + rng.normal(size=(900, 4))
    return X, NAMES[codes], flip_labels(NAMES[codes], NOISE, random_state=0)


def test_reweighting_beats_labels_as_they_are(data):
    X, y, y_noisy = data
    plain = LogisticRegression().fit(X, y_noisy).score(X, y)
    known = ImportanceReweightingClassifier(noise_rates=NOISE).fit(X, y_noisy)
    auto = ImportanceReweightingClassifier().fit(X, y_noisy)
    assert known.score(X, y) > plain + 0.03
    assert auto.score(X, y) > plain
    assert known.noise_rates_ == NOISE
    assert known.classes_.tolist() == NAMES.tolist()
    assert isinstance(auto.noise_rates_, TransitionMatrix)
    np.testing.assert_allclose(auto.transition_matrix_.sum(axis=1), 1)


def test_clean_probabilities_are_learnt_not_noisy_ones():
    """On a well-specified model the probabilities tend to those of clean labels."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30_000, 2))
    clean = np.exp(2 * X @ [[1, 0, -1], [0, 1, -1]])
    clean /= clean.sum(axis=1, keepdims=True)
    codes = (rng.uniform(size=(len(X), 1)) > clean.cumsum(axis=1)[:, :2]).sum(axis=1)
    y, y_noisy = NAMES[codes], flip_labels(NAMES[codes], NOISE, random_state=0)
    posterior = HistGradientBoostingClassifier(max_iter=60, max_depth=4)
    clf = ImportanceReweightingClassifier(
        noise_rates=NOISE, posterior=posterior, cv=3, random_state=0
    ).fit(X, y_noisy)
    assert np.abs(clf.predict_proba(X) - clean).mean() < 0.03
    plain = LogisticRegression().fit(X, y_noisy)
    assert np.abs(plain.predict_proba(X) - clean).mean() > 0.1
    # the mislabel probabilities add up to the flips there were, for each given label
    for name in NAMES:
        given = y_noisy == name
        flipped = np.mean(y[given] != name)
        assert clf.mislabel_proba_[given].mean() == pytest.approx(flipped, abs=0.03)


def test_the_classifier_is_the_estimator_fitted_with_the_weights_of_the_matrix(data):
    X, _, y_noisy = data
    for rates in (NOISE, NOISE.matrix, NOISE.matrix.tolist()):
        clf = ImportanceReweightingClassifier(
            LogisticRegression(), posterior="probabilistic", noise_rates=rates, weighting="rho"
        )
        clf.fit(X, y_noisy)
        posterior = clf.posterior_.predict_proba(X)
        beta = importance_weights(posterior, y_noisy, NOISE)
        np.testing.assert_array_equal(clf.sample_weight_, beta)
        np.testing.assert_array_equal(
            clf.mislabel_proba_, mislabel_probability(posterior, y_noisy, NOISE)
        )
        by_hand = LogisticRegression().fit(X, y_noisy, sample_weight=beta)
        np.testing.assert_array_equal(clf.predict_proba(X), by_hand.predict_proba(X))
        np.testing.assert_array_equal(clf.transition_matrix_, NOISE.matrix)


def test_no_noise_changes_nothing(data):
    X, y, _ = data
    clf = ImportanceReweightingClassifier(LogisticRegression(), noise_rates=np.eye(3)).fit(X, y)
    np.testing.assert_allclose(clf.sample_weight_, 1)
    np.testing.assert_allclose(clf.mislabel_proba_, 0, atol=1e-12)
    np.testing.assert_allclose(clf.estimator_.coef_, LogisticRegression().fit(X, y).coef_)
    assert clf.effective_sample_size_ == pytest.approx(len(y))
    assert clf.clipped_share_ == 0


def test_the_matrix_of_two_rates_gives_the_classifier_of_the_rates(data):
    X, y, _ = data
    rates = NoiseRates(0.3, 0.1)
    y_noisy = flip_labels(y == "ape", rates, random_state=0)
    expected = ImportanceReweightingClassifier(noise_rates=rates).fit(X, y_noisy)
    for form in (rates.transition_matrix, TransitionMatrix(rates.transition_matrix)):
        clf = ImportanceReweightingClassifier(noise_rates=form).fit(X, y_noisy)
        assert clf.noise_rates_ == rates
        np.testing.assert_array_equal(clf.predict_proba(X), expected.predict_proba(X))
    np.testing.assert_array_equal(expected.transition_matrix_, rates.transition_matrix)


def test_renaming_the_classes_with_their_noise_renames_the_predictions(data):
    X, _, y_noisy = data
    order = [2, 0, 1]  # of the old classes among the new
    renamed = np.array([0, 1, 2])[np.argsort(order)][np.searchsorted(NAMES, y_noisy)]
    model = LogisticRegression(tol=1e-10, max_iter=1000)
    clf = ImportanceReweightingClassifier(model, posterior="probabilistic")
    for rates, same in ((NOISE, NOISE.matrix[np.ix_(order, order)]), ("quantile", "quantile")):
        one = clone(clf).set_params(noise_rates=rates).fit(X, y_noisy)
        other = clone(clf).set_params(noise_rates=same).fit(X, renamed)
        np.testing.assert_allclose(
            other.transition_matrix_, one.transition_matrix_[np.ix_(order, order)], atol=1e-3
        )
        np.testing.assert_allclose(
            other.predict_proba(X), one.predict_proba(X)[:, order], atol=1e-2
        )


@pytest.mark.parametrize(
    "posterior",
    ["kde", DensityRatioPosterior(KLIEP(1.0)), "ulsif", RandomForestClassifier(n_estimators=30)],
    ids=str,
)
def test_every_posterior_trains(data, posterior):
    X, y, y_noisy = data
    clf = ImportanceReweightingClassifier(
        posterior=posterior, noise_rates=NOISE, cv=3, random_state=0
    ).fit(X[:450], y_noisy[:450])
    assert clf.score(X[450:], y[450:]) > 0.65
    assert (clf.sample_weight_ >= 0).all()
    assert ((clf.mislabel_proba_ >= 0) & (clf.mislabel_proba_ <= 1)).all()


@pytest.mark.parametrize(
    "estimator",
    [
        SVC(),
        HistGradientBoostingClassifier(max_iter=20),
        make_pipeline(StandardScaler(), LogisticRegression()),
        GridSearchCV(LogisticRegression(), {"C": [0.1, 1]}, cv=3),
    ],
    ids=lambda estimator: str(estimator)[:30].replace("\n", ""),
)
def test_any_estimator_that_takes_weights_trains(data, estimator):
    X, y, y_noisy = data
    clf = ImportanceReweightingClassifier(estimator, noise_rates=NOISE, random_state=0)
    assert clf.fit(X, y_noisy).score(X, y) > 0.7


@pytest.mark.filterwarnings("ignore::unflip.LabelNoiseWarning")
def test_own_weights_are_repetitions_of_rows(data):
    X, _, y_noisy = data
    own = np.random.default_rng(0).integers(0, 3, len(X))
    model = LogisticRegression(tol=1e-10, max_iter=1000)
    for rates in ("quantile", NOISE):
        clf = ImportanceReweightingClassifier(model, posterior="probabilistic", noise_rates=rates)
        weighted = clone(clf).fit(X, y_noisy, sample_weight=own)
        repeated = clone(clf).fit(X.repeat(own, axis=0), y_noisy.repeat(own))
        np.testing.assert_allclose(
            weighted.transition_matrix_, repeated.transition_matrix_, atol=1e-4
        )
        np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-3)


def test_frames_sparse_rows_and_searches_work(data):
    X, _, y_noisy = data
    table, labels = pd.DataFrame(X, columns=list("abcd")), pd.Series(y_noisy)
    clf = ImportanceReweightingClassifier(noise_rates=NOISE, cv=3, random_state=0)
    expected = clone(clf).fit(X, y_noisy).predict(X)
    np.testing.assert_array_equal(clone(clf).fit(table, labels).predict(table), expected)
    kde = clone(clf).set_params(posterior=KernelDensityPosterior(), cv=None)
    kde.fit(sparse.csr_array(X), y_noisy)
    assert cross_val_score(clf, X, y_noisy, cv=3).shape == (3,)
    search = GridSearchCV(
        clf, {"noise_rates": [NOISE, "quantile"], "posterior": ["probabilistic", "kde"]}, cv=2
    ).fit(X, y_noisy)
    assert len(search.cv_results_["params"]) == 4


def test_a_rare_class_is_learnt_and_one_with_too_few_rows_for_the_folds_is_named():
    rng = np.random.default_rng(0)
    codes = np.repeat([0, 1, 2], [2000, 2000, 40])
    X = np.array([[0.0, 0.0], [3.0, 0.0], [0.0, 5.0]])[codes] + rng.normal(size=(4040, 2))
    noise = TransitionMatrix([[0.7, 0.3, 0.0], [0.2, 0.8, 0.0], [0.1, 0.1, 0.8]])
    y_noisy = flip_labels(NAMES[codes], noise, random_state=0)
    clf = ImportanceReweightingClassifier(
        posterior="probabilistic", noise_rates=noise, cv=5, random_state=0
    ).fit(X, y_noisy)
    rare = codes == 2
    assert np.mean(clf.predict(X)[rare] == "cat") > 0.8
    estimated = clone(clf).set_params(noise_rates="quantile").fit(X, y_noisy)
    assert np.mean(estimated.predict(X)[rare] == "cat") > 0.8
    few = np.r_[np.flatnonzero(y_noisy != "cat"), np.flatnonzero(y_noisy == "cat")[:4]]
    with pytest.raises(ValueError, match="cv=5"):
        clf.fit(X[few], y_noisy[few])
    clf.set_params(cv=4).fit(X[few], y_noisy[few])


def test_a_class_of_few_rows_has_as_many_folds_as_it_has_rows(data):
    X, _, y_noisy = data
    for n_rare in (1, 2):
        labels = np.append(y_noisy[:-n_rare], ["rare"] * n_rare)
        clf = ImportanceReweightingClassifier(noise_rates=np.eye(4), cv=None).fit(X, labels)
        assert clf.posterior_.predict_proba(X).shape == (900, 4)


def test_a_class_whose_labels_the_flips_explain_comes_with_a_warning():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 2, 600)
    X = np.array([[0.0], [3.0]])[codes] + rng.normal(size=(600, 1))
    # no row is of class 2, but a tenth of class 0 is called so
    y_noisy = np.where((codes == 0) & (rng.uniform(size=600) < 0.1), 2, codes)
    noise = [[0.6, 0.0, 0.4], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    clf = ImportanceReweightingClassifier(posterior="probabilistic", noise_rates=noise)
    with (
        pytest.warns(UserWarning, match="weight 0"),
        pytest.warns(UserWarning, match="contradicts"),
    ):
        clf.fit(X, y_noisy)
    assert (clf.predict(X) != 2).all()
    assert (clf.mislabel_proba_[y_noisy == 2] > 1 - 1e-6).all()  # never 1: no two rows tie


def test_little_information_comes_with_a_warning(data):
    X, y, _ = data
    noise = TransitionMatrix.uniform(3, 0.6)
    y_noisy = flip_labels(y, noise, random_state=0)
    with pytest.warns(UserWarning, match="only 10% of their information"):
        ImportanceReweightingClassifier(noise_rates=noise).fit(X, y_noisy)


@pytest.mark.parametrize(
    ("parameters", "many"),
    [
        ({}, True),
        ({"noise_rates": "minimum"}, True),
        ({"noise_rates": MinimumRates("kde")}, True),
        ({"noise_rates": NOISE}, True),
        ({"noise_rates": "scott"}, False),
        ({"noise_rates": "cv"}, False),
        ({"noise_rates": NoiseRates(0.1, 0.1)}, False),
        ({"noise_rates": np.eye(2)}, False),
        ({"weighting": "pi"}, False),
        ({"weighting": "pi_printed"}, False),
        ({"estimator": LinearClassifier()}, False),
        ({"posterior": LinearClassifier()}, False),
    ],
)
def test_whether_more_than_two_classes_are_taken_is_said_beforehand(data, parameters, many):
    X, _, y_noisy = data
    clf = ImportanceReweightingClassifier(**parameters)
    assert clf.__sklearn_tags__().classifier_tags.multi_class == many
    if not many:
        (name,) = parameters
        with pytest.raises(ValueError, match=rf"y holds 3 classes.*two classes only: {name}="):
            clf.fit(X, y_noisy)
