"""Theorem 4: the rates are the smallest noisy posteriors."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.test_noise import many_classes, noise_rates, random_noise
from unflip import LabelNoiseWarning, NoiseRates, TransitionMatrix, flip_labels
from unflip.noise_rates import MinimumRates, estimate_rates, make_rates
from unflip.posterior import KernelDensityPosterior


@given(noise_rates(most=0.9), st.integers(0, 1000))
def test_the_true_posterior_has_the_rates_as_its_minimum(rates, seed):
    clean = np.random.default_rng(seed).uniform(size=50)
    clean[:2] = 0, 1  # some row surely belongs to each class
    noisy = np.clip(rates.noisy_posterior(clean), 0, 1)
    estimate = MinimumRates().fit_posterior(np.column_stack([1 - noisy, noisy]), [0, 1] * 25)
    np.testing.assert_allclose(estimate.rates_.both(), rates.both(), atol=1e-12)


def test_the_rates_are_found_where_the_classes_are_apart():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(3000, 2))
    rates = NoiseRates(positive=0.3, negative=0.1)
    y = flip_labels(X.sum(axis=1) > 1, rates, random_state=0)
    estimated = MinimumRates("kde").fit(X, y).rates_
    np.testing.assert_allclose(estimated.both(), rates.both(), atol=0.05)


def test_a_quantile_is_numpys_and_never_below_the_minimum():
    rng = np.random.default_rng(0)
    posterior = rng.dirichlet([1, 1], size=200)
    y = rng.integers(0, 2, 200)
    for quantile in (0.0, 0.03, 0.2):
        rates = MinimumRates(quantile=quantile).fit_posterior(posterior, y).rates_
        expected = np.quantile(posterior, quantile, axis=0, method="inverted_cdf")
        np.testing.assert_allclose(rates.both(), expected)
    minimum = MinimumRates().fit_posterior(posterior, y).rates_
    assert minimum.both() == tuple(posterior.min(axis=0))


def test_weights_are_repetitions_and_rows_of_weight_zero_do_not_count():
    rng = np.random.default_rng(1)
    posterior, y = rng.dirichlet([1, 1], size=100), rng.integers(0, 2, 100)
    weight = rng.integers(0, 4, 100)
    weighted = MinimumRates(quantile=0.1).fit_posterior(posterior, y, weight)
    repeated = MinimumRates(quantile=0.1).fit_posterior(
        posterior.repeat(weight, axis=0), y.repeat(weight)
    )
    np.testing.assert_allclose(weighted.rates_.both(), repeated.rates_.both())
    lowest = int(np.argmin(posterior[:, 1]))
    without = np.ones(100)
    without[lowest] = 0
    assert (
        MinimumRates().fit_posterior(posterior, y, without).rates_.negative > posterior[lowest, 1]
    )


def test_swapping_the_labels_swaps_the_rates():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(300, 2))
    y = (X[:, 0] + rng.normal(size=300) > 0).astype(int)
    one = MinimumRates("kde").fit(X, y).rates_
    other = MinimumRates("kde").fit(X, 1 - y).rates_
    np.testing.assert_allclose(one.both(), other.swapped().both())


def test_rates_that_leave_no_information_are_scaled_back_with_a_warning():
    posterior = np.full((20, 2), 0.5)
    with pytest.warns(UserWarning, match="scaled back"):
        rates = MinimumRates().fit_posterior(posterior, [0, 1] * 10).rates_
    assert sum(rates.both()) == pytest.approx(0.95)


def test_a_warning_of_the_rates_points_to_the_line_that_asked_for_them():
    estimator, X, y = MinimumRates(cv=None), np.zeros((20, 1)), [0, 1] * 10
    for ask in (
        lambda: estimator.fit(X, y),
        lambda: estimator.fit_posterior(np.full((20, 2), 0.5), y),
    ):
        with pytest.warns(LabelNoiseWarning) as caught:
            ask()
        assert [warning.filename for warning in caught] == [__file__]


def test_cross_fitting_is_used_when_asked_for():
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(200, 8)), np.tile([0, 1], 100)  # labels without any signal
    in_sample = MinimumRates("kde").fit(X, y).rates_  # a row's own label dominates
    cross_fitted = MinimumRates("kde", quantile=0.2, cv=5, random_state=0).fit(X, y).rates_
    assert max(in_sample.both()) < 0.1
    assert min(cross_fitted.both()) > 0.1


@pytest.mark.parametrize(
    ("estimator", "posterior", "y", "message"),
    [
        (MinimumRates(quantile=0.5), np.full((4, 2), 0.5), [0, 1, 0, 1], r"quantile must lie in"),
        (MinimumRates(), np.full((4, 3), 0.5), [0, 1, 0, 1], r"shape \(4, 3\), expected \(4, 2\)"),
        (MinimumRates(), np.full((4, 2), np.nan), [0, 1, 0, 1], "NaN or infinity"),
        (MinimumRates(), np.full((4, 2), 0.5), [1, 1, 1, 1], "one class only"),
        (MinimumRates(), np.full((3, 2), 0.5), [0, 1, 2], r"shape \(3, 2\), expected \(3, 3\)"),
        (MinimumRates(quantile=0.5), np.full((3, 3), 0.5), [0, 1, 2], "quantile must lie in"),
    ],
)
def test_bad_input_is_named(estimator, posterior, y, message):
    with pytest.raises(ValueError, match=message):
        estimator.fit_posterior(posterior, y)
    assert not hasattr(estimator, "rates_")


def test_fewer_than_ten_rows_are_refused():
    with pytest.raises(ValueError, match="n_samples=9"):
        MinimumRates().fit(np.arange(9.0)[:, None], [0, 1, 0, 1, 0, 1, 0, 1, 0])


def test_aliases_and_instances():
    assert make_rates("minimum").quantile == 0.0
    assert make_rates("quantile").quantile == 0.05
    mine = MinimumRates("kde")
    assert make_rates(mine) is not mine
    with pytest.raises(ValueError, match="noise_rates='median'"):
        make_rates("median")
    with pytest.raises(TypeError, match="NoiseRates"):
        make_rates((0.3, 0.1))


# --- more than two classes


@given(many_classes, st.integers(0, 100))
def test_the_true_posterior_has_the_matrix_at_its_anchor_points(case, seed):
    noise = random_noise(*case)
    k = noise.n_classes
    clean = np.random.default_rng(seed).dirichlet(np.ones(k), size=20 * k)
    clean[:k] = np.eye(k)  # some row surely belongs to each class
    fitted = MinimumRates().fit_posterior(noise.noisy_posterior(clean), list(range(k)) * 20)
    np.testing.assert_allclose(fitted.transition_matrix_, noise.matrix, atol=1e-9)
    assert isinstance(fitted.rates_, TransitionMatrix if k > 2 else NoiseRates)


def test_a_quantile_averages_the_rows_around_it():
    rng = np.random.default_rng(0)
    posterior, y = rng.dirichlet([1, 1, 1], size=300), np.repeat([0, 1, 2], [200, 80, 20])
    matrix = MinimumRates(quantile=0.05).fit_posterior(posterior, y).transition_matrix_
    for k, n_anchors in enumerate([20, 8, 2]):
        anchors = np.argsort(-posterior[:, k])[:n_anchors]
        np.testing.assert_allclose(matrix[k], posterior[anchors].mean(axis=0))


def test_weights_are_repetitions_with_many_classes():
    rng = np.random.default_rng(1)
    posterior, y = rng.dirichlet([1, 1, 1], size=120), np.arange(120) % 3
    weight = rng.integers(0, 4, 120)
    weighted = MinimumRates(quantile=0.1).fit_posterior(posterior, y, weight)
    repeated = MinimumRates(quantile=0.1).fit_posterior(
        posterior.repeat(weight, axis=0), y.repeat(weight)
    )
    np.testing.assert_allclose(weighted.transition_matrix_, repeated.transition_matrix_)


def test_the_matrix_is_found_where_three_classes_are_apart():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(6000, 2))
    y = np.array(["ape", "bee", "cat"])[(3 * X[:, 0]).astype(int)]
    noise = TransitionMatrix([[0.7, 0.3, 0.0], [0.1, 0.8, 0.1], [0.0, 0.2, 0.8]])
    fitted = MinimumRates(KernelDensityPosterior(0.2), quantile=0.05)
    fitted.fit(X, flip_labels(y, noise, random_state=0))
    assert fitted.classes_.tolist() == ["ape", "bee", "cat"]
    assert np.abs(fitted.transition_matrix_ - noise.matrix).mean() < 0.03


def test_a_matrix_that_leaves_no_information_is_mixed_with_the_identity_with_a_warning():
    posterior = np.full((30, 3), 1 / 3)
    with pytest.warns(UserWarning, match="identity"):
        noise = MinimumRates().fit_posterior(posterior, [0, 1, 2] * 10).rates_
    assert noise.information_left == pytest.approx(0.05)
    np.testing.assert_allclose(noise.matrix, TransitionMatrix.uniform(3, 0.95 * 2 / 3).matrix)


def test_a_class_of_which_nothing_is_seen_is_taken_as_clean():
    posterior = np.array([[0.8, 0.2, 0.0], [0.1, 0.9, 0.0], [0.5, 0.5, 0.0]] * 4)
    matrix = MinimumRates().fit_posterior(posterior, [0, 1, 2] * 4).transition_matrix_
    np.testing.assert_allclose(matrix, [[0.8, 0.2, 0], [0.1, 0.9, 0], [0, 0, 1]])


def test_known_rates_come_back_in_the_form_of_their_number_of_classes():
    X, two, three = np.zeros((12, 1)), [0, 1] * 6, [0, 1, 2] * 4
    rates = NoiseRates(0.3, 0.1)
    for given_form in (rates, rates.transition_matrix, TransitionMatrix(rates.transition_matrix)):
        assert estimate_rates(given_form, X, two) == rates
    for given_form in (np.eye(3), np.eye(3).tolist(), TransitionMatrix(np.eye(3))):
        assert estimate_rates(given_form, X, three) == TransitionMatrix(np.eye(3))
    with pytest.raises(ValueError, match="2 classes"):
        estimate_rates(NoiseRates(None, 0.1), X, three)


def test_every_estimate_has_a_transition_matrix():
    posterior = np.random.default_rng(0).dirichlet([1, 1], size=50)
    fitted = MinimumRates(quantile=0.1).fit_posterior(posterior, [0, 1] * 25)
    np.testing.assert_array_equal(fitted.transition_matrix_, fitted.rates_.transition_matrix)
    assert not hasattr(MinimumRates(), "transition_matrix_")
