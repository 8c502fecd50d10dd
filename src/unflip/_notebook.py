"""What a fitted estimator has found, below the diagram that a notebook shows of it."""

import html

import numpy as np
from sklearn.base import BaseEstimator

from unflip._diagnostics import range_sentence
from unflip._stages import expected_errors, wrong_share_ranges
from unflip.noise import as_transition_matrix

MOST_CLASSES = 10
"""Rows of the table."""


def with_findings(diagram: str, estimator: BaseEstimator) -> str:
    """Return scikit-learn's diagram, and below it the rates and the expected errors.

    Before `fit` it is the diagram alone. To be called by an estimator's `_html_repr`.

    Parameters
    ----------
    diagram : str
        HTML of the estimator.
    estimator : ImportanceReweightingClassifier or LabelAudit
        Whose `noise_rates_`, `mislabel_proba_` and `classes_` are shown.
    """
    wrong = getattr(estimator, "mislabel_proba_", None)
    if wrong is None:
        return diagram
    flipped = 1 - np.diag(as_transition_matrix(estimator.noise_rates_).matrix)
    rows = "".join(
        f"<tr><td>{html.escape(str(label))}</td><td>{rate:.1%}</td></tr>"
        for label, rate in zip(estimator.classes_[:MOST_CLASSES], flipped, strict=False)
    )
    if len(estimator.classes_) > MOST_CLASSES:
        rows += f"<tr><td>... {len(estimator.classes_) - MOST_CLASSES} more</td><td></td></tr>"
    said = range_sentence(*wrong_share_ranges(estimator), wrong.size)
    n_wrong = expected_errors(estimator).sum()
    caption = f"{n_wrong:,.0f} of {wrong.size:,} labels are expected to be wrong. {said}"
    return (
        f"{diagram}<table><caption>{caption}</caption><thead><tr><th>true class</th>"
        f"<th>labelled otherwise</th></tr></thead><tbody>{rows}</tbody></table>"
    )
