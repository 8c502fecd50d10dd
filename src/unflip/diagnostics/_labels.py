"""Diagnostics of the classes: spellings of one class, and classes of few samples."""

import re
import shlex
import unicodedata
from collections.abc import Sequence
from typing import Any

import numpy as np

from unflip._utils.typing import Array
from unflip.diagnostics._catalogue import Diagnostic, named

MIN_CLASS_SAMPLES = 10
"""Minimum number of samples of a class for its flip rate to be estimated."""

RARE_CLASS_ROWS, RARE_CLASS_SHARE = 50, 0.005
"""A class with fewer samples and a smaller share than these is too rare as well: flips of the other
classes outnumber it."""


def diagnose_classes(
    classes: Array, counts: Array, *, least_rows: int = MIN_CLASS_SAMPLES
) -> list[Diagnostic]:
    """Return which classes look like one, and which have too few samples."""
    found = []
    alike = [", ".join(map(repr, group)) for group in look_alike(classes.tolist())]
    if alike:
        found.append(Diagnostic("classes_look_alike", numbers={"labels": "; ".join(alike)}))
    rare = (counts < RARE_CLASS_ROWS) & (counts < RARE_CLASS_SHARE * counts.sum())
    # a class without samples, which was only named, needs none
    few = np.flatnonzero(((counts < least_rows) | rare) & (counts > 0))
    if few.size:
        labels = named(f"{classes.item(k)!r} ({counts[k]:.0f})" for k in few)
        remedy = "Add samples."
        if classes.size - few.size >= 2:
            remedy = (
                "Merge them with others, leave them out (on the command line: --drop-classes "
                f"{shlex.quote(str(classes[few[0]]))}), or add samples."
            )
        numbers = {"labels": labels, "n_rows": round(counts.sum()), "remedy": remedy}
        found.append(Diagnostic("classes_of_few_rows", "note", numbers))
    return found


def look_alike(labels: Sequence[Any]) -> list[list[str]]:
    """Return groups of labels that differ only in case, whitespace or how a number is written."""
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
