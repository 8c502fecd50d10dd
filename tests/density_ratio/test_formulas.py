"""Sums over blocks, Newton's method on them, single precision, and leave-one-out."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import nnls

from tests.density_ratio.test_kliep import PROBLEMS, kkt_gap, two_samples
from tests.density_ratio.test_lsif import brute_force_leave_one_out
from unflip._utils.gaussian_kernel import (
    GaussianBasis,
    gaussian_at_widths,
    width_grid,
)
from unflip.density_ratio import KLIEP
from unflip.density_ratio._likelihood import RelativeBlock, sums_over
from unflip.density_ratio._lsif import leave_one_out_losses
from unflip.density_ratio._newton import nonnegative_newton_target


def random_block(n: int, p: int, seed: int) -> tuple[RelativeBlock, np.ndarray]:
    rng = np.random.default_rng(seed)
    phi = rng.uniform(size=(n, p)) ** 4
    return RelativeBlock.from_values(phi, rng.uniform(0.5, 2, n), np.float64), phi


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10_000), cut=st.integers(1, 19))
def test_the_sums_of_all_blocks_are_the_sums_over_all_rows(seed, cut):
    block, phi = random_block(20, 4, seed)
    alpha = np.random.default_rng(seed + 1).uniform(0.1, 1, 4)
    parts = [
        RelativeBlock(block.psi[rows], block.log_scale[rows], block.weight[rows])
        for rows in (slice(cut), slice(cut, None))
    ]
    total = sums_over(parts, alpha, True)
    ratio, weight = phi @ alpha, block.weight
    assert total.weight == pytest.approx(weight.sum())
    assert total.log == pytest.approx(weight @ np.log(ratio))
    np.testing.assert_allclose(total.gradient, (weight / ratio) @ phi, rtol=1e-12)
    scaled = phi * (np.sqrt(weight) / ratio)[:, None]
    np.testing.assert_allclose(total.hessian, scaled.T @ scaled, rtol=1e-12)


def test_relative_values_do_not_underflow_in_single_precision():
    X, centers = np.array([[30.0], [0.1]]), np.array([[0.0], [1.0]])
    mean = np.array([0.2, 0.3])
    basis = GaussianBasis(centers, 1.0).over(mean, single=True)
    block = RelativeBlock.from_exponents(
        basis.exponents(X), np.ones(2), np.empty((2, 2), np.float32)
    )
    alpha = np.array([0.4, 0.6])
    exponents = -((X - centers.T) ** 2) / 2 - np.log(mean)
    expected = np.logaddexp.reduce(exponents + np.log(alpha), axis=1).sum()
    assert block.sums(alpha, False).log == pytest.approx(expected, rel=1e-6)


def test_exponents_are_in_single_precision_only_where_that_keeps_them():
    rng = np.random.default_rng(0)
    X, centers = rng.normal(size=(500, 5)), rng.normal(size=(30, 5))
    for width in (2.0, 0.8, 0.05):
        basis = GaussianBasis(centers, width).over(np.ones(30), single=True)
        exact = -((X[:, None] - centers) ** 2).sum(axis=2) / (2 * width**2)
        assert (basis.dtype == np.float32) == (width > 1.0)
        error = np.abs(basis.exponents(X) - exact)
        assert error[exact > -16].max(initial=0) < 1e-6


@pytest.mark.parametrize(("d", "width"), [(2, 0.5), (5, 2.0)])
def test_many_rows_in_single_precision_reach_the_optimum_of_double(d, width):
    X_num, X_den = two_samples(15_000, d, 0)
    assert len(X_num) > 5000  # else all is in double
    kliep = KLIEP(width, n_centers=40, random_state=0).fit(X_num, X_den)
    assert kkt_gap(kliep, X_num, X_den) <= 1.1e-6
    exact = KLIEP(width, n_centers=40, tol=1e-9, random_state=0).fit(X_num, X_den)
    assert exact.kkt_gap_ <= 1e-9
    assert kliep.objective_ == pytest.approx(exact.objective_, abs=1e-6)


def test_one_exp_does_for_the_whole_grid():
    rng = np.random.default_rng(0)
    distances = rng.uniform(0, 50, (40, 6))
    widths = width_grid(rng.normal(size=(10, 3)))
    for grid in (widths, widths[::-1], np.array([0.7, 3.0, 0.7])):
        for place, values in gaussian_at_widths(distances, grid):
            expected = np.exp(-distances / (2 * grid[place] ** 2))
            np.testing.assert_allclose(values, expected, rtol=1e-11, atol=1e-300)


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 10_000), p=st.integers(1, 12))
def test_the_newton_target_is_non_negative_least_squares(seed, p):
    rng = np.random.default_rng(seed)
    factor = rng.normal(size=(p + 3, p))
    point, gradient = np.maximum(rng.normal(size=p), 0), rng.normal(size=p)
    hessian = factor.T @ factor
    target = nonnegative_newton_target(hessian, gradient, point)
    root = np.linalg.cholesky(hessian).T
    expected, _ = nnls(root, np.linalg.solve(root.T, hessian @ point - gradient))
    np.testing.assert_allclose(target, expected, rtol=1e-6, atol=1e-8)


# --- lsif


@pytest.mark.parametrize("alpha", [0.0, 0.1, 0.5, 0.9])
@pytest.mark.parametrize("penalty", [1e-3, 0.1, 10.0])
@pytest.mark.parametrize("sizes", [(12, 30), (30, 12), (15, 15)])
def test_leave_one_out_in_closed_form_is_brute_force(alpha, penalty, sizes):
    rng = np.random.default_rng(0)
    phi_num, phi_den = (rng.uniform(size=(n, 5)) for n in sizes)
    expected = brute_force_leave_one_out(phi_num, phi_den, penalty, alpha)
    assert leave_one_out_losses(phi_num, phi_den, [penalty], alpha) == pytest.approx(
        [expected], rel=1e-9
    )


# --- kliep


@pytest.mark.parametrize(("n", "d", "seed"), PROBLEMS)
def test_newton_reaches_the_optimum(n, d, seed):
    X_num, X_den = two_samples(n, d, seed)
    width = np.sqrt(d) * [0.7, 1.0, 1.5][seed % 3]
    kliep = KLIEP(width, random_state=seed).fit(X_num, X_den)
    assert kliep.kkt_gap_ <= 1e-6
    assert (kliep.coef_ >= 0).all()
    in_single = len(X_num) > 5000
    assert kliep.predict(X_den).mean() == pytest.approx(1, abs=1e-7 if in_single else 1e-9)
    if n * d <= 100_000:
        assert kkt_gap(kliep, X_num, X_den) <= 1.1e-6
        gradient = KLIEP(width, solver="projected_gradient", random_state=seed)
        assert kliep.objective_ >= gradient.fit(X_num, X_den).objective_
        assert kkt_gap(gradient, X_num, X_den) == pytest.approx(gradient.kkt_gap_, abs=1e-9)
