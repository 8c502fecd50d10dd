"""The four stages together: what a user may pass, and what comes out."""

import copy
import pickle
import re
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from packaging.version import Version
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_breast_cancer, load_iris, load_wine, make_classification
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC, LinearSVC

from unflip import (
    ImportanceReweightingClassifier,
    LabelNoiseWarning,
    NoiseRates,
    flip_labels,
    importance_weights,
)
from unflip.density_ratio import KLIEP
from unflip.noise_rates import ChannelRates, MinimumRates, estimate_rates
from unflip.paper import eiw, iw
from unflip.posterior import DensityRatioPosterior, KernelDensityPosterior

RATES = NoiseRates(positive=0.4, negative=0.1)


@pytest.fixture(scope="module")
def data():
    X, y = make_classification(800, n_features=6, class_sep=1.5, flip_y=0, random_state=0)
    return X, y, flip_labels(y, RATES, random_state=0)


@pytest.fixture(scope="module")
def default(data):
    """The classifier with the defaults, fitted once: not to be changed."""
    X, _, y_noisy = data
    return ImportanceReweightingClassifier().fit(X, y_noisy)


def test_reweighting_beats_labels_as_they_are(data, default):
    X, y, y_noisy = data
    plain = LogisticRegression().fit(X, y_noisy).score(X, y)
    auto = default
    known = ImportanceReweightingClassifier(noise_rates=RATES).fit(X, y_noisy)
    assert auto.score(X, y) > plain + 0.02
    assert known.score(X, y) > plain + 0.02
    assert known.noise_rates_ == RATES


def test_clean_probabilities_are_learnt_not_noisy_ones():
    """On a well-specified model the coefficients tend to those of clean labels."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40_000, 2))
    clean = 1 / (1 + np.exp(-(2 * X[:, 0] - X[:, 1] + 0.5)))
    y = (rng.uniform(size=len(X)) < clean).astype(int)
    y_noisy = flip_labels(y, RATES, random_state=0)
    clf = ImportanceReweightingClassifier(
        noise_rates=RATES,
        posterior=HistGradientBoostingClassifier(max_depth=4),
        cv=5,
        random_state=0,
    ).fit(X, y_noisy)
    assert np.abs(clf.predict_proba(X)[:, 1] - clean).mean() < 0.03
    plain = LogisticRegression().fit(X, y_noisy)
    assert np.abs(plain.predict_proba(X)[:, 1] - clean).mean() > 0.15
    # the mislabel probabilities add up to the flips there were
    assert clf.mislabel_proba_.mean() == pytest.approx(np.mean(y != y_noisy), abs=0.02)


def test_the_classifier_is_the_estimator_fitted_with_the_papers_weights(data):
    X, _, y_noisy = data
    clf = ImportanceReweightingClassifier(LogisticRegression(), noise_rates=RATES)
    clf.fit(X, y_noisy)
    noisy_proba = clone(clf.posterior_).fit_predict_proba(X, y_noisy)  # without a row's own label
    given = noisy_proba[np.arange(len(X)), y_noisy]
    beta = importance_weights(given, y_noisy, RATES)
    np.testing.assert_array_equal(clf.sample_weight_, beta)
    by_hand = LogisticRegression().fit(X, y_noisy, sample_weight=beta)
    np.testing.assert_array_equal(clf.predict_proba(X), by_hand.predict_proba(X))
    np.testing.assert_array_equal(clf.decision_function(X), by_hand.decision_function(X))


@pytest.mark.filterwarnings("ignore::unflip.LabelNoiseWarning")
@pytest.mark.parametrize("load", [load_iris, load_wine, load_breast_cancer])
def test_the_default_classifier_converges_whatever_the_units_of_the_columns(load):
    X, y = load(return_X_y=True)
    gaps = np.where(np.arange(X.size).reshape(X.shape) % 97, X, np.nan)
    for rows in (X, gaps):
        with warnings.catch_warnings():
            warnings.simplefilter("error", ConvergenceWarning)
            clf = ImportanceReweightingClassifier(random_state=0).fit(rows, y)
        assert clf.score(rows, y) > 0.94


def test_a_search_warns_once_at_the_line_of_the_user_and_so_does_the_next():
    X, y = np.random.default_rng(0).normal(size=(200, 2)), np.arange(200) % 2
    clf = ImportanceReweightingClassifier(noise_rates="minimum", random_state=0)
    search = GridSearchCV(clf, {"weighting": ["rho", "relabel"]}, cv=3)
    for _ in range(2):
        with pytest.warns(LabelNoiseWarning) as said:
            search.fit(X, y)
        assert len({re.sub(r"\d", "", str(each.message)) for each in said}) == len(said)
        assert {each.filename for each in said} == {__file__}


def test_no_noise_changes_nothing(data):
    X, y, _ = data
    none = NoiseRates(0.0, 0.0)
    clf = ImportanceReweightingClassifier(LogisticRegression(), noise_rates=none).fit(X, y)
    np.testing.assert_allclose(clf.sample_weight_, 1)
    np.testing.assert_allclose(clf.mislabel_proba_, 0, atol=1e-12)
    np.testing.assert_allclose(clf.estimator_.coef_, LogisticRegression().fit(X, y).coef_)
    assert clf.effective_sample_size_ == pytest.approx(len(y))
    assert clf.clipped_share_ == 0


@pytest.mark.parametrize(
    "posterior",
    ["auto", "probabilistic", "kde", "kliep", "ulsif", "rulsif", "kmm", RandomForestClassifier()],
    ids=str,
)
def test_every_posterior_trains(data, posterior):
    X, y, y_noisy = data
    clf = ImportanceReweightingClassifier(
        posterior=posterior, noise_rates=RATES, cv=3, random_state=0
    ).fit(X[:300], y_noisy[:300])
    assert clf.score(X[300:], y[300:]) > 0.7
    assert (clf.sample_weight_ >= 0).all()
    assert ((clf.mislabel_proba_ >= 0) & (clf.mislabel_proba_ <= 1)).all()


@pytest.mark.parametrize(
    "estimator",
    [
        SVC(),
        LinearSVC(),
        RidgeClassifier(),
        RandomForestClassifier(n_estimators=20, min_samples_leaf=10),
        HistGradientBoostingClassifier(max_iter=20),
        CalibratedClassifierCV(LinearSVC()),
        make_pipeline(StandardScaler(), SVC()),
        make_pipeline(StandardScaler(), make_pipeline(StandardScaler(), LogisticRegression())),
        GridSearchCV(LogisticRegression(), {"C": [0.1, 1]}, cv=3),
        GridSearchCV(make_pipeline(StandardScaler(), SVC()), {"svc__C": [0.1, 1]}, cv=3),
    ],
    ids=lambda estimator: str(estimator)[:40].replace("\n", ""),
)
def test_any_estimator_that_takes_weights_trains(data, estimator):
    X, y, y_noisy = data
    clf = ImportanceReweightingClassifier(estimator, noise_rates=RATES, random_state=0)
    assert clf.fit(X, y_noisy).score(X, y) > 0.8
    assert hasattr(clf, "predict_proba") == hasattr(clf.estimator_, "predict_proba")
    assert hasattr(clf, "decision_function") == hasattr(clf.estimator_, "decision_function")


def test_weights_reach_the_last_step_of_a_pipeline(data):
    X, _, y_noisy = data
    pipeline = make_pipeline(StandardScaler(), LogisticRegression())
    clf = ImportanceReweightingClassifier(pipeline, noise_rates=RATES).fit(X, y_noisy)
    by_hand = clone(pipeline).fit(X, y_noisy, logisticregression__sample_weight=clf.sample_weight_)
    np.testing.assert_array_equal(clf.predict_proba(X), by_hand.predict_proba(X))
    with config_context(enable_metadata_routing=True):
        routed = ImportanceReweightingClassifier(pipeline, noise_rates=RATES).fit(X, y_noisy)
    np.testing.assert_array_equal(clf.predict_proba(X), routed.predict_proba(X))


@pytest.mark.parametrize(
    ("estimator", "named"),
    [
        (KNeighborsClassifier(), "KNeighborsClassifier does not take sample_weight"),
        (
            make_pipeline(StandardScaler(), KNeighborsClassifier()),
            r"KNeighborsClassifier \(last step of the Pipeline\) does not take sample_weight",
        ),
        (
            GridSearchCV(KNeighborsClassifier(), {"n_neighbors": [3]}),
            r"KNeighborsClassifier \(inside GridSearchCV\) does not take sample_weight",
        ),
    ],
)
def test_an_estimator_that_takes_no_weights_is_named(data, estimator, named):
    X, _, y_noisy = data
    with pytest.raises(TypeError, match=named):
        ImportanceReweightingClassifier(estimator).fit(X, y_noisy)


def test_own_sample_weights_multiply_the_papers(data):
    X, _, y_noisy = data
    own = np.random.default_rng(0).uniform(0.5, 2, len(X))
    clf = ImportanceReweightingClassifier(LogisticRegression(), noise_rates=RATES)
    clf.fit(X, y_noisy, sample_weight=own)
    by_hand = LogisticRegression().fit(X, y_noisy, sample_weight=clf.sample_weight_ * own)
    np.testing.assert_array_equal(clf.predict_proba(X), by_hand.predict_proba(X))


@pytest.mark.filterwarnings("ignore::unflip.LabelNoiseWarning")
def test_own_weights_are_repetitions_of_rows(data):
    X, _, y_noisy = (part[:300] for part in data)
    own = np.random.default_rng(0).integers(0, 3, len(X))
    model = LogisticRegression(tol=1e-10, max_iter=1000)
    for rates in ("auto", RATES):
        clf = ImportanceReweightingClassifier(model, noise_rates=rates)
        weighted = clone(clf).fit(X, y_noisy, sample_weight=own)
        repeated = clone(clf).fit(X.repeat(own, axis=0), y_noisy.repeat(own))
        np.testing.assert_allclose(
            weighted.noise_rates_.both(), repeated.noise_rates_.both(), rtol=1e-4
        )
        np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), rtol=1e-3)


def test_string_and_bool_labels_and_signs_give_one_model(data, default):
    X, _, y_noisy = data
    expected = default
    for labels in (
        np.where(y_noisy, "yes", "no"),
        y_noisy.astype(bool),
        np.where(y_noisy, 1, -1),
        y_noisy.astype(float),
        list(np.where(y_noisy, "yes", "no")),
    ):
        clf = ImportanceReweightingClassifier().fit(X, labels)
        assert clf.noise_rates_ == expected.noise_rates_
        assert clf.classes_.dtype == np.asarray(labels).dtype
        np.testing.assert_allclose(clf.predict_proba(X), expected.predict_proba(X))
        np.testing.assert_array_equal(clf.predict(X) == clf.classes_[1], expected.predict(X) == 1)


def test_swapping_the_classes_swaps_the_rates_and_mirrors_the_model(data, default):
    X, _, y_noisy = data
    one = default
    other = ImportanceReweightingClassifier().fit(X, 1 - y_noisy)
    swapped = one.noise_rates_.swapped().both()
    np.testing.assert_allclose(other.noise_rates_.both(), swapped, atol=2e-3)
    np.testing.assert_allclose(other.predict_proba(X), one.predict_proba(X)[:, ::-1], atol=0.01)
    exact = ImportanceReweightingClassifier(posterior="probabilistic", noise_rates="quantile")
    one, other = clone(exact).fit(X, y_noisy), clone(exact).fit(X, 1 - y_noisy)
    np.testing.assert_allclose(other.noise_rates_.both(), one.noise_rates_.swapped().both(), 1e-4)
    np.testing.assert_allclose(other.predict_proba(X), one.predict_proba(X)[:, ::-1], atol=1e-4)
    np.testing.assert_allclose(other.sample_weight_, one.sample_weight_, atol=1e-3)


def test_permuting_rows_permutes_the_weights(data):
    X, _, y_noisy = data
    order = np.random.default_rng(0).permutation(len(X))
    one = ImportanceReweightingClassifier(posterior="kde").fit(X, y_noisy)
    other = ImportanceReweightingClassifier(posterior="kde").fit(X[order], y_noisy[order])
    np.testing.assert_allclose(other.sample_weight_, one.sample_weight_[order], rtol=1e-9)
    np.testing.assert_allclose(other.predict_proba(X), one.predict_proba(X), atol=1e-4)


def test_scaling_the_features_leaves_the_weights(data):
    X, _, y_noisy = data
    scaled = X * 10.0 ** np.arange(-3, 3) + 7
    for posterior in ("probabilistic", "kde"):
        model = make_pipeline(StandardScaler(), LogisticRegression())
        clf = ImportanceReweightingClassifier(model, posterior=posterior, noise_rates="quantile")
        one, other = clone(clf).fit(X, y_noisy), clone(clf).fit(scaled, y_noisy)
        np.testing.assert_allclose(other.sample_weight_, one.sample_weight_, atol=1e-5)


@pytest.mark.skipif(
    Version(sklearn.__version__) < Version("1.9") and not hasattr(pl.DataFrame, "__dataframe__"),
    reason="the ColumnTransformer of scikit-learn before 1.9 takes no frame of polars 2",
)
def test_frames_reach_the_parts_as_they_are(data):
    X, _, y_noisy = data
    numbers = {f"x{j}": X[:, j] for j in range(3)}
    colours = np.where(X[:, 3] > 0, "red", "blue")
    frames = [
        (pd.DataFrame(numbers | {"colour": colours}), pd.Series(y_noisy)),
        (pl.DataFrame(numbers | {"colour": colours}), pl.Series(y_noisy)),
    ]
    model = make_pipeline(
        make_column_transformer((StandardScaler(), list(numbers)), (OneHotEncoder(), ["colour"])),
        LogisticRegression(),
    )
    probabilities = []
    for table, labels in frames:
        clf = ImportanceReweightingClassifier(
            model, posterior=model, noise_rates=RATES, cv=3, random_state=0
        ).fit(table, labels)
        assert clf.feature_names_in_.tolist() == ["x0", "x1", "x2", "colour"]
        probabilities.append(clf.predict_proba(table))
    np.testing.assert_allclose(*probabilities)
    with pytest.raises(ValueError, match="feature names"):
        clf.predict(frames[0][0].rename(columns={"x0": "other"}))


def test_sparse_rows_give_the_dense_model(data):
    X, _, y_noisy = data
    X = np.where(np.abs(X) < 0.5, 0, X)
    model = LogisticRegression(tol=1e-8)
    for posterior in (LogisticRegression(tol=1e-8), "kde", DensityRatioPosterior(KLIEP(2.0))):
        clf = ImportanceReweightingClassifier(
            model, posterior=posterior, noise_rates=RATES, random_state=0
        )
        dense = clone(clf).fit(X, y_noisy)
        for container in (sparse.csr_array, sparse.csc_matrix):
            rows = container(X)
            thin = clone(clf).fit(rows, y_noisy)
            np.testing.assert_allclose(thin.predict_proba(rows), dense.predict_proba(X), atol=1e-3)


def test_gaps_are_allowed_where_the_parts_allow_them(data):
    X, y, y_noisy = data
    X = X.copy()
    X[::7, 0] = np.nan
    boosting = HistGradientBoostingClassifier(max_iter=30, random_state=0)
    clf = ImportanceReweightingClassifier(boosting, posterior=boosting, noise_rates=RATES, cv=3)
    assert clf.__sklearn_tags__().input_tags.allow_nan
    assert clf.fit(X, y_noisy).score(X, y) > 0.8
    assert ImportanceReweightingClassifier(boosting).__sklearn_tags__().input_tags.allow_nan
    own = ImportanceReweightingClassifier(LogisticRegression())
    assert not own.__sklearn_tags__().input_tags.allow_nan
    # they are filled for the classifier that is trained by default
    assert ImportanceReweightingClassifier().__sklearn_tags__().input_tags.allow_nan
    assert ImportanceReweightingClassifier(noise_rates=RATES).fit(X, y_noisy).score(X, y) > 0.8


def test_one_known_rate_is_kept_and_the_other_estimated(data):
    X, _, y_noisy = data
    half = NoiseRates(positive=None, negative=0.1)
    clf = ImportanceReweightingClassifier(noise_rates=half).fit(X, y_noisy)
    assert clf.noise_rates_.negative == 0.1
    assert clf.noise_rates_.positive == pytest.approx(0.4, abs=0.05)
    # the channel that gave the posterior gave the rate
    assert clf.posterior_.rates_ == clf.noise_rates_ == clf.rate_estimator_.rates_


def test_an_estimate_beside_a_large_known_rate_stays_in_the_room_left(data):
    X, _, y_noisy = data
    half = NoiseRates(positive=0.9, negative=None)
    found = estimate_rates(half, X, y_noisy)
    assert found.positive == 0.9
    assert found.negative <= 0.05


def test_given_rates_may_leave_next_to_nothing(data):
    X, _, y_noisy = data
    with (
        pytest.warns(LabelNoiseWarning, match="little_information:"),
        pytest.warns(LabelNoiseWarning, match="contradicted_rates:"),
        pytest.warns(LabelNoiseWarning, match="unlikely_rates:"),
    ):
        clf = ImportanceReweightingClassifier(noise_rates=NoiseRates(0.5, 0.46)).fit(X, y_noisy)
    assert np.isfinite(clf.sample_weight_).all()


def test_other_ways_to_the_rates_get_no_channel(data):
    X, _, y_noisy = data
    clf = ImportanceReweightingClassifier(noise_rates="quantile").fit(X, y_noisy)
    assert clf.noise_rates_ == MinimumRates(quantile=0.05).fit(X, y_noisy).rates_
    by_channel = ImportanceReweightingClassifier(posterior="kde", noise_rates="channel")
    rates = by_channel.fit(X, y_noisy).noise_rates_
    assert rates == ChannelRates().fit(X, y_noisy).rates_


def test_cross_fitting_keeps_the_rates_of_all_rows(data, default):
    X, _, y_noisy = data
    one = default
    held_out = ImportanceReweightingClassifier(cv=3, random_state=0).fit(X, y_noisy)
    np.testing.assert_allclose(held_out.noise_rates_.both(), one.noise_rates_.both(), atol=0.01)
    noisy = clone(one.posterior_).set_params(known=one.noise_rates_).fit(X[:400], y_noisy[:400])
    assert noisy.rates_ == one.noise_rates_


def test_a_rate_estimator_with_a_posterior_of_its_own_uses_that(data):
    X, _, y_noisy = data
    clf = ImportanceReweightingClassifier(noise_rates=MinimumRates("kde", quantile=0.1))
    assert clf.fit(X, y_noisy).noise_rates_ == MinimumRates("kde", 0.1).fit(X, y_noisy).rates_
    shared = ImportanceReweightingClassifier(posterior="kde", noise_rates="minimum")
    assert shared.fit(X, y_noisy).noise_rates_ == MinimumRates("kde").fit(X, y_noisy).rates_


def test_weighting_through_inverse_rates_is_the_same_and_as_printed_is_not(data):
    X, _, y_noisy = data
    weights = {
        weighting: ImportanceReweightingClassifier(noise_rates=RATES, weighting=weighting)
        .fit(X, y_noisy)
        .sample_weight_
        for weighting in ("rho", "pi", "pi_printed")
    }
    np.testing.assert_allclose(weights["pi"], weights["rho"], rtol=1e-9)
    positive = y_noisy == 1
    assert np.corrcoef(weights["pi_printed"][positive], weights["rho"][positive])[0, 1] < 0


def test_cross_validation_and_grid_search_work(data):
    X, _, y_noisy = data
    clf = ImportanceReweightingClassifier(
        LogisticRegression(), posterior=KernelDensityPosterior(), noise_rates=RATES
    )
    assert cross_val_score(clf, X, y_noisy, cv=3).shape == (3,)
    search = GridSearchCV(clf, {"estimator__C": [0.1, 1], "posterior__bandwidth": [0.5, 1]}, cv=3)
    assert set(search.fit(X, y_noisy).best_params_) == {"estimator__C", "posterior__bandwidth"}


@pytest.mark.filterwarnings("ignore::unflip.LabelNoiseWarning")
def test_the_same_seed_gives_the_same_bits_and_pickles(data):
    X, _, y_noisy = (part[:200] for part in data)
    forest = RandomForestClassifier(n_estimators=10)
    clf = ImportanceReweightingClassifier(forest, posterior="ulsif", cv=3, random_state=0)
    one, two = clone(clf).fit(X, y_noisy), clone(clf).fit(X, y_noisy)
    np.testing.assert_array_equal(one.sample_weight_, two.sample_weight_)
    np.testing.assert_array_equal(one.predict_proba(X), two.predict_proba(X))
    loaded = pickle.loads(pickle.dumps(one))  # noqa: S301
    np.testing.assert_array_equal(one.predict_proba(X), loaded.predict_proba(X))
    other = clone(clf).set_params(random_state=1).fit(X, y_noisy)
    assert (one.sample_weight_ != other.sample_weight_).any()


def test_constant_columns_and_duplicated_rows_work(data):
    X, y, y_noisy = data
    constant = np.column_stack([X, np.ones(len(X))])
    for posterior in ("auto", "kde", "kliep"):
        clf = ImportanceReweightingClassifier(
            posterior=posterior, noise_rates=RATES, random_state=0
        )
        assert clone(clf).fit(constant, y_noisy).score(constant, y) > 0.7
        doubled = clone(clf).fit(np.vstack([X, X]), np.tile(y_noisy, 2))
        assert doubled.score(X, y) > 0.7


class ZeroPosterior(KernelDensityPosterior):
    """A posterior that believes in nothing."""

    def predict_proba(self, X):
        return np.zeros((X.shape[0], 2))


BAD_INPUT = {
    "one class": (lambda X, y: (X, np.zeros_like(y)), {}, "one class only"),
    "three classes": (
        lambda X, y: (X, np.arange(len(y)) % 3),
        {"noise_rates": RATES, "weighting": "pi"},
        r"Only binary.*3 classes, 0, 1, 2.*two classes only: noise_rates=.*, weighting=pi",
    ),
    "three classes, a two-class estimate": (
        lambda X, y: (X, np.arange(len(y)) % 3),
        {"noise_rates": "scott"},
        r"Only binary.*two classes only: noise_rates=scott",
    ),
    "three classes, noise of four": (
        lambda X, y: (X, np.arange(len(y)) % 3),
        {"noise_rates": np.eye(4)},
        "noise of 4 classes, and there are 3",
    ),
    "NaN": (
        lambda X, y: (np.where(X[0, 0] == X, np.nan, X), y),
        {"estimator": LogisticRegression()},  # the default one has them filled
        "NaN",
    ),
    "infinity": (lambda X, y: (np.where(X[0, 0] == X, np.inf, X), y), {}, "infinity"),
    "no columns": (lambda X, y: (X[:, :0], y), {}, r"0 feature\(s\)"),
    "nine rows": (lambda X, y: (X[:9], np.arange(9) % 2), {}, "n_samples=9"),
    "unequal lengths": (lambda X, y: (X[:-1], y), {}, "inconsistent numbers"),
    "folds": (
        lambda X, y: (X, np.r_[np.ones(4), np.zeros(len(y) - 4)]),
        {"cv": 5, "posterior": "probabilistic"},  # the noise model needs no folds
        r"class 1.0 has 4 rows, fewer than the cv=5 folds",
    ),
    "zero posterior": (
        lambda X, y: (X, y),
        {"posterior": ZeroPosterior(), "noise_rates": RATES},
        "gives every label probability 0",
    ),
    "zero weights": (
        lambda X, y: (X, y),
        {"posterior": LogisticRegression(C=1e-9), "noise_rates": NoiseRates(0.0, 0.9)},
        r"Every sample labelled \d gets weight 0",
    ),
    "weighting": (lambda X, y: (X, y), {"weighting": "sigma"}, "weighting='sigma' is not one of"),
    "alias": (lambda X, y: (X, y), {"noise_rates": "guess"}, "noise_rates='guess' is not one of"),
}


@pytest.mark.parametrize(("spoil", "parameters", "message"), BAD_INPUT.values(), ids=BAD_INPUT)
def test_bad_input_is_refused_and_changes_nothing(data, default, spoil, parameters, message):
    X, _, y_noisy = data
    clf = ImportanceReweightingClassifier(**parameters)
    with pytest.raises(ValueError, match=message):
        clf.fit(*spoil(X, y_noisy))
    assert not any(name.endswith("_") for name in vars(clf))
    fitted = copy.deepcopy(default)
    before = fitted.predict_proba(X)
    fitted.set_params(**parameters)
    with pytest.raises(ValueError, match=message):
        fitted.fit(*spoil(X, y_noisy))
    np.testing.assert_array_equal(fitted.predict_proba(X), before)


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (-1.0, "must be >= 0"),
        (0.0, "zero for every row"),
        (np.nan, "NaN"),
    ],
)
def test_bad_sample_weights_are_refused(data, weight, message):
    X, _, y_noisy = data
    with pytest.raises(ValueError, match=message):
        ImportanceReweightingClassifier().fit(X, y_noisy, sample_weight=np.full(len(X), weight))


def test_results_that_hang_on_next_to_nothing_come_with_a_warning(data):
    X, _, y_noisy = data
    with pytest.warns(UserWarning, match="little_information:"):
        ImportanceReweightingClassifier(noise_rates=NoiseRates(0.4, 0.45)).fit(
            X, np.where(np.arange(len(X)) % 2, y_noisy, 1 - y_noisy)
        )
    share = np.mean(y_noisy)
    with (
        pytest.warns(LabelNoiseWarning, match="contradicted_rates:"),
        pytest.warns(LabelNoiseWarning, match="unlikely_rates:"),
    ):
        ImportanceReweightingClassifier(noise_rates=NoiseRates(0.0, share + 0.1)).fit(X, y_noisy)


def test_the_papers_presets_are_configured_parts(data):
    X, y, y_noisy = data
    model = LogisticRegression()
    published = {"solver": "projected_gradient", "search": "downward"}
    for preset in (eiw, iw):
        clf = preset(model, random_state=0)
        assert clf.posterior.ratio.get_params().items() >= published.items()
        assert clf.fit(X[:150], y_noisy[:150]).score(X[300:], y[300:]) > 0.7
    assert eiw().noise_rates == "minimum"
    assert iw().noise_rates.scoring == "noisy_accuracy"


@pytest.mark.slow
def test_cross_validated_rates_are_those_of_the_classifier_itself(data):
    X, _, y_noisy = (part[:200] for part in data)
    inside = ImportanceReweightingClassifier(noise_rates="cv", random_state=0).fit(X, y_noisy)
    assert inside.noise_rates_.known
    assert clone(inside).fit(X, y_noisy).noise_rates_ == inside.noise_rates_
