r"""Stage 3: importance weights and soft labels.

beta(x, y) = P(true=y | x) / P(observed=y | x), so that a risk weighted by beta over the noisy
sample has the clean risk as its expectation, whatever the loss. The positive class is the greater
label, and more than two classes are in sorted order.

`LabelPosterior` is P(true | x, observed label), from which the weights, soft labels and
P(mislabelled) follow, for samples in memory, in files and on a cluster alike; `Totals` adds up from
block to block what is reported of all samples.
"""

from dataclasses import dataclass
from functools import cached_property
from operator import add
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unflip._utils.docs import documented_like
from unflip._utils.row_weights import effective_rows
from unflip._utils.simplex import likeliest_mixture, of_another_class, scaled_rows
from unflip._utils.typing import Array, Floats
from unflip._utils.validation import (
    check_labels,
    check_numbers,
    check_probability_per_class,
    check_probability_per_row,
)
from unflip.noise import (
    InverseRates,
    KnownRates,
    TransitionMatrix,
    as_inverse_rates,
    as_transition_matrix,
)

__all__ = [
    "clipped_share",
    "effective_sample_size",
    "importance_weights",
    "importance_weights_from_inverse",
    "mislabel_probability",
    "printed_lemma_2_weights",
]

SLACK = 1e-12
"""What rounding may add to a bound."""

ANCHOR_PROBABILITY = 0.9
"""Minimum clean probability of a sample that counts as an anchor point of its class."""


def importance_weights(
    noisy_posterior: ArrayLike, y: ArrayLike, rates: KnownRates, *, classes: ArrayLike | None = None
) -> Floats:
    r"""Lemma 1: beta = (P(observed=y|x) - rho_other) / ((1 - rho_pos - rho_neg) P(observed=y|x)).

    rho_other is the flip rate of the class that y is not. Under these rates P(observed=y|x) lies in
    [rho_other, 1 - rho_own], hence beta in [0, 1 / (1 - rho_own)]; an estimated posterior that
    leaves its range gets the weight at the nearer end. The weight is 0 where P(observed=y|x) is 0.

    For any number of classes, with T[i, j] = P(observed=j | true=i), beta = q_y / (q T)_y, of which
    two classes are a case: q = P(observed|x) T^-1, with negative values at 0 and scaled to sum to
    one. It lies within [0, 1 / T[y, y]].

    Parameters
    ----------
    noisy_posterior : array-like of shape (n_samples,) or (n_samples, n_classes)
        P(observed=y_i | x_i) of each observed label, which is enough for two classes; or
        P(observed | x_i) of all classes, in sorted order, with rows scaled to sum to one.
    y : array-like of shape (n_samples,)
        Observed labels.
    rates : NoiseRates, TransitionMatrix or array-like of shape (n_classes, n_classes)
        Both noise rates of two classes, or T of any number.
    classes : array-like of shape (n_classes,), default=None
        The classes, needed only if `y` may lack some of them.

    Returns
    -------
    ndarray of shape (n_samples,)
        Weights beta >= 0.

    Examples
    --------
    >>> from unflip import NoiseRates, importance_weights
    >>> importance_weights([0.4, 0.65, 0.6], [1, 1, -1], NoiseRates(0.3, 0.1)).round(3)
    array([1.25 , 1.41 , 0.833])
    >>> T = [[0.8, 0.15, 0.05], [0.1, 0.7, 0.2], [0, 0.1, 0.9]]
    >>> importance_weights([[0.43, 0.305, 0.265]] * 3, ["a", "b", "c"], T).round(3)
    array([1.163, 0.984, 0.755])
    """
    return _label_posterior(noisy_posterior, y, rates, classes).weights


@documented_like(importance_weights)
def importance_weights_from_inverse(
    noisy_posterior: ArrayLike,
    y: ArrayLike,
    inverse_rates: InverseRates,
    noisy_prior: float,
    *,
    classes: ArrayLike | None = None,
) -> Floats:
    """Return Lemma 1's weights from inverse rates, turned into noise rates by the noisy prior.

    Parameters
    ----------
    noisy_posterior : array-like of shape (n_samples,)
        P(observed=y_i | x_i) of each observed label.
    inverse_rates : InverseRates
        pi_pos and pi_neg.
    noisy_prior : float
        P(observed=+1), the share of positive labels.
    """
    rates = as_inverse_rates(inverse_rates).to_rates(noisy_prior=noisy_prior)
    return importance_weights(noisy_posterior, y, rates, classes=classes)


@documented_like(importance_weights_from_inverse, importance_weights)
def printed_lemma_2_weights(
    noisy_posterior: ArrayLike,
    y: ArrayLike,
    inverse_rates: InverseRates,
    *,
    classes: ArrayLike | None = None,
) -> Floats:
    r"""Lemma 2 as the paper prints it: beta = (1 - pi_pos - pi_neg) + pi_other / P(observed=y|x).

    Kept to reproduce the paper, and **not to be used** for class-conditional noise: its proof takes
    P(true | observed, x) for P(true | observed), which holds only when the true label is drawn
    given the noisy one, independently of x. Under class-conditional noise the weights fall where
    they should rise. Use :func:`importance_weights_from_inverse`.
    """
    _, codes, posterior = _observed_labels(noisy_posterior, y, classes)
    inverse_rates = as_inverse_rates(inverse_rates)
    other = np.where(codes == 1, inverse_rates.negative, inverse_rates.positive)
    contrast = 1 - inverse_rates.positive - inverse_rates.negative
    weights = np.zeros_like(posterior)
    np.divide(contrast * posterior + other, posterior, out=weights, where=posterior > 0)
    return weights


@documented_like(importance_weights)
def mislabel_probability(
    noisy_posterior: ArrayLike, y: ArrayLike, rates: KnownRates, *, classes: ArrayLike | None = None
) -> Floats:
    """P(true label differs from the observed one | x, observed label) = 1 - (1 - rho_own) beta.

    rho_own is the flip rate of the class that y is: 1 - T[y, y] for any number of classes.

    Returns
    -------
    ndarray of shape (n_samples,)
        Probabilities.
    """
    return _label_posterior(noisy_posterior, y, rates, classes).mislabel_proba


@documented_like(importance_weights)
def clipped_share(
    noisy_posterior: ArrayLike, y: ArrayLike, rates: KnownRates, *, classes: ArrayLike | None = None
) -> float:
    """Return the share of samples whose beta is clipped: the rates rule out their P(observed=y|x).

    Returns
    -------
    float
        In [0, 1].
    """
    return float(np.mean(_label_posterior(noisy_posterior, y, rates, classes).clipped))


def effective_sample_size(weights: ArrayLike) -> float:
    """Return (sum w)^2 / sum w^2: how many equally weighted samples would vary as much.

    Parameters
    ----------
    weights : array-like of shape (n_samples,)
        Weights >= 0.

    Returns
    -------
    float
        At most the number of samples.

    Examples
    --------
    >>> from unflip.weights import effective_sample_size
    >>> effective_sample_size([1, 1, 0, 0])
    2.0
    """
    weight = check_numbers(weights, "weights")
    if not ((weight >= 0) & (weight < np.inf)).all():
        raise ValueError(f"weights must be finite numbers >= 0, got {weights!r}.")
    return effective_rows(weight)


def _label_posterior(
    noisy_posterior: ArrayLike, y: ArrayLike, rates: KnownRates, classes: ArrayLike | None
) -> "LabelPosterior":
    """Return the label posterior from what users may give."""
    if np.ndim(noisy_posterior) == 2:
        known, codes = check_labels(y, classes=classes, binary=False)
        noisy = check_probability_per_class(
            noisy_posterior, codes.size, known.size, "noisy_posterior"
        )
        if known.size == 2:  # rows of more classes are scaled by the label posterior itself
            noisy = scaled_rows(noisy)
        return LabelPosterior(noisy, codes, rates, known)
    noise = as_transition_matrix(rates)
    if noise.n_classes > 2:
        raise ValueError(
            "noisy_posterior has one value per sample, which is enough for two classes only, and "
            f"the rates are of {noise.n_classes}. Pass P(observed | x) of all classes: shape "
            f"(n_samples, {noise.n_classes})."
        )
    known, codes, observed = _observed_labels(noisy_posterior, y, classes)
    return LabelPosterior(observed[:, None].repeat(2, axis=1), codes, noise, known)


def _observed_labels(
    noisy_posterior: ArrayLike, y: ArrayLike, classes: ArrayLike | None
) -> tuple[Array, NDArray[np.intp], Floats]:
    """Return the two classes, the codes of the labels, and P(observed=y | x) of each label."""
    known, codes = check_labels(
        y,
        classes=classes,
        because=" For more, pass P(observed | x) of all classes and a TransitionMatrix.",
    )
    return known, codes, check_probability_per_row(noisy_posterior, codes.size, "noisy_posterior")


@dataclass(frozen=True)
class Totals:
    """Sums over samples; those of two blocks are added by `+`."""

    n_rows: int
    # Sum of the sample weights, by observed label.
    label_mass: Floats
    # Sum of beta times the sample weights, by observed label.
    trained_mass: Floats
    # Sum of the sample weights of the anchor points of each class, whatever their label.
    anchor_mass: Floats
    # Sums of the squares of the sample weights, and of beta times those.
    weight_squares: float
    trained_squares: float
    # Samples whose observed label has a probability above 0.
    n_possible: int
    # Samples whose P(observed y | x) the rates do not allow.
    n_clipped: int
    # Expected number of wrong labels, by the sample weights.
    n_errors: float

    def __add__(self, other: "Totals") -> "Totals":
        return Totals(*map(add, vars(self).values(), vars(other).values()))

    @property
    def noisy_prior(self) -> Floats:
        """P(observed y), the share of each label."""
        return np.asarray(self.label_mass / self.label_mass.sum())

    @property
    def anchor_share(self) -> Floats:
        """The share of samples that are anchor points of each class."""
        return np.asarray(self.anchor_mass / self.label_mass.sum())

    @property
    def error_rate(self) -> float:
        """The expected share of wrong labels."""
        return float(self.n_errors / self.label_mass.sum())

    @property
    def clipped_share(self) -> float:
        """The share of samples whose beta was clipped."""
        return self.n_clipped / self.n_rows

    @property
    def effective_rows(self) -> float:
        """(sum w)^2 / sum w^2 of the sample weights."""
        return _effective(self.label_mass, self.weight_squares)

    @property
    def effective_sample_size(self) -> float:
        """(sum w)^2 / sum w^2 of the weights that a classifier is trained with."""
        return _effective(self.trained_mass, self.trained_squares)


class LabelPosterior:
    r"""P(true=k | x, y) = q_k T[k, y] / sum_j q_j T[j, y], with q = P(true | x).

    q is the probability vector under which P(observed | x) is likeliest, the largest
    sum_j P(observed=j | x) log (q T)_j: P(observed | x) T^-1 where that is a probability vector.

    Notes
    -----
    There may be no samples: a cluster's tables have empty partitions.
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
        self.observed_proba: Floats = noisy_posterior[self._own]
        if classes.size == 2:
            self._is_observed = codes[:, None] == np.arange(2)
            own = self.observed_proba[:, None]
            self.noisy_proba = np.where(self._is_observed, own, 1 - own)
        else:
            self.noisy_proba = scaled_rows(noisy_posterior)

    @property
    def labels(self) -> Array:
        """The observed labels."""
        return self.classes[self.codes]

    @cached_property
    def clean_proba(self) -> Floats:
        """P(true | x), one column per class."""
        if self.classes.size > 2:
            return likeliest_mixture(self.noisy_proba, self.noise.matrix, self._inverted)
        own = np.clip(self._inverted[self._own], 0.0, 1.0)
        return np.where(self._is_observed, own[:, None], 1 - own[:, None])

    @cached_property
    def proba(self) -> Floats:
        """P(true | x, observed label), one column per class: soft labels."""
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
        return of_another_class(self.proba, self.codes)

    @cached_property
    def weights(self) -> Floats:
        """Lemma 1: beta = P(true=y | x) / P(observed=y | x), in [0, 1 / T[y, y]]."""
        stays = self.noise.matrix[self.codes, self.codes]
        beta = np.zeros(self.codes.size)
        # where T[y, y] is 0 no sample of class y is labelled y, and none is to be learnt from
        np.divide(self._right, stays, out=beta, where=(stays > 0) & (self.observed_proba > 0))
        return beta

    @property
    def suggested_label(self) -> Array:
        """The likeliest true label given x and the label."""
        return self.classes[np.argmax(self.proba, axis=1)]

    @cached_property
    def clipped(self) -> NDArray[np.bool_]:
        """Whether P(observed=y | x) is one that the rates do not allow."""
        clean = self._inverted[self._own]
        stays = self.noise.matrix[self.codes, self.codes]
        return (clean < -SLACK) | (stays * clean > self.noisy_proba[self._own] + SLACK)

    def totals(self, sample_weight: Floats | None = None, beta: Floats | None = None) -> Totals:
        """Return the sums over these samples."""
        return totals_of(
            self.codes,
            self.clean_proba,
            self.mislabel_proba,
            self.weights if beta is None else beta,
            sample_weight,
            n_possible=int(np.count_nonzero(self.observed_proba)),
            n_clipped=int(np.count_nonzero(self.clipped)),
        )

    @cached_property
    def _inverted(self) -> Floats:
        """P(observed | x) T^-1, whose entries may leave [0, 1]."""
        if self.classes.size > 2:
            return self.noise.clean_posterior(self.noisy_proba, clip=False)
        if_other = self.noise.matrix[1 - self.codes, self.codes]
        own = (self.observed_proba - if_other) / self.noise.information_left
        return np.where(self._is_observed, own[:, None], 1 - own[:, None])

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
    """Return the sums over samples of what is known of each."""
    weight = np.ones(codes.size) if sample_weight is None else sample_weight
    trained = weight * beta

    def by_label(values: Floats) -> Any:
        return np.bincount(codes, values, minlength=clean_proba.shape[1])

    return Totals(
        n_rows=codes.size,
        label_mass=by_label(weight),
        trained_mass=by_label(trained),
        anchor_mass=np.asarray(weight @ (clean_proba >= ANCHOR_PROBABILITY)),
        weight_squares=float(weight @ weight),
        trained_squares=float(trained @ trained),
        n_possible=n_possible,
        n_clipped=n_clipped,
        n_errors=float(weight @ mislabel_proba),
    )


def _effective(mass: Floats, squares: float) -> float:
    """Return (sum w)^2 / sum w^2."""
    return float(mass.sum() ** 2 / squares) if squares > 0 else 0.0
