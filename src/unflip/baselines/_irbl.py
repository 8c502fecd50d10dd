"""IRBL: importance reweighting by a classifier of checked samples."""

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin
from sklearn.linear_model import LogisticRegression
from sklearn.utils import Tags, _safe_indexing, get_tags

from unflip._utils.docs import documented_like
from unflip._utils.estimators import (
    PredictsByEstimator,
    clone_seeded,
    fit_weighted,
    optional_generator,
)
from unflip._utils.threads import one_blas_thread
from unflip._utils.typing import Array, Classifier, RandomState, Rows
from unflip._utils.validation import check_enough_rows, check_labels, check_table, check_weights
from unflip.checked import CheckedLabels
from unflip.posterior import BasePosterior

MIN_NOISY_PROBA = 1e-6
"""P(observed | x) is kept from 0 by this."""


class IRBLClassifier(PredictsByEstimator, ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    r"""beta = P_checked(y | x) / P_noisy(y | x), and 1 for samples that were checked.

    Both probabilities come from the same classifier, trained on the checked samples with their true
    labels and on the other samples with their noisy ones. No model of the noise is needed, and of
    the noisy labels only those survive that checked samples make plausible.

    Parameters
    ----------
    estimator : classifier, default=None
        What to train, with `predict_proba` and `sample_weight`. None:
        :class:`~sklearn.linear_model.LogisticRegression`.
    random_state : int, RandomState instance or None, default=None
        Seed of every part that has none of its own.

    Attributes
    ----------
    sample_weight_ : ndarray of shape (n_samples,)
        beta; 0 of checked samples that belong to no class.
    estimator_ : classifier
        The fitted classifier.
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted.

    Notes
    -----
    Without checked samples, or where these are of one class only, it is the classifier trained on
    the labels as they are.

    References
    ----------
    Nodet, Lemaire, Bondu, Cornuejols (2021), "Importance reweighting for biquality learning",
    IJCNN.

    Examples
    --------
    >>> import numpy as np
    >>> from unflip import CheckedLabels
    >>> from unflip.baselines import IRBLClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(1000, 2))
    >>> y_true = (X.sum(axis=1) > 0).astype(int)
    >>> y_rule = (X[:, 0] > 0.5).astype(int)
    >>> rows = rng.choice(1000, 100, replace=False)
    >>> clf = IRBLClassifier().fit(X, y_rule, checked=CheckedLabels(rows, y_true[rows], 0.1))
    >>> bool(clf.score(X, y_true) > IRBLClassifier().fit(X, y_rule).score(X, y_true))
    True
    """

    def __init__(
        self, estimator: Classifier | None = None, *, random_state: RandomState = None
    ) -> None:
        self.estimator = estimator
        self.random_state = random_state

    @documented_like(BasePosterior.fit)
    @one_blas_thread()
    def fit(
        self,
        X: Rows,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        checked: CheckedLabels | None = None,
    ) -> Self:
        """Weigh the noisy labels by what checked samples say, and train the classifier.

        Parameters
        ----------
        checked : CheckedLabels, default=None
            True labels of some samples.
        """
        labels = check_labels(y, binary=False)
        classes, codes = labels
        check_enough_rows(X, codes)
        own = check_weights(sample_weight, codes.size)
        weight, target = np.ones(codes.size), codes.copy()
        generator = optional_generator(self.random_state)
        if checked is not None and len(checked):
            truth = checked.truth(labels)
            known = (truth >= 0) & (truth < classes.size)
            rows = checked.rows[known]
            target[rows] = truth[known]
            others = np.setdiff1d(np.arange(codes.size), checked.rows)
            weight[checked.rows[truth == classes.size]] = 0.0
            if np.unique(truth[known]).size > 1 and np.unique(codes[others]).size > 1:
                trusted, noisy = (
                    self._proba(X, target, at, others, classes, own, generator)
                    for at in (rows, others)
                )
                at_label = np.arange(others.size), codes[others]
                weight[others] = trusted[at_label] / np.maximum(noisy[at_label], MIN_NOISY_PROBA)
        estimator = clone_seeded(self._base_estimator(), generator)
        row_weight = None if sample_weight is None else own
        fit_weighted(estimator, X, classes[target], weight * own, row_weight=row_weight)
        check_table(self, X, reset=True)
        self.classes_, self.estimator_, self.sample_weight_ = classes, estimator, weight
        return self

    def _proba(
        self,
        X: Rows,
        target: Array,
        train: Array,
        rows: Array,
        classes: Array,
        weight: Array,
        generator: Any,
    ) -> Array:
        """Return the probabilities of the samples `rows`, from a fit to the samples `train`."""
        estimator = clone_seeded(self._base_estimator(), generator)
        fit_weighted(estimator, _safe_indexing(X, train), classes[target[train]], weight[train])
        proba = np.zeros((rows.size, classes.size))
        places = np.searchsorted(classes, estimator.classes_)
        proba[:, places] = estimator.predict_proba(_safe_indexing(X, rows))
        return proba

    def _base_estimator(self) -> Any:
        return LogisticRegression() if self.estimator is None else self.estimator

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        inner = get_tags(self._base_estimator()).input_tags
        tags.input_tags.sparse, tags.input_tags.allow_nan = inner.sparse, inner.allow_nan
        return tags
