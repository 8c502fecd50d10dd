"""What a fitted estimator has found, below the diagram that a notebook shows of it."""

import html

import numpy as np
from sklearn.base import BaseEstimator

from unflip.diagnostics import MEANINGLESS, sentences
from unflip.noise import as_transition_matrix

MAX_SHOWN_CLASSES, MAX_SHOWN_ROWS = 3, 5
"""Number of classes, those that are flipped most often, and of suspicious rows that are shown."""


def with_findings(diagram: str, estimator: BaseEstimator) -> str:
    """Return scikit-learn's diagram, and below it the rates and the most suspicious rows.

    Before `fit` it is the diagram alone. To be called by an estimator's `_html_repr`.
    """
    wrong = getattr(estimator, "mislabel_proba_", None)
    if wrong is None:
        return diagram
    flipped = 1 - np.diag(as_transition_matrix(estimator.noise_rates_).matrix)
    shown = np.arange(flipped.size)
    if flipped.size > MAX_SHOWN_CLASSES:
        shown = np.argsort(-flipped, kind="stable")[:MAX_SHOWN_CLASSES]
    rows = "".join(
        f"<tr><td>{html.escape(str(estimator.classes_[k]))}</td><td>{flipped[k]:.1%}</td></tr>"
        for k in shown
    )
    if flipped.size > MAX_SHOWN_CLASSES:
        rows += f"<tr><td>{flipped.size - MAX_SHOWN_CLASSES} others</td><td>less often</td></tr>"
    noise = estimator.noise_
    first = str(noise.verdict)
    rest = [said for said in noise.warnings if said != first]
    if noise.verdict.code not in MEANINGLESS:
        rest = sentences(noise.findings, "assumption") + rest
    said = "".join(f"<p>{html.escape(sentence)}</p>" for sentence in rest)
    found = f"{diagram}<p><strong>{html.escape(first)}</strong></p>{said}"
    if noise.verdict.code in MEANINGLESS:
        return found
    return (
        f"{found}<table><thead><tr><th>true class</th>"
        f"<th>labelled otherwise</th></tr></thead><tbody>{rows}</tbody></table>"
        f"{_suspicious_rows(estimator)}"
    )


def _suspicious_rows(estimator: BaseEstimator) -> str:
    """Return the rows whose labels are most probably wrong, as a table; nothing if none may be."""
    wrong, index = estimator.mislabel_proba_, estimator._index
    first = np.argsort(-wrong, kind="stable")[:MAX_SHOWN_ROWS]
    first = first[wrong[first] > 0]
    if not first.size:
        return ""
    names = [str(k if index is None or isinstance(index, str) else index[k]) for k in first]
    suggested = getattr(estimator, "suggested_label_", None)
    columns = {
        "row": names,
        "label": estimator.noise_.observed[first],
        **({} if suggested is None else {"suggested": suggested[first]}),
        "P(wrong)": [f"{share:.2f}" for share in wrong[first]],
    }
    head = "".join(f"<th>{name}</th>" for name in columns)
    body = "".join(
        f"<tr>{''.join(f'<td>{html.escape(str(value))}</td>' for value in row)}</tr>"
        for row in zip(*columns.values(), strict=True)
    )
    return (
        f"<p>The most suspicious rows; <code>to_frame()</code> has all.</p><table>"
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    )
