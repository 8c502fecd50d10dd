"""How far labels are to be believed, of any block of rows, and the sums over rows that follow.

Rows in memory, in files and on a cluster are judged by the same two classes: `Beliefs` of a block,
and `Totals`, which add up from block to block.
"""

import warnings
from collections.abc import Iterable
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unflip.noise import NoiseRates, as_transition_matrix
from unflip.noise_rates._identifiability import SURE
from unflip.weights import (
    LEAST_EFFECTIVE_SHARE,
    clipped_share,
    importance_weights,
    likeliest_class,
    mislabel_probability,
)

Array = NDArray[Any]
Floats = NDArray[np.float64]

LEAST_YOUDEN = 0.2
"""Labels that carry less information are said to say very little."""

LARGEST_DEFICIT = 0.01
"""A true share of one of many classes may be so far below 0: that is within an estimate's error."""


@dataclass(frozen=True)
class Totals:
    """Sums over rows; those of two blocks are added by `+`.

    Parameters
    ----------
    n_rows : int
        Rows.
    label_mass : ndarray of shape (n_classes,)
        Sum of the rows' own weights, by given label.
    taught_mass : ndarray of shape (n_classes,)
        Sum of beta times the rows' own weights, by given label.
    sure_mass : ndarray of shape (n_classes,)
        Sum of the own weights of rows that surely are of each class, whatever their label.
    row_squares, taught_squares : float
        Sums of the squares of the rows' own weights, and of beta times those.
    n_possible : int
        Rows whose label has a probability above 0.
    n_clipped : int
        Rows whose P(noisy y | x) the rates do not allow.
    n_errors : float
        Expected number of wrong labels, by the rows' own weights.
    """

    n_rows: int
    label_mass: Floats
    taught_mass: Floats
    sure_mass: Floats
    row_squares: float
    taught_squares: float
    n_possible: int
    n_clipped: int
    n_errors: float

    def __add__(self, other: "Totals") -> "Totals":
        return Totals(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    @property
    def noisy_prior(self) -> Floats:
        """P(noisy y), the share of each label."""
        return np.asarray(self.label_mass / self.label_mass.sum())

    @property
    def sure_share(self) -> Floats:
        """The share of rows that surely are of each class."""
        return np.asarray(self.sure_mass / self.label_mass.sum())

    @property
    def clipped_share(self) -> float:
        """The share of rows whose beta was clipped."""
        return self.n_clipped / self.n_rows

    @property
    def effective_sample_size(self) -> float:
        """(sum w)^2 / sum w^2 of the weights that a classifier is trained with."""
        return _effective(self.taught_mass, self.taught_squares)

    def objections(self, classes: Array, rates: Any) -> list[str]:
        """Return, in words, what speaks against learning with these weights.

        Raises where nothing can be learnt from them.

        Parameters
        ----------
        classes : ndarray of shape (n_classes,)
            The labels.
        rates : NoiseRates or TransitionMatrix
            The rates that the weights come from.
        """
        return [
            *self._untaught(classes, rates),
            *self._uninformative(rates),
            *self._few_rows_left(),
        ]

    def _untaught(self, classes: Array, rates: Any) -> list[str]:
        if not self.n_possible:
            raise ValueError(
                "the posterior gives every row's label probability 0, so no label can be believed: "
                "it does not fit these data. Choose another posterior, or a wider bandwidth."
            )
        taught = self.taught_mass > 0
        if taught.all():
            return []
        label = classes[np.argmin(taught)].item()
        if classes.size > 2 and taught.sum() >= 2:
            return [
                f"every row labelled {label!r} gets weight 0 under {rates}, so that the classifier "
                "will not learn that class: where such a row looks likely, its probability is "
                "still no more than what the other classes' flips explain. Lower the rates at "
                f"which they are flipped to {label!r}, or choose another posterior."
            ]
        raise ValueError(
            f"every row labelled {label!r} would get weight 0 under {rates}: where one of them "
            "looks likely, its probability is still no more than the other class's flip rate. "
            "Lower that rate, or choose another posterior."
        )

    def _uninformative(self, rates: Any) -> list[str]:
        """Say where the result hangs on next to nothing."""
        found = []
        if rates.youden < LEAST_YOUDEN:
            amount = (
                f"the noise rates sum to {sum(rates.both()):.2f}"
                if isinstance(rates, NoiseRates)
                else f"the transition matrix has an eigenvalue of real part {rates.youden:.2f}"
            )
            found.append(
                f"{amount}: the labels say very little about the true classes, and the weights "
                "amplify every error of the posterior."
            )
        if isinstance(rates, NoiseRates):
            positive, negative = rates.both()
            share = self.noisy_prior[1]
            if not negative <= share <= 1 - positive:
                found.append(
                    f"{rates} contradicts the data: under these rates the share of positive labels "
                    f"lies between {negative:.3f} and {1 - positive:.3f}, and it is {share:.3f}."
                )
            return found
        clean_prior = rates.clean_posterior(self.noisy_prior, clip=False)
        if clean_prior.min() < -LARGEST_DEFICIT:
            found.append(
                f"{rates} contradicts the data: with the shares of the labels, "
                f"{self.noisy_prior.round(3)}, the true shares would be {clean_prior.round(3)}."
            )
        return found

    def _few_rows_left(self) -> list[str]:
        """Say where the weights leave a small part of the sample."""
        size = self.effective_sample_size
        rows = _effective(self.label_mass, self.row_squares)
        if size >= LEAST_EFFECTIVE_SHARE * rows:
            return []
        return [
            f"the weights leave few rows: as much as {size:.0f} of equal weight ({size / rows:.0%} "
            "of all), so that the classifier may vary much from sample to sample. More rows would "
            "help, or another posterior."
        ]


@dataclass(frozen=True)
class Beliefs:
    """What P(noisy y | x) and the rates say of the labels of some rows.

    Parameters
    ----------
    noisy_posterior : ndarray of shape (n_samples, n_classes)
        P(noisy y | x).
    codes : ndarray of shape (n_samples,)
        Positions of the given labels among the classes.
    rates : NoiseRates or TransitionMatrix
        The noise.
    classes : ndarray of shape (n_classes,)
        The labels, sorted.

    Notes
    -----
    There may be no rows: a cluster's tables have empty partitions.
    """

    noisy_posterior: Floats
    codes: NDArray[np.intp]
    rates: Any
    classes: Array

    @property
    def labels(self) -> Array:
        """The given labels."""
        return self.classes[self.codes]

    @property
    def given(self) -> Floats:
        """P(noisy=y | x) of the given labels."""
        return self.noisy_posterior[np.arange(self.codes.size), self.codes]

    @cached_property
    def weights(self) -> Floats:
        """Lemma 1: beta = P(true=y | x) / P(noisy=y | x)."""
        if not self.codes.size:
            return np.empty(0)
        return importance_weights(self._believed, self.labels, self.rates, classes=self.classes)

    @cached_property
    def mislabel_proba(self) -> Floats:
        """P(the label is wrong | x, the label)."""
        if not self.codes.size:
            return np.empty(0)
        return mislabel_probability(self._believed, self.labels, self.rates, classes=self.classes)

    @cached_property
    def clean_proba(self) -> Floats:
        """P(true y | x), whatever the label."""
        noise = as_transition_matrix(self.rates, self.classes.size)
        return noise.clean_posterior(self.noisy_posterior)

    @property
    def suggested_label(self) -> Array:
        """The likeliest true label given x and the label."""
        return self.classes[likeliest_class(self.clean_proba, self.codes, self.rates)]

    def totals(self, row_weight: Floats | None = None, beta: Floats | None = None) -> Totals:
        """Return the sums over these rows.

        Parameters
        ----------
        row_weight : ndarray of shape (n_samples,), default=None
            How often each row counts; None: once.
        beta : ndarray of shape (n_samples,), default=None
            Other weights than Lemma 1's.
        """
        own = np.ones(self.codes.size) if row_weight is None else row_weight
        taught = own * (self.weights if beta is None else beta)
        clipped = 0.0
        if self.codes.size:
            clipped = clipped_share(self._believed, self.labels, self.rates, classes=self.classes)

        def by_label(weight: Floats) -> Any:
            return np.bincount(self.codes, weight, minlength=self.classes.size)

        return Totals(
            n_rows=self.codes.size,
            label_mass=by_label(own),
            taught_mass=by_label(taught),
            sure_mass=own @ (self.clean_proba >= SURE),
            row_squares=float(own @ own),
            taught_squares=float(taught @ taught),
            n_possible=int(np.count_nonzero(self.given)),
            n_clipped=round(clipped * self.codes.size),
            n_errors=float(own @ self.mislabel_proba),
        )

    @property
    def _believed(self) -> Floats:
        # of two classes the given label's probability is enough, and the other one is not used
        return self.given if self.classes.size == 2 else self.noisy_posterior


def warn_all(sentences: Iterable[str]) -> None:
    """Warn where the user called the method that calls this, as a rule `fit`."""
    for sentence in sentences:
        warnings.warn(sentence, UserWarning, stacklevel=3)


def _effective(mass: Floats, squares: float) -> float:
    """Return (sum w)^2 / sum w^2."""
    return float(mass.sum() ** 2 / squares) if squares > 0 else 0.0
