"""Dual-T and the confident joint: golden numbers, brute force, cleanlab, simulations."""

import numpy as np
import pytest
from hypothesis import given
from scipy.stats import norm

from tests.noise_rates.test_selective import gaussians, two_columns
from tests.test_noise import many_classes, random_noise
from unflip import flip_labels
from unflip.noise_rates import ConfidentJointRates, DualTRates, make_rates

# P(noisy=+1 | x): the first four labelled +, the last four -
POSITIVE = np.array([0.9, 0.8, 0.6, 0.3, 0.35, 0.1, 0.2, 0.7])
LABELS = np.repeat([1, -1], 4)

ESTIMATORS = [DualTRates(), DualTRates(hardened=False), ConfidentJointRates()]


def noisy_sample(n_classes: int, n: int = 400, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Made-up posteriors and labels drawn from them."""
    rng = np.random.default_rng(seed)
    posterior = random_noise(n_classes, seed).noisy_posterior(
        rng.dirichlet(np.full(n_classes, 0.3), size=n)
    )
    return posterior, np.array([rng.choice(n_classes, p=row) for row in posterior])


# --- both


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_swapping_the_labels_swaps_the_rates(estimator):
    scores, y = gaussians(500, 2.0, (0.3, 0.1))
    one = estimator.fit_posterior(two_columns(scores), y).rates_
    other = estimator.fit_posterior(two_columns(scores)[:, ::-1], 1 - y).rates_
    np.testing.assert_allclose(one.both(), other.swapped().both())


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("n_classes", [2, 4])
def test_weights_are_repetitions(estimator, n_classes):
    posterior, y = noisy_sample(n_classes)
    weight = np.random.default_rng(1).integers(0, 4, y.size)
    weighted = estimator.fit_posterior(posterior, y, weight).transition_matrix_
    repeated = estimator.fit_posterior(posterior.repeat(weight, axis=0), y.repeat(weight))
    np.testing.assert_allclose(weighted, repeated.transition_matrix_)


@pytest.mark.parametrize("estimator", [DualTRates(), ConfidentJointRates()])
@pytest.mark.parametrize("rates", [(0.3, 0.1), (0.0, 0.4), (0.2, 0.2), (0.0, 0.0)])
def test_the_rates_are_found_where_the_posterior_is_right_and_the_classes_apart(estimator, rates):
    scores, y = gaussians(20_000, 5.0, rates)
    estimated = estimator.fit_posterior(two_columns(scores), y).rates_
    np.testing.assert_allclose(estimated.both(), rates, atol=0.02)


@pytest.mark.parametrize("estimator", [DualTRates(), ConfidentJointRates()])
@pytest.mark.parametrize("n_classes", [3, pytest.param(10, marks=pytest.mark.slow)])
def test_the_matrix_is_found_where_the_classes_are_well_apart(estimator, n_classes):
    rng = np.random.default_rng(0)
    y = rng.integers(0, n_classes, 8000)
    X = rng.normal(5 * np.eye(n_classes)[y])
    noise = random_noise(n_classes, 0, least=0.6)
    fitted = estimator.set_params(random_state=0).fit(X, flip_labels(y, noise, random_state=0))
    assert np.abs(fitted.transition_matrix_ - noise.matrix).mean() < 0.02


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_a_class_without_any_weight_leaves_the_others_as_they_are(estimator):
    posterior, y = noisy_sample(3)
    posterior[:, 1] = 0
    posterior /= posterior.sum(axis=1, keepdims=True)
    fitted = estimator.fit_posterior(posterior, y, np.where(y == 1, 0, 1))
    kept = y != 1
    two = estimator.__class__(**estimator.get_params()).fit_posterior(
        posterior[kept][:, [0, 2]], y[kept]
    )
    np.testing.assert_allclose(
        fitted.transition_matrix_[np.ix_([0, 2], [0, 2])], two.transition_matrix_
    )


@pytest.mark.filterwarnings("ignore::UserWarning")  # so few rows have next to no information
@pytest.mark.parametrize("estimator", [DualTRates(), ConfidentJointRates()])
def test_folds_are_no_more_than_the_rarest_class_has_rows(estimator):
    X, y = np.linspace(0, 1, 30)[:, None], np.repeat([0, 1], [27, 3])
    few = estimator.set_params(random_state=0).fit(X, y).rates_
    assert few == estimator.set_params(cv=3).fit(X, y).rates_


def test_they_have_names():
    assert make_rates("dual_t").hardened
    assert isinstance(make_rates("confident_joint"), ConfidentJointRates)


# --- dual-T


@given(many_classes)
def test_the_published_form_has_the_noise_twice_where_the_posterior_is_right(case):
    noise = random_noise(*case, least=0.8)  # even twice, it leaves information
    k = noise.n_classes
    posterior = noise.matrix.repeat(k, axis=0)  # k rows that surely are of class i
    y, weight = np.tile(np.arange(k), k), noise.matrix.ravel()
    published = DualTRates(hardened=False, quantile=0.0).fit_posterior(posterior, y, weight)
    np.testing.assert_allclose(published.transition_matrix_, noise.matrix @ noise.matrix, atol=1e-9)
    hardened = DualTRates().fit_posterior(posterior, y, weight)
    np.testing.assert_allclose(hardened.transition_matrix_, noise.matrix, atol=1e-9)


@pytest.mark.parametrize("hardened", [True, False])
def test_a_class_that_is_never_predicted_has_its_anchor_as_its_row(hardened):
    positive = np.linspace(0.05, 0.45, 50)
    y = (np.arange(50) % 5 == 0).astype(int)
    fitted = DualTRates(hardened=hardened, quantile=0.0).fit_posterior(two_columns(positive), y)
    anchors = np.array([[0.95, 0.05], [0.55, 0.45]])
    labels = np.array([[0.8, 0.2], anchors[1]])
    expected = labels if hardened else anchors @ labels
    np.testing.assert_allclose(fitted.transition_matrix_, expected)


@pytest.mark.parametrize("quantile", [-0.1, 1.0])
def test_a_bad_quantile_is_named(quantile):
    estimator = DualTRates(quantile=quantile)
    with pytest.raises(ValueError, match="quantile must"):
        estimator.fit_posterior(two_columns(POSITIVE), LABELS)
    assert not hasattr(estimator, "rates_")


# --- the confident joint


def test_overlap_of_clean_classes_is_taken_for_noise():
    """The known bias of this estimate, by its formula in the population and in a sample."""
    x = np.linspace(-8, 9.5, 200_001)
    negative, positive = norm.pdf(x), norm.pdf(x, 1.5)
    posterior = positive / (negative + positive)
    threshold = np.sum(posterior * positive) / np.sum(positive)  # the same for both, by symmetry
    wrong, right = (np.sum(density[posterior >= threshold]) for density in (negative, positive))
    overlap = wrong / (wrong + right)
    assert overlap > 0.06
    scores, y = gaussians(20_000, 1.5, (0.0, 0.0))
    rates = ConfidentJointRates().fit_posterior(two_columns(scores), y).rates_
    np.testing.assert_allclose(rates.both(), (overlap, overlap), atol=0.01)
