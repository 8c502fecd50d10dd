"""The label posterior P(true=k | x, given label), one row per example, one column per class.

Everything that is said of single rows follows from it: P(mislabelled), the suggested label, the
weight beta and soft labels. Rows in memory, in files and on a cluster have it from the same class,
`LabelPosterior`, and `Totals` add up from block to block what is said of all rows.
"""

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unflip._utils.simplex import likeliest_mixture, scaled_rows
from unflip._utils.typing import Array, Floats
from unflip.noise import TransitionMatrix, as_transition_matrix

SLACK = 1e-12
"""What rounding may add to a bound."""

SURE = 0.9
"""A row of this clean probability surely is of its class."""


@dataclass(frozen=True)
class Totals:
    """Sums over rows; those of two blocks are added by `+`."""

    n_rows: int
    # Sum of the sample weights, by given label.
    label_mass: Floats
    # Sum of beta times the sample weights, by given label.
    taught_mass: Floats
    # Sum of the sample weights of rows that surely are of each class, whatever their label.
    sure_mass: Floats
    # Sums of the squares of the sample weights, and of beta times those.
    weight_squares: float
    taught_squares: float
    # Rows whose given label has a probability above 0.
    n_possible: int
    # Rows whose P(noisy y | x) the rates do not allow.
    n_clipped: int
    # Expected number of wrong labels, by the sample weights.
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
    def error_share(self) -> float:
        """The expected share of wrong labels."""
        return float(self.n_errors / self.label_mass.sum())

    @property
    def clipped_share(self) -> float:
        """The share of rows whose beta was clipped."""
        return self.n_clipped / self.n_rows

    @property
    def effective_rows(self) -> float:
        """(sum w)^2 / sum w^2 of the sample weights."""
        return _effective(self.label_mass, self.weight_squares)

    @property
    def effective_sample_size(self) -> float:
        """(sum w)^2 / sum w^2 of the weights that a classifier is trained with."""
        return _effective(self.taught_mass, self.taught_squares)


class LabelPosterior:
    r"""P(true=k | x, y) = q_k T[k, y] / sum_j q_j T[j, y], with q = P(true | x).

    q is the probability vector under which P(noisy | x) is likeliest, the largest
    sum_j P(noisy=j | x) log (q T)_j: P(noisy | x) T^-1 where that is a probability vector.

    Notes
    -----
    There may be no rows: a cluster's tables have empty partitions.
    """

    def __init__(
        self,
        noisy_posterior: Floats,
        codes: NDArray[np.intp],
        rates: Any,
        classes: Array,
        proba: Floats | None = None,
    ) -> None:
        if proba is not None:
            self.proba = proba
        self.codes, self.classes = codes, classes
        self.noise: TransitionMatrix = as_transition_matrix(rates, classes.size)
        self._own = np.arange(codes.size), codes
        self.given: Floats = noisy_posterior[self._own]
        if classes.size == 2:
            self._is_given = codes[:, None] == np.arange(2)
            own = self.given[:, None]
            self.noisy_proba = np.where(self._is_given, own, 1 - own)
        else:
            self.noisy_proba = scaled_rows(noisy_posterior)

    @property
    def labels(self) -> Array:
        """The given labels."""
        return self.classes[self.codes]

    @cached_property
    def clean_proba(self) -> Floats:
        """P(true | x), one column per class."""
        if self.classes.size > 2:
            return likeliest_mixture(self.noisy_proba, self.noise.matrix, self._inverted)
        own = np.clip(self._inverted[self._own], 0.0, 1.0)
        return np.where(self._is_given, own[:, None], 1 - own[:, None])

    @cached_property
    def proba(self) -> Floats:
        """P(true | x, given label), one column per class: soft labels."""
        joint = self.clean_proba * self.noise.matrix.T[self.codes]
        total = joint.sum(axis=1)
        ruled_out = total <= 0
        if ruled_out.any():  # such a label says nothing of the true one
            joint[ruled_out], total[ruled_out] = self.clean_proba[ruled_out], 1.0
        joint /= total[:, None]
        return joint

    @cached_property
    def mislabel_proba(self) -> Floats:
        """P(the label is wrong | x, the label)."""
        return np.clip(1 - self._right, 0.0, 1.0)

    @cached_property
    def weights(self) -> Floats:
        """Lemma 1: beta = P(true=y | x) / P(noisy=y | x), in [0, 1 / T[y, y]]."""
        stays = self.noise.matrix[self.codes, self.codes]
        beta = np.zeros(self.codes.size)
        # where T[y, y] is 0 no row of class y is labelled y, and none is to be learnt from
        np.divide(self._right, stays, out=beta, where=(stays > 0) & (self.given > 0))
        return beta

    @property
    def suggested_label(self) -> Array:
        """The likeliest true label given x and the label."""
        return self.classes[np.argmax(self.proba, axis=1)]

    @cached_property
    def clipped(self) -> NDArray[np.bool_]:
        """Whether P(noisy=y | x) is one that the rates do not allow."""
        clean = self._inverted[self._own]
        stays = self.noise.matrix[self.codes, self.codes]
        return (clean < -SLACK) | (stays * clean > self.noisy_proba[self._own] + SLACK)

    def totals(self, sample_weight: Floats | None = None, beta: Floats | None = None) -> Totals:
        """Return the sums over these rows."""
        return totals_of(
            self.codes,
            self.clean_proba,
            self.mislabel_proba,
            self.weights if beta is None else beta,
            sample_weight,
            n_possible=int(np.count_nonzero(self.given)),
            n_clipped=int(np.count_nonzero(self.clipped)),
        )

    @cached_property
    def _inverted(self) -> Floats:
        """P(noisy | x) T^-1, whose entries may leave [0, 1]."""
        if self.classes.size > 2:
            return self.noise.clean_posterior(self.noisy_proba, clip=False)
        if_other = self.noise.matrix[1 - self.codes, self.codes]
        own = (self.given - if_other) / self.noise.information_left
        return np.where(self._is_given, own[:, None], 1 - own[:, None])

    @cached_property
    def _right(self) -> Floats:
        return np.asarray(self.proba[self._own])


def totals_of(
    codes: NDArray[np.intp],
    clean_proba: Floats,
    mislabel_proba: Floats,
    beta: Floats,
    sample_weight: Floats | None = None,
    *,
    n_possible: int,
    n_clipped: int,
) -> Totals:
    """Return the sums over rows of what is known of each."""
    weight = np.ones(codes.size) if sample_weight is None else sample_weight
    taught = weight * beta

    def by_label(values: Floats) -> Any:
        return np.bincount(codes, values, minlength=clean_proba.shape[1])

    return Totals(
        n_rows=codes.size,
        label_mass=by_label(weight),
        taught_mass=by_label(taught),
        sure_mass=_column_sums(clean_proba >= SURE, sample_weight),
        weight_squares=float(weight @ weight),
        taught_squares=float(taught @ taught),
        n_possible=n_possible,
        n_clipped=n_clipped,
        n_errors=float(weight @ mislabel_proba),
    )


def _column_sums(marks: NDArray[np.bool_], sample_weight: Floats | None) -> Floats:
    if sample_weight is None:
        return np.count_nonzero(marks, axis=0).astype(float)
    return np.asarray(sample_weight @ marks)


def _effective(mass: Floats, squares: float) -> float:
    """Return (sum w)^2 / sum w^2."""
    return float(mass.sum() ** 2 / squares) if squares > 0 else 0.0
