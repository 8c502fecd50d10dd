"""The contract of stage 2: from noisy data to NoiseRates, or to a TransitionMatrix."""

from abc import ABCMeta, abstractmethod
from collections.abc import Callable
from functools import partial
from numbers import Integral
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, clone
from sklearn.utils import ClassifierTags, Tags
from sklearn.utils.validation import check_is_fitted

from unflip._utils.docs import documented_like
from unflip._utils.folds import folds_within_classes
from unflip._utils.row_weights import relative_weights
from unflip._utils.threads import one_blas_thread
from unflip._utils.typing import Array, CrossValidation, Floats, RandomState, Rows
from unflip._utils.validation import (
    Labels,
    check_enough_rows,
    check_labels,
    check_numbers,
    check_table,
)
from unflip.diagnostics import LEVEL, Diagnostic, raise_or_warn
from unflip.noise import (
    MAX_TOTAL_RATE,
    Noise,
    NoiseRates,
    RatesInterval,
    TransitionMatrix,
    as_transition_matrix,
)
from unflip.noise_rates._intervals import (
    MAX_QUICK_SAMPLES,
    RESAMPLES,
    bootstrap_matrices,
    corrected_interval,
)
from unflip.posterior import BasePosterior, JointPosterior, PosteriorLike, cross_fit, make_posterior
from unflip.weights import LabelPosterior


class CountsRates(Protocol):
    """Samples that a person has checked: a :class:`~unflip.CheckedLabels`."""

    def count_rates(
        self, y: ArrayLike, label_proba: ArrayLike | None = None, *, level: float = LEVEL
    ) -> tuple[Floats, RatesInterval] | None:
        """Return T and its interval; None where too few samples were drawn."""


Counted = Callable[..., Any]
"""From `level` to T and its interval, counted in checked samples."""


class BaseRates(BaseEstimator, metaclass=ABCMeta):
    """An estimator of the noise rates: `fit(X, y, sample_weight)`, then `rates_`, `interval_`.

    `rates_` is a :class:`~unflip.NoiseRates` for two classes and a
    :class:`~unflip.TransitionMatrix` for more. Subclasses with an interval implement
    `_estimated_interval(level)`; where that takes long, `interval_` must not call it. Those whose
    `fit` takes `checked` set `rates_` and `_counted` to what :func:`count_checked` returns, and
    their `interval` is that of `_counted` where it is not None.

    Examples
    --------
    >>> from unflip import NoiseRates
    >>> from unflip.noise_rates import BaseRates, estimate_rates
    >>> class Surveyed(BaseRates):
    ...     def fit(self, X, y, sample_weight=None):
    ...         self.rates_ = NoiseRates(positive=0.2, negative=0.1)
    ...         return self
    >>> print(Surveyed().fit(None, None).rates_)
    NoiseRates(positive=0.2, negative=0.1)
    """

    rates_: NoiseRates | TransitionMatrix
    classes_: Array
    _counted: Counted | None = None

    trains_classifiers = False
    """Whether `fit` trains the user's classifier, on samples as passed in."""

    @property
    def noise_model_(self) -> JointPosterior | None:
        """The noise model whose rates these are; None if they come from elsewhere."""
        return None

    @property
    def transition_matrix_(self) -> Floats:
        """T[i, j] = P(observed=classes_[j] | true=classes_[i]), as estimated."""
        return as_transition_matrix(self.rates_).matrix

    @abstractmethod
    @documented_like(BasePosterior.fit)
    def fit(self, X: Rows, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Estimate the rates."""

    def interval(self, level: float = LEVEL) -> RatesInterval:
        """Return bounds of each rate at another level than `interval_`.

        Parameters
        ----------
        level : float, default=0.95
            Confidence, or probability.

        Returns
        -------
        RatesInterval
            The ends for each rate.
        """
        check_is_fitted(self, "rates_")
        return (
            self._estimated_interval(level)
            if self._counted is None
            else self._counted(level=level)[1]
        )

    def _estimated_interval(self, level: float) -> RatesInterval:
        """Return the interval of rates that no checked sample has counted."""
        raise AttributeError(f"{type(self).__name__} has no interval of its rates.")

    @property
    def interval_(self) -> RatesInterval:
        """95 % interval of each rate."""
        self._check_has_rates()
        return self.interval()

    def _check_has_rates(self) -> None:
        if not hasattr(self, "rates_"):
            raise AttributeError(f"this {type(self).__name__} is not fitted, so has no interval_.")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        tags.target_tags.one_d_labels = True
        tags.classifier_tags = ClassifierTags(multi_class=False)
        return tags


class PosteriorRates(BaseRates):
    """Rates that are a function of P(observed y | x) at the training samples.

    Subclasses implement `_rates(noisy_posterior, codes, weight)` for two classes, or
    `_transition(noisy_posterior, codes, weight)` for any number, or both where two classes are a
    case of their own; they have the parameters `posterior`, `cv` and `random_state`.

    Parameters
    ----------
    posterior : str, posterior or classifier, default=None
        Estimator of P(observed y | x): see :func:`~unflip.posterior.make_posterior`. None: that of
        the :class:`~unflip.ImportanceReweightingClassifier` whose `noise_rates` this is, else
        "probabilistic" for two classes and "selected" for more.
    cv : int or cross-validation splitter, default=5
        Folds of cross-fitting, at most the number of samples of the rarest class. None: in-sample,
        where a flexible posterior follows the observed labels, so that the rates are too low.
    random_state : int, RandomState instance or None, default=None
        Seed of the posterior and the folds.

    Attributes
    ----------
    rates_ : NoiseRates or TransitionMatrix
        The estimate: NoiseRates for two classes, a TransitionMatrix for more.
    transition_matrix_ : ndarray of shape (n_classes, n_classes)
        The same as T[i, j] = P(observed=j | true=i).
    classes_ : ndarray of shape (n_classes,)
        The labels in sorted order; the positive class of two is the last.

    Examples
    --------
    >>> from unflip.noise_rates import MinimumRates, PosteriorRates
    >>> isinstance(MinimumRates(), PosteriorRates)
    True
    >>> proba = [[0.9, 0.1], [0.8, 0.2], [0.2, 0.8], [0.3, 0.7]]
    >>> print(MinimumRates().fit_posterior(proba, [0, 0, 1, 1]).rates_)
    NoiseRates(positive=0.2, negative=0.1)
    """

    def __init__(
        self,
        posterior: PosteriorLike | None = None,
        *,
        cv: CrossValidation = 5,
        random_state: RandomState = None,
    ) -> None:
        self.posterior = posterior
        self.cv = cv
        self.random_state = random_state

    @documented_like(BaseRates.fit)
    @one_blas_thread()
    def fit(
        self,
        X: Rows,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        checked: CountsRates | None = None,
    ) -> Self:
        """Estimate P(observed y | x), then the rates.

        Parameters
        ----------
        checked : CheckedLabels, default=None
            True labels of some samples. If ten or more were drawn with known probabilities, the
            rates and their interval are estimated from these, whatever the noise.
        """
        labels = check_labels(y, binary=not self._takes_many_classes())
        check_enough_rows(X, labels.codes)
        n_classes = labels.classes.size
        posterior = make_posterior(
            default_posterior(n_classes) if self.posterior is None else self.posterior,
            self.random_state,
        )
        _, noisy_posterior = cross_fit(
            posterior,
            X,
            labels,
            sample_weight,
            cv=folds_within_classes(self.cv, labels.codes),
            random_state=self.random_state,
        )
        self._fit_posterior(noisy_posterior, labels, sample_weight, checked)
        check_table(self, X, reset=True)
        return self

    @documented_like(fit)
    @one_blas_thread()
    def fit_posterior(
        self,
        noisy_posterior: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        checked: CountsRates | None = None,
    ) -> Self:
        """Estimate the rates from P(observed y | x) at the training samples, estimated elsewhere.

        Parameters
        ----------
        noisy_posterior : array-like of shape (n_samples, n_classes)
            P(observed y | x), one column per class in sorted order.
        """
        labels = check_labels(y, binary=not self._takes_many_classes())
        return self._fit_posterior(noisy_posterior, labels, sample_weight, checked)

    def _fit_posterior(
        self,
        noisy_posterior: ArrayLike,
        labels: Labels,
        sample_weight: ArrayLike | None,
        checked: CountsRates | None = None,
    ) -> Self:
        classes, codes = labels
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
        rates, counted = count_checked(checked, labels, rates, probabilities)
        self.classes_, self.rates_, self._counted = classes, rates, counted
        self._sample = probabilities[counts], codes[counts], weight[counts]
        self._interval: RatesInterval | None = None
        return self

    def interval(self, level: float = LEVEL, n_draws: int = RESAMPLES) -> RatesInterval:
        """Return a confidence interval of each rate, by the bootstrap on scores.

        Samples are drawn with replacement while P(observed | x) is kept: the interval reflects
        sampling error, but neither bias nor the error of P(observed | x). With the defaults it is
        stored as `interval_`.

        Parameters
        ----------
        level : float, default=0.95
            Confidence.
        n_draws : int, default=200
            Resamples.

        Returns
        -------
        interval : RatesInterval
            The lower and the upper ends of T's entries.
        """
        if self._counted is not None or n_draws == RESAMPLES:
            return super().interval(level)
        return self._estimated_interval(level, n_draws)

    def _estimated_interval(self, level: float, n_draws: int = RESAMPLES) -> RatesInterval:
        check_is_fitted(self, "rates_")
        worker = clone(self)  # estimating may set attributes
        estimate = worker._rates if self.classes_.size == 2 else worker._transition
        seed = self.random_state if isinstance(self.random_state, Integral) else None
        draws = bootstrap_matrices(
            lambda *sample: as_transition_matrix(estimate(*sample)).matrix,
            *self._sample,
            n_draws=n_draws,
            random_state=0 if seed is None else seed,
        )
        low, high = corrected_interval(draws, self.transition_matrix_, level)
        if self.classes_.size > 2:
            found = RatesInterval(low, high, level)
        else:  # the ends of the rates are those of 1 - T[i, i] too
            ends = (low[1, 0], high[1, 0]), (low[0, 1], high[0, 1])
            found = RatesInterval.from_pairs(*ends, level)
        if (level, n_draws) == (LEVEL, RESAMPLES):
            self._interval = found
        return found

    @property
    def interval_(self) -> RatesInterval:
        """95 % interval of each rate, computed once: :meth:`interval` with its defaults.

        With more than 20 000 samples, call :meth:`interval` first, because it takes long.
        """
        self._check_has_rates()
        n_rows = self._sample[1].size
        if self._interval is None and self._counted is None and n_rows > MAX_QUICK_SAMPLES:
            raise AttributeError(
                f"interval_ is not computed automatically above {MAX_QUICK_SAMPLES} samples, as "
                f"resampling takes long, and there are {n_rows}. Call interval() first."
            )
        return self._interval or self.interval()

    def _rates(self, noisy_posterior: Array, codes: Array, weight: Array) -> NoiseRates:
        """Return the rates of two classes from P(observed y | x), one column per class."""
        return self._transition(noisy_posterior, codes, weight).rates

    def _transition(self, noisy_posterior: Array, codes: Array, weight: Array) -> TransitionMatrix:
        """Return T from P(observed y | x), one column per class."""
        raise NotImplementedError(f"{type(self).__name__} is for two classes.")

    def _takes_many_classes(self) -> bool:
        return type(self)._transition is not PosteriorRates._transition

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = self._takes_many_classes()
        return tags


def count_checked(
    checked: CountsRates | None, labels: Labels, rates: Noise, noisy_posterior: Floats | None = None
) -> tuple[Noise, Counted | None]:
    """Return the rates counted in checked samples if enough were drawn, else those estimated."""
    if checked is None:
        return rates, None
    if not hasattr(checked, "count_rates"):
        raise TypeError(f"checked must be a CheckedLabels(rows, labels), got {checked!r}.")
    classes, codes = labels
    proba = noisy_posterior
    if proba is not None:
        proba = LabelPosterior(proba, codes, rates, classes).proba
    counted = partial(checked.count_rates, labels.observed, proba)
    found = counted(level=LEVEL)
    if found is None:
        return rates, None
    matrix = found[0]
    unseen = np.isnan(matrix).any(axis=1)  # no checked sample is of these classes
    matrix[unseen] = as_transition_matrix(rates).matrix[unseen]
    if classes.size == 2:
        return admissible_rates(matrix[1, 0], matrix[0, 1]), counted
    return admissible_matrix(matrix), counted


def default_posterior(n_classes: int) -> str:
    """Return the default posterior of rate estimators, which estimates no rates itself."""
    return "probabilistic" if n_classes == 2 else "selected"


def admissible_rates(positive: float, negative: float) -> NoiseRates:
    """Return estimates as NoiseRates, scaled back with a warning if they leave no information."""
    total = positive + negative
    if total > MAX_TOTAL_RATE:
        numbers = {
            "positive": positive,
            "negative": negative,
            "total": total,
            "largest": MAX_TOTAL_RATE,
        }
        raise_or_warn([Diagnostic("rates_scaled_back", numbers=numbers)])
        positive, negative = (rate * MAX_TOTAL_RATE / total for rate in (positive, negative))
    return NoiseRates(positive=positive, negative=negative)


def admissible_matrix(matrix: ArrayLike) -> TransitionMatrix:
    """Return an estimate of T, mixed with the identity with a warning where it is nearly singular.

    The smallest real part of T's eigenvalues, for two classes 1 - rho_pos - rho_neg, is brought to
    at least 0.05, by (1 - a) I + a T with the largest such a: what :func:`admissible_rates` does.
    """
    estimate = np.asarray(matrix, dtype=np.float64)
    estimate = estimate / estimate.sum(axis=1, keepdims=True)
    left = float(np.linalg.eigvals(estimate).real.min())
    if 1 - left > MAX_TOTAL_RATE:
        share = MAX_TOTAL_RATE / (1 - left)
        numbers = {
            "diagonal": np.diag(estimate).round(2).tolist(),
            "left": max(left, 0.0),
            "identity": 1 - share,
            "share": share,
            "least": 1 - MAX_TOTAL_RATE,
        }
        raise_or_warn([Diagnostic("matrix_scaled_back", numbers=numbers)])
        estimate = share * estimate + (1 - share) * np.eye(estimate.shape[0])
    return TransitionMatrix(estimate)
