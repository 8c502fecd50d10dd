"""Kernel mean matching: weights that match the mean embeddings of both samples."""

from collections.abc import Callable

import numpy as np
from scipy import sparse
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigh
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from unflip._utils.gaussian_kernel import (
    DistancesTo,
    gaussian,
    median_distance,
    row_blocks,
    smooth,
    squared_distances,
    weighted_gram,
)
from unflip._utils.samples import TwoSamples
from unflip._utils.typing import Array, RandomState, Record, Rows
from unflip._utils.validation import (
    check_choice,
    check_count,
    check_not_negative,
    check_positive,
    check_width,
)
from unflip._utils.warning import warn
from unflip.density_ratio._base import BaseDensityRatio

MIN_EPSILON = 1e-6
"""Minimum of epsilon: the interior-point method needs an interior."""

MAX_PROGRAMME_ROWS = 50_000
"""Maximum samples of a quadratic programme with landmarks: 120 MB of features for 300 of them."""


class KMM(BaseDensityRatio):
    r"""Kernel mean matching.

    Finds a weight for every denominator sample by the quadratic programme ::

        min_w  | mean_den w_i phi(x_i) - mean_num phi(x_j) |^2
        subject to  0 <= w_i <= upper_bound  and  | mean_den w_i - 1 | <= epsilon,

    with phi the feature map of a Gaussian kernel. `predict` returns the kernel-weighted mean of the
    weights of n denominator samples, with the width bandwidth * n^(-1 / (n_features + 4)).

    Parameters
    ----------
    bandwidth : "median" or float, default="median"
        The kernel's width; "median" is the median distance between samples.
    upper_bound : float, default=1000
        Maximum weight.
    epsilon : float, default=None
        Maximum distance of the mean weight from 1, at least 1e-6. None: 1 / sqrt(total weight of
        the denominator).
    block_size : int, default=2000
        Maximum samples of a quadratic programme with the full kernel, which needs O(block_size^2)
        memory.
    n_landmarks : int or None, default=300
        With more denominator samples than `block_size`, means are matched in the span of the kernel
        functions at this many random samples; `residual_` is the error. Time is linear in the
        samples. More than 50 000 samples are split at random into programmes of at most that many,
        each matched to as many numerator samples. None: samples are split into programmes of
        `block_size` samples with the full kernel, whose error is that of a subset of that size.
    tol : float, default=1e-6
        Optimality gap at which to stop (see `gap_`).
    max_iter : int, default=100
        Maximum number of interior-point steps for a block.
    random_state : int, RandomState instance or None, default=None
        Seed of the blocks.

    Attributes
    ----------
    bandwidth_ : float
        The kernel's width.
    weights_ : ndarray of shape (n_den,)
        The solution: one weight per denominator sample (0 for samples of weight 0).
    residual_ : float
        Bound on the error of the norm above due to the landmarks: sum_i |(1 - P) phi(x_i)|,
        weighted by w in the denominator, with P the projection on their span. 0 with the full
        kernel.
    gap_ : float
        Maximum optimality gap of a block: a bound on the distance of its objective from the
        optimum.
    support_, support_weights_ : ndarray
        The denominator samples that `predict` smooths over, at most `block_size` drawn at random,
        and their weights.

    Notes
    -----
    Features are not scaled, and one width serves all columns: a column on a larger scale dominates
    the others. Standardise the columns first.

    References
    ----------
    Huang, Smola, Gretton, Borgwardt, Schölkopf (2006), "Correcting sample selection bias by
    unlabeled data", NIPS.

    Examples
    --------
    >>> import numpy as np
    >>> from unflip.density_ratio import KMM
    >>> rng = np.random.default_rng(0)
    >>> X_den, X_num = rng.normal(0, 1, (400, 1)), rng.normal(0.5, 0.8, (200, 1))
    >>> kmm = KMM(random_state=0).fit(X_num, X_den)
    >>> bool(kmm.gap_ < 1e-6), bool(abs(kmm.weights_.mean() - 1) <= 0.05 + 1e-9)
    (True, True)
    """

    bandwidth_: float
    weights_: Array
    residual_: float
    gap_: float
    support_: Rows
    support_weights_: Array

    def __init__(
        self,
        bandwidth: float | str = "median",
        *,
        upper_bound: float = 1000.0,
        epsilon: float | None = None,
        block_size: int = 2000,
        n_landmarks: int | None = 300,
        tol: float = 1e-6,
        max_iter: int = 100,
        random_state: RandomState = None,
    ) -> None:
        self.bandwidth = bandwidth
        self.upper_bound = upper_bound
        self.epsilon = epsilon
        self.block_size = block_size
        self.n_landmarks = n_landmarks
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    def _fit(self, samples: TwoSamples) -> Record:
        upper = check_positive(self.upper_bound, "upper_bound")
        if upper < 1:
            raise ValueError(f"upper_bound must be >= 1 (the mean weight), got {upper:g}.")
        X_den, weight_den = samples.den, samples.weight_den
        n_den = X_den.shape[0]
        if self.epsilon is None:
            epsilon = float(weight_den.sum() ** -0.5)
        else:
            epsilon = check_not_negative(self.epsilon, "epsilon")
        epsilon = max(epsilon, MIN_EPSILON)
        check_not_negative(self.tol, "tol")
        check_count(self.max_iter, "max_iter", least=1)
        check_count(self.block_size, "block_size", least=2)
        random_state = check_random_state(self.random_state)
        order = random_state.permutation(n_den)
        if isinstance(self.bandwidth, str):
            check_choice(self.bandwidth, ("median",), "bandwidth")
            bandwidth = median_distance(X_den[order[: min(self.block_size, 1000)]])
        else:
            bandwidth = check_width(self.bandwidth, "bandwidth")
        landmarks, largest = None, self.block_size
        if self.n_landmarks is not None:
            check_count(self.n_landmarks, "n_landmarks", least=1)
            if n_den > self.block_size:
                landmarks = X_den[order[: self.n_landmarks]]
                largest = max(self.block_size, MAX_PROGRAMME_ROWS)
        weights, gaps, residuals = np.empty(n_den), [], []
        for block in np.array_split(order, -(-n_den // largest)):
            num = random_state.permutation(samples.num.shape[0])[:largest]
            weights[block], gap, residual = _match(
                X_den[block],
                samples.num[num],
                weight_den[block] / weight_den[block].mean(),
                samples.weight_num[num] / samples.weight_num[num].sum(),
                landmarks,
                bandwidth,
                upper,
                epsilon,
                self.tol,
                self.max_iter,
            )
            gaps.append(gap)
            residuals.append(residual)
        if not max(gaps) <= self.tol:
            warn(
                f"KMM stopped after {self.max_iter} steps at an optimality gap of {max(gaps):.2g}, "
                f"above tol={self.tol:.2g}. Raise max_iter or tol.",
                ConvergenceWarning,
            )
        support = order[: self.block_size]
        return {
            "bandwidth_": bandwidth,
            "weights_": weights,
            "residual_": max(residuals),
            "gap_": max(gaps),
            "support_": X_den[support],
            "support_weights_": weights[support],
            "_support_mass": weight_den[support],
        }

    def _ratio(self, X: Rows) -> Array:
        rate = -1 / (self.support_.shape[1] + 4)  # Scott's rule
        width = self.bandwidth_ * max(1.0, self._support_mass.sum()) ** rate
        values = self.support_weights_[:, None]
        return smooth(X, self.support_, values, self._support_mass, width)[:, 0]


def _match(
    X_den: Rows,
    X_num: Rows,
    mass_den: Array,
    mass_num: Array,
    landmarks: Rows,
    bandwidth: float,
    upper: float,
    epsilon: float,
    tol: float,
    max_iter: int,
) -> tuple[Array, float, float]:
    """Return the weights of one block of denominator samples, the gap and the residual.

    The unknowns are g_i = mass_i w_i / n, which sum to about one; the objective is
    g'Kg - 2 k'g with k_i = sum_j mass_j kernel(x_i, x_j).
    """
    n = X_den.shape[0]
    ceiling = upper * mass_den / n
    low, high = max(0.0, 1 - epsilon), min(1 + epsilon, ceiling.sum())
    if landmarks is None:
        K = gaussian(squared_distances(X_den, X_den), bandwidth).astype(float)
        k = gaussian(squared_distances(X_den, X_num), bandwidth).astype(float) @ mass_num
        g, gap = _interior_point(_FullKernel(K), k, ceiling, low, high, tol, max_iter)
        return g * n / mass_den, gap, 0.0
    features = _landmark_features(landmarks, bandwidth)
    Z, Z_num = features(X_den), features(X_num)
    k = Z @ (mass_num @ Z_num)
    g, gap = _interior_point(_LowRankKernel(Z), k, ceiling, low, high, tol, max_iter)
    return (
        g * n / mass_den,
        gap,
        float(g @ _projection_error(Z) + mass_num @ _projection_error(Z_num)),
    )


def _landmark_features(landmarks: Rows, bandwidth: float) -> Callable[[Rows], Array]:
    """Return z(x), the coordinates of phi(x) projected on the span of the landmarks' phi."""
    values, vectors = eigh(gaussian(squared_distances(landmarks, landmarks), bandwidth))
    kept = values > 1e-10 * values[-1]
    root = (vectors[:, kept] / np.sqrt(values[kept])).astype(float)
    distances = DistancesTo(landmarks, sparse_rows=sparse.issparse(landmarks))

    def features(X: Rows) -> Array:
        Z = np.empty((X.shape[0], root.shape[1]))
        for rows in row_blocks(X.shape[0], landmarks.shape[0]):
            Z[rows] = gaussian(distances(X[rows]), bandwidth) @ root
        return Z

    return features


def _projection_error(Z: Array) -> Array:
    """Return |(1 - P) phi(x)| of every sample, given |phi(x)| = 1."""
    return np.sqrt(np.maximum(0.0, 1 - np.einsum("ij,ij->i", Z, Z)))


class _FullKernel:
    """K as a full matrix."""

    def __init__(self, K: Array) -> None:
        self.K = K

    def __matmul__(self, g: Array) -> Array:
        return self.K @ g

    def solver(self, diagonal: Array, common: float) -> Callable[[Array], Array]:
        """Return v -> (2 K + common + diag(diagonal))^-1 v."""
        system = 2 * self.K + common
        system[np.diag_indices(len(system))] += diagonal
        factor = cho_factor(system, overwrite_a=True, check_finite=False)
        return lambda v: cho_solve(factor, v, check_finite=False)


class _LowRankKernel:
    """K = Z Z', of low rank."""

    def __init__(self, Z: Array) -> None:
        self.Z = Z

    def __matmul__(self, g: Array) -> Array:
        return self.Z @ (self.Z.T @ g)

    def solver(self, diagonal: Array, common: float) -> Callable[[Array], Array]:
        """Return v -> (2 K + common + diag(diagonal))^-1 v, by Woodbury's identity."""
        U = np.column_stack([np.sqrt(2.0) * self.Z, np.full(len(self.Z), np.sqrt(common))])
        small = np.eye(U.shape[1])
        for rows in row_blocks(*U.shape):
            small += weighted_gram(U[rows], 1 / diagonal[rows])
        factor = cho_factor(small, overwrite_a=True, check_finite=False)

        def solve(v: Array) -> Array:
            inner = v / diagonal
            return inner - (U @ cho_solve(factor, U.T @ inner, check_finite=False)) / diagonal

        return solve


def _interior_point(
    K: _FullKernel | _LowRankKernel,
    k: Array,
    ceiling: Array,
    low: float,
    high: float,
    tol: float,
    max_iter: int,
) -> tuple[Array, float]:
    """Minimise g'Kg - 2 k'g over 0 <= g <= ceiling, low <= sum g <= high.

    Mehrotra's predictor-corrector method on the constraints G g <= h, where G stacks
    I, -I and rows of 1 and -1. Each step needs one factorisation.
    """
    n = k.size
    limits = np.concatenate([ceiling, np.zeros(n), [high, -low]])
    g = ceiling * ((low + high) / 2 / ceiling.sum())
    slack = np.maximum(limits - _constraints(g), 1e-3 / n)
    dual = np.ones(limits.size)
    for _ in range(max_iter):
        feasible = _project(g, ceiling, low, high)
        gap = _dual_gap(feasible, 2 * (K @ feasible - k), ceiling, low, high)
        mean = slack @ dual / slack.size
        if gap <= tol or mean < 1e-26:
            break
        pull = dual / slack
        try:
            # the ridge avoids a singular system with duplicate samples
            solve = K.solver(pull[:n] + pull[n : 2 * n] + 1e-12, float(pull[2 * n :].sum()))
        except LinAlgError:  # rounding errors prevent further progress
            break
        slope = 2 * (K @ g - k) + _transposed_constraints(dual)
        miss = _constraints(g) + slack - limits
        # predict the reduction of complementarity, then correct with a second-order term
        _, slack_step, dual_step = _newton_step(solve, slope, miss, slack, dual, slack * dual)
        ahead = min(_reach(slack, slack_step), _reach(dual, dual_step))
        predicted = (slack + ahead * slack_step) @ (dual + ahead * dual_step) / slack.size
        excess = slack * dual + slack_step * dual_step - (predicted / mean) ** 3 * mean
        step, slack_step, dual_step = _newton_step(solve, slope, miss, slack, dual, excess)
        ahead = 0.995 * min(_reach(slack, slack_step), _reach(dual, dual_step))
        g = g + ahead * step
        slack = slack + ahead * slack_step
        dual = dual + ahead * dual_step
    return feasible, gap


def _newton_step(
    solve: Callable[[Array], Array],
    slope: Array,
    miss: Array,
    slack: Array,
    dual: Array,
    excess: Array,
) -> tuple[Array, Array, Array]:
    """Return the steps of g, slack and dual that make slope, miss and excess zero."""
    known = (dual * miss - excess) / slack
    step = solve(-slope - _transposed_constraints(known))
    moved = _constraints(step)
    return step, -miss - moved, known + dual / slack * moved


def _constraints(g: Array) -> Array:
    """G g: the unknowns, their negatives, their sum and its negative."""
    total = g.sum()
    return np.concatenate([g, -g, [total, -total]])


def _transposed_constraints(v: Array) -> Array:
    """G'v."""
    n = (v.size - 2) // 2
    return v[:n] - v[n : 2 * n] + (v[2 * n] - v[2 * n + 1])


def _reach(values: Array, step: Array) -> float:
    """Return the largest share of the step, at most 1, that keeps the values positive."""
    falling = step < 0
    return min(1.0, float(np.min(-values[falling] / step[falling], initial=np.inf)))


def _project(z: Array, ceiling: Array, low: float, high: float) -> Array:
    """Return the nearest point with 0 <= g <= ceiling and low <= sum g <= high."""
    g = np.clip(z, 0.0, ceiling)
    total = g.sum()
    if low <= total <= high:
        return g
    target = low if total < low else high
    # sum clip(z - shift) decreases in shift: bisect
    left, right = float((z - ceiling).min()), float(z.max())
    for _ in range(100):
        shift = (left + right) / 2
        g = np.clip(z - shift, 0.0, ceiling)
        if g.sum() > target:
            left = shift
        else:
            right = shift
        if right - left <= 1e-16 * max(1.0, abs(left)):
            break
    return g


def _dual_gap(g: Array, gradient: Array, ceiling: Array, low: float, high: float) -> float:
    """Return max over feasible s of gradient'(g - s), a bound on the optimality gap."""
    order = np.argsort(gradient)
    filled = np.cumsum(ceiling[order])
    # fill in order of descent: while it helps, or until the sum reaches `low`
    target = np.where(gradient[order] < 0, high, low)
    amounts = np.clip(target - (filled - ceiling[order]), 0.0, ceiling[order])
    return float(gradient @ g - gradient[order] @ amounts)
