"""Types that several modules use."""

from collections.abc import Iterable, Iterator
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike as ArrayLike
from numpy.typing import NDArray

Rows = Any
"""Rows as scikit-learn takes them: arrays, sparse matrices, dataframes. They share no type."""

Record = dict[str, Any]
"""Values by name: parameters, fitted attributes, or what is written as JSON."""

Array = NDArray[Any]
Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
Bools = NDArray[np.bool_]
Codes = NDArray[np.intp]
"""Positions of labels among the classes."""

PlainLabel = str | float
"""A label as plain Python has it."""

RandomState = int | np.random.RandomState | None
"""A seed, a generator, or neither."""


class Vector(Protocol):
    """An array or a series: a value for every row."""

    def __len__(self) -> int:
        """Return the number of rows."""

    def __array__(self) -> Array:
        """Return the values."""


@runtime_checkable
class Splitter(Protocol):
    """A splitter of scikit-learn, such as KFold."""

    def split(self, X: Rows, y: ArrayLike) -> Iterator[tuple[Array, Array]]:
        """Yield rows to train on, and rows to test on."""


CrossValidation = int | Splitter | Iterable[tuple[ArrayLike, ArrayLike]] | None
"""What users may give for `cv`: a number of folds, a splitter, or pairs (train, test) of rows."""


class Fittable(Protocol):
    """Anything that is fitted to rows and labels, as in scikit-learn."""

    def fit(self, X: Rows, y: ArrayLike) -> Self:
        """Fit to rows and labels."""


class Classifier(Fittable, Protocol):
    """Anything that then predicts."""

    def predict(self, X: Rows) -> Array:
        """Return a label for every row."""


class ProbabilisticClassifier(Fittable, Protocol):
    """A classifier or posterior with probabilities."""

    def predict_proba(self, X: Rows) -> Array:
        """Return a probability for every row and class."""


class RateEstimator(Fittable, Protocol):
    """What estimates noise rates: `fit`, then `rates_`."""

    @property
    def rates_(self) -> object:
        """The estimate."""
