"""Compatibility with older versions of scikit-learn."""

from typing import Any

import numpy as np
from sklearn import __version__, get_config
from sklearn.base import BaseEstimator
from sklearn.utils import estimator_html_repr
from sklearn.utils.validation import validate_data as _validate_data

VERSION = tuple(map(int, __version__.split(".")[:2]))

if hasattr(BaseEstimator, "_html_repr"):

    class DiagramMixin:
        """Nothing to add: scikit-learn shows `_html_repr` since 1.7."""

else:

    class DiagramMixin:  # type: ignore[no-redef]
        """Show `_html_repr` in notebooks, as scikit-learn does since 1.7."""

        def _html_repr(self) -> str:
            return str(estimator_html_repr(self))

        def _repr_html_inner(self) -> str:
            return self._html_repr()

        def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
            shown = {"text/plain": repr(self)}
            if get_config()["display"] == "diagram":
                shown["text/html"] = self._html_repr()
            return shown


def validate_data(estimator: BaseEstimator, X: Any, **options: Any) -> Any:
    """As scikit-learn's, and with the column names of polars 2 before scikit-learn 1.9."""
    if VERSION >= (1, 9) or hasattr(X, "__dataframe__") or not _is_polars(X):
        return _validate_data(estimator, X, **options)
    found = _validate_data(estimator, _NamedRows(X), **options)
    return X if isinstance(found, _NamedRows) else found


def _is_polars(X: Any) -> bool:
    return type(X).__module__.partition(".")[0] == "polars" and hasattr(X, "columns")


class _NamedRows:
    """A frame with the interchange protocol that polars 2 dropped."""

    def __init__(self, frame: Any) -> None:
        self.frame, self.shape = frame, frame.shape

    def __dataframe__(self) -> Any:
        return self

    def column_names(self) -> Any:
        return self.frame.columns

    def __len__(self) -> int:
        return int(self.shape[0])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.asarray(self.frame, dtype=dtype)
