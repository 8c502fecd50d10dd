"""Selective classification: golden numbers, brute force, bounds, invariances, simulations."""

import numpy as np
import pytest
from hypothesis import given
from scipy.stats import beta, norm

from tests.test_noise import many_classes, random_noise
from unflip import NoiseRates, TransitionMatrix, flip_labels
from unflip.noise_rates import SelectiveRates, make_rates

# labels in the order of falling score; 1 is the class
GOLDEN = np.array([1, 1, 0, 1, 1, 1, 0, 0, 1, 0])


def two_columns(positive) -> np.ndarray:
    return np.column_stack([1 - np.asarray(positive), positive])


def gaussians(n: int, distance: float, rates, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """The true P(noisy=+1 | x) of two Gaussians so far apart, and noisy labels."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    x = rng.normal(distance * y, 1.0)
    clean = norm.pdf(x, distance) / (norm.pdf(x) + norm.pdf(x, distance))
    noise = NoiseRates(*rates)
    return noise.noisy_posterior(clean), flip_labels(y, noise, random_state=seed)


def lower_limit(successes: int, n: int, delta: float) -> float:
    return float(beta.ppf(delta, successes, n - successes + 1)) if successes else 0.0


@pytest.mark.parametrize(("repeat", "n_selected"), [(1, 2), (40, 80), (100, 200)])
def test_the_published_rule_takes_the_highest_share_and_of_equals_the_most_rows(repeat, n_selected):
    scores, y = np.linspace(0.9, 0.1, 10), GOLDEN
    scores, y = scores.repeat(repeat), y.repeat(repeat)  # the first two distinct scores are pure
    fitted = SelectiveRates(delta=None).fit_posterior(two_columns(scores), y)
    assert fitted.rates_.positive == 0
    assert fitted.n_selected_[1] == n_selected
    assert np.isnan(fitted.upper_bounds_).all()


def test_the_published_rule_leaves_out_selections_of_fewer_than_one_row_in_200():
    scores, y = np.linspace(1, 0, 1000), np.tile([0, 1], 500)
    y[:8] = [1, 1, 1, 1, 0, 1, 1, 0]  # the best share of at least five rows is 6 of 7
    y[-1] = 0
    fitted = SelectiveRates(delta=None).fit_posterior(two_columns(scores), y)
    assert fitted.n_selected_[1] == 7
    assert fitted.rates_.positive == pytest.approx(1 / 7)


def test_the_published_rule_is_too_low_and_the_limits_mend_it():
    rates, published, ours = (0.3, 0.1), [], []
    for seed in range(20):
        scores, y = gaussians(1000, 3.0, rates, seed)
        for delta, found in ((None, published), (0.1, ours)):
            fitted = SelectiveRates(delta=delta).fit_posterior(two_columns(scores), y)
            found.append(fitted.rates_.both())
    assert (np.mean(published, axis=0) < [0.2, 0.07]).all()
    np.testing.assert_allclose(np.mean(ours, axis=0), rates, atol=0.02)


def test_the_rates_of_a_monotone_score_are_those_of_the_posterior():
    scores, y = gaussians(2000, 2.0, (0.3, 0.1))
    plain = SelectiveRates().fit_posterior(two_columns(scores), y)
    curved = SelectiveRates().fit_posterior(two_columns(scores**5), y)
    assert plain.rates_ == curved.rates_


@pytest.mark.parametrize("delta", [None, 0.1])
def test_swapping_the_labels_swaps_the_rates(delta):
    scores, y = gaussians(500, 2.0, (0.3, 0.1))
    one = SelectiveRates(delta=delta).fit_posterior(two_columns(scores), y)
    other = SelectiveRates(delta=delta).fit_posterior(two_columns(scores)[:, ::-1], 1 - y)
    assert one.rates_ == other.rates_.swapped()
    np.testing.assert_array_equal(one.n_selected_, other.n_selected_[::-1])
    np.testing.assert_array_equal(one.upper_bounds_, other.upper_bounds_[::-1])


@pytest.mark.parametrize("delta", [None, 0.1])
def test_weights_are_repetitions(delta):
    rng = np.random.default_rng(1)
    clean = rng.dirichlet([0.2, 0.2, 0.2], size=300)
    posterior = TransitionMatrix.uniform(3, 0.2).noisy_posterior(clean).round(2)  # with ties
    y = np.array([rng.choice(3, p=row / row.sum()) for row in posterior])
    weight = rng.integers(0, 4, 300)
    weighted = SelectiveRates(delta=delta).fit_posterior(posterior, y, weight)
    repeated = SelectiveRates(delta=delta).fit_posterior(
        posterior.repeat(weight, axis=0), y.repeat(weight)
    )
    np.testing.assert_allclose(weighted.transition_matrix_, repeated.transition_matrix_)
    np.testing.assert_allclose(weighted.upper_bounds_, repeated.upper_bounds_)


def test_each_row_of_the_matrix_is_the_labels_of_the_selected_rows():
    rng = np.random.default_rng(0)
    noise = TransitionMatrix.pair_flip(3, 0.2)
    posterior = noise.noisy_posterior(rng.dirichlet([0.2, 0.2, 0.2], size=600))
    y = np.array([rng.choice(3, p=row) for row in posterior])
    fitted = SelectiveRates().fit_posterior(posterior, y)
    for k in range(3):
        best = (-1.0, 0)
        falling = np.argsort(-posterior[:, k])
        for n in range(1, 601):
            successes = int((y[falling[:n]] == k).sum())
            best = max(best, (lower_limit(successes, n, 0.1 / 600), n))
        shares = np.bincount(y[falling[: best[1]]], minlength=3) / best[1]
        np.testing.assert_allclose(fitted.transition_matrix_[k], shares)
        assert fitted.n_selected_[k] == best[1]
        assert fitted.upper_bounds_[k] == pytest.approx(1 - best[0])


@pytest.mark.parametrize("rates", [(0.3, 0.1), (0.0, 0.4), (0.2, 0.2), (0.0, 0.0)])
def test_the_rates_are_found_where_the_classes_are_apart(rates):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 20_000)
    X = rng.normal(3.5 * y[:, None], 1.0, (20_000, 1))
    y_noisy = flip_labels(y, NoiseRates(*rates), random_state=0)
    estimated = SelectiveRates(random_state=0).fit(X, y_noisy).rates_
    np.testing.assert_allclose(estimated.both(), rates, atol=0.02)


@pytest.mark.parametrize("n_classes", [3, pytest.param(10, marks=pytest.mark.slow)])
def test_the_matrix_is_found_where_the_classes_are_apart(n_classes):
    rng = np.random.default_rng(0)
    y = rng.integers(0, n_classes, 8000)
    X = rng.normal(4 * np.eye(n_classes)[y])
    noise = random_noise(n_classes, 0, least=0.6)
    fitted = SelectiveRates(random_state=0).fit(X, flip_labels(y, noise, random_state=0))
    assert np.abs(fitted.transition_matrix_ - noise.matrix).mean() < 0.02


def test_no_class_is_flipped_more_often_than_the_bound_at_its_confidence():
    """One-sided coverage over 100 samples of classes that overlap, where the estimate is off."""
    covered = []
    for seed in range(100):
        scores, y = gaussians(400, 1.5, (0.3, 0.1), seed)
        bounds = SelectiveRates(delta=0.2).fit_posterior(two_columns(scores), y).upper_bounds_
        covered.append(bounds >= [0.1, 0.3])
    assert (np.mean(covered, axis=0) >= 0.8).all()


def test_the_bound_closes_in_on_the_rates():
    scores, y = gaussians(20_000, 4.0, (0.3, 0.1))
    bounds = SelectiveRates().fit_posterior(two_columns(scores), y).upper_bounds_
    assert (bounds >= [0.1, 0.3]).all()
    np.testing.assert_allclose(bounds, [0.1, 0.3], atol=0.04)


def test_clean_and_separable_classes_have_no_noise():
    scores, y = np.linspace(0, 1, 2000), np.repeat(["no", "yes"], 1000)
    fitted = SelectiveRates().fit_posterior(two_columns(scores), y)
    assert fitted.rates_.both() == (0, 0)
    np.testing.assert_array_equal(fitted.n_selected_, [1000, 1000])


def test_a_class_without_any_weight_is_taken_as_clean():
    posterior = np.random.default_rng(0).dirichlet([1, 1, 1], size=90)
    y = posterior.argmax(axis=1)
    fitted = SelectiveRates().fit_posterior(posterior, y, np.where(y == 1, 0, 1))
    np.testing.assert_array_equal(fitted.transition_matrix_, np.eye(3))


def test_labels_without_information_are_warned_of():
    with pytest.warns(UserWarning, match="mixed with the identity"):
        fitted = SelectiveRates().fit_posterior(np.full((20, 2), 0.5), [0, 1] * 10)
    assert sum(fitted.rates_.both()) == pytest.approx(0.95)


@pytest.mark.parametrize("delta", [0.0, 1, -0.1])
def test_bad_input_is_named(delta):
    estimator = SelectiveRates(delta=delta)
    with pytest.raises(ValueError, match="delta must"):
        estimator.fit_posterior(two_columns([0.2, 0.8, 0.4, 0.6]), [0, 1, 0, 1])
    assert not any(name.endswith("_") for name in vars(estimator))


def test_folds_are_no_more_than_the_rarest_class_has_rows():
    X, y = np.linspace(0, 1, 30)[:, None], np.repeat([0, 1], [27, 3])
    few = SelectiveRates(random_state=0).fit(X, y)
    three = SelectiveRates(cv=3, random_state=0).fit(X, y)
    assert few.rates_ == three.rates_
    with pytest.raises(ValueError, match="cv=2"):
        SelectiveRates().fit(X, np.repeat([0, 1], [29, 1]))


@given(many_classes)
def test_the_true_posterior_of_a_large_sample_has_the_matrix(case):
    """One anchor atom per class, as large weights: the shares are the probabilities."""
    noise = random_noise(*case, least=0.6)
    k = noise.n_classes
    posterior = noise.matrix.repeat(k, axis=0)  # P(noisy | x) of k rows that surely are of class i
    y, weight = np.tile(np.arange(k), k), np.rint(1e12 * noise.matrix.ravel())
    weight[0] += 1  # weights with a common factor would stand for fewer rows
    fitted = SelectiveRates().fit_posterior(posterior, y, weight)
    np.testing.assert_allclose(fitted.transition_matrix_, noise.matrix, atol=1e-9)


def test_it_has_a_name():
    assert isinstance(make_rates("selective"), SelectiveRates)
