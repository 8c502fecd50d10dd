"""StPMKL: the expected dual is solved, and it finds the width that plain kernel hinge lacks."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC
from sklearn.utils.validation import has_fit_parameter

from unflip import NoiseRates, flip_labels
from unflip.baselines import StPMKL
from unflip.baselines._stpmkl import (
    correct_kernels,
    gaussian_kernels,
)
from unflip.noise_rates import ChannelRates, MinimumRates

CLEAN = NoiseRates(positive=0.0, negative=0.0)
NOISY = NoiseRates(positive=0.2, negative=0.2)
WIDTHS = 2.0 ** np.arange(-3, 7)

flip_probabilities = st.floats(0.0, 1.0)
seeds = st.integers(0, 2**31 - 1)


def half_spaces(n_rows, n_features, seed, rates=NOISY):
    X = np.random.default_rng(seed).normal(size=(n_rows, n_features))
    y = np.where(X.sum(axis=1) > 0, 1, -1)
    return X, flip_labels(y, rates, random_state=seed), y


def gram(A, B, width):
    return np.exp(-((A[:, None] - B[None]) ** 2).sum(axis=2) / (2 * width**2))


def corrected(X, widths, flip_probability):
    return correct_kernels(gaussian_kernels(X, np.asarray(widths, dtype=float)), flip_probability)


def forms(kernels, coef):
    """q_k = (alpha y)' K_k (alpha y)."""
    return np.array([coef @ kernel @ coef for kernel in kernels])


def independent_value(kernels, signs, C):
    """max sum alpha - t / 2 with q_k(alpha) <= t for all k: the saddle value, by scipy alone."""
    n = signs.size
    forms_of_alpha = [kernel * np.outer(signs, signs) for kernel in kernels]
    start = np.where(signs > 0, 0.5 / (signs > 0).sum(), 0.5 / (signs < 0).sum())
    limits = [
        {
            "type": "ineq",
            "fun": lambda z, Q=Q: z[n] - z[:n] @ Q @ z[:n],
            "jac": lambda z, Q=Q: np.append(-2 * Q @ z[:n], 1.0),
        }
        for Q in forms_of_alpha
    ]
    limits.append(
        {"type": "eq", "fun": lambda z: z[:n] @ signs, "jac": lambda _: np.append(signs, 0.0)}
    )
    best = minimize(
        lambda z: z[n] / 2 - z[:n].sum(),
        np.append(start, max(start @ Q @ start for Q in forms_of_alpha)),
        jac=lambda _: np.append(-np.ones(n), 0.5),
        bounds=[(0, C)] * n + [(0, None)],
        constraints=limits,
        method="SLSQP",
        options={"maxiter": 1000, "ftol": 1e-12},
    )
    assert best.success
    return -best.fun


def test_the_corrected_kernel_is_the_expectation_over_the_true_labels():
    X, given_labels, rho = (
        np.random.default_rng(0).normal(size=(4, 2)),
        np.array([1, 1, -1, 1]),
        0.2,
    )
    kernel = gram(X, X, 1.0)
    expected = np.zeros((4, 4))
    for right in product([1, -1], repeat=4):
        probability = np.prod(np.where(np.array(right) == 1, 1 - rho, rho))
        true_labels = given_labels * right
        expected += probability * kernel * np.outer(true_labels, true_labels)
    ours = correct_kernels(kernel.copy(), rho) * np.outer(given_labels, given_labels)
    np.testing.assert_allclose(ours, expected, rtol=1e-12)


@given(rho=flip_probabilities, seed=seeds)
def test_the_corrected_kernels_are_the_same_under_rho_and_one_minus_rho(rho, seed):
    X = np.random.default_rng(seed).normal(size=(6, 2))
    np.testing.assert_allclose(corrected(X, [1, 2], rho), corrected(X, [1, 2], 1 - rho), atol=1e-14)


@given(rho=flip_probabilities, seed=seeds, width=st.sampled_from(WIDTHS.tolist()))
def test_the_corrected_kernel_is_positive_semidefinite(rho, seed, width):
    X = np.random.default_rng(seed).normal(size=(12, 3))
    X[0] = X[1]
    (kernel,) = corrected(X, [width], rho)
    assert np.linalg.eigvalsh(kernel).min() >= -1e-12
    np.testing.assert_array_equal(kernel, kernel.T)


@pytest.mark.parametrize("C", [0.5, 1.0, 20.0])
def test_without_noise_one_kernel_is_a_support_vector_machine(C):
    X, y, _ = half_spaces(120, 3, 0)
    ours = StPMKL(CLEAN, widths=[1.5], C=C).fit(X, y)
    svc = SVC(gamma=1 / (2 * 1.5**2), C=C, tol=1e-6).fit(X, y)
    new, _, _ = half_spaces(50, 3, 1)
    np.testing.assert_allclose(ours.decision_function(new), svc.decision_function(new), atol=1e-4)
    kernel, theirs = gram(X, X, 1.5), np.zeros(120)
    theirs[svc.support_] = svc.dual_coef_[0]
    ours_value, theirs_value = (
        np.abs(c).sum() - c @ kernel @ c / 2 for c in (ours.dual_coef_, theirs)
    )
    assert ours_value == pytest.approx(theirs_value, rel=1e-6)
    assert ours.kernel_weights_ == pytest.approx([1.0])
    assert ours.gap_ == pytest.approx(0, abs=1e-12)
    assert ours.n_iter_ == 1


def fitted_value(X, y, rho, widths, **settings):
    """The classifier at these symmetric rates, and its dual value J(theta)."""
    clf = StPMKL(NoiseRates(positive=rho, negative=rho), widths=widths, **settings).fit(X, y)
    q = forms(corrected(X, widths, rho), clf.dual_coef_)
    return clf, np.abs(clf.dual_coef_).sum() - clf.kernel_weights_ @ q / 2


@pytest.mark.parametrize("rho", [0.0, 0.2, 0.4])
@pytest.mark.parametrize("C", [0.5, 5.0])
def test_the_saddle_value_is_scipys(rho, C):
    X, y, _ = half_spaces(24, 2, 3)
    widths = [0.25, 0.5, 1.0, 2.0, 8.0]
    clf, value = fitted_value(X, y, rho, widths, C=C, tol=1e-5, max_iter=1000)
    assert clf.gap_ <= 1e-5
    expected = independent_value(corrected(X, widths, rho), y.astype(float), C)
    assert value == pytest.approx(expected, rel=2e-5)


@pytest.mark.parametrize(("rho", "C"), [(0.0, 1.0), (0.1, 20.0), (0.2, 1.0), (0.35, 3.0)])
def test_the_optimality_conditions_hold(rho, C):
    X, y, _ = half_spaces(200, 5, 0)
    clf = StPMKL(NoiseRates(positive=rho, negative=rho), C=C, tol=1e-4, max_iter=500).fit(X, y)
    assert clf.flip_probability_ == pytest.approx(rho)
    kernels = corrected(X, WIDTHS, rho)
    theta, coef, alpha = clf.kernel_weights_, clf.dual_coef_, clf.dual_coef_ * y
    # theta: q_k is the largest wherever a kernel has weight
    q = forms(kernels, coef)
    value = alpha.sum() - theta @ q / 2
    assert theta.sum() == pytest.approx(1)
    assert theta.min() >= 0
    assert (theta * (q.max() - q) / 2).sum() <= 1.001e-4 * value
    np.testing.assert_allclose(q[theta > 0.05], q.max(), rtol=0.01)
    assert clf.gap_ == pytest.approx((q.max() - theta @ q) / 2 / value, abs=1e-9)
    # alpha: in its box, and the slope has the right sign at either end
    assert coef.sum() == pytest.approx(0, abs=1e-8 * C * 200)
    assert alpha.min() >= 0
    assert alpha.max() <= C
    slope = 1 - y * (np.tensordot(theta, kernels, axes=1) @ coef + clf.intercept_)
    assert (slope[alpha == 0] <= 1e-4).all()
    assert (slope[alpha == C] >= -1e-4).all()
    np.testing.assert_allclose(slope[(alpha > 0) & (alpha < C)], 0, atol=1e-4)


def test_the_gap_bounds_the_distance_to_the_optimum():
    X, y, _ = half_spaces(100, 4, 0)
    _, optimum = fitted_value(X, y, 0.2, WIDTHS, tol=1e-6, max_iter=2000)
    for tol in (1e-1, 1e-2, 1e-3):
        rough, value = fitted_value(X, y, 0.2, WIDTHS, tol=tol)
        assert -1e-5 <= value - optimum <= rough.gap_ * value + 1e-9
        assert rough.gap_ <= tol


@settings(max_examples=10)
@given(seed=seeds)
def test_the_order_of_rows_and_of_kernels_does_not_matter(seed):
    X, y, _ = half_spaces(60, 2, 0)
    rng = np.random.default_rng(seed)
    rows, kernels = rng.permutation(60), rng.permutation(10)
    clf = StPMKL(NOISY).fit(X, y)
    permuted = StPMKL(NOISY, widths=WIDTHS[kernels]).fit(X[rows], y[rows])
    np.testing.assert_allclose(permuted.kernel_weights_, clf.kernel_weights_[kernels], atol=1e-4)
    np.testing.assert_allclose(permuted.dual_coef_, clf.dual_coef_[rows], atol=1e-3)
    np.testing.assert_allclose(permuted.decision_function(X), clf.decision_function(X), atol=1e-3)


def test_the_decision_is_the_formulas_at_any_number_of_rows():
    X, y, _ = half_spaces(150, 3, 0)
    clf = StPMKL(NOISY).fit(X, y)
    new = np.random.default_rng(1).normal(size=(5000, 3))  # more than one block
    weighted = sum(
        w * gram(new, X, width) for w, width in zip(clf.kernel_weights_, WIDTHS, strict=True)
    )
    rho = clf.flip_probability_
    expected = (1 - 2 * rho) ** 2 * weighted @ clf.dual_coef_ + clf.intercept_
    np.testing.assert_allclose(clf.decision_function(new), expected, atol=1e-9)
    np.testing.assert_array_equal(clf.predict(new), np.where(expected > 0, 1, -1))


def test_a_right_width_among_ten_beats_plain_kernel_hinge_of_width_one():
    ours, plain = [], []
    for seed in range(5):
        X, y, _ = half_spaces(400, 10, seed)
        new, _, truth = half_spaces(4000, 10, 1000 + seed)
        clf = StPMKL(NOISY).fit(X, y)
        assert clf.gap_ <= clf.tol
        ours.append(clf.score(new, truth))
        plain.append(SVC(gamma=0.5, C=1.0).fit(X, y).score(new, truth))  # width 1
    assert np.mean(ours) > np.mean(plain) + 0.08
    assert np.mean(ours) > 0.84


def test_the_flip_probability_is_the_share_of_wrong_labels():
    rates = NoiseRates(positive=0.3, negative=0.1)
    X = np.random.default_rng(0).normal(size=(100, 2))
    y = np.repeat(["no", "yes"], [62, 38])  # 0.38 = 0.6 p + 0.1: p = 7/15
    clf = StPMKL(rates, widths=[1.0]).fit(X, y)
    assert clf.flip_probability_ == pytest.approx(0.3 * 7 / 15 + 0.1 * 8 / 15)
    assert clf.noise_rates_ == rates
    assert clf.classes_.tolist() == ["no", "yes"]
    assert set(clf.predict(X)) <= {"no", "yes"}


def test_rates_that_contradict_the_labels_use_the_nearest_prior():
    X, y = np.random.default_rng(0).normal(size=(100, 2)), np.repeat([0, 1], [95, 5])
    clf = StPMKL(NoiseRates(positive=0.2, negative=0.1), widths=[1.0]).fit(X, y)
    assert clf.flip_probability_ == pytest.approx(0.1)


def test_rates_are_estimated_where_unknown():
    X, y, _ = half_spaces(300, 3, 0)
    assert StPMKL(widths=[2.0]).fit(X, y).noise_rates_ == ChannelRates().fit(X, y).rates_
    estimated = MinimumRates(quantile=0.05).fit(X, y).rates_
    assert StPMKL(MinimumRates(quantile=0.05), widths=[2.0]).fit(X, y).noise_rates_ == estimated
    half_known = StPMKL(NoiseRates(positive=0.2, negative=None), widths=[2.0]).fit(X, y)
    assert half_known.noise_rates_.positive == 0.2


def test_the_seed_reaches_the_rate_estimator():
    X, y, _ = half_spaces(200, 3, 0)

    def rates(seed):
        clf = StPMKL(MinimumRates(quantile=0.05, cv=3), widths=[2.0], random_state=seed)
        return clf.fit(X, y).noise_rates_

    assert rates(0) == rates(0)
    assert rates(0) != rates(1)


def test_ten_rows_are_enough():
    X, y = np.random.default_rng(0).normal(size=(10, 2)), np.repeat([0, 1], 5)
    clf = StPMKL(NOISY).fit(X, y)
    assert clf.dual_coef_.shape == (10,)
    assert clf.kernel_weights_.shape == clf.widths_.shape == (10,)


def test_a_gap_that_is_not_reached_is_told():
    X, y, _ = half_spaces(100, 3, 0)
    clf = StPMKL(NOISY, max_iter=3)
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        clf.fit(X, y)
    assert clf.gap_ > clf.tol
    assert clf.n_iter_ == 3


def test_fit_takes_no_weights():
    assert not has_fit_parameter(StPMKL(), "sample_weight")


def test_more_labels_wrong_than_right_are_refused_and_nothing_is_set():
    X, y = np.random.default_rng(0).normal(size=(100, 2)), np.repeat([0, 1], [54, 46])
    clf = StPMKL(NoiseRates(positive=0.6, negative=0.0))  # p = 1 by the nearest prior
    with pytest.raises(ValueError, match=r"share of 0\.6"):
        clf.fit(X, y)
    assert not [name for name in vars(clf) if name.endswith("_")]


def test_too_many_rows_are_refused_with_what_they_would_take(monkeypatch):
    monkeypatch.setattr("unflip.baselines._stpmkl.MAX_TRAINING_SAMPLES", 50)
    X, y, _ = half_spaces(60, 2, 0)
    with pytest.raises(ValueError, match="n_samples=60"):
        StPMKL(NOISY).fit(X, y)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"widths": [1.0, 0.0]}, "widths must be a finite number > 0"),
        ({"widths": []}, "widths must be a list"),
        ({"C": 0.0}, "C must be"),
        ({"tol": -1.0}, "tol must be"),
        ({"max_iter": 0}, "max_iter must be an integer >= 1"),
        ({"max_iter": 2.5}, "max_iter must be an integer >= 1"),
        ({"noise_rates": "magic"}, "noise_rates='magic' is not one of"),
    ],
)
def test_parameters_out_of_range_are_refused(parameters, message):
    X, y, _ = half_spaces(20, 2, 0)
    with pytest.raises(ValueError, match=message):
        StPMKL(**{"noise_rates": NOISY} | parameters).fit(X, y)


def test_a_bare_number_is_no_pair_of_rates():
    X, y, _ = half_spaces(20, 2, 0)
    with pytest.raises(TypeError, match=r"NoiseRates\(positive="):
        StPMKL(0.2).fit(X, y)


def test_three_classes_are_refused():
    X = np.random.default_rng(0).normal(size=(30, 2))
    with pytest.raises(ValueError, match="binary"):
        StPMKL(NOISY).fit(X, np.arange(30) % 3)
