"""Text, categories, dates and missing values as numbers, for the stages that need numbers."""

from typing import Any

import narwhals as nw
import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from unflip._utils.typing import Array

MISSING, MIXED = "missing", "mixed"
"""Contents other than numbers: missing values; text, categories and dates."""


def holds(X: Any) -> str | None:
    """Return what rows hold besides numbers: "missing", "mixed", or None."""
    if sparse.issparse(X):
        return None
    frame = nw.from_native(X, allow_series=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        kinds = frame.schema.values()
        if not all(kind.is_numeric() or kind == nw.Boolean for kind in kinds):
            return MIXED
        # by position: the name of a column may be a number
        return (
            MISSING
            if any(_has_missing(column.to_numpy()) for column in frame.iter_columns())
            else None
        )
    try:
        if isinstance(frame, nw.Series):
            values = frame.to_numpy()
        else:
            # numpy would store texts in the width of the longest
            is_array = hasattr(X, "dtype") or hasattr(X, "__array__")
            values = np.asarray(X) if is_array else np.asarray(X, dtype=object)
    except ValueError:  # rows of different lengths, for which others have better messages
        return None
    if values.dtype.kind == "O":
        if any(isinstance(value, str) for value in values.flat):
            return MIXED
        try:
            values = values.astype(float)
        except ValueError:
            return MIXED
        except TypeError:  # neither numbers nor strings, which others refuse
            return None
    if values.dtype.kind == "U":
        return MIXED
    return MISSING if _has_missing(values) else None


def _has_missing(values: Array) -> bool:
    return values.dtype.kind in "fO" and bool(values.size) and bool(np.isnan(_least(values)))


def _least(values: Array) -> Any:
    return values.min() if values.dtype.kind == "f" else values.astype(float).min()


def default_classifier(X: Any) -> BaseEstimator:
    """Return the default classifier: logistic regression.

    Dense columns are standardised, so that the solver converges whatever their units. Non-numeric
    columns are encoded and missing values imputed first, as by the command line.
    """
    model = LogisticRegression(max_iter=1000)
    if sparse.issparse(X):
        # scaling counts or indicators would give the rarest the largest values
        return model
    classifier = make_pipeline(StandardScaler(), model)
    kind = holds(X)
    if kind is None:
        return classifier
    table = Pipeline(_imputation()) if kind == MISSING else make_vectorizer()
    return Pipeline([*table.steps, ("classifier", classifier)])


def fit_preprocessing(X: Any, estimator: Any) -> tuple[Any, Pipeline | None]:
    """Return encoded rows, and the fitted encoder; None if the rows are numbers already.

    The encoder consists of the first steps of the classifier's own Pipeline, up to the first that
    needs labels, which would leak them. If these do not yield numbers, it is the vectoriser of the
    command line.
    """
    kind = holds(X)
    if kind is None:
        return X, None
    rows, fitted = _by_own_steps(X, estimator)
    if fitted and holds(rows) is None:
        return rows, Pipeline(fitted)
    general = Pipeline(_imputation()) if kind == MISSING else make_vectorizer()
    return general.fit_transform(X), general


def _by_own_steps(X: Any, estimator: Any) -> tuple[Any, list[tuple[str, Any]]]:
    """Return rows after the first steps of a Pipeline, or of one inside a search, and the steps."""
    while estimator is not None and not isinstance(estimator, Pipeline):
        estimator = getattr(estimator, "estimator", None)
    rows, fitted = X, []
    for name, step in [] if estimator is None else estimator.steps[:-1]:
        if step in (None, "passthrough"):
            continue
        made = clone(step)
        try:
            rows = made.fit_transform(rows)
        except (TypeError, ValueError):  # it needs labels, or will fail again with a message
            break
        fitted.append((name, made))
    return rows, fitted


def make_vectorizer() -> Pipeline:
    """Return an encoder of columns of any kind as numbers without missing values.

    After the `ColumnEncoder`, missing values are replaced by the mean, with an indicator column,
    and every column is centred, so that large values close together stay distinct in single
    precision. It does not use labels, and it is deterministic.
    """
    try:
        from unflip._utils.columns import ColumnEncoder
    except ImportError as error:
        raise ImportError(
            "columns of text, categories or dates need polars: pip install 'unflip[cli]'"
        ) from error

    return Pipeline([("columns", ColumnEncoder()), *_imputation()])


def _imputation() -> list[tuple[str, Any]]:
    return [
        ("impute", SimpleImputer(add_indicator=True)),
        ("centre", StandardScaler(with_std=False)),
    ]
