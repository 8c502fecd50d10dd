"""Best-bin estimation: golden numbers, brute force, exact distributions, simulations."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.noise_rates.test_selective import gaussians, two_columns
from unflip import NoiseRates, flip_labels
from unflip.noise_rates import BestBinRates, make_rates


@given(st.floats(0, 0.45), st.floats(0, 0.45), st.floats(0.1, 0.9))
def test_an_anchor_atom_per_class_gives_the_rates(positive, negative, clean_prior):
    """In a large sample, all of it at atoms that surely are of a class, the margin is nothing."""
    rates = NoiseRates(positive=positive, negative=negative)
    noisy = rates.noisy_posterior([0.0, 1.0])
    mass = 1e14 * np.array([1 - clean_prior, clean_prior])
    weight = np.rint(np.concatenate([mass * (1 - noisy), mass * noisy]))
    weight[0] += 1  # weights with a common factor would stand for fewer rows
    estimate = BestBinRates().fit_posterior(two_columns(np.tile(noisy, 2)), [0, 0, 1, 1], weight)
    np.testing.assert_allclose(estimate.rates_.both(), rates.both(), atol=1e-6)
    inverse = rates.inverse(clean_prior=clean_prior)
    np.testing.assert_allclose(
        estimate.mixture_proportions_,
        (inverse.positive / (1 - inverse.negative), inverse.negative / (1 - inverse.positive)),
        atol=1e-6,
    )


def test_swapping_the_labels_swaps_the_rates():
    scores, y = gaussians(500, 2.0, (0.3, 0.1))
    one = BestBinRates().fit_posterior(two_columns(scores), y)
    other = BestBinRates().fit_posterior(two_columns(scores)[:, ::-1], 1 - y)
    np.testing.assert_allclose(one.rates_.both(), other.rates_.swapped().both())
    np.testing.assert_allclose(one.mixture_proportions_, other.mixture_proportions_[::-1])


def test_weights_are_repetitions():
    scores, y = gaussians(200, 2.0, (0.3, 0.1))
    weight = np.random.default_rng(1).integers(0, 4, 200)
    weighted = BestBinRates().fit_posterior(two_columns(scores), y, weight)
    repeated = BestBinRates().fit_posterior(two_columns(scores.repeat(weight)), y.repeat(weight))
    np.testing.assert_allclose(weighted.rates_.both(), repeated.rates_.both())


def test_clean_and_separable_classes_have_no_noise():
    scores, y = np.linspace(0, 1, 2000), np.repeat(["no", "yes"], 1000)
    assert BestBinRates().fit_posterior(two_columns(scores), y).rates_.both() == (0, 0)


@pytest.mark.parametrize("rates", [(0.3, 0.1), (0.0, 0.4), (0.2, 0.2), (0.0, 0.0)])
def test_the_rates_are_found_where_the_classes_are_apart(rates):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 20_000)
    X = rng.normal(3.5 * y[:, None], 1.0, (20_000, 1))
    y_noisy = flip_labels(y, NoiseRates(*rates), random_state=0)
    estimated = BestBinRates(random_state=0).fit(X, y_noisy).rates_
    np.testing.assert_allclose(estimated.both(), rates, atol=0.02)


def test_the_error_falls_as_the_root_of_the_rows_where_the_classes_are_apart():
    def mean_error(n: int) -> float:
        estimates = [
            BestBinRates().fit_posterior(two_columns(scores), y).rates_.both()
            for scores, y in (gaussians(n, 6.0, (0.3, 0.1), seed) for seed in range(40))
        ]
        return float(np.abs(np.subtract(estimates, (0.3, 0.1))).mean())

    assert mean_error(8000) < 0.35 * mean_error(500)  # a quarter, give or take a fifth of it


def test_labels_without_information_are_warned_of():
    with pytest.warns(UserWarning, match="scaled back"):
        estimate = BestBinRates().fit_posterior(np.full((20, 2), 0.5), [0, 1] * 10)
    assert sum(estimate.rates_.both()) == pytest.approx(0.95)
    assert max(estimate.mixture_proportions_) < 1


@pytest.mark.parametrize(
    ("estimator", "weight", "message"),
    [
        (BestBinRates(delta=0.0), None, r"delta must lie between 0 and 1, got 0\.0"),
        (BestBinRates(gamma=-1), None, "gamma must be a finite number > 0, got -1"),
        (BestBinRates(), [1, 0, 1, 0], "sample_weight 0"),
    ],
)
def test_bad_input_is_named(estimator, weight, message):
    with pytest.raises(ValueError, match=message):
        estimator.fit_posterior(two_columns([0.2, 0.8, 0.4, 0.6]), [0, 1, 0, 1], weight)
    assert not any(name.endswith("_") for name in vars(estimator))


def test_it_has_a_name_and_is_for_two_classes():
    assert isinstance(make_rates("best_bin"), BestBinRates)
    with pytest.raises(ValueError, match="binary"):
        BestBinRates().fit_posterior(np.full((30, 3), 1 / 3), [0, 1, 2] * 10)
