"""Types that more than one module speaks of."""

from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[Any]
Floats = NDArray[np.float64]
Codes = NDArray[np.intp]
"""Positions of labels among the classes."""

RandomState = int | np.random.RandomState | None
"""A seed, a generator, or neither."""


class Classifier(Protocol):
    """Anything that is fitted to rows and labels and then predicts, as in scikit-learn."""

    def fit(self, X: Any, y: Any) -> Any:
        """Fit to rows and labels."""

    def predict(self, X: Any) -> Any:
        """Return a label for every row."""


class ProbabilisticClassifier(Protocol):
    """A classifier or posterior with probabilities."""

    def fit(self, X: Any, y: Any) -> Any:
        """Fit to rows and labels."""

    def predict_proba(self, X: Any) -> Any:
        """Return a probability for every row and class."""


class RateEstimator(Protocol):
    """What estimates noise rates: `fit`, then `rates_`."""

    @property
    def rates_(self) -> Any:
        """The estimate."""

    def fit(self, X: Any, y: Any) -> Any:
        """Fit to rows and labels."""


__all__ = [
    "Array",
    "ArrayLike",
    "Classifier",
    "Codes",
    "Floats",
    "ProbabilisticClassifier",
    "RandomState",
    "RateEstimator",
]
