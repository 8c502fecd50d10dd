"""Validation of what users pass in: labels, probabilities, weights, parameters."""

from collections import Counter
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from numbers import Real
from typing import Any, NamedTuple, SupportsFloat, TypeGuard

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils import check_array
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_consistent_length, column_or_1d

from unflip._utils.compat import validate_data
from unflip._utils.typing import Array, PlainLabel, Rows, Vector

FLOATS = (np.float64, np.float32)
"""Floating-point types that are kept."""

MAX_VALUE = 1e150
"""Maximum number that is accepted: squares of larger numbers, as in distances, overflow."""

MAX_SINGLE = 1e15
"""Maximum number in single precision; rows with larger ones are converted to double precision."""

MAX_STRING_BYTES = 64 * 2**20
"""Maximum number of bytes of labels as an array of numpy's strings."""

MIN_SAMPLES = 10
"""Minimum number of samples to estimate noise rates."""

MANY_VALUES = 50
"""Number of distinct labels above which a column may hold measurements or names."""


class Labels(NamedTuple):
    """Validated labels: what internal functions take instead of `y`."""

    # The classes, sorted.
    classes: Array
    # For every row, the position of its label among them.
    codes: NDArray[np.intp]

    @property
    def observed(self) -> Array:
        """The observed labels."""
        return self.classes[self.codes]


def check_labels(
    y: ArrayLike, *, classes: ArrayLike | None = None, binary: bool = True, because: str = ""
) -> Labels:
    """Return the sorted classes and, for every row, the position of its label among them."""
    labels = plain_labels(y, "y")
    if not labels.size:
        raise ValueError("Found array with 0 sample(s): y is empty. Pass one label per sample.")
    _refuse_measurements(labels)
    check_classification_targets(labels)
    if classes is None:
        known, codes = np.unique(labels, return_inverse=True)
    else:
        known = check_classes(classes)
        codes = np.searchsorted(known, labels).clip(max=known.size - 1)
        strangers = labels[known[codes] != labels]
        if strangers.size:
            raise ValueError(
                f"y holds the label {strangers[:1].tolist()[0]!r}, which is not one of the classes "
                f"{known.tolist()}."
            )
    if known.size < 2:
        raise ValueError(
            f"y holds one class only ({known.tolist()}), and two are needed. Check how the rows "
            "were selected; if the other class is merely absent from this sample, name all classes "
            "with classes=[...] in functions that take it."
        )
    if binary and known.size > 2:
        raise ValueError(
            "Only binary classification is supported. The type of the target is "
            f"{type_of_target(labels)}: y holds {known.size} classes, {_some(known)}.{because}"
        )
    return Labels(known, codes)


def _refuse_measurements(labels: Array) -> None:
    """Refuse fractions, and many distinct whole numbers with few samples of each."""
    if labels.dtype.kind not in "iuf":
        return
    values = np.unique(labels)
    fractions = values[values != np.round(values)]
    is_many = values.size > MANY_VALUES and labels.size < MIN_SAMPLES * values.size
    if fractions.size or is_many:
        what = (
            f"continuous. y holds fractions such as {fractions.item(0)!r}"
            if fractions.size
            else f"y holds {values.size} distinct numbers in {labels.size} samples, {_some(values)}"
        )
        raise ValueError(
            f"Unknown label type: {what}, like a regression target, and unflip corrects class "
            "labels. Cut the numbers into ranges, for example pandas.qcut(y, 4, labels=False); if "
            "they are names of classes, pass them as strings, y.astype(str)."
        )


def check_classes(classes: ArrayLike) -> Array:
    """Return the classes that a user names, sorted; raise an error for fewer than two."""
    known = np.unique(plain_labels(classes, "classes"))
    if known.size < 2:
        raise ValueError(
            f"classes={known.tolist()} has {known.size} distinct entries, and at least two are "
            "needed: name every class that a label may have, or omit classes."
        )
    return known


def plain_labels(y: Any, name: str = "y") -> Array:
    """Return labels as a one-dimensional array of numbers, strings or booleans.

    Strings of any type become numpy's own strings, unless one long string would make that array
    large. Missing labels are refused, with their rows. A column of shape (n, 1) is ravelled, with
    scikit-learn's warning.
    """
    if y is None:
        raise ValueError(f"requires {name} to be passed, but the target {name} is None.")
    if _holds_objects(y):
        y = np.array(y, dtype=object)
    _refuse_several_labels(y, name)
    labels = column_or_1d(y, warn=True)
    if labels.dtype.kind in "OT":
        labels = _without_objects(labels, name)
    if labels.dtype.kind == "f":
        _refuse_missing(np.isnan(labels), name)
        check_array(labels, ensure_2d=False, ensure_min_samples=0, dtype=None, input_name=name)
    if labels.dtype.kind not in "biufOU":
        raise ValueError(
            f"{name} has the type {labels.dtype}, and labels are numbers, strings or booleans. "
            "Convert them, for example to strings."
        )
    return labels


def _refuse_several_labels(y: Any, name: str) -> None:
    """Raise an error for more than one label per sample."""
    shape = tuple(np.shape(y)) if sparse.issparse(y) else np.asarray(y).shape
    if len(shape) == 2 and shape[1] > 1:
        raise ValueError(
            f"{name} should be a 1d array, got an array of shape {shape} instead: {shape[1]} "
            "columns, and unflip corrects one label per sample. With several targets (multi-label) "
            f"fit once per column, {name}[:, k]; with one-hot labels pass {name}.argmax(axis=1); "
            "with labels of several annotators pass their majority."
        )


def _holds_objects(y: Any) -> bool:
    """Return whether numpy might convert these labels, such as numbers to strings."""
    if isinstance(y, (list, tuple)) or hasattr(y, "columns"):
        return True
    return hasattr(y, "dtype") and not isinstance(y.dtype, np.dtype)  # pandas' and polars' own


def _without_objects(labels: Array, name: str) -> Array:
    """Return objects as numbers, strings or booleans; they must be of one kind."""
    types = {type(label) for label in labels}
    if types and not all(issubclass(each, str) for each in types):
        _refuse_missing(np.fromiter(map(is_missing, labels), bool, labels.size), name)
    if all(issubclass(each, str) for each in types):
        return _as_strings(labels)
    if all(issubclass(each, (bool, np.bool_, Real)) for each in types):
        plain = np.array(labels.tolist())
        if plain.dtype.kind in "biuf" and (plain == labels).all():  # no digit is lost
            return plain
    names = sorted(each.__name__ for each in types)
    raise ValueError(
        f"{name} holds labels of type {' and '.join(names)}, and they must be all numbers, all "
        "strings or all booleans. Convert them, for example to strings."
    )


def _as_strings(labels: Array) -> Array:
    """Return strings as numpy's own, or as objects if one of them is very long."""
    longest = max(map(len, labels), default=0)
    if labels.size * longest * np.dtype("U1").itemsize > MAX_STRING_BYTES:
        return labels.astype(object)
    return labels.astype(str)


def is_missing(label: object) -> bool:
    """Return whether an object stands for a missing value."""
    if label is None or type(label).__name__ in ("NAType", "NaTType"):  # pandas' own
        return True
    return isinstance(label, (float, np.floating)) and bool(np.isnan(label))


def _refuse_missing(missing: NDArray[np.bool_], name: str) -> None:
    rows = np.flatnonzero(missing)
    if rows.size:
        raise ValueError(
            f"{name} contains no label (NaN or None) in {rows.size} of {missing.size} rows: "
            f"{_some(rows)}. Leave these rows out, or label them."
        )


def find_class(classes: Array, text: object) -> PlainLabel | None:
    """Return the class with this text, or None; 1.0 is 1, and true is True."""
    wanted = str(text)
    for label in classes.tolist():
        same_word = isinstance(label, bool) and str(label).lower() == wanted.lower()
        if str(label) == wanted or same_word:
            return label
        if isinstance(label, int) and wanted == f"{label}.0":
            return label
    return None


def did_you_mean(name: str, names: Sequence[str]) -> str:
    """Return a hint at the most similar name after a space, or an empty string."""
    near = get_close_matches(name, names, n=1)
    return f" Did you mean {near[0]!r}?" if near else ""


def _some(values: Array) -> str:
    """Return the first five values as text."""
    names = ", ".join(repr(value) for value in values[:5].tolist())
    return names + (", ..." if values.size > 5 else "")


def check_weights(
    sample_weight: ArrayLike | None, n_samples: int, *, all_zero: bool = False
) -> NDArray[np.float64]:
    """Return one weight >= 0 per row, by default 1; `all_zero` allows that all are zero."""
    if sample_weight is None:
        return np.ones(n_samples)
    if isinstance(sample_weight, Real):
        sample_weight = np.full(n_samples, float(sample_weight))
    weight = check_array(
        sample_weight, ensure_2d=False, dtype=np.float64, input_name="sample_weight"
    )
    if weight.ndim != 1 or weight.shape[0] != n_samples:
        raise ValueError(
            f"sample_weight has shape {weight.shape}, expected ({n_samples},): one weight per row."
        )
    if weight.min() < 0:
        raise ValueError(f"sample_weight must be >= 0, got {weight.min()} as its smallest value.")
    if not (all_zero or weight.any()):
        raise ValueError("sample_weight is zero for every row: there is nothing to learn from.")
    largest = float(weight.max())
    if largest > MAX_VALUE or 0 < largest < 1 / MAX_VALUE:
        raise ValueError(
            f"the largest sample_weight is {largest:.2g}, expected between {1 / MAX_VALUE:g} "
            f"and {MAX_VALUE:g}, where squares of weights are numbers. Rescale all weights."
        )
    return weight


def check_class_weights(weight: Array, codes: Array, classes: Array) -> None:
    """Raise an error if all rows of a class have weight zero."""
    mass = np.bincount(codes, weight, minlength=classes.size)
    if not mass.all():
        raise ValueError(
            f"all rows of class {classes.item(np.argmin(mass))!r} have sample_weight zero, so it "
            "cannot be learnt. Give some of them a positive weight, or drop them."
        )


def check_probabilities(
    values: ArrayLike, name: str, shape: tuple[int, ...] | None = None, meaning: str = ""
) -> NDArray[np.float64]:
    """Return `values` as floats in [0, 1], of a shape if given, which has a meaning."""
    probabilities = check_numbers(values, name)
    outside = ~((probabilities >= 0) & (probabilities <= 1))  # NaN is outside too
    if outside.any():
        raise ValueError(
            f"{name} must hold probabilities in [0, 1], got {float(probabilities[outside][0])} "
            f"among {probabilities.size} values."
        )
    if shape is not None and probabilities.shape != shape:
        raise ValueError(f"{name} has shape {probabilities.shape}, expected {shape}: {meaning}.")
    return probabilities


def check_numbers(values: ArrayLike, name: str) -> NDArray[np.float64]:
    """Return `values` as floats."""
    try:
        array = np.asarray(values)
        if array.dtype.kind == "c":  # numpy would drop the imaginary parts
            raise TypeError
        return np.asarray(array, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must hold numbers, got {_in_short(values)}.") from None


def _in_short(value: object) -> str:
    """Return the representation of a value, cut to 80 characters."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def check_probability(value: ArrayLike, name: str) -> float:
    """Return one probability."""
    probability = check_probabilities(value, name)
    if probability.shape != ():
        raise ValueError(
            f"{name} must be one probability, got an array of shape {probability.shape}."
        )
    return float(probability)


def check_probability_per_row(values: ArrayLike, n_samples: int, name: str) -> NDArray[np.float64]:
    """Return one probability per row."""
    return check_probabilities(values, name, (n_samples,), "one per row")


def check_probability_per_class(
    values: ArrayLike, n_samples: int, n_classes: int, name: str
) -> NDArray[np.float64]:
    """Return one probability per row and class; a row need not sum to one."""
    meaning = "one row per label, one column per class in sorted order"
    return check_probabilities(values, name, (n_samples, n_classes), meaning)


def training_rows(
    X: Rows,
    *,
    estimator: BaseEstimator | None = None,
    accept_sparse: str | bool | list[str] = "csr",
    dtype: DTypeLike | list[type] = FLOATS,
    name: str = "X",
) -> Rows:
    """Return rows of finite numbers whose squares are finite too."""
    rows = check_array(
        X, accept_sparse=accept_sparse, dtype=dtype, estimator=estimator, input_name=name
    )
    values = rows.data if sparse.issparse(rows) else rows
    largest = float(np.abs(values).max(initial=0.0)) if values.dtype.kind == "f" else 1.0
    if 0 < largest < 1 / MAX_VALUE:
        raise ValueError(
            f"{name} holds no number larger than {largest:.2g}, and below {1 / MAX_VALUE:g} "
            "their squares are 0. Rescale the columns, for example by a constant."
        )
    return within_range(rows, name)


def new_rows(
    estimator: BaseEstimator,
    X: Rows,
    *,
    accept_sparse: str | bool | list[str] = "csr",
    dtype: DTypeLike | list[type] = FLOATS,
) -> Rows:
    """Return rows to predict, with the columns of the fit."""
    rows = validate_data(estimator, X, reset=False, accept_sparse=accept_sparse, dtype=dtype)
    return within_range(rows, "X")


def within_range(rows: Rows, name: str) -> Rows:
    """Return rows, in double precision if needed; raise an error for columns too large."""
    values = rows.data if sparse.issparse(rows) else rows
    if values.dtype.kind != "f" or not values.size:
        return rows
    largest = max(float(values.max()), -float(values.min()))
    if largest > MAX_VALUE:
        by_column = abs(rows).max(axis=0)
        by_column = by_column.toarray() if sparse.issparse(by_column) else by_column
        columns = np.flatnonzero(np.ravel(by_column) > MAX_VALUE)
        raise ValueError(
            f"{name} holds numbers up to {largest:.2g} (columns {_some(columns)}), and beyond "
            f"{MAX_VALUE:g} their squares overflow. Rescale these columns, for example by a "
            "constant or by their logarithms."
        )
    if values.dtype == np.float32 and largest > MAX_SINGLE:
        return rows.astype(np.float64)
    return rows


def check_enough_rows(X: Rows, y: Vector) -> None:
    """Raise an error for too few samples to estimate noise rates."""
    check_rows_of(X, y)
    n_samples = len(y)
    if n_samples < MIN_SAMPLES:
        raise ValueError(
            f"Found n_samples={n_samples} rows, at least {MIN_SAMPLES} are required: label noise "
            "cannot be told apart from chance on fewer. Collect more rows."
        )


def check_rows_of(X: Rows, y: ArrayLike) -> None:
    """Raise an error unless there are as many rows as labels."""
    if X is None:
        raise ValueError("X is None: rows are needed, of shape (n_samples, n_features).")
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None.")
    counts = Counter(map(str, getattr(X, "columns", ())))
    repeated = [name for name, count in counts.items() if count > 1]
    if repeated:
        raise ValueError(f"X has two columns called {repeated[0]!r}: rename one of them.")
    check_consistent_length(X, y)


def is_number(value: object) -> TypeGuard[float]:
    """Return whether a parameter is one real number, and not True or False."""
    return isinstance(value, Real) and not isinstance(value, bool)


def check_flag(value: object, name: str) -> None:
    """Raise an error unless a parameter is True or False."""
    if not (isinstance(value, (bool, np.bool_)) or (is_number(value) and value in (0, 1))):
        raise ValueError(f"{name} must be True or False, got {_in_short(value)}.")


def check_level(level: object) -> float:
    """Return a confidence level in (0, 1)."""
    if not (is_number(level) and 0 < level < 1):
        raise ValueError(f"level must lie between 0 and 1, got {_in_short(level)}.")
    return float(level)


def check_selection(
    n_samples: int | None, *, precision: object = None, n: object = None, threshold: object = None
) -> None:
    """Raise an error unless at most one of precision, n and threshold is given, and valid.

    `n_samples` is None if the number of samples is not known yet.
    """
    given = {"precision": precision, "n": n, "threshold": threshold}
    names = [name for name, value in given.items() if value is not None]
    if len(names) > 1:
        raise ValueError(f"give {' or '.join(names)}, not both.")
    if n is not None:
        check_count(n, "n", least=0)
        if n_samples is not None and n > n_samples:  # type: ignore[operator]
            raise ValueError(f"n={n} is more than the {n_samples:,} samples that were audited.")
    for name in ("precision", "threshold"):
        value = given[name]
        if value is not None and not (is_number(value) and 0 < value <= 1):
            raise ValueError(f"{name} must lie in (0, 1], got {_in_short(value)}.")


def check_not_negative(value: object, name: str) -> float:
    """Return a finite number >= 0."""
    if not (is_number(value) and 0 <= value < np.inf):
        raise ValueError(f"{name} must be a finite number >= 0, got {_in_short(value)}.")
    return float(value)


def check_width(value: SupportsFloat, name: str) -> float:
    """Return a kernel's width, whose square must be finite and positive too."""
    width = check_positive(value, name)
    if not 1 / MAX_VALUE <= width <= MAX_VALUE:
        raise ValueError(
            f"{name} must lie between {1 / MAX_VALUE:g} and {MAX_VALUE:g}, so that its "
            f"square is a number, got {value!r}."
        )
    return width


def check_positive(value: SupportsFloat, name: str) -> float:
    """Return a number > 0."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be a number > 0, got {value!r}.") from None
    if not 0 < number < np.inf:
        raise ValueError(f"{name} must be a finite number > 0, got {value!r}.")
    return number


def check_widths(values: ArrayLike, name: str) -> Array:
    """Return a one-dimensional array of kernel widths."""
    return np.array([check_width(width, name) for width in check_positives(values, name)])


def check_positives(values: ArrayLike, name: str) -> Array:
    """Return a one-dimensional array of numbers > 0."""
    numbers = check_numbers(values, name)
    if numbers.ndim != 1 or numbers.size == 0:
        raise ValueError(f"{name} must be a list of numbers > 0, got {values!r}.")
    return np.array([check_positive(number, name) for number in numbers])


def check_count(value: object, name: str, *, least: int) -> None:
    """Raise an error unless a parameter is an integer >= `least`."""
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < least:
        raise ValueError(f"{name} must be an integer >= {least}, got {value!r}.")


def check_table(estimator: BaseEstimator, X: Rows, *, reset: bool) -> None:
    """Check rows that are passed on unchanged: two dimensions, and the columns of the fit.

    With `reset` the columns are recorded on `estimator`. Texts may be one-dimensional, as for
    scikit-learn's vectorisers.
    """
    if (
        isinstance(X, Iterable)
        and getattr(X, "ndim", 1) == 1
        and all(isinstance(each, str) for each in X)
    ):
        return
    if getattr(X, "ndim", 2) == 1:
        raise ValueError(
            "Expected 2D array, got 1D array instead. Reshape your data: X.reshape(-1, 1) for one "
            "feature, X.reshape(1, -1) for one row."
        )
    if getattr(getattr(X, "dtype", None), "kind", "") in ("m", "M"):
        raise ValueError(
            f"X has the type {X.dtype}, and no classifier takes dates or durations. Convert them "
            "to numbers, such as days since the first date."
        )
    validate_data(estimator, X, reset=reset, skip_check_array=True)


def check_choice(value: object, choices: tuple[str, ...], name: str) -> None:
    """Raise an error unless a string parameter is one of its choices."""
    if not (isinstance(value, str) and value in choices):
        raise ValueError(f"{name}={value!r} is not one of {list(choices)}.")
