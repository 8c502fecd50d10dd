"""Linear classifier for any surrogate loss."""

from abc import ABCMeta, abstractmethod
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils import Tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from unflip._utils.compat import validate_data
from unflip._utils.threads import one_blas_thread
from unflip._utils.typing import Array, Rows
from unflip._utils.validation import (
    check_choice,
    check_class_weights,
    check_count,
    check_flag,
    check_labels,
    check_positive,
    check_weights,
    is_number,
    new_rows,
    training_rows,
)
from unflip.learners._solvers import LinearProblem, solve
from unflip.losses import Loss, get_loss


def _gives_probabilities(self: "LossClassifier") -> bool:
    if get_loss(self.loss).probability is None:
        raise AttributeError(f"loss={self.loss!r} has no probabilities, only decision values.")
    return True


class LossClassifier(ClassifierMixin, BaseEstimator, metaclass=ABCMeta):
    """Base class of the linear and the kernel classifier.

    Examples
    --------
    >>> from unflip.learners import KernelClassifier, LinearClassifier, LossClassifier
    >>> issubclass(LinearClassifier, LossClassifier), issubclass(KernelClassifier, LossClassifier)
    (True, True)
    """

    loss: str | Loss
    alpha: float
    tol: float
    max_iter: int
    classes_: Array

    @abstractmethod
    def decision_function(self, X: Rows) -> Array:
        """Return the decision value of every sample: positive for the positive class.

        Returns
        -------
        ndarray of shape (n_samples,)
            Decision values.
        """

    def predict(self, X: Rows) -> Array:
        """Return the label of every sample.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels.
        """
        positive = (self.decision_function(X) > 0).astype(int)
        return self.classes_[positive]

    @available_if(_gives_probabilities)
    def predict_proba(self, X: Rows) -> Array:
        """Return P(y | x) by the link of the loss, one column per class.

        Returns
        -------
        ndarray of shape (n_samples, 2)
            Probabilities.
        """
        t = self.decision_function(X)
        probability = get_loss(self.loss).probability
        assert probability is not None
        positive = probability(t)
        return np.column_stack([1 - positive, positive])

    def _check_training(
        self, X: Rows, y: ArrayLike, sample_weight: ArrayLike | None, *, accept_sparse: str | bool
    ) -> tuple[Rows, Array, Array, Array]:
        """Return X, classes, labels as -1 and +1, and weights, of the rows of positive weight."""
        check_positive(self.tol, "tol")
        check_count(self.max_iter, "max_iter", least=1)
        if not (is_number(self.alpha) and 0 < self.alpha < np.inf):
            raise ValueError(
                f"alpha must be a finite number > 0, got {self.alpha!r}: without a penalty some "
                "losses have no minimum."
            )
        rows = training_rows(X, accept_sparse=accept_sparse, estimator=self)
        classes, codes = check_labels(y)
        check_consistent_length(rows, codes)
        weight = check_weights(sample_weight, codes.size)
        if not weight.all():  # avoids a copy otherwise
            check_class_weights(weight, codes, classes)
            positive = weight > 0
            rows, codes, weight = rows[positive], codes[positive], weight[positive]
        return rows, classes, 2.0 * codes - 1, weight

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


class LinearClassifier(LossClassifier):
    r"""sign(x'v + b) of minimum penalised weighted risk, for any surrogate loss.

    Minimises sum_i w_i loss(x_i'v + b, y_i) / sum_i w_i + alpha |v|^2 / 2; the elastic net has
    alpha (l1_ratio |v|_1 + (1 - l1_ratio) |v|^2 / 2) in place of the last term.

    Parameters
    ----------
    loss : str or Loss, default="logistic"
        A name in :mod:`unflip.losses` ("hinge", "squared_hinge", "logistic", "squared",
        "exponential", "asymmetric_exponential", "modified_huber", "cauchy", "welsch", "unhinged",
        "sigmoid") or an instance.
    alpha : float, default=1e-3
        The penalty on the mean loss, so it need not change with the number of samples;
        scikit-learn's C is 1 / (alpha * sum of weights). Choose it by
        :class:`~sklearn.model_selection.GridSearchCV` over `alpha`.
    penalty : {"l2", "elasticnet"}, default="l2"
        The form of the penalty.
    l1_ratio : float, default=0.5
        Share of the l1 norm in the elastic net.
    fit_intercept : bool, default=True
        Whether to fit b, which is not penalised (unless the loss is unbounded below).
    tol : float, default=1e-4
        Maximum entry of the gradient at which the solver stops; for the hinge, the relative
        duality gap.
    max_iter : int, default=1000
        Maximum number of solver iterations.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features)
        v.
    intercept_ : ndarray of shape (1,)
        b.
    gap_ : float
        Optimality: the duality gap of the hinge (infinite with an elastic net, where none is
        computed), else the largest entry of the gradient (not small for other losses with a kink).
    n_iter_ : int
        Number of iterations.
    classes_ : ndarray of shape (2,)
        The labels, the positive class last.

    Notes
    -----
    Features are not scaled, and the penalty is on their coefficients: apply a
    :class:`~sklearn.preprocessing.StandardScaler` to columns of different scales first.

    Logistic and squared losses are solved by scikit-learn's LogisticRegression and Ridge, the
    hinge by Newton steps on a smoothed hinge whose width goes to zero, the others by L-BFGS. A
    non-convex loss is minimised from three starts (zero, the logistic solution, and four times
    it); the best minimum need not be the global one.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from unflip.learners import LinearClassifier
    >>> X, y = make_classification(random_state=0)
    >>> LinearClassifier(loss="hinge", alpha=0.01).fit(X, y).score(X, y)
    0.9...
    """

    coef_: Array
    intercept_: Array
    gap_: float
    n_iter_: int

    def __init__(
        self,
        loss: str | Loss = "logistic",
        alpha: float = 1e-3,
        *,
        penalty: str = "l2",
        l1_ratio: float = 0.5,
        fit_intercept: bool = True,
        tol: float = 1e-4,
        max_iter: int = 1000,
    ) -> None:
        self.loss = loss
        self.alpha = alpha
        self.penalty = penalty
        self.l1_ratio = l1_ratio
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter

    @one_blas_thread()
    def fit(self, X: Rows, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Minimise the penalised weighted risk.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
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
        check_choice(self.penalty, ("l2", "elasticnet"), "penalty")
        l1_ratio = self.l1_ratio if self.penalty == "elasticnet" else 0.0
        check_flag(self.fit_intercept, "fit_intercept")
        if not (is_number(l1_ratio) and 0 <= l1_ratio <= 1):
            raise ValueError(f"l1_ratio must lie in [0, 1], got {self.l1_ratio!r}.")
        rows, classes, signs, weight = self._check_training(
            X, y, sample_weight, accept_sparse="csr"
        )
        problem = LinearProblem(
            rows, signs, weight, get_loss(self.loss), self.alpha, l1_ratio, self.fit_intercept
        )
        solution = solve(problem, self.tol, self.max_iter)
        validate_data(self, X, skip_check_array=True)
        self.classes_ = classes
        self.coef_, self.intercept_ = solution.coef[None, :], np.array([solution.intercept])
        self.gap_, self.n_iter_ = solution.gap, solution.n_iter
        return self

    @one_blas_thread()
    def decision_function(self, X: Rows) -> Array:
        """Return x'v + b: positive for the positive class."""
        check_is_fitted(self)
        X = new_rows(self, X)
        return np.asarray(X @ self.coef_[0]) + self.intercept_[0]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def as_learner(learner: LossClassifier | None) -> LossClassifier:
    """Return an unfitted copy of a linear or kernel classifier, linear by default."""
    if not (learner is None or isinstance(learner, LossClassifier)):
        raise TypeError(
            f"learner must be a LinearClassifier, a KernelClassifier or None, got {learner!r}."
        )
    return clone(LinearClassifier() if learner is None else learner)
