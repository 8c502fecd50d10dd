"""KLIEP: the density ratio by maximum likelihood of the numerator's rows."""

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning

from unflip._validation import check_choice, check_count, check_positive, check_positives
from unflip.density_ratio._base import KernelDensityRatio, TwoSamples
from unflip.density_ratio._kernel import (
    SELECTION_ROWS,
    Design,
    GaussianDesign,
    MatrixDesign,
    gaussian,
    squared_distances,
    width_grid,
)
from unflip.density_ratio._newton import nonnegative_newton_target

Array = NDArray[Any]

NEWTON_START_ROWS = 10_000
"""With more than twice as many numerator rows, Newton's method starts on a sample of this size."""

TINY = 1e-300
"""Stands for r = 0 inside a logarithm: a row that no basis function reaches."""


class KLIEP(KernelDensityRatio):
    r"""Kullback-Leibler importance estimation procedure.

    Maximises mean_num log r(x) subject to mean_den r(x) = 1 and theta >= 0, with
    r(x) = sum_l theta_l exp(-|x - c_l|^2 / (2 bandwidth^2)) and centres c_l drawn from the
    numerator's rows.

    Parameters
    ----------
    bandwidth : "cv" or float, default="cv"
        The kernel's width. "cv" chooses it by likelihood cross-validation on the numerator's rows.
    n_centers : int, default=100
        Number of basis functions (at most the number of numerator rows).
    solver : {"newton", "projected_gradient"}, default="newton"
        "newton" solves to optimality: `kkt_gap_` <= `tol`. "projected_gradient" is the published
        procedure, with step sizes 1e3, 1e2, ..., 1e-3 and at most 100 steps of each; it stops
        before the optimum, and Liu and Tao's tables depend on that.
    search : {"grid", "downward"}, default="grid"
        How "cv" looks for the width: over `bandwidths`, or by the published search that goes down
        from 10 in steps of 1, then 0.1, ..., 1e-5, each level until the score stops rising.
        The published search presumes standardised features, and holds out numerator rows only;
        the grid holds out denominator rows as well, without which it would favour widths so small
        that r explodes between the denominator's rows.
    bandwidths : array-like, default=None
        Widths of the grid. None: nine, from 1/8 to 2 times the median distance.
    cv : int, default=5
        Number of folds of the likelihood cross-validation.
    tol : float, default=1e-6
        Bound on the KKT gap at which "newton" stops (1e-5 at the least for float32 rows).
    max_iter : int, default=100
        Bound on Newton's iterations.
    random_state : int, RandomState instance or None, default=None
        Seed of the centres and folds.

    Attributes
    ----------
    bandwidth_ : float
        The kernel's width.
    centers_ : ndarray of shape (n_centers, n_features)
        The centres.
    coef_ : ndarray of shape (n_centers,)
        theta.
    objective_ : float
        mean_num log r(x) at the solution.
    kkt_gap_ : float
        max_l g_l / b_l - 1, with g_l = mean_num phi_l / r and b_l = mean_den phi_l: zero at the
        optimum, and a bound on how far `objective_` is below it.
    bandwidth_scores_ : ndarray of shape (n_tried, 2)
        The widths tried and their cross-validated log-likelihood. Empty where the width was given.
    n_iter_ : int
        Steps taken.

    Notes
    -----
    With alpha_l = b_l theta_l the problem is maximum likelihood of mixture weights on the simplex.
    "newton" solves it by sequential quadratic programming: each step is a non-negative least
    squares problem in as many unknowns as there are centres. Memory is bounded by blocks of rows.

    References
    ----------
    Sugiyama, Suzuki, Nakajima, Kashima, von Bünau, Kawanabe (2008), "Direct importance estimation
    for covariate shift adaptation", AISM 60.

    Examples
    --------
    >>> import numpy as np
    >>> from unflip.density_ratio import KLIEP
    >>> rng = np.random.default_rng(0)
    >>> X_den, X_num = rng.normal(0, 1, (2000, 1)), rng.normal(0.5, 0.8, (1000, 1))
    >>> kliep = KLIEP(random_state=0).fit(X_num, X_den)
    >>> bool(kliep.kkt_gap_ < 1e-6), round(float(kliep.predict(X_den).mean()), 6)
    (True, 1.0)
    """

    objective_: float
    kkt_gap_: float
    bandwidth_scores_: Array
    n_iter_: int

    def __init__(
        self,
        bandwidth: float | str = "cv",
        n_centers: int = 100,
        *,
        solver: str = "newton",
        search: str = "grid",
        bandwidths: ArrayLike | None = None,
        cv: int = 5,
        tol: float = 1e-6,
        max_iter: int = 100,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.bandwidth = bandwidth
        self.n_centers = n_centers
        self.solver = solver
        self.search = search
        self.bandwidths = bandwidths
        self.cv = cv
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    def score(self, X_num: Any, X_den: Any = None) -> float:
        """Return mean_num log r(x) on new rows: higher is better. `X_den` is not used."""
        return _mean_log(self.predict(X_num))

    def _fit_kernel(
        self, samples: TwoSamples, centers: Array, random_state: np.random.RandomState
    ) -> dict[str, Any]:
        check_choice(self.solver, ("newton", "projected_gradient"), "solver")
        check_choice(self.search, ("grid", "downward"), "search")
        tried = np.empty((0, 2))
        if isinstance(self.bandwidth, str):
            check_choice(self.bandwidth, ("cv",), "bandwidth")
            drawn = samples.drawn(SELECTION_ROWS, random_state)
            bandwidth, tried = self._choose_bandwidth(drawn, centers)
        else:
            bandwidth = check_positive(self.bandwidth, "bandwidth")
        mean_den = GaussianDesign(samples.den, centers, bandwidth).mean(samples.weight_den)
        n_num = samples.num.shape[0]
        if self.solver == "newton" and n_num > 2 * NEWTON_START_ROWS:
            rows = random_state.choice(n_num, NEWTON_START_ROWS, replace=False)
            sample = GaussianDesign(samples.num[rows], centers, bandwidth, many_passes=True)
            start = self._solve(sample, mean_den, samples.weight_num[rows], tol=1e-3).alpha
        else:
            start = None
        design = GaussianDesign(samples.num, centers, bandwidth, many_passes=True)
        solution = self._solve(design, mean_den, samples.weight_num, start=start)
        tol = _reachable(self.tol, centers.dtype)
        if self.solver == "newton" and not solution.kkt_gap <= tol:
            warnings.warn(
                f"KLIEP stopped after {solution.n_iter} Newton steps at a KKT gap of "
                f"{solution.kkt_gap:.2g}, above tol={tol:.2g}. Raise max_iter or tol, or use "
                "a wider bandwidth.",
                ConvergenceWarning,
                stacklevel=4,
            )
        return {
            "bandwidth_": bandwidth,
            "coef_": solution.coef(mean_den),
            "objective_": solution.objective,
            "kkt_gap_": solution.kkt_gap,
            "bandwidth_scores_": tried,
            "n_iter_": solution.n_iter,
        }

    def _solve(
        self,
        design: Design,
        mean_den: Array,
        weight: Array,
        *,
        tol: float | None = None,
        start: Array | None = None,
    ) -> "_Solution":
        if not mean_den.max() > 0:
            raise ValueError(
                "no denominator row is within reach of any centre, so the ratio is unbounded: "
                "use a wider bandwidth, or scale the features."
            )
        if self.solver == "projected_gradient":
            return _projected_gradient(design, mean_den, weight)
        tol = _reachable(self.tol if tol is None else tol, design.dtype)
        return _newton(design, mean_den, weight, tol, self.max_iter, start)

    def _choose_bandwidth(self, samples: TwoSamples, centers: Array) -> tuple[float, Array]:
        """Return the width with the best cross-validated likelihood, and all that were tried.

        The rows of `samples` are in random order.
        """
        n_num, n_den = samples.num.shape[0], samples.den.shape[0]
        if n_num < 2:
            raise ValueError(
                "bandwidth='cv' needs at least two numerator rows, got 1: give a width."
            )
        check_count(self.cv, "cv", least=2)
        distances_num = squared_distances(samples.num, centers)
        distances_den = squared_distances(samples.den, centers)
        weight_num, weight_den = samples.weight_num, samples.weight_den
        n_folds = min(self.cv, n_num)
        fold = np.arange(n_num) * n_folds // n_num
        fold_den = np.arange(n_den) * n_folds // n_den
        hold_out_den = self.search == "grid" and n_den >= n_folds

        def score(bandwidth: float) -> float:
            """Mean over folds of the held-out mean log r, less log mean r of held-out X_den."""
            phi = gaussian(distances_num.copy(), bandwidth)
            phi_den = gaussian(distances_den.copy(), bandwidth)
            scores, start = [], None
            for k in range(n_folds):
                train, train_den = fold != k, fold_den != k
                if not hold_out_den:
                    train_den = np.ones_like(train_den)
                mean_den = weight_den[train_den] @ phi_den[train_den] / weight_den[train_den].sum()
                if not mean_den.max() > 0:
                    return float(np.log(TINY))
                solution = self._solve(
                    MatrixDesign(phi[train]), mean_den, weight_num[train], tol=1e-4, start=start
                )
                start, coef = solution.alpha, solution.coef(mean_den)
                value = _mean_log(phi[~train] @ coef, weight_num[~train])
                if hold_out_den:
                    ratio = phi_den[~train_den] @ coef
                    value -= np.log(max(np.average(ratio, weights=weight_den[~train_den]), TINY))
                scores.append(value)
            return float(np.mean(scores))

        if self.search == "downward":
            candidates = _downward_search(score)
        else:
            grid = width_grid(centers) if self.bandwidths is None else self.bandwidths
            widths = check_positives(grid, "bandwidths")
            candidates = ((float(width), score(width)) for width in widths)
        tried = np.array(list(candidates))
        return float(tried[np.argmax(tried[:, 1]), 0]), tried


def _downward_search(score: Callable[[float], float]) -> Iterator[tuple[float, float]]:
    """Go down from 10 in steps of 1, 0.1, ..., 1e-5, each level while the score rises."""
    bandwidth, best = 10.0, -np.inf
    for level in range(6):
        for _ in range(9):
            candidate = bandwidth - 10.0**-level
            value = score(candidate)
            yield candidate, value
            if value <= best:
                break
            bandwidth, best = candidate, value


@dataclass(frozen=True)
class _Solution:
    """Mixture weights alpha_l = b_l theta_l >= 0 that sum to one, and how good they are."""

    alpha: Array
    objective: float
    kkt_gap: float
    n_iter: int

    def coef(self, mean_den: Array) -> Array:
        return np.divide(self.alpha, mean_den, out=np.zeros_like(mean_den), where=mean_den > 0)


@dataclass(frozen=True)
class _Likelihood:
    """F(alpha) = mean log r - sum alpha with its derivatives; r = Phi (alpha / b)."""

    alpha: Array
    ratio: Array
    value: float
    gradient: Array  # of mean log r
    hessian: Array  # of -mean log r

    @property
    def kkt_gap(self) -> float:
        """max_l g_l - 1 at the weights scaled to sum to one."""
        return float(self.alpha.sum() * self.gradient.max() - 1)


def _newton(
    design: Design,
    mean_den: Array,
    weight: Array,
    tol: float,
    max_iter: int,
    start: Array | None,
) -> _Solution:
    """Sequential quadratic programming on the mixture weights, with an Armijo line search.

    maximise mean log r - sum alpha over alpha >= 0: the solution sums to one by itself.
    """
    usable = mean_den > 0
    alpha = usable / usable.sum()
    if start is not None:  # a share of every function keeps each row's likelihood above zero
        alpha = 0.999 * start + 0.001 * alpha
    fit_weight = weight
    current = _likelihood(design, mean_den, fit_weight, alpha)
    if not current.ratio.all():  # rows out of reach have likelihood zero whatever the weights
        fit_weight = np.where(current.ratio > 0, weight, 0.0)
        if not fit_weight.any():
            raise ValueError("no numerator row is within reach of any centre: widen the bandwidth.")
        current = _likelihood(design, mean_den, fit_weight, alpha)
    n_iter = 0
    while current.kkt_gap > tol and n_iter < max_iter:
        n_iter += 1
        step_to = nonnegative_newton_target(current.hessian, 1 - current.gradient, current.alpha)
        target = np.where(usable, step_to, 0.0)
        full = _likelihood(design, mean_den, fit_weight, target)
        step = _armijo(current, full, fit_weight)
        if step == 0:  # the limits of arithmetic: nothing improves
            break
        current = (
            full
            if step == 1
            else _likelihood(design, mean_den, fit_weight, _between(current, full, step))
        )
    total = current.alpha.sum()
    objective = _mean_log(current.ratio / total, weight)
    return _Solution(current.alpha / total, objective, current.kkt_gap, n_iter)


def _likelihood(design: Design, mean_den: Array, weight: Array, alpha: Array) -> _Likelihood:
    """One pass over the rows: value, gradient and Hessian at alpha."""
    scale = np.divide(1.0, mean_den, out=np.zeros_like(mean_den), where=mean_den > 0)
    coef = (alpha * scale).astype(design.dtype)
    ratio = np.empty(design.n_rows, dtype=design.dtype)
    gradient = np.zeros(alpha.size)
    hessian = np.zeros((alpha.size, alpha.size))
    for rows, block in design.blocks():
        ratio[rows] = block @ coef
        relative = block / np.where(ratio[rows] > 0, ratio[rows], 1)[:, None]
        gradient += weight[rows] @ relative
        relative *= np.sqrt(weight[rows]).astype(relative.dtype)[:, None]
        hessian += relative.T @ relative
    total = weight.sum()
    return _Likelihood(
        alpha,
        ratio,
        _mean_log(ratio, weight) - float(alpha.sum()),
        gradient * scale / total,
        hessian * scale * scale[:, None] / total,
    )


def _armijo(current: _Likelihood, full: _Likelihood, weight: Array) -> float:
    """Return the first of 1, 1/2, 1/4, ... that rises enough, or 0 where none does."""
    slope = (current.gradient - 1) @ (full.alpha - current.alpha)
    step, value = 1.0, full.value
    while not value >= current.value + 1e-4 * step * slope:
        step /= 2
        if step < 1e-10:
            return 0.0
        ratio = current.ratio + step * (full.ratio - current.ratio)
        value = _mean_log(ratio, weight) - _between(current, full, step).sum()
    return step


def _between(current: _Likelihood, full: _Likelihood, step: float) -> Array:
    return current.alpha + step * (full.alpha - current.alpha)


def _projected_gradient(design: Design, mean_den: Array, weight: Array) -> _Solution:
    """Gradient ascent as published: theta += e Phi'(1 / Phi theta), then made feasible."""
    row_weight = weight * (weight.size / weight.sum())

    def project(theta: Array) -> Array:
        theta = theta + (1 - mean_den @ theta) * mean_den / (mean_den @ mean_den)
        theta = np.maximum(theta, 0.0)
        return theta / (mean_den @ theta)

    def gradient(ratio: Array) -> Array:
        total = np.zeros(mean_den.size)
        for rows, block in design.blocks():
            total += (row_weight[rows] / np.maximum(ratio[rows], TINY)) @ block
        return total

    theta = project(np.ones_like(mean_den))
    ratio = design.dot(theta)
    objective = _mean_log(ratio, weight)
    n_iter = 0
    for step in 10.0 ** np.arange(3, -4, -1):
        for _ in range(100):
            proposal = project(theta + step * gradient(ratio))
            proposal_ratio = design.dot(proposal)
            value = _mean_log(proposal_ratio, weight)
            if not value > objective:
                break
            theta, ratio, objective = proposal, proposal_ratio, value
            n_iter += 1
    usable = mean_den > 0
    relative = gradient(ratio)[usable] / (row_weight.sum() * mean_den[usable])
    return _Solution(theta * mean_den, objective, float(relative.max() - 1), n_iter)


def _mean_log(ratio: Array, weight: Array | None = None) -> float:
    """Weighted mean of log r, with r floored where no basis function reaches a row."""
    return float(np.average(np.log(np.maximum(ratio, TINY, dtype=np.float64)), weights=weight))


def _reachable(tol: float, dtype: np.dtype[Any]) -> float:
    """Return the tolerance that the rows' precision can meet."""
    return max(tol, 1e-5) if dtype == np.float32 else tol
