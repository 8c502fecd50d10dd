"""Noise by slice of many classes: the likelihood by brute force, intervals by simulation."""

from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import brentq, minimize, minimize_scalar
from scipy.special import softmax
from scipy.stats import chi2

from unflip import TransitionMatrix, noise_by_slice
from unflip.inspection import NoiseBySliceDisplay
from unflip.inspection._slice_scale import (
    ScaleRegion,
    SliceRows,
    direction_of,
    scale_of_all,
    scale_region,
    spread_of_share,
)

PAIRS = TransitionMatrix.pair_flip(3, 0.2).matrix


def simulated(n, scale, seed=0, shift=(0.0, 0.0, 0.0), direction=None):
    """P(true | x) of three classes, and labels flipped by I + scale D; no column is needed."""
    rng = np.random.default_rng(seed)
    clean = softmax(4 * rng.normal(size=(n, 3)), axis=1)
    moved = softmax(np.log(clean) + shift, axis=1)
    T = np.eye(3) + scale * (direction_of(PAIRS) if direction is None else direction)
    true = (rng.random(n)[:, None] > moved.cumsum(axis=1)).sum(axis=1)
    codes = (rng.random(n)[:, None] > T[true].cumsum(axis=1)).sum(axis=1)
    return clean, codes


def brute_profile(clean, codes, scale, direction):
    """The greatest log-likelihood, and the share of wrong labels there, by scipy."""
    T = np.eye(3) + scale * direction

    def negative(shift):
        moved = softmax(np.log(np.clip(clean, 1e-4, None)) + shift, axis=1)
        return shift @ shift / 2 - np.log((moved @ T)[np.arange(codes.size), codes]).sum()

    best = minimize(negative, np.zeros(3), method="BFGS", options={"gtol": 1e-6})
    moved = softmax(np.log(np.clip(clean, 1e-4, None)) + best.x, axis=1)
    return -best.fun, float(moved.mean(axis=0) @ (1 - np.diag(T)))


@pytest.mark.parametrize("shift", [(0.0, 0.0, 0.0), (1.5, 0.0, -1.0)])
def test_the_profile_likelihood_is_what_brute_force_finds(shift):
    clean, codes = simulated(300, 0.2, shift=shift)
    direction, scales = direction_of(PAIRS), np.array([0.05, 0.2, 0.5])
    found = SliceRows.of(clean, codes, direction).profile(scales)
    brute = [brute_profile(clean, codes, scale, direction) for scale in scales]
    assert_allclose(found.likelihood, [each[0] for each in brute], atol=0.01)
    assert_allclose(found.prior * scales, [each[1] for each in brute], atol=0.005)


def test_amounts_of_noise_that_leave_a_class_no_label_are_as_good_as_impossible():
    direction = np.array([[0.0, 0.0, 0.0], [0.0, -1.0, 1.0], [2.0, 0.0, -2.0]])
    clean = np.array([[0.1, 0.8, 0.1], [0.8, 0.1, 0.1]] * 20)
    found = SliceRows.of(clean, np.array([1, 0] * 20), direction).profile(np.array([0.1, 0.5, 1.0]))
    assert np.isfinite(found.likelihood).all()
    assert found.likelihood[2] < found.likelihood[0] - 100


def test_the_greatest_likelihood_and_the_ends_of_the_interval_are_scipys():
    clean, codes = simulated(300, 0.25, seed=1)
    rows = SliceRows.of(clean, codes, direction_of(PAIRS))
    region = scale_region(rows.profile)

    def negative(scale):
        return -float(rows.profile(np.array([scale])).likelihood[0])

    best = minimize_scalar(negative, bounds=(0, 0.9), method="bounded")
    assert region.scale == pytest.approx(best.x, abs=0.005)
    assert region.likelihood == pytest.approx(-best.fun, abs=0.01)

    def below(scale):
        return negative(scale) - best.fun - chi2.ppf(0.95, 1) / 2

    ends = brentq(below, 0.0, best.x), brentq(below, best.x, 0.9)
    assert_allclose(region.scales, ends, atol=0.003)


def test_one_scale_for_all_slices_adds_their_likelihoods_and_weighs_their_shares():
    direction = direction_of(PAIRS)
    parts = [
        SliceRows.of(*simulated(n, 0.2, seed=n, shift=shift), direction)
        for n, shift in ((100, (0.0, 0.0, 0.0)), (300, (2.0, 0.0, 0.0)))
    ]
    scales = np.array([0.1, 0.3])
    together = scale_of_all(parts, scales)
    one, other = (part.profile(scales) for part in parts)
    assert_allclose(together.likelihood, one.likelihood + other.likelihood)
    assert_allclose(together.prior, (one.prior + 3 * other.prior) / 4)


def test_a_matrix_without_noise_has_a_direction_too():
    assert_allclose(direction_of(np.eye(3)), direction_of(TransitionMatrix.uniform(3, 0.3).matrix))
    assert_allclose(np.eye(3) + 0.2 * direction_of(PAIRS), PAIRS)


@pytest.mark.slow
def test_with_a_known_posterior_intervals_hold_as_often_as_they_say():
    direction, held = direction_of(PAIRS), []
    for seed in range(60):
        clean, codes = simulated(200, 0.15, seed=seed)
        low, high = scale_region(SliceRows.of(clean, codes, direction).profile).scales
        held.append(low <= 0.15 <= high)
    assert np.mean(held) > 0.87  # three standard errors below 0.95


def test_a_slice_with_more_of_a_class_is_not_taken_for_noise():
    direction = direction_of(PAIRS)
    plain = SliceRows.of(*simulated(1500, 0.1, seed=2), direction)
    other = SliceRows.of(*simulated(1500, 0.1, seed=3, shift=(2.0, 0.0, -1.0)), direction)
    apart = sum(scale_region(part.profile).likelihood for part in (plain, other))
    together = scale_region(partial(scale_of_all, [plain, other])).likelihood
    assert chi2.sf(2 * (apart - together), 1) > 0.05


def test_the_spread_of_the_posterior_is_what_the_channel_knows_beyond_the_likelihood():
    together = ScaleRegion(0.0, 0.25, 0.2, (0.2, 0.3), (0.17, 0.23))
    for ends in ((0.15, 0.25), (0.16, 0.3)):
        spread = spread_of_share(ends, together)
        assert_allclose(together.widened(spread).shares, ends)
    assert_allclose(spread, np.sqrt([0.04**2 - 0.03**2, 0.1**2 - 0.03**2]))
    assert_allclose(spread_of_share((0.19, 0.21), together), 0.0)  # never narrower
    assert_allclose(spread_of_share(None, together), 0.0)
    assert_allclose(together.widened(np.zeros(2)).scales, together.scales)


@pytest.fixture(scope="module")
def found():
    rng = np.random.default_rng(0)
    true = rng.integers(0, 3, 900)
    X = rng.normal(size=(900, 2)) + 4 * np.array([[0, 0], [1, 0], [0, 1]])[true]
    source = rng.choice(["phone", "shop", "web"], 900)
    wrong = rng.random(900) < np.where(source == "phone", 0.35, 0.05)
    labels = np.array(["a", "b", "c"])[np.where(wrong, (true + 1) % 3, true)]
    return noise_by_slice(X, labels, by=source, random_state=0)


@pytest.mark.filterwarnings("ignore::unflip.LabelNoiseWarning")
def test_the_careless_source_is_found_with_its_share(found):
    assert found.p_value < 0.001
    assert found.degrees_of_freedom == 2
    assert_allclose(found.label_error_rate, [0.35, 0.05, 0.05], atol=0.06)
    low, high = found.label_error_rate_interval.T
    assert (low <= [0.35, 0.05, 0.05]).all()
    assert (high >= [0.35, 0.05, 0.05]).all()
    assert found.rates.shape == (3, 3)
    assert found.rates_interval.shape == (3, 3, 2)
    said = str(found)
    assert "in phone" in said
    assert "and everywhere into the same others" in said


def test_the_frame_has_the_shares_and_no_pair_of_rates(found):
    frame = found.to_frame("polars")
    assert frame.columns == [
        "slice",
        "n_rows",
        "label_error_rate",
        "label_error_rate_low",
        "label_error_rate_high",
    ]


def test_a_pair_of_rates_is_not_drawn_for_three_classes(found):
    pytest.importorskip("matplotlib")
    with pytest.raises(ValueError, match="there are 3: use kind='share'"):
        NoiseBySliceDisplay(found).plot(kind="rates")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::unflip.LabelNoiseWarning")
@pytest.mark.parametrize("kind", ["alike", "more of a class", "differ"])
def test_coverage_and_false_alarms_with_an_estimated_posterior(kind):
    """Intervals hold in 90 % or more; the same rates seem to differ in 10 % or fewer."""
    rates = np.array([0.08, 0.15, 0.3] if kind == "differ" else [0.15] * 3)
    held, rejected = [], []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        true = rng.integers(0, 4, 1500)
        X = (2 * rng.normal(size=(4, 5)))[true] + rng.normal(size=(1500, 5))
        place = rng.integers(0, 3, 1500)
        if kind == "more of a class":
            place = np.where(rng.random(1500) < 0.4, np.minimum(true, 2), place)
        wrong = rng.random(1500) < rates[place]
        y = np.where(wrong, (true + rng.integers(1, 4, 1500)) % 4, true)
        found = noise_by_slice(X, y, by=place, random_state=seed)
        low, high = found.label_error_rate_interval.T
        held.append((low <= rates) & (rates <= high))
        rejected.append(found.p_value < 0.05)
    assert np.mean(held) >= 0.9
    assert np.mean(rejected) == 1.0 if kind == "differ" else np.mean(rejected) <= 0.1
