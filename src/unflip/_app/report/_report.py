"""The report on noisy labels: one dictionary, written as HTML, Markdown or JSON."""

import json
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, clone
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from unflip._app.markup import rounded
from unflip._app.report._document import to_fragment, to_html, to_markdown
from unflip._app.report._page import TITLE, page_blocks, short_blocks
from unflip._app.words import ASSUMPTIONS, next_steps
from unflip._utils.estimators import clone_seeded
from unflip._utils.folds import folds_within_classes, stratified_folds
from unflip._utils.preprocessing import default_classifier
from unflip._utils.progress import tick, work
from unflip._utils.threads import threads_for
from unflip._utils.typing import Codes, Floats, Record, Rows
from unflip._utils.validation import Labels, check_labels
from unflip._utils.warning import silenced
from unflip.estimate import NoiseEstimate
from unflip.inspection import MIN_P, NoiseBySlice, posterior_histogram, summary, weight_histogram
from unflip.metrics import clean_accuracy_score
from unflip.posterior import cross_fit
from unflip.weights import LabelPosterior

SCORING_FOLDS = 5
BINS = 25
SUSPECTS, LEAST_SUSPICION = 50, 0.005
"""Maximum number of suspicious rows, and the minimum P(wrong), which is not shown as 0.00."""


@dataclass(frozen=True)
class Report:
    """A report on noisy labels, as HTML, Markdown or JSON; notebooks show a short version.

    Parameters
    ----------
    content : dict
        `summary`, `accuracy` (`labels_as_they_are`, `reweighted` and the `gain`, each with `score`
        and `standard_error`; None if a class is too rare), `suspects`, `slices`, `histograms`,
        `assumptions`, `warnings`, `next_steps` and `made`, ready for `json.dumps`.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from unflip import ImportanceReweightingClassifier, NoiseRates, flip_labels
    >>> from unflip.report import make_report
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
        """Return the report as one self-contained HTML file.

        Returns
        -------
        str
            The page with its styles and pictures.
        """
        return to_html(TITLE, page_blocks(self.content))

    def to_markdown(self) -> str:
        """Return the report without its pictures, whose numbers are in the JSON.

        Returns
        -------
        str
            Markdown.
        """
        return to_markdown(page_blocks(self.content, drawn=False))

    def to_json(self) -> str:
        """Return the content with numbers in four significant digits.

        Returns
        -------
        str
            JSON.
        """
        return json.dumps(rounded(self.content), indent=2, ensure_ascii=False) + "\n"

    def _repr_html_(self) -> str:
        return to_fragment(short_blocks(self.content))


def make_report(
    classifier: BaseEstimator,
    X: Rows,
    y: ArrayLike,
    *,
    noise: NoiseEstimate | None = None,
    found: Record | None = None,
    rows: Rows = None,
    slices: Sequence[NoiseBySlice] = (),
    settled: Collection[int] = (),
    made: Record | None = None,
    seed: int = 0,
) -> Report:
    """Return the report on a fitted classifier and the data it was fitted to.

    Parameters
    ----------
    classifier : ImportanceReweightingClassifier or LabelAudit
        A fitted one; the report on an audit says nothing about training.
    X, y : array-like
        The samples and noisy labels that it was fitted to; X may be None for an audit.
    noise : NoiseEstimate, default=None
        Estimate that ranks the samples, such as one corrected by checked samples. None: `noise_`.
    found : dict, default=None
        The summary. None: :func:`~unflip.inspection.summary` of the classifier.
    rows : dataframe, default=None
        Columns to show of suspicious rows. None: those of `X` if it is a dataframe.
    slices : sequence of NoiseBySlice, default=()
        Noise in parts of the table, from :func:`~unflip.noise_by_slice`.
    settled : collection of int, default=()
        Rows, counted from 0, that are not to be listed because a person has checked them.
    made : dict, default=None
        Provenance: `command`, `seed`, `versions` and `table`, all optional.
    seed : int, default=0
        Random seed of the folds.

    Returns
    -------
    Report
        The report.
    """
    check_is_fitted(classifier)
    found = summary(classifier) if found is None else found
    noise = classifier.noise_ if noise is None else noise
    n_labels = check_labels(y, classes=noise.classes, binary=False).codes.size
    if n_labels != noise.codes.size:
        raise ValueError(
            f"y has {n_labels} labels, but the estimator was fitted to {noise.codes.size} rows: "
            "give the labels that it was fitted to."
        )
    if rows is None and hasattr(X, "columns"):
        rows = X
    is_trained = found["weights"] is not None
    content = {
        "summary": found,
        "accuracy": _accuracy(classifier, X, seed) if is_trained else None,
        "suspects": _suspects(noise, rows, settled),
        "slices": [_slice_record(one) for one in slices],
        "histograms": {
            "mislabelled": _histogram(noise.mislabel_proba, 1.0),
            "weights": _weights(classifier) if is_trained else None,
            "posterior": _posterior(noise) if is_trained and noise.classes.size == 2 else None,
        },
        "assumptions": list(ASSUMPTIONS),
        "warnings": list(found["warnings"]),
        "next_steps": next_steps(found),
        "made": {} if made is None else made,
    }
    return Report(content)


@work((1.0, 3.0))
def _accuracy(classifier: Any, X: Rows, seed: int) -> Record | None:
    """Estimate the accuracy on clean labels of held-out rows, with and without weights."""
    noise: NoiseEstimate = classifier.noise_
    classes, codes, labels = noise.classes, noise.codes, noise.observed
    if np.bincount(codes).min() < 2 * SCORING_FOLDS:
        return None
    folds = stratified_folds(SCORING_FOLDS, classes, codes, seed, none_allowed=False)
    plain = default_classifier(X) if classifier.estimator is None else classifier.estimator
    plain = clone_seeded(plain, seed)
    # the difference row by row: both models see the same rows and errors
    stand_in = np.asarray(np.linalg.inv(noise.transition), dtype=float)
    hits: list[Floats] = []
    scores: Record = {"folds": SCORING_FOLDS}
    reweight = _weights_of_folds(classifier, X)
    fits: dict[str, Callable[..., Any]] = {
        "labels_as_they_are": lambda model, rows, part: model.fit(rows, labels[part]),
        "reweighted": lambda model, rows, part: reweight(part).fit(model, rows),
    }
    for name, fit in fits.items():
        predicted = np.empty_like(labels)
        with threads_for(labels.size), work(SCORING_FOLDS), silenced():
            for train, test in folds.split(labels, labels):
                fitted = fit(clone(plain), _safe_indexing(X, train), train)
                predicted[test] = fitted.predict(_safe_indexing(X, test))
                tick()
        score = clean_accuracy_score(labels, predicted, noise.noise_rates, classes=classes)
        scores[name] = {"score": float(score), "standard_error": score.standard_error}
        hits.append(stand_in[codes, np.searchsorted(classes, predicted)])
        tick()
    gain = hits[1] - hits[0]
    error = float(gain.std(ddof=1) / gain.size**0.5)
    return {**scores, "gain": {"score": float(gain.mean()), "standard_error": error}}


def _weights_of_folds(classifier: Any, X: Rows) -> Callable[[Codes], Any]:
    """Return a function that weighs some rows, by a posterior fitted to these rows only."""
    # weights from all rows would leak the labels that score; T is that of all rows, and the noise
    # model is neither selected nor diagnosed again
    noise: NoiseEstimate = classifier.noise_
    encoder, posterior = classifier.preprocessing_, classifier.posterior_.for_folds()
    numbers = X if encoder is None else encoder.transform(X)
    cv = classifier.cv

    def reweight(part: Codes) -> Any:
        labels = Labels(noise.classes, noise.codes[part])
        folds = None if cv is None else folds_within_classes(cv, labels.codes)
        rows = _safe_indexing(numbers, part)
        _, noisy = cross_fit(clone(posterior), rows, labels, cv=folds, random_state=0)
        found = LabelPosterior(noisy, labels.codes, noise.noise_rates, noise.classes)
        proba = None if classifier._training.proba is None else found.proba
        return classifier._training._replace(
            observed=labels.observed, beta=found.weights, proba=proba, sample_weight=None
        )

    return reweight


def _suspects(noise: NoiseEstimate, rows: Rows, settled: Collection[int]) -> list[Record]:
    """Return the rows most likely to be mislabelled, most suspicious first."""
    order = np.argsort(-noise.mislabel_proba, kind="stable")
    # if the estimate expects no errors, no row is suspicious
    order = order[noise.mislabel_proba[order] >= LEAST_SUSPICION]
    worst = [k for k in order.tolist() if k not in settled][:SUSPECTS]
    table = None if rows is None else nw.from_native(rows, eager_only=True)
    names = [] if table is None else table.columns
    observed, suggested, unclear = noise.observed, noise.suggested_label, noise.unclear
    suspects = []
    for k in worst:
        # some libraries have no rows in a table without columns
        values = () if table is None or not names else table.row(k)
        suspects.append(
            {
                "row": k,
                "label": observed.item(k),
                "suggested": suggested.item(k),
                "unclear": bool(unclear[k]),
                "p_wrong": float(noise.mislabel_proba[k]),
                "p_none": float(noise.none_proba[k]),
                "values": {
                    name: _plain_value(value) for name, value in zip(names, values, strict=True)
                },
            }
        )
    return suspects


def _slice_record(found: NoiseBySlice) -> Record:
    """Return noise by slice, ready for `json.dumps`."""
    return {
        "by": found.by,
        "sentence": str(found),
        "slices": [
            {"name": name, "n_rows": n_rows, "label_error_rate": share, "interval": interval}
            for name, n_rows, share, interval in zip(
                found.slices,
                found.n_rows.tolist(),
                found.label_error_rate.tolist(),
                found.label_error_rate_interval.tolist(),
                strict=True,
            )
        ],
        "overall": {"label_error_rate": found.overall, "interval": list(found.overall_interval)},
        "p_value": max(found.p_value, MIN_P),
        "warnings": list(found.diagnostics),
    }


def _plain_value(value: object) -> float | str | None:
    """Return a number, text, or None for a missing value, as JSON has them."""
    if value is None or value != value:
        return None
    return value if isinstance(value, (int, float)) else str(value)


def _histogram(values: Floats, top: float) -> Record:
    edges = np.linspace(0, top, BINS + 1)
    return {"edges": edges.tolist(), "counts": np.histogram(values, edges)[0].tolist()}


def _weights(classifier: Any) -> Record:
    """Return the training weights by label, and the share of rows and weight of each class."""
    beta, noise = classifier.sample_weight_, classifier.noise_
    found = weight_histogram(
        beta, noise.observed, noise.noise_rates, bins=BINS, classes=noise.classes
    )
    top = float(found.edges.max())
    parts = [_histogram(beta[noise.codes == k], top) for k in range(noise.classes.size)]
    return {
        "label_share": found.label_share.tolist(),
        "weight_share": found.weight_share.tolist(),
        "edges": parts[0]["edges"],
        "counts": [part["counts"] for part in parts],
    }


def _posterior(noise: NoiseEstimate) -> Record:
    """Return P(noisy y | x) of the rows by label, and the noise rates as its ends."""
    found = posterior_histogram(
        noise.noisy_proba, noise.observed, noise.noise_rates, bins=BINS, classes=noise.classes
    )
    return {
        "edges": found.edges.tolist(),
        "counts": found.counts.tolist(),
        "anchor_values": found.anchor_values.tolist(),
    }
