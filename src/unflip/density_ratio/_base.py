"""Base classes of density-ratio estimators: r(x) = p_num(x) / p_den(x) from two samples."""

from abc import ABCMeta, abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted

from unflip._utils.compat import validate_data
from unflip._utils.gaussian_kernel import GaussianDesign
from unflip._utils.samples import Samples, TwoSamples
from unflip._utils.sampling import shuffled
from unflip._utils.threads import by_threads, one_blas_thread
from unflip._utils.typing import Array, RandomState, Record, Rows
from unflip._utils.validation import (
    MAX_SINGLE,
    check_count,
    check_weights,
    new_rows,
    training_rows,
)


class BaseDensityRatio(BaseEstimator, metaclass=ABCMeta):
    """r(x) = p_num(x) / p_den(x), estimated from a sample of each distribution.

    Subclasses implement `_fit(samples)`, which returns the fitted attributes, and `_ratio(X)`.
    Attributes are set only after the whole fit has succeeded.

    Examples
    --------
    >>> from unflip.density_ratio import KLIEP, KMM, ULSIF, BaseDensityRatio, RuLSIF
    >>> all(issubclass(each, BaseDensityRatio) for each in (KLIEP, ULSIF, RuLSIF, KMM))
    True
    """

    @property
    def _by_sums(self) -> bool:
        """Whether `_fit` needs only a few sums over samples, which may be out of memory."""
        return False

    def fit(
        self,
        X_num: Rows,
        X_den: Rows,
        *,
        weight_num: ArrayLike | None = None,
        weight_den: ArrayLike | None = None,
    ) -> Self:
        """Estimate the ratio from samples of both distributions.

        Parameters
        ----------
        X_num : {array-like, sparse matrix} of shape (n_num, n_features)
            Samples drawn from the numerator's distribution.
        X_den : {array-like, sparse matrix} of shape (n_den, n_features)
            Samples drawn from the denominator's distribution.
        weight_num, weight_den : array-like of shape (n_num,) and (n_den,), default=None
            Sample weights.

        Returns
        -------
        self
            The fitted estimator.
        """
        numerator = self._check_rows(X_num, "X_num")
        denominator = self._check_rows(X_den, "X_den")
        if numerator.shape[1] != denominator.shape[1]:
            raise ValueError(
                f"X_num has {numerator.shape[1]} features and X_den {denominator.shape[1]}: both "
                "must have the same columns."
            )
        if sparse.issparse(numerator) != sparse.issparse(denominator):
            raise TypeError("X_num and X_den must both be dense or both be sparse.")
        if numerator.dtype != denominator.dtype:
            numerator = numerator.astype(np.float64)
            denominator = denominator.astype(np.float64)
        numerator, w_num = _without_zero_weights(numerator, weight_num)
        denominator, w_den = _without_zero_weights(denominator, weight_den)
        return self._fit_samples(TwoSamples(numerator, denominator, w_num, w_den), X_den)

    def _fit_samples(self, samples: Samples, X: Rows) -> Self:
        """Fit to validated samples; X gives the feature names."""
        with one_blas_thread():
            fitted = self._fit(samples)
        validate_data(self, X, skip_check_array=True)
        self.__dict__.update(fitted)
        return self

    def predict(self, X: Rows) -> Array:
        """Return the estimated ratio p_num(x) / p_den(x) >= 0 for every sample.

        Returns
        -------
        ndarray of shape (n_samples,)
            Ratios.
        """
        rows = self._check_new_rows(X)
        with one_blas_thread():
            return self._ratio(rows)

    def score(self, X_num: Rows, X_den: Rows) -> float:
        """Return mean_num r - mean_den r^2 / 2 on new samples: higher is better.

        Up to a constant this is minus half the mean squared error of r under p_den.

        Returns
        -------
        float
            The score.
        """
        r_num, r_den = self.predict(X_num), self.predict(X_den)
        return float(np.mean(r_num, dtype=float) - np.mean(r_den**2, dtype=float) / 2)

    @abstractmethod
    def _fit(self, samples: Any) -> Record:
        """Return the fitted attributes by name; `samples` are in memory unless `_by_sums`."""

    @abstractmethod
    def _ratio(self, X: Rows) -> Array:
        """Return the ratio at validated samples."""

    def _check_new_rows(self, X: Rows) -> Rows:
        check_is_fitted(self)
        return new_rows(self, X)

    def _check_rows(self, X: Rows, name: str) -> Rows:
        return training_rows(X, estimator=self, name=name)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags


class KernelDensityRatio(BaseDensityRatio):
    """r(x) = sum_l theta_l exp(-|x - c_l|^2 / (2 s^2)), theta >= 0, centres c_l numerator samples.

    Subclasses implement `_fit_kernel` and have the parameters `n_centers` and `random_state`.

    Attributes
    ----------
    bandwidth_ : float
        The kernel's width.
    centers_ : ndarray of shape (n_centers, n_features)
        The centres.
    coef_ : ndarray of shape (n_centers,)
        theta.
    """

    n_centers: int
    random_state: RandomState

    centers_: Array
    coef_: Array
    bandwidth_: float

    def _fit(self, samples: Samples) -> Record:
        check_count(self.n_centers, "n_centers", least=1)
        random_state = check_random_state(self.random_state)
        rows, _ = samples.num_rows(shuffled(samples.n_num, self.n_centers, random_state))
        # duplicate centres would make the equations singular
        centers = np.unique(rows.toarray() if sparse.issparse(rows) else rows, axis=0)
        return {"centers_": centers} | self._fit_kernel(samples, centers, random_state)

    @abstractmethod
    def _fit_kernel(
        self, samples: Any, centers: Array, random_state: np.random.RandomState
    ) -> Record:
        """Return at least `coef_` and `bandwidth_`."""

    def _ratio(self, X: Rows) -> Array:
        return self._linear_ratio(X)

    def _linear_ratio(self, X: Rows) -> Array:
        if self.coef_.max() > MAX_SINGLE:  # would overflow in float32
            X = X.astype(np.float64)
        centers, coef = self.centers_.astype(X.dtype), self.coef_.astype(X.dtype)

        def ratio(rows: slice) -> Array:
            return GaussianDesign(X[rows], centers, self.bandwidth_).dot(coef)

        return np.concatenate(by_threads(ratio, X.shape[0], X.shape[0]))


def _without_zero_weights(X: Rows, weight: ArrayLike | None) -> tuple[Rows, Array]:
    weight = check_weights(weight, X.shape[0])
    if weight.all():
        return X, weight
    return X[weight > 0], weight[weight > 0]
