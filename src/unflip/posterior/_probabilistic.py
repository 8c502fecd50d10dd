"""P(observed y | x) by any probabilistic classifier."""

from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import Tags, get_tags
from sklearn.utils.validation import check_is_fitted

from unflip._utils.docs import documented_like
from unflip._utils.estimators import fit_weighted
from unflip._utils.row_weights import relative_weights
from unflip._utils.threads import one_blas_thread
from unflip._utils.typing import Array, Classifier, ProbabilisticClassifier, Rows
from unflip._utils.validation import check_labels, check_rows_of, check_table, training_rows
from unflip.posterior._base import BasePosterior


class ProbabilisticPosterior(BasePosterior):
    r"""P(observed y | x) as a classifier's `predict_proba`.

    Parameters
    ----------
    estimator : classifier, default=None
        Any classifier with `predict_proba`, a Pipeline too. None: logistic regression
        (C=0.1) on standardised features.
    calibration : {"sigmoid", "isotonic", "temperature"}, default=None
        How to calibrate the probabilities by cross-validation, as in
        :class:`~sklearn.calibration.CalibratedClassifierCV`. The classifier then needs only a
        `decision_function`. None: taken as they are.
    cv : int, default=5
        Number of folds of the calibration.

    Attributes
    ----------
    estimator_ : classifier
        The fitted classifier.
    classes_ : ndarray of shape (n_classes,)
        The labels.

    Notes
    -----
    The weights beta and the rates are only as good as these probabilities: an overconfident
    classifier (a deep tree, a forest in-sample) needs `cv` in
    :class:`~unflip.ImportanceReweightingClassifier`, or `calibration` here, or both.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from unflip.posterior import ProbabilisticPosterior
    >>> X, y = make_classification(random_state=0)
    >>> ProbabilisticPosterior().fit(X, y).predict_proba(X[:2]).round(2)
    array([[0.66, 0.34],
           [0.6 , 0.4 ]])
    """

    estimator_: BaseEstimator

    def __init__(
        self,
        estimator: Classifier | ProbabilisticClassifier | None = None,
        *,
        calibration: str | None = None,
        cv: int = 5,
    ) -> None:
        self.estimator = estimator
        self.calibration = calibration
        self.cv = cv

    @documented_like(BasePosterior.fit)
    @one_blas_thread()
    def fit(self, X: Rows, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the classifier to the noisy labels."""
        classes, codes = check_labels(y, binary=False)
        check_rows_of(X, codes)
        labels = classes[codes]
        if self.estimator is None:
            training_rows(X)  # else the scaler would complain of NaN that are not in X
            estimator = default_classifier(X)
        else:
            estimator = clone(self.estimator)
        if self.calibration is not None:
            estimator = CalibratedClassifierCV(estimator, method=self.calibration, cv=self.cv)
        if not hasattr(estimator, "predict_proba"):
            raise TypeError(
                f"{type(estimator).__name__} has no predict_proba, which P(observed y | x) needs. "
                "Set calibration='sigmoid', or use a probabilistic classifier such as "
                "LogisticRegression."
            )
        if sample_weight is None:
            estimator.fit(X, labels)
        else:
            weight = relative_weights(sample_weight, len(codes))
            fit_weighted(estimator, X, labels, weight, row_weight=weight)
        check_table(self, X, reset=True)
        self.classes_, self.estimator_ = classes, estimator
        return self

    @one_blas_thread()
    def predict_proba(self, X: Rows) -> Array:
        """Return P(observed y | x), one column per class in the order of `classes_`."""
        check_is_fitted(self)
        check_table(self, X, reset=False)
        probabilities = np.asarray(self.estimator_.predict_proba(X))
        if not np.isfinite(probabilities).all():
            raise ValueError(
                f"{type(self.estimator_).__name__} returns probabilities that are NaN or infinite: "
                "it does not fit these data. Use another classifier."
            )
        return probabilities

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        if self.estimator is not None:
            inner = get_tags(self.estimator)
            tags.input_tags.sparse = inner.input_tags.sparse
            tags.input_tags.allow_nan = inner.input_tags.allow_nan
            if inner.classifier_tags is not None:
                tags.classifier_tags.multi_class = inner.classifier_tags.multi_class
        return tags


def default_classifier(X: Rows) -> BaseEstimator:
    """Return ridge-shrunk logistic regression on standardised features (sparse: scaled only).

    C = 0.1 rather than 1: on flipped labels of the paper's six tables it gives the better
    cross-validated likelihood of the noisy labels.
    """
    return make_pipeline(
        StandardScaler(with_mean=not sparse.issparse(X)), LogisticRegression(C=0.1, max_iter=1000)
    )
