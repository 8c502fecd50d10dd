"""Density-ratio matching under a Bregman divergence; KLIEP and LSIF are special cases."""

from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from unflip._utils.docs import documented_like
from unflip._utils.gaussian_kernel import GaussianDesign, median_distance, reached
from unflip._utils.samples import TwoSamples
from unflip._utils.typing import Array, RandomState, Record
from unflip._utils.validation import (
    check_choice,
    check_count,
    check_not_negative,
    check_width,
    is_number,
)
from unflip._utils.warning import warn
from unflip.density_ratio._base import KernelDensityRatio
from unflip.density_ratio._newton import nonnegative_newton_target

TOLERANCE = 1e-6
"""KKT gap at which Newton's method stops."""

BREGMAN_FLOOR = 1e-150
"""Floor of r for samples that no basis function reaches, as f' may have a pole at 0."""


class BregmanDivergence(ABC):
    """A strictly convex f; the objective is E_den[f'(r) r - f(r)] - E_num[f'(r)].

    The objective is convex if f''' <= 0 and f''(r) + r f'''(r) >= 0.

    Examples
    --------
    >>> import numpy as np
    >>> from unflip.density_ratio import BregmanDivergence, BregmanRatio
    >>> class Power(BregmanDivergence):
    ...     def value(self, r):
    ...         return r**3 / 6
    ...
    ...     def derivative(self, r):
    ...         return r**2 / 2
    ...
    ...     def second(self, r):
    ...         return r
    ...
    ...     def third(self, r):
    ...         return np.ones_like(r)
    >>> rng = np.random.default_rng(0)
    >>> X_num, X_den = rng.normal(0, 1, (200, 1)), rng.normal(0.5, 1.2, (200, 1))
    >>> ratio = BregmanRatio(Power(), bandwidth=1.0).fit(X_num, X_den)
    >>> bool(ratio.predict([[-1.0]])[0] > ratio.predict([[2.0]])[0])
    True
    """

    @abstractmethod
    def value(self, r: Array) -> Array:
        """f(r).

        Returns
        -------
        ndarray
            One value per ratio.
        """

    @abstractmethod
    def derivative(self, r: Array) -> Array:
        """f'(r).

        Returns
        -------
        ndarray
            One value per ratio.
        """

    @abstractmethod
    def second(self, r: Array) -> Array:
        """f''(r).

        Returns
        -------
        ndarray
            One value per ratio.
        """

    @abstractmethod
    def third(self, r: Array) -> Array:
        """f'''(r).

        Returns
        -------
        ndarray
            One value per ratio.
        """


class SquaredDivergence(BregmanDivergence):
    """f(t) = (t - 1)^2 / 2: least-squares importance fitting.

    Examples
    --------
    >>> import numpy as np
    >>> from unflip.density_ratio import SquaredDivergence
    >>> SquaredDivergence().value(np.array([0.5, 1.0, 2.0]))
    array([0.125, 0.   , 0.5  ])
    """

    def value(self, r: Array) -> Array:
        """f(r) = (r - 1)^2 / 2."""
        return (r - 1) ** 2 / 2

    def derivative(self, r: Array) -> Array:
        """f'(r) = r - 1."""
        return r - 1

    def second(self, r: Array) -> Array:
        """f''(r) = 1."""
        return np.ones_like(r)

    def third(self, r: Array) -> Array:
        """f'''(r) = 0."""
        return np.zeros_like(r)


class KullbackLeiblerDivergence(BregmanDivergence):
    """f(t) = t log t - t: KLIEP, whose constraint the minimiser satisfies.

    Examples
    --------
    >>> import numpy as np
    >>> from unflip.density_ratio import KullbackLeiblerDivergence
    >>> KullbackLeiblerDivergence().derivative(np.array([0.5, 1.0, 2.0])).round(3)
    array([-0.693,  0.   ,  0.693])
    """

    def value(self, r: Array) -> Array:
        """f(r) = r log r - r."""
        return r * np.log(r) - r

    def derivative(self, r: Array) -> Array:
        """f'(r) = log r."""
        return np.log(r)

    def second(self, r: Array) -> Array:
        """f''(r) = 1 / r."""
        return 1 / r

    def third(self, r: Array) -> Array:
        """f'''(r) = -1 / r^2."""
        return -1 / r**2


class BasuDivergence(BregmanDivergence):
    """f(t) = (t^(1+power) - t) / power: KL as power -> 0, squared at power = 1, robust between.

    Parameters
    ----------
    power : float, default=0.5
        In (0, 1], where the problem is convex. Numerator samples have weight r^(power-1) in the
        gradient, so samples with small r matter less than in KLIEP.

    Examples
    --------
    >>> import numpy as np
    >>> from unflip.density_ratio import BasuDivergence
    >>> BasuDivergence(power=1.0).value(np.array([0.5, 1.0, 2.0]))
    array([-0.25,  0.  ,  2.  ])
    """

    def __init__(self, power: float = 0.5) -> None:
        if not (is_number(power) and 0 < power <= 1):
            raise ValueError(f"power must lie in (0, 1], got {power!r}.")
        self.power = power

    def value(self, r: Array) -> Array:
        """f(r) = (r^(1+power) - r) / power."""
        return (r ** (1 + self.power) - r) / self.power

    def derivative(self, r: Array) -> Array:
        """f'(r) = ((1 + power) r^power - 1) / power."""
        return ((1 + self.power) * r**self.power - 1) / self.power

    def second(self, r: Array) -> Array:
        """f''(r) = (1 + power) r^(power-1)."""
        return (1 + self.power) * r ** (self.power - 1)

    def third(self, r: Array) -> Array:
        """f'''(r) = (1 + power) (power - 1) r^(power-2)."""
        return (1 + self.power) * (self.power - 1) * r ** (self.power - 2)


DIVERGENCES = {
    "kl": KullbackLeiblerDivergence,
    "squared": SquaredDivergence,
    "basu": BasuDivergence,
}


@documented_like(KernelDensityRatio)
class BregmanRatio(KernelDensityRatio):
    r"""Density-ratio matching under a Bregman divergence.

    Minimises E_den[f'(r) r - f(r)] - E_num[f'(r)] + regularization |theta|^2 / 2 over theta >= 0,
    with r(x) = sum_l theta_l exp(-|x - c_l|^2 / (2 bandwidth^2)).

    Parameters
    ----------
    divergence : {"kl", "squared", "basu"} or BregmanDivergence, default="kl"
        f. "kl" is KLIEP's, "squared" LSIF's, "basu" the power divergence at 1/2.
    bandwidth : "median" or float, default="median"
        The kernel's width; "median" is the median distance between centres.
    n_centers : int, default=100
        Number of basis functions (at most the number of numerator samples).
    regularization : float, default=0
        Ridge penalty on theta.
    max_iter : int, default=200
        Maximum number of Newton iterations.
    random_state : int, RandomState instance or None, default=None
        Seed of the centres.

    Attributes
    ----------
    objective_ : float
        The minimum.
    kkt_gap_ : float
        Distance of the solution from the fixed point of a projected gradient step, in
        alpha = theta * mean_den phi.

    Notes
    -----
    Features are not scaled, and one width serves all columns: a column on a larger scale dominates
    the others. Standardise the columns first.

    References
    ----------
    Sugiyama, Suzuki, Kanamori (2012), "Density-ratio matching under the Bregman divergence: a
    unified framework of density-ratio estimation", AISM 64.

    Examples
    --------
    >>> import numpy as np
    >>> from unflip.density_ratio import BregmanRatio
    >>> rng = np.random.default_rng(0)
    >>> X_den, X_num = rng.normal(0, 1, (500, 1)), rng.normal(0.5, 0.8, (300, 1))
    >>> ratio = BregmanRatio("kl", bandwidth=1.0, random_state=0).fit(X_num, X_den)
    >>> round(float(ratio.predict(X_den).mean()), 3)
    1.0
    """

    objective_: float
    kkt_gap_: float

    def __init__(
        self,
        divergence: str | BregmanDivergence = "kl",
        bandwidth: float | str = "median",
        n_centers: int = 100,
        *,
        regularization: float = 0.0,
        max_iter: int = 200,
        random_state: RandomState = None,
    ) -> None:
        self.divergence = divergence
        self.bandwidth = bandwidth
        self.n_centers = n_centers
        self.regularization = regularization
        self.max_iter = max_iter
        self.random_state = random_state

    def _fit_kernel(
        self, samples: TwoSamples, centers: Array, random_state: np.random.RandomState
    ) -> Record:
        f = _check_divergence(self.divergence)
        check_not_negative(self.regularization, "regularization")
        check_count(self.max_iter, "max_iter", least=1)
        if isinstance(self.bandwidth, str):
            check_choice(self.bandwidth, ("median",), "bandwidth")
            bandwidth = median_distance(centers)
        else:
            bandwidth = check_width(self.bandwidth, "bandwidth")
        numerator = GaussianDesign(samples.num, centers, bandwidth, many_passes=True)
        denominator = GaussianDesign(samples.den, centers, bandwidth, many_passes=True)
        scale = denominator.mean(samples.weight_den)
        if not reached(scale).all():
            raise ValueError(
                "no denominator sample is within reach of some centre: use a wider bandwidth."
            )
        sides = [
            (denominator, samples.weight_den / samples.weight_den.sum(), _denominator_terms),
            (numerator, samples.weight_num / samples.weight_num.sum(), _numerator_terms),
        ]

        def evaluate(alpha: Array) -> tuple[float, Array, Array]:
            """Value, gradient and Hessian in alpha = theta * scale, which balances the centres."""
            theta = alpha / scale
            value = self.regularization * theta @ theta / 2
            gradient = self.regularization * theta
            hessian = self.regularization * np.eye(theta.size)
            for design, weight, terms in sides:
                for rows, block in design.blocks():
                    r = np.maximum(block @ theta, BREGMAN_FLOOR)
                    values, slopes, bends = (weight[rows] * term for term in terms(f, r))
                    value += values.sum()
                    gradient = gradient + slopes @ block
                    hessian += (block * bends[:, None]).T @ block
            return float(value), gradient / scale, hessian / scale / scale[:, None]

        alpha, kkt_gap = _minimise(evaluate, np.full(scale.size, 1 / scale.size), self.max_iter)
        if not kkt_gap <= TOLERANCE:
            warn(
                f"BregmanRatio stopped after {self.max_iter} Newton steps at a KKT gap of "
                f"{kkt_gap:.2g}, above {TOLERANCE:g}. Raise max_iter, or use a wider bandwidth.",
                ConvergenceWarning,
            )
        return {
            "bandwidth_": bandwidth,
            "coef_": alpha / scale,
            "objective_": evaluate(alpha)[0],
            "kkt_gap_": kkt_gap,
        }


def _check_divergence(divergence: str | BregmanDivergence) -> BregmanDivergence:
    if isinstance(divergence, str):
        check_choice(divergence, tuple(DIVERGENCES), "divergence")
        return DIVERGENCES[divergence]()
    if isinstance(divergence, BregmanDivergence):
        return divergence
    raise TypeError(
        f"divergence must be one of {list(DIVERGENCES)} or a BregmanDivergence, got {divergence!r}."
    )


def _denominator_terms(f: BregmanDivergence, r: Array) -> tuple[Array, Array, Array]:
    """f'(r) r - f(r) with its first two derivatives in r."""
    return f.derivative(r) * r - f.value(r), f.second(r) * r, f.second(r) + r * f.third(r)


def _numerator_terms(f: BregmanDivergence, r: Array) -> tuple[Array, Array, Array]:
    """-f'(r) with its first two derivatives in r."""
    return -f.derivative(r), -f.second(r), -f.third(r)


def _minimise(
    evaluate: Callable[[Array], tuple[float, Array, Array]], alpha: Array, max_iter: int
) -> tuple[Array, float]:
    """Newton's method under alpha >= 0 with an Armijo line search; also return the KKT gap."""
    value, gradient, hessian = evaluate(alpha)
    for _ in range(max_iter):
        if _kkt_gap(alpha, gradient) <= TOLERANCE:
            break
        direction = nonnegative_newton_target(hessian, gradient, alpha) - alpha
        step = 1.0
        while True:
            proposal = evaluate(alpha + step * direction)
            if proposal[0] <= value + 1e-4 * step * gradient @ direction:
                break
            step /= 2
            if step < 1e-10:  # rounding errors prevent further progress
                return alpha, _kkt_gap(alpha, gradient)
        alpha = alpha + step * direction
        value, gradient, hessian = proposal
    return alpha, _kkt_gap(alpha, gradient)


def _kkt_gap(alpha: Array, gradient: Array) -> float:
    """Return the distance of alpha from the fixed point max(alpha - gradient, 0)."""
    return float(np.abs(alpha - np.maximum(alpha - gradient, 0)).max())
