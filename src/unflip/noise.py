r"""Class-conditional label noise and its exact algebra.

Labels are flipped independently of x, given the true class:
rho_pos = P(observed=-1 | true=+1), rho_neg = P(observed=+1 | true=-1). All follows from

    P(observed=+1 | x) = (1 - rho_pos - rho_neg) * P(true=+1 | x) + rho_neg.

The positive class is the greater of the two labels, as in scikit-learn (``classes_[1]``). For any
number of classes, T[i, j] = P(observed=j | true=i) takes the place of the two rates, and
P(observed | x) = P(true | x) T.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeGuard, TypeVar

import narwhals as nw
import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state

from unflip._utils.docs import documented_like
from unflip._utils.simplex import likeliest_mixture, onto_simplex, scaled_rows
from unflip._utils.typing import Array, Floats, PlainLabel, RandomState
from unflip._utils.validation import (
    check_classes,
    check_count,
    check_labels,
    check_level,
    check_numbers,
    check_probabilities,
    check_probability,
    is_number,
    plain_labels,
)

__all__ = [
    "InverseRates",
    "NoiseRates",
    "RatesInterval",
    "TransitionMatrix",
    "as_transition_matrix",
    "flip_labels",
]

MAX_TOTAL_RATE = 0.95
"""Maximum sum of estimated rates; beyond it, labels carry little information."""

MAX_INVERTIBLE_CONDITION = 1e12
"""Maximum condition number of a transition matrix; beyond it, T counts as singular."""


Rate = float | tuple[float, float] | None
"""How often a class is flipped: a number, bounds, or unknown."""


def positive_position(classes: ArrayLike, pos_label: Any) -> int:
    """Return the position of the positive class: that of `pos_label`, or the last one."""
    names = check_classes(classes).tolist()
    if pos_label is None:
        return len(names) - 1
    if len(names) != 2:
        raise ValueError(
            f"pos_label={pos_label!r} is for two classes, and there are {len(names)}: {names}. "
            "Leave it out."
        )
    if pos_label not in names:
        raise ValueError(f"pos_label={pos_label!r} is not one of the classes {names}.")
    return int(names.index(pos_label))


def has_names(classes: ArrayLike) -> bool:
    """Return whether rates are shown by class: if any label is not 0, 1, -1 or a boolean."""
    return not all(name in (-1, 0, 1) for name in check_classes(classes).tolist())


@dataclass(frozen=True)
class NoiseRates:
    r"""How often each class is flipped: rho_pos and rho_neg, with rho_pos + rho_neg < 1.

    Parameters
    ----------
    positive : float, (low, high) or None
        rho_pos = P(observed=-1 | true=+1), the share of positive examples labelled negative. A pair
        of bounds if only these are known, None if unknown.
    negative : float, (low, high) or None
        rho_neg = P(observed=+1 | true=-1), the share of negative examples labelled positive.
    classes : tuple of two labels, default=None
        The negative and the positive class, by whose names the rates are shown.

    Examples
    --------
    >>> from unflip import NoiseRates
    >>> rates = NoiseRates(positive=0.3, negative=0.1)
    >>> round(float(rates.noisy_posterior(0.5)), 3)
    0.4
    >>> print(rates.inverse(clean_prior=0.3))
    InverseRates(positive=0.25, negative=0.125)
    >>> print(NoiseRates(positive=(0.1, 0.3), negative=None))  # to be estimated within bounds
    NoiseRates(positive=(0.1, 0.3), negative=None)
    >>> print(NoiseRates.by_class({"churned": 0.3, "stayed": 0}))
    NoiseRates.by_class({'churned': 0.3, 'stayed': 0})
    """

    positive: Rate
    negative: Rate
    classes: tuple[PlainLabel, PlainLabel] | None = field(
        default=None, compare=False, kw_only=True, repr=False
    )

    def __post_init__(self) -> None:
        _check_pair(self, "noise rates")

    def __str__(self) -> str:
        return _rounded(self)

    def __repr__(self) -> str:
        if self.classes is None:
            return f"NoiseRates(positive={self.positive!r}, negative={self.negative!r})"
        pairs = zip(self.classes, (self.negative, self.positive), strict=True)
        return f"NoiseRates.by_class({dict(pairs)!r})"

    @classmethod
    def by_class(cls, rates: Mapping[Any, Rate]) -> "NoiseRates":
        """Return the rates of two classes by their names, whichever of them is the positive one.

        Parameters
        ----------
        rates : dict of label to float, (low, high) or None
            How often samples that truly are of a class carry the other label.

        Returns
        -------
        NoiseRates
            The rate of the greater label is `positive`.

        Examples
        --------
        >>> from unflip import NoiseRates
        >>> rates = NoiseRates.by_class({"churned": 0.3, "stayed": 0})
        >>> rates.positive, rates.negative  # "stayed" is classes_[1]
        (0.0, 0.3)
        """
        if not isinstance(rates, Mapping) or len(rates) != 2:
            raise ValueError(
                "by_class takes one rate for each of two classes, such as {'churned': 0.3, "
                f"'stayed': 0}}, got {rates!r}. For more classes use TransitionMatrix.by_class."
            )
        by_label = {plain_labels([label], "classes").item(): rate for label, rate in rates.items()}
        negative, positive = np.unique(plain_labels(list(by_label), "classes")).tolist()
        return cls(by_label[positive], by_label[negative], classes=(negative, positive))

    def of(self, classes: Array, pos_label: Any = None) -> "NoiseRates":
        """Return the rates with the names of the classes of a dataset.

        Labels 0 and 1, -1 and 1, False and True are not named: the positive one is plain.

        Parameters
        ----------
        classes : ndarray of shape (2,)
            The labels, sorted.
        pos_label : label, default=None
            The class that `positive` is the rate of; None: the greater one.

        Returns
        -------
        NoiseRates
            The same rates; an error is raised if they are of other classes.
        """
        at = positive_position(classes, pos_label)
        if self.classes is None and pos_label is not None:
            names = classes.tolist()
            return NoiseRates.by_class({names[at]: self.positive, names[1 - at]: self.negative})
        return _named(self, classes)

    @property
    def n_classes(self) -> int:
        """How many classes these are the rates of."""
        return 2

    @property
    def known(self) -> bool:
        """Whether both rates are known."""
        return isinstance(self.positive, float) and isinstance(self.negative, float)

    @property
    def information_left(self) -> float:
        """1 - rho_pos - rho_neg: what is left of the labels' information (Youden's index)."""
        positive, negative = self.both()
        return 1.0 - positive - negative

    @property
    def transition_matrix(self) -> Floats:
        """T[i, j] = P(observed = j | true = i), classes in the order negative, positive."""
        positive, negative = self.both()
        return np.array([[1 - negative, negative], [positive, 1 - positive]])

    def both(self) -> tuple[float, float]:
        """Return (rho_pos, rho_neg), or raise where one is unknown.

        Returns
        -------
        tuple of two floats
            The rates.
        """
        if not isinstance(self.positive, float) or not isinstance(self.negative, float):
            raise ValueError(
                f"{self} has an unknown rate, and this computation needs both. Estimate it first, "
                "for example with unflip.noise_rates.MinimumRates."
            )
        return self.positive, self.negative

    def swapped(self) -> "NoiseRates":
        """Return the rates of the same noise with the two classes' names exchanged.

        Returns
        -------
        NoiseRates
            The positive rate where the negative was.
        """
        return NoiseRates(positive=self.negative, negative=self.positive)

    @property
    def bounds(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """(low, high) of rho_pos and of rho_neg: equal where known, 0 and 1 where not."""
        return _bounds(self.positive), _bounds(self.negative)

    def noisy_posterior(self, clean_posterior: ArrayLike) -> Floats:
        """P(observed=+1 | x) = (1 - rho_pos - rho_neg) P(true=+1 | x) + rho_neg.

        Returns
        -------
        ndarray
            Of the shape given.
        """
        _, negative = self.both()
        clean = check_probabilities(clean_posterior, "clean_posterior")
        return self.information_left * clean + negative

    def clean_posterior(self, noisy_posterior: ArrayLike, *, clip: bool = True) -> Floats:
        """P(true=+1 | x) = (P(observed=+1 | x) - rho_neg) / (1 - rho_pos - rho_neg).

        An estimated posterior may leave the range [rho_neg, 1 - rho_pos] that these rates allow;
        `clip` then returns the nearest probability.

        Returns
        -------
        ndarray
            Of the shape given.
        """
        _, negative = self.both()
        noisy = check_probabilities(noisy_posterior, "noisy_posterior")
        clean = (noisy - negative) / self.information_left
        return np.clip(clean, 0.0, 1.0) if clip else clean

    def noisy_prior(self, clean_prior: float) -> float:
        """P(observed=+1), the share of positive labels, from P(true=+1).

        Returns
        -------
        float
            In [0, 1].
        """
        return float(self.noisy_posterior(check_probability(clean_prior, "clean_prior")))

    def clean_prior(self, noisy_prior: float) -> float:
        """P(true=+1) from the share of positive labels; raises where the two contradict.

        Returns
        -------
        float
            In [0, 1].
        """
        positive, negative = self.both()
        noisy_prior = check_probability(noisy_prior, "noisy_prior")
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

        p = P(true=+1) and q = P(observed=+1); give either one, the other follows.

        Returns
        -------
        InverseRates
            The rates given the noisy label.
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
        pi_pos = P(true=-1 | observed=+1), the share of positive labels that are wrong.
    negative : float
        pi_neg = P(true=+1 | observed=-1), the share of negative labels that are wrong.

    Examples
    --------
    >>> from unflip import InverseRates
    >>> inverse = InverseRates(positive=0.1, negative=0.3)
    >>> print(inverse.to_rates(noisy_prior=0.4))
    NoiseRates(positive=0.333, negative=0.087)
    """

    positive: float
    negative: float

    def __post_init__(self) -> None:
        _check_pair(self, "inverse noise rates")

    def __str__(self) -> str:
        return _rounded(self)

    def to_rates(self, *, noisy_prior: float, clean_prior: float | None = None) -> NoiseRates:
        """Return rho_pos = pi_neg (1-q) / p and rho_neg = pi_pos q / (1-p).

        The noisy prior q = P(observed=+1) is enough, because p = (1-pi_pos) q + pi_neg (1-q);
        a clean prior p known from elsewhere takes that value's place.

        Returns
        -------
        NoiseRates
            The rates given the true class.
        """
        q = check_probability(noisy_prior, "noisy_prior")
        if clean_prior is None:
            clean_prior = (1 - self.positive) * q + self.negative * (1 - q)
        p = check_probability(clean_prior, "clean_prior")
        return NoiseRates(
            positive=_share(self.negative * (1 - q), p),
            negative=_share(self.positive * q, 1 - p),
        )


N = TypeVar("N", "NoiseRates", "TransitionMatrix")


def _named(noise: N, classes: Array) -> N:
    """Return noise with the names of the classes; raise if it has the names of others."""
    names = tuple(classes.tolist())
    if noise.classes is None:
        return replace(noise, classes=names) if has_names(classes) else noise
    if noise.classes != names:
        raise ValueError(
            f"{noise} gives the rates of the classes {list(noise.classes)}, and the labels have "
            f"the classes {list(names)}."
        )
    return noise


@dataclass(frozen=True, eq=False)
class TransitionMatrix:
    r"""T[i, j] = P(observed=j | true=i): how the labels of any number of classes are flipped.

    P(observed | x) = P(true | x) T. Two classes, in the order negative, positive, have
    T = [[1 - rho_neg, rho_neg], [rho_pos, 1 - rho_pos]].

    Parameters
    ----------
    matrix : array-like of shape (n_classes, n_classes)
        T, classes in sorted order: entries in [0, 1], rows that sum to one, and an inverse.
    classes : tuple of labels, default=None
        The classes, by whose names the rates are shown.

    Examples
    --------
    >>> from unflip import TransitionMatrix
    >>> noise = TransitionMatrix([[0.8, 0.2, 0.0], [0.0, 0.9, 0.1], [0.1, 0.1, 0.8]])
    >>> noise.noisy_posterior([0.5, 0.5, 0.0])
    array([0.4 , 0.55, 0.05])
    >>> noise.clean_posterior([0.4, 0.55, 0.05]).round(3)
    array([0.5, 0.5, 0. ])
    >>> print(TransitionMatrix.by_class({"cat": {"dog": 0.2}, "dog": {"cat": 0.1}, "fox": {}}))
    TransitionMatrix.by_class({'cat': {'dog': 0.2}, 'dog': {'cat': 0.1}, 'fox': {}})
    """

    matrix: Floats
    classes: tuple[PlainLabel, ...] | None = None

    def __post_init__(self) -> None:
        matrix = _checked_matrix(self.matrix)
        matrix.flags.writeable = False
        object.__setattr__(self, "matrix", matrix)

    @classmethod
    def by_class(cls, rates: Mapping[Any, Mapping[Any, float]]) -> "TransitionMatrix":
        """Return T from the names of the classes: rates[i][j] = P(observed=j | true=i) for j != i.

        Parameters
        ----------
        rates : dict of label to dict of label to float
            For each true class, how often it carries each other label. Labels that are left out
            have the rate 0, and the rest of each class keeps its label.

        Returns
        -------
        TransitionMatrix
            Classes in sorted order.

        Examples
        --------
        >>> from unflip import TransitionMatrix
        >>> TransitionMatrix.by_class({"b": {"a": 0.2}, "a": {}, "c": {}}).matrix
        array([[1. , 0. , 0. ],
               [0.2, 0.8, 0. ],
               [0. , 0. , 1. ]])
        """
        given = isinstance(rates, Mapping) and all(isinstance(r, Mapping) for r in rates.values())
        if not given or len(rates) < 2:
            raise ValueError(
                "by_class takes the flip rates of each of two or more classes, such as "
                f"{{'cat': {{'dog': 0.2}}, 'dog': {{}}, 'fox': {{}}}}, got {rates!r}."
            )
        names = np.unique(plain_labels(list(rates), "classes")).tolist()
        matrix = np.zeros((len(names), len(names)))
        for true, by_label in rates.items():
            for label, rate in by_label.items():
                if label not in names or label == true:
                    raise ValueError(
                        f"the rates of {true!r} name {label!r}, which is not one of the other "
                        f"classes of {names}."
                    )
                matrix[names.index(true), names.index(label)] = check_probability(rate, "rate")
        np.fill_diagonal(matrix, 1 - matrix.sum(axis=1))
        return cls(matrix, tuple(names))

    def of(self, classes: Array, pos_label: Any = None) -> "TransitionMatrix":
        """Return T with the names of the classes of a dataset, as :meth:`NoiseRates.of` does.

        Parameters
        ----------
        classes : ndarray of shape (n_classes,)
            The labels, sorted.
        pos_label : label, default=None
            Has no effect: the order of T is that of the classes.

        Returns
        -------
        TransitionMatrix
            The same noise; an error is raised if it is that of other classes.
        """
        return _named(self, classes)

    @classmethod
    def uniform(cls, n_classes: int, rate: float) -> "TransitionMatrix":
        """Return the noise that flips every class at `rate`, equally to all other classes.

        Parameters
        ----------
        n_classes : int
            Number of classes.
        rate : float
            Share of each class to flip.

        Returns
        -------
        TransitionMatrix
            Of shape (n_classes, n_classes).
        """
        check_count(n_classes, "n_classes", least=2)
        rate = check_probability(rate, "rate")
        matrix = np.full((n_classes, n_classes), rate / (n_classes - 1))
        np.fill_diagonal(matrix, 1 - rate)
        return cls(matrix)

    @classmethod
    @documented_like(uniform)
    def pair_flip(cls, n_classes: int, rate: float) -> "TransitionMatrix":
        """Return the noise that flips each class at `rate` to the next one, cyclically."""
        check_count(n_classes, "n_classes", least=2)
        rate = check_probability(rate, "rate")
        stay = np.eye(n_classes)
        return cls((1 - rate) * stay + rate * np.roll(stay, 1, axis=1))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TransitionMatrix) and np.array_equal(self.matrix, other.matrix)

    def __hash__(self) -> int:
        return hash((self.n_classes, self.matrix.tobytes()))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.matrix, self.classes)  # a copy is checked and read-only too

    def __repr__(self) -> str:
        return self._shown(self.matrix)

    def __str__(self) -> str:
        return self._shown(self.matrix.round(3))

    def _shown(self, matrix: Floats) -> str:
        """Return the constructor that makes this matrix."""
        if self.classes is None:
            return f"TransitionMatrix({matrix.tolist()})"
        rows = zip(self.classes, matrix.tolist(), strict=True)
        by_class = {
            true: {j: rate for j, rate in zip(self.classes, row, strict=True) if rate and j != true}
            for true, row in rows
        }
        return f"TransitionMatrix.by_class({by_class})"

    @property
    def known(self) -> bool:
        """Whether all rates are known: those of a matrix are."""
        return True

    @property
    def transition_matrix(self) -> Floats:
        """T[i, j] = P(observed = j | true = i), as of :class:`NoiseRates`."""
        return self.matrix

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return self.matrix.shape[0]

    @property
    def information_left(self) -> float:
        """What is left of the labels' information: the smallest real part of T's eigenvalues.

        1 without noise, 1 - rho_pos - rho_neg for two classes, 0 where some classes can no longer
        be told apart.
        """
        if self.n_classes == 2:
            return float(self.matrix[0, 0] - self.matrix[1, 0])
        return float(np.linalg.eigvals(self.matrix).real.min())

    @property
    def rates(self) -> NoiseRates:
        """The two rates, where there are two classes."""
        if self.n_classes != 2:
            raise ValueError(
                f"noise of {self.n_classes} classes has no two rates: use its matrix, T[i, j] = "
                "P(observed=j | true=i)."
            )
        rates = NoiseRates(positive=float(self.matrix[1, 0]), negative=float(self.matrix[0, 1]))
        return rates if self.classes is None else rates.of(np.array(self.classes))

    def noisy_posterior(self, clean_posterior: ArrayLike) -> Floats:
        """P(observed | x) = P(true | x) T, from probabilities of shape (..., n_classes).

        Returns
        -------
        ndarray
            Of the shape given.
        """
        return self._of_all_classes(clean_posterior, "clean_posterior") @ self.matrix

    def clean_posterior(self, noisy_posterior: ArrayLike, *, clip: bool = True) -> Floats:
        """P(true | x) = P(observed | x) T^-1, from probabilities of shape (..., n_classes).

        An estimated posterior may be one that T does not allow, and some of these are negative;
        `clip` then takes the probability vector q under which it is likeliest, the largest
        sum_j P(observed=j | x) log (q T)_j. Of two classes that is the nearest end of [0, 1].

        Returns
        -------
        ndarray
            Of the shape given.
        """
        noisy = self._of_all_classes(noisy_posterior, "noisy_posterior")
        rows = noisy.reshape(-1, self.n_classes)
        if clip and self.n_classes > 2:
            return likeliest_mixture(scaled_rows(rows), self.matrix).reshape(noisy.shape)
        columns = np.asarray(np.linalg.solve(self.matrix.T, rows.T), dtype=np.float64)
        clean = columns.T.reshape(noisy.shape)
        return onto_simplex(clean) if clip else clean

    def noisy_prior(self, clean_prior: ArrayLike) -> Floats:
        """P(observed), the shares of the labels, from P(true).

        Returns
        -------
        ndarray of shape (n_classes,)
            Shares.
        """
        return self.noisy_posterior(clean_prior)

    def clean_prior(self, noisy_prior: ArrayLike) -> Floats:
        """P(true) from the shares of the labels; raises where the two contradict.

        Returns
        -------
        ndarray of shape (n_classes,)
            Shares.
        """
        prior = self.clean_posterior(noisy_prior, clip=False)
        if prior.min() < -1e-9:
            raise ValueError(
                f"{self} contradicts the shares of the labels: with {np.asarray(noisy_prior)} the "
                f"true shares would be {prior.round(4)}. Lower the flip rates."
            )
        return onto_simplex(prior)

    def inverse(
        self, *, noisy_prior: ArrayLike | None = None, clean_prior: ArrayLike | None = None
    ) -> Floats:
        """Return P(true=i | observed=j) = P(true=i) T[i, j] / P(observed=j), row j, column i.

        Give either prior, the other follows. A label that never occurs is taken as right.

        Returns
        -------
        ndarray of shape (n_classes, n_classes)
            Rows that sum to 1.
        """
        if (noisy_prior is None) == (clean_prior is None):
            raise ValueError("give exactly one of noisy_prior and clean_prior.")
        if clean_prior is None:
            assert noisy_prior is not None
            clean_prior = self.clean_prior(noisy_prior)
        true = self._of_all_classes(clean_prior, "clean_prior")
        joint = (true[:, None] * self.matrix).T
        noisy = joint.sum(axis=1, keepdims=True)
        return np.where(noisy > 0, joint / np.where(noisy > 0, noisy, 1), np.eye(self.n_classes))

    def _of_all_classes(self, values: ArrayLike, name: str) -> Floats:
        probabilities = check_probabilities(values, name)
        if probabilities.shape[-1:] != (self.n_classes,):
            raise ValueError(
                f"{name} has shape {probabilities.shape}, expected (..., {self.n_classes}): one "
                "probability per class."
            )
        return probabilities


Noise = NoiseRates | TransitionMatrix
"""The noise of two classes, or of any number."""

KnownRates = Noise | Array | Sequence[Sequence[float]]
"""What users may give for rates that are known: an array is T."""


@dataclass(frozen=True, eq=False)
class RatesInterval:
    r"""Bounds of every T[i, j] = P(observed=j | true=i), each of which holds it at the given level.

    Parameters
    ----------
    low, high : array-like of shape (n_classes, n_classes)
        The lower and the upper ends of T's entries, classes in sorted order.
    level : float, default=0.95
        The confidence, or the probability, of each pair of ends on its own.
    label_error_rate : (low, high), default=None
        Bounds of the share of labels that are wrong, where they are known.

    Examples
    --------
    >>> from unflip.noise import RatesInterval
    >>> interval = RatesInterval.from_pairs(positive=(0.28, 0.34), negative=(0.07, 0.1))
    >>> print(interval)
    RatesInterval(positive=(0.28, 0.34), negative=(0.07, 0.1), level=0.95)
    >>> interval.contains(NoiseRates(positive=0.3, negative=0.2))
    False
    >>> print(NoiseRates(*interval.both()))  # bounds to be kept by another estimate
    NoiseRates(positive=(0.28, 0.34), negative=(0.07, 0.1))
    """

    low: Floats
    high: Floats
    level: float = 0.95
    label_error_rate: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        low, high = (_bounds_of_matrix(ends) for ends in (self.low, self.high))
        if low.shape != high.shape:
            raise ValueError(f"low has shape {low.shape}, and high has shape {high.shape}.")
        if (low > high).any():
            raise ValueError("the interval has a lower end above its upper end.")
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)
        object.__setattr__(self, "level", check_level(self.level))
        if self.label_error_rate is not None:
            share = _pair_of_bounds(self.label_error_rate, "label_error_rate")
            object.__setattr__(self, "label_error_rate", share)

    @classmethod
    def from_pairs(
        cls,
        positive: tuple[float, float],
        negative: tuple[float, float],
        level: float = 0.95,
        label_error_rate: tuple[float, float] | None = None,
    ) -> "RatesInterval":
        """Return the interval of two classes' noise.

        Parameters
        ----------
        positive, negative : (low, high)
            The ends of rho_pos = T[1, 0] and of rho_neg = T[0, 1].
        level, label_error_rate
            As for the class.

        Returns
        -------
        RatesInterval
            Of a 2 x 2 matrix.
        """
        p_low, p_high = _pair_of_bounds(positive, "positive")
        n_low, n_high = _pair_of_bounds(negative, "negative")
        return cls(
            np.array([[1 - n_high, n_low], [p_low, 1 - p_high]]),
            np.array([[1 - n_low, n_high], [p_high, 1 - p_low]]),
            level,
            label_error_rate,
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RatesInterval) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[Any, ...]:
        ends = self.low.tobytes(), self.high.tobytes()
        return self.n_classes, *ends, self.level, self.label_error_rate

    def __reduce__(self) -> tuple[Any, ...]:
        # a copy is checked and read-only too
        return type(self), (self.low, self.high, self.level, self.label_error_rate)

    def __repr__(self) -> str:
        ends = f"low={self.low.tolist()}, high={self.high.tolist()}"
        return (
            f"RatesInterval({ends}, level={self.level}, label_error_rate={self.label_error_rate})"
        )

    def __str__(self) -> str:
        if self.n_classes == 2:
            positive, negative = self.both()
            shown = f"positive={_shown(positive)}, negative={_shown(negative)}"
        else:
            shown = f"low={self.low.round(3).tolist()}, high={self.high.round(3).tolist()}"
        share = (
            ""
            if self.label_error_rate is None
            else f", label_error_rate={_shown(self.label_error_rate)}"
        )
        return f"RatesInterval({shown}, level={self.level:g}{share})"

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return self.low.shape[0]

    @property
    def positive(self) -> tuple[float, float]:
        """(low, high) of rho_pos = T[1, 0], where there are two classes."""
        return self._of_two_classes(1, 0)

    @property
    def negative(self) -> tuple[float, float]:
        """(low, high) of rho_neg = T[0, 1], where there are two classes."""
        return self._of_two_classes(0, 1)

    def both(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """Return (low, high) of rho_pos and of rho_neg, where there are two classes.

        Returns
        -------
        tuple of two pairs of floats
            The ends.
        """
        return self.positive, self.negative

    @property
    def flip_rates(self) -> Floats:
        """(low, high) of 1 - T[i, i], how often each class is flipped, one row per class."""
        return np.column_stack([1 - np.diag(self.high), 1 - np.diag(self.low)])

    @property
    def width(self) -> Floats:
        """The upper less the lower end of every T[i, j]."""
        return self.high - self.low

    def contains(self, rates: KnownRates) -> bool:
        """Return whether every T[i, j] of the noise lies within its ends.

        Parameters
        ----------
        rates : NoiseRates, TransitionMatrix or array-like of shape (n_classes, n_classes)
            The noise.

        Returns
        -------
        bool
            True where all do.
        """
        matrix = as_transition_matrix(rates, self.n_classes).matrix
        rounding = 1e-12  # 1 - (1 - rate) is not quite the rate
        return bool(((self.low - rounding <= matrix) & (matrix <= self.high + rounding)).all())

    def _of_two_classes(self, i: int, j: int) -> tuple[float, float]:
        if self.n_classes != 2:
            raise AttributeError(
                f"an interval of {self.n_classes} classes has no positive and no negative rate: "
                "use low[i, j] and high[i, j], the ends of P(observed=j | true=i), or flip_rates."
            )
        return float(self.low[i, j]), float(self.high[i, j])


def as_transition_matrix(rates: KnownRates, n_classes: int | None = None) -> TransitionMatrix:
    """Return rates, in any form that users may give them, as a checked K x K matrix.

    Parameters
    ----------
    rates : NoiseRates, TransitionMatrix or array-like of shape (n_classes, n_classes)
        The noise.
    n_classes : int, default=None
        How many classes there must be. None: any number.

    Returns
    -------
    TransitionMatrix
        The same noise.
    """
    if is_matrix(rates):
        rates = TransitionMatrix(np.asarray(rates))
    if not isinstance(rates, NoiseRates | TransitionMatrix):
        raise TypeError(
            "rates must be NoiseRates(positive=..., negative=...), a TransitionMatrix or a K x K "
            f"array, got {rates!r}.{hint_on_rates(rates)}"
        )
    if n_classes not in (None, rates.n_classes):
        raise ValueError(
            f"{rates} is noise of {rates.n_classes} classes, and there are {n_classes}. Pass a "
            f"TransitionMatrix of shape ({n_classes}, {n_classes}). "
            "If y lacks some of its classes, list all of them in classes=[...] where there is "
            "such a parameter."
        )
    return TransitionMatrix(rates.transition_matrix) if isinstance(rates, NoiseRates) else rates


def as_inverse_rates(rates: object) -> InverseRates:
    """Return inverse rates; raise if these are others."""
    if not isinstance(rates, InverseRates):
        raise TypeError(
            "inverse_rates must be InverseRates(positive=..., negative=...), the shares of the "
            f"labels that are wrong, got {rates!r}. Noise rates become inverse ones by "
            "rates.inverse(noisy_prior=...); importance_weights takes them as they are."
        )
    return rates


def hint_on_rates(rates: Any) -> str:
    """Return how to write the rates that were probably meant, after a space; or nothing."""
    if isinstance(rates, RatesInterval):
        return " An interval of two rates is given as NoiseRates(*interval.both())."
    if isinstance(rates, Mapping):
        return f" Rates by class are given as NoiseRates.by_class({rates!r})."
    several = isinstance(rates, (tuple, list)) or np.ndim(rates) == 1
    values = list(rates) if several else [rates]
    if len(values) not in (1, 2) or not all(is_number(value) for value in values):
        return ""
    if len(values) == 2:
        first, second = (f"{value:g}" for value in values)
        return (
            f" Two rates are given as NoiseRates(positive={first}, negative={second}), that of the "
            "greater label first, or by name as NoiseRates.by_class({label: rate, ...})."
        )
    rate = f"{values[0]:g}"
    return (
        f" The same rate for two classes is given as NoiseRates(positive={rate}, negative={rate}), "
        f"for K classes as TransitionMatrix.uniform(K, {rate})."
    )


def as_noise(rates: KnownRates, n_classes: int) -> Noise:
    """Return noise as NoiseRates for two classes, and as a TransitionMatrix for more."""
    if isinstance(rates, NoiseRates) and n_classes == 2:
        return rates
    noise = as_transition_matrix(rates, n_classes)
    return noise.rates if n_classes == 2 else noise


def known_size(rates: object) -> int | None:
    """Return how many classes known rates are for; None if `rates` are to be estimated."""
    if isinstance(rates, NoiseRates | TransitionMatrix):
        return rates.n_classes
    return len(rates) if is_matrix(rates) else None


def of_classes(rates: Any, classes: Array, pos_label: Any = None) -> Any:
    """Return known rates for the classes of a dataset, with their names; anything else as it is.

    `pos_label` is the class that `NoiseRates.positive` is about; None: the greater one.
    """
    if isinstance(rates, NoiseRates | TransitionMatrix) and rates.n_classes == classes.size:
        return rates.of(classes, pos_label)
    return rates


def is_matrix(rates: object) -> TypeGuard[Array | Sequence[Sequence[float]]]:
    """Return whether a user's rates are an array-like of two dimensions."""
    is_array = isinstance(rates, (list, tuple)) or hasattr(rates, "__array__")
    return is_array and np.asarray(rates).ndim == 2


def flip_labels(
    y: Any, rates: KnownRates, random_state: RandomState = None, *, classes: ArrayLike | None = None
) -> Any:
    """Return a copy of `y` in which a label i becomes j with probability T[i, j].

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        True labels. A pandas or polars series comes back as one.
    rates : NoiseRates, TransitionMatrix or array-like of shape (n_classes, n_classes)
        How each class is flipped: the two rates of two classes, or T of any number.
    random_state : int, RandomState instance or None, default=None
        Seed of the flips.
    classes : array-like of shape (n_classes,), default=None
        The classes, needed only where `y` may lack some of them.

    Returns
    -------
    ndarray, or series of the kind given
        Observed labels.

    Examples
    --------
    >>> from unflip import NoiseRates, TransitionMatrix, flip_labels
    >>> flip_labels(["no", "yes", "yes"], NoiseRates(positive=0.9, negative=0.0), random_state=0)
    array(['no', 'no', 'no'], dtype='<U3')
    >>> flip_labels(["a", "b", "c", "a"], TransitionMatrix.pair_flip(3, 0.6), random_state=0)
    array(['b', 'b', 'c', 'b'], dtype='<U1')
    """
    known, codes = check_labels(y, classes=classes, binary=False)
    matrix = as_transition_matrix(of_classes(rates, known), known.size).matrix
    uniform = check_random_state(random_state).uniform(size=codes.size)
    noisy_codes = codes.copy()
    for k in range(known.size):
        # a label stays where all ways of leaving it have been passed by
        others = np.delete(np.arange(known.size), k)
        passed = np.searchsorted(np.cumsum(matrix[k, others]), uniform[codes == k], side="right")
        noisy_codes[codes == k] = np.append(others, k)[passed]
    noisy = known[noisy_codes]
    series = nw.from_native(y, series_only=True, pass_through=True)
    if not isinstance(series, nw.Series):
        return noisy
    # scattering onto the original keeps its name, index and type
    rows = np.flatnonzero(noisy_codes != codes)
    values = noisy[rows].astype(bool) if series.dtype == nw.Boolean else noisy[rows]
    return series.scatter(rows, values).to_native()


def _checked_matrix(values: ArrayLike) -> Floats:
    """Return a copy of a square, row-stochastic, invertible matrix; raise if it is not."""
    matrix = np.array(check_numbers(values, "the transition matrix"))
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or matrix.shape[0] < 2:
        raise ValueError(
            f"the transition matrix has shape {matrix.shape}, expected (n_classes, n_classes) for "
            "at least two classes."
        )
    check_probabilities(matrix, "the transition matrix")
    sums = matrix.sum(axis=1)
    wrong = int(np.argmax(np.abs(sums - 1)))
    if abs(sums[wrong] - 1) > 1e-6:
        raise ValueError(
            f"row {wrong} of the transition matrix sums to {sums[wrong]:.6g}, and every row must "
            "sum to 1: row i holds P(observed=j | true=i) for all j."
        )
    if not np.linalg.cond(matrix) <= MAX_INVERTIBLE_CONDITION:
        raise ValueError(
            "the transition matrix has no inverse: some true classes, or mixtures of them, get the "
            "same noisy labels, so that no data can tell them apart. Lower the flip rates."
        )
    return matrix


def _bounds_of_matrix(values: ArrayLike) -> Floats:
    """Return a read-only copy of one end of every entry of a K x K matrix."""
    ends = np.array(check_probabilities(values, "the interval"))
    if ends.ndim != 2 or ends.shape[0] != ends.shape[1] or ends.shape[0] < 2:
        raise ValueError(
            f"the interval's ends have shape {ends.shape}, expected (n_classes, n_classes) for at "
            "least two classes: the bounds of T[i, j] = P(observed=j | true=i)."
        )
    ends.flags.writeable = False
    return ends


def _pair_of_bounds(pair: Any, name: str) -> tuple[float, float]:
    """Return a (low, high) of probabilities as two floats."""
    ends = check_probabilities(pair, name)
    if ends.shape != (2,) or ends[0] > ends[1]:
        raise ValueError(f"{name} must be (low, high), got {pair!r}.")
    return float(ends[0]), float(ends[1])


def _bounds(rate: Rate) -> tuple[float, float]:
    if rate is None:
        return 0.0, 1.0
    return rate if isinstance(rate, tuple) else (rate, rate)


def _share(part: float, whole: float) -> float:
    """Part / whole, and 0 where there is no whole to take a part of."""
    return part / whole if whole > 0 else 0.0


def _shown(value: Rate) -> str:
    if isinstance(value, tuple):
        return f"({value[0]:.3g}, {value[1]:.3g})"
    return str(value) if value is None else f"{value:.3g}"


def _rounded(pair: NoiseRates | InverseRates) -> str:
    """Return the pair as people read it; `repr` has all digits."""
    if isinstance(pair, NoiseRates) and pair.classes is not None:
        negative, positive = map(repr, pair.classes)
        by_class = f"{negative}: {_shown(pair.negative)}, {positive}: {_shown(pair.positive)}"
        return f"NoiseRates.by_class({{{by_class}}})"
    shown = f"positive={_shown(pair.positive)}, negative={_shown(pair.negative)}"
    return f"{type(pair).__name__}({shown})"


def _check_pair(pair: NoiseRates | InverseRates, noun: str) -> None:
    """Turn both fields into floats in [0, 1) that sum to less than one."""
    fields: dict[str, Any] = {"positive": pair.positive, "negative": pair.negative}
    for name, value in fields.items():
        bounded = isinstance(value, (tuple, list)) and isinstance(pair, NoiseRates)
        if value is None and isinstance(pair, NoiseRates):
            continue
        try:
            rates = [float(rate) for rate in (value if bounded else [value])]
        except (TypeError, ValueError):
            raise TypeError(f"{noun}: {name} must be a number in [0, 1), got {value!r}.") from None
        if not all(0 <= rate < 1 for rate in rates):
            raise ValueError(f"{noun}: {name} must lie in [0, 1), got {value!r}.")
        if bounded and (len(rates) != 2 or rates[0] > rates[1]):
            raise ValueError(f"{noun}: the bounds of {name} must be (low, high), got {value!r}.")
        object.__setattr__(pair, name, tuple(rates) if bounded else rates[0])
    (least_positive, _), (least_negative, _) = _bounds(pair.positive), _bounds(pair.negative)
    if least_positive + least_negative >= 1:
        raise ValueError(
            f"{noun} must sum to less than 1, got {least_positive:g} + {least_negative:g} = "
            f"{least_positive + least_negative:g}: at 1 the labels carry no information about the "
            "true class, and above 1 the two classes are swapped."
        )
