"""KLIEP: the density ratio by maximum likelihood of the numerator's samples."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from unflip._utils.docs import documented_like
from unflip._utils.gaussian_kernel import (
    SELECTION_ROWS,
    Design,
    GaussianBasis,
    GaussianDesign,
    MatrixDesign,
    reached,
    width_grid,
)
from unflip._utils.samples import Samples, TwoSamples
from unflip._utils.sampling import shuffled
from unflip._utils.typing import Array, RandomState, Record, Rows
from unflip._utils.validation import (
    check_choice,
    check_count,
    check_positive,
    check_width,
    check_widths,
)
from unflip._utils.warning import warn
from unflip.density_ratio._base import BaseDensityRatio, KernelDensityRatio
from unflip.density_ratio._likelihood import (
    LikelihoodSums,
    NumeratorRows,
    OutOfCoreSums,
    maximise,
    one_pass,
)
from unflip.density_ratio._width_scores import WidthScores

MIN_START_ROWS, MAX_START_ROWS = 1000, 10_000
"""Newton's method starts on a sixth of the numerator's samples, at most the maximum, or on all
samples if a sixth is below the minimum."""

SINGLE_ROWS = 5000
"""Above this number of numerator samples, basis values are computed in single precision."""

RATIO_FLOOR = 1e-300
"""Floor of r inside a logarithm, for samples that no basis function reaches."""


@documented_like(KernelDensityRatio)
class KLIEP(KernelDensityRatio):
    r"""Kullback-Leibler importance estimation procedure.

    Maximises mean_num log r(x) subject to mean_den r(x) = 1 and theta >= 0, with
    r(x) = sum_l theta_l exp(-|x - c_l|^2 / (2 bandwidth^2)) and centres c_l drawn from the
    numerator's samples.

    Parameters
    ----------
    bandwidth : "cv" or float, default="cv"
        The kernel's width. "cv" chooses it by likelihood cross-validation on the numerator's
        samples.
    n_centers : int, default=100
        Number of basis functions (at most the number of numerator samples).
    solver : {"newton", "projected_gradient"}, default="newton"
        "newton" solves to optimality: `kkt_gap_` <= `tol`. "projected_gradient" is the published
        procedure, with step sizes 1e3, 1e2, ..., 1e-3 and at most 100 steps of each. It stops
        before the optimum, which Liu and Tao's tables depend on.
    search : {"grid", "downward"}, default="grid"
        How "cv" searches the width: over `bandwidths`, or by the published search that goes down
        from 10 in steps of 1, then 0.1, ..., 1e-5, each until the score stops increasing.
        The published search assumes standardised features, and holds out numerator samples only.
        The grid holds out denominator samples as well; otherwise it would favour widths so small
        that r explodes between the denominator's samples.
    bandwidths : array-like, default=None
        Widths of the grid. None: nine, from 1/8 to 2 times the median distance.
    cv : int, default=5
        Number of folds of the likelihood cross-validation.
    tol : float, default=1e-6
        KKT gap at which "newton" stops (at least 1e-5 for float32 samples).
    max_iter : int, default=100
        Maximum number of Newton iterations.
    random_state : int, RandomState instance or None, default=None
        Seed of the centres and folds.

    Attributes
    ----------
    objective_ : float
        mean_num log r(x) at the solution.
    kkt_gap_ : float
        max_l g_l / b_l - 1, with g_l = mean_num phi_l / r and b_l = mean_den phi_l: zero at the
        optimum, and a bound on how far `objective_` is below it.
    bandwidth_scores_ : ndarray of shape (n_tried, 2)
        The widths tried and their cross-validated log-likelihood. Empty if the width was given.
    n_iter_ : int
        Number of iterations.

    Notes
    -----
    Features are not scaled, and one width serves all columns: a column on a larger scale dominates
    the others. Standardise the columns first.

    With alpha_l = b_l theta_l the problem is maximum likelihood of mixture weights on the simplex.
    "newton" solves it by sequential quadratic programming: each step is a non-negative quadratic
    problem with one unknown per centre. With many samples it starts on a subset. With more than
    5000 numerator samples, basis values are computed in single precision (unless `tol` is below
    1e-6), which changes the KKT gap and mean_den r(x) by less than 1e-7. Samples are processed in
    blocks to bound memory.

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
        random_state: RandomState = None,
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

    def score(self, X_num: Rows, X_den: Rows = None) -> float:
        """Return mean_num log r(x) on new samples: higher is better. `X_den` is not used."""
        return _mean_log(self.predict(X_num))

    @property
    def _by_sums(self) -> bool:
        return self.solver == "newton"

    def _fit_kernel(
        self, samples: Any, centers: Array, random_state: np.random.RandomState
    ) -> Record:
        check_choice(self.solver, ("newton", "projected_gradient"), "solver")
        check_choice(self.search, ("grid", "downward"), "search")
        check_positive(self.tol, "tol")
        check_count(self.max_iter, "max_iter", least=1)
        tried = np.empty((0, 2))
        if isinstance(self.bandwidth, str):
            check_choice(self.bandwidth, ("cv",), "bandwidth")
            drawn = samples.drawn(SELECTION_ROWS, random_state)
            bandwidth, tried = self._choose_bandwidth(drawn, centers)
        else:
            bandwidth = check_width(self.bandwidth, "bandwidth")
        if self.solver == "newton":
            found = self._newton(samples, centers, bandwidth, random_state)
        else:
            mean_den = GaussianDesign(samples.den, centers, bandwidth).mean(samples.weight_den)
            _check_reach(mean_den)
            design = GaussianDesign(samples.num, centers, bandwidth, many_passes=True)
            found = projected_gradient(design, mean_den, samples.weight_num)
        return found | {"bandwidth_": bandwidth, "bandwidth_scores_": tried}

    def _newton(
        self,
        samples: Samples,
        centers: Array,
        bandwidth: float,
        random_state: np.random.RandomState,
    ) -> Record:
        """Solve by Newton's method, first on a subset if there are many samples."""
        n_num, mean_weight = samples.n_num, samples.total_num / samples.n_num
        tol = max(self.tol, 1e-5) if centers.dtype == np.float32 else self.tol
        # the rounding errors of many samples average out
        dtype = np.float32 if n_num > SINGLE_ROWS and tol >= 1e-6 else centers.dtype
        single = dtype == np.float32
        basis = GaussianBasis(centers, bandwidth, sparse_rows=samples.sparse)
        mean_den, blocks = one_pass(samples, basis, single=single)
        _check_reach(mean_den)
        usable = reached(mean_den)
        mean = mean_den[usable]
        basis = basis.over(mean_den, single=single)
        blocks = [block.over(mean) for block in blocks] if usable.all() else []
        alpha, hessian = np.full(mean.size, 1 / mean.size), None
        n_start = min(n_num // 6, MAX_START_ROWS)
        if n_start >= MIN_START_ROWS:
            few, weight = samples.num_rows(shuffled(n_num, n_start, random_state))
            sample = NumeratorRows(few, weight / mean_weight, basis, dtype)
            start = maximise(sample.sums, alpha, tol=1e-3, max_iter=self.max_iter).alpha
            # a share of every basis function keeps each sample's likelihood above zero
            alpha = 0.999 * start + 0.001 * alpha
            hessian = sample.sums(alpha, True).mean_hessian()
        sums: Callable[[Array, bool], LikelihoodSums]
        if isinstance(samples, TwoSamples):
            weight = samples.weight_num / mean_weight
            sums = NumeratorRows(samples.num, weight, basis, dtype, blocks).sums
        else:
            sums = OutOfCoreSums(samples, basis, dtype)
        solution = maximise(sums, alpha, tol=tol, max_iter=self.max_iter, hessian=hessian)
        if not solution.kkt_gap <= tol:
            warn(
                f"KLIEP stopped after {solution.n_iter} Newton steps at a KKT gap of "
                f"{solution.kkt_gap:.2g}, above tol={tol:.2g}. Raise max_iter or tol, or use "
                "a wider bandwidth.",
                ConvergenceWarning,
            )
        coef = np.zeros(usable.size)
        coef[usable] = solution.alpha / mean
        return {
            "coef_": coef,
            "objective_": solution.objective,
            "kkt_gap_": solution.kkt_gap,
            "n_iter_": solution.n_iter,
        }

    def _choose_bandwidth(self, samples: TwoSamples, centers: Array) -> tuple[float, Array]:
        """Return the width with the best cross-validated likelihood, and the scores of all.

        The rows of `samples` are in random order.
        """
        n_num, n_den = samples.num.shape[0], samples.den.shape[0]
        if n_num < 2:
            raise ValueError(
                "bandwidth='cv' needs at least two numerator samples, got 1: give a width."
            )
        check_count(self.cv, "cv", least=2)
        n_folds = min(self.cv, n_num)
        scores = WidthScores(
            samples,
            centers,
            n_folds,
            hold_out_den=self.search == "grid" and n_den >= n_folds,
            max_iter=self.max_iter,
            solver=None if self.solver == "newton" else _published_coef,
        )
        if self.search == "downward":
            tried = np.array(list(_downward_search(lambda width: scores.at(np.array([width]))[0])))
        else:
            grid = width_grid(centers) if self.bandwidths is None else self.bandwidths
            widths = check_widths(grid, "bandwidths")
            tried = np.column_stack([widths, scores.at(widths)])
        return float(tried[np.argmax(tried[:, 1]), 0]), tried


def as_density_ratio(ratio: BaseDensityRatio | None) -> BaseDensityRatio:
    """Return an unfitted copy of a density-ratio estimator, KLIEP by default."""
    if not (ratio is None or isinstance(ratio, BaseDensityRatio)):
        raise TypeError(
            f"ratio must be an estimator of unflip.density_ratio, or None for KLIEP, got {ratio!r}."
        )
    return clone(KLIEP() if ratio is None else ratio)


def _downward_search(score: Callable[[float], float]) -> Iterator[tuple[float, float]]:
    """Search down from 10 in steps of 1, 0.1, ..., 1e-5, each while the score increases."""
    bandwidth, best = 10.0, -np.inf
    for level in range(6):
        for _ in range(9):
            candidate = bandwidth - 10.0**-level
            value = score(candidate)
            yield candidate, value
            if value <= best:
                break
            bandwidth, best = candidate, value


def _check_reach(mean_den: Array) -> None:
    if not reached(mean_den).any():
        raise ValueError(
            "no denominator sample is within reach of any centre, so the ratio is unbounded: "
            "use a wider bandwidth, or scale the features."
        )


def _published_coef(phi: Array, weight: Array, mean_den: Array) -> Array:
    """Return theta of the published procedure for a matrix of basis values."""
    return np.asarray(projected_gradient(MatrixDesign(phi), mean_den, weight)["coef_"])


def projected_gradient(design: Design, mean_den: Array, weight: Array) -> Record:
    """Gradient ascent as published: theta += e Phi'(1 / Phi theta), then projected."""
    relative_weight = weight * (weight.size / weight.sum())

    def project(theta: Array) -> Array:
        theta = theta + (1 - mean_den @ theta) * mean_den / (mean_den @ mean_den)
        theta = np.maximum(theta, 0.0)
        return theta / (mean_den @ theta)

    def gradient(ratio: Array) -> Array:
        total = np.zeros(mean_den.size)
        for rows, block in design.blocks():
            total += (relative_weight[rows] / np.maximum(ratio[rows], RATIO_FLOOR)) @ block
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
    relative = gradient(ratio)[usable] / (relative_weight.sum() * mean_den[usable])
    return {
        "coef_": np.where(usable, theta, 0.0),
        "objective_": objective,
        "kkt_gap_": float(relative.max() - 1),
        "n_iter_": n_iter,
    }


def _mean_log(ratio: Array, weight: Array | None = None) -> float:
    """Return the weighted mean of log r, with the floor RATIO_FLOOR of r."""
    return float(
        np.average(np.log(np.maximum(ratio, RATIO_FLOOR, dtype=np.float64)), weights=weight)
    )
