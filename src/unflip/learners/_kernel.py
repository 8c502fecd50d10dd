"""Kernel classifier for any surrogate loss."""

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import LinAlgError, cholesky, solve_triangular
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.svm import SVC
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from unflip._utils.compat import validate_data
from unflip._utils.docs import documented_like
from unflip._utils.gaussian_kernel import row_blocks
from unflip._utils.threads import one_blas_thread
from unflip._utils.typing import Array, RandomState, Rows
from unflip._utils.validation import check_choice, check_count, is_number, new_rows
from unflip._utils.warning import warn
from unflip.learners._linear import LinearClassifier, LossClassifier
from unflip.learners._metric_lbfgs import KernelProblem, minimise
from unflip.learners._solvers import LinearProblem, solve, starting_points
from unflip.losses import Hinge, Loss, Squared, get_loss

LIBSVM_STEPS = 1000
"""Steps of libsvm per `max_iter`: each changes only two coefficients."""


@documented_like(LinearClassifier)
class KernelClassifier(LossClassifier):
    r"""sign(f(x) + b) of minimum penalised weighted risk, f in the kernel's Hilbert space.

    Minimises sum_i w_i loss(f(x_i) + b, y_i) / sum_i w_i + alpha |f|^2 / 2 over f(x) = sum_l c_l
    k(z_l, x). Up to `max_exact` distinct samples the z_l are the samples, which is exact
    (representer theorem); beyond that they are `n_landmarks` random samples (Nystroem
    approximation).

    Parameters
    ----------
    kernel : str or callable, default="rbf"
        As for :func:`~sklearn.metrics.pairwise.pairwise_kernels`.
    gamma : float or "scale", default="scale"
        The kernel's gamma: 1 / (2 width^2) of a Gaussian. "scale" is 1 / (n_features * variance).
    degree, coef0 : float, default=3, 1
        Parameters of polynomial and sigmoid kernels.
    alpha : float, default=1e-3
        The penalty; scikit-learn's C is 1 / (alpha * sum of weights).
    max_exact : int, default=3000
        Maximum number of distinct samples that are all used as centres.
    n_landmarks : int, default=500
        Number of centres if there are more samples.
    random_state : int, RandomState instance or None, default=None
        Seed of the landmarks.

    Attributes
    ----------
    landmarks_ : ndarray of shape (n_centres, n_features)
        The z_l.
    dual_coef_ : ndarray of shape (n_centres,)
        The c_l.
    intercept_ : float
        b.
    gamma_ : float
        The kernel's gamma.
    gap_, n_iter_ : float, int
        As in :class:`LinearClassifier`; the exact hinge reports its duality gap too.

    Notes
    -----
    Features are not scaled, and one width serves all columns: a column on a larger scale dominates
    the others. Standardise the columns first.

    Smooth losses are minimised by L-BFGS in the metric of the kernel, with one product with the
    kernel matrix per step. libsvm (:class:`~sklearn.svm.SVC`) solves the exact hinge. Otherwise,
    with K = L L' on the centres, the problem is linear in the rows of L.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from unflip.learners import KernelClassifier
    >>> X, y = make_moons(200, noise=0.1, random_state=0)
    >>> KernelClassifier(loss="exponential").fit(X, y).score(X, y)
    0.99...
    """

    landmarks_: Array
    dual_coef_: Array
    intercept_: float
    gamma_: float
    gap_: float
    n_iter_: int

    def __init__(
        self,
        loss: str | Loss = "logistic",
        *,
        kernel: str | Callable[..., Any] = "rbf",
        gamma: float | str = "scale",
        degree: float = 3,
        coef0: float = 1,
        alpha: float = 1e-3,
        max_exact: int = 3000,
        n_landmarks: int = 500,
        tol: float = 1e-4,
        max_iter: int = 1000,
        random_state: RandomState = None,
    ) -> None:
        self.loss = loss
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.alpha = alpha
        self.max_exact = max_exact
        self.n_landmarks = n_landmarks
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    @documented_like(LinearClassifier.fit)
    @one_blas_thread()
    def fit(self, X: Rows, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Minimise the penalised weighted risk.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.
        """
        check_count(self.max_exact, "max_exact", least=0)
        check_count(self.n_landmarks, "n_landmarks", least=1)
        for name, value in (("degree", self.degree), ("coef0", self.coef0)):
            if not (is_number(value) and np.isfinite(value)):
                raise ValueError(f"{name} must be a finite number, got {value!r}.")
        rows, classes, signs, weight = self._check_training(
            X, y, sample_weight, accept_sparse=False
        )
        loss, gamma = get_loss(self.loss), self._gamma(rows, weight)
        landmarks, position = np.unique(rows, axis=0, return_inverse=True)
        exact = len(landmarks) <= self.max_exact
        if not exact:
            chosen = check_random_state(self.random_state).permutation(len(landmarks))
            landmarks = landmarks[chosen[: self.n_landmarks]]
        K = self._kernel(landmarks, landmarks, gamma)
        if exact and type(loss) is Hinge:
            solution = _libsvm(K, position, signs, weight, self.alpha, self.tol, self.max_iter)
        elif exact and loss.smooth and type(loss) is not Squared:
            problem = KernelProblem(K, position, signs, weight, loss, self.alpha)
            solution = _best_start(problem, self.tol, self.max_iter)
        else:
            factor = _factor(K)
            if exact:
                features = factor[position]
            else:
                kernel = self._kernel(rows, landmarks, gamma)
                features = solve_triangular(factor, kernel.T, lower=True).T
            fitted = solve(
                LinearProblem(features, signs, weight, loss, self.alpha), self.tol, self.max_iter
            )
            coef = solve_triangular(factor, fitted.coef, lower=True, trans="T")
            solution = coef, fitted.intercept, fitted.gap, fitted.n_iter
        validate_data(self, X, skip_check_array=True)
        self.classes_, self.landmarks_, self.gamma_ = classes, landmarks, gamma
        self.dual_coef_, self.intercept_, self.gap_, self.n_iter_ = solution
        return self

    @one_blas_thread()
    def decision_function(self, X: Rows) -> Array:
        """Return f(x) + b: positive for the positive class."""
        check_is_fitted(self)
        X = new_rows(self, X, accept_sparse=False)
        values = np.empty(X.shape[0])
        for block in row_blocks(X.shape[0], len(self.landmarks_)):
            kernel = self._kernel(X[block], self.landmarks_, self.gamma_)
            values[block] = kernel @ self.dual_coef_ + self.intercept_
        return values

    def _kernel(self, A: Array, B: Array, gamma: float) -> Array:
        if callable(self.kernel):
            return np.asarray(pairwise_kernels(A, B, metric=self.kernel))
        parameters = {"gamma": gamma, "degree": self.degree, "coef0": self.coef0}
        return np.asarray(
            pairwise_kernels(A, B, metric=self.kernel, filter_params=True, **parameters),
            dtype=float,
        )

    def _gamma(self, rows: Array, weight: Array) -> float:
        if not isinstance(self.gamma, str):
            if not (is_number(self.gamma) and 0 < self.gamma < np.inf):
                raise ValueError(f"gamma must be 'scale' or a number > 0, got {self.gamma!r}.")
            return float(self.gamma)
        check_choice(self.gamma, ("scale",), "gamma")
        cell_weight = np.repeat(weight[:, None], rows.shape[1], axis=1)
        mean = np.average(rows, weights=cell_weight)
        variance = float(np.average((rows - mean) ** 2, weights=cell_weight))
        return 1 / (rows.shape[1] * variance) if variance > 0 else 1.0


def _best_start(
    problem: KernelProblem, tol: float, max_iter: int
) -> tuple[Array, float, float, int]:
    """Return the minimum; for a non-convex loss, the best of three starts."""
    origin = problem.origin()
    starts = starting_points(
        problem, origin, lambda easier: minimise(easier, origin, tol, max_iter)[0]
    )
    runs = [minimise(problem, start, tol, max_iter) for start in starts]
    point, gap, n_iter = min(runs, key=lambda run: problem.value(run[0]))
    if n_iter >= max_iter:
        warn(
            f"stopped after {max_iter} L-BFGS steps before tol={tol:g} was reached. Raise "
            "max_iter, alpha or tol.",
            ConvergenceWarning,
        )
    return point[0, :-1], float(point[0, -1]), gap, max(1, n_iter)


def _factor(K: Array) -> Array:
    """Return the lower Cholesky factor of K, with the smallest ridge that makes K definite."""
    diagonal = np.diag_indices(len(K))
    K, ridge = K.copy(), 1e-12 * np.trace(K) / len(K)
    for _ in range(6):
        K[diagonal] += ridge
        try:
            return np.asarray(cholesky(K, lower=True, check_finite=False))
        except LinAlgError:
            ridge *= 100
    raise ValueError("the kernel matrix is not positive semi-definite: use another kernel.")


def _libsvm(
    K: Array, position: Array, signs: Array, weight: Array, alpha: float, tol: float, max_iter: int
) -> tuple[Array, float, float, int]:
    """Solve the hinge by libsvm, and compute the duality gap."""
    share = weight / weight.sum()
    svc = SVC(
        C=1 / alpha,
        kernel="precomputed",
        tol=min(1e-3, 10 * tol),
        cache_size=500,
        max_iter=LIBSVM_STEPS * max_iter,  # without a bound it may not terminate
        random_state=0,  # it draws a seed that it does not need, without this from numpy's own
    )
    svc.fit(K[position][:, position], signs, sample_weight=share)
    rows = np.zeros(signs.size)
    rows[svc.support_] = svc.dual_coef_[0]
    coef = np.bincount(position, rows, minlength=len(K))
    decision = (K @ coef)[position] + svc.intercept_[0]
    norm = float(coef @ K @ coef)
    primal = float(share @ np.maximum(0, 1 - signs * decision)) + alpha * norm / 2
    dual = alpha * float(rows @ signs) - alpha * norm / 2
    return coef, float(svc.intercept_[0]), (primal - dual) / max(1.0, primal), int(svc.n_iter_[0])
