"""Two classes by the engine of any number: quadrature over the two rates."""

from itertools import product

import numpy as np
import pytest
from scipy.special import expit

from tests.channel.test_engine import design_of
from unflip import NoiseRates, flip_labels
from unflip.channel import SETTINGS, ChannelSample, fit_channel
from unflip.channel._two_classes import finer_quadrature, first_quadrature, rates_at
from unflip.noise import MAX_TOTAL_RATE

BOX = ((0.0, 0.5), (0.0, 0.5))


def fitted(X, labels, known=None, **options):
    sample = ChannelSample(X, labels.astype(int), np.ones(len(X)), 2)
    options = {"features": "linear"} | options
    return fit_channel(sample, known, np.random.RandomState(0), **options)


def logistic(n_rows, rates, seed=0, slope=6.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 2))
    true = rng.random(n_rows) < expit(slope * X.sum(axis=1))
    return X, true, flip_labels(true, rates, random_state=seed)


def rates_of(channel):
    return channel.rates.both()


def test_the_distribution_of_the_rates_is_the_evidence_times_the_prior_on_a_dense_grid():
    design = design_of(2, 150)
    quadrature = finer_quadrature(design, BOX, first_quadrature(design, BOX))
    found, step = quadrature.distribution, 0.05
    middles = np.arange(step / 2, 0.5, step)
    pairs = [pair for pair in product(middles, middles) if sum(pair) <= MAX_TOTAL_RATE]
    heights = {pair: quadrature.at(pair).log_likelihood for pair in pairs}
    line = [quadrature.at((rate, rate)).log_likelihood for rate in middles]
    top = max(heights.values())
    area = 0.25 - 0.5 * (1 - MAX_TOTAL_RATE) ** 2
    free = {pair: np.exp(h - top) * step**2 / area for pair, h in heights.items()}
    alike = np.exp(np.array(line) - top) * step / (MAX_TOTAL_RATE / 2)
    none, equal = SETTINGS.no_noise_probability, SETTINGS.equal_rates_probability
    clean = none * np.exp(quadrature.at((0.0, 0.0)).log_likelihood - top)
    noisy = (1 - none) * ((1 - equal) * sum(free.values()) + equal * alike.sum())
    mean = (1 - none) * equal * np.full(2, alike @ middles)
    for pair, share in free.items():
        mean += (1 - none) * (1 - equal) * share * np.array(pair)
    assert found.p_origin == pytest.approx(clean / (clean + noisy), abs=0.01)
    # six values of each rate, 0.1 apart, place the mean within a third of a standard deviation
    mean /= clean + noisy
    spread = sum(share * (np.array(pair) - mean) ** 2 for pair, share in free.items())
    spread = np.sqrt(spread / sum(free.values()))
    assert (np.abs(found.estimate("mean") - mean) < spread / 3).all()
    assert found.log_evidence == pytest.approx(top + np.log(clean + noisy), abs=0.5)


def test_pairs_that_are_not_explored_are_negligible():
    design = design_of(2, 600)
    found = first_quadrature(design, BOX)
    axis = np.linspace(0, 0.5, 6)
    explored = {tuple(rates_at(fit).round(9)) for fit in found.fits}
    skipped = [pair for pair in product(axis, axis) if tuple(np.round(pair, 9)) not in explored]
    skipped = [pair for pair in skipped if sum(pair) <= MAX_TOTAL_RATE]
    assert skipped
    for pair in skipped:
        assert found.at(pair).log_likelihood < found.best.log_likelihood - 6


@pytest.mark.parametrize("n_rows", [1500, 4000])
@pytest.mark.parametrize("rates", [(0.3, 0.1), (0.0, 0.4)])
def test_the_rates_are_found(n_rows, rates):
    X, _, labels = logistic(n_rows, NoiseRates(*rates))
    channel, rows = fitted(X, labels)
    assert rates_of(channel) == pytest.approx(rates, abs=0.06)
    positive, negative = channel.interval(0.95).both()
    assert positive[0] <= rates[0] <= positive[1]
    assert negative[0] <= rates[1] <= negative[1]
    assert np.mean((rows.held_out()[:, 1] > 0.5) == (X.sum(axis=1) > 0)) > 0.97
    assert channel.found.noise_test.p_value < 1e-3


def test_clean_labels_that_overlap_are_not_called_noisy():
    X, _, labels = logistic(1000, NoiseRates(0.0, 0.0), slope=2.0)
    channel, _ = fitted(X, labels)
    assert rates_of(channel) == (0.0, 0.0)
    assert channel.found.structure_probability["none"] > 0.5
    assert sum(channel.found.structure_probability.values()) == pytest.approx(1)


def test_bounds_are_honoured_and_a_known_rate_is_kept():
    X, _, labels = logistic(800, NoiseRates(0.3, 0.0))
    one_sided, _ = fitted(X, labels, NoiseRates(None, 0.0))
    assert one_sided.rates.negative == 0
    assert one_sided.rates.positive == pytest.approx(0.3, abs=0.05)
    bounded, _ = fitted(X, labels, NoiseRates((0.35, 0.45), None))
    assert 0.35 <= bounded.rates.positive <= 0.45
    assert bounded.found.noise_test is None
    both, _ = fitted(X, labels, NoiseRates(0.25, 0.05))
    assert rates_of(both) == (0.25, 0.05)
    assert both.found.noise_test is None


def test_swapping_the_labels_swaps_the_rates():
    X, _, labels = logistic(600, NoiseRates(0.3, 0.1))
    one, other = fitted(X, labels)[0], fitted(X, ~labels)[0]
    assert rates_of(one) == pytest.approx(rates_of(other)[::-1], abs=0.01)


def test_log_odds_of_two_classes_have_the_prior_variance_that_is_said():
    design = design_of(2, 50)
    variance = design.first_variance()[design.block]
    w = (
        np.random.default_rng(0).normal(size=(20_000, variance.size, 2))
        * np.sqrt(variance)[:, None]
    )
    # a row whose squared columns have the mean one
    odds = (w[:, 1:, 1] - w[:, 1:, 0]).sum(axis=1) / np.sqrt(variance.size - 1)
    assert odds.var() == pytest.approx(9, rel=0.05)


@pytest.mark.parametrize("labelled", [0.1, 0.5, 0.9])
def test_where_only_positives_may_be_mislabelled_any_share_of_them_may_be(labelled):
    """Positive and unlabelled samples: the share of true positives is found."""
    rng = np.random.default_rng(0)
    true = rng.random(3000) < 0.3
    X = rng.normal(size=(3000, 5)) + 1.5 * true[:, None]
    observed = true & (rng.random(3000) < labelled)
    channel, _ = fitted(X, observed, NoiseRates(None, 0.0))
    prior = observed.mean() / (1 - channel.rates.positive)
    assert prior == pytest.approx(true.mean(), abs=0.05)
