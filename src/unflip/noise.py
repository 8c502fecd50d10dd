r"""Class-conditional label noise and its exact algebra.

Labels are flipped independently of x, given the true class:
rho_pos = P(noisy=-1 | true=+1), rho_neg = P(noisy=+1 | true=-1). All follows from

    P(noisy=+1 | x) = (1 - rho_pos - rho_neg) * P(true=+1 | x) + rho_neg.

The positive class is the greater of the two labels, as in scikit-learn (``classes_[1]``).
"""

from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from unflip._validation import check_labels, check_probabilities

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class NoiseRates:
    r"""How often each class is flipped: rho_pos and rho_neg, with rho_pos + rho_neg < 1.

    Parameters
    ----------
    positive : float or None
        rho_pos = P(noisy=-1 | true=+1), the share of positive examples labelled negative.
        None where it is not known.
    negative : float or None
        rho_neg = P(noisy=+1 | true=-1), the share of negative examples labelled positive.
        None where it is not known.

    Examples
    --------
    >>> from unflip import NoiseRates
    >>> rates = NoiseRates(positive=0.3, negative=0.1)
    >>> round(float(rates.noisy_posterior(0.5)), 3)
    0.4
    >>> print(rates.inverse(clean_prior=0.3))
    InverseRates(positive=0.25, negative=0.125)
    """

    positive: float | None
    negative: float | None

    def __post_init__(self) -> None:
        _check_pair(self, "noise rates")

    def __str__(self) -> str:
        return _rounded(self)

    @property
    def known(self) -> bool:
        """Whether both rates are known."""
        return self.positive is not None and self.negative is not None

    @property
    def youden(self) -> float:
        """1 - rho_pos - rho_neg: what is left of the labels' information (Youden's index)."""
        positive, negative = self.both()
        return 1.0 - positive - negative

    @property
    def transition_matrix(self) -> Floats:
        """T[i, j] = P(noisy = j | true = i), classes in the order negative, positive."""
        positive, negative = self.both()
        return np.array([[1 - negative, negative], [positive, 1 - positive]])

    def both(self) -> tuple[float, float]:
        """Return (rho_pos, rho_neg), or raise where one is unknown."""
        if self.positive is None or self.negative is None:
            raise ValueError(
                f"{self} has an unknown rate, and this computation needs both. Estimate it first, "
                "for example with unflip.noise_rates.MinimumRates."
            )
        return self.positive, self.negative

    def swapped(self) -> "NoiseRates":
        """Return the rates of the same noise with the two classes' names exchanged."""
        return NoiseRates(positive=self.negative, negative=self.positive)

    def completed_by(self, estimated: "NoiseRates") -> "NoiseRates":
        """Return these rates with the unknown ones taken from `estimated`."""
        return NoiseRates(
            positive=estimated.positive if self.positive is None else self.positive,
            negative=estimated.negative if self.negative is None else self.negative,
        )

    def noisy_posterior(self, clean_posterior: ArrayLike) -> Floats:
        """P(noisy=+1 | x) = (1 - rho_pos - rho_neg) P(true=+1 | x) + rho_neg."""
        _, negative = self.both()
        return self.youden * check_probabilities(clean_posterior, "clean_posterior") + negative

    def clean_posterior(self, noisy_posterior: ArrayLike, *, clip: bool = True) -> Floats:
        """P(true=+1 | x) = (P(noisy=+1 | x) - rho_neg) / (1 - rho_pos - rho_neg).

        An estimated posterior may leave the range [rho_neg, 1 - rho_pos] that these rates allow;
        `clip` then returns the nearest probability.
        """
        _, negative = self.both()
        clean = (check_probabilities(noisy_posterior, "noisy_posterior") - negative) / self.youden
        return np.clip(clean, 0.0, 1.0) if clip else clean

    def noisy_prior(self, clean_prior: float) -> float:
        """P(noisy=+1), the share of positive labels, from P(true=+1)."""
        return float(self.noisy_posterior(clean_prior))

    def clean_prior(self, noisy_prior: float) -> float:
        """P(true=+1) from the share of positive labels; raises where the two contradict."""
        positive, negative = self.both()
        prior = float(self.clean_posterior(noisy_prior, clip=False))
        if not -1e-9 <= prior <= 1 + 1e-9:
            raise ValueError(
                f"{self} contradicts a share of positive labels of {noisy_prior:.4g}: under these "
                f"rates it lies between {negative:.4g} and {1 - positive:.4g}. Lower the rates."
            )
        return min(max(prior, 0.0), 1.0)

    def inverse(
        self, *, noisy_prior: float | None = None, clean_prior: float | None = None
    ) -> "InverseRates":
        """Return pi_pos = rho_neg (1-p) / q and pi_neg = rho_pos p / (1-q).

        p = P(true=+1) and q = P(noisy=+1); give either one, the other follows.
        """
        positive, negative = self.both()
        if (noisy_prior is None) == (clean_prior is None):
            raise ValueError("give exactly one of noisy_prior and clean_prior.")
        if clean_prior is None:
            assert noisy_prior is not None
            clean_prior = self.clean_prior(noisy_prior)
        else:
            noisy_prior = self.noisy_prior(clean_prior)
        return InverseRates(
            positive=_share(negative * (1 - clean_prior), noisy_prior),
            negative=_share(positive * clean_prior, 1 - noisy_prior),
        )


@dataclass(frozen=True)
class InverseRates:
    """How often each noisy label is wrong: pi_pos and pi_neg, with pi_pos + pi_neg < 1.

    Parameters
    ----------
    positive : float
        pi_pos = P(true=-1 | noisy=+1), the share of positive labels that are wrong.
    negative : float
        pi_neg = P(true=+1 | noisy=-1), the share of negative labels that are wrong.
    """

    positive: float
    negative: float

    def __post_init__(self) -> None:
        _check_pair(self, "inverse noise rates")

    def __str__(self) -> str:
        return _rounded(self)

    def to_rates(self, *, noisy_prior: float, clean_prior: float | None = None) -> NoiseRates:
        """Return rho_pos = pi_neg (1-q) / p and rho_neg = pi_pos q / (1-p).

        The noisy prior q = P(noisy=+1) is enough, because p = (1-pi_pos) q + pi_neg (1-q);
        a clean prior p known from elsewhere takes that value's place.
        """
        q = float(check_probabilities(noisy_prior, "noisy_prior"))
        if clean_prior is None:
            clean_prior = (1 - self.positive) * q + self.negative * (1 - q)
        p = float(check_probabilities(clean_prior, "clean_prior"))
        return NoiseRates(
            positive=_share(self.negative * (1 - q), p),
            negative=_share(self.positive * q, 1 - p),
        )


def flip_labels(
    y: Any,
    rates: NoiseRates,
    random_state: int | np.random.RandomState | None = None,
    *,
    classes: ArrayLike | None = None,
) -> Any:
    """Return a copy of `y` in which each label is flipped with its class's rate.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        True labels of two classes. A pandas or polars series comes back as one.
    rates : NoiseRates
        The share of each class to flip.
    random_state : int, RandomState instance or None, default=None
        Seed of the flips.
    classes : array-like of shape (2,), default=None
        The two classes, needed only where `y` may hold just one of them.

    Examples
    --------
    >>> from unflip import NoiseRates, flip_labels
    >>> flip_labels(["no", "yes", "yes"], NoiseRates(positive=0.9, negative=0.0), random_state=0)
    array(['no', 'no', 'no'], dtype='<U3')
    """
    known, codes = check_labels(y, classes=classes)
    positive, negative = rates.both()
    flip_rate = np.where(codes == 1, positive, negative)
    flipped = check_random_state(random_state).uniform(size=codes.size) < flip_rate
    noisy = known[np.where(flipped, 1 - codes, codes)]
    series = nw.from_native(y, series_only=True, pass_through=True)
    if not isinstance(series, nw.Series):
        return noisy
    # scattering onto the original keeps its name, index and type
    rows = np.flatnonzero(flipped)
    values = noisy[rows].astype(bool) if series.dtype == nw.Boolean else noisy[rows]
    return series.scatter(rows, values).to_native()


def _share(part: float, whole: float) -> float:
    """Part / whole, and 0 where there is no whole to take a part of."""
    return part / whole if whole > 0 else 0.0


def _rounded(pair: NoiseRates | InverseRates) -> str:
    """Return the pair as people read it; `repr` has all digits."""
    fields = (
        f"{name}={value if value is None else format(value, '.3g')}"
        for name, value in (("positive", pair.positive), ("negative", pair.negative))
    )
    return f"{type(pair).__name__}({', '.join(fields)})"


def _check_pair(pair: NoiseRates | InverseRates, noun: str) -> None:
    """Turn both fields into floats in [0, 1) that sum to less than one."""
    for name in ("positive", "negative"):
        value = getattr(pair, name)
        if value is None and isinstance(pair, NoiseRates):
            continue
        try:
            rate = float(value)
        except (TypeError, ValueError):
            raise TypeError(f"{noun}: {name} must be a number in [0, 1), got {value!r}.") from None
        if not 0 <= rate < 1:
            raise ValueError(f"{noun}: {name} must lie in [0, 1), got {value!r}.")
        object.__setattr__(pair, name, rate)
    if pair.positive is not None and pair.negative is not None:
        total = pair.positive + pair.negative
        if total >= 1:
            raise ValueError(
                f"{noun} must sum to less than 1, got {pair.positive:g} + {pair.negative:g} = "
                f"{total:g}: at 1 the labels say nothing about the true class, and above it the "
                "two classes have changed names (swap them)."
            )
