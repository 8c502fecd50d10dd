"""What older versions of scikit-learn call by another name."""

from typing import Any

from sklearn import __version__, get_config
from sklearn._loss._loss import CyHalfBinomialLoss
from sklearn.base import BaseEstimator
from sklearn.utils import estimator_html_repr

LOSSES_MODULE: str = CyHalfBinomialLoss.__module__
"""Where model files say that compiled losses are: `_loss` before scikit-learn 1.9 (loaded here)."""

COUNTS = frozenset[str](
    ["numpy.int64"] if tuple(map(int, __version__.split(".")[:2])) < (1, 8) else []
)
"""Types of what a fitted StandardScaler counts, where it is no plain number."""

if hasattr(BaseEstimator, "_html_repr"):

    class DiagramMixin:
        """Nothing: an estimator's diagram is its `_html_repr` since scikit-learn 1.7."""

else:

    class DiagramMixin:  # type: ignore[no-redef]
        """What a notebook shows of an estimator is its `_html_repr`, as since scikit-learn 1.7."""

        def _html_repr(self) -> str:
            return str(estimator_html_repr(self))

        def _repr_html_inner(self) -> str:
            return self._html_repr()

        def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
            shown = {"text/plain": repr(self)}
            if get_config()["display"] == "diagram":
                shown["text/html"] = self._html_repr()
            return shown
