"""The findings of a fitted estimator, shown below its diagram in a notebook."""

import html
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from unflip._utils.typing import Record
from unflip.diagnostics import MEANINGLESS, sentences
from unflip.estimate import NoiseEstimate

MAX_SHOWN_CLASSES, MAX_SHOWN_ROWS = 3, 5
"""Maximum number of classes, those flipped most often, and of suspicious rows that are shown."""


def with_findings(diagram: str, estimator: BaseEstimator) -> str:
    """Return scikit-learn's diagram, and below it the rates and the most suspicious rows.

    Before `fit` it is the diagram alone. To be called by `_html_repr` of an estimator.
    """
    if "noise_" not in vars(estimator):
        return diagram
    noise: NoiseEstimate = estimator.noise_
    verdict = str(noise.verdict)
    rest = [sentence for sentence in noise.warnings if sentence != verdict]
    if noise.verdict.code in MEANINGLESS:
        return f"{diagram}<p><strong>{html.escape(verdict)}</strong></p>{_paragraphs(rest)}"
    rest = sentences(noise.findings, "assumption") + rest
    return (
        f"{diagram}<p><strong>{html.escape(verdict)}</strong></p>{_paragraphs(rest)}"
        f"{_rates(noise)}{_suspicious_rows(noise, estimator._index)}"
    )


def _rates(noise: NoiseEstimate) -> str:
    """Return how often each class is flipped, as a table."""
    flipped = 1 - np.diag(noise.transition)
    shown = np.arange(flipped.size)
    if flipped.size > MAX_SHOWN_CLASSES:
        shown = np.argsort(-flipped, kind="stable")[:MAX_SHOWN_CLASSES]
    names, rates = noise.classes[shown].tolist(), [f"{flipped[k]:.1%}" for k in shown]
    if flipped.size > MAX_SHOWN_CLASSES:
        names.append(f"{flipped.size - MAX_SHOWN_CLASSES} others")
        rates.append("less often")
    return _table({"true class": names, "labelled otherwise": rates})


def _suspicious_rows(noise: NoiseEstimate, index: Any) -> str:
    """Return the rows whose labels are most probably wrong, as a table; nothing if none may be."""
    wrong = noise.mislabel_proba
    first = np.argsort(-wrong, kind="stable")[:MAX_SHOWN_ROWS]
    first = first[wrong[first] > 0]
    if not first.size:
        return ""
    columns = {
        "row": [k if index is None or isinstance(index, str) else index[k] for k in first],
        "label": noise.observed[first],
        "suggested": noise.suggested_label[first],
        "P(wrong)": [f"{share:.2f}" for share in wrong[first]],
    }
    return f"<p>The most suspicious rows; <code>to_frame()</code> has all.</p>{_table(columns)}"


def _paragraphs(sentences: list[str]) -> str:
    return "".join(f"<p>{html.escape(sentence)}</p>" for sentence in sentences)


def _table(columns: Record) -> str:
    head = "".join(f"<th>{name}</th>" for name in columns)
    body = "".join(
        f"<tr>{''.join(f'<td>{html.escape(str(value))}</td>' for value in row)}</tr>"
        for row in zip(*columns.values(), strict=True)
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
