r"""The paper's bounds on the difference between the weighted noisy risk and the clean risk.

    sup_f |R_clean(f) - R_weighted(f)| <= B R(loss o F) + B c sqrt(log(2 / delta) / (2 n))

with B = (1 - U) / (1 - rho_pos - rho_neg) the bound of the weights, c that of the loss, and

    R(G) = E sup_{g in G} (2 / n) sum_i sigma_i g(x_i, y_i)

the Rademacher complexity, where the signs sigma_i are +1 or -1 with equal probability. This is the
paper's definition, with the factor 2 and without an absolute value. It is *empirical* if the mean
is over the signs only, for given samples. If a statement of the paper does not hold as printed, the
function implements what holds, and its notes describe the difference.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_array, check_random_state

from unflip._utils.docs import documented_like
from unflip._utils.threads import one_blas_thread
from unflip._utils.typing import Floats, RandomState
from unflip._utils.validation import (
    MAX_VALUE,
    check_count,
    check_not_negative,
    check_probabilities,
    within_range,
)
from unflip.noise import KnownRates, NoiseRates, as_transition_matrix

__all__ = [
    "RademacherEstimate",
    "density_ratio_rate",
    "generalization_bound",
    "joint_estimation_rate",
    "kernel_rademacher",
    "kernel_rademacher_bound",
    "linear_rademacher",
    "linear_rademacher_bound",
    "smallest_noise_ratio",
    "weight_bound",
]


class RademacherEstimate(NamedTuple):
    """A Monte Carlo mean over random signs, and its standard error.

    Parameters
    ----------
    value : float
        The estimated empirical Rademacher complexity.
    standard_error : float
        Standard error of the estimate.

    Examples
    --------
    >>> import numpy as np
    >>> from unflip.paper.bounds import linear_rademacher
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> estimate = linear_rademacher(X, radius=1.0, random_state=0)
    >>> estimate.standard_error < estimate.value
    True
    """

    value: float
    standard_error: float


def smallest_noise_ratio(noisy_posterior: ArrayLike, rates: KnownRates) -> float:
    r"""U = min over x and y of rho_other / P(observed=y|x); beta <= (1-U) / (1-rho_pos-rho_neg).

    rho_other is the flip rate of the other class. The minimum is over both labels for every x; a
    label of probability 0 everywhere is left out. As for the weights, a probability that the rates
    do not allow is replaced by the nearest one that they do.

    Parameters
    ----------
    noisy_posterior : array-like of shape (n_samples,)
        P(observed=+1 | x) for the x to take the minimum over.
    rates : NoiseRates
        Both noise rates.

    Returns
    -------
    float
        U.

    Notes
    -----
    The paper's minimum is over all possible x. Over a sample it is at least U, and the resulting
    bound of the weights may be too small for new samples; `weight_bound(rates)` needs no sample and
    is always valid.

    Examples
    --------
    >>> from unflip import NoiseRates
    >>> from unflip.paper.bounds import smallest_noise_ratio
    >>> round(smallest_noise_ratio([0.2, 0.5], NoiseRates(positive=0.3, negative=0.1)), 3)
    0.2
    """
    positive, negative = _check_rates(rates).both()
    posterior = check_probabilities(noisy_posterior, "noisy_posterior")
    if posterior.size == 0:
        raise ValueError("noisy_posterior is empty, but a minimum needs at least one x.")
    possible = np.clip(posterior, negative, 1 - positive)
    greatest = [(negative, float(possible.max())), (positive, float(1 - possible.min()))]
    return min(other / most for other, most in greatest if most > 0)


@documented_like(smallest_noise_ratio)
def weight_bound(rates: KnownRates, u: float | None = None) -> float:
    r"""B = (1 - U) / (1 - rho_pos - rho_neg), or 1 / (1 - max(rho_pos, rho_neg)) without U.

    Parameters
    ----------
    u : float, default=None
        The paper's U, see :func:`smallest_noise_ratio`. None: the minimum that the rates allow.

    Returns
    -------
    float
        The bound.

    Notes
    -----
    P(observed=y|x) <= 1 - rho_own gives U >= min_y rho_other / (1 - rho_own), hence the second
    form. It never exceeds the paper's bound without U, (1 - min(rho)) / (1 - rho_pos - rho_neg),
    which uses only P(observed=y|x) <= 1. U <= rho_pos + rho_neg, because the mean weight is 1.

    Examples
    --------
    >>> from unflip import NoiseRates
    >>> from unflip.paper.bounds import weight_bound
    >>> rates = NoiseRates(positive=0.3, negative=0.1)
    >>> print(f"{weight_bound(rates):.3f} {weight_bound(rates, u=0.2):.3f}")
    1.429 1.333
    """
    positive, negative = _check_rates(rates).both()
    if u is None:
        return 1 / (1 - max(positive, negative))
    most = positive + negative
    ratio = check_not_negative(u, "u")
    if ratio > most + 1e-9:
        raise ValueError(
            f"u={ratio:g} contradicts {rates}: U is at most rho_pos + rho_neg = {most:g}, because "
            "the mean weight is 1. Compute it with smallest_noise_ratio, or leave it out."
        )
    return (1 - min(ratio, most)) / (1 - positive - negative)


@documented_like(weight_bound)
def generalization_bound(
    rademacher: float,
    rates: KnownRates,
    n_samples: int,
    *,
    loss_bound: float,
    u: float | None = None,
    delta: float = 0.05,
    empirical: bool = True,
) -> float:
    r"""Proposition 1: B R(loss o F) + k B c sqrt(log(m / delta) / (2 n)).

    With probability at least 1 - delta this bounds sup_f |R_clean(f) - R_weighted(f)|, for the
    weights of the true rates and the true P(observed=y|x). B is :func:`weight_bound`, c the bound
    of the loss. k = 1 and m = 2 for the expected complexity, k = 3 and m = 3 for the empirical one.

    Parameters
    ----------
    rademacher : float
        R(loss o F), or an upper bound of it: L times the complexity of F for a loss that is
        L-Lipschitz in f(x), see the `lipschitz` argument of the functions below.
    n_samples : int
        The number of samples n.
    loss_bound : float
        c, with 0 <= loss(f(x), y) <= c for every f in the class and every x and y. The *weighted*
        loss, whose bound the paper calls b, is then at most b = B c.
    u : float, default=None
        The paper's U. None: the minimum that the rates allow, which is always valid.
    delta : float, default=0.05
        The probability with which the bound may fail.
    empirical : bool, default=True
        Whether `rademacher` is computed from the sample, not the mean over samples (or a bound of
        it that holds for all samples).

    Notes
    -----
    The paper has log(1 / delta), Hoeffding's term for one side. The statement has an absolute
    value: two sides need delta / 2 each. As printed it fails for one f, a zero-one loss of mean
    1/2, no noise and n = 1: R is 0, the difference is always 1/2, and b sqrt(log(1/delta) / 2) is
    0.42 at delta = 0.7. (The lemma behind it, E sup |.| <= R, needs an absolute value in R.)

    The step from the expected to the empirical complexity, which the paper does not take, costs
    2 b sqrt(log(1 / delta) / (2 n)) by McDiarmid's inequality, and the three events delta / 3 each.

    The clean risk of the minimiser of the weighted risk exceeds the best of the class by at most
    twice the bound.

    Examples
    --------
    >>> from unflip import NoiseRates
    >>> from unflip.paper.bounds import generalization_bound
    >>> rates = NoiseRates(positive=0.3, negative=0.1)
    >>> bound = generalization_bound(0.05, rates, 10_000, loss_bound=1.0, empirical=False)
    >>> round(bound, 3)
    0.091
    """
    complexity = _check_complexity(rademacher, "rademacher")
    check_count(n_samples, "n_samples", least=1)
    delta = _check_delta(delta)
    largest_weight = weight_bound(rates, u)
    b = largest_weight * check_not_negative(loss_bound, "loss_bound")
    times, events = (3, 3) if empirical else (1, 2)
    return largest_weight * complexity + times * b * _deviation(2 * n_samples, delta, events)


@documented_like(generalization_bound)
def density_ratio_rate(
    rademacher: float,
    rademacher_ratio: float,
    n_samples: int,
    *,
    n_ratio: int | None = None,
    delta: float = 0.05,
) -> float:
    r"""Proposition 2 up to constants: R(loss o F) + s(n) + sqrt(R_ratio + s(n_ratio)).

    s(n) = sqrt(log(2 / delta) / n). The excess clean risk of the classifier whose weights come from
    a least-squares density ratio, in a class that contains the true ratio, is at most a constant
    times this. The constant is unknown: the value shows how the excess risk changes with n, not how
    large it is. The rate is n^(-1/4) if both complexities are of order n^(-1/2).

    Parameters
    ----------
    rademacher : float
        R(loss o F) of the classifiers.
    rademacher_ratio : float
        The complexity of the density ratio's class, R_BDR (also R_SDR) in the paper.
    n_ratio : int, default=None
        Size of the smaller sample of the ratio: min(n_pos, n_neg) in the paper's text,
        replaced by n in its formula. None: `n_samples`.
    delta : float, default=0.05
        The probability with which each of the events may fail: two ratios, the share of positive
        labels, and the risk. The bound holds with probability at least 1 - 4 delta.

    Notes
    -----
    The printed proof needs these corrections, none of which changes the rate:

    - Proposition 1 is used with weights estimated on the same samples, but holds for fixed weights:
      fit the ratio on other samples, or add the complexity of the weights.
    - The least-squares divergence is an integral over x. It bounds the mean squared error of the
      ratio, not the error at each x. That is enough: with P(observed=y|x) clipped at rho_other,
      E|beta - estimate| <= sum_y E|P(observed=y|x) - estimate| / (1 - rho_pos - rho_neg).
    - The last line has the estimated weights in the risk of f* instead of the true ones; the
      difference is bounded in the same way.
    - R_BDR is printed without the supremum over the ratios, and would be 0.
    - 1 - 3 delta counts the ratio of one label only, and log(1 / delta) only one side of two-sided
      deviations.

    Examples
    --------
    >>> from unflip.paper.bounds import density_ratio_rate
    >>> rate = {n: density_ratio_rate(n**-0.5, n**-0.5, n) for n in (10**4, 16 * 10**4)}
    >>> round(rate[10**4] / rate[16 * 10**4], 1)
    2.2
    """
    complexity = _check_complexity(rademacher, "rademacher")
    posterior_error = _posterior_error(rademacher_ratio, n_samples, n_ratio, delta)
    return complexity + posterior_error


@documented_like(density_ratio_rate)
def joint_estimation_rate(
    rademacher: float,
    rademacher_ratio: float,
    rates: KnownRates,
    n_samples: int,
    *,
    n_ratio: int | None = None,
    minimum_gap: float = 0.0,
    constant: float = 1.0,
    delta: float = 0.05,
) -> float:
    r"""Proposition 3, up to constants: D / (1 - rho_pos - rho_neg - D)^2 + R(loss o F) + s(n).

    D = constant * (s(n) + sqrt(R_ratio + s(n_ratio)) + minimum_gap), where
    s(n) = sqrt(log(2 / delta) / n). This is the supplement's rate: that of Proposition 2 with noise
    rates estimated too, by the minima of the estimated P(observed=y|x). It is infinite if D reaches
    1 - rho_pos - rho_neg: the noisy labels may then carry no information.

    Parameters
    ----------
    rates : NoiseRates
        The *estimated* noise rates.
    n_ratio : int, default=None
        Size of the smaller sample of the ratio. None: `n_samples`.
    minimum_gap : float, default=0.0
        Minimum of P(observed=y|x) over the sample minus the minimum over all x, the larger of both
        labels: 0 if the sample has an x that surely belongs to the other class.
    constant : float, default=1.0
        The constant in D. It is needed because D is also in the denominator.
    delta : float, default=0.05
        The probability with which each of the four events of Proposition 2 may fail. The paper's
        1 - 9 delta counts some of them more than once; 1 - 4 delta is enough.

    Notes
    -----
    In addition to the notes of :func:`density_ratio_rate`:

    - `minimum_gap` is not in the paper. Its proof bounds the difference between the minimum of the
      estimate over the *sample* and the true minimum over *all* x by the largest error. That needs
      a sample with the minimising x; otherwise the estimated rate is too large by the gap.
    - A minimum needs an accurate P(observed=y|x) at each x, but the divergence bounds only the mean
      error. That D bounds the error at each x is an assumption.
    - The supplement defines the estimate by kernel densities instead of the density ratio of
      Theorem 3.

    Examples
    --------
    >>> from unflip import NoiseRates
    >>> from unflip.paper.bounds import joint_estimation_rate
    >>> rates = NoiseRates(positive=0.3, negative=0.1)
    >>> for n in (10**4, 10**6, 10**8):
    ...     print(f"{joint_estimation_rate(n**-0.5, n**-0.5, rates, n):.3f}")
    1.161
    0.192
    0.051
    """
    complexity = _check_complexity(rademacher, "rademacher")
    information_left = _check_rates(rates).information_left
    gap = check_not_negative(minimum_gap, "minimum_gap")
    scale = check_not_negative(constant, "constant")
    error = scale * (_posterior_error(rademacher_ratio, n_samples, n_ratio, delta) + gap)
    left = information_left - error
    if left <= 0:
        return float("inf")
    return error / left**2 + complexity + _deviation(n_samples, delta, 2)


def linear_rademacher_bound(X: ArrayLike, radius: float, *, lipschitz: float = 1.0) -> float:
    r"""2 L radius sqrt(sum_i |x_i|^2) / n, a bound of the complexity of {x -> w.x: |w| <= radius}.

    It holds by Jensen's inequality; by Khintchine's it is at most sqrt(2) times the complexity.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        The samples, with a column of ones for a class with an intercept.
    radius : float
        Maximum Euclidean norm of w.
    lipschitz : float, default=1.0
        L: by Talagrand's contraction the result bounds R(loss o F) for a loss with
        |loss(s, y) - loss(t, y)| <= L |s - t|. Hinge and logistic have 1.

    Returns
    -------
    float
        The bound.

    Notes
    -----
    The contraction holds row by row, so that `X * beta[:, None]` gives a bound for the weighted
    loss, sharper than that for the loss times the largest weight.

    Examples
    --------
    >>> from unflip.paper.bounds import linear_rademacher_bound
    >>> linear_rademacher_bound([[3.0, 4.0], [0.0, 0.0]], radius=2.0)
    10.0
    """
    rows = within_range(check_array(X, dtype=np.float64, input_name="X"), "X")
    return kernel_rademacher_bound(np.einsum("ij,ij->i", rows, rows), radius, lipschitz=lipschitz)


@documented_like(linear_rademacher_bound)
def kernel_rademacher_bound(
    K_diagonal: ArrayLike, radius: float, *, lipschitz: float = 1.0
) -> float:
    r"""2 L radius sqrt(sum_i k(x_i, x_i)) / n, a bound of the complexity of a kernel's norm ball.

    The class is that of the functions of norm at most `radius` in the kernel's Hilbert space.

    Parameters
    ----------
    K_diagonal : array-like of shape (n_samples,)
        k(x_i, x_i): the diagonal of the kernel matrix, ones for a Gaussian kernel.
    radius : float
        The greatest norm of a function.

    Examples
    --------
    >>> import numpy as np
    >>> from unflip.paper.bounds import kernel_rademacher_bound
    >>> kernel_rademacher_bound(np.ones(400), radius=5.0)
    0.5
    """
    diagonal = check_array(K_diagonal, ensure_2d=False, dtype=np.float64, input_name="K_diagonal")
    if diagonal.ndim != 1:
        raise ValueError(
            f"K_diagonal has shape {diagonal.shape}, expected (n_samples,): k(x_i, x_i) of each "
            "sample. Of a kernel matrix K pass K.diagonal()."
        )
    if diagonal.min() < 0:
        raise ValueError(
            f"K_diagonal must be >= 0, got {diagonal.min():g} as its smallest value: a positive "
            "semi-definite kernel has no negative k(x, x)."
        )
    scale = _check_class(radius, lipschitz)
    return float(2 * scale * np.sqrt(diagonal.sum()) / diagonal.size)


@documented_like(linear_rademacher_bound)
@one_blas_thread()
def linear_rademacher(
    X: ArrayLike,
    radius: float,
    *,
    lipschitz: float = 1.0,
    n_draws: int = 1000,
    random_state: RandomState = None,
) -> RademacherEstimate:
    r"""2 L radius E|sum_i sigma_i x_i| / n: the empirical complexity of {x -> w.x: |w| <= radius}.

    The supremum over w is exact, radius |sum_i sigma_i x_i|; the mean over the signs is estimated
    by Monte Carlo.

    Parameters
    ----------
    n_draws : int, default=1000
        The number of sign vectors, at least 2.
    random_state : int, RandomState instance or None, default=None
        Seed of the signs.

    Returns
    -------
    estimate : RademacherEstimate
        `value` and `standard_error`.

    Examples
    --------
    >>> import numpy as np
    >>> from unflip.paper.bounds import linear_rademacher, linear_rademacher_bound
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> print(f"{linear_rademacher(X, 1.0, random_state=0).value:.2f}")
    0.22
    >>> print(f"{linear_rademacher_bound(X, 1.0):.2f}")
    0.24
    """
    rows = within_range(check_array(X, dtype=np.float64, input_name="X"), "X")
    scale = _check_class(radius, lipschitz)

    def norm(signs: Floats) -> Floats:
        total = signs @ rows
        return np.sqrt(np.einsum("ij,ij->i", total, total))

    return _mean_over_signs(norm, rows.shape[0], scale, n_draws, random_state)


@documented_like(linear_rademacher)
@one_blas_thread()
def kernel_rademacher(
    K: ArrayLike,
    radius: float,
    *,
    lipschitz: float = 1.0,
    n_draws: int = 1000,
    random_state: RandomState = None,
) -> RademacherEstimate:
    r"""2 L radius E sqrt(sigma' K sigma) / n: the empirical complexity of a kernel's norm ball.

    The supremum over the functions of norm at most `radius` is exact, radius sqrt(sigma' K sigma);
    the mean over the signs is estimated by Monte Carlo.

    Parameters
    ----------
    K : array-like of shape (n_samples, n_samples)
        The kernel matrix, symmetric and positive semi-definite.
    radius : float
        Maximum norm of a function in the kernel's Hilbert space.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.metrics.pairwise import rbf_kernel
    >>> from unflip.paper.bounds import kernel_rademacher
    >>> K = rbf_kernel(np.linspace(0, 1, 100)[:, None], gamma=10.0)
    >>> print(f"{kernel_rademacher(K, 1.0, random_state=0).value:.2f}")
    0.19
    """
    matrix = within_range(check_array(K, dtype=np.float64, input_name="K"), "K")
    _check_symmetric(matrix)
    scale = _check_class(radius, lipschitz)
    rounding = 1e-10 * float(np.abs(matrix).sum())

    def norm(signs: Floats) -> Floats:
        squared = np.einsum("ij,ij->i", signs @ matrix, signs)
        if squared.min() < -rounding:
            raise ValueError(
                f"K is not positive semi-definite: sigma' K sigma is {squared.min():g} for some "
                "signs. Pass the matrix of a positive semi-definite kernel on the samples."
            )
        return np.sqrt(np.maximum(squared, 0.0))

    return _mean_over_signs(norm, matrix.shape[0], scale, n_draws, random_state)


def _mean_over_signs(
    norm: Callable[[Floats], Floats],
    n_samples: int,
    scale: float,
    n_draws: int,
    random_state: RandomState,
) -> RademacherEstimate:
    """Return (2 scale / n) E norm(sigma), with the standard error of the mean over the draws."""
    check_count(n_draws, "n_draws", least=2)
    random = check_random_state(random_state)
    draws = np.concatenate([norm(signs) for signs in _sign_batches(n_samples, n_draws, random)])
    factor = 2 * scale / n_samples
    return RademacherEstimate(
        value=float(factor * draws.mean()),
        standard_error=float(factor * draws.std(ddof=1) / np.sqrt(n_draws)),
    )


def _sign_batches(n_samples: int, n_draws: int, random: np.random.RandomState) -> Iterator[Floats]:
    """Yield `n_draws` random sign vectors as rows, a few megabytes at a time."""
    batch_size = max(1, 2**20 // n_samples)
    for start in range(0, n_draws, batch_size):
        shape = (min(batch_size, n_draws - start), n_samples)
        yield np.where(random.randint(0, 2, size=shape), 1.0, -1.0)


def _posterior_error(
    rademacher_ratio: float, n_samples: int, n_ratio: int | None, delta: float
) -> float:
    """Return s(n) + sqrt(R_ratio + s(n_ratio)), the error of P(observed=y|x) up to a constant."""
    complexity = _check_complexity(rademacher_ratio, "rademacher_ratio")
    check_count(n_samples, "n_samples", least=1)
    n_ratio = n_samples if n_ratio is None else n_ratio
    check_count(n_ratio, "n_ratio", least=1)
    delta = _check_delta(delta)
    ratio_error = np.sqrt(complexity + _deviation(n_ratio, delta, 2))
    return float(_deviation(n_samples, delta, 2) + ratio_error)


def _deviation(n: int, delta: float, events: int) -> float:
    """Return sqrt(log(events / delta) / n), with delta shared by `events` events."""
    return float(np.sqrt(np.log(events / delta) / n))


def _check_rates(rates: KnownRates) -> NoiseRates:
    """Return two known rates."""
    return as_transition_matrix(rates, 2).rates


def _check_class(radius: float, lipschitz: float) -> float:
    """Return L times the radius, the radius of an equivalent class with L = 1."""
    scaled = check_not_negative(radius, "radius") * check_not_negative(lipschitz, "lipschitz")
    if scaled > MAX_VALUE:
        raise ValueError(
            f"radius times lipschitz is {scaled:g}; beyond {MAX_VALUE:g} a bound may overflow. "
            "Rescale the class, or the loss."
        )
    return scaled


def _check_complexity(value: object, name: str) -> float:
    if isinstance(value, RademacherEstimate):
        raise TypeError(
            f"{name} must be a number, got {value}. Pass its .value, or .value plus some "
            "standard errors for a safe bound."
        )
    return check_not_negative(value, name)


def _check_delta(delta: object) -> float:
    chance = check_not_negative(delta, "delta")
    if not 0 < chance < 1:
        raise ValueError(
            f"delta must lie in (0, 1), got {delta!r}: it is the probability with which the bound "
            "may fail, such as 0.05."
        )
    return chance


def _check_symmetric(K: Floats) -> None:
    if K.shape[0] != K.shape[1]:
        raise ValueError(
            f"K has shape {K.shape}, expected (n_samples, n_samples): k(x_i, x_j) of all pairs of "
            "samples. For the samples themselves use linear_rademacher."
        )
    if not np.allclose(K, K.T, rtol=1e-8, atol=1e-8 * float(np.abs(K).max())):
        raise ValueError(
            "K is not symmetric, but a kernel matrix must be: k(x_i, x_j) = k(x_j, x_i). Pass "
            "the kernel of the rows with themselves."
        )
