r"""Stage 3: how far each label is to be believed.

beta(x, y) = P(true=y | x) / P(noisy=y | x), so that a risk weighted by beta over the noisy sample
has the clean risk as its expectation, whatever the loss. Pure functions of arrays; the positive
class is the greater label, and more than two classes are in sorted order.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unflip._label_posterior import LabelPosterior
from unflip._utils.row_weights import effective_rows
from unflip._utils.simplex import scaled_rows
from unflip._utils.typing import Array, Floats
from unflip._utils.validation import (
    check_labels,
    check_numbers,
    check_probability_per_class,
    check_probability_per_row,
)
from unflip.noise import InverseRates, KnownRates, as_transition_matrix

__all__ = [
    "clipped_share",
    "effective_sample_size",
    "importance_weights",
    "importance_weights_from_inverse",
    "mislabel_probability",
    "printed_lemma_2_weights",
]


def importance_weights(
    noisy_posterior: ArrayLike, y: ArrayLike, rates: KnownRates, *, classes: ArrayLike | None = None
) -> Floats:
    r"""Lemma 1: beta = (P(noisy=y|x) - rho_other) / ((1 - rho_pos - rho_neg) P(noisy=y|x)).

    rho_other is the flip rate of the class that y is not. Under these rates P(noisy=y|x) lies in
    [rho_other, 1 - rho_own], hence beta in [0, 1 / (1 - rho_own)]; an estimated posterior that
    leaves its range gets the weight at the nearer end. The weight is 0 where P(noisy=y|x) is 0.

    For any number of classes, with T[i, j] = P(noisy=j | true=i), beta = q_y / (q T)_y, of which
    two classes are a case: q = P(noisy|x) T^-1, with negative values at 0 and scaled to sum to one.
    It lies within [0, 1 / T[y, y]].

    Parameters
    ----------
    noisy_posterior : array-like of shape (n_samples,) or (n_samples, n_classes)
        P(noisy=y_i | x_i) of each row's *given* label, which is enough for two classes; or
        P(noisy | x_i) of all classes, in sorted order, of which every row is scaled to sum to one.
    y : array-like of shape (n_samples,)
        Noisy labels.
    rates : NoiseRates, TransitionMatrix or array-like of shape (n_classes, n_classes)
        Both noise rates of two classes, or T of any number.
    classes : array-like of shape (n_classes,), default=None
        The classes, needed only where `y` may lack some of them.

    Returns
    -------
    beta : ndarray of shape (n_samples,)

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
        P(noisy=y_i | x_i) of each row's given label.
    y : array-like of shape (n_samples,)
        Noisy labels of two classes.
    inverse_rates : InverseRates
        pi_pos and pi_neg.
    noisy_prior : float
        P(noisy=+1), the share of positive labels.
    classes : array-like of shape (2,), default=None
        The two classes, needed only where `y` may hold just one of them.

    Returns
    -------
    ndarray of shape (n_rows,)
        Weights beta >= 0.
    """
    rates = _checked_inverse(inverse_rates).to_rates(noisy_prior=noisy_prior)
    return importance_weights(noisy_posterior, y, rates, classes=classes)


def printed_lemma_2_weights(
    noisy_posterior: ArrayLike,
    y: ArrayLike,
    inverse_rates: InverseRates,
    *,
    classes: ArrayLike | None = None,
) -> Floats:
    r"""Lemma 2 as the paper prints it: beta = (1 - pi_pos - pi_neg) + pi_other / P(noisy=y|x).

    Kept to reproduce the paper, and **not to be used** for class-conditional noise: its proof
    takes P(true | noisy, x) for P(true | noisy), which holds only when the true label is drawn
    given the noisy one, independently of x. Under class-conditional noise the weights fall where
    they should rise. Use :func:`importance_weights_from_inverse`.

    Parameters
    ----------
    noisy_posterior : array-like of shape (n_samples,)
        P(noisy=y_i | x_i) of each row's given label.
    y : array-like of shape (n_samples,)
        Noisy labels of two classes.
    inverse_rates : InverseRates
        pi_pos and pi_neg.
    classes : array-like of shape (2,), default=None
        The two classes, needed only where `y` may hold just one of them.

    Returns
    -------
    ndarray of shape (n_rows,)
        Weights beta >= 0.
    """
    _, codes, posterior = _given_labels(noisy_posterior, y, classes)
    inverse_rates = _checked_inverse(inverse_rates)
    other = np.where(codes == 1, inverse_rates.negative, inverse_rates.positive)
    contrast = 1 - inverse_rates.positive - inverse_rates.negative
    weights = np.zeros_like(posterior)
    np.divide(contrast * posterior + other, posterior, out=weights, where=posterior > 0)
    return weights


def mislabel_probability(
    noisy_posterior: ArrayLike, y: ArrayLike, rates: KnownRates, *, classes: ArrayLike | None = None
) -> Floats:
    """P(true label differs from the given one | x, given label) = 1 - (1 - rho_own) beta.

    rho_own is the flip rate of the class that y is: 1 - T[y, y] for any number of classes.

    Parameters
    ----------
    noisy_posterior : array-like of shape (n_samples,) or (n_samples, n_classes)
        P(noisy=y_i | x_i) of each row's given label, which is enough for two classes; or
        P(noisy | x_i) of all classes, in sorted order.
    y : array-like of shape (n_samples,)
        Noisy labels.
    rates : NoiseRates, TransitionMatrix or array-like of shape (n_classes, n_classes)
        Both noise rates of two classes, or T of any number.
    classes : array-like of shape (n_classes,), default=None
        The classes, needed only where `y` may lack some of them.

    Returns
    -------
    ndarray of shape (n_rows,)
        Probabilities.
    """
    return _label_posterior(noisy_posterior, y, rates, classes).mislabel_proba


def clipped_share(
    noisy_posterior: ArrayLike, y: ArrayLike, rates: KnownRates, *, classes: ArrayLike | None = None
) -> float:
    """Return the share of rows whose P(noisy=y|x) the rates do not allow, so that beta is clipped.

    Parameters
    ----------
    noisy_posterior : array-like of shape (n_samples,) or (n_samples, n_classes)
        P(noisy=y_i | x_i) of each row's given label, which is enough for two classes; or
        P(noisy | x_i) of all classes, in sorted order.
    y : array-like of shape (n_samples,)
        Noisy labels.
    rates : NoiseRates, TransitionMatrix or array-like of shape (n_classes, n_classes)
        Both noise rates of two classes, or T of any number.
    classes : array-like of shape (n_classes,), default=None
        The classes, needed only where `y` may lack some of them.

    Returns
    -------
    float
        In [0, 1].
    """
    return float(np.mean(_label_posterior(noisy_posterior, y, rates, classes).clipped))


def effective_sample_size(weights: ArrayLike) -> float:
    """Return (sum w)^2 / sum w^2: how many equally weighted rows would vary as much.

    Parameters
    ----------
    weights : array-like of shape (n_samples,)
        Weights >= 0.

    Returns
    -------
    float
        At most the number of rows.

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


def _checked_inverse(rates: object) -> InverseRates:
    """Return inverse rates, or say that these are others."""
    if not isinstance(rates, InverseRates):
        raise TypeError(
            "inverse_rates must be InverseRates(positive=..., negative=...), the shares of the "
            f"labels that are wrong, got {rates!r}. Noise rates become inverse ones by "
            "rates.inverse(noisy_prior=...); importance_weights takes them as they are."
        )
    return rates


def _label_posterior(
    noisy_posterior: ArrayLike, y: ArrayLike, rates: KnownRates, classes: ArrayLike | None
) -> LabelPosterior:
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
            "noisy_posterior has one value per row, which is enough for two classes only, and "
            f"the rates are of {noise.n_classes}. Pass P(noisy | x) of all classes: shape "
            f"(n_samples, {noise.n_classes})."
        )
    known, codes, given = _given_labels(noisy_posterior, y, classes)
    return LabelPosterior(given[:, None].repeat(2, axis=1), codes, noise, known)


def _given_labels(
    noisy_posterior: ArrayLike, y: ArrayLike, classes: ArrayLike | None
) -> tuple[Array, NDArray[np.intp], Floats]:
    """Return the two classes, each row's place among them, and P(noisy=y | x) of its label."""
    known, codes = check_labels(
        y,
        classes=classes,
        because=" For more, pass P(noisy | x) of all classes and a TransitionMatrix.",
    )
    return known, codes, check_probability_per_row(noisy_posterior, codes.size, "noisy_posterior")
