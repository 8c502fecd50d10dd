"""What is odd about a table, whatever the noise."""

from typing import Any

import numpy as np
from scipy.sparse import issparse

from unflip._utils.typing import Array, Codes
from unflip._utils.validation import check_labels
from unflip.diagnostics._catalogue import Diagnostic
from unflip.diagnostics._labels import judge_classes
from unflip.diagnostics._rows import judge_rows
from unflip.diagnostics._rules import judge_rules

MEANINGLESS = ("leak", "rule", "classes_look_alike")
"""Findings beside which no number about label errors means anything."""


def judge_features(X: Any, codes: Codes, classes: Array) -> list[Diagnostic]:
    """Return the columns that give the labels away, identifiers, and copies of samples.

    Samples that are not a table, such as texts for a pipeline, have no columns to look at.
    """
    if not (issparse(X) or hasattr(X, "columns")):
        X = np.asarray(X)
        if X.ndim != 2:
            return []
    return [*judge_rules(X, codes, classes), *judge_rows(X, codes)]


def judge_table(X: Any, y: Any) -> list[Diagnostic]:
    """Return the same, and what is odd about the classes."""
    classes, codes = check_labels(y, binary=False)
    return [*judge_classes(classes, np.bincount(codes)), *judge_features(X, codes, classes)]
