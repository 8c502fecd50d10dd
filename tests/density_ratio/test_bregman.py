"""Ratio matching: KLIEP and LSIF are cases of one divergence."""

import numpy as np
import pytest
from scipy.optimize import nnls

from tests.density_ratio.test_kliep import kernel, two_samples
from unflip.density_ratio import (
    KLIEP,
    BasuDivergence,
    BregmanRatio,
    KullbackLeiblerDivergence,
    SquaredDivergence,
)

DIVERGENCES = [KullbackLeiblerDivergence(), SquaredDivergence(), BasuDivergence(0.3)]


@pytest.mark.parametrize("f", DIVERGENCES, ids=lambda f: type(f).__name__)
def test_derivatives_are_finite_differences(f):
    r, step = np.linspace(0.1, 5, 30), 1e-6
    np.testing.assert_allclose(
        (f.value(r + step) - f.value(r - step)) / (2 * step), f.derivative(r), rtol=1e-6, atol=1e-8
    )
    np.testing.assert_allclose(
        (f.derivative(r + step) - f.derivative(r - step)) / (2 * step), f.second(r), rtol=1e-6
    )
    np.testing.assert_allclose(
        (f.second(r + step) - f.second(r - step)) / (2 * step), f.third(r), rtol=1e-5, atol=1e-8
    )


def empirical_divergence(f, r_num, r_den):
    """The paper's empirical Bregman divergence, term by term."""
    return np.mean(f.derivative(r_den) * r_den - f.value(r_den)) - np.mean(f.derivative(r_num))


@pytest.mark.parametrize("f", DIVERGENCES, ids=lambda f: type(f).__name__)
def test_the_objective_is_the_papers_divergence_and_no_neighbour_is_better(f):
    X_num, X_den = two_samples(200, 2, 0)
    ratio = BregmanRatio(f, 1.2, n_centers=20, random_state=0).fit(X_num, X_den)
    value = empirical_divergence(f, ratio.predict(X_num), ratio.predict(X_den))
    assert ratio.objective_ == pytest.approx(value, abs=1e-9)
    assert ratio.kkt_gap_ <= 1e-6
    rng = np.random.default_rng(0)
    phi_num, phi_den = kernel(ratio, X_num), kernel(ratio, X_den)
    for _ in range(200):
        theta = np.maximum(ratio.coef_ + rng.normal(scale=1e-2, size=20), 0)
        assert empirical_divergence(f, phi_num @ theta, phi_den @ theta) >= value - 1e-8


def test_kullback_leibler_matching_is_kliep():
    X_num, X_den = two_samples(400, 2, 1)
    matched = BregmanRatio("kl", 1.0, random_state=0).fit(X_num, X_den)
    kliep = KLIEP(1.0, random_state=0).fit(X_num, X_den)
    assert matched.predict(X_den).mean() == pytest.approx(1, abs=1e-5)
    assert np.log(matched.predict(X_num)).mean() == pytest.approx(kliep.objective_, abs=1e-5)


def test_squared_matching_is_non_negative_least_squares():
    X_num, X_den = two_samples(200, 2, 2)
    matched = BregmanRatio("squared", 1.0, n_centers=20, regularization=0.1, random_state=0)
    matched.fit(X_num, X_den)
    phi_num, phi_den = kernel(matched, X_num), kernel(matched, X_den)
    factor = np.linalg.cholesky(phi_den.T @ phi_den / len(phi_den) + 0.1 * np.eye(20))
    lsif, _ = nnls(factor.T, np.linalg.solve(factor, phi_num.mean(axis=0)))
    np.testing.assert_allclose(matched.coef_, lsif, atol=1e-5)


def test_basu_goes_from_kullback_leibler_to_squared():
    r_num, r_den = np.array([0.5, 1.5, 2.0]), np.array([0.2, 1.0, 1.7])
    near_kl = empirical_divergence(BasuDivergence(1e-6), r_num, r_den)
    kl = empirical_divergence(KullbackLeiblerDivergence(), r_num, r_den)
    assert near_kl == pytest.approx(kl - 1, abs=1e-4)
    # f = t^2 - t at power 1: twice LSIF's, up to a constant and a linear term that cancel
    at_one = empirical_divergence(BasuDivergence(1.0), r_num, r_den)
    squared = empirical_divergence(SquaredDivergence(), r_num, r_den)
    assert at_one == pytest.approx(2 * squared, abs=1e-12)


def test_basu_fits_are_those_of_the_two_cases_at_its_ends():
    X_num, X_den = two_samples(300, 1, 3)

    def fit(f):
        return BregmanRatio(f, 0.8, n_centers=30, random_state=0).fit(X_num, X_den)

    for case, basu in [
        (KullbackLeiblerDivergence(), BasuDivergence(1e-4)),
        (SquaredDivergence(), BasuDivergence(1.0)),
    ]:
        best, near = fit(case), fit(basu)
        value = empirical_divergence(case, near.predict(X_num), near.predict(X_den))
        assert value == pytest.approx(best.objective_, abs=1e-5)


@pytest.mark.parametrize("power", [0.0, -1.0, 1.5])
def test_a_power_outside_the_convex_range_is_refused(power):
    with pytest.raises(ValueError, match="power must"):
        BasuDivergence(power)


def test_bad_parameters_are_named():
    X_num, X_den = two_samples(50, 2, 0)
    with pytest.raises(ValueError, match="divergence='hellinger'"):
        BregmanRatio("hellinger").fit(X_num, X_den)
    with pytest.raises(ValueError, match="regularization"):
        BregmanRatio(regularization=-1).fit(X_num, X_den)
