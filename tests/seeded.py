"""What a fit leaves behind, part by part, so that two fits can be compared to the last bit."""

import hashlib
import json
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse import issparse

from unflip import ImportanceReweightingClassifier, LabelAudit
from unflip.baselines import IRBLClassifier
from unflip.noise_rates import (
    ConfidentJointRates,
    DualTRates,
    MinimumRates,
    ScottRates,
    SelectiveRates,
)
from unflip.posterior import ProbabilisticPosterior

WORDS = (
    ("red", "hot", "fire", "sun"),
    ("blue", "cold", "ice", "sea"),
    ("green", "leaf", "tree", "moss"),
)


def table(kind: str, n_classes: int, n_rows: int = 90) -> tuple[Any, np.ndarray]:
    """Return rows of numbers or of mixed columns, and their labels, 15 % of them wrong."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n_rows, 3))
    edges = [0.0] if n_classes == 2 else [-0.4, 0.4]
    truth = np.digitize(X[:, 0] + 0.5 * X[:, 1], edges)
    flipped = (truth + (rng.random(n_rows) < 0.15)) % n_classes
    y = np.array(["cat", "dog", "emu"])[flipped]
    if kind == "numbers":
        return X, y
    letters = np.array(["a", "b", "c", "d"])
    frame = pd.DataFrame(
        {
            "number": X[:, 1],
            "gaps": np.where(rng.random(n_rows) < 0.1, np.nan, X[:, 2]),
            "category": pd.Categorical(np.where(rng.random(n_rows) < 0.6, letters[truth], "d")),
            "object": np.where(rng.random(n_rows) < 0.1, None, letters[truth]),
            "text": [" ".join(rng.choice(WORDS[k], 4)) for k in truth],
            "date": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n_rows), "D"),
        }
    )
    frame.loc[3, "date"] = pd.NaT
    frame.loc[5, "text"] = None
    return frame, y


def parts(value: Any, path: str = "", above: tuple[int, ...] = ()) -> Iterator[tuple[str, str]]:
    """Yield each part of a value, of whatever it refers to too: its path, and its bits in words."""
    if id(value) in above:  # a part that refers back to its whole
        return
    above = (*above, id(value))
    if issparse(value):
        value = {"shape": value.shape, **{name: getattr(value, name) for name in _arrays_of(value)}}
    if isinstance(value, np.ndarray) and value.dtype.names:  # between its fields there may be gaps
        value = {name: value[name] for name in value.dtype.names}
    if isinstance(value, np.random.RandomState):
        value = value.get_state(legacy=False)
    if isinstance(value, pd.DataFrame | pd.Series | pd.Index):
        value = value.to_numpy()
    if isinstance(value, np.ndarray | np.generic) and value.dtype != object:
        bits = hashlib.sha256(np.ascontiguousarray(value)).hexdigest()
        yield path, f"{value.dtype} {value.shape} {bits}"
    elif isinstance(value, str | bytes | int | float | complex | None):
        yield path, repr(value)
    elif isinstance(value, Mapping):
        for key, part in value.items():
            yield from parts(part, f"{path}[{key!r}]", above)
    elif isinstance(value, list | tuple | np.ndarray):
        for k, part in enumerate(value):
            yield from parts(part, f"{path}[{k}]", above)
    elif isinstance(value, set | frozenset):
        yield path, repr(sorted(map(repr, value)))
    elif isinstance(value, type) or callable(getattr(value, "__code__", None)):
        yield path, value.__qualname__
    else:
        yield from _parts_of_object(value, path, above)


def _arrays_of(matrix: Any) -> list[str]:
    return [name for name in ("data", "indices", "indptr", "row", "col") if hasattr(matrix, name)]


def _parts_of_object(value: Any, path: str, above: tuple[int, ...]) -> Iterator[tuple[str, str]]:
    yield path, type(value).__qualname__
    if hasattr(value, "__dict__"):
        for name, part in vars(value).items():
            yield from parts(part, f"{path}.{name}", above)
    elif hasattr(value, "__slots__"):
        for name in value.__slots__:
            yield from parts(getattr(value, name, None), f"{path}.{name}", above)
    else:  # compiled: what would be pickled
        yield from parts(value.__reduce_ex__(2)[1:3], path, above)


def fitted_parts(estimator: Any, X: Any) -> dict[str, Any]:
    """Return a fitted estimator and what it predicts for the rows."""
    methods = ("predict", "predict_proba", "decision_function")
    return {
        "fitted": estimator,
        **{name: getattr(estimator, name)(X) for name in methods if hasattr(estimator, name)},
    }


def main() -> None:
    """Print the parts of several fits, to be compared with those of another process."""
    warnings.simplefilter("ignore")
    X, y = table("numbers", 2, 8000)
    X = np.hstack([X, np.random.default_rng(0).normal(size=(8000, 60))])  # BLAS uses threads
    few, few_y = X[:300], y[:300]
    found: dict[str, Any] = {
        "posterior": fitted_parts(ProbabilisticPosterior().fit(X, y), X),
        "rates": MinimumRates("probabilistic", random_state=0).fit(X, y),
        "checked": fitted_parts(IRBLClassifier(random_state=0).fit(X, y), X),
    }
    found["classifier"] = fitted_parts(
        ImportanceReweightingClassifier(
            posterior="probabilistic", noise_rates="quantile", random_state=0
        ).fit(X, y),
        X,
    )
    proba = found["classifier"]["predict_proba"]
    found["probabilities"] = LabelAudit(random_state=0).fit_posterior(proba, y)
    for rates in (ScottRates, ConfidentJointRates, DualTRates, SelectiveRates):
        found[rates.__name__] = rates("probabilistic", random_state=0).fit(few, few_y)
    for kind, n_classes in (("mixed", 2), ("mixed", 3)):
        rows, labels = table(kind, n_classes)
        audit = LabelAudit("probabilistic", cv=2, random_state=0)
        found[f"{kind} {n_classes}"] = [
            fitted_parts(ImportanceReweightingClassifier(random_state=0).fit(rows, labels), rows),
            audit.fit(rows, labels),
        ]
    print(json.dumps(dict(parts(found))))


if __name__ == "__main__":
    main()
