"""Conversion of a model's fitted state to plain values and arrays, and back.

Values that are read only fill the fields of unflip's own classes, and every array must have the
type and shape that these imply.
"""

import re
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from unflip._app.persistence._archive import Archive, BrokenFileError
from unflip._app.persistence._predictors import Boosting, Imputation, Logistic, Predictor, Svm
from unflip._app.tables import MAX_CLASSES
from unflip._utils.columns import (
    FORMATS,
    MAX_CATEGORIES,
    MAX_CHARACTERS,
    N_COMPONENTS,
    CategoryColumn,
    Column,
    ColumnEncoder,
    DateColumn,
    NumberColumn,
    TextColumn,
)
from unflip._utils.typing import Array, Record

MOST_NODES = 61
"""Maximum number of nodes of a tree, with the 31 leaves of `--estimator boosting`."""

MOST_ROUNDS = 100
"""Maximum number of iterations of `--estimator boosting`."""

LONGEST_LABEL = 1000
"""Maximum number of characters of a label, which every predicted row repeats."""

LABELS = {"integers": int, "booleans": bool, "texts": str}
"""Kinds of labels."""

LARGEST = -np.finfo(float).max, np.finfo(float).max

SURROGATE = re.compile(r"[\ud800-\udfff]")

Arrays = dict[str, Array]


def classifier_state(classifier: Any) -> tuple[Record, Arrays] | None:
    """Return the state of a fitted classifier; None if it is another package's."""
    scaled, last = {}, classifier
    if isinstance(classifier, Pipeline):
        scaler, *others = [step for _, step in classifier.steps]
        if type(scaler) is not StandardScaler or len(others) != 1:
            return None
        scaled, last = {"mean": scaler.mean_, "scale": scaler.scale_}, others[0]
    if type(last) is HistGradientBoostingClassifier and not scaled:
        trees = _trees(last)
        return None if trees is None else ({"kind": "boosting"}, trees)
    if type(last) is LogisticRegression and scaled:
        return {"kind": "logistic"}, {**scaled, "coef": last.coef_, "intercept": last.intercept_}
    if type(last) is SVC and scaled and last.kernel == "rbf":
        sign = -1 if last.classes_.size == 2 else 1  # scikit-learn's sign for two classes
        return {"kind": "svm", "gamma": float(last._gamma)}, {
            **scaled,
            "vectors": last.support_vectors_,
            "dual_coef": sign * last.dual_coef_,
            "intercept": sign * last.intercept_,
            "n_support": last.n_support_.astype(np.int32),
        }
    return None


def _trees(model: HistGradientBoostingClassifier) -> Arrays | None:
    """Return the trees as arrays of one width; None if unflip does not grow such trees."""
    trees = [tree.nodes for trees in model._predictors for tree in trees]
    if (
        max(map(len, trees), default=0) > MOST_NODES
        or len(model._predictors) > MOST_ROUNDS
        or any(nodes["is_categorical"].any() for nodes in trees)
    ):
        return None
    shape = len(trees), MOST_NODES
    itself = np.tile(np.arange(MOST_NODES, dtype=np.int32), (shape[0], 1))
    left, right = itself.copy(), itself.copy()
    feature, threshold, value = np.zeros(shape, dtype=np.int32), np.zeros(shape), np.zeros(shape)
    for k, nodes in enumerate(trees):
        inner = np.flatnonzero(nodes["is_leaf"] == 0)
        left[k, inner], right[k, inner] = nodes["left"][inner], nodes["right"][inner]
        feature[k, inner] = nodes["feature_idx"][inner]
        # a split between a number and NaN has the threshold infinity
        threshold[k, inner] = np.clip(nodes["num_threshold"][inner], *LARGEST)
        value[k, : len(nodes)] = nodes["value"]
    baseline = np.asarray(model._baseline_prediction, dtype=float).ravel()
    return {
        "baseline": baseline,
        "feature": feature,
        "threshold": threshold,
        "left": left,
        "right": right,
        "value": value,
    }


def encoder_state(encoder: ColumnEncoder) -> tuple[list[Record], Arrays]:
    """Return the state of a fitted encoder."""
    columns: list[Record] = []
    arrays: Arrays = {}
    for k, column in enumerate(encoder.columns_):
        state: Record = {"name": column.name, "kind": column.kind}
        if isinstance(column, DateColumn):
            state |= {"format": column.format, "has_time": column.has_time}
        elif isinstance(column, CategoryColumn):
            state |= {"values": list(column.values), "has_missing": column.has_missing}
        elif isinstance(column, TextColumn):
            state |= {"n_components": column.width, "scale": column.scale}
            arrays[f"text_{k}_ngrams"] = column.ngrams
            arrays[f"text_{k}_idf"] = column.idf
            arrays[f"text_{k}_components"] = column.components
        columns.append(state)
    return columns, arrays


def labels_state(classes: Array) -> Record:
    """Return the labels of the classes."""
    values = classes.tolist()
    for kind, type_ in LABELS.items():
        if all(type(value) is type_ for value in values):
            if kind == "texts" and max(map(len, values)) > LONGEST_LABEL:
                raise BrokenFileError(f"a label has more than {LONGEST_LABEL} characters")
            return {"kind": kind, "values": values}
    raise BrokenFileError("its labels are neither whole numbers, booleans nor texts")


def read_encoder(state: Any, archive: Archive, names: set[str]) -> ColumnEncoder:
    """Return an encoder of columns of these names."""
    encoder = ColumnEncoder()
    _check(isinstance(state, list) and 0 < len(state) <= len(names), "columns")
    encoder.columns_ = [_column(k, one, archive) for k, one in enumerate(state)]
    used = [column.name for column in encoder.columns_]
    _check(len(set(used)) == len(used) and set(used) <= names, "names of columns")
    return encoder


def _column(k: int, state: Any, archive: Archive) -> Column:
    _check(isinstance(state, dict) and isinstance(state.get("name"), str), "a column")
    name, kind = state["name"], state.get("kind")
    if kind == "number":
        return NumberColumn(name)
    if kind == "date":
        written, has_time = state.get("format"), state.get("has_time")
        _check(written is None or _is_count(written, len(FORMATS) - 1), "the format of dates")
        _check(type(has_time) is bool, "the parts of dates")
        return DateColumn(name, written, has_time)
    if kind == "category":
        values, has_missing = state.get("values"), state.get("has_missing")
        _check(isinstance(values, list) and type(has_missing) is bool, "categories")
        _check(0 < len(values) <= MAX_CATEGORIES, "the number of categories")
        _check(all(_is_text(value, MAX_CHARACTERS) for value in values), "a category")
        _check(len(set(values)) == len(values), "categories")
        return CategoryColumn(name, tuple(values), has_missing)
    _check(kind == "text", "the kind of a column")
    scale, width = state.get("scale"), state.get("n_components")
    _check(_is_positive(scale), "the scale of texts")
    _check(_is_count(width, N_COMPONENTS) and width > 0, "the number of components")
    ngrams = archive.array(f"text_{k}_ngrams", np.uint64, (None,))
    _check(ngrams.size >= width and bool((ngrams[1:] > ngrams[:-1]).all()), "the n-grams")
    idf = archive.array(f"text_{k}_idf", np.float32, (ngrams.size,))
    components = archive.array(f"text_{k}_components", np.float32, (width, ngrams.size))
    return TextColumn(name, ngrams, idf, components, float(scale))


def read_imputation(archive: Archive, n_columns: int) -> Imputation:
    """Return the imputation of this number of columns."""
    mean = archive.array("gaps_mean", np.float64, (n_columns,))
    flagged = archive.array("gaps_flagged", np.int32, (None,))
    _check(flagged.size <= n_columns, "flags of missing values")
    _check(bool(((flagged >= 0) & (flagged < n_columns)).all()), "flags of missing values")
    centre = archive.array("gaps_centre", np.float64, (n_columns + flagged.size,))
    return Imputation(mean, flagged, centre)


def read_labels(state: Any) -> Array:
    """Return the labels of the classes; texts as objects."""
    _check(isinstance(state, dict) and state.get("kind") in tuple(LABELS), "the labels")
    values, kind = state.get("values"), state["kind"]
    _check(isinstance(values, list) and 2 <= len(values) <= MAX_CLASSES, "the number of labels")
    _check(all(type(value) is LABELS[kind] for value in values), "the labels")
    _check(len(set(values)) == len(values), "the labels")
    if kind == "integers":
        _check(all(-(2**63) <= value < 2**63 for value in values), "the labels")
        return np.array(values, dtype=np.int64)
    if kind == "booleans":
        return np.array(values)
    _check(all(_is_text(value, LONGEST_LABEL) for value in values), "the labels")
    return np.array(values, dtype=object)


def read_classifier(state: Any, archive: Archive, n_columns: int, n_classes: int) -> Predictor:
    """Return the classifier for these numbers of columns and classes."""
    _check(isinstance(state, dict), "the classifier")
    kind = state.get("kind")
    n_scores = 1 if n_classes == 2 else n_classes
    if kind == "boosting":
        return _read_trees(archive, n_columns, n_scores)
    mean = archive.array("classifier_mean", np.float64, (n_columns,))
    scale = archive.array("classifier_scale", np.float64, (n_columns,))
    _check(bool((scale > 0).all()), "the scale of columns")
    if kind == "logistic":
        coef = archive.array("classifier_coef", np.float64, (n_scores, n_columns))
        intercept = archive.array("classifier_intercept", np.float64, (n_scores,))
        return Logistic(mean, scale, coef, intercept)
    _check(kind == "svm" and _is_positive(state.get("gamma")), "the classifier")
    vectors = archive.array("classifier_vectors", np.float64, (None, n_columns))
    _check(len(vectors) > 0, "the support vectors")
    n_support = archive.array("classifier_n_support", np.int32, (n_classes,))
    n_pairs = n_classes * (n_classes - 1) // 2
    within = ((n_support >= 0) & (n_support <= len(vectors))).all()
    _check(bool(within) and int(n_support.sum()) == len(vectors), "the support vectors")
    dual_coef = archive.array("classifier_dual_coef", np.float64, (n_classes - 1, len(vectors)))
    intercept = archive.array("classifier_intercept", np.float64, (n_pairs,))
    gamma = float(state["gamma"])
    return Svm(mean, scale, vectors, dual_coef, intercept, n_support, gamma)


def _read_trees(archive: Archive, n_columns: int, n_scores: int) -> Boosting:
    """Return trees whose children come after their parents and whose columns exist."""
    feature = archive.array("classifier_feature", np.int32, (None, MOST_NODES))
    n_trees = len(feature)
    _check(n_trees % n_scores == 0 and n_trees <= MOST_ROUNDS * n_scores, "the number of trees")
    _check(bool(((feature >= 0) & (feature < n_columns)).all()), "the columns of trees")
    left, right = (
        archive.array(f"classifier_{name}", np.int32, feature.shape) for name in ("left", "right")
    )
    node = np.arange(MOST_NODES)
    is_leaf = (left == node) & (right == node)
    is_inner = (left > node) & (right > node) & (left < MOST_NODES) & (right < MOST_NODES)
    _check(bool((is_leaf | is_inner).all()), "the nodes of trees")
    threshold = archive.array("classifier_threshold", np.float64, feature.shape)
    value = archive.array("classifier_value", np.float64, feature.shape)
    baseline = archive.array("classifier_baseline", np.float64, (n_scores,))
    return Boosting(baseline, feature, threshold, left, right, value)


def _check(is_right: bool, what: str) -> None:
    if not is_right:
        raise BrokenFileError(f"the file has invalid data for {what}")


def _is_count(value: Any, most: int) -> bool:
    return type(value) is int and 0 <= value <= most


def _is_positive(value: Any) -> bool:
    return type(value) in (int, float) and 0 < value < LARGEST[1]


def _is_text(value: Any, most: int) -> bool:
    # an unpaired surrogate cannot be written to a table
    return isinstance(value, str) and len(value) <= most and not SURROGATE.search(value)
