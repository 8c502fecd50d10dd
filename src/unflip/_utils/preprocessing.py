"""Rows of text, categories, dates and gaps as numbers, for the stages that compute with numbers."""

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

GAPS, MIXED = "gaps", "mixed"
"""What rows may hold besides numbers: numbers that are missing; text, categories and dates."""


def holds(X: Any) -> str | None:
    """Return what rows hold besides numbers: "gaps", "mixed", or None where they are numbers."""
    if sparse.issparse(X):
        return None
    frame = nw.from_native(X, allow_series=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        kinds = frame.schema.values()
        if not all(kind.is_numeric() or kind == nw.Boolean for kind in kinds):
            return MIXED
        # by position: the name of a column may be a number
        return (
            GAPS if any(_has_gaps(column.to_numpy()) for column in frame.iter_columns()) else None
        )
    try:
        if isinstance(frame, nw.Series):
            values = frame.to_numpy()
        else:
            # numpy would store texts in fixed width, each with as much room as the longest takes
            is_array = hasattr(X, "dtype") or hasattr(X, "__array__")
            values = np.asarray(X) if is_array else np.asarray(X, dtype=object)
    except ValueError:  # rows of different lengths, which others refuse in better words
        return None
    if values.dtype.kind == "O":
        if any(isinstance(value, str) for value in values.flat):
            return MIXED
        try:
            values = values.astype(float)
        except ValueError:
            return MIXED
        except TypeError:  # neither numbers nor strings: others say so
            return None
    if values.dtype.kind == "U":
        return MIXED
    return GAPS if _has_gaps(values) else None


def _has_gaps(values: Array) -> bool:
    return values.dtype.kind in "fO" and bool(values.size) and bool(np.isnan(_least(values)))


def _least(values: Array) -> Any:
    return values.min() if values.dtype.kind == "f" else values.astype(float).min()


def default_classifier(X: Any) -> BaseEstimator:
    """Return the classifier that is trained where none is given: logistic regression.

    Dense columns are standardised, so that the solver converges whatever their units. Of columns
    that are no numbers numbers are made first, and gaps are filled, as by the command line.
    """
    model = LogisticRegression(max_iter=1000)
    if sparse.issparse(X):
        # counts or indicators of one unit, of which scaling would make the rarest the loudest
        return model
    classifier = make_pipeline(StandardScaler(), model)
    kind = holds(X)
    if kind is None:
        return classifier
    table = Pipeline(_without_gaps()) if kind == GAPS else make_vectorizer()
    return Pipeline([*table.steps, ("classifier", classifier)])


def fit_preprocessing(X: Any, estimator: Any) -> tuple[Any, Pipeline | None]:
    """Return rows as numbers, and what made them so; None where they were numbers before.

    By the first steps of the classifier's own Pipeline, up to the first one that needs labels:
    its rows would know them. Where these do not make numbers, or there are none, by the
    vectoriser of the command line.
    """
    kind = holds(X)
    if kind is None:
        return X, None
    rows, fitted = _by_own_steps(X, estimator)
    if fitted and holds(rows) is None:
        return rows, Pipeline(fitted)
    general = Pipeline(_without_gaps()) if kind == GAPS else make_vectorizer()
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
        except (TypeError, ValueError):  # it needs labels, or fails with them too, and says so
            break
        fitted.append((name, made))
    return rows, fitted


def make_vectorizer() -> Pipeline:
    """Return what turns columns of any kind into numbers without gaps.

    After the `ColumnEncoder` the mean fills the gaps, with a column that says where they were, and
    every column is centred: what works in single precision, such as a forest, loses nothing where
    values are large and close together. It does not look at labels, and nothing in it is random.
    """
    from unflip._utils.columns import ColumnEncoder  # needs polars

    return Pipeline([("columns", ColumnEncoder()), *_without_gaps()])


def _without_gaps() -> list[tuple[str, Any]]:
    return [("gaps", SimpleImputer(add_indicator=True)), ("centre", StandardScaler(with_std=False))]
