"""Multiple kernel learning from noisy labels, after Yang et al. (2012)."""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from unflip._utils.compat import validate_data
from unflip._utils.docs import documented_like
from unflip._utils.estimators import optional_generator
from unflip._utils.gaussian_kernel import DistancesTo, gaussian, row_blocks, squared_distances
from unflip._utils.threads import one_blas_thread
from unflip._utils.typing import Array, Floats, RandomState, Rows
from unflip._utils.validation import (
    check_count,
    check_enough_rows,
    check_labels,
    check_positive,
    check_widths,
    new_rows,
    training_rows,
)
from unflip._utils.warning import warn
from unflip.learners import KernelClassifier
from unflip.noise import NoiseRates, as_transition_matrix
from unflip.noise_rates import RatesLike, estimate_rates

MAX_TRAINING_SAMPLES = 10_000
"""Maximum number of samples: ten kernels of 10 000 samples take 8 GB."""

SOLVER_TOL = 1e-6
"""Tolerance of the inner solver on the optimality conditions."""

SOLVER_STEPS = 10**6
"""Maximum number of steps of the inner solver, which may not terminate otherwise."""


class StPMKL(ClassifierMixin, BaseEstimator):
    r"""min_theta max_alpha sum_i alpha_i - 1/2 sum_ij alpha_i y_i alpha_j y_j K~(x_i, x_j).

    K~ = sum_k theta_k (e^2 K_k + (1 - e^2) diag(K_k)) with e = 1 - 2 rho, rho = P(label wrong);
    theta >= 0 sums to one, 0 <= alpha_i <= C and sum_i alpha_i y_i = 0. The decision is
    f(x) = e^2 sum_i alpha_i y_i sum_k theta_k K_k(x_i, x) + b, with Gaussian
    K_k(x, x') = exp(-|x - x'|^2 / (2 w_k^2)).

    This is a reconstruction. The text of Yang et al. (2012) was not available: known are its
    abstract and its use as a baseline with the hinge loss and ten widths. Of the formulations that
    fit those, this is B, the "expected dual": the expectation over the unknown true labels of the
    dual of multiple kernel learning. Never compare its digits with published tables as if it were
    the authors' code.

    Parameters
    ----------
    noise_rates : str, NoiseRates or rate estimator, default="auto"
        The rates you know, as :class:`~unflip.NoiseRates` (of which one may be None, and is then
        estimated as by "auto"), or how to estimate them: an alias of
        :func:`~unflip.noise_rates.make_rates`, or one of :mod:`unflip.noise_rates`. "auto" is
        "quantile": the 5 % quantile of P(observed y | x). "cv" needs probabilities, which this
        method does not have. Only rho = rho_pos P(true=+1) + rho_neg P(true=-1) is used; it must be
        < 1/2.
    widths : array-like of shape (n_kernels,), default=None
        The widths w_k > 0, in units of the features. None: ten, 2^-3, 2^-2, ..., 2^6.
    C : float, default=1.0
        Upper bound of alpha_i: the weight of the hinge loss against the norm.
    tol : float, default=1e-3
        Stop when the duality gap is at most `tol` times the dual value.
    max_iter : int, default=100
        Maximum number of support vector machines; a ConvergenceWarning is issued if the gap is
        still wider.
    random_state : int, RandomState instance or None, default=None
        Seed of the rate estimator.

    Attributes
    ----------
    kernel_weights_ : ndarray of shape (n_kernels,)
        theta, in the order of the widths.
    dual_coef_ : ndarray of shape (n_samples,)
        alpha_i y_i, one per training sample.
    intercept_ : float
        b.
    gap_ : float
        The duality gap divided by the dual value.
    flip_probability_ : float
        rho, the assumed share of wrong labels.
    noise_rates_ : NoiseRates
        The rates used.
    widths_ : ndarray of shape (n_kernels,)
        The widths used.
    classes_ : ndarray of shape (2,)
        The labels, the positive class last.
    n_iter_ : int
        Number of support vector machines solved, one per theta tried.

    Notes
    -----
    The noise is assumed to be symmetric: with unequal rates the method is a heuristic. If they
    contradict the share of positive labels, the nearest share that they allow is used.

    All kernels are held in memory: O(m n^2) memory and time per iteration for n samples and m
    kernels, practical for a few thousand samples. More than 10 000 raise an error.

    `fit` takes no `sample_weight`. A duplicated sample is not a sample of weight two: the labels of
    the copies are wrong independently of each other, which the diagonal of K~ expresses.

    Near rho = 1/2 the dual value hardly depends on theta: use a smaller `tol` there.

    References
    ----------
    Yang, Mahdavi, Jin, Zhang, Zhou (2012), "Multiple kernel learning from noisy labels by
    stochastic programming", ICML. Biggio, Nelson, Laskov (2011), "Support vector machines under
    adversarial label noise", ACML, has the same expectation for one kernel.

    Examples
    --------
    >>> import numpy as np
    >>> from unflip import NoiseRates, flip_labels
    >>> from unflip.baselines import StPMKL
    >>> X = np.random.default_rng(0).normal(size=(1400, 10))
    >>> y = np.where(X.sum(axis=1) > 0, 1, -1)
    >>> rates = NoiseRates(positive=0.2, negative=0.2)
    >>> y_noisy = flip_labels(y, rates, random_state=0)
    >>> clf = StPMKL(rates).fit(X[:400], y_noisy[:400])
    >>> float(clf.widths_[clf.kernel_weights_.argmax()])
    2.0
    >>> clf.score(X[400:], y[400:])
    0.8...
    """

    kernel_weights_: Floats
    dual_coef_: Floats
    intercept_: float
    gap_: float
    flip_probability_: float
    noise_rates_: NoiseRates
    widths_: Floats
    classes_: Array
    n_iter_: int

    def __init__(
        self,
        noise_rates: RatesLike = "auto",
        *,
        widths: ArrayLike | None = None,
        C: float = 1.0,
        tol: float = 1e-3,
        max_iter: int = 100,
        random_state: RandomState = None,
    ) -> None:
        self.noise_rates = noise_rates
        self.widths = widths
        self.C = C
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    @documented_like(KernelClassifier.fit)
    def fit(self, X: Rows, y: ArrayLike) -> Self:
        """Estimate the share of wrong labels, then learn the kernel weights and the classifier."""
        widths = check_widths(
            2.0 ** np.arange(-3, 7) if self.widths is None else self.widths, "widths"
        )
        C, tol = check_positive(self.C, "C"), check_positive(self.tol, "tol")
        check_count(self.max_iter, "max_iter", least=1)
        rows = training_rows(X, accept_sparse=False, dtype=np.float64, estimator=self)
        classes, codes = check_labels(y)
        check_enough_rows(rows, codes)
        if codes.size > MAX_TRAINING_SAMPLES:
            gigabytes = widths.size * codes.size**2 * 8 / 1e9
            raise ValueError(
                f"Found n_samples={codes.size}, at most {MAX_TRAINING_SAMPLES} are accepted: "
                f"{widths.size} kernels of that size take {gigabytes:.0f} GB. Fit to a random "
                "subset, or use ImportanceReweightingClassifier with a linear classifier."
            )
        random_state = optional_generator(self.random_state)
        found = estimate_rates(
            self.noise_rates, X, classes[codes], random_state=random_state, classifier=clone(self)
        )
        rates = as_transition_matrix(found).rates
        flip_probability = _flip_probability(rates, noisy_prior=float(codes.mean()))

        signs = np.where(codes == 1, 1.0, -1.0)
        with one_blas_thread():
            kernels = correct_kernels(gaussian_kernels(rows, widths), flip_probability)
            solution = learn_kernel_weights(kernels, signs, C, tol=tol, max_iter=int(self.max_iter))
        if solution.gap > tol:
            warn(
                f"the relative duality gap is {solution.gap:.2g} after {solution.n_iter} support "
                f"vector machines, above tol={tol:g}. Raise max_iter, or tol.",
                ConvergenceWarning,
            )
        validate_data(self, X, skip_check_array=True)
        self.classes_, self.noise_rates_, self.widths_ = classes, rates, widths
        self.flip_probability_ = flip_probability
        self.kernel_weights_, self.dual_coef_ = solution.kernel_weights, solution.coef
        self.intercept_, self.gap_, self.n_iter_ = solution.intercept, solution.gap, solution.n_iter
        self._support_rows = rows[solution.coef != 0]
        return self

    @one_blas_thread()
    def decision_function(self, X: Rows) -> Floats:
        """Return f(x), positive for the positive class.

        Returns
        -------
        ndarray of shape (n_samples,)
            Decision values.
        """
        check_is_fitted(self)
        rows = new_rows(self, X, accept_sparse=False, dtype=np.float64)
        shrinkage = (1 - 2 * self.flip_probability_) ** 2
        coef = shrinkage * self.dual_coef_[self.dual_coef_ != 0]
        score = np.full(rows.shape[0], self.intercept_)
        distances_to = DistancesTo(self._support_rows)
        for block in row_blocks(rows.shape[0], coef.size):
            distances = distances_to(rows[block])
            for weight, width in zip(self.kernel_weights_, self.widths_, strict=True):
                score[block] += weight * (gaussian(distances.copy(), width) @ coef)
        return score

    def predict(self, X: Rows) -> Array:
        """Return the likelier true label of every sample.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels.
        """
        positive = self.decision_function(X) > 0
        return self.classes_[positive.astype(np.intp)]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.sparse = False
        return tags


@dataclass(frozen=True)
class SaddlePoint:
    """A saddle point in theta and alpha, up to `gap`."""

    kernel_weights: Floats
    coef: Floats
    """alpha_i y_i."""
    intercept: float
    dual_value: float
    """J(theta)."""
    gap: float
    """Duality gap, relative to `dual_value`."""
    n_iter: int


def gaussian_kernels(rows: Floats, widths: Floats) -> Floats:
    """Return K[k, i, j] = exp(-|x_i - x_j|^2 / (2 w_k^2))."""
    distances = squared_distances(rows, rows)
    # remove rounding errors: zero on the diagonal, and symmetric
    np.fill_diagonal(distances, 0.0)
    distances = (distances + distances.T) / 2
    kernels = np.empty((widths.size, *distances.shape))
    for kernel, width in zip(kernels, widths, strict=True):
        kernel[:] = distances
        gaussian(kernel, width)
    return kernels


def correct_kernels(kernels: Floats, flip_probability: float) -> Floats:
    """Return e^2 K + (1 - e^2) diag(K), e = 1 - 2 rho, for every kernel, in place.

    Times the product of the observed labels, it is the expectation of K_ij y_i y_j over the true
    labels y: the expected product of two is e^2 times that of the observed labels, and y_i y_i = 1.
    """
    diagonal = np.einsum("...ii->...i", kernels)  # a view
    original = diagonal.copy()
    kernels *= (1 - 2 * flip_probability) ** 2
    diagonal[:] = original
    return kernels


def solve_kernel(kernel: Floats, signs: Floats, C: float) -> tuple[Floats, float]:
    """Return alpha_i y_i and b of the support vector machine with this kernel."""
    machine = SVC(
        kernel="precomputed",
        C=C,
        tol=SOLVER_TOL,
        cache_size=500,
        max_iter=SOLVER_STEPS,
        random_state=0,  # it draws a seed that it does not need, without this from numpy's own
    ).fit(kernel, signs)
    coef = np.zeros(signs.size)
    coef[machine.support_] = machine.dual_coef_[0]
    return coef, float(machine.intercept_[0])


def learn_kernel_weights(
    kernels: Floats, signs: Floats, C: float, *, tol: float, max_iter: int
) -> SaddlePoint:
    r"""Minimise J(theta) = max_alpha sum alpha - 1/2 sum_k theta_k q_k(alpha) over the simplex.

    q_k = (alpha y)' K_k (alpha y), so that dJ / dtheta_k = -q_k / 2. Exponentiated gradient,
    theta_k <- theta_k exp(step q_k / (2 J)) / sum. The step is doubled after a success, and
    quartered if J decreases by less than its slope predicts. The gap is (max_k q_k - theta' q) / 2.
    """

    def solve(theta: Floats, n_iter: int) -> tuple[SaddlePoint, Floats]:
        coef, intercept = solve_kernel(np.tensordot(theta, kernels, axes=1), signs, C)
        q = (kernels @ coef) @ coef
        # recomputed from alpha, as the inner solver uses single precision
        dual_value = float(np.abs(coef).sum() - theta @ q / 2)
        gap = max(0.0, float(q.max() - theta @ q)) / (2 * dual_value)
        return SaddlePoint(theta, coef, intercept, dual_value, gap, n_iter), q

    step = 1.0
    best, q = solve(np.full(len(kernels), 1 / len(kernels)), 1)
    for n_iter in range(2, max_iter + 1):
        if best.gap <= tol:
            return best
        theta = best.kernel_weights * np.exp(step * (q - q.max()) / (2 * best.dual_value))
        theta /= theta.sum()
        new, new_q = solve(theta, n_iter)
        predicted = (theta - best.kernel_weights) @ q / 2
        if new.dual_value <= best.dual_value - 0.1 * predicted:
            best, q, step = new, new_q, 2 * step
        else:
            best, step = replace(best, n_iter=n_iter), step / 4
    return best


def _flip_probability(rates: NoiseRates, noisy_prior: float) -> float:
    """Return P(label wrong) = rho_pos p + rho_neg (1 - p), with p the clean prior."""
    positive, negative = rates.both()
    clean_prior = float(rates.clean_posterior(noisy_prior))
    flip_probability = positive * clean_prior + negative * (1 - clean_prior)
    if flip_probability >= 0.5:
        raise ValueError(
            f"with {rates} a share of {flip_probability:.3g} of these labels is wrong (a share of "
            f"{noisy_prior:.3g} is positive), but it must be less than half. Lower the rates, or "
            "use ImportanceReweightingClassifier, which takes unequal rates."
        )
    return flip_probability
