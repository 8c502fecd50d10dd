"""Ratio matching under any Bregman divergence, of which KLIEP and LSIF are cases."""

import warnings
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning

from unflip._validation import check_choice
from unflip.density_ratio._base import KernelDensityRatio, check_positive
from unflip.density_ratio._kernel import GaussianDesign, median_distance

Array = NDArray[Any]


class BregmanDivergence(ABC):
    """A strictly convex f; the divergence's part that depends on r is

    BR(r) = E_den[f'(r) r - f(r)] - E_num[f'(r)].
    """  # noqa: D400, D415

    @abstractmethod
    def value(self, r: Array) -> Array:
        """f(r)."""

    @abstractmethod
    def derivative(self, r: Array) -> Array:
        """f'(r)."""

    @abstractmethod
    def curvature(self, r: Array) -> Array:
        """f''(r)."""


class SquaredDivergence(BregmanDivergence):
    """f(t) = (t - 1)^2 / 2: least-squares importance fitting."""

    def value(self, r: Array) -> Array:
        """(r - 1)^2 / 2."""
        return (r - 1) ** 2 / 2

    def derivative(self, r: Array) -> Array:
        """r - 1."""
        return r - 1

    def curvature(self, r: Array) -> Array:
        """1."""
        return np.ones_like(r)


class KullbackLeiblerDivergence(BregmanDivergence):
    """f(t) = t log t - t: KLIEP, whose constraint the minimiser meets by itself."""

    def value(self, r: Array) -> Array:
        """r log r - r."""
        return r * np.log(r) - r

    def derivative(self, r: Array) -> Array:
        """log r."""
        return np.log(r)

    def curvature(self, r: Array) -> Array:
        """1 / r."""
        return 1 / r


class BasuDivergence(BregmanDivergence):
    """f(t) = (t^(1+power) - t) / power: KL as power -> 0, squared at power = 1, robust between.

    Parameters
    ----------
    power : float, default=0.5
        In (0, 1], where the problem is convex. Numerator rows count by r^(power-1) in the
        gradient, so those where r is small matter less than in KLIEP.
    """

    def __init__(self, power: float = 0.5) -> None:
        if not 0 < power <= 1:
            raise ValueError(f"power must lie in (0, 1], got {power!r}.")
        self.power = power

    def value(self, r: Array) -> Array:
        """(r^(1+power) - r) / power."""
        return (r ** (1 + self.power) - r) / self.power

    def derivative(self, r: Array) -> Array:
        """((1 + power) r^power - 1) / power."""
        return ((1 + self.power) * r**self.power - 1) / self.power

    def curvature(self, r: Array) -> Array:
        """(1 + power) r^(power-1)."""
        return (1 + self.power) * r ** (self.power - 1)


DIVERGENCES = {
    "kl": KullbackLeiblerDivergence,
    "squared": SquaredDivergence,
    "basu": BasuDivergence,
}


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
        Number of basis functions (at most the number of numerator rows).
    regularization : float, default=0
        Ridge penalty on theta.
    max_iter : int, default=5000
        Bound on the steps of L-BFGS-B.
    random_state : int, RandomState instance or None, default=None
        Seed of the centres.

    Attributes
    ----------
    bandwidth_ : float
        The kernel's width.
    centers_, coef_ : ndarray
        The centres and theta.
    objective_ : float
        The minimum.

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

    def __init__(
        self,
        divergence: str | BregmanDivergence = "kl",
        bandwidth: float | str = "median",
        n_centers: int = 100,
        *,
        regularization: float = 0.0,
        max_iter: int = 5000,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.divergence = divergence
        self.bandwidth = bandwidth
        self.n_centers = n_centers
        self.regularization = regularization
        self.max_iter = max_iter
        self.random_state = random_state

    def _fit_kernel(
        self,
        X_num: Any,
        X_den: Any,
        weight_num: Array,
        weight_den: Array,
        centers: Array,
        random_state: np.random.RandomState,
    ) -> dict[str, Any]:
        if isinstance(self.divergence, str):
            check_choice(self.divergence, tuple(DIVERGENCES), "divergence")
            f: BregmanDivergence = DIVERGENCES[self.divergence]()
        else:
            f = self.divergence
        if not self.regularization >= 0:
            raise ValueError(f"regularization must be >= 0, got {self.regularization!r}.")
        if isinstance(self.bandwidth, str):
            check_choice(self.bandwidth, ("median",), "bandwidth")
            bandwidth = median_distance(centers)
        else:
            bandwidth = check_positive(self.bandwidth, "bandwidth")
        numerator = GaussianDesign(X_num, centers, bandwidth)
        denominator = GaussianDesign(X_den, centers, bandwidth)
        scale = denominator.mean(weight_den)
        if not scale.min() > 0:
            raise ValueError("no denominator row is within reach of some centre: widen bandwidth.")

        def objective(alpha: Array) -> tuple[float, Array]:
            """Value and gradient in alpha = theta * scale, on which r depends alike."""
            theta = alpha / scale
            value = self.regularization * theta @ theta / 2
            gradient = self.regularization * theta
            for design, weight, sign in (
                (denominator, weight_den / weight_den.sum(), 1),
                (numerator, weight_num / weight_num.sum(), -1),
            ):
                for rows, block in design.blocks():
                    r = np.maximum(block @ theta, 1e-300)
                    slope = f.derivative(r)
                    bend = f.curvature(r)
                    if sign > 0:
                        value += weight[rows] @ (slope * r - f.value(r))
                        gradient = gradient + (weight[rows] * bend * r) @ block
                    else:
                        value -= weight[rows] @ slope
                        gradient = gradient - (weight[rows] * bend) @ block
            return float(value), gradient / scale

        result = minimize(
            objective,
            np.full(scale.size, 1.0 / scale.size),
            jac=True,
            method="L-BFGS-B",
            bounds=[(0, None)] * scale.size,
            options={"maxiter": self.max_iter, "maxfun": 2 * self.max_iter, "ftol": 1e-14,
                     "gtol": 1e-8, "maxcor": 30},
        )
        if not result.success:
            warnings.warn(
                f"BregmanRatio did not converge: {result.message}. Raise max_iter.",
                ConvergenceWarning,
                stacklevel=4,
            )
        return {
            "bandwidth_": bandwidth,
            "coef_": result.x / scale,
            "objective_": float(result.fun),
        }
