"""T per group of samples: the evidence against brute force, intervals and tests by simulation."""

from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import brentq, minimize, minimize_scalar
from scipy.special import expit, logit, logsumexp, softmax
from scipy.stats import chi2

from unflip import TransitionMatrix
from unflip.channel import fit_groups
from unflip.channel._groups import direction_of

DROP = chi2.ppf(0.95, 1) / 2
PAIRS = TransitionMatrix.pair_flip(3, 0.2).matrix
NO_SHIFT = (0.0, 0.0, 0.0)


def simulated(n, rates, seed=0, shift=0.0):
    """Return P(true | x) of two classes, and labels flipped at (rho_pos, rho_neg)."""
    rng = np.random.default_rng(seed)
    clean = expit(4 * rng.normal(size=n))
    true = rng.random(n) < expit(logit(clean) + shift)
    noisy = true ^ (rng.random(n) < np.where(true, *rates))
    return np.column_stack([1 - clean, clean]), noisy.astype(int)


def simulated_of_three(n, scale, seed=0, shift=NO_SHIFT):
    """Return P(true | x) of three classes, and labels that are flipped to the next class."""
    rng = np.random.default_rng(seed)
    clean = softmax(4 * rng.normal(size=(n, 3)), axis=1)
    moved = softmax(np.log(clean) + shift, axis=1)
    T = np.eye(3) + scale * direction_of(PAIRS)
    true = (rng.random(n)[:, None] > moved.cumsum(axis=1)).sum(axis=1)
    return clean, (rng.random(n)[:, None] > T[true].cumsum(axis=1)).sum(axis=1)


def fitted(*groups, T=None):
    """Fit groups of samples."""
    clean, codes = (np.concatenate(each) for each in zip(*groups, strict=True))
    group = np.repeat(np.arange(len(groups)), [len(codes) for _, codes in groups])
    return fit_groups(clean, codes, None, group, np.eye(2) if T is None else T)


def brute_evidence(clean, codes, T):
    """Integrate the shifts of the log odds out by Gauss-Hermite quadrature."""
    n_classes = len(T)
    nodes, weights = np.polynomial.hermite_e.hermegauss(61 if n_classes == 2 else 15)
    logs = np.log(np.clip(clean, 1e-4, None))
    weights = np.log(weights / weights.sum())
    if n_classes == 2:  # the shift of the log odds has a standard deviation of one
        shifts = np.column_stack([0 * nodes, nodes])
    else:
        shifts = np.array(list(product(nodes, repeat=3)))
        weights = np.array([sum(each) for each in product(weights, repeat=3)])
    found = [np.log(softmax(logs + b, axis=1) @ T)[np.arange(len(codes)), codes] for b in shifts]
    return logsumexp(np.sum(found, axis=1) + weights)


def two_rates(rho_pos, rho_neg):
    return np.array([[1 - rho_neg, rho_neg], [rho_pos, 1 - rho_pos]])


@pytest.mark.parametrize("shift", [0.0, 1.5])
def test_of_two_classes_the_maximum_and_the_ends_are_those_of_the_integral(shift):
    clean, codes = simulated(60, (0.2, 0.1), seed=1, shift=shift)  # a bin for each sample
    found = fitted((clean, codes)).groups[0]

    def negative(rates):
        return -brute_evidence(clean, codes, two_rates(*rates))

    bounds = [(0, 0.47), (0, 0.47)]
    starts = [0.1, 0.1], [0.3, 0.05]
    best = min((minimize(negative, s, bounds=bounds) for s in starts), key=lambda each: each.fun)
    assert found.log_evidence == pytest.approx(-best.fun, abs=0.1)  # Laplace's method
    assert_allclose(found.rates[::-1], best.x, atol=0.02)
    for which, end in enumerate(found.rates_interval[::-1, 1]):
        fixed = [b if k != which else (end, end) for k, b in enumerate(bounds)]
        at_end = minimize(negative, np.where(np.arange(2) == which, end, 0.1), bounds=fixed)
        assert at_end.fun - best.fun == pytest.approx(DROP, abs=0.25)


def test_bins_of_samples_change_the_evidence_next_to_nothing():
    clean, codes = simulated(1000, (0.2, 0.1))
    found = fitted((clean, codes)).groups[0]
    best = minimize(
        lambda rates: -brute_evidence(clean, codes, two_rates(*rates)),
        found.rates[::-1],
        method="Nelder-Mead",
        options={"xatol": 1e-3, "fatol": 1e-2},
    )
    assert_allclose(found.rates[::-1], best.x, atol=0.01)


@pytest.mark.parametrize("shift", [NO_SHIFT, (1.5, 0.0, -1.0)])
def test_of_three_classes_the_maximum_and_the_ends_are_those_of_the_integral(shift):
    clean, codes = simulated_of_three(100, 0.25, seed=1, shift=shift)
    found = fitted((clean, codes), T=PAIRS).groups[0]

    def negative(scale):
        return -brute_evidence(clean, codes, np.eye(3) + scale * direction_of(PAIRS))

    best = minimize_scalar(negative, bounds=(0, 0.9), method="bounded", options={"xatol": 1e-3})
    assert_allclose(found.rates, best.x, atol=0.01)
    assert found.log_evidence == pytest.approx(-best.fun, abs=0.3)  # Laplace's method
    ends = [
        brentq(lambda s: negative(s) - best.fun - DROP, *sides, xtol=1e-3)
        for sides in ((1e-4, best.x), (best.x, 0.9))
    ]
    assert_allclose(found.rates_interval, [ends] * 3, atol=0.015)


def test_the_share_of_wrong_labels_is_that_of_the_rates():
    found = fitted(simulated(2000, (0.3, 0.1))).groups[0]
    assert found.label_error_rate == pytest.approx(found.class_shares @ found.rates, abs=1e-3)
    low, high = found.label_error_rate_interval
    assert low < 0.2 < high
    # narrower than its parts, whose errors are of opposite sign
    assert high - low < np.ptp(found.rates_interval[1])


@pytest.mark.parametrize("rates", [(0.2, 0.1), (0.0, 0.0), (0.0, 0.3)])
def test_with_a_known_posterior_intervals_hold_as_often_as_they_say(rates):
    held = []
    for seed in range(30):
        ends = fitted(simulated(300, rates, seed)).groups[0].rates_interval[::-1]
        held += [low - 1e-9 <= rate <= high for (low, high), rate in zip(ends, rates, strict=True)]
    assert np.mean(held) > 0.95 - 3 * np.sqrt(0.05 * 0.95 / len(held))


@pytest.mark.slow
def test_with_a_known_posterior_the_interval_of_one_scale_holds_as_often_as_it_says():
    held = []
    for seed in range(60):
        found = fitted(simulated_of_three(200, 0.15, seed), T=PAIRS).groups[0]
        low, high = found.rates_interval[0]
        held.append(low <= 0.15 <= high)
    assert np.mean(held) > 0.87  # three standard errors below 0.95


def test_a_group_with_more_of_a_class_is_not_taken_for_noise():
    rejected = []
    for k in range(15):
        plain = simulated(1000, (0.2, 0.1), seed=2 * k)
        other = simulated(1000, (0.2, 0.1), seed=2 * k + 1, shift=1.5)
        rejected.append(fitted(plain, other).p_value < 0.05)
    assert np.mean(rejected) < 0.05 + 3 * np.sqrt(0.05 * 0.95 / len(rejected))
    plain = simulated_of_three(1500, 0.1, seed=2)
    other = simulated_of_three(1500, 0.1, seed=3, shift=(2.0, 0.0, -1.0))
    assert fitted(plain, other, T=PAIRS).p_value > 0.05


def test_rates_that_differ_are_told_apart():
    groups = simulated(1000, (0.1, 0.1), seed=0), simulated(1000, (0.3, 0.1), seed=1)
    assert fitted(*groups).p_value < 1e-4


def test_one_matrix_for_all_groups_adds_their_evidence():
    one = simulated(300, (0.2, 0.1))
    found = fitted(one, one)
    assert found.common.log_evidence == pytest.approx(2 * found.groups[0].log_evidence, abs=0.02)
    assert found.statistic == pytest.approx(0, abs=0.05)
    assert found.degrees_of_freedom == 2
    assert_allclose(found.common.T, found.groups[0].T, atol=0.01)
    parts = [simulated_of_three(n, 0.2, seed=n) for n in (100, 300)]
    found = fitted(*parts, T=PAIRS)
    weighed = np.average([each.class_shares for each in found.groups], axis=0, weights=(100, 300))
    assert found.degrees_of_freedom == 1
    assert_allclose(found.common.class_shares, weighed, atol=0.02)


def test_a_weight_counts_like_as_many_samples():
    clean, codes = simulated_of_three(100, 0.2)
    group = np.zeros(100, dtype=int)
    weighted = fit_groups(clean, codes, np.full(100, 2.0), group, PAIRS).groups[0]
    twice = fitted((np.tile(clean, (2, 1)), np.tile(codes, 2)), T=PAIRS).groups[0]
    assert_allclose(weighted.rates_interval, twice.rates_interval, atol=2e-3)


def test_a_matrix_without_noise_has_a_direction_too():
    assert_allclose(direction_of(np.eye(3)), direction_of(TransitionMatrix.uniform(3, 0.3).matrix))
    assert_allclose(np.eye(3) + 0.2 * direction_of(PAIRS), PAIRS)
