"""Stage 1: P(noisy y | x) by three routes, and cross-fitting."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from unflip.density_ratio import KLIEP, KMM, ULSIF, RuLSIF
from unflip.learners import LinearClassifier
from unflip.posterior import (
    DensityRatioPosterior,
    KernelDensityPosterior,
    ProbabilisticPosterior,
    fit_posterior,
    make_posterior,
)

POSTERIORS = {
    "probabilistic": ProbabilisticPosterior(),
    "kde": KernelDensityPosterior(0.4),
    "kliep": DensityRatioPosterior(KLIEP(random_state=0)),
    "ulsif": DensityRatioPosterior(ULSIF(1.0, 0.1, random_state=0), normalize=True),
}


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    clean = 1 / (1 + np.exp(-3 * X[:, 0]))
    return X, np.where(rng.uniform(size=300) < 0.1 + 0.6 * clean, "yes", "no")


@pytest.mark.parametrize("posterior", POSTERIORS.values(), ids=POSTERIORS)
def test_probabilities_track_the_truth(posterior):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(3000, 2))
    truth = 0.1 + 0.6 / (1 + np.exp(-3 * X[:, 0]))
    y = (rng.uniform(size=3000) < truth).astype(int)
    estimate = clone(posterior).fit(X, y).predict_proba(X)
    assert ((estimate >= 0) & (estimate <= 1)).all()
    assert np.mean((estimate[:, 1] - truth) ** 2) < 0.25 * np.var(truth)


@pytest.mark.parametrize("posterior", POSTERIORS.values(), ids=POSTERIORS)
def test_any_labels_any_container(posterior, data):
    X, y = (part[::3] for part in data)
    expected = clone(posterior).fit(X, y).predict_proba(X)
    for labels in (y == "yes", np.where(y == "yes", 1, -1), np.where(y == "yes", 1, 0)):
        np.testing.assert_allclose(clone(posterior).fit(X, labels).predict_proba(X), expected)
    for frame, series in ((pd.DataFrame, pd.Series), (pl.DataFrame, pl.Series)):
        table = frame({"a": X[:, 0], "b": X[:, 1]})
        fitted = clone(posterior).fit(table, series(y))
        assert fitted.classes_.tolist() == ["no", "yes"]
        assert fitted.feature_names_in_.tolist() == ["a", "b"]
        np.testing.assert_allclose(fitted.predict_proba(table), expected)


@pytest.mark.parametrize("name", ["kde", "kliep", "ulsif"])
def test_sparse_rows_give_the_dense_posterior(name, data):
    X, y = data
    if name == "kliep":  # the widths of a grid are compared by rounding where they tie
        posterior = DensityRatioPosterior(KLIEP(1.0, random_state=0))
    else:
        posterior = POSTERIORS[name]
    dense = clone(posterior).fit(X, y).predict_proba(X)
    rows = sparse.csr_array(X)
    np.testing.assert_allclose(
        clone(posterior).fit(rows, y).predict_proba(rows), dense, rtol=1e-5, atol=1e-6
    )


def test_three_classes_have_three_columns():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2)) + 3 * np.eye(3)[:, :2].repeat(100, axis=0)
    y = np.repeat(["a", "b", "c"], 100)
    for posterior in POSTERIORS.values():
        fitted = clone(posterior).fit(X, y)
        assert fitted.predict_proba(X).shape == (300, 3)
        assert np.mean(fitted.predict(X) == y) > 0.8


@pytest.mark.parametrize("posterior", POSTERIORS.values(), ids=POSTERIORS)
def test_probabilities_of_three_classes_track_the_truth(posterior):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(3000, 2))
    scores = np.exp(2 * X @ [[1, 0, -1], [0, 1, -1]])
    clean = scores / scores.sum(axis=1, keepdims=True)
    truth = clean @ [[0.7, 0.3, 0], [0, 0.8, 0.2], [0.1, 0, 0.9]]
    y = (rng.uniform(size=(3000, 1)) > truth.cumsum(axis=1)[:, :2]).sum(axis=1)
    estimate = clone(posterior).fit(X, np.array(["a", "b", "c"])[y]).predict_proba(X)
    assert ((estimate >= 0) & (estimate <= 1)).all()
    assert (np.mean((estimate - truth) ** 2, axis=0) < 0.25 * np.var(truth, axis=0)).all()


# --- kernel densities


def test_kernel_posterior_is_bayes_rule_on_kernel_sums(data):
    X, y = data
    posterior = KernelDensityPosterior(0.7).fit(X, y)
    scaled = X / X.std(axis=0) / 0.7
    kernel = np.exp(-((scaled[:, None] - scaled[None]) ** 2).sum(axis=2) / 2)
    density = np.column_stack([kernel[:, y == c].mean(axis=1) for c in ("no", "yes")])
    joint = density * [np.mean(y == "no"), np.mean(y == "yes")]
    np.testing.assert_allclose(
        posterior.predict_proba(X), joint / joint.sum(axis=1, keepdims=True), rtol=1e-9
    )


def test_far_from_all_rows_the_nearest_decides():
    posterior = KernelDensityPosterior().fit([[0.0], [1.0], [2.0]], [0, 0, 1])
    np.testing.assert_array_equal(posterior.predict_proba([[1e8], [-1e8]]), [[0, 1], [1, 0]])


def test_scaling_the_features_changes_nothing(data):
    X, y = data
    one = KernelDensityPosterior().fit(X, y).predict_proba(X)
    other = (
        KernelDensityPosterior().fit(X * [1000, 0.001] + 5, y).predict_proba(X * [1000, 0.001] + 5)
    )
    np.testing.assert_allclose(one, other, rtol=1e-6)


@pytest.mark.parametrize("name", ["kde", "probabilistic", "selected", "channel"])
def test_posteriors_that_scale_the_columns_do_not_see_their_units(name, data):
    X, y = data
    units = np.array([1.0, 1e6])
    plain = make_posterior(name, 0).fit(X, y).predict_proba(X)
    scaled = make_posterior(name, 0).fit(X * units, y).predict_proba(X * units)
    np.testing.assert_allclose(scaled, plain, atol=0.02 if name == "channel" else 1e-9)


@pytest.mark.parametrize("name", ["kliep", "ulsif", "rulsif", "kmm"])
def test_density_ratios_take_the_columns_as_they_are(name, data):
    X, y = data
    units = np.array([1.0, 1e6])

    def posterior(rows):
        return make_posterior(name, 0).fit(rows, y).predict_proba(rows)

    assert np.abs(posterior(X * units) - posterior(X)).mean() > 0.05
    standardised = posterior(StandardScaler().fit_transform(X * units))
    np.testing.assert_allclose(
        standardised, posterior(StandardScaler().fit_transform(X)), atol=1e-6
    )


def test_the_chosen_width_has_the_highest_left_out_likelihood(data):
    X, y = data
    widths = [0.05, 0.4, 3.0]
    chosen = KernelDensityPosterior("cv", bandwidths=widths).fit(X, y).bandwidth_
    scaled = X / X.std(axis=0)
    squared = ((scaled[:, None] - scaled[None]) ** 2).sum(axis=2)
    np.fill_diagonal(squared, np.inf)
    squared -= squared.min(axis=1, keepdims=True)
    scores = []
    for width in widths:
        kernel = np.exp(-squared / (2 * width**2))
        own = (kernel * (y[:, None] == y)).sum(axis=1) / kernel.sum(axis=1)
        scores.append(np.log(np.maximum(own, 0.5 / len(y))).sum())
    assert chosen == widths[int(np.argmax(scores))]


@pytest.mark.parametrize(("d", "width"), [(1, 1.0), (1, 0.05), (2, 1.0), (2, 0.2), (2, 0.1)])
def test_a_grid_errs_by_less_than_is_said(d, width):
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(2500, d)), rng.standard_t(4, size=(500, d))])
    y = rng.integers(0, 3, len(X)) * (X[:, 0] > -1)
    rows = np.vstack([X, rng.uniform(-20, 20, size=(500, d))])  # some far from all
    exact = KernelDensityPosterior(width).fit(X, y)
    fast = KernelDensityPosterior(width, exact_rows=2000).fit(X, y)
    np.testing.assert_allclose(fast.predict_proba(rows), exact.predict_proba(rows), atol=2e-3)
    np.testing.assert_allclose(fast.predict_proba(rows).sum(axis=1), 1)


def test_a_grid_counts_weights():
    rng = np.random.default_rng(0)
    X, weight = rng.normal(size=(600, 2)), rng.integers(1, 4, 600)
    y = rng.uniform(size=600) < 1 / (1 + np.exp(-2 * X[:, 0]))
    weighted = KernelDensityPosterior(0.5, exact_rows=100).fit(X, y, sample_weight=weight)
    repeated = KernelDensityPosterior(0.5).fit(X.repeat(weight, axis=0), y.repeat(weight))
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=2e-3)


def test_rows_that_stand_for_all_err_by_the_sampling_error_that_is_said():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 3))
    y = (rng.uniform(size=len(X)) < 1 / (1 + np.exp(-2 * X[:, 0]))).astype(int)
    fast = KernelDensityPosterior(0.5, exact_rows=4000, random_state=0).fit(X, y)
    rows = rng.normal(size=(500, 3))
    p = KernelDensityPosterior(0.5, exact_rows=None).fit(X, y).predict_proba(rows)[:, 1]
    drawn = fast._rows
    scaled = rows / X.std(axis=0) - X.mean(axis=0) / X.std(axis=0)
    kernel = np.exp(-((scaled[:, None] - drawn[None]) ** 2).sum(axis=2) / (2 * 0.5**2))
    count = kernel.sum(axis=1) ** 2 / (kernel**2).sum(axis=1)
    errors = (fast.predict_proba(rows)[:, 1] - p) / np.sqrt(p * (1 - p) / count)
    assert 0.5 < np.sqrt(np.mean(errors[count > 10] ** 2)) < 1.1


def test_a_grid_too_large_is_not_built():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 2)), rng.integers(0, 2, 300)
    assert np.isfinite(
        KernelDensityPosterior(1e-5, exact_rows=100).fit(X, y).predict_proba(X)
    ).all()
    with pytest.raises(ValueError, match="exact_rows"):
        KernelDensityPosterior(exact_rows=0).fit(X, y)


# --- density ratios


def test_ratio_posterior_is_prior_times_ratio(data):
    X, y = data
    posterior = DensityRatioPosterior(KLIEP(1.0, random_state=0)).fit(X, y)
    by_hand = [
        np.mean(y == c) * KLIEP(1.0, random_state=0).fit(X[y == c], X).predict(X)
        for c in ("no", "yes")
    ]
    np.testing.assert_allclose(posterior.predict_proba(X), np.minimum(by_hand, 1).T)


def test_normalised_rows_sum_to_one_even_out_of_reach(data):
    X, y = data
    posterior = DensityRatioPosterior(KLIEP(0.5, random_state=0), normalize=True).fit(X, y)
    probabilities = posterior.predict_proba(np.vstack([X, [[1e6, 1e6]]]))
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    np.testing.assert_allclose(probabilities[-1], posterior.prior_)
    raw = DensityRatioPosterior(KLIEP(0.5, random_state=0)).fit(X, y).predict_proba(X)
    assert not np.allclose(raw.sum(axis=1), 1)


def test_a_class_without_weight_is_refused(data):
    X, y = data
    with pytest.raises(ValueError, match="sample_weight"):
        DensityRatioPosterior().fit(X, y, sample_weight=(y == "yes").astype(float))


# --- classifiers


def test_a_classifier_without_probabilities_needs_calibration(data):
    X, y = data
    with pytest.raises(TypeError, match="predict_proba"):
        ProbabilisticPosterior(LinearSVC()).fit(X, y)
    calibrated = ProbabilisticPosterior(LinearSVC(), calibration="sigmoid").fit(X, y)
    np.testing.assert_allclose(calibrated.predict_proba(X).sum(axis=1), 1)


def test_a_pipeline_gets_the_weights_in_every_step(data):
    X, y = data
    weight = np.random.default_rng(0).integers(0, 4, len(y))
    model = make_pipeline(StandardScaler(), LogisticRegression(C=0.1, tol=1e-8))
    weighted = ProbabilisticPosterior(model).fit(X, y, sample_weight=weight)
    repeated = ProbabilisticPosterior(model).fit(X.repeat(weight, axis=0), y.repeat(weight))
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), rtol=1e-5)


# --- aliases


@pytest.mark.parametrize(
    ("alias", "kind"),
    [("kliep", KLIEP), ("ulsif", ULSIF), ("rulsif", RuLSIF), ("kmm", KMM)],
)
def test_ratio_aliases(alias, kind):
    assert type(make_posterior(alias).ratio) is kind


def test_aliases_instances_and_classifiers_become_unfitted_posteriors():
    assert isinstance(make_posterior("probabilistic"), ProbabilisticPosterior)
    assert isinstance(make_posterior("kde"), KernelDensityPosterior)
    mine = KernelDensityPosterior(0.5)
    assert make_posterior(mine) is not mine
    assert make_posterior(mine).bandwidth == 0.5
    assert isinstance(make_posterior(LogisticRegression()).estimator, LogisticRegression)
    with pytest.raises(ValueError, match="posterior='knn'"):
        make_posterior("knn")
    with pytest.raises(TypeError, match="posterior must be one of"):
        make_posterior(3)


def test_seeds_reach_nested_parts_that_have_none_of_their_own():
    seeded = make_posterior("kliep", random_state=0).ratio.random_state
    assert seeded == make_posterior("kliep", random_state=0).ratio.random_state
    assert seeded is not None
    assert make_posterior("kliep").ratio.random_state is None
    kept = DensityRatioPosterior(KLIEP(random_state=7))
    assert make_posterior(kept, random_state=0).ratio.random_state == 7


# --- cross-fitting


class Memory(ClassifierMixin, BaseEstimator):
    """Says 1 for the label it saw with a row, and 1/2 for rows it did not see."""

    def fit(self, X, y, sample_weight=None):
        self.classes_ = np.unique(y)
        self.seen_ = {tuple(row): label for row, label in zip(X, y, strict=True)}
        return self

    def predict_proba(self, X):
        return np.array(
            [
                np.where(self.classes_ == self.seen_[tuple(row)], 1.0, 0.0)
                if tuple(row) in self.seen_
                else np.full(self.classes_.size, 1 / self.classes_.size)
                for row in X
            ]
        )


def test_cross_fitting_never_shows_a_model_the_label_it_predicts(data):
    X, y = data
    memory = ProbabilisticPosterior(Memory())
    _, in_sample = fit_posterior(clone(memory), X, y)
    assert set(in_sample.ravel()) == {0.0, 1.0}
    fitted, held_out = fit_posterior(clone(memory), X, y, cv=5, random_state=0)
    assert (held_out == 0.5).all()
    assert len(fitted.estimator_.seen_) == len(X)  # what is returned saw all rows


def test_cross_fitted_rows_come_back_in_their_order(data):
    X, y = data
    forest = RandomForestClassifier(n_estimators=30, min_samples_leaf=5, random_state=0)
    _, held_out = fit_posterior(ProbabilisticPosterior(forest), X, y, cv=3, random_state=0)
    assert np.corrcoef(held_out[:, 1], X[:, 0])[0, 1] > 0.5
    np.testing.assert_allclose(held_out.sum(axis=1), 1)


def test_a_class_with_fewer_rows_than_folds_is_refused():
    X, y = np.arange(30.0)[:, None], np.array(["common"] * 27 + ["rare"] * 3)
    with pytest.raises(ValueError, match="cv=5"):
        fit_posterior(ProbabilisticPosterior(), X, y, cv=5)
    with pytest.raises(ValueError, match="2 folds"):
        fit_posterior(ProbabilisticPosterior(), X, y, cv=1)
    fit_posterior(ProbabilisticPosterior(), X, y, cv=3)
    y[-3:-1] = "common"
    with pytest.raises(ValueError, match="'rare' has 1"):
        fit_posterior(ProbabilisticPosterior(), X, y, cv=2)


def test_every_fold_holds_every_class_however_rare():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(303, 2)), np.array(["a", "b"] * 150 + ["rare"] * 3)
    _, held_out = fit_posterior(ProbabilisticPosterior(Memory()), X, y, cv=3, random_state=0)
    assert (held_out == 1 / 3).all()  # each model knew three classes


def test_a_class_that_a_fold_lacks_has_probability_zero_there():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(90, 2)), np.repeat(["a", "b", "c"], 30)
    lacking = (np.arange(60), np.arange(60, 90))  # trained on a and b only
    splits = [lacking, (np.arange(30, 90), np.arange(30)), (np.r_[:30, 60:90], np.r_[30:60])]
    _, held_out = fit_posterior(ProbabilisticPosterior(), X, y, cv=splits)
    assert held_out.shape == (90, 3)
    for k, rows in enumerate([slice(0, 30), slice(30, 60), slice(60, 90)]):
        assert (held_out[rows, k] == 0).all()
    np.testing.assert_allclose(held_out.sum(axis=1), 1)


def test_a_posterior_of_a_two_class_classifier_says_so():
    binary = ProbabilisticPosterior(LinearClassifier())
    assert not binary.__sklearn_tags__().classifier_tags.multi_class
    assert (
        ProbabilisticPosterior(LogisticRegression()).__sklearn_tags__().classifier_tags.multi_class
    )


@pytest.mark.parametrize("posterior", POSTERIORS.values(), ids=POSTERIORS)
def test_failed_fits_leave_nothing_behind(posterior, data):
    X, y = data
    fresh = clone(posterior)
    broken = X.copy()
    broken[0, 0] = np.nan
    for rows, labels, message in [
        (broken, y, "NaN"),
        (X, np.full(len(y), "yes"), "one class only"),
        (X[:-1], y, "inconsistent numbers of samples"),
        (X[:, :0], y, r"0 feature\(s\)"),
    ]:
        with pytest.raises(ValueError, match=message):
            fresh.fit(rows, labels)
        assert not any(name.endswith("_") for name in vars(fresh))
