r"""Surrogate losses l(t, y) of a decision value t and a label y in {-1, +1}.

A loss gives its value and its derivatives in t, row by row, each times the sample's weight, and
says what it is: convex, smooth, classification-calibrated, symmetric. Any of them can be used on
noisy labels, weighted by beta.

A loss of your own is a subclass of :class:`MarginLoss` (a function of the margin m = y t) or of
:class:`Loss`:

>>> import numpy as np
>>> from unflip.losses import MarginLoss
>>> class Savage(MarginLoss):
...     convex = False
...
...     def of_margin(self, m):
...         return 1 / (1 + np.exp(m)) ** 2
...
...     def slope(self, m):
...         return -2 * np.exp(m) / (1 + np.exp(m)) ** 3
>>> Savage().value(np.array([2.0, 2.0]), np.array([1, -1])).round(3)
array([0.014, 0.776])
"""

from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np
from scipy.special import expit

from unflip._utils.typing import Array

__all__ = [
    "LOSSES",
    "AsymmetricExponential",
    "Cauchy",
    "Exponential",
    "Hinge",
    "Logistic",
    "Loss",
    "MarginLoss",
    "ModifiedHuber",
    "Sigmoid",
    "Squared",
    "SquaredHinge",
    "Unhinged",
    "Welsch",
    "asymmetric_exponential",
    "cauchy",
    "exponential",
    "get_loss",
    "hinge",
    "logistic",
    "modified_huber",
    "sigmoid",
    "squared",
    "squared_hinge",
    "unhinged",
    "welsch",
]


class Loss(ABC):
    """l(t, y), its derivatives in t, and what is known about it.

    Attributes
    ----------
    convex : bool
        Convex in t.
    smooth : bool
        Continuously differentiable in t.
    calibrated : bool
        Classification-calibrated: its risk is minimised by classifiers of the Bayes rule's sign.
    symmetric : bool
        l(t, +1) + l(t, -1) is constant: symmetric noise does not move the minimiser.
    even_curvature : bool
        l''(t, +1) = l''(t, -1): then the unbiased loss of a convex loss is convex.
    bounded : bool
        Bounded below; a learner penalises the intercept, too, of a loss that is not.

    Examples
    --------
    >>> import numpy as np
    >>> from unflip.losses import Loss, get_loss
    >>> isinstance(get_loss("logistic"), Loss)
    True
    >>> get_loss("hinge").risk(np.array([2.0, -1.0]), np.array([1, 1]))
    1.0
    """

    convex: bool = True
    smooth: bool = True
    calibrated: bool = True
    symmetric: bool = False
    even_curvature: bool = False
    bounded: bool = True
    probability: Callable[[Array], Array] | None = None
    """P(y=+1 | x) where t minimises the expected loss; None if t does not determine it."""

    @abstractmethod
    def _value(self, t: Array, y: Array) -> Array:
        """Return l(t, y)."""

    @abstractmethod
    def _derivative(self, t: Array, y: Array) -> Array:
        """Return dl / dt, or a subgradient."""

    def _second(self, t: Array, y: Array) -> Array:
        """Return d2l / dt2 where it exists."""
        raise NotImplementedError(f"{type(self).__name__} gives no second derivative.")

    def value(self, t: Array, y: Array, weight: Array | float = 1.0) -> Array:
        """Return weight * l(t, y), row by row.

        Returns
        -------
        ndarray
            One value per sample.
        """
        return weight * self._value(t, y)

    def derivative(self, t: Array, y: Array, weight: Array | float = 1.0) -> Array:
        """Return weight * dl / dt, row by row; where l has a kink, a subgradient.

        Returns
        -------
        ndarray
            One value per sample.
        """
        return weight * self._derivative(t, y)

    def second(self, t: Array, y: Array, weight: Array | float = 1.0) -> Array:
        """Return weight * d2l / dt2, row by row; where l'' jumps, the value from one side.

        Returns
        -------
        ndarray
            One value per sample.
        """
        return weight * self._second(t, y)

    def risk(self, t: Array, y: Array, weight: Array | None = None) -> float:
        """Return the weighted mean of l(t, y).

        Returns
        -------
        float
            The risk.
        """
        return float(np.average(self._value(t, y), weights=weight))

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class MarginLoss(Loss):
    """A loss that depends on the margin m = y t alone.

    Examples
    --------
    >>> import numpy as np
    >>> from unflip.losses import MarginLoss
    >>> class Linear(MarginLoss):
    ...     def of_margin(self, m):
    ...         return -m
    ...
    ...     def slope(self, m):
    ...         return -np.ones_like(m)
    >>> Linear().value(np.array([2.0, 2.0]), np.array([1, -1]))
    array([-2.,  2.])
    """

    @abstractmethod
    def of_margin(self, m: Array) -> Array:
        """Return l as a function of the margin.

        Returns
        -------
        ndarray
            One value per margin.
        """

    @abstractmethod
    def slope(self, m: Array) -> Array:
        """Return dl / dm, or a subgradient.

        Returns
        -------
        ndarray
            One value per margin.
        """

    def curvature(self, m: Array) -> Array:
        """Return d2l / dm2 where it exists.

        Returns
        -------
        ndarray
            One value per margin.
        """
        return super()._second(m, m)

    def _value(self, t: Array, y: Array) -> Array:
        return self.of_margin(t * y)

    def _derivative(self, t: Array, y: Array) -> Array:
        return y * self.slope(t * y)

    def _second(self, t: Array, y: Array) -> Array:
        return self.curvature(t * y)


def _clipped_half(t: Array) -> Array:
    """P(y=+1) of losses whose minimiser is 2P - 1 on [-1, 1].

    Returns
    -------
    ndarray
        P(y=+1), one per decision value.
    """
    return (np.clip(t, -1, 1) + 1) / 2


class Hinge(MarginLoss):
    """max(0, 1 - m): the support vector machine's.

    Examples
    --------
    >>> import numpy as np
    >>> from unflip.losses import Hinge
    >>> Hinge().of_margin(np.array([-1.0, 0.0, 2.0])).round(3)
    array([2., 1., 0.])
    """

    smooth = False

    def of_margin(self, m: Array) -> Array:
        """max(0, 1 - m)."""
        return np.maximum(0.0, 1 - m)

    def slope(self, m: Array) -> Array:
        """-1 below m = 1, else 0."""
        return -(m < 1).astype(float)


class SquaredHinge(MarginLoss):
    """max(0, 1 - m)^2.

    Examples
    --------
    >>> import numpy as np
    >>> from unflip.losses import SquaredHinge
    >>> SquaredHinge().of_margin(np.array([-1.0, 0.0, 2.0])).round(3)
    array([4., 1., 0.])
    """

    probability = staticmethod(_clipped_half)

    def of_margin(self, m: Array) -> Array:
        """max(0, 1 - m)^2."""
        return np.maximum(0.0, 1 - m) ** 2

    def slope(self, m: Array) -> Array:
        """-2 max(0, 1 - m)."""
        return -2 * np.maximum(0.0, 1 - m)

    def curvature(self, m: Array) -> Array:
        """2 below m = 1, else 0."""
        return 2.0 * (m < 1)


class Logistic(MarginLoss):
    """log(1 + exp(-m)): logistic regression's.

    Examples
    --------
    >>> import numpy as np
    >>> from unflip.losses import Logistic
    >>> Logistic().of_margin(np.array([-1.0, 0.0, 2.0])).round(3)
    array([1.313, 0.693, 0.127])
    """

    even_curvature = True
    probability = staticmethod(expit)

    def of_margin(self, m: Array) -> Array:
        """log(1 + exp(-m))."""
        return np.logaddexp(0.0, -m)

    def slope(self, m: Array) -> Array:
        """-1 / (1 + exp(m))."""
        return -expit(-m)

    def curvature(self, m: Array) -> Array:
        """exp(m) / (1 + exp(m))^2."""
        return expit(m) * expit(-m)


class Squared(MarginLoss):
    """(1 - m)^2 = (t - y)^2: least squares.

    Examples
    --------
    >>> import numpy as np
    >>> from unflip.losses import Squared
    >>> Squared().of_margin(np.array([-1.0, 0.0, 2.0])).round(3)
    array([4., 1., 1.])
    """

    even_curvature = True
    probability = staticmethod(_clipped_half)

    def of_margin(self, m: Array) -> Array:
        """(1 - m)^2."""
        return (1 - m) ** 2

    def slope(self, m: Array) -> Array:
        """-2 (1 - m)."""
        return -2 * (1 - m)

    def curvature(self, m: Array) -> Array:
        """2."""
        return np.full_like(m, 2.0)


class Exponential(MarginLoss):
    """exp(-m): boosting's.

    Examples
    --------
    >>> import numpy as np
    >>> from unflip.losses import Exponential
    >>> Exponential().of_margin(np.array([-1.0, 0.0, 2.0])).round(3)
    array([2.718, 1.   , 0.135])
    """

    @staticmethod
    def probability(t: Array) -> Array:
        """1 / (1 + exp(-2t)).

        Returns
        -------
        ndarray
            P(y=+1), one per decision value.
        """
        return expit(2 * t)

    def of_margin(self, m: Array) -> Array:
        """exp(-m)."""
        return np.exp(-m)

    def slope(self, m: Array) -> Array:
        """-exp(-m)."""
        return -np.exp(-m)

    def curvature(self, m: Array) -> Array:
        """exp(-m)."""
        return np.exp(-m)


class AsymmetricExponential(MarginLoss):
    """exp(-2m) for m <= 0 and exp(-m) for m > 0: convex, but not classification-calibrated.

    Example 8 of Bartlett, Jordan and McAuliffe (2006): the kink at m = 0 keeps the minimiser at
    t = 0 for all P(y=+1|x) between 1/3 and 2/3. Liu and Tao print the cases by the sign of t
    where that example has the margin's; read so, the loss would be calibrated.

    Examples
    --------
    >>> import numpy as np
    >>> from unflip.losses import AsymmetricExponential
    >>> AsymmetricExponential().of_margin(np.array([-1.0, 0.0, 2.0])).round(3)
    array([7.389, 1.   , 0.135])
    """

    smooth = False
    calibrated = False

    def of_margin(self, m: Array) -> Array:
        """exp(-2m), or exp(-m) above m = 0."""
        return np.exp(-np.where(m <= 0, 2.0, 1.0) * m)

    def slope(self, m: Array) -> Array:
        """-2 exp(-2m), or -exp(-m) above m = 0."""
        return -np.where(m <= 0, 2.0, 1.0) * self.of_margin(m)

    def curvature(self, m: Array) -> Array:
        """4 exp(-2m), or exp(-m) above m = 0."""
        return np.where(m <= 0, 4.0, 1.0) * self.of_margin(m)


class ModifiedHuber(MarginLoss):
    """max(0, 1 - m)^2 for m >= -1 and -4m below: a squared hinge that outliers pull less.

    Examples
    --------
    >>> import numpy as np
    >>> from unflip.losses import ModifiedHuber
    >>> ModifiedHuber().of_margin(np.array([-1.0, 0.0, 2.0])).round(3)
    array([4., 1., 0.])
    """

    even_curvature = True
    probability = staticmethod(_clipped_half)

    def of_margin(self, m: Array) -> Array:
        """max(0, 1 - m)^2, or -4m below m = -1."""
        return np.where(m >= -1, np.maximum(0.0, 1 - m) ** 2, -4 * m)

    def slope(self, m: Array) -> Array:
        """-2 max(0, 1 - m), or -4 below m = -1."""
        return np.where(m >= -1, -2 * np.maximum(0.0, 1 - m), -4.0)

    def curvature(self, m: Array) -> Array:
        """2 on [-1, 1], else 0."""
        return 2.0 * (np.abs(m) <= 1)


class Cauchy(MarginLoss):
    """log(1 + (1 - m)^2 / scale^2): grows ever more slowly with the error.

    Parameters
    ----------
    scale : float, default=1.0
        Errors well above it count little.

    Examples
    --------
    >>> import numpy as np
    >>> from unflip.losses import Cauchy
    >>> Cauchy().of_margin(np.array([-1.0, 0.0, 2.0])).round(3)
    array([1.609, 0.693, 0.693])
    """

    convex = False

    def __init__(self, scale: float = 1.0) -> None:
        self.scale = scale

    def of_margin(self, m: Array) -> Array:
        """log(1 + (1 - m)^2 / scale^2)."""
        return np.log1p(((1 - m) / self.scale) ** 2)

    def slope(self, m: Array) -> Array:
        """-2 (1 - m) / (scale^2 + (1 - m)^2)."""
        return -2 * (1 - m) / (self.scale**2 + (1 - m) ** 2)

    def curvature(self, m: Array) -> Array:
        """2 (scale^2 - (1 - m)^2) / (scale^2 + (1 - m)^2)^2."""
        squared = (1 - m) ** 2
        return 2 * (self.scale**2 - squared) / (self.scale**2 + squared) ** 2


class Welsch(MarginLoss):
    """1 - exp(-(1 - m)^2 / (2 scale^2)): correntropy, bounded by one.

    Parameters
    ----------
    scale : float, default=1.0
        Errors well above it all have about the same loss.

    Examples
    --------
    >>> import numpy as np
    >>> from unflip.losses import Welsch
    >>> Welsch().of_margin(np.array([-1.0, 0.0, 2.0])).round(3)
    array([0.865, 0.393, 0.393])
    """

    convex = False

    def __init__(self, scale: float = 1.0) -> None:
        self.scale = scale

    def of_margin(self, m: Array) -> Array:
        """1 - exp(-(1 - m)^2 / (2 scale^2))."""
        return -np.expm1(-(((1 - m) / self.scale) ** 2) / 2)

    def slope(self, m: Array) -> Array:
        """-(1 - m) / scale^2 * exp(-(1 - m)^2 / (2 scale^2))."""
        return -(1 - m) / self.scale**2 * (1 - self.of_margin(m))

    def curvature(self, m: Array) -> Array:
        """(1 - (1 - m)^2 / scale^2) / scale^2 * exp(-(1 - m)^2 / (2 scale^2))."""
        squared = ((1 - m) / self.scale) ** 2
        return (1 - squared) / self.scale**2 * (1 - self.of_margin(m))


class Unhinged(MarginLoss):
    """1 - m: convex and symmetric, and unbounded below, so it needs a penalty.

    Examples
    --------
    >>> import numpy as np
    >>> from unflip.losses import Unhinged
    >>> Unhinged().of_margin(np.array([-1.0, 0.0, 2.0])).round(3)
    array([ 2.,  1., -1.])
    """

    symmetric = True
    even_curvature = True
    bounded = False

    def of_margin(self, m: Array) -> Array:
        """1 - m."""
        return 1 - m

    def slope(self, m: Array) -> Array:
        """-1."""
        return np.full_like(m, -1.0)

    def curvature(self, m: Array) -> Array:
        """0."""
        return np.zeros_like(m)


class Sigmoid(MarginLoss):
    """1 / (1 + exp(m)): a smooth zero-one loss.

    Examples
    --------
    >>> import numpy as np
    >>> from unflip.losses import Sigmoid
    >>> Sigmoid().of_margin(np.array([-1.0, 0.0, 2.0])).round(3)
    array([0.731, 0.5  , 0.119])
    """

    convex = False
    symmetric = True

    def of_margin(self, m: Array) -> Array:
        """1 / (1 + exp(m))."""
        return expit(-m)

    def slope(self, m: Array) -> Array:
        """-exp(m) / (1 + exp(m))^2."""
        return -expit(m) * expit(-m)

    def curvature(self, m: Array) -> Array:
        """exp(m) (exp(m) - 1) / (1 + exp(m))^3."""
        return expit(m) * expit(-m) * (expit(m) - expit(-m))


LOSSES: dict[str, MarginLoss] = {
    "hinge": Hinge(),
    "squared_hinge": SquaredHinge(),
    "logistic": Logistic(),
    "squared": Squared(),
    "exponential": Exponential(),
    "asymmetric_exponential": AsymmetricExponential(),
    "modified_huber": ModifiedHuber(),
    "cauchy": Cauchy(),
    "welsch": Welsch(),
    "unhinged": Unhinged(),
    "sigmoid": Sigmoid(),
}

hinge, squared_hinge, logistic, squared, exponential, *_others = LOSSES.values()
asymmetric_exponential, modified_huber, cauchy, welsch, unhinged, sigmoid = _others


def get_loss(loss: str | Loss) -> Loss:
    """Return the loss of that name, or the loss itself.

    Parameters
    ----------
    loss : str or Loss
        A name listed in `LOSSES`, or an instance.

    Returns
    -------
    Loss
        An instance.
    """
    if isinstance(loss, Loss):
        return loss
    if not (isinstance(loss, str) and loss in LOSSES):
        raise ValueError(
            f"loss={loss!r} is not one of {list(LOSSES)}, nor an instance of unflip.losses.Loss."
        )
    return LOSSES[loss]
