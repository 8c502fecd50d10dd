"""Diagnostics of a table, whatever the noise."""

from typing import Any

import numpy as np
from scipy.sparse import issparse

from unflip._utils.typing import Array, Codes
from unflip.diagnostics._catalogue import Diagnostic
from unflip.diagnostics._rows import diagnose_rows
from unflip.diagnostics._rules import diagnose_rules

MEANINGLESS = ("leak", "rule", "classes_look_alike")
"""Codes of findings that make every number about label errors meaningless."""


def diagnose_features(X: Any, codes: Codes, classes: Array) -> list[Diagnostic]:
    """Return columns that reproduce the labels, identifiers, and copies of samples.

    Samples that are not a table, such as texts for a pipeline, have no columns to look at.
    """
    if not (issparse(X) or hasattr(X, "columns")):
        X = np.asarray(X)
        if X.ndim != 2:
            return []
    return [*diagnose_rules(X, codes, classes), *diagnose_rows(X, codes)]
