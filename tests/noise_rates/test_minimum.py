"""Theorem 4: the rates are the smallest noisy posteriors."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.test_noise import noise_rates
from unflip import NoiseRates, flip_labels
from unflip.noise_rates import MinimumRates, make_rates


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
    with pytest.warns(UserWarning, match=r"sum to 1\.000.*scaled back"):
        rates = MinimumRates().fit_posterior(posterior, [0, 1] * 10).rates_
    assert sum(rates.both()) == pytest.approx(0.95)


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
        (MinimumRates(), np.full((3, 2), 0.5), [0, 1, 2], "Only binary classification"),
    ],
)
def test_bad_input_is_named(estimator, posterior, y, message):
    with pytest.raises(ValueError, match=message):
        estimator.fit_posterior(posterior, y)
    assert not hasattr(estimator, "rates_")


def test_fewer_than_ten_rows_are_refused():
    with pytest.raises(ValueError, match="n_samples=9 rows, at least 10"):
        MinimumRates().fit(np.arange(9.0)[:, None], [0, 1, 0, 1, 0, 1, 0, 1, 0])


def test_aliases_and_instances():
    assert make_rates("minimum").quantile == 0.0
    assert make_rates("quantile").quantile == 0.05
    mine = MinimumRates("kde")
    assert make_rates(mine) is not mine
    with pytest.raises(ValueError, match="noise_rates='median' is not one of"):
        make_rates("median")
    with pytest.raises(TypeError, match="NoiseRates"):
        make_rates((0.3, 0.1))
