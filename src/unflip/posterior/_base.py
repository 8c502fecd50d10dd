"""The contract of stage 1, P(observed y | x), and cross-fitting for all of it in one place."""

from abc import ABCMeta, abstractmethod
from collections.abc import Callable
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import StratifiedKFold, check_cv
from sklearn.utils import ClassifierTags, Tags, _safe_indexing, indexable
from sklearn.utils.validation import check_consistent_length

from unflip._utils.folds import check_splits, stratified_folds
from unflip._utils.progress import tick, work
from unflip._utils.row_weights import relative_weights
from unflip._utils.typing import Array, CrossValidation, RandomState, Rows
from unflip._utils.validation import Labels, check_labels, check_rows_of, training_rows

ASSUMED_FOLDS = 5
"""Number of folds assumed for splits of unknown number; for progress only."""


class BasePosterior(BaseEstimator, metaclass=ABCMeta):
    """An estimator of P(observed y | x): `fit(X, y, sample_weight)`, then `predict_proba(X)`.

    It is no classifier: what it learns are the noisy labels, and its rows need not sum to one.

    Examples
    --------
    >>> import numpy as np
    >>> from unflip.posterior import BasePosterior
    >>> class Prior(BasePosterior):
    ...     def fit(self, X, y, sample_weight=None):
    ...         self.classes_, counts = np.unique(y, return_counts=True)
    ...         self.prior_ = counts / counts.sum()
    ...         return self
    ...
    ...     def predict_proba(self, X):
    ...         return np.tile(self.prior_, (len(X), 1))
    >>> Prior().fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 0, 1]).predict_proba([[5.0]])
    array([[0.75, 0.25]])
    """

    @property
    def by_sums(self) -> bool:
        """Whether a fit needs nothing but sums over samples, so that all of them can take part."""
        return False

    @property
    def out_of_fold(self) -> bool:
        """Whether `fit_predict_proba` keeps a sample's label from its own probability."""
        return False

    classes_: Array

    estimates_rates = False
    """Whether this is a noise model, whose `fit` estimates the rates unless they are `known`.

    It then has `rates_`, `interval_`, `check_` and `label_error_range_`.
    """

    _fold_length = 1.0
    """How long a fold of cross-fitting takes, beside the fit to all samples; for progress only."""

    @abstractmethod
    def fit(self, X: Rows, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn P(observed y | x).

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)
            Samples.
        y : array-like of shape (n_samples,)
            Observed labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Sample weights: how often each sample counts.

        Returns
        -------
        self
            The fitted estimator.
        """

    @abstractmethod
    def predict_proba(self, X: Rows) -> Array:
        """Return P(observed y | x), one column per class in the order of `classes_`.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Probabilities.
        """

    def fit_predict_proba(
        self, X: Rows, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> NDArray[np.float64]:
        """Fit, and return P(observed y | x) of the samples it was fitted to.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Probabilities.
        """
        return np.asarray(self.fit(X, y, sample_weight).predict_proba(X), dtype=float)

    def cross_predict_proba(
        self, X: Rows, y: ArrayLike, sample_weight: ArrayLike | None, folds: StratifiedKFold
    ) -> NDArray[np.float64]:
        """Fit, and return P(observed y | x) of every sample from a fit that did not see its label.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Probabilities.
        """
        own = self.fit_predict_proba(X, y, sample_weight)
        tick()
        # whether it is out of fold may be known after the fit only
        return own if self.out_of_fold else _by_folds(self, X, y, sample_weight, folds)

    def for_folds(self) -> "BasePosterior":
        """Return what cross-fitting fits to each fold, this one being fitted to all samples.

        Returns
        -------
        BasePosterior
            Unfitted.
        """
        return clone(self)

    def predict(self, X: Rows) -> Array:
        """Return the most likely noisy label of every sample.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels.
        """
        codes = np.argmax(self.predict_proba(X), axis=1)
        return self.classes_[codes]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        tags.target_tags.one_d_labels = True
        tags.classifier_tags = ClassifierTags()
        return tags


def check_rows(
    estimator: BasePosterior, X: Rows, y: ArrayLike, sample_weight: ArrayLike | None
) -> tuple[Rows, Array, Array, Array]:
    """Return the numeric samples that count, the classes, and each sample's class and weight."""
    rows = training_rows(X, estimator=estimator)
    classes, codes = check_labels(y, binary=False)
    check_consistent_length(rows, codes)
    weight = relative_weights(sample_weight, len(codes))
    if not weight.all():  # else there is nothing to copy
        counts = weight > 0
        rows, codes, weight = rows[counts], codes[counts], weight[counts]
    return rows, classes, codes, weight


def fit_posterior(
    posterior: BasePosterior,
    X: Rows,
    y: ArrayLike,
    sample_weight: ArrayLike | None = None,
    *,
    cv: CrossValidation = None,
    random_state: RandomState = None,
) -> tuple[BasePosterior, NDArray[np.float64]]:
    """Fit `posterior` (in place) and return it with P(observed y | x) of the training samples.

    Parameters
    ----------
    posterior : BasePosterior
        What to fit.
    X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)
        Samples.
    y : array-like of shape (n_samples,)
        Observed labels.
    sample_weight : array-like of shape (n_samples,), default=None
        Sample weights: how often each sample counts.
    cv : int, cross-validation splitter, iterable of splits or None, default=None
        None: the samples' probabilities come from the posterior that was fitted on them. Otherwise
        each sample's come from a posterior that did not see its label (the one returned saw all);
        an integer is the number of stratified, shuffled folds, of which no class may have fewer
        samples (a posterior that chooses by held-out labels has its own folds, and needs none of
        these). A class that a splitter of your own leaves out of a training fold has probability 0
        in the samples that are held out, with a warning.
    random_state : int, RandomState instance or None, default=None
        Seed of the shuffle.

    Returns
    -------
    tuple of BasePosterior and ndarray of shape (n_samples, n_classes)
        The posterior and the probabilities.
    """
    if not isinstance(posterior, BasePosterior):
        raise TypeError(
            "posterior must be one of unflip.posterior, such as make_posterior('kliep') or "
            f"ProbabilisticPosterior(classifier), got {posterior!r}."
        )
    labels = check_labels(y, binary=False)
    check_rows_of(X, labels.codes)
    return cross_fit(posterior, X, labels, sample_weight, cv=cv, random_state=random_state)


def cross_fit(
    posterior: BasePosterior,
    X: Rows,
    labels: Labels,
    sample_weight: ArrayLike | None = None,
    *,
    cv: CrossValidation = None,
    random_state: RandomState = None,
) -> tuple[BasePosterior, NDArray[np.float64]]:
    """Do what :func:`fit_posterior` does, with labels that have been checked."""
    classes, codes = labels
    y = labels.observed
    by_number = isinstance(cv, (int, np.integer))
    if isinstance(cv, (int, np.integer)):
        if posterior.out_of_fold:
            cv = None
        else:
            cv = stratified_folds(int(cv), classes, codes, random_state, none_allowed=True)
    elif cv is not None:
        cv = check_splits(cv)
    n_folds = 0 if cv is None else getattr(cv, "n_splits", ASSUMED_FOLDS)
    with work([1.0, *[posterior._fold_length] * n_folds]):
        if isinstance(cv, StratifiedKFold) and by_number:
            return posterior, posterior.cross_predict_proba(X, y, sample_weight, cv)
        own = posterior.fit_predict_proba(X, y, sample_weight)
        tick()
        if cv is None or by_number:
            return posterior, own
        return posterior, _by_folds(posterior, X, y, sample_weight, cv)


def _by_folds(
    posterior: BasePosterior,
    X: Rows,
    y: ArrayLike,
    sample_weight: ArrayLike | None,
    cv: CrossValidation,
) -> NDArray[np.float64]:
    """Return the samples' probabilities, each fold's from a fit to the others."""
    codes = np.unique(np.asarray(y), return_inverse=True)[1]
    weight = None if sample_weight is None else np.asarray(sample_weight)
    return held_out_proba(posterior.for_folds(), X, codes, weight, cv, after_each=tick)


def held_out_proba(
    posterior: BasePosterior,
    X: Rows,
    codes: Array,
    weight: Array | None,
    cv: CrossValidation,
    after_each: Callable[[], None] = lambda: None,
) -> NDArray[np.float64]:
    """Return the probabilities of the classes 0, 1, ... of each sample, fitted without its fold.

    `cross_val_predict` does the same, but fits while scikit-learn has exchanged the warning filters
    of the process, which is not safe in threads.
    """
    (X,) = indexable(X)
    splits = list(check_cv(cv, codes, classifier=True).split(X, codes))
    n_held_out = np.bincount(np.concatenate([test for _, test in splits]), minlength=codes.size)
    if not (n_held_out == 1).all():
        raise ValueError(
            f"cv must hold out each sample once, and some are held out {n_held_out.min()} or "
            f"{n_held_out.max()} times. Use partitions, such as those of StratifiedKFold."
        )
    proba = np.zeros((codes.size, codes.max() + 1))
    for train, test in splits:
        params = {} if weight is None else {"sample_weight": weight[train]}
        fitted = clone(posterior).fit(_safe_indexing(X, train), codes[train], **params)
        after_each()
        proba[np.ix_(test, fitted.classes_)] = fitted.predict_proba(_safe_indexing(X, test))
    return proba
