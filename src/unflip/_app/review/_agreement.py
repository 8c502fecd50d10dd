"""Agreement between checkers, and the rows on which they disagree."""

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

Answers = Mapping[int, Mapping[str, int | None]]
"""Class index that each checker chose for a row; None: unsure."""


def krippendorff_alpha(counts: ArrayLike) -> float:
    r"""Return 1 - D_o / D_e, observed over expected disagreement of nominal labels.

    References
    ----------
    Krippendorff (2011), "Computing Krippendorff's alpha-reliability".

    Examples
    --------
    >>> krippendorff_alpha([[2, 0], [0, 2], [1, 1], [2, 0]]).__round__(3)
    0.533
    """
    table = np.asarray(counts, dtype=float)
    table = table[table.sum(axis=1) >= 2]
    per_row, per_class = table.sum(axis=1), table.sum(axis=0)
    total = float(per_row.sum())
    if not total:
        return math.nan
    agreed = float((table * (table - 1) / (per_row - 1)[:, None]).sum() / total)
    by_chance = float((per_class * (per_class - 1)).sum() / (total * (total - 1)))
    return 1 - (1 - agreed) / (1 - by_chance) if by_chance < 1 else math.nan


def agreement(answers: Answers, n_classes: int) -> tuple[float, int, list[int]]:
    """Return alpha, the number of rows with two or more answers, and the disputed rows."""
    known = {
        row: [label for label in said.values() if label is not None]
        for row, said in answers.items()
    }
    shared = {row: labels for row, labels in known.items() if len(labels) >= 2}
    counts = np.array(
        [np.bincount(labels, minlength=n_classes) for labels in shared.values()]
    ).reshape(-1, n_classes)
    disputed = sorted(row for row, labels in shared.items() if len(set(labels)) > 1)
    return krippendorff_alpha(counts), len(shared), disputed
