"""A fitted posterior with rates, and functions that apply it to a block."""

from collections.abc import Iterable
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import reduce
from operator import attrgetter, methodcaller

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import _num_samples, check_consistent_length

from unflip._blocks._error_model import BlockErrorModel
from unflip._blocks._held_out import HeldOut
from unflip._blocks._rows import block_weight, check_labelled, label_codes
from unflip._features import UncertainNoise
from unflip._utils.estimators import soft_copies
from unflip._utils.threads import one_blas_thread
from unflip._utils.typing import Array, Codes, Floats, Rows, Vector
from unflip._utils.validation import plain_labels
from unflip.checked.internals import joint_counts
from unflip.noise import Noise
from unflip.posterior import BasePosterior
from unflip.weights import LabelPosterior, Totals

N_HISTOGRAM = 2**16
"""Bins of the histogram of P(mislabelled)."""


@dataclass(frozen=True)
class LabelModel:
    """Fitted P(noisy y | x) and noise rates."""

    posterior: BasePosterior
    rates: Noise
    # The labels, sorted.
    classes: Array
    # Fitted to checked samples.
    error_model: BlockErrorModel | None = None
    # P(observed | x) of the samples that the posterior was fitted to.
    held_out: HeldOut | None = None
    # The mixture with "no noise" where that is the most probable hypothesis, and its linear
    # model's P(observed | x) of the samples that it was fitted to.
    uncertain: tuple[UncertainNoise, HeldOut] | None = None

    def noisy_proba(self, X: Rows, codes: Codes) -> Floats:
        """Return P(observed | x) of samples, of known ones without their own labels."""
        proba = np.asarray(self.posterior.predict_proba(X), dtype=float)
        return proba if self.held_out is None else self.held_out.replace(proba, X, codes)

    @one_blas_thread()
    def label_posterior(self, X: Rows, y: Vector) -> LabelPosterior:
        """Return P(true | x, observed label) of the samples."""
        check_labelled(y)
        check_consistent_length(X, y)
        if not len(y):
            none = np.empty((0, self.classes.size))
            return LabelPosterior(none, np.empty(0, dtype=np.intp), self.rates, self.classes)
        codes = label_codes(y, self.classes)
        noisy_posterior = self.noisy_proba(X, codes)
        proba = None
        if self.error_model is not None:
            proba = self.error_model.label_proba(X, noisy_posterior, codes, self.classes)
        elif self.uncertain is not None:
            uncertain, held_out = self.uncertain
            linear = held_out.replace(uncertain.linear.predict_proba(X), X, codes)
            alone = LabelPosterior(noisy_posterior, codes, self.rates, self.classes)
            proba = uncertain.label_proba(alone.noisy_proba, linear, codes, self.classes)
        return LabelPosterior(noisy_posterior, codes, self.rates, self.classes, proba)


def block_totals(X: Rows, y: Vector, sample_weight: Vector | None, model: LabelModel) -> Totals:
    """Return the sums over a block."""
    return model.label_posterior(X, y).totals(block_weight(sample_weight, len(y)))


def block_joint_counts(
    X: Rows, y: Vector, sample_weight: Vector | None, model: LabelModel
) -> Floats:
    """Return the joint counts of true and observed labels of a block."""
    rows = model.label_posterior(X, y)
    return joint_counts(rows.proba, rows.codes)


def block_labels(
    X: Rows, y: Vector, sample_weight: Vector | None, shared: tuple[LabelModel, str]
) -> Array:
    """Return an attribute of the label posterior of a block, such as `mislabel_proba`."""
    model, name = shared
    return np.asarray(attrgetter(name)(model.label_posterior(X, y)))


def block_weights(X: Rows, y: Vector, sample_weight: Vector | None, model: LabelModel) -> Floats:
    """Return beta times `sample_weight` of a block."""
    beta = model.label_posterior(X, y).weights
    weight = block_weight(sample_weight, len(y))
    return beta if weight is None else beta * weight


@one_blas_thread()
def block_partial_fit(
    estimator: BaseEstimator, X: Rows, y: Vector, sample_weight: Vector | None, model: LabelModel
) -> BaseEstimator:
    """Return a copy of the classifier trained on a block; a copy, as a task may run twice."""
    if not len(y):
        return estimator
    estimator = deepcopy(estimator)
    if model.error_model is not None:
        proba, weight = model.label_posterior(X, y).proba, block_weight(sample_weight, len(y))
        copies = soft_copies(X, proba, model.classes, weight)
        return estimator.partial_fit(
            copies.X, copies.y, classes=model.classes, sample_weight=copies.weight
        )
    weights = block_weights(X, y, sample_weight, model)
    return estimator.partial_fit(X, plain_labels(y), classes=model.classes, sample_weight=weights)


@one_blas_thread()
def block_predictions(
    X: Rows,
    y: Vector | None,
    sample_weight: Vector | None,
    shared: tuple[BaseEstimator, str, Array],
) -> Array:
    """Return what a method of a classifier gives for a block, of the type of an example."""
    estimator, method, like = shared
    if not _num_samples(X):
        return like[:0]
    return np.asarray(methodcaller(method, X)(estimator), dtype=like.dtype)


@dataclass(frozen=True)
class Suspects:
    """Samples whose labels are probably wrong, in descending order of probability.

    Parameters
    ----------
    position : ndarray of shape (n,)
        Positions of the rows.
    mislabel_proba : ndarray of shape (n,)
        P(the label is wrong | x, the label).
    label, suggested_label : ndarray of shape (n,)
        The observed label and the most probable true label.
    n_rows : int
        Number of rows searched.

    Examples
    --------
    >>> import numpy as np
    >>> from unflip.streaming import Suspects
    >>> labels = np.array([0, 1, 0])
    >>> found = Suspects(np.array([7, 2, 5]), np.array([0.9, 0.8, 0.6]), labels, 1 - labels, 10)
    >>> found.first(2).position
    array([7, 2])
    """

    position: NDArray[np.intp]
    mislabel_proba: Floats
    label: Array
    suggested_label: Array
    n_rows: int

    def __len__(self) -> int:
        return self.position.size

    def __add__(self, after: "Suspects") -> "Suspects":
        """Return these suspects and those of the rows that follow."""
        return Suspects(
            np.concatenate([self.position, self.n_rows + after.position]),
            np.concatenate([self.mislabel_proba, after.mislabel_proba]),
            np.concatenate([self.label, after.label]),
            np.concatenate([self.suggested_label, after.suggested_label]),
            self.n_rows + after.n_rows,
        )

    def first(self, n: int) -> "Suspects":
        """Return the `n` most probable suspects; ties keep the order of the rows.

        Returns
        -------
        Suspects
            At most `n` of these.
        """
        order = np.lexsort((self.position, -self.mislabel_proba))[:n]
        return replace(
            self,
            position=self.position[order],
            mislabel_proba=self.mislabel_proba[order],
            label=self.label[order],
            suggested_label=self.suggested_label[order],
        )

    def n_above(self, threshold: float) -> int:
        """Return how many of these rows have a P(mislabelled) of at least a threshold.

        Returns
        -------
        int
            Their number.
        """
        return int(np.sum(self.mislabel_proba >= threshold))


@dataclass(frozen=True)
class MislabelHistogram:
    """Counts of rows by P(mislabelled), in bins of equal width; those of two blocks are added."""

    # Number of rows, and sum of their P(mislabelled), in ascending bins.
    counts: Floats
    sums: Floats

    def __add__(self, other: "MislabelHistogram") -> "MislabelHistogram":
        return MislabelHistogram(self.counts + other.counts, self.sums + other.sums)

    def most_above(self, threshold: float) -> int:
        """Return an upper bound on the number of samples with P(mislabelled) >= threshold."""
        # a bin more, as the bin of a value on its edge is a matter of rounding
        first = max(int(threshold * self.counts.size) - 1, 0)
        return int(self.counts[first:].sum())

    def n_issues(self, precision: float | None) -> int:
        """Return how many rows :meth:`~unflip.audit.LabelAudit.issues` returns, or fewer.

        In the bin where the mean falls below `precision`, every row is taken to be at the bin's
        mean, so that the result may be too small but is never too large.
        """
        if precision is None:
            return round(float(self.sums.sum()))
        least = precision - 1e-12
        counts, sums = self.counts[::-1], self.sums[::-1]
        # rises in bins above `least`, then falls: never positive again
        surplus = np.cumsum(sums - least * counts)
        whole = int(np.sum(np.logical_and.accumulate(surplus >= 0)))
        n = counts[:whole].sum()
        if 0 < whole < counts.size:
            n += surplus[whole - 1] // (least - sums[whole] / counts[whole])
        return int(n)


def block_mislabel_histogram(
    X: Rows, y: Vector, sample_weight: Vector | None, model: LabelModel
) -> MislabelHistogram:
    """Return the histogram of P(mislabelled) of a block."""
    wrong = model.label_posterior(X, y).mislabel_proba
    bins = np.minimum(wrong * N_HISTOGRAM, N_HISTOGRAM - 1).astype(np.intp)
    counts = np.bincount(bins, minlength=N_HISTOGRAM).astype(float)
    return MislabelHistogram(counts, np.asarray(np.bincount(bins, wrong, N_HISTOGRAM), dtype=float))


def block_suspects(
    X: Rows, y: Vector, sample_weight: Vector | None, shared: tuple[LabelModel, int]
) -> Suspects:
    """Return the n most probable suspects of a block."""
    model, n = shared
    rows = model.label_posterior(X, y)
    suspects = Suspects(
        np.arange(len(y)), rows.mislabel_proba, rows.labels, rows.suggested_label, len(y)
    )
    return suspects.first(n)


def most_suspect(parts: Iterable[Suspects], n: int) -> Suspects:
    """Return the n most probable suspects of consecutive blocks, holding at most 2n at a time."""
    return reduce(lambda worst, found: (worst + found).first(n), parts)
