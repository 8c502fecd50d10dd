"""Unbiased losses and label-dependent costs, against closed forms and simulations."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.linear_model import Ridge

from tests.test_noise import noise_rates
from unflip import NoiseRates, flip_labels
from unflip.baselines import LabelDependentCostClassifier, UnbiasedLoss, UnbiasedLossClassifier
from unflip.learners import KernelClassifier, LinearClassifier
from unflip.losses import LOSSES

RATES = NoiseRates(positive=0.3, negative=0.1)
GRID = np.linspace(-1.95, 1.95, 41)


@pytest.fixture(scope="module")
def data():
    X, y = make_classification(
        600, n_features=5, n_informative=3, n_redundant=0, flip_y=0.05, random_state=0
    )
    return X, y, flip_labels(y, RATES, random_state=0)


# --- the loss


@pytest.mark.parametrize("name", LOSSES)
@given(rates=noise_rates(most=0.8), label=st.sampled_from([-1.0, 1.0]))
def test_the_mean_over_noisy_labels_is_the_clean_loss(name, rates, label):
    loss, unbiased = LOSSES[name], UnbiasedLoss(name, rates)
    wrong = rates.positive if label == 1 else rates.negative
    y = np.full_like(GRID, label)
    mean = (1 - wrong) * unbiased.value(GRID, y) + wrong * unbiased.value(GRID, -y)
    np.testing.assert_allclose(mean, loss.value(GRID, y), rtol=1e-8, atol=1e-8)


def test_golden_values():
    t = np.array([0.7, 0.7])
    y = np.array([1.0, -1.0])
    np.testing.assert_allclose(
        UnbiasedLoss("logistic", RATES).value(t, y), [0.053186049, 1.219852716], atol=1e-9
    )
    np.testing.assert_allclose(
        UnbiasedLoss("hinge", RATES).value(t, y), [-0.4, 1.933333], atol=1e-6
    )


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("label", [-1.0, 1.0])
def test_derivatives_are_finite_differences_beyond_the_reach_too(name, label):
    unbiased, step = UnbiasedLoss(name, RATES), 1e-6
    t = np.linspace(-5.013, 5.017, 300)
    y = np.full_like(t, label)
    slope = (unbiased.value(t + step, y) - unbiased.value(t - step, y)) / (2 * step)
    np.testing.assert_allclose(unbiased.derivative(t, y), slope, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", LOSSES)
def test_the_convex_flag_is_true(name):
    unbiased = UnbiasedLoss(name, RATES)
    t = np.linspace(-6, 6, 1201)
    values = [unbiased.value(t, np.full_like(t, label)) for label in (-1.0, 1.0)]
    least = min(((v[:-2] + v[2:]) / 2 - v[1:-1]).min() for v in values)
    assert (least >= -1e-10) == unbiased.convex
    assert unbiased.convex == (name in {"logistic", "squared", "modified_huber", "unhinged"})


def test_closed_forms_of_logistic_and_squared():
    positive, negative = RATES.both()
    information_left = RATES.information_left
    t = np.linspace(-4, 4, 50)
    one = np.ones_like(t)
    logistic = UnbiasedLoss("logistic", RATES)
    np.testing.assert_allclose(
        logistic.value(t, one), np.logaddexp(0, -t) - positive / information_left * t
    )
    np.testing.assert_allclose(
        logistic.value(t, -one), np.logaddexp(0, t) + negative / information_left * t
    )
    squared = UnbiasedLoss("squared", RATES)
    for label in (-1, 1):
        target = (label - (negative - positive)) / information_left
        assert np.ptp(squared.value(t, label * one) - (t - target) ** 2) < 1e-9


# --- the classifiers


def test_without_noise_both_are_the_plain_learner_to_the_bit(data):
    X, y, _ = data
    clean = NoiseRates(0.0, 0.0)
    for name in ("logistic", "hinge", "squared"):
        plain = LinearClassifier(name).fit(X, y, sample_weight=np.ones(len(y)))
        for method in (UnbiasedLossClassifier, LabelDependentCostClassifier):
            fitted = method(name, clean).fit(X, y)
            np.testing.assert_array_equal(fitted.decision_function(X), plain.decision_function(X))


def test_unbiased_least_squares_is_ridge_on_shifted_targets(data):
    X, _, y_noisy = data
    positive, negative = RATES.both()
    target = (2 * y_noisy - 1 - (negative - positive)) / RATES.information_left
    ones = np.column_stack([X, np.ones(len(X))])  # the intercept is penalised
    ridge = Ridge(alpha=1e-3 * len(X) / 2, fit_intercept=False).fit(ones, target)
    fitted = UnbiasedLossClassifier("squared", RATES, learner=LinearClassifier(tol=1e-9))
    np.testing.assert_allclose(
        fitted.fit(X, y_noisy).decision_function(X), ridge.predict(ones), atol=1e-5
    )


def test_for_a_symmetric_loss_the_two_methods_are_one(data):
    X, _, y_noisy = data
    learner = LinearClassifier(alpha=0.1, tol=1e-10)
    unbiased = UnbiasedLossClassifier("unhinged", RATES, learner=learner).fit(X, y_noisy)
    costs = LabelDependentCostClassifier("unhinged", RATES, learner=learner).fit(X, y_noisy)
    one, other = unbiased.learner_.coef_[0], costs.learner_.coef_[0]
    assert one @ other / np.linalg.norm(one) / np.linalg.norm(other) == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("method", [UnbiasedLossClassifier, LabelDependentCostClassifier])
def test_swapping_labels_and_rates_negates_the_decision(data, method):
    X, _, y_noisy = data
    one = method("logistic", RATES).fit(X, y_noisy)
    other = method("logistic", RATES.swapped()).fit(X, 1 - y_noisy)
    np.testing.assert_allclose(one.decision_function(X), -other.decision_function(X), atol=1e-3)


def test_the_weighted_noisy_error_is_an_affine_map_of_the_clean_error():
    """R_{a*, noisy}(f) = A R_clean(f) + B with B the same for every f (Theorem 9)."""
    rng = np.random.default_rng(0)
    mass, clean = rng.dirichlet(np.ones(6)), rng.uniform(size=6)
    noisy = RATES.noisy_posterior(clean)
    cost = (1 - RATES.positive + RATES.negative) / 2
    constants = []
    for code in range(64):
        decision = np.array([(code >> bit) & 1 for bit in range(6)])
        clean_error = mass @ np.where(decision, 1 - clean, clean)
        weighted = mass @ np.where(decision, cost * (1 - noisy), (1 - cost) * noisy)
        constants.append(weighted - RATES.information_left / 2 * clean_error)
    assert np.ptp(constants) < 1e-12


@pytest.mark.parametrize("pair", [(0.3, 0.1), (0.0, 0.4)])
@pytest.mark.parametrize("name", ["logistic", "squared", "hinge", "exponential", "sigmoid"])
def test_both_recover_the_clean_classifier(pair, name):
    rng = np.random.default_rng(0)
    X, X_test = rng.normal(size=(20_000, 3)), rng.normal(size=(20_000, 3))

    def labels(rows):
        posterior = 1 / (1 + np.exp(-(2 * rows[:, 0] - rows[:, 1] + 0.3)))
        return (rng.uniform(size=len(rows)) < posterior).astype(int)

    y, y_test, rates = labels(X), labels(X_test), NoiseRates(*pair)
    y_noisy = flip_labels(y, rates, random_state=0)
    clean = LinearClassifier(name).fit(X, y).score(X_test, y_test)
    unbiased = UnbiasedLossClassifier(name, rates).fit(X, y_noisy).score(X_test, y_test)
    costs = LabelDependentCostClassifier(name, rates).fit(X, y_noisy).score(X_test, y_test)
    plain = LinearClassifier(name).fit(X, y_noisy).score(X_test, y_test)
    assert unbiased > clean - 0.01
    assert costs > clean - 0.025  # consistent only for the right model: see its notes
    assert plain < clean - 0.02


def test_unbiased_probabilities_are_the_clean_ones():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40_000, 2))
    clean = 1 / (1 + np.exp(-(1.5 * X[:, 0] + 0.5)))
    y = (rng.uniform(size=len(X)) < clean).astype(int)
    fitted = UnbiasedLossClassifier("logistic", RATES).fit(X, flip_labels(y, RATES, 0))
    assert np.abs(fitted.predict_proba(X)[:, 1] - clean).mean() < 0.02
    assert not hasattr(UnbiasedLossClassifier("hinge"), "predict_proba")


def test_kernel_learners_work(data):
    X, y, y_noisy = data
    for method in (UnbiasedLossClassifier, LabelDependentCostClassifier):
        fitted = method("logistic", RATES, learner=KernelClassifier(alpha=0.02)).fit(X, y_noisy)
        assert fitted.score(X, y) > 0.8
        assert isinstance(fitted.learner_, KernelClassifier)


def test_costs_come_from_rates_from_cross_validation_or_as_given(data):
    X, _, y_noisy = data
    by_rates = LabelDependentCostClassifier(noise_rates=RATES).fit(X, y_noisy)
    assert by_rates.cost_ == pytest.approx(0.4)
    given_cost = LabelDependentCostClassifier(cost=0.4).fit(X, y_noisy)
    np.testing.assert_allclose(
        given_cost.decision_function(X), by_rates.decision_function(X), atol=1e-6
    )
    chosen = LabelDependentCostClassifier(cost="cv", random_state=0).fit(X, y_noisy)
    assert 0.05 <= chosen.cost_ <= 0.95
    assert not hasattr(chosen, "noise_rates_")


@pytest.mark.parametrize("cost", ["guess", 0.0, 1.5])
def test_impossible_costs_are_refused(data, cost):
    X, _, y_noisy = data
    with pytest.raises(ValueError, match="cost"):
        LabelDependentCostClassifier(cost=cost).fit(X, y_noisy)


@pytest.mark.slow
def test_unknown_rates_are_estimated_and_cross_validated_rates_use_the_method(data):
    X, _, y_noisy = data
    auto = UnbiasedLossClassifier().fit(X, y_noisy)
    assert auto.noise_rates_.known
    by_cv = UnbiasedLossClassifier(noise_rates="cv", random_state=0).fit(X, y_noisy)
    assert by_cv.noise_rates_.known
    again = clone(by_cv).fit(X, y_noisy)
    assert again.noise_rates_ == by_cv.noise_rates_
