"""KLIEP: optimality, the published procedure, and bounded memory."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning

from unflip.density_ratio import KLIEP


def two_samples(n: int, d: int, seed: int, dtype=np.float64):
    """Denominator: Gaussian rows. Numerator: those that a noisy logistic rule picks."""
    rng = np.random.default_rng(seed)
    X_den = rng.normal(size=(n, d)).astype(dtype)
    picked = rng.uniform(size=n) < 0.1 + 0.7 / (1 + np.exp(-3 * X_den[:, 0]))
    return X_den[picked], X_den


def kkt_gap(kliep: KLIEP, X_num, X_den) -> float:
    """max_l g_l / b_l - 1 from whole matrices, written out."""
    phi_num, phi_den = kernel(kliep, X_num), kernel(kliep, X_den)
    ratio = phi_num @ kliep.coef_
    return float(((phi_num / ratio[:, None]).mean(axis=0) / phi_den.mean(axis=0)).max() - 1)


def kernel(kliep: KLIEP, X) -> np.ndarray:
    squared = ((X[:, None, :] - kliep.centers_[None, :, :]) ** 2).sum(axis=2)
    return np.exp(-squared / (2 * kliep.bandwidth_**2))


SIZES = {  # rows: dimensions
    50: (1, 5, 20, 100),
    200: (1, 2, 10, 100),
    1000: (1, 3, 20, 50),
    5000: (2, 10, 100),
    20_000: (5, 30),
    50_000: (20,),
    100_000: (1, 100),
}
PROBLEMS = [(n, d, seed) for seed, (n, d) in enumerate((n, d) for n in SIZES for d in SIZES[n])]


@pytest.mark.parametrize(("n", "d", "seed"), [p for p in PROBLEMS if p[0] <= 1000])
def test_newton_agrees_with_scipy_on_the_objective(n, d, seed):
    X_num, X_den = two_samples(n, d, seed)
    kliep = KLIEP(np.sqrt(d), n_centers=30, random_state=seed).fit(X_num, X_den)
    phi = kernel(kliep, X_num) / kernel(kliep, X_den).mean(axis=0)

    def negative_likelihood(alpha):
        # over alpha >= 0 the penalty's minimiser sums to one by itself
        ratio = phi @ alpha
        return alpha.sum() - np.log(ratio).mean(), 1 - (phi / ratio[:, None]).mean(axis=0)

    start = np.full(phi.shape[1], 1 / phi.shape[1])
    options = {"maxiter": 20_000, "maxfun": 40_000, "ftol": 1e-15, "gtol": 1e-9}
    result = minimize(
        negative_likelihood, start, jac=True, bounds=[(0, None)] * start.size, options=options
    )
    assert kliep.objective_ == pytest.approx(1 - result.fun, abs=1e-6)


def test_a_single_numerator_row_and_duplicated_rows_work():
    X_den = np.random.default_rng(0).normal(size=(30, 2))
    assert KLIEP(1.0).fit(X_den[:1], X_den).predict(X_den).mean() == pytest.approx(1)
    twice = np.repeat(X_den[:10], 3, axis=0)
    once = KLIEP(1.0, random_state=0).fit(X_den[:10], X_den)
    np.testing.assert_allclose(
        KLIEP(1.0, random_state=0).fit(twice, X_den).predict(X_den), once.predict(X_den), atol=1e-6
    )


def test_weights_are_repetitions():
    X_num, X_den = two_samples(60, 2, 0)
    rng = np.random.default_rng(0)
    w_num, w_den = rng.integers(0, 4, len(X_num)), rng.integers(0, 4, len(X_den))
    repeated = KLIEP(1.0, random_state=0).fit(
        X_num.repeat(w_num, axis=0), X_den.repeat(w_den, axis=0)
    )
    weighted = KLIEP(1.0, random_state=0).fit(X_num, X_den, weight_num=w_num, weight_den=w_den)
    np.testing.assert_allclose(weighted.predict(X_den), repeated.predict(X_den), atol=1e-6)


def test_projected_gradient_is_the_published_procedure():
    """Against a plain loop over the published steps, whole matrices, no blocks."""
    X_num, X_den = two_samples(150, 3, 1)
    kliep = KLIEP(1.5, solver="projected_gradient", random_state=0).fit(X_num, X_den)
    phi, b = kernel(kliep, X_num), kernel(kliep, X_den).mean(axis=0)

    def feasible(theta):
        theta = theta + b * (1 - b @ theta) / (b @ b)
        theta = np.maximum(theta, 0)
        return theta / (b @ theta)

    theta = feasible(np.ones(len(b)))
    score = np.log(phi @ theta).mean()
    for exponent in range(3, -4, -1):
        for _ in range(100):
            proposal = feasible(theta + 10.0**exponent * phi.T @ (1 / (phi @ theta)))
            if np.log(phi @ proposal).mean() <= score:
                break
            theta, score = proposal, np.log(phi @ proposal).mean()
    np.testing.assert_allclose(kliep.coef_, theta, rtol=1e-9, atol=1e-12)
    assert kliep.objective_ == pytest.approx(score)


def test_the_downward_search_goes_down_while_the_score_rises():
    X_num, X_den = two_samples(300, 2, 2)
    kliep = KLIEP(search="downward", random_state=0).fit(X_num, X_den)
    widths, scores = kliep.bandwidth_scores_.T
    assert widths[0] == pytest.approx(9)
    assert (widths < 10).all()
    assert (widths > 0).all()
    assert kliep.bandwidth_ == widths[np.argmax(scores)]
    best, level = 10.0, 1.0
    for width, score in zip(widths, scores, strict=True):  # each step starts from the best so far
        while not np.isclose(best - width, level):
            level /= 10
            assert level >= 1e-5 * 0.99
        if score > scores[widths > width].max(initial=-np.inf):
            best = width


def test_the_grid_takes_the_width_of_the_highest_held_out_likelihood():
    X_num, X_den = two_samples(400, 1, 3)
    kliep = KLIEP(bandwidths=[0.01, 0.8, 50.0], random_state=0).fit(X_num, X_den)
    assert kliep.bandwidth_ == 0.8
    assert kliep.bandwidth_scores_.shape == (3, 2)
    assert KLIEP(0.8).fit(X_num, X_den).bandwidth_scores_.size == 0


def test_the_known_ratio_of_two_gaussians_is_recovered():
    rng = np.random.default_rng(0)
    X_den, X_num = rng.normal(0, 1, (5000, 1)), rng.normal(0.5, 0.8, (5000, 1))
    truth = np.exp(0.5 * X_den**2 - 0.5 * ((X_den - 0.5) / 0.8) ** 2)[:, 0] / 0.8
    estimate = KLIEP(random_state=0).fit(X_num, X_den).predict(X_den)
    assert np.mean((estimate - truth) ** 2) < 0.02 * np.var(truth)


def test_float32_rows_give_the_float64_ratio():
    X_num, X_den = two_samples(3000, 5, 4)
    exact = KLIEP(2.0, random_state=0).fit(X_num, X_den)
    single = KLIEP(2.0, random_state=0).fit(X_num.astype(np.float32), X_den.astype(np.float32))
    estimate = single.predict(X_den.astype(np.float32))
    assert estimate.dtype == np.float32
    assert single.kkt_gap_ <= 1e-5
    np.testing.assert_allclose(estimate, exact.predict(X_den), rtol=2e-3)


def test_distances_survive_a_far_origin():
    X_num, X_den = two_samples(200, 2, 5)
    near = KLIEP(1.0, random_state=0).fit(X_num, X_den).predict(X_den)
    far = KLIEP(1.0, random_state=0).fit(X_num + 1e5, X_den + 1e5).predict(X_den + 1e5)
    np.testing.assert_allclose(far, near, rtol=1e-6)


def test_rows_out_of_reach_of_every_centre_are_floored_not_nan():
    X_num = np.vstack([np.zeros((5, 1)), [[1e6]]])
    X_den = np.linspace(-1, 1, 20)[:, None]
    kliep = KLIEP(1.0, n_centers=2, random_state=0).fit(X_num, X_den)
    assert np.isfinite(kliep.coef_).all()
    assert kliep.predict([[1e6]])[0] >= 0


def test_stopping_early_warns_with_the_gap():
    X_num, X_den = two_samples(200, 2, 0)
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        KLIEP(0.5, max_iter=1, random_state=0).fit(X_num, X_den)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"bandwidth": -1.0}, "bandwidth must be a finite number > 0, got -1.0"),
        ({"bandwidth": "silverman"}, r"bandwidth='silverman' is not one of \['cv'\]"),
        ({"solver": "adam"}, "solver='adam' is not one of"),
        ({"search": "up"}, "search='up' is not one of"),
        ({"n_centers": 0}, "n_centers must be an integer >= 1, got 0"),
        ({"cv": 1}, "cv must be an integer >= 2, got 1"),
        ({"bandwidths": []}, "bandwidths must be a list of numbers > 0"),
    ],
)
def test_bad_parameters_are_named(parameters, message):
    X_num, X_den = two_samples(50, 2, 0)
    with pytest.raises(ValueError, match=message):
        KLIEP(**parameters).fit(X_num, X_den)


def test_samples_that_no_width_can_bridge_are_refused():
    with pytest.raises(ValueError, match="reach"):
        KLIEP(1.0).fit(np.zeros((5, 1)), np.full((5, 1), 1e6))


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads Linux's /proc")
def test_a_million_rows_add_less_than_500_mb():
    """Peak resident memory of a process of its own, less what the rows themselves take."""
    script = """
import numpy as np
from unflip.density_ratio import KLIEP

def peak_megabytes():
    lines = open("/proc/self/status").read().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 1000

rng = np.random.default_rng(0)
X_den = rng.standard_normal((1_000_000, 20))
X_num = X_den[X_den[:, 0] + rng.standard_normal(1_000_000) > 0]
before = peak_megabytes()
kliep = KLIEP(np.sqrt(20), random_state=0).fit(X_num, X_den)
assert kliep.kkt_gap_ <= 1e-6, kliep.kkt_gap_
print(peak_megabytes() - before)
"""
    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    assert float(run.stdout) < 500


@pytest.mark.parametrize("d", [1, 10])
def test_the_grid_chooses_widths_that_hold_on_new_denominator_rows(d):
    """Independent samples: held-out numerator rows alone would choose spikes."""
    rng = np.random.default_rng(0)
    means = []
    for seed in range(5):
        X_den, X_num = rng.normal(size=(500, d)), rng.normal(0.3, 0.9, size=(500, d))
        kliep = KLIEP(random_state=seed).fit(X_num, X_den)
        means.append(kliep.predict(rng.normal(size=(2000, d))).mean())
    np.testing.assert_allclose(means, 1, atol=0.35)
