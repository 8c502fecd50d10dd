"""What is odd about a table before any noise is estimated: leaks, rules, and classes alike.

Noise shows where labels contradict the columns. Where a column was made from the label, or the
label from a column by a rule, nothing contradicts, however wrong the labels are.
"""

import re
import shlex
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import narwhals as nw
import numpy as np
from scipy.sparse import csr_array, issparse
from sklearn.tree import DecisionTreeClassifier

from unflip._utils.frames import column_values
from unflip._utils.typing import Array, Codes, Floats
from unflip._utils.validation import check_labels
from unflip.diagnostics._findings import Diagnostic, named

LEAST_CLASS_ROWS = 10
"""Of a class with fewer rows it cannot be told how often it is mislabelled."""

RARE_CLASS_ROWS, RARE_CLASS_SHARE = 50, 0.005
"""Nor of one with fewer than so many that is so rare: the other classes' flips drown it."""

LARGEST_RULE_ERROR = 0.02
"""A rule that gives the labels errs at most so often, for each error of always the same label."""

LARGEST_EASY_ERROR = 0.05
"""Where the other columns give the labels nearly as well, the classes are plainly apart."""

SAMPLE, MOST_RULE_CLASSES = 2000, 50
"""Rules are looked for in so many rows of the commonest classes, as many of each."""

FEW_VALUES = 16
"""A column of no more distinct values is looked up, one of more is cut into so many parts."""

LEAVES_OF_ONE, LEAVES_OF_RULE, LEAVES_OF_REST = 4, 8, 16
"""How large a tree may be: a rule of one column, of more, and what the other columns can do."""

MOST_OF_RULE = 5
"""A rule has no more columns."""

PROMISING_ERROR = 0.3
"""A column cut into parts that errs less may give the labels when cut in the right places."""

MOST_RULE_COLUMNS, MOST_NAMED_IN_RULE = 30, 3
"""So many columns, those that say most on their own, are looked at together, and are named."""


def judge_table(X: Any, y: Any) -> list[Diagnostic]:
    """Return what is odd about rows and labels, whatever the noise."""
    classes, codes = check_labels(y, binary=False)
    return [*judge_classes(classes, np.bincount(codes)), *judge_rules(X, codes, classes)]


def judge_classes(
    classes: Array, counts: Array, *, least_rows: int = LEAST_CLASS_ROWS
) -> list[Diagnostic]:
    """Return which classes look like one, and which have too few rows."""
    found = []
    alike = [", ".join(map(repr, group)) for group in look_alike(classes.tolist())]
    if alike:
        found.append(Diagnostic("classes_look_alike", numbers={"labels": "; ".join(alike)}))
    rare = (counts < RARE_CLASS_ROWS) & (counts < RARE_CLASS_SHARE * counts.sum())
    # a class that no row has, and that was named, is missed by nobody
    few = np.flatnonzero(((counts < least_rows) | rare) & (counts > 0))
    if few.size:
        labels = named(f"{classes.item(k)!r} ({counts[k]:.0f})" for k in few)
        remedy = "Add rows."
        if classes.size - few.size >= 2:
            remedy = (
                "Merge them with others, leave them out (on the command line: --drop-classes "
                f"{shlex.quote(str(classes[few[0]]))}), or add rows."
            )
        numbers = {"labels": labels, "n_rows": round(counts.sum()), "remedy": remedy}
        found.append(Diagnostic("classes_of_few_rows", numbers=numbers))
    return found


def look_alike(labels: Sequence[Any]) -> list[list[str]]:
    """Return groups of labels that differ in case, blanks or the way a number is written only."""
    # letters are classes of their own right where there are many of them
    if len(labels) > 4 and all(len(str(label)) == 1 for label in labels):
        return []
    groups: dict[Any, list[str]] = {}
    for label in labels:
        if isinstance(label, str):
            groups.setdefault(_meant(label), []).append(label)
    return [group for group in groups.values() if len(group) > 1]


def _meant(label: str) -> Any:
    """Return what a label says, however it is written."""
    text = " ".join(unicodedata.normalize("NFKC", label).casefold().split())
    if re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", text):
        return float(text)
    joined = re.sub(r"(?<=[^\W\d_])[\s_-]+(?=[^\W\d_])", " ", text)
    return re.sub(r"(?<=\w)[.,;:!]+$", "", joined)


def judge_rules(X: Any, codes: Codes, classes: Array) -> list[Diagnostic]:
    """Return which columns equal the label, determine it, or give it by a rule of a few.

    A rule is learnt on one half of a sample and judged on the other, so that a column of numbers
    that name the rows determines nothing.
    """
    sample = _TableSample.draw(codes, classes.size)
    if sample is None:
        return []
    columns = [_Column.of(name, values, sample) for name, values in _columns(X, sample.rows)]
    sure = [column for column in columns if column.error <= LARGEST_RULE_ERROR]
    if not sure:
        return _rule(columns, sample)
    found = [
        Diagnostic("leak", numbers={"column": column.name, "share": column.share})
        for column in sure
        if column.is_copy
    ]
    others = [column for column in columns if column not in sure]
    if len(columns) == 1 or not _easy(others, sample):
        found += [
            Diagnostic("determined", "note", {"column": column.name, "share": column.share})
            for column in sure
            if not column.is_copy
        ]
    return found[:MOST_NAMED_IN_RULE]


def _easy(columns: Sequence["_Column"], sample: "_TableSample") -> bool:
    """Return whether the classes are so plainly apart that these columns give the labels too."""
    if not columns:
        return True  # each of all columns does by itself
    said, _ = sample.tree(_most_telling(columns), LEAVES_OF_REST)
    return sample.error(said) <= LARGEST_EASY_ERROR


def _rule(columns: Sequence["_Column"], sample: "_TableSample") -> list[Diagnostic]:
    """Return the rule of few columns that gives the labels: of two, if they do, else of more."""
    if len(columns) < 2:
        return []
    telling = _most_telling(columns)
    said, importances = sample.tree(telling, LEAVES_OF_RULE)
    used = [telling[j] for j in np.argsort(-importances, kind="stable") if importances[j] > 0]
    of_two, _ = sample.tree(used[:2], LEAVES_OF_RULE) if used else (said, None)
    if sample.error(of_two) <= LARGEST_RULE_ERROR:
        said, used = of_two, used[:2]
    if sample.error(said) > LARGEST_RULE_ERROR or len(used) > MOST_OF_RULE:
        return []
    others = [column for column in columns if column not in used]
    if others and _easy(others, sample):
        return []
    *first, last = [repr(column.name) for column in used]
    share = sample.share(said)
    if not first:
        return [Diagnostic("determined", "note", {"column": used[0].name, "share": share})]
    return [
        Diagnostic("rule", "note", {"columns": f"{', '.join(first)} and {last}", "share": share})
    ]


def _most_telling(columns: Sequence["_Column"]) -> list["_Column"]:
    return sorted(columns, key=lambda column: column.error)[:MOST_RULE_COLUMNS]


@dataclass(frozen=True)
class _TableSample:
    """As many rows of each class where there are, half of them to learn rules from.

    `weight` is how many rows of the table each of them stands for.
    """

    rows: Codes
    codes: Codes
    learn: Array
    weight: Floats

    @classmethod
    def draw(cls, codes: Codes, n_classes: int) -> "_TableSample | None":
        counts = np.bincount(codes, minlength=n_classes)
        common = np.argsort(-counts, kind="stable")[:MOST_RULE_CLASSES]
        common = common[counts[common] >= LEAST_CLASS_ROWS]
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

    def error(self, said: Array) -> float:
        """Return the errors on the other half, for each error of always the same label."""
        held = self.codes[~self.learn]
        return float((said[~self.learn] != held).sum() / (held.size - np.bincount(held).max()))

    def share(self, said: Array) -> float:
        """Return the share of the table's labels that are as said, by the other half."""
        right = (said == self.codes)[~self.learn]
        return float(np.average(right, weights=self.weight[~self.learn]))

    def looked_up(self, places: Codes) -> Codes:
        """Return for every row the commonest label of those in its place."""
        n_classes = self.codes.max() + 1
        cells = places[self.learn] * n_classes + self.codes[self.learn]
        counts = np.bincount(cells, minlength=(places.max() + 1) * n_classes)
        table = counts.reshape(-1, n_classes)
        said = np.where(table.any(axis=1), table.argmax(axis=1), table.sum(axis=0).argmax())
        return said[places]

    def tree(self, columns: Sequence["_Column"], leaves: int) -> tuple[Codes, Floats]:
        """Return what a small tree of these columns says of every row, and how it uses them."""
        values = np.column_stack([column.numbers for column in columns])
        fitted = DecisionTreeClassifier(max_leaf_nodes=leaves, random_state=0)
        fitted.fit(values[self.learn], self.codes[self.learn])
        return fitted.predict(values), fitted.feature_importances_


@dataclass(frozen=True, eq=False)
class _Column:
    """One column of the sample, and how well it gives the labels by itself."""

    name: Any
    numbers: Floats
    error: float
    share: float
    is_copy: bool

    @classmethod
    def of(cls, name: Any, values: Array, sample: _TableSample) -> "_Column":
        is_text = values.dtype.kind == "O"
        distinct, places = np.unique(values, return_inverse=True)
        few = is_text or distinct.size <= FEW_VALUES
        if not few:
            edges = np.quantile(values, np.linspace(0, 1, FEW_VALUES + 1)[1:-1])
            places = np.searchsorted(edges, values)
        said = sample.looked_up(places)
        # values of text in the order of their labels, so that a tree can cut between them
        numbers = said.astype(float) if is_text else values
        column = cls(
            name,
            numbers,
            sample.error(said),
            sample.share(said),
            is_copy=few and distinct.size == np.unique(said).size == np.unique(sample.codes).size,
        )
        if few or not LARGEST_RULE_ERROR < column.error < PROMISING_ERROR:
            return column
        said, _ = sample.tree([column], LEAVES_OF_ONE)
        return replace(column, error=sample.error(said), share=sample.share(said))


def _columns(X: Any, rows: Codes) -> Iterator[tuple[Any, Array]]:
    """Yield the columns' names, or positions, and the values of these rows: numbers or text."""
    if issparse(X):
        X = csr_array(X)[rows].toarray()
    elif hasattr(X, "columns") and len(set(X.columns)) == len(X.columns):
        frame = nw.from_native(X, eager_only=True)[rows.tolist()]
        for column in frame.iter_columns():
            yield column.name, _numbers_or_text(column_values(column))
        return
    else:
        X = np.asarray(X)[rows]
    for position, values in enumerate(X.T):
        yield position, _numbers_or_text(values)


def _numbers_or_text(values: Array) -> Array:
    """Return finite numbers, a gap being less than all, or text, a gap being a word of its own."""
    if values.dtype.kind in "mM":
        values = np.where(np.isnat(values), np.nan, values.astype(np.int64).astype(float))
    if values.dtype.kind == "O":
        try:
            values = values.astype(float)
        except (TypeError, ValueError):
            # objects: numpy's own strings would all take the room of the longest cell
            return np.array(["" if value is None else str(value) for value in values], dtype=object)
    if values.dtype.kind not in "biuf":
        return values.astype(object)
    numbers = np.nan_to_num(values.astype(float), nan=np.nan, posinf=1e300, neginf=-1e300)
    numbers = numbers.clip(-1e30, 1e30)  # what a tree's single precision can hold
    gaps = np.isnan(numbers)
    if gaps.any():
        told = numbers[~gaps]
        least, largest = (told.min(), told.max()) if told.size else (0.0, 0.0)
        numbers[gaps] = least - (largest - least) - 1
    return numbers
