"""The contract of stage 2: from noisy data to NoiseRates."""

import warnings
from abc import ABCMeta, abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import ClassifierTags

from unflip._validation import check_enough_rows, check_labels, check_table, check_weights
from unflip.noise import NoiseRates
from unflip.posterior import fit_posterior, make_posterior

Array = NDArray[Any]

LARGEST_TOTAL = 0.95
"""Estimated rates that sum to more are scaled back to this, with a warning."""


class BaseRates(BaseEstimator, metaclass=ABCMeta):
    """An estimator of the noise rates: `fit(X, y, sample_weight)`, then `rates_`."""

    rates_: NoiseRates
    classes_: Array

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

    Subclasses implement `_rates(noisy_posterior, codes, weight)` and have the parameters
    `posterior`, `cv` and `random_state`.
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
            Noisy labels of two classes.
        sample_weight : array-like of shape (n_samples,), default=None
            How often each row counts.
        """
        _, codes = check_labels(y)
        check_enough_rows(X, codes)
        posterior = make_posterior(
            "auto" if self.posterior is None else self.posterior, self.random_state
        )
        _, noisy_posterior = fit_posterior(
            posterior, X, y, sample_weight, cv=self._folds(codes), random_state=self.random_state
        )
        self.fit_posterior(noisy_posterior, y, sample_weight)
        check_table(self, X, reset=True)
        return self

    def fit_posterior(
        self, noisy_posterior: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Estimate the rates from P(noisy y | x) at the training rows, estimated elsewhere.

        Parameters
        ----------
        noisy_posterior : array-like of shape (n_samples, 2)
            P(noisy y | x), one column per class in sorted order.
        y : array-like of shape (n_samples,)
            Noisy labels of two classes.
        sample_weight : array-like of shape (n_samples,), default=None
            How often each row counts; rows of weight zero do not take part.
        """
        classes, codes = check_labels(y)
        probabilities = np.asarray(noisy_posterior, dtype=float)
        if probabilities.shape != (codes.size, 2):
            raise ValueError(
                f"noisy_posterior has shape {probabilities.shape}, expected ({codes.size}, 2): one "
                "row per label, one column per class."
            )
        if not np.isfinite(probabilities).all():
            raise ValueError("noisy_posterior holds NaN or infinity.")
        weight = check_weights(sample_weight, codes.size)
        counts = weight > 0
        rates = self._rates(probabilities[counts], codes[counts], weight[counts])
        self.classes_, self.rates_ = classes, rates
        return self

    def _folds(self, codes: Array) -> Any:
        """Return the folds of cross-fitting, or None for none."""
        return self.cv

    @abstractmethod
    def _rates(self, noisy_posterior: Array, codes: Array, weight: Array) -> NoiseRates:
        """Return the rates from P(noisy y | x), one column per class."""


def admissible_rates(positive: float, negative: float) -> NoiseRates:
    """Return estimates as NoiseRates, scaled back with a warning where they leave no information.

    Parameters
    ----------
    positive, negative : float
        Estimates of rho_pos and rho_neg, of any sum.
    """
    total = positive + negative
    if total > LARGEST_TOTAL:
        warnings.warn(
            f"the estimated noise rates {positive:.3f} and {negative:.3f} sum to {total:.3f}: by "
            "this estimate the labels say next to nothing about the true classes. They are scaled "
            f"back to sum to {LARGEST_TOTAL}. Check that the features predict the label at all, or "
            "give the rates you know as NoiseRates.",
            UserWarning,
            stacklevel=5,
        )
        positive, negative = (rate * LARGEST_TOTAL / total for rate in (positive, negative))
    return NoiseRates(positive=positive, negative=negative)
