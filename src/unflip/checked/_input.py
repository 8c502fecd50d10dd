"""Checked rows in arrays and files: read and validated."""

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from unflip._utils.typing import Array, Codes, Floats
from unflip._utils.validation import Labels, find_class, is_missing

NONE = "none of these"
"""Answer for a row that belongs to no class."""

UNSURE = "unsure"
"""Answer of a person who could not decide."""


def check_rows(rows: ArrayLike) -> Codes:
    """Return positions of rows; raise an error if one is invalid."""
    values = np.asarray(rows)
    if values.ndim != 1:
        raise ValueError(f"rows has shape {values.shape}, expected one position per checked row.")
    if not values.size:
        return np.empty(0, dtype=np.intp)
    if values.dtype.kind not in "iu":
        raise ValueError(
            f"rows must hold positions, whole numbers counted from 0, got {values.tolist()[0]!r}. "
            "For rows that are named, use CheckedLabels.from_ids."
        )
    if values.min() < 0:
        raise ValueError(f"rows are counted from 0, got {values.min()}.")
    return values.astype(np.intp)


def objects(values: list[Any]) -> Array:
    """Return a one-dimensional array of objects."""
    whole = np.empty(len(values), dtype=object)
    whole[:] = values
    return whole


def check_answers(labels: ArrayLike, rows: Codes) -> Array:
    """Return an answer for every row; raise an error if one is missing."""
    plain = labels.tolist() if hasattr(labels, "tolist") else list(labels)  # type: ignore[arg-type]
    if len(plain) != rows.size:
        raise ValueError(f"labels has {len(plain)} entries, and rows has {rows.size}: one each.")
    for row, label in zip(rows.tolist(), plain, strict=True):
        if is_missing(label):
            raise ValueError(
                f"row {row} has no label: leave it out if it was not checked, or use {UNSURE!r}."
            )
    return objects(plain)


def check_chances(probability: ArrayLike | None, rows: Codes) -> Floats:
    """Return a probability for every row; NaN for rows picked by hand."""
    if probability is None:
        return np.full(rows.size, np.nan)
    values = np.asarray(probability, dtype=float)
    if values.ndim == 0:
        values = np.full(rows.size, float(values))
    if values.shape != (rows.size,):
        raise ValueError(
            f"probability has shape {values.shape}, expected ({rows.size},): one per checked row."
        )
    wrong = ~(np.isnan(values) | ((values > 0) & (values <= 1)))
    if wrong.any():
        raise ValueError(
            f"row {rows[wrong][0]} was drawn with probability {values[wrong][0]:g}, expected above "
            "0 and at most 1; NaN for a row that was picked by hand."
        )
    return values


def once(
    rows: Codes, answers: Array, chances: Floats, names: Sequence[object] | None = None
) -> Codes:
    """Return which entries to keep: one per row, the one that was drawn if there is one."""
    kept: dict[int, int] = {}
    for i, row in enumerate(rows.tolist()):
        first = kept.get(row)
        if first is None:
            kept[row] = i
            continue
        if answers[first] != answers[i]:
            what = f"row {row}" if names is None else f"the id {names[i]!r}"
            raise ValueError(
                f"{what} was checked twice, with different answers: {answers[first]!r} and "
                f"{answers[i]!r}. Keep the right one."
            )
        if np.isnan(chances[first]) and not np.isnan(chances[i]):
            kept[row] = i
    return np.array(sorted(kept.values()), dtype=np.intp)


def read_csv(path: Path) -> list[dict[str, str]]:
    """Return the lines of a file of checked labels."""
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}.")
    with path.open("rb") as file:
        if file.read(15) == b"SQLite format 3":
            raise ValueError(
                f"{path} is the review page's own file of decisions: export it, and give the "
                "reviewed.csv that is written."
            )
    with path.open(newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        lines = list(reader)
    lacking = [name for name in ("row", "label") if name not in (reader.fieldnames or [])]
    if lacking:
        raise ValueError(
            f"{path} has no column {lacking[0]!r}: a file of checked labels has the columns row "
            f"(counted from 0) and label. It has: {', '.join(reader.fieldnames or ['none'])}."
        )
    return lines


def whole_number(text: str, path: Any, line: int) -> int:
    """Return the position of a row."""
    try:
        return int(text)
    except (TypeError, ValueError):
        raise ValueError(
            f"line {line} of {path}: row must be a whole number, counted from 0, got {text!r}."
        ) from None


def chance(text: str | None, path: Any, line: int) -> float:
    """Return a probability, or NaN."""
    try:
        return float(text) if text else np.nan
    except ValueError:
        raise ValueError(
            f"line {line} of {path}: probability must be a number, or empty where the row was "
            f"picked by hand, got {text!r}."
        ) from None


def as_class(text: str, classes: Array) -> Any:
    """Return the class with this text, or the text itself."""
    found = find_class(classes, text)
    return text if found is None else found


def check_given(path: Any, rows: list[int], given: list[str | None], table: Labels) -> None:
    """Raise an error if the observed labels of a file differ from those of the table."""
    for row, text in zip(rows, given, strict=True):
        if not text or row >= table.codes.size:
            continue
        now = table.classes.item(table.codes[row])
        if as_class(text, table.classes) != now:
            raise ValueError(
                f"{path} was made of another table: row {row} had the label {text!r} when it was "
                f"checked, and has {now!r} here. Give the table that was checked."
            )
