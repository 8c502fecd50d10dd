"""Identifiers among the columns, and samples that are copies of others."""

import shlex
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.sparse import issparse

from unflip._utils.frames import as_frame, column_values
from unflip._utils.row_keys import row_keys
from unflip._utils.typing import Array, Bools, Codes
from unflip.diagnostics._catalogue import Diagnostic, named
from unflip.diagnostics._rules import numbers_or_text

MIN_ID_SAMPLES = 20
"""Minimum number of samples; in fewer, values differ by chance."""

MAX_NAME_LENGTH = 40
"""Maximum number of characters of an identifier; longer texts are messages."""

DENSE = 3
"""Maximum range, per sample, of whole numbers that number the samples."""

OWN_VALUES = 0.5
"""Minimum number of values of some column, per distinct sample. If no column has as many, equal
samples are combinations of a few categories and no copies."""

MAX_NAMED_COLUMNS = 5
"""Maximum number of identifiers that are named."""

MAX_EXACT = 2.0**53
"""Maximum float below which every integer is exact (IEEE 754)."""


def diagnose_rows(X: Any, codes: Codes) -> list[Diagnostic]:
    """Return which columns look like identifiers, and how many samples are copies of others."""
    if issparse(X) or codes.size < MIN_ID_SAMPLES:
        return []
    columns = _all_columns(X)
    names = [name for name, values in columns if is_identifier(values)]
    rest = [values for name, values in columns if name not in names]
    return [*_identifiers(names), *_copies(rest, codes)]


def is_identifier(values: Array) -> bool:
    """Return whether a column seems to name or to number the samples.

    Every sample has a value of its own: words without a blank, or whole numbers close together.
    """
    if values.size < MIN_ID_SAMPLES or np.unique(values[:MIN_ID_SAMPLES]).size < MIN_ID_SAMPLES:
        return False
    if values.dtype.kind == "O":
        return all(
            text and len(text) <= MAX_NAME_LENGTH and not any(map(str.isspace, text))
            for text in map(str.strip, values)
        ) and (np.unique(values).size == values.size)
    if not (np.isfinite(values).all() and (values == np.round(values)).all()):
        return False
    return bool(
        values.max() - values.min() < DENSE * values.size and np.unique(values).size == values.size
    )


def _all_columns(X: Any) -> list[tuple[Any, Array]]:
    """Return the columns' names, or positions, and all of their values."""
    frame = as_frame(X)
    if frame is None:
        return [(place, numbers_or_text(values)) for place, values in enumerate(np.asarray(X).T)]
    return [
        (column.name, numbers_or_text(column_values(column))) for column in frame.iter_columns()
    ]


def _identifiers(names: Sequence[Any]) -> list[Diagnostic]:
    """Return the finding that columns look like identifiers, if any do."""
    if not names:
        return []
    first, *others = map(str, names[:MAX_NAMED_COLUMNS])
    options = [f"--id {shlex.quote(first)}", *(f"--drop {shlex.quote(name)}" for name in others)]
    columns = f"{'Column' if len(names) == 1 else 'Each of the columns'} {named(map(repr, names))}"
    return [Diagnostic("identifiers", "note", {"columns": columns, "options": " ".join(options)})]


def _copies(columns: Sequence[Array], codes: Codes) -> list[Diagnostic]:
    """Return how many samples are copies of others, and how many have another label than theirs."""
    if not columns or any(map(_lost_digits, columns)):
        return []
    as_numbers = (
        np.unique(values, return_inverse=True)[1] if values.dtype.kind == "O" else values
        for values in columns
    )
    keys = row_keys(as_numbers, codes.size)
    _, group, counts = np.unique(keys, return_inverse=True, return_counts=True)
    repeated = counts[group] > 1
    if not repeated.any():
        return []
    if max(np.unique(values).size for values in columns) < OWN_VALUES * counts.size:
        return []
    rows = np.flatnonzero(repeated)
    with_label = np.unique(np.column_stack([group[rows], codes[rows]]), axis=0)
    found = []
    if rows.size > len(with_label):
        numbers = {"n_copies": rows.size - len(with_label), "n_rows": codes.size}
        found.append(Diagnostic("copies", "note", numbers))
    n_labels = np.bincount(with_label[:, 0], minlength=counts.size)
    contradicting: Bools = n_labels[group] > 1
    if contradicting.any():
        first = group[int(np.argmax(contradicting))]
        cases = {
            "n_cases": int((n_labels > 1).sum()),
            "first": named(map(str, np.flatnonzero(group == first).tolist())),
        }
        found.append(Diagnostic("contradicting_copies", "note", cases))
    return found


def _lost_digits(values: Array) -> bool:
    """Return whether samples may differ in digits that floats do not hold."""
    return values.dtype.kind != "O" and bool((np.abs(values) >= MAX_EXACT).any())
