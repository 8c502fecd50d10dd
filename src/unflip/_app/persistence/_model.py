"""A loaded model is looked through before it is used.

Types say little of the values in them. Compiled code of scikit-learn and scipy follows indices that
it finds in a fitted estimator without a look at where they lead, so they are checked here, for the
classes of :mod:`unflip._app.persistence._types` that hand such indices on.
"""

from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.svm import SVC
from sklearn.utils.validation import check_is_fitted

from unflip._app.persistence._archive import BrokenFileError
from unflip._typing import Array
from unflip.reweighting import ImportanceReweightingClassifier


def check_model(model: BaseEstimator) -> None:
    """Refuse what is not a fitted classifier of unflip, alone or at the end of a pipeline."""
    last = model.steps[-1][1] if type(model) is Pipeline else model
    if type(last) is not ImportanceReweightingClassifier:
        raise BrokenFileError(f"it holds {type(last).__name__}, not a classifier of unflip")
    check_is_fitted(last, ["classes_", "estimator_", "n_features_in_"])


def unsound_types(model: BaseEstimator) -> list[str]:
    """Return the names of classes whose objects could lead code astray.

    They have indices that lead elsewhere, or a method replaced. An estimator whose settings are
    not those of `unflip fit` may be among them, too.
    """
    names = set()
    for part in _parts(model):
        kind = type(part)
        needed, check = CHECKS.get(kind, (None, None))
        is_fitted = needed in vars(part)  # else it refuses to work
        if _hidden_methods(part) or (check is not None and is_fitted and not check(part)):
            names.add(f"{kind.__module__}.{kind.__name__}")
    return sorted(names)


def _parts(model: BaseEstimator) -> Iterator[Any]:
    """Yield all objects with attributes that a model is made of."""
    left, seen = [model], {id(model)}
    while left:
        part = left.pop()
        if isinstance(part, (list, tuple, set, frozenset)):
            within = list(part)
        elif isinstance(part, dict):
            within = [*part, *part.values()]
        elif isinstance(part, np.ndarray) and part.dtype.hasobject:
            within = list(part.flat)
        else:
            within = []
        if hasattr(part, "__dict__") and not isinstance(part, (type, ModuleType)):
            yield part
            within += vars(part).values()
        for each in within:
            if id(each) not in seen:
                seen.add(id(each))
                left.append(each)


def _hidden_methods(part: Any) -> list[str]:
    """Return the methods that an attribute has taken the place of."""
    return [name for name in vars(part) if callable(getattr(type(part), name, None))]


def _has_sound_trees(model: HistGradientBoostingClassifier) -> bool:
    """Return whether every tree goes down, and asks for columns that are there."""
    n_classes = model.classes_.size
    trees_per_round = 1 if n_classes == 2 else n_classes
    return model.n_trees_per_iteration_ == trees_per_round and all(
        len(trees) == trees_per_round
        and all(_is_sound_tree(tree.nodes, model.n_features_in_) for tree in trees)
        for trees in model._predictors
    )


def _is_sound_tree(nodes: Array, n_features: int) -> bool:
    place = np.arange(nodes.size)
    goes_on = nodes["is_leaf"] == 0
    inner, place = nodes[goes_on], place[goes_on]
    return bool(
        nodes.ndim == 1
        and nodes.size > 0
        and all(np.all((place < inner[k]) & (inner[k] < nodes.size)) for k in ("left", "right"))
        and np.all((inner["feature_idx"] >= 0) & (inner["feature_idx"] < n_features))
        and not inner["is_categorical"].any()
    )


def _has_sound_vectors(model: SVC) -> bool:
    """Return whether the arrays of libsvm are of sizes that fit."""
    n_vectors, n_features = model.support_vectors_.shape
    n_classes = model.classes_.size
    n_pairs = n_classes * (n_classes - 1) // 2
    return bool(
        "_impl" not in vars(model)
        and model.kernel == "rbf"
        and model._sparse is False
        and model.probability in (False, "deprecated")
        and n_features == model.n_features_in_
        and model.support_.shape == (n_vectors,)
        and model._n_support.shape == (n_classes,)
        and model._n_support.min() >= 0
        and model._n_support.sum() == n_vectors
        and model._dual_coef_.shape == (n_classes - 1, n_vectors)
        and model._intercept_.shape == (n_pairs,)
        and all(
            array.flags.c_contiguous
            for array in (model.support_vectors_, model._dual_coef_, model._intercept_)
        )
    )


def _has_sound_vocabulary(model: TfidfVectorizer) -> bool:
    """Return whether words are columns, counted from 0, and texts are not names of files."""
    columns = model.vocabulary_.values()
    return (
        model.input == "content"
        and all(isinstance(column, (int, np.integer)) for column in columns)
        and sorted(columns) == list(range(len(columns)))
    )


def _has_sound_categories(model: OneHotEncoder) -> bool:
    """Return whether there is a column for each category that is not dropped."""
    categories = model.categories_
    dropped = model._drop_idx_after_grouping
    dropped = [None] * len(categories) if dropped is None else list(dropped)
    return (
        model._infrequent_enabled is False
        and len(dropped) == len(categories) == model.n_features_in_
        and all(_is_sorted(values) for values in categories)
        and all(
            place is None or 0 <= place < len(values)
            for place, values in zip(dropped, categories, strict=True)
        )
        and list(model._n_features_outs)
        == [
            len(values) - (place is not None)
            for place, values in zip(dropped, categories, strict=True)
        ]
    )


def _is_sorted(values: Array) -> bool:
    """Return whether a search in sorted values finds places among them."""
    if values.dtype.hasobject:
        return len(set(values.tolist())) == values.size  # looked up in a dict instead
    return values.ndim == 1 and bool(np.all(values[:-1] < values[1:]))


CHECKS: dict[type, tuple[str, Callable[[Any], bool]]] = {
    HistGradientBoostingClassifier: ("_predictors", _has_sound_trees),
    OneHotEncoder: ("_n_features_outs", _has_sound_categories),
    SVC: ("support_vectors_", _has_sound_vectors),
    TfidfVectorizer: ("vocabulary_", _has_sound_vocabulary),
}
"""By class: what it cannot work without, and whether that is sound."""
