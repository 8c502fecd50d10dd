"""Solvers of penalised weighted risk minimisation with a linear function."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, Ridge

from unflip._utils.typing import Array, Rows
from unflip._utils.warning import silenced, warn
from unflip.losses import Hinge, Logistic, Loss, MarginLoss, Squared

SCALE_ABOVE = 100.0
"""Columns are scaled only if an entry is larger; standardised columns are not."""

NEWTON_COLUMNS = 1000
"""Maximum number of columns for Newton steps on the smoothed hinge; L-BFGS beyond."""


@dataclass(frozen=True)
class LinearProblem:
    """sum_i w_i l(x_i'v + b, y_i) / sum_i w_i + alpha (r |v|_1 + (1-r) |v|^2 / 2).

    y is -1 or +1. The intercept b is penalised, by alpha b^2 / 2, only if the loss is unbounded
    below.
    """

    X: Rows
    y: Array
    weight: Array
    loss: Loss
    alpha: float
    l1_ratio: float = 0.0
    fit_intercept: bool = True

    def with_loss(self, loss: Loss) -> "LinearProblem":
        """Return the same problem with another loss."""
        return replace(self, loss=loss)

    @cached_property
    def share(self) -> Array:
        """Return each sample's share of the total weight."""
        return self.weight / self.weight.sum()

    def decision(self, parameters: Array) -> Array:
        """Return x_i'v + b for all samples; the intercept is the last parameter."""
        return np.asarray(self.X @ parameters[:-1]) + parameters[-1]

    def value(self, parameters: Array) -> float:
        """Return the objective, including the l1 penalty."""
        v = parameters[:-1]
        return self.smooth_part(parameters)[0] + self.alpha * self.l1_ratio * float(np.abs(v).sum())

    def smooth_part(self, parameters: Array) -> tuple[float, Array]:
        """Return value and gradient of the objective without the l1 penalty."""
        t, v = self.decision(parameters), parameters[:-1]
        ridge = self.alpha * (1 - self.l1_ratio)
        with np.errstate(over="ignore"):  # a trial step that overflows is rejected
            value = float(self.loss.value(t, self.y, self.share).sum()) + ridge * float(v @ v) / 2
            slope = self.loss.derivative(t, self.y, self.share)
        gradient = np.zeros_like(parameters)
        gradient[:-1] = np.asarray(self.X.T @ slope) + ridge * v
        if self.fit_intercept:
            pull = 0.0 if self.loss.bounded else self.alpha
            value += float(pull * np.square(parameters[-1]) / 2)
            gradient[-1] = slope.sum() + pull * parameters[-1]
        return value, gradient


@dataclass(frozen=True)
class LinearSolution:
    """Coefficients, intercept, and their optimality."""

    coef: Array
    intercept: float
    n_iter: int
    gap: float
    """Duality gap for the hinge, else the largest entry of the gradient."""


def solve(problem: LinearProblem, tol: float, max_iter: int) -> LinearSolution:
    """Return the minimiser; of a non-convex problem, the best local one of several starts."""
    smooth_penalty = problem.l1_ratio == 0
    if smooth_penalty and type(problem.loss) is Logistic:
        return _by_scikit_learn(
            problem,
            LogisticRegression(
                C=1 / (problem.alpha * problem.weight.sum()),
                fit_intercept=problem.fit_intercept,
                tol=tol,
                max_iter=max_iter,
            ),
        )
    if smooth_penalty and type(problem.loss) is Squared:
        return _by_scikit_learn(
            problem,
            Ridge(
                alpha=problem.alpha * problem.weight.sum() / 2, fit_intercept=problem.fit_intercept
            ),
        )
    if type(problem.loss) is Hinge:
        return _smoothed_hinge(problem, tol, max_iter)

    def convex_minimum(easier: LinearProblem) -> Array:
        found = solve(easier, tol, max_iter)
        return np.append(found.coef, found.intercept)

    starts = starting_points(problem, np.zeros(problem.X.shape[1] + 1), convex_minimum)
    runs = [_lbfgs(problem, start, tol, max_iter) for start in starts]
    best = min(runs, key=lambda run: problem.value(run[0]))
    return _solution(problem, *best)


def starting_points(
    problem: Any, origin: Array, convex_minimum: Callable[[Any], Array]
) -> list[Array]:
    """Return zero and, for a non-convex loss, the logistic minimum and four times it."""
    if problem.loss.convex:
        return [origin]
    guide = convex_minimum(problem.with_loss(Logistic()))
    return [origin, guide, 4 * guide]


def _by_scikit_learn(problem: LinearProblem, estimator: BaseEstimator) -> LinearSolution:
    estimator.fit(problem.X, problem.y, sample_weight=problem.weight)
    intercept = float(np.ravel(estimator.intercept_)[0]) if problem.fit_intercept else 0.0
    parameters = np.append(np.ravel(estimator.coef_), intercept)
    n_iter = 1 if estimator.n_iter_ is None else int(np.max(estimator.n_iter_))
    return _solution(problem, parameters, n_iter)


def _solution(problem: LinearProblem, parameters: Array, n_iter: int) -> LinearSolution:
    _, gradient = problem.smooth_part(parameters)
    if problem.l1_ratio > 0:
        v, pull = parameters[:-1], problem.alpha * problem.l1_ratio
        gradient[:-1] = np.where(
            v == 0,
            np.sign(gradient[:-1]) * np.maximum(0, np.abs(gradient[:-1]) - pull),
            gradient[:-1] + pull * np.sign(v),
        )
    return LinearSolution(
        parameters[:-1], float(parameters[-1]), n_iter, float(np.abs(gradient).max())
    )


def _lbfgs(problem: LinearProblem, start: Array, tol: float, max_iter: int) -> tuple[Array, int]:
    """Minimise by L-BFGS-B; an l1 penalty splits v into its positive and its negative part.

    Steps are in scaled columns; otherwise a first step would overflow an exponential loss. The
    objective and the stopping rule do not change.
    """
    scale = _scales(problem)
    options = {
        "maxiter": max_iter,
        "maxfun": 4 * max_iter,
        "gtol": tol / scale.max(),
        "ftol": 1e-15,
        "maxcor": 20,
    }

    def smooth_part(scaled: Array) -> tuple[float, Array]:
        value, gradient = problem.smooth_part(scaled / scale)
        return value, gradient / scale

    if problem.l1_ratio == 0:
        result = minimize(smooth_part, start * scale, jac=True, method="L-BFGS-B", options=options)
        parameters = result.x / scale
    else:
        d, pull = start.size - 1, problem.alpha * problem.l1_ratio / scale[:-1]

        def split(both: Array) -> tuple[float, Array]:
            value, gradient = smooth_part(_joined(both))
            parts = np.concatenate([gradient[:d] + pull, -gradient[:d] + pull, gradient[d:]])
            return value + float(np.tile(pull, 2) @ both[: 2 * d]), parts

        begin = start * scale
        both = np.concatenate([np.maximum(begin[:d], 0), np.maximum(-begin[:d], 0), begin[d:]])
        bounds = [(0, None)] * (2 * d) + [(None, None)]
        result = minimize(split, both, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
        parameters = _joined(result.x) / scale
    if result.nit >= max_iter and problem.loss.convex:
        warn(
            f"stopped after {max_iter} L-BFGS steps before tol={tol:g} was reached. Scale the "
            "features, or raise max_iter, alpha or tol.",
            ConvergenceWarning,
        )
    return parameters, int(result.nit)


def _scales(problem: LinearProblem) -> Array:
    """Return the largest entry of every column, or 1 up to `SCALE_ABOVE` and for the intercept."""
    largest = abs(problem.X).max(axis=0)
    columns = np.ravel(largest.toarray() if sparse.issparse(largest) else largest)
    return np.append(np.where(columns > SCALE_ABOVE, columns, 1.0), 1.0)


def _joined(both: Array) -> Array:
    d = (both.size - 1) // 2
    return np.append(both[:d] - both[d : 2 * d], both[-1])


class _SmoothedHinge(MarginLoss):
    """The hinge with its kink replaced by a parabola over [1 - width, 1]."""

    def __init__(self, width: float) -> None:
        self.width = width

    def of_margin(self, m: Array) -> Array:
        below = np.clip(1 - m, 0, self.width)
        return below**2 / (2 * self.width) + np.maximum(1 - m - self.width, 0)

    def slope(self, m: Array) -> Array:
        return -np.clip((1 - m) / self.width, 0, 1)

    def curvature(self, m: Array) -> Array:
        return ((m < 1) & (m > 1 - self.width)) / self.width


def _smoothed_hinge(problem: LinearProblem, tol: float, max_iter: int) -> LinearSolution:
    """Reduce the width of the smoothed hinge until the duality gap is at most `tol`.

    The gap is relative to the objective if that exceeds one. With an l1 penalty there is no gap:
    the path ends at the smallest width.
    """
    parameters = np.zeros(problem.X.shape[1] + 1)
    newton = problem.l1_ratio == 0 and problem.X.shape[1] <= NEWTON_COLUMNS
    n_iter, gap = 0, np.inf
    for width in 10.0 ** -np.arange(0, 9):
        smoothed = problem.with_loss(_SmoothedHinge(width))
        if newton:
            parameters, steps = _newton(smoothed, parameters, min(tol, width) * 1e-2, max_iter)
        else:
            with silenced():  # the gap decides
                parameters, steps = _lbfgs(smoothed, parameters, tol * 1e-2, max_iter)
        n_iter += steps
        if problem.l1_ratio == 0:
            gap = _hinge_gap(problem, smoothed, parameters)
            if gap <= tol:
                break
    if problem.l1_ratio == 0 and not gap <= tol:
        warn(
            f"the hinge stopped at a relative duality gap of {gap:.2g}, above tol={tol:g}. Scale "
            "the features, or raise max_iter or tol.",
            ConvergenceWarning,
        )
    return LinearSolution(parameters[:-1], float(parameters[-1]), n_iter, float(gap))


def _newton(
    problem: LinearProblem, parameters: Array, tol: float, max_iter: int
) -> tuple[Array, int]:
    """Minimise by damped Newton steps, for a convex loss with a second derivative."""
    value, gradient = problem.smooth_part(parameters)
    for n_iter in range(max_iter):
        if np.abs(gradient).max() <= tol:
            return parameters, n_iter
        curvature = problem.loss.second(problem.decision(parameters), problem.y, problem.share)
        hessian = _gram(problem.X[curvature > 0], curvature[curvature > 0], problem.fit_intercept)
        # the intercept has no penalty: there alpha only shortens the step
        hessian[np.diag_indices(len(hessian))] += problem.alpha
        step = -cho_solve(cho_factor(hessian), gradient)
        length = 1.0
        while True:
            trial, trial_gradient = problem.smooth_part(parameters + length * step)
            if trial <= value + 1e-4 * length * float(gradient @ step):
                break
            length /= 2
            if length < 1e-10:
                return parameters, n_iter
        parameters, value, gradient = parameters + length * step, trial, trial_gradient
    return parameters, max_iter


def _gram(X: Rows, weight: Array, with_ones: bool) -> Array:
    """Return the weighted sum of outer products of the rows, with ones as the last column."""
    gram = np.zeros((X.shape[1] + 1, X.shape[1] + 1))
    product = X.T @ (X.multiply(weight[:, None]) if sparse.issparse(X) else X * weight[:, None])
    gram[:-1, :-1] = product.toarray() if sparse.issparse(product) else product
    if with_ones:
        gram[:-1, -1] = gram[-1, :-1] = X.T @ weight
        gram[-1, -1] = weight.sum()
    return gram


def _hinge_gap(problem: LinearProblem, smoothed: LinearProblem, parameters: Array) -> float:
    """Return the relative duality gap of the hinge, with slopes of the smoothed problem as duals.

    The dual is max_a sum a - |sum_i a_i y_i x_i|^2 / (2 alpha) over 0 <= a_i <= w_i / sum w and,
    with an intercept, sum a_i y_i = 0.
    """
    t = problem.decision(parameters)
    a = -problem.y * smoothed.loss.derivative(t, problem.y, problem.share)
    if problem.fit_intercept:  # scale the larger side down
        sums = {sign: a[problem.y == sign].sum() for sign in (-1, 1)}
        least = min(sums.values())
        for sign, total in sums.items():
            if total > 0:
                a[problem.y == sign] *= least / total
    direction = np.asarray(problem.X.T @ (a * problem.y))
    dual = a.sum() - float(direction @ direction) / (2 * problem.alpha)
    primal = problem.value(parameters)
    return float((primal - dual) / max(1.0, primal))
