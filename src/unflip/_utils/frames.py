"""Dataframes of pandas and polars, read and written by narwhals."""

from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from unflip._utils.validation import did_you_mean


def row_index(*sources: Any) -> Any:
    """Return the index of the first pandas object, "polars" of a polars one, or None."""
    for source in sources:
        native = nw.from_native(source, allow_series=True, pass_through=True)
        if isinstance(native, (nw.DataFrame, nw.Series)):
            if native.implementation.is_pandas():
                return source.index
            if native.implementation.is_polars():
                return "polars"
    return None


def column_values(column: "nw.Series[Any]") -> NDArray[Any]:
    """Return a column as an array, text as objects: numpy's strings all have the longest's size."""
    if column.dtype in (nw.String, nw.Categorical, nw.Enum):
        return np.array(column.to_list(), dtype=object)
    return column.to_numpy()


def split_label_column(X: Any, label: str) -> tuple[Any, Any]:
    """Return a table without one of its columns, and that column."""
    frame = nw.from_native(X, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        raise ValueError(
            f"y={label!r} names a column of labels, and X is no dataframe but a "
            f"{type(X).__name__}: pass the labels themselves."
        )
    if label not in frame.columns:
        raise ValueError(f"X has no column {label!r}.{did_you_mean(label, frame.columns)}")
    return frame.drop(label).to_native(), frame[label].to_native()


def is_frame(X: Any) -> bool:
    """Return whether X is a dataframe of any library."""
    return isinstance(nw.from_native(X, pass_through=True), nw.DataFrame)


def as_frame(X: Any) -> "nw.DataFrame[Any] | None":
    """Return a dataframe with distinct column names as narwhals', or None."""
    if not hasattr(X, "columns") or len(set(X.columns)) < len(X.columns):
        return None  # narwhals takes no repeated names
    return nw.from_native(X, eager_only=True)


def some_rows(table: Any, rows: NDArray[np.intp]) -> Any:
    """Return rows of a dataframe by position, with the position as first column, `row`."""
    frame = nw.from_native(table, eager_only=True)[rows.tolist()]
    position = nw.new_series("row", rows, backend=frame.implementation)
    return frame.select(position.alias("row"), *frame.columns).to_native()


def audit_frame(audit: Any, codes: NDArray[np.intp], index: Any) -> Any:
    """Return a fitted audit as a dataframe of pandas or polars."""
    rows = np.arange(codes.size)
    first = audit.clean_proba_.argmax(axis=1)
    rest = audit.clean_proba_.copy()
    rest[rows, first] = -1.0
    second = rest.argmax(axis=1)
    suggested = audit.suggested_label_.astype(object)
    suggested[audit.unclear_] = None
    columns = {
        "given_label": audit.classes_[codes],
        "suggested_label": suggested,
        "mislabel_proba": audit.mislabel_proba_,
        "none_proba": audit.none_proba_,
        "unclear": audit.unclear_,
        "model_first": audit.classes_[first],
        "model_first_proba": audit.clean_proba_[rows, first],
        "model_second": audit.classes_[second],
        "model_second_proba": audit.clean_proba_[rows, second],
    }
    return native_frame(columns, index)


def native_frame(columns: dict[str, NDArray[Any]], index: Any) -> Any:
    """Return columns as a dataframe of pandas, or of polars."""
    if isinstance(index, str):
        import polars

        return polars.DataFrame(
            {k: v.tolist() if v.dtype == object else v for k, v in columns.items()}
        )
    try:
        import pandas
    except ImportError:
        raise ImportError(
            "a dataframe needs pandas (pip install pandas), or labels in a polars series."
        ) from None
    frame = pandas.DataFrame(columns, index=index)
    for name, values in columns.items():
        if values.dtype == object:
            frame[name] = frame[name].astype(object)
    return frame
