"""The displays' numbers against independent computations."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import binomtest
from sklearn.calibration import calibration_curve
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score

from unflip import (
    ImportanceReweightingClassifier,
    NoiseRates,
    TransitionMatrix,
    flip_labels,
    importance_weights,
)
from unflip.audit import LabelAudit
from unflip.inspection import (
    mislabel_calibration,
    posterior_histogram,
    rate_sensitivity,
    weight_histogram,
)
from unflip.metrics import make_clean_scorer
from unflip.noise import RatesInterval
from unflip.posterior import BasePosterior

RATES = NoiseRates(positive=0.3, negative=0.1)
THREE = TransitionMatrix([[0.8, 0.15, 0.05], [0.1, 0.7, 0.2], [0.0, 0.1, 0.9]])


def logistic(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


class Oracle(BasePosterior):
    """P(noisy | x) of `sample`, exactly."""

    def fit(self, X, y, sample_weight=None):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        positive = RATES.noisy_posterior(logistic(3 * X[:, 0]))
        return np.column_stack([1 - positive, positive])


def sample(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, noisy labels and true ones, the classes overlapping little."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-3, 3, (n, 1))
    y = (rng.uniform(size=n) < logistic(3 * X[:, 0])).astype(int)
    return X, flip_labels(y, RATES, random_state=seed), y


def test_the_histogram_counts_rows_by_label():
    rng = np.random.default_rng(0)
    posterior, y = rng.uniform(size=200), rng.choice(["no", "yes"], 200)
    found = posterior_histogram(posterior, y, RATES, bins=5)
    for b in range(5):
        inside = (posterior >= b / 5) & (posterior < (b + 1) / 5)
        assert found.counts[0, b] == np.sum(inside & (y == "no"))
        assert found.counts[1, b] == np.sum(inside & (y == "yes"))
    assert found.pos_label == "yes"
    assert_allclose(found.anchor_values, [0.1, 0.7])
    both = posterior_histogram(np.column_stack([1 - posterior, posterior]), y, RATES, bins=5)
    assert_array_equal(both.counts, found.counts)


def test_the_values_at_anchor_points_are_where_the_posterior_levels_off():
    surely = np.eye(3)  # of one class each
    for k, label in enumerate("abc"):
        found = posterior_histogram(
            THREE.noisy_posterior(surely), list("abc"), THREE, pos_label=label
        )
        assert_allclose(found.anchor_values, THREE.noisy_posterior(surely)[:, k])


def test_the_other_class_has_the_mirrored_values():
    found = posterior_histogram([0.3, 0.9], [0, 1], RATES, pos_label=0)
    assert_allclose(found.anchor_values, [0.9, 0.3])
    assert_allclose(found.counts.sum(axis=1), [1, 1])


def test_intervals_of_the_rates_are_those_of_the_anchor_points():
    ends = RatesInterval.from_pairs(positive=(0.25, 0.4), negative=(0.05, 0.2))
    found = posterior_histogram([0.3, 0.9], [0, 1], RATES, interval=ends)
    assert_allclose(found.interval, [[0.05, 0.6], [0.2, 0.75]])  # rho_neg and 1 - rho_pos
    low = np.clip(THREE.matrix - 0.05, 0, 1)
    high = np.clip(THREE.matrix + 0.05, 0, 1)
    ends = RatesInterval(low, high)
    found = posterior_histogram([0.3] * 3, list("abc"), THREE, interval=ends, pos_label="b")
    assert_allclose(found.interval, [low[:, 1], high[:, 1]])


@pytest.mark.parametrize("interval", [[[0.1, 0.2]], NoiseRates((0.2, 0.4), (0.1, 0.2))])
def test_an_interval_of_another_form_is_refused(interval):
    with pytest.raises(TypeError, match="RatesInterval"):
        posterior_histogram([0.3, 0.9], [0, 1], RATES, interval=interval)


def test_bounds_of_two_rates_are_no_interval_of_three_classes():
    ends = RatesInterval.from_pairs((0.2, 0.4), (0.1, 0.2))
    with pytest.raises(ValueError, match="2 classes"):
        posterior_histogram([0.3] * 3, list("abc"), THREE, interval=ends, pos_label="b")


def test_of_many_classes_one_must_be_named():
    with pytest.raises(ValueError, match="pos_label=None"):
        posterior_histogram([0.3] * 3, list("abc"), THREE)
    with pytest.raises(ValueError, match="pos_label='z'"):
        posterior_histogram([0.3] * 3, list("abc"), THREE, pos_label="z")


def test_true_weights_keep_their_bounds_and_have_the_true_shares():
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, (20_000, 1))
    y = (rng.uniform(size=20_000) < logistic(3 * X[:, 0] - 3)).astype(int)
    y_noisy = flip_labels(y, RATES, random_state=0)
    positive = RATES.noisy_posterior(logistic(3 * X[:, 0] - 3))
    beta = importance_weights(np.where(y_noisy == 1, positive, 1 - positive), y_noisy, RATES)
    found = weight_histogram(beta, y_noisy, RATES)
    assert_allclose(found.bounds, [1 / 0.9, 1 / 0.7])
    assert_allclose(found.edges[:, -1], found.bounds)
    assert_allclose(found.shares.sum(axis=1), 1)
    assert_allclose(found.label_share, [np.mean(y_noisy == 0), np.mean(y_noisy == 1)])
    assert_allclose(found.weight_share, [np.mean(y == 0), np.mean(y == 1)], atol=0.01)
    assert_allclose(found.effective_sample_size, beta.sum() ** 2 / (beta**2).sum())


def test_a_weight_histogram_counts_rows_of_weight_two_twice():
    beta, y, weight = np.array([0.2, 1.0, 0.4, 1.2]), [0, 0, 1, 1], np.array([2, 1, 1, 2])
    once = weight_histogram(np.repeat(beta, weight), np.repeat(y, weight), RATES)
    found = weight_histogram(beta, y, RATES, sample_weight=weight)
    assert_allclose(found.shares, once.shares)
    assert_allclose(found.weight_share, once.weight_share)
    # (sum w)^2 / sum w^2 is of weights, whose square counts
    assert_allclose(
        found.effective_sample_size, (0.4 + 1 + 0.4 + 2.4) ** 2 / (0.16 + 1 + 0.16 + 5.76)
    )


def test_a_class_without_rows_has_an_empty_histogram():
    found = weight_histogram([0.5, 0.7], ["a", "b"], THREE, classes=list("abc"))
    assert_array_equal(found.shares.sum(axis=1), [1, 1, 0])


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
def test_the_calibration_curve_is_scikit_learns(strategy):
    rng = np.random.default_rng(0)
    proba = rng.beta(0.5, 1.5, 500)
    wrong = rng.uniform(size=500) < proba**2
    found = mislabel_calibration(wrong, proba, n_bins=8, strategy=strategy)
    observed, predicted = calibration_curve(wrong, proba, n_bins=8, strategy=strategy)
    assert_allclose(found.observed, observed)
    assert_allclose(found.predicted, predicted)
    error = 0.0
    for (low, high), inside in zip(found.edges, found.counts, strict=True):
        first = low == found.edges[0, 0]
        rows = (proba >= low if first else proba > low) & (proba <= high)
        assert rows.sum() == inside
        error += abs(np.sum(wrong[rows]) - np.sum(proba[rows])) / 500
    assert_allclose(found.calibration_error, error)


def test_its_intervals_are_wilsons():
    rng = np.random.default_rng(0)
    proba = rng.uniform(size=300)
    found = mislabel_calibration(rng.uniform(size=300) < proba, proba)
    for share, n, ends in zip(found.observed, found.counts, found.interval.T, strict=True):
        exact = binomtest(round(share * n), n).proportion_ci(method="wilson")
        assert_allclose(ends, exact, atol=1e-5)


def test_right_probabilities_are_calibrated_and_shifted_ones_are_not():
    rng = np.random.default_rng(0)
    proba = rng.uniform(0, 0.8, 50_000)
    wrong = rng.uniform(size=proba.size) < proba
    assert mislabel_calibration(wrong, proba).calibration_error < 0.01
    assert_allclose(mislabel_calibration(wrong, proba + 0.2).calibration_error, 0.2, atol=0.01)


def test_one_probability_for_all_is_one_bin():
    found = mislabel_calibration([True, False], [0.5, 0.5], strategy="quantile")
    assert_array_equal(found.counts, [2])
    assert found.calibration_error == 0


def test_labels_in_place_of_errors_are_refused():
    with pytest.raises(ValueError, match="y_noisy != y_true"):
        mislabel_calibration(["a", "b"], [0.1, 0.2])


def test_the_curves_go_through_the_fitted_classifier():
    X, y, _ = sample(400)
    X_test, _, y_test = sample(1000, seed=1)
    clf = ImportanceReweightingClassifier(posterior="probabilistic", noise_rates=RATES).fit(X, y)
    before = clf.sample_weight_.copy()
    positive, negative = rate_sensitivity(clf, X, y, X_test, y_test, grid=[-0.1, 0.1])
    assert (positive.name, positive.label, negative.name) == ("rho_pos", 1, "rho_neg")
    for curve, rate in ((positive, 0.3), (negative, 0.1)):
        assert_allclose(curve.rates, [rate - 0.1, rate, rate + 0.1], atol=1e-12)
        at = int(np.flatnonzero(curve.rates == curve.estimate)[0])
        assert curve.scores[at] == clf.score(X_test, y_test)
        assert curve.effective_sample_sizes[at] == clf.effective_sample_size_
        assert curve.mean_weights[at] == clf.sample_weight_.mean()
    assert clf.noise_rates is RATES
    assert_array_equal(clf.sample_weight_, before)


def test_a_point_of_the_curve_is_a_weighted_fit_with_that_rate():
    X, y, _ = sample(400)
    X_test, _, y_test = sample(1000, seed=1)
    model = LogisticRegression()
    clf = ImportanceReweightingClassifier(model, posterior=Oracle(), noise_rates=RATES).fit(X, y)
    (curve,) = rate_sensitivity(
        clf, X, y, X_test, y_test, grid=[0.2], labels=[0], scoring="balanced_accuracy"
    )
    given = Oracle().fit(X, y).predict_proba(X)[np.arange(400), y]
    beta = importance_weights(given, y, NoiseRates(positive=0.3, negative=curve.rates[-1]))
    by_hand = LogisticRegression().fit(X, y, sample_weight=beta)
    assert_allclose(curve.rates[-1], 0.3)
    assert_allclose(curve.scores[-1], balanced_accuracy_score(y_test, by_hand.predict(X_test)))
    assert_allclose(curve.mean_weights[-1], beta.mean())
    assert_allclose(curve.effective_sample_sizes[-1], beta.sum() ** 2 / (beta**2).sum())


def test_with_the_true_posterior_the_mean_weight_is_one_up_to_the_true_rates_and_no_further():
    X, y, _ = sample(20_000)
    clf = ImportanceReweightingClassifier(posterior=Oracle(), noise_rates=RATES).fit(X, y)
    grid = [-0.2, -0.1, 0.15, 0.3]
    for curve in rate_sensitivity(clf, X, y, X[:100], y[:100], grid=grid):
        up_to = curve.rates <= curve.estimate
        assert_allclose(curve.mean_weights[up_to], 1, atol=0.02)
        assert (curve.mean_weights[~up_to] > 1.05).all()


def test_rates_end_at_zero_and_where_the_labels_would_say_nothing():
    X, y, _ = sample(200)
    clf = ImportanceReweightingClassifier(posterior=Oracle(), noise_rates=RATES).fit(X, y)
    positive, negative = rate_sensitivity(clf, X, y, X, y, grid=[-0.5, -0.4, 0.5, 0.7])
    assert_allclose(positive.rates, [0, 0.3, 0.8])
    assert_allclose(negative.rates, [0, 0.1, 0.6])


def test_of_three_classes_flips_keep_their_proportions():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, 600)
    X = rng.normal(np.array([[0, 0], [4, 0], [0, 4]])[codes], 1.0)
    y = flip_labels(np.array(list("abc"))[codes], THREE, random_state=0)
    clf = ImportanceReweightingClassifier(posterior="probabilistic", noise_rates=THREE).fit(X, y)
    (curve,) = rate_sensitivity(clf, X, y, X, y, grid=[0.1], labels=["b"])
    varied = [[0.8, 0.15, 0.05], [0.4 / 3, 0.6, 0.8 / 3], [0, 0.1, 0.9]]
    again = ImportanceReweightingClassifier(posterior="probabilistic", noise_rates=varied).fit(X, y)
    assert_allclose(curve.rates, [0.3, 0.4])
    assert_allclose(curve.mean_weights, [clf.sample_weight_.mean(), again.sample_weight_.mean()])
    assert len(rate_sensitivity(clf, X, y, X, y, grid=[])) == 3


def test_rates_that_the_fit_refuses_leave_a_gap():
    X = np.linspace(0, 1, 40)[:, None]
    y = np.tile([0, 0, 0, 1], 10)  # P(noisy=1 | x) is 0.25 everywhere
    rates = NoiseRates(positive=0.3, negative=0.1)
    clf = ImportanceReweightingClassifier(posterior="probabilistic", noise_rates=rates).fit(X, y)
    _, negative = rate_sensitivity(clf, X, y, X, y, grid=[0.3])
    assert np.isfinite(negative.scores[0])
    assert np.isnan([negative.scores[1], negative.mean_weights[1]]).all()


def test_noisy_test_labels_are_scored_with_a_clean_scorer():
    X, y, _ = sample(2000)
    X_test, y_test_noisy, y_test = sample(4000, seed=1)
    clf = ImportanceReweightingClassifier(posterior="probabilistic", noise_rates=RATES).fit(X, y)
    scoring = make_clean_scorer("accuracy", RATES)
    (noisy,) = rate_sensitivity(
        clf, X, y, X_test, y_test_noisy, scoring=scoring, grid=[0.1], labels=[1]
    )
    (clean,) = rate_sensitivity(clf, X, y, X_test, y_test, grid=[0.1], labels=[1])
    assert_allclose(noisy.scores, clean.scores, atol=0.05)


def test_only_what_trains_with_rates_has_a_sensitivity():
    X, y, _ = sample(100)
    with pytest.raises(TypeError, match="sample_weight_"):
        rate_sensitivity(LogisticRegression().fit(X, y), X, y, X, y)
    audit = LabelAudit(noise_rates=RATES, random_state=0).fit(X, y)
    with pytest.raises(TypeError, match="sample_weight_"):
        rate_sensitivity(audit, X, y, X, y)
    clf = ImportanceReweightingClassifier(posterior="probabilistic", noise_rates=RATES).fit(X, y)
    with pytest.raises(ValueError, match="finite numbers"):
        rate_sensitivity(clf, X, y, X, y, grid=[np.nan])
