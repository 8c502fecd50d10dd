"""Seeds and sample weights for any estimator of scikit-learn."""

from collections.abc import Callable
from inspect import Parameter, signature
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import issparse
from sklearn import config_context
from sklearn.base import BaseEstimator, clone
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from unflip._utils.threads import one_blas_thread
from unflip._utils.typing import Array, Floats, RandomState, Rows
from unflip._utils.validation import check_table

MAX_SOFT_LABELS, MIN_SOFT_LABEL = 4, 0.01
"""Maximum number of classes per row with soft labels, and minimum probability of each."""

E = TypeVar("E", bound=BaseEstimator)


def optional_generator(
    random_state: int | np.random.RandomState | None,
) -> np.random.RandomState | None:
    """Return a generator for the parts, or None if they are to stay unseeded."""
    return None if random_state is None else check_random_state(random_state)


def stage_generator(
    random_state: int | np.random.RandomState | None,
) -> np.random.RandomState | None:
    """Return the generator of the stages if no classifier is trained.

    A classifier with one seed would have drawn it first. This draws one too, so that the same
    `random_state` gives the same probabilities with and without a classifier.
    """
    generator = optional_generator(random_state)
    if generator is not None:
        generator.randint(np.iinfo(np.int32).max)
    return generator


def check_is_estimator(value: object) -> None:
    """Raise an error unless a value is an estimator."""
    if isinstance(value, type) or not hasattr(value, "get_params"):
        raise TypeError(
            "expected an estimator, which has fit and get_params, such as LogisticRegression(), "
            f"got {value!r}."
        )


def clone_seeded(estimator: E, random_state: RandomState) -> E:
    """Return a clone; if a seed is given, its unset `random_state` parameters are seeded."""
    check_is_estimator(estimator)
    copy = clone(estimator)
    generator = optional_generator(random_state)
    if generator is None:
        return copy
    seeds = {}
    for name, value in sorted(copy.get_params(deep=True).items(), key=lambda item: item[0]):
        if value is None and (name == "random_state" or name.endswith("__random_state")):
            seeds[name] = generator.randint(np.iinfo(np.int32).max)
    return copy.set_params(**seeds)


def delegated(
    method: str, *, to: str = "estimator_", unfitted: str = "_base_estimator"
) -> Callable[[BaseEstimator], bool]:
    """Return the condition that a meta-estimator has a method, namely that its part has it."""

    def check(self: BaseEstimator) -> bool:
        part = getattr(self, to) if hasattr(self, to) else getattr(self, unfitted)()
        getattr(part, method)  # raises an AttributeError if it is missing
        return True

    return check


class PredictsByEstimator:
    """Predictions of a meta-estimator by its `estimator_`, unfitted the `_base_estimator()`."""

    estimator_: Any

    def _base_estimator(self) -> Any:
        raise NotImplementedError

    @one_blas_thread()
    def predict(self, X: Rows) -> Array:
        """Return the most likely true label of every sample.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels.
        """
        return np.asarray(self._fitted_for(X).predict(X))

    @available_if(delegated("predict_proba"))
    @one_blas_thread()
    def predict_proba(self, X: Rows) -> Array:
        """Return P(true y | x), one column per class in the order of `classes_`.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Probabilities.
        """
        return np.asarray(self._fitted_for(X).predict_proba(X))

    @available_if(delegated("predict_log_proba"))
    @one_blas_thread()
    def predict_log_proba(self, X: Rows) -> Array:
        """Return log P(true y | x), one column per class in the order of `classes_`.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Logarithms of probabilities.
        """
        return np.asarray(self._fitted_for(X).predict_log_proba(X))

    @available_if(delegated("decision_function"))
    @one_blas_thread()
    def decision_function(self, X: Rows) -> Array:
        """Return the classifier's score of every sample; of two classes, > 0 for the positive one.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            Scores.
        """
        return np.asarray(self._fitted_for(X).decision_function(X))

    def _fitted_for(self, X: Rows) -> Any:
        check_is_fitted(self)
        check_table(self, X, reset=False)
        return self.estimator_


def fit_weighted(
    estimator: BaseEstimator,
    X: Rows,
    y: ArrayLike,
    sample_weight: ArrayLike,
    *,
    row_weight: ArrayLike | None = None,
) -> BaseEstimator:
    """Fit `estimator` (in place) with weights for its loss, and return it."""
    parameters = weight_parameters(estimator)
    weights = {name: sample_weight if last else row_weight for name, last in parameters.items()}
    weights = {name: weight for name, weight in weights.items() if weight is not None}
    # weights are addressed to their steps by name, whatever routing the user has switched on
    with config_context(enable_metadata_routing=False):
        return estimator.fit(X, y, **weights)


def fit_soft_labels(
    estimator: BaseEstimator,
    X: Rows,
    proba: Floats,
    classes: Array,
    *,
    row_weight: Floats | None = None,
) -> BaseEstimator:
    """Fit `estimator` (in place) to every row with every class k at weight proba_k, and return it.

    A row is repeated for its most probable classes, at most `MAX_SOFT_LABELS` and none below
    `MIN_SOFT_LABEL`; their weights are scaled to the weight of the row.
    """
    copies = soft_copies(X, proba, classes, row_weight)
    return fit_weighted(estimator, copies.X, copies.y, copies.weight, row_weight=copies.row_weight)


class Copies(NamedTuple):
    """Rows repeated for their most probable classes, each with its weight."""

    X: Rows
    y: Array
    weight: Floats
    row_weight: Floats | None


def soft_copies(X: Rows, proba: Floats, classes: Array, row_weight: Floats | None = None) -> Copies:
    """Return the rows as :func:`fit_soft_labels` trains on them."""
    kept = np.where(proba >= MIN_SOFT_LABEL, proba, 0.0)
    if proba.shape[1] > MAX_SOFT_LABELS:
        lowest = np.partition(kept, -MAX_SOFT_LABELS, axis=1)[:, -MAX_SOFT_LABELS, None]
        kept[kept < lowest] = 0.0
    # a class without rows could not be predicted
    most_probable = proba.argmax(axis=0), np.arange(classes.size)
    kept[most_probable] = np.maximum(proba[most_probable], MIN_SOFT_LABEL)
    kept /= kept.sum(axis=1, keepdims=True)
    if row_weight is not None:
        kept *= row_weight[:, None]
    rows, codes = np.nonzero(kept)
    repeated = None if row_weight is None else np.asarray(row_weight)[rows]
    taken = X.tocsr()[rows] if issparse(X) else _safe_indexing(X, rows)
    return Copies(taken, classes[codes], kept[rows, codes], repeated)


def weight_parameters(estimator: BaseEstimator) -> dict[str, bool]:
    """Return the names under which `fit` takes weights, and whether each reaches the loss.

    If none does, raise an error.
    """
    parameters = _weight_parameters(estimator)
    if not any(parameters.values()):
        raise TypeError(
            f"{_innermost(estimator)} does not take sample_weight in its fit, so it cannot learn "
            "from weighted samples. Use one that does, such as LogisticRegression, SVC or "
            "HistGradientBoostingClassifier, as it is or as the last step of a Pipeline."
        )
    return parameters


def _weight_parameters(estimator: BaseEstimator) -> dict[str, bool]:
    if isinstance(estimator, Pipeline):
        names = {}
        for position, (name, step) in enumerate(estimator.steps):
            is_last = position == len(estimator.steps) - 1
            if step not in (None, "passthrough"):
                for key, reaches_loss in _weight_parameters(step).items():
                    names[f"{name}__{key}"] = reaches_loss and is_last
        return names
    parameters = signature(estimator.fit).parameters
    if "sample_weight" in parameters:
        return {"sample_weight": True}
    if not any(p.kind is Parameter.VAR_KEYWORD for p in parameters.values()):
        return {}
    # a search, or another meta-estimator that passes its arguments on to `estimator`
    inner = getattr(estimator, "estimator", None)
    return {"sample_weight": True} if inner is None else _weight_parameters(inner)


def _innermost(estimator: BaseEstimator) -> str:
    """Return the class name of the innermost estimator."""
    if isinstance(estimator, Pipeline):
        return f"{_innermost(estimator.steps[-1][1])} (last step of the Pipeline)"
    inner = getattr(estimator, "estimator", None)
    name = type(estimator).__name__
    return name if inner is None else f"{_innermost(inner)} (inside {name})"
