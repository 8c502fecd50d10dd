"""What `benchmarks.fuzz` calls with: rows, labels, weights, rates and parameters, good and odd."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC
from sklearn.utils import get_tags

from unflip import ImportanceReweightingClassifier, InverseRates, NoiseRates, TransitionMatrix
from unflip.audit import LabelAudit
from unflip.noise_rates import ALIASES, MinimumRates, ScottRates, make_rates
from unflip.streaming import ArrayBatches

ODD: list[Callable[[], Any]] = [
    lambda: None,
    lambda: -1,
    lambda: 0,
    lambda: 1,
    lambda: 3,
    lambda: 0.5,
    lambda: 1.5,
    lambda: -0.1,
    lambda: float("nan"),
    lambda: float("inf"),
    lambda: 1e-300,
    lambda: 1e300,
    lambda: True,
    lambda: "bogus",
    lambda: "",
    list,
    dict,
    lambda: (1, 2),
    lambda: np.array([0.1, 0.2]),
    lambda: np.array("a"),
    lambda: b"bytes",
    object,
]
"""What no parameter expects, or not all do."""


@dataclass
class Sizes:
    """How much of what a case has, so that its arguments fit each other unless they are odd."""

    random: np.random.Generator
    n: int
    d: int
    k: int
    """Classes."""
    odd: float
    """How often an argument is odd."""
    kind: str
    """How labels come, one of `LABELS`, the same for all labels of a case."""

    def is_odd(self) -> bool:
        """Return whether this argument is to be odd."""
        return bool(self.random.random() < self.odd)

    def one_of(self, choices: Any) -> Any:
        """Return one of the choices; one that is made anew is called."""
        return choices[int(self.random.integers(len(choices)))]

    def made(self, choices: Any) -> Any:
        """Return what one of the choices makes."""
        return self.one_of(choices)()


def draw_sizes(random: np.random.Generator) -> Sizes:
    """Return the sizes of a case: mostly a few dozen rows of two classes."""
    shapes = [(0, 2), (1, 2), (2, 1), (5, 3), (9, 2), (10, 2), (12, 40), (40, 1)]
    n, d = (40, 3) if random.random() < 0.6 else shapes[int(random.integers(len(shapes)))]
    k = int(random.choice([1, 2, 3, 6], p=[0.05, 0.75, 0.15, 0.05]))
    odd = float(random.choice([0.0, 0.05, 0.2]))
    return Sizes(random, n, d, k, odd, kind=list(LABELS)[int(random.integers(len(LABELS)))])


def codes_of(s: Sizes, n: int | None = None) -> Any:
    """Return classes 0 to k - 1, all of them where there are rows enough."""
    size = s.n if n is None else n
    return s.random.permutation(np.arange(size) % s.k)


ROWS: dict[str, Callable[[Sizes, Any], Any]] = {
    "float64": lambda s, X: X,
    "float32": lambda s, X: X.astype(np.float32),
    "fortran": lambda s, X: np.asfortranarray(X),
    "read-only": lambda s, X: _read_only(X),
    "integers": lambda s, X: (10 * X).astype(int),
    "booleans": lambda s, X: X > 0,
    "objects": lambda s, X: X.astype(object),
    "list": lambda s, X: X.tolist(),
    "pandas": lambda s, X: pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])]),
    "polars": lambda s, X: pl.DataFrame(X, schema=[f"x{j}" for j in range(X.shape[1])]),
    "csr": lambda s, X: sparse.csr_array(X),
    "csc matrix": lambda s, X: sparse.csc_matrix(X),
    "coo": lambda s, X: sparse.coo_array(X),
    "constant column": lambda s, X: _with_column(X, 1.0),
    "all constant": lambda s, X: np.ones_like(X),
    "two columns alike": lambda s, X: np.column_stack([X, X]),
    "rows alike": lambda s, X: np.repeat(X[: max(1, len(X) // 4)], 4, axis=0)[: len(X)],
    "few values": lambda s, X: X.round(),
    "in millions": lambda s, X: X * 1e6,
    "in billionths": lambda s, X: X * 1e-9,
    "far from 0": lambda s, X: X + 1e9,
    "heavy tails": lambda s, X: np.sign(X) * np.abs(X) ** 9,
}

ODD_ROWS: dict[str, Callable[[Sizes, Any], Any]] = {
    "NaN": lambda s, X: _with_entry(X, np.nan),
    "infinity": lambda s, X: _with_entry(X, np.inf),
    "huge column": lambda s, X: _with_column(X, X[:, :1] * 1e200),
    "large column": lambda s, X: _with_column(X, X[:, :1] * 1e120),
    "tiny": lambda s, X: X * 1e-200,
    "huge in single precision": lambda s, X: (X * 1e30).astype(np.float32),
    "NaN in pandas": lambda s, X: pd.DataFrame(_with_entry(X, np.nan)),
    "strings": lambda s, X: X.astype(str),
    "words": lambda s, X: np.full(X.shape, "word"),
    "words in pandas": lambda s, X: pd.DataFrame({"a": ["x"] * len(X), "b": range(len(X))}),
    "None among objects": lambda s, X: _with_entry(X.astype(object), None),
    "complex": lambda s, X: X.astype(complex),
    "dates": lambda s, X: np.full(X.shape, np.datetime64("2020-01-01")),
    "one row fewer": lambda s, X: X[:-1],
    "one column fewer": lambda s, X: X[:, :-1],
    "one-dimensional": lambda s, X: X[:, 0],
    "three-dimensional": lambda s, X: X[:, :, None],
    "scalar": lambda s, X: 3.0,
    "a string": lambda s, X: "rows",
    "nothing": lambda s, X: None,
    "ragged": lambda s, X: [[1.0], [1.0, 2.0]],
    "no columns": lambda s, X: X[:, :0],
}


def rows(s: Sizes, n: int | None = None) -> Any:
    """Return rows, whose first column tells the classes apart in part."""
    size = s.n if n is None else n
    X = s.random.normal(size=(size, s.d))
    X[:, 0] += 2 * (np.arange(size) % s.k)
    if s.is_odd():
        return s.one_of(list(ODD_ROWS.values()))(s, X)
    return s.one_of(list(ROWS.values()))(s, X) if s.random.random() < 0.5 else X


NAMES = np.array(["ant", "bee", "cat", "dog", "elk", "fox"])

LABELS: dict[str, Callable[[Sizes, Any], Any]] = {
    "integers": lambda s, y: y,
    "from -1": lambda s, y: y - 1,
    "floats": lambda s, y: y.astype(float),
    "strings": lambda s, y: NAMES[y],
    "booleans": lambda s, y: y > 0,
    "small integers": lambda s, y: y.astype(np.int8),
    "list": lambda s, y: y.tolist(),
    "list of strings": lambda s, y: NAMES[y].tolist(),
    "tuple": lambda s, y: tuple(y.tolist()),
    "objects": lambda s, y: NAMES[y].astype(object),
    "objects of numbers": lambda s, y: y.astype(object),
    "column": lambda s, y: y[:, None],
    "column of strings": lambda s, y: NAMES[y][:, None],
    "pandas": lambda s, y: pd.Series(y, index=np.arange(len(y)) + 5),
    "pandas string": lambda s, y: pd.Series(NAMES[y], dtype="string"),
    "pandas categories": lambda s, y: pd.Series(NAMES[y], dtype="category"),
    "pandas nullable": lambda s, y: pd.Series(y, dtype="Int64"),
    "Categorical": lambda s, y: pd.Categorical(NAMES[y]),
    "polars": lambda s, y: pl.Series(y),
    "polars strings": lambda s, y: pl.Series(NAMES[y]),
    "polars categories": lambda s, y: pl.Series(NAMES[y], dtype=pl.Categorical),
    "dataframe": lambda s, y: pd.DataFrame({"label": y}),
}

ODD_LABELS: dict[str, Callable[[Sizes, Any], Any]] = {
    "None inside": lambda s, y: _with_entry(NAMES[y].astype(object), None),
    "NaN inside": lambda s, y: _with_entry(y.astype(float), np.nan),
    "NaN among strings": lambda s, y: _with_entry(NAMES[y].astype(object), np.nan),
    "infinity inside": lambda s, y: _with_entry(y.astype(float), np.inf),
    "NA in pandas": lambda s, y: pd.Series([pd.NA, *y[1:]], dtype="Int64"),
    "null in polars": lambda s, y: pl.Series([None, *y[1:].tolist()]),
    "mixed": lambda s, y: [1, *NAMES[y[1:]].tolist()],
    "one class": lambda s, y: np.zeros_like(y),
    "a class a row": lambda s, y: np.arange(len(y)),
    "continuous": lambda s, y: y + s.random.random(len(y)),
    "one fewer": lambda s, y: y[:-1],
    "one more": lambda s, y: np.append(y, y[:1]),
    "two columns": lambda s, y: np.column_stack([y, y]),
    "bytes": lambda s, y: NAMES[y].astype("S"),
    "dates": lambda s, y: np.datetime64("2020-01-01") + y,
    "big integers": lambda s, y: [2**70 + int(v) for v in y],
    "complex": lambda s, y: y.astype(complex),
    "sparse": lambda s, y: sparse.csr_array(np.atleast_2d(y)),
    "a scalar": lambda s, y: 1,
    "a string": lambda s, y: "labels",
    "nothing": lambda s, y: None,
    "empty": lambda s, y: [],
    "ragged": lambda s, y: [[1], [1, 2]],
}


def labels(s: Sizes, n: int | None = None) -> Any:
    """Return noisy labels of the rows' classes."""
    size = s.n if n is None else n
    y = np.arange(size) % s.k
    flipped = s.random.random(size) < 0.1
    y = np.where(flipped, codes_of(s, size), y)
    if s.is_odd():
        return s.one_of(list(ODD_LABELS.values()))(s, y)
    return LABELS[s.kind](s, y)


WEIGHTS: list[Callable[[Sizes, int], Any]] = [
    lambda s, n: None,
    lambda s, n: np.ones(n),
    lambda s, n: s.random.random(n) + 0.1,
    lambda s, n: s.random.integers(0, 3, n) + (np.arange(n) < 6),
    lambda s, n: (s.random.random(n) + 0.1).tolist(),
    lambda s, n: pd.Series(s.random.random(n) + 0.1),
    lambda s, n: np.full(n, 1 / max(n, 1)),
    lambda s, n: np.full(n, 100.0),
    lambda s, n: 2.0,
]

ODD_WEIGHTS: list[Callable[[Sizes, int], Any]] = [
    lambda s, n: np.zeros(n),
    lambda s, n: -np.ones(n),
    lambda s, n: np.full(n, np.nan),
    lambda s, n: np.full(n, np.inf),
    lambda s, n: np.ones(n + 1),
    lambda s, n: np.ones((n, 1)),
    lambda s, n: np.ones((n, 2)),
    lambda s, n: (np.arange(n) % 2).astype(float),
    lambda s, n: (np.arange(n) == 0).astype(float),
    lambda s, n: np.where(np.arange(n) == 0, 1e10, 1.0),
    lambda s, n: np.exp(8 * s.random.normal(size=n)),
    lambda s, n: np.full(n, 1e300),
    lambda s, n: np.full(n, 1e-300),
    lambda s, n: ["heavy"] * n,
    lambda s, n: "weights",
]


def weights(s: Sizes, n: int | None = None) -> Any:
    """Return the rows' own weights, or None."""
    size = s.n if n is None else n
    return s.one_of(ODD_WEIGHTS if s.is_odd() else WEIGHTS)(s, size)


def noise(s: Sizes) -> Any:
    """Return rates that are known."""
    if s.is_odd():
        return s.made(
            [
                lambda: NoiseRates(0.55, 0.44),
                lambda: NoiseRates(0.9, 0.0),
                lambda: NoiseRates(None, None),
                lambda: NoiseRates((0.1, 0.3), 0.1),
                lambda: InverseRates(0.1, 0.1),
                lambda: TransitionMatrix.uniform(4, 0.3),
                lambda: [[0.5, 0.5], [0.5, 0.5]],
                lambda: [[0.9, 0.2], [0.1, 0.8]],
                lambda: [[np.nan, 1], [0, 1]],
                lambda: [["a", "b"], ["c", "d"]],
                lambda: (0.3, 0.1),
                *ODD,
            ]
        )
    if s.k > 2:
        return s.made(
            [
                lambda: TransitionMatrix.uniform(s.k, 0.2),
                lambda: TransitionMatrix.pair_flip(s.k, 0.3).matrix,
                lambda: np.eye(s.k).tolist(),
            ]
        )
    return s.made(
        [
            lambda: NoiseRates(0.2, 0.1),
            lambda: NoiseRates(0.0, 0.0),
            lambda: NoiseRates(0.4, 0.3),
            lambda: TransitionMatrix.uniform(2, 0.2),
            lambda: [[0.9, 0.1], [0.2, 0.8]],
        ]
    )


def probabilities(s: Sizes) -> Any:
    """Return P(noisy y | x) of all classes, or of the given labels."""
    all_classes = s.random.dirichlet(np.ones(s.k), size=s.n)
    if s.is_odd():
        return s.one_of(
            [
                all_classes[:, :1],
                all_classes[:-1],
                all_classes * 2,
                -all_classes,
                np.full((s.n, s.k), np.nan),
                np.zeros((s.n, s.k)),
                all_classes.astype(str),
                all_classes[:, :, None],
                np.full(s.n, np.nan),
                "probabilities",
                None,
            ]
        )
    if s.k == 2 and s.random.random() < 0.5:
        return all_classes[:, 1]
    return s.one_of([all_classes, all_classes.astype(np.float32), all_classes.tolist()])


def scores(s: Sizes) -> Any:
    """Return decision values."""
    values = s.random.normal(size=s.n)
    if s.is_odd():
        return s.one_of([values[:, None], values[:-1], values * np.nan, values.astype(str), None])
    return s.one_of([values, values.round(), np.zeros(s.n), values.tolist(), values * 1e9])


def classes(s: Sizes) -> Any:
    """Return the classes that a user names."""
    if s.is_odd():
        return s.one_of([[], [0], [0, 0], [0, 7], ["a", 1], [None, 1], np.eye(2), "ab", 3])
    if s.random.random() < 0.7:
        return None
    return LABELS[s.kind](s, np.arange(s.one_of([s.k, min(s.k + 1, NAMES.size)])))


def _is_quick_for(name: str, n_classes: int) -> bool:
    """Return whether rates of so many classes are estimated without a search over pairs of them."""
    return name != "cv" and (
        n_classes == 2 or get_tags(make_rates(name)).classifier_tags.multi_class
    )


def known_rates_or_a_way(s: Sizes) -> Any:
    """Return what the parameter `noise_rates` takes."""
    if s.random.random() < 0.5:
        return s.one_of(["auto", *(name for name in ALIASES if _is_quick_for(name, s.k))])
    if s.random.random() < 0.3:
        return s.made([MinimumRates, ScottRates])
    return noise(s)


def fitted(s: Sizes) -> Any:
    """Return a fitted classifier or audit, for what looks at one."""
    X = s.random.normal(size=(40, s.d)) + 2 * (np.arange(40) % s.k)[:, None]
    y = np.arange(40) % s.k
    given: Any = NoiseRates(0.2, 0.1) if s.k == 2 else np.eye(max(s.k, 2))
    if s.is_odd():
        return s.made(
            [
                ImportanceReweightingClassifier,
                lambda: LogisticRegression().fit(X, X[:, 0] > 0),
                *ODD,
            ]
        )
    y = y if s.k > 1 else np.arange(40) % 2
    if s.random.random() < 0.5:
        return LabelAudit("probabilistic", given, cv=2, random_state=0).fit(X, y)
    return ImportanceReweightingClassifier(
        posterior="probabilistic", noise_rates=given, random_state=0
    ).fit(X, y)


def method_with_rates(s: Sizes) -> Any:
    """Return a classifier that has a parameter `noise_rates`."""
    return s.made(
        [
            lambda: ImportanceReweightingClassifier(posterior="probabilistic"),
            lambda: ImportanceReweightingClassifier(SVC(), posterior="kde"),
            *(ODD if s.is_odd() else []),
        ]
    )


def classes_shares(s: Sizes) -> Any:
    """Return P(y) of two classes as one number, or of all."""
    shares = s.random.dirichlet(np.ones(s.k))
    return s.one_of([0.5, 0.2, shares, shares.tolist(), None, "half", np.nan, -shares])


def batches(s: Sizes) -> Any:
    """Return rows and labels in batches."""
    if s.is_odd():
        return s.made(ODD)
    return ArrayBatches(rows(s), labels(s), weights(s), batch_rows=s.one_of([7, 20, 1000]))


def _read_only(X: Any) -> Any:
    X = X.copy()
    X.flags.writeable = False
    return X


def _with_entry(values: Any, entry: Any) -> Any:
    values = values.copy()
    if values.size:
        values.flat[values.size // 2] = entry
    return values


def _with_column(X: Any, column: Any) -> Any:
    X = X.copy()
    X[:, -1:] = column
    return X
