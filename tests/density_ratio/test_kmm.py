"""Kernel mean matching: the quadratic programme is solved, and every row is weighted."""

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning

from tests.density_ratio.test_kliep import two_samples
from unflip.density_ratio import KMM


def gram(A, B, bandwidth):
    return np.exp(-((A[:, None] - B[None]) ** 2).sum(axis=2) / (2 * bandwidth**2))


@pytest.mark.parametrize(("upper", "epsilon"), [(1000.0, 0.1), (1.5, 0.05), (3.0, 0.0), (2.0, 5.0)])
def test_the_solution_is_scipys(upper, epsilon):
    X_num, X_den = two_samples(60, 2, 0)
    kmm = KMM(1.0, upper_bound=upper, epsilon=epsilon, tol=1e-10).fit(X_num, X_den)
    n = len(X_den)
    K, k = gram(X_den, X_den, 1.0) / n**2, gram(X_den, X_num, 1.0).mean(axis=1) / n

    def discrepancy(w):
        return w @ K @ w - 2 * k @ w, 2 * (K @ w - k)

    limits = [{"type": "ineq", "fun": lambda w: w.mean() - (1 - epsilon)}]
    limits += [{"type": "ineq", "fun": lambda w: (1 + epsilon) - w.mean()}]
    best = minimize(
        discrepancy,
        np.ones(n),
        jac=True,
        bounds=[(0, upper)] * n,
        constraints=limits,
        method="SLSQP",
        options={"maxiter": 2000, "ftol": 1e-15},
    )
    assert discrepancy(kmm.weights_)[0] == pytest.approx(best.fun, abs=1e-7)
    assert kmm.weights_.min() >= 0
    assert kmm.weights_.max() <= upper + 1e-9
    assert abs(kmm.weights_.mean() - 1) <= max(epsilon, 1e-6) + 1e-9


def test_the_gap_bounds_the_distance_to_the_optimum():
    X_num, X_den = two_samples(150, 2, 1)
    rough = KMM(1.0, tol=1e-3).fit(X_num, X_den)
    fine = KMM(1.0, tol=1e-10).fit(X_num, X_den)
    n = len(X_den)
    K, k = gram(X_den, X_den, 1.0), gram(X_den, X_num, 1.0).mean(axis=1)

    def value(w):
        return w @ K @ w / n**2 - 2 * k @ w / n

    assert 0 <= value(rough.weights_) - value(fine.weights_) + 1e-12 <= rough.gap_ + 1e-9


def test_the_same_sample_twice_gets_weights_near_one():
    X = np.random.default_rng(0).normal(size=(300, 2))
    np.testing.assert_allclose(KMM(1.0).fit(X, X).weights_, 1, atol=0.05)


@pytest.mark.parametrize("n_den", [101, 250, 399])
def test_every_row_of_every_block_is_weighted(n_den):
    rng = np.random.default_rng(0)
    X_den, X_num = rng.normal(size=(n_den, 1)), rng.normal(0.3, 1, size=(150, 1))
    kmm = KMM(block_size=100, random_state=0).fit(X_num, X_den)
    assert kmm.weights_.shape == (n_den,)
    assert np.isfinite(kmm.weights_).all()
    assert (kmm.weights_ > 0).mean() > 0.5
    assert kmm.weights_.mean() == pytest.approx(1, abs=0.15)
    assert kmm.support_.shape == (100, 1)


def test_weights_follow_the_known_ratio():
    rng = np.random.default_rng(0)
    X_den, X_num = rng.normal(0, 1, (1500, 1)), rng.normal(0.5, 0.8, (1500, 1))
    truth = np.exp(0.5 * X_den**2 - 0.5 * ((X_den - 0.5) / 0.8) ** 2)[:, 0] / 0.8
    estimate = KMM(0.5, random_state=0).fit(X_num, X_den).predict(X_den)
    assert np.corrcoef(estimate, truth)[0, 1] > 0.95


def test_stopping_early_warns_with_the_gap():
    X_num, X_den = two_samples(200, 2, 0)
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        KMM(0.3, max_iter=1, tol=1e-12).fit(X_num, X_den)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"upper_bound": 0.5}, "upper_bound must be >= 1"),
        ({"epsilon": -0.1}, "epsilon must be a finite number >= 0"),
        ({"block_size": 1}, "block_size must be an integer >= 2"),
        ({"bandwidth": "mean"}, "bandwidth='mean' is not one of"),
    ],
)
def test_bad_parameters_are_named(parameters, message):
    X_num, X_den = two_samples(50, 2, 0)
    with pytest.raises(ValueError, match=message):
        KMM(**parameters).fit(X_num, X_den)


def test_landmarks_solve_the_programme_in_their_span():
    """The weights beat any others in the span, and the residual bounds what is outside of it."""
    X_num, X_den = two_samples(600, 3, 2)
    kmm = KMM(1.5, block_size=100, n_landmarks=20, tol=1e-9, random_state=0).fit(X_num, X_den)
    exact = KMM(1.5, block_size=600, tol=1e-9, random_state=0).fit(X_num, X_den)
    assert exact.residual_ == 0
    assert kmm.gap_ <= 1e-9
    order = np.random.RandomState(0).permutation(600)
    landmarks = X_den[order[:20]]
    inverse = np.linalg.inv(gram(landmarks, landmarks, 1.5))

    def norms(w):
        signed = w / 600
        signed[np.isin(X_den[:, 0], X_num[:, 0])] -= 1 / len(X_num)
        seen = gram(landmarks, X_den, 1.5) @ signed
        whole = signed @ gram(X_den, X_den, 1.5) @ signed
        return np.sqrt(whole), np.sqrt(max(0.0, seen @ inverse @ seen))

    whole, seen = norms(kmm.weights_.copy())
    assert seen <= norms(exact.weights_.copy())[1] + 1e-4
    assert whole <= seen + kmm.residual_
    assert abs(kmm.weights_.mean() - 1) <= 600**-0.5 + 1e-9


def test_more_landmarks_leave_less_unseen():
    X_num, X_den = two_samples(400, 2, 3)
    residuals = [
        KMM(1.0, block_size=50, n_landmarks=m, random_state=0).fit(X_num, X_den).residual_
        for m in (5, 20, 80)
    ]
    assert residuals == sorted(residuals, reverse=True)
    assert residuals[-1] < 0.05


def test_without_landmarks_rows_are_dealt_into_blocks():
    X_num, X_den = two_samples(300, 1, 4)
    kmm = KMM(block_size=100, n_landmarks=None, random_state=0).fit(X_num, X_den)
    assert kmm.residual_ == 0
    assert kmm.weights_.mean() == pytest.approx(1, abs=0.15)


def test_bad_landmarks_are_named():
    X_num, X_den = two_samples(50, 2, 0)
    with pytest.raises(ValueError, match="n_landmarks"):
        KMM(n_landmarks=0).fit(X_num, X_den)
