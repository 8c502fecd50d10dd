"""Columns that reproduce the labels: a copy of the label, or a rule of one or two columns.

Label errors show where labels contradict the features. Where a column was made from the label, or
the label from a column by a rule, nothing contradicts, however many labels are wrong.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse
from sklearn.tree import DecisionTreeClassifier

from unflip._utils.frames import as_frame, column_values
from unflip._utils.typing import Array, Codes, Floats
from unflip.diagnostics._catalogue import Diagnostic
from unflip.diagnostics._labels import MIN_CLASS_SAMPLES

MAX_RULE_ERROR = 0.02
"""Maximum error of a rule on held-out labels, per error of the best constant prediction."""

MAX_EASY_ERROR = 0.05
"""Maximum error of the other columns for the classes to count as well separated (same unit)."""

MIN_DENSITY = 0.5
"""Minimum density of a column at a threshold, per density on either side, for a rule. Less is the
gap that well separated classes leave: normal classes five standard deviations apart have 0.2, a
threshold within a normal or uniform distribution has 1 or more."""

SAMPLE, MAX_RULE_CLASSES = 2000, 50
"""Number of samples in which rules are searched for, and maximum number of classes, the largest."""

FEW_VALUES = 16
"""Maximum number of distinct values that are looked up; with more, the number of bins."""

LEAVES_OF_ONE, LEAVES_OF_RULE, LEAVES_OF_REST = 4, 8, 16
"""Maximum number of leaves of trees of one column, of two columns, and of the other columns."""

PROMISING_ERROR = 0.3
"""Maximum error of the bins of a column for a tree to be fitted to it."""

MAX_SCREENED = 200
"""Maximum number of numeric columns that are examined: those whose class means differ most."""

MAX_RULE_COLUMNS, MAX_NAMED_IN_RULE = 30, 3
"""Maximum number of columns that a tree is fitted to, and of findings about single columns."""

MISSING = ("None", "nan", "<NA>", "NaT")
"""How missing values of numpy, pandas and polars are written."""

TINY = np.finfo(float).tiny

MAX_INTERVALS = 2
"""Maximum number of intervals with which a rule is written out; with more, it is only named."""


def diagnose_rules(X: Any, codes: Codes, classes: Array) -> list[Diagnostic]:
    """Return which columns are copies of the label, or reproduce it by a rule of one or two.

    Rules are fitted to one half of a sample and tested on the other, so that a column of
    identifiers determines nothing.
    """
    sample = _TableSample.draw(codes, classes.size)
    if sample is None:
        return []
    columns = [_Column.of(name, values, sample) for name, values in _columns(X, sample)]
    sure = [column for column in columns if column.error <= MAX_RULE_ERROR]
    copies = [column for column in sure if column.is_copy]
    if copies:
        return [
            Diagnostic("leak", numbers={"column": column.name, "share": column.share})
            for column in copies[:MAX_NAMED_IN_RULE]
        ]
    if len(columns) < 2:  # one column is all there is, and not singled out among others
        return []
    if not sure:
        return _rule_of_two(columns, sample, classes)
    others = [column for column in columns if column not in sure]
    if _easy(others, sample) or all(column.has_gap(sample) for column in sure):
        return []
    return [
        _rule([column], *_words(column, sample, classes)) for column in sure[:MAX_NAMED_IN_RULE]
    ]


def _rule(columns: Sequence["_Column"], label: Any, words: str, share: float) -> Diagnostic:
    """Return the finding that a rule of these columns reproduces the labels."""
    numbers = {
        "often": "Every label follows" if share == 1 else f"{share:.1%} of the labels follow",
        "label": label,
        "rule": words,
        "columns": " or ".join(f"`{column.shown}`" for column in columns),
        "names": [column.name for column in columns],
        "share": share,
    }
    return Diagnostic("rule", numbers=numbers)


def _easy(columns: Sequence["_Column"], sample: "_TableSample") -> bool:
    """Return whether the classes are well separated, so that these columns predict the labels."""
    if not columns:
        return True  # each of all columns does by itself
    predicted, _ = sample.tree(_most_predictive(columns), LEAVES_OF_REST)
    return sample.error(predicted) <= MAX_EASY_ERROR


def _rule_of_two(
    columns: Sequence["_Column"], sample: "_TableSample", classes: Array
) -> list[Diagnostic]:
    """Return the rule of two columns that reproduces the labels, if the other columns do not."""
    predictive = _most_predictive(columns)
    _, importances = sample.tree(predictive, LEAVES_OF_RULE)
    two = [predictive[j] for j in np.argsort(-importances, kind="stable")[:2] if importances[j] > 0]
    if len(two) < 2:
        return []
    for leaves in range(2, LEAVES_OF_RULE + 1):  # the smallest tree has the shortest rule
        predicted, _ = sample.tree(two, leaves)
        if sample.error(predicted) <= MAX_RULE_ERROR:
            break
    else:
        return []
    others = [column for column in columns if column not in two]
    if (others and _easy(others, sample)) or sample.splits_at_gap(two):
        return []
    return [_rule(two, *_words_of_two(two, leaves, sample, classes))]


def _words_of_two(
    columns: Sequence["_Column"], n_leaves: int, sample: "_TableSample", classes: Array
) -> tuple[Any, str, float]:
    """Return the label with the fewest leaves in a tree, its leaves in words, and their share."""
    values = np.column_stack([column.numbers for column in columns])
    fitted = _fitted_tree(values, sample.codes, n_leaves)
    grown = fitted.tree_
    leaves: dict[int, list[str]] = {}

    def walk(node: int, bounds: dict[int, tuple[float, float]]) -> None:
        column = int(grown.feature[node])
        if column < 0:
            label = int(fitted.classes_[grown.value[node, 0].argmax()])
            parts = [_interval(columns[j], values[:, j], *bounds[j]) for j in sorted(bounds)]
            leaves.setdefault(label, []).append(" and ".join(parts))
            return
        low, high = bounds.get(column, (-np.inf, np.inf))
        cut = float(grown.threshold[node])
        walk(int(grown.children_left[node]), bounds | {column: (low, cut)})
        walk(int(grown.children_right[node]), bounds | {column: (cut, high)})

    walk(0, {})
    right = fitted.predict(values) == sample.codes
    share = float(np.average(right, weights=sample.weight))
    k = min(leaves, key=lambda label: len(leaves[label]))
    if len(leaves[k]) > MAX_INTERVALS or any(c.values.dtype.kind == "O" for c in columns):
        names = " and ".join(f"`{column.shown}`" for column in columns)
        return classes.item(k), f"a tree of {names} with {grown.n_leaves} leaves says so", share
    return classes.item(k), " or ".join(leaves[k]), share


def _interval(column: "_Column", values: Floats, low: float, high: float) -> str:
    """Return `low < name <= high` in words, the ends as short as the values allow."""

    def end(cut: float) -> str:
        return _between(values[values <= cut].max(), values[values > cut].min())

    name = column.shown
    if np.isinf(low):
        return f"`{name} <= {end(high)}`"
    return f"`{name} > {end(low)}`" if np.isinf(high) else f"`{end(low)} < {name} <= {end(high)}`"


def _most_predictive(columns: Sequence["_Column"]) -> list["_Column"]:
    """Return the columns that predict the labels best by themselves."""
    return sorted(columns, key=lambda column: column.error)[:MAX_RULE_COLUMNS]


@dataclass(frozen=True)
class _TableSample:
    """A random sample, balanced over the classes; rules are fitted to one half of it."""

    rows: Codes
    codes: Codes
    learn: Array
    # the number of samples that each of them stands for
    weight: Floats

    @classmethod
    def draw(cls, codes: Codes, n_classes: int) -> "_TableSample | None":
        counts = np.bincount(codes, minlength=n_classes)
        common = np.argsort(-counts, kind="stable")[:MAX_RULE_CLASSES]
        common = common[counts[common] >= MIN_CLASS_SAMPLES]
        if common.size < 2:
            return None
        shuffled = np.random.RandomState(0).permutation(codes.size)
        ordered = shuffled[np.argsort(codes[shuffled], kind="stable")]
        place = np.arange(codes.size) - np.repeat(np.cumsum(counts) - counts, counts)
        within = (place < SAMPLE // common.size) & np.isin(codes[ordered], common)
        rows = ordered[within]
        drawn = codes[rows]
        weight = counts / np.maximum(np.bincount(drawn, minlength=n_classes), 1)
        return cls(rows, drawn, place[within] % 2 == 0, weight[drawn])

    def error(self, predicted: Array) -> float:
        """Return the errors on the other half, per error of the best constant prediction."""
        held = self.codes[~self.learn]
        return float((predicted[~self.learn] != held).sum() / (held.size - np.bincount(held).max()))

    def share(self, predicted: Array) -> float:
        """Return the share of all labels that are as predicted, estimated on the other half."""
        right = (predicted == self.codes)[~self.learn]
        return float(np.average(right, weights=self.weight[~self.learn]))

    def looked_up(self, places: Codes) -> Codes:
        """Return for every sample the most frequent label of those with the same value or bin."""
        n_classes = self.codes.max() + 1
        cells = places[self.learn] * n_classes + self.codes[self.learn]
        counts = np.bincount(cells, minlength=(places.max() + 1) * n_classes)
        table = counts.reshape(-1, n_classes)
        predicted = np.where(table.any(axis=1), table.argmax(axis=1), table.sum(axis=0).argmax())
        return predicted[places]

    def tree(self, columns: Sequence["_Column"], leaves: int) -> tuple[Codes, Floats]:
        """Return the predictions of a small tree of these columns, and the columns' importances."""
        return self.tree_of(np.column_stack([column.numbers for column in columns]), leaves)

    def splits_at_gap(self, columns: Sequence["_Column"]) -> bool:
        """Return whether the first split of a tree lies in a gap between separated classes."""
        values = np.column_stack([column.numbers for column in columns])
        grown = _fitted_tree(values, self.codes, 2).tree_
        first = int(grown.feature[0])
        if first < 0 or columns[first].few:
            return False
        order = np.argsort(values[:, first], kind="stable")
        cut = int((values[:, first] <= grown.threshold[0]).sum())
        return _is_gap(values[order, first], self.weight[order], cut)

    def tree_of(self, values: Floats, leaves: int) -> tuple[Codes, Floats]:
        """Return the same for columns of numbers."""
        fitted = _fitted_tree(values[self.learn], self.codes[self.learn], leaves)
        return fitted.predict(values), fitted.feature_importances_


@dataclass(frozen=True, eq=False)
class _Column:
    """One column of the sample, and how well it predicts the labels by itself."""

    name: Any
    # numbers, or text as objects
    values: Array
    # the same as a tree takes them
    numbers: Floats
    # the label that the column alone predicts
    predicted: Codes
    error: float
    share: float
    # whether its values are looked up, and not cut
    few: bool
    is_copy: bool

    @property
    def shown(self) -> str:
        """The name, or the position in an array."""
        return f"X[:, {self.name}]" if isinstance(self.name, int) else str(self.name)

    @classmethod
    def of(cls, name: Any, values: Array, sample: _TableSample) -> "_Column":
        is_text = values.dtype.kind == "O"
        distinct, places = np.unique(values, return_inverse=True)
        few = is_text or distinct.size <= FEW_VALUES
        if not few:
            edges = np.quantile(values, np.linspace(0, 1, FEW_VALUES + 1)[1:-1])
            places = np.searchsorted(edges, values)
        predicted = sample.looked_up(places)
        if not few and sample.error(predicted) < PROMISING_ERROR:
            by_tree, _ = sample.tree_of(values[:, None], LEAVES_OF_ONE)
            predicted = min(predicted, by_tree, key=sample.error)
        return cls(
            name,
            values,
            # text in the order of its labels, so that a tree can cut between them
            numbers=predicted.astype(float) if is_text else values,
            predicted=predicted,
            error=sample.error(predicted),
            share=sample.share(predicted),
            few=few,
            is_copy=few
            and distinct.size == np.unique(predicted).size == np.unique(sample.codes).size,
        )

    def has_gap(self, sample: _TableSample) -> bool:
        """Return whether every threshold lies in a gap between well separated classes."""
        if self.few:
            return False
        order = np.argsort(self.values, kind="stable")
        predicted = self.predicted[order]
        ends = np.r_[0, np.flatnonzero(np.diff(predicted)) + 1, predicted.size]
        return all(
            _is_gap(
                self.values[order[start:stop]], sample.weight[order[start:stop]], middle - start
            )
            for start, middle, stop in zip(ends[:-2], ends[1:-1], ends[2:], strict=True)
        )


def _is_gap(x: Floats, weight: Floats, cut: int) -> bool:
    """Return whether sorted values are sparse where they are cut, compared with either side.

    The surroundings of the cut reach a tenth of the way to the medians of the two sides, and to the
    middle behind the nearest values, as whole numbers are apart everywhere.
    """
    low, high = float(np.median(x[:cut])), float(np.median(x[cut:]))
    below, above = np.unique(x[:cut])[-2:], np.unique(x[cut:])[:2]
    at = (below[-1] + above[0]) / 2
    start = min(at - 0.1 * (at - low), below.mean())
    stop = max(at + 0.1 * (high - at), above.mean())

    def density(start: float, stop: float) -> float:
        return float(weight[(x >= start) & (x <= stop)].sum() / max(stop - start, TINY))

    return density(start, stop) < MIN_DENSITY * min(density(low, at), density(at, high))


def _fitted_tree(values: Floats, codes: Codes, leaves: int) -> DecisionTreeClassifier:
    return DecisionTreeClassifier(max_leaf_nodes=leaves, random_state=0).fit(values, codes)


def _words(column: _Column, sample: _TableSample, classes: Array) -> tuple[Any, str, float]:
    """Return a label, for which values of a column it is given, and how often that is right."""
    predicted = column.predicted
    if not column.few:  # tested on a half, and now fitted to all
        values = column.values[:, None]
        predicted = _fitted_tree(values, sample.codes, LEAVES_OF_ONE).predict(values)
    counts = np.bincount(predicted, weights=sample.weight, minlength=classes.size)
    k = int(np.where(counts > 0, counts, np.inf).argmin())  # the rarest label has the shortest rule
    label, share = (
        classes.item(k),
        float(np.average(predicted == sample.codes, weights=sample.weight)),
    )
    distinct, first = np.unique(column.values, return_index=True)
    inside = predicted[first] == k
    if column.values.dtype.kind == "O":
        some = ", ".join(repr(value) for value in distinct[inside][:MAX_NAMED_IN_RULE])
        more = int(inside.sum()) - MAX_NAMED_IN_RULE
        words = f"`{column.shown}` is {some}"
        return label, words + (f" or one of {more} more values" if more > 0 else ""), share
    edges = np.flatnonzero(np.diff(np.r_[False, inside, False].astype(int)))
    parts = []
    for start, stop in zip(edges[::2], edges[1::2], strict=True):
        low = -np.inf if start == 0 else distinct[start - 1]
        high = np.inf if stop == distinct.size else distinct[stop - 1]
        parts.append(_interval(column, distinct, low, high))
    if len(parts) > MAX_INTERVALS:
        return label, f"`{column.shown}` is in one of {len(parts)} intervals", share
    return label, " or ".join(parts), share


def _between(low: float, high: float) -> str:
    """Return the shortest number t with low <= t < high."""
    for digits in range(1, 17):
        for value in (low, (low + high) / 2):
            text = np.format_float_positional(
                value, precision=digits, fractional=False, trim="-", unique=False
            )
            if low <= float(text) < high:
                return text
    return repr(low)


def _columns(X: Any, sample: _TableSample) -> Iterator[tuple[Any, Array]]:
    """Yield the columns' names, or positions, and their values in the sample: numbers or text."""
    rows = sample.rows
    frame = as_frame(X)
    if frame is not None:
        for column in frame[rows.tolist()].iter_columns():
            yield column.name, numbers_or_text(column_values(column))
        return
    taken: Any = csr_array(X)[rows] if issparse(X) else np.asarray(X)[rows]
    places = np.arange(taken.shape[1])
    if places.size > MAX_SCREENED and (issparse(taken) or taken.dtype.kind in "biuf"):
        places = _screened(taken, sample)
        taken = taken[:, places]
    if issparse(taken):
        taken = taken.toarray()
    for place, values in zip(places.tolist(), taken.T, strict=True):
        yield place, numbers_or_text(values)


def _screened(rows: Any, sample: _TableSample) -> Codes:
    """Return the columns of which the classes explain the largest share of the variance."""
    rows = rows.astype(float) if issparse(rows) else np.nan_to_num(rows.astype(float))
    member = np.eye(int(sample.codes.max()) + 1)[sample.codes]
    means = np.asarray(rows.T @ member) / np.maximum(member.sum(axis=0), 1)
    total = np.asarray(rows.mean(axis=0)).ravel()
    squares = rows.power(2) if issparse(rows) else rows**2
    variance = np.asarray(squares.mean(axis=0)).ravel() - total**2
    between = (means - total[:, None]) ** 2 @ member.mean(axis=0)
    explained = np.divide(between, variance, out=np.zeros(total.size), where=variance > 0)
    return np.sort(np.argsort(-explained, kind="stable")[:MAX_SCREENED])


def _text(value: Any) -> str:
    """Return an object as text, a missing one as ''."""
    text = str(value)
    return "" if text in MISSING and not isinstance(value, str) else text


def numbers_or_text(values: Array) -> Array:
    """Return finite numbers, a missing value being less than all, or text, '' where missing."""
    if values.dtype.kind in "mM":
        values = np.where(np.isnat(values), np.nan, values.astype(np.int64).astype(float))
    if values.dtype.kind == "O":
        try:
            values = values.astype(float)
        except (TypeError, ValueError):
            # objects: in an array of strings each takes the memory of the longest
            return np.array([_text(value) for value in values], dtype=object)
    if values.dtype.kind not in "biuf":
        return values.astype(object)
    numbers = np.nan_to_num(values.astype(float), nan=np.nan, posinf=1e300, neginf=-1e300)
    numbers = numbers.clip(-1e30, 1e30)  # the range of a tree's single precision
    missing = np.isnan(numbers)
    if missing.any():
        present = numbers[~missing]
        least, largest = (present.min(), present.max()) if present.size else (0.0, 0.0)
        numbers[missing] = least - (largest - least) - 1
    return numbers
