"""One object per report: show it in a notebook, or write it down in three ways."""

import json
from dataclasses import dataclass
from typing import Any

from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from unflip._app.markup import rounded
from unflip._app.report._document import to_fragment, to_html, to_markdown
from unflip._app.report._findings import findings
from unflip._app.report._page import TITLE, page_blocks, short_blocks
from unflip._utils.typing import Record, Rows


@dataclass(frozen=True)
class Report:
    """What was found about noisy labels, as HTML, Markdown or JSON; a notebook shows it in short.

    Parameters
    ----------
    content : dict
        What :func:`findings` returns.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from unflip import ImportanceReweightingClassifier, NoiseRates, flip_labels
    >>> from unflip._app.report import make_report
    >>> X, y = make_classification(1000, class_sep=1.5, random_state=0)
    >>> rates = NoiseRates(positive=0.3, negative=0.1)
    >>> y_noisy = flip_labels(y, rates, random_state=0)
    >>> clf = ImportanceReweightingClassifier(noise_rates=rates).fit(X, y_noisy)
    >>> report = make_report(clf, X, y_noisy)
    >>> len(report.content["suspects"])
    50
    >>> report.to_html().startswith("<!doctype html>")
    True
    """

    content: Record

    def to_html(self) -> str:
        """Return one file that needs nothing else.

        Returns
        -------
        str
            The page, styles and pictures inside.
        """
        return to_html(TITLE, page_blocks(self.content))

    def to_markdown(self) -> str:
        """Return the page without its pictures, whose numbers are in the JSON.

        Returns
        -------
        str
            Markdown.
        """
        return to_markdown(page_blocks(self.content, drawn=False))

    def to_json(self) -> str:
        """Return the dictionary that the page is made of, its numbers in four digits.

        Returns
        -------
        str
            JSON.
        """
        return json.dumps(rounded(self.content), indent=2, ensure_ascii=False) + "\n"

    def _repr_html_(self) -> str:
        return to_fragment(short_blocks(self.content))


def make_report(classifier: BaseEstimator, X: Rows, y: ArrayLike, **options: Any) -> Report:
    """Return the report on a fitted classifier and the data it was fitted to.

    Parameters
    ----------
    classifier : ImportanceReweightingClassifier or LabelAudit
        A fitted one.
    X, y : array-like
        The rows and noisy labels that it was fitted to; X may be None for an audit.
    **options
        As for :func:`findings`.

    Returns
    -------
    Report
        To be written as HTML, Markdown or JSON.
    """
    return Report(findings(classifier, X, y, **options))
