"""The contract of stage 2: from noisy data to NoiseRates, or to a TransitionMatrix."""

from abc import ABCMeta, abstractmethod
from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, clone
from sklearn.utils import ClassifierTags
from sklearn.utils.validation import check_is_fitted

from unflip._diagnostics import LEVEL, Diagnostic, raise_or_warn
from unflip._folds import folds_within_classes
from unflip._row_weights import relative_weights
from unflip._typing import Array, Floats
from unflip._validation import check_enough_rows, check_labels, check_numbers, check_table
from unflip.noise import LARGEST_TOTAL, NoiseRates, TransitionMatrix, as_transition_matrix
from unflip.noise_rates._intervals import DRAWS, bootstrap_matrices, corrected_interval
from unflip.posterior import fit_posterior, make_posterior


class BaseRates(BaseEstimator, metaclass=ABCMeta):
    """An estimator of the noise rates: `fit(X, y, sample_weight)`, then `rates_`.

    `rates_` is a :class:`~unflip.NoiseRates` for two classes and a
    :class:`~unflip.TransitionMatrix` for more.
    """

    rates_: NoiseRates | TransitionMatrix
    classes_: Array

    @property
    def transition_matrix_(self) -> Floats:
        """T[i, j] = P(noisy=classes_[j] | true=classes_[i]), as estimated."""
        return as_transition_matrix(self.rates_).matrix

    @abstractmethod
    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Estimate the rates."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        tags.target_tags.one_d_labels = True
        tags.classifier_tags = ClassifierTags(multi_class=False)
        return tags


class PosteriorRates(BaseRates):
    """Rates that are a function of P(noisy y | x) at the training rows.

    Subclasses implement `_rates(noisy_posterior, codes, weight)` for two classes, or
    `_transition(noisy_posterior, codes, weight)` for any number, or both where two classes are a
    case of their own; they have the parameters `posterior`, `cv` and `random_state`.
    """

    posterior: Any
    cv: Any
    random_state: Any

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Estimate P(noisy y | x), then the rates.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Noisy labels.
        sample_weight : array-like of shape (n_samples,), default=None
            How often each row counts.
        """
        classes, codes = check_labels(y, binary=not self._takes_many_classes())
        check_enough_rows(X, codes)
        posterior = make_posterior(
            default_posterior(classes.size) if self.posterior is None else self.posterior,
            self.random_state,
            n_classes=classes.size,
        )
        _, noisy_posterior = fit_posterior(
            posterior,
            X,
            classes[codes],
            sample_weight,
            cv=folds_within_classes(self.cv, codes),
            random_state=self.random_state,
        )
        self.fit_posterior(noisy_posterior, classes[codes], sample_weight)
        check_table(self, X, reset=True)
        return self

    def fit_posterior(
        self, noisy_posterior: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Estimate the rates from P(noisy y | x) at the training rows, estimated elsewhere.

        Parameters
        ----------
        noisy_posterior : array-like of shape (n_samples, n_classes)
            P(noisy y | x), one column per class in sorted order.
        y : array-like of shape (n_samples,)
            Noisy labels.
        sample_weight : array-like of shape (n_samples,), default=None
            How often each row counts; rows of weight zero do not take part.
        """
        classes, codes = check_labels(y, binary=not self._takes_many_classes())
        probabilities = check_numbers(noisy_posterior, "noisy_posterior")
        if probabilities.shape != (codes.size, classes.size):
            raise ValueError(
                f"noisy_posterior has shape {probabilities.shape}, expected ({codes.size}, "
                f"{classes.size}): one row per label, one column per class."
            )
        if not np.isfinite(probabilities).all():
            raise ValueError("noisy_posterior holds NaN or infinity.")
        weight = relative_weights(sample_weight, codes.size)
        counts = weight > 0
        estimate = self._rates if classes.size == 2 else self._transition
        rates = estimate(probabilities[counts], codes[counts], weight[counts])
        self.classes_, self.rates_ = classes, rates
        self._sample = probabilities[counts], codes[counts], weight[counts]
        return self

    def interval(self, level: float = LEVEL, n_draws: int = DRAWS) -> NoiseRates | Floats:
        """Return a confidence interval of each rate, by the bootstrap on scores.

        Rows are resampled, and P(noisy | x) is kept: the interval shows what chance does to the
        estimate, not its bias, and not what fitting P(noisy | x) adds.

        Parameters
        ----------
        level : float, default=0.95
            Confidence.
        n_draws : int, default=200
            Resamples.

        Returns
        -------
        interval : NoiseRates or ndarray of shape (2, n_classes, n_classes)
            For two classes NoiseRates of bounds, (low, high) each, which can be given back as what
            is known; for more, the lower and the upper ends of T.
        """
        check_is_fitted(self, "classes_")
        worker = clone(self)  # estimating may set attributes
        estimate = worker._rates if self.classes_.size == 2 else worker._transition
        seed = self.random_state if isinstance(self.random_state, Integral) else None
        draws = bootstrap_matrices(
            lambda *sample: as_transition_matrix(estimate(*sample)).matrix,
            *self._sample,
            n_draws=n_draws,
            random_state=0 if seed is None else seed,
        )
        ends = corrected_interval(draws, self.transition_matrix_, level)
        if self.classes_.size > 2:
            return ends
        return NoiseRates(
            positive=tuple(ends[:, 1, 0].tolist()), negative=tuple(ends[:, 0, 1].tolist())
        )

    @property
    def interval_(self) -> NoiseRates | Floats:
        """95 % interval of each rate: :meth:`interval` with its defaults, computed when asked."""
        if not hasattr(self, "_sample"):
            raise AttributeError(f"this {type(self).__name__} is not fitted, so has no interval_.")
        if getattr(self, "_interval_of", None) is not self._sample:
            self._interval, self._interval_of = self.interval(), self._sample
        return self._interval

    def _rates(self, noisy_posterior: Array, codes: Array, weight: Array) -> NoiseRates:
        """Return the rates of two classes from P(noisy y | x), one column per class."""
        return self._transition(noisy_posterior, codes, weight).rates

    def _transition(self, noisy_posterior: Array, codes: Array, weight: Array) -> TransitionMatrix:
        """Return T from P(noisy y | x), one column per class."""
        raise NotImplementedError(f"{type(self).__name__} is for two classes.")

    def _takes_many_classes(self) -> bool:
        return type(self)._transition is not PosteriorRates._transition

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = self._takes_many_classes()
        return tags


def default_posterior(n_classes: int) -> str:
    """Return the default posterior of rate estimators, which estimates no rates itself.

    Parameters
    ----------
    n_classes : int
        How many classes the labels have.
    """
    return "probabilistic" if n_classes == 2 else "selected"


def admissible_rates(positive: float, negative: float) -> NoiseRates:
    """Return estimates as NoiseRates, scaled back with a warning where they leave no information.

    Parameters
    ----------
    positive, negative : float
        Estimates of rho_pos and rho_neg, of any sum.
    """
    total = positive + negative
    if total > LARGEST_TOTAL:
        numbers = {
            "positive": positive,
            "negative": negative,
            "total": total,
            "largest": LARGEST_TOTAL,
        }
        raise_or_warn([Diagnostic("rates_scaled_back", numbers=numbers)], stacklevel=5)
        positive, negative = (rate * LARGEST_TOTAL / total for rate in (positive, negative))
    return NoiseRates(positive=positive, negative=negative)


def admissible_matrix(matrix: ArrayLike) -> TransitionMatrix:
    """Return an estimate of T, mixed with the identity with a warning where it is nearly singular.

    The smallest real part of T's eigenvalues, for two classes 1 - rho_pos - rho_neg, is brought to
    at least 0.05, by (1 - a) I + a T with the largest such a: what :func:`admissible_rates` does.

    Parameters
    ----------
    matrix : array-like of shape (n_classes, n_classes)
        An estimate of T: entries >= 0 and rows that sum to more than zero, which are made to sum
        to one.
    """
    estimate = np.asarray(matrix, dtype=np.float64)
    estimate = estimate / estimate.sum(axis=1, keepdims=True)
    left = float(np.linalg.eigvals(estimate).real.min())
    if 1 - left > LARGEST_TOTAL:
        share = LARGEST_TOTAL / (1 - left)
        numbers = {
            "diagonal": np.diag(estimate).round(2).tolist(),
            "left": max(left, 0.0),
            "identity": 1 - share,
            "share": share,
            "least": 1 - LARGEST_TOTAL,
        }
        raise_or_warn([Diagnostic("matrix_scaled_back", numbers=numbers)], stacklevel=5)
        estimate = share * estimate + (1 - share) * np.eye(estimate.shape[0])
    return TransitionMatrix(estimate)
