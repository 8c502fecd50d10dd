"""All that a report says, as one plain dictionary."""

from collections.abc import Collection, Sequence

import narwhals as nw
import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import StratifiedKFold
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from unflip._app.words import ASSUMPTIONS, next_steps
from unflip._utils.estimators import clone_seeded
from unflip._utils.folds import stratified_folds
from unflip._utils.preprocessing import default_classifier, noisy_proba_of
from unflip._utils.progress import tick, work
from unflip._utils.threads import threads_for
from unflip._utils.typing import Array, Record, Rows
from unflip._utils.validation import check_labels
from unflip._utils.warning import silenced
from unflip.audit import LabelAudit
from unflip.inspection import (
    LEAST_P,
    NoiseBySlice,
    posterior_histogram,
    summary,
    weight_histogram,
)
from unflip.metrics import clean_accuracy_score
from unflip.noise import as_transition_matrix

SCORING_FOLDS = 5
BINS = 25
SUSPECTS, LEAST_SUSPICION = 50, 0.005
"""Rows that are listed: as many, and none whose P(wrong) is written 0.00."""


def findings(
    classifier: BaseEstimator,
    X: Rows,
    y: ArrayLike,
    *,
    audit: LabelAudit | None = None,
    found: Record | None = None,
    rows: Rows = None,
    slices: Sequence[NoiseBySlice] = (),
    settled: Collection[int] = (),
    made: Record | None = None,
    seed: int = 0,
) -> Record:
    """Return what was found about noisy labels, ready for `json.dumps`.

    Parameters
    ----------
    classifier : ImportanceReweightingClassifier or LabelAudit
        A fitted one. Of an audit, as from held-out probabilities, there is nothing on training.
    X, y : array-like
        The rows and noisy labels that it was fitted to; X may be None for an audit.
    audit : LabelAudit, default=None
        Of the same rows. None: fitted here, with the classifier's posterior and rates.
    found : dict, default=None
        The summary. None: :func:`~unflip.inspection.summary` of the classifier.
    rows : dataframe, default=None
        What to show of suspicious rows. None: `X` where it is a dataframe, else only their labels.
    slices : sequence of NoiseBySlice, default=()
        The noise in parts of the table, from :func:`~unflip.noise_by_slice`.
    settled : collection of int, default=()
        Rows, counted from 0, that a person has looked at and that are not to be listed again.
    made : dict, default=None
        How it was made: `command`, `seed`, `versions`, `table`, all optional.
    seed : int, default=0
        Of the folds.

    Returns
    -------
    findings : dict
        `summary`, `accuracy` (`labels_as_they_are`, `reweighted` and the `gain`, each a `score`
        and its `standard_error`; None where a class is too rare), `suspects`, `slices`,
        `histograms`, `assumptions`, `warnings`, `next_steps`, `made`.
    """
    check_is_fitted(classifier)
    classes, codes = check_labels(y, classes=classifier.classes_, binary=False)
    labels = classes[codes]
    if isinstance(classifier, LabelAudit):
        audit = classifier
    if audit is None:
        audit = LabelAudit()._view(classifier)
    found = summary(classifier, labels) if found is None else found
    if rows is None and hasattr(X, "columns"):
        rows = X
    return {
        "summary": found,
        "accuracy": None if audit is classifier else _accuracy(classifier, X, labels, codes, seed),
        "suspects": _suspects(audit, labels, rows, settled),
        "slices": [_slice_record(one) for one in slices],
        "histograms": _histograms(classifier, X, labels, audit),
        "assumptions": list(ASSUMPTIONS),
        "warnings": list(found["warnings"]),
        "next_steps": next_steps(found),
        "made": {} if made is None else made,
    }


@work((1.0, 9.0))
def _accuracy(
    classifier: BaseEstimator, X: Rows, labels: Array, codes: NDArray[np.intp], seed: int
) -> Record | None:
    """Estimate the accuracy on clean labels of held-out rows, without weights and with them."""
    rates, smallest = classifier.noise_rates_, np.bincount(codes).min()
    if smallest < 2 * SCORING_FOLDS:
        return None
    folds = stratified_folds(SCORING_FOLDS, classifier.classes_, codes, seed, none_allowed=False)
    plain = default_classifier(X) if classifier.estimator is None else classifier.estimator
    # the score takes the rates for known, so no fold estimates its own
    reweighted = clone(classifier).set_params(noise_rates=rates)
    if isinstance(classifier.cv, int):
        # a fold's training rows hold so many of the rarest class
        reweighted.set_params(
            cv=min(classifier.cv, int(smallest) * (SCORING_FOLDS - 1) // SCORING_FOLDS)
        )
    stand_in = np.asarray(np.linalg.inv(as_transition_matrix(rates).matrix), dtype=float)
    hits: list[NDArray[np.float64]] = []
    scores: Record = {"folds": SCORING_FOLDS}
    for name, model in (
        ("labels_as_they_are", clone_seeded(plain, seed)),
        ("reweighted", reweighted),
    ):
        with threads_for(labels.size):
            predicted = _held_out_predictions(model, X, labels, folds)
        score = clean_accuracy_score(labels, predicted, rates, classes=classifier.classes_)
        scores[name] = {"score": float(score), "standard_error": score.standard_error}
        hits.append(stand_in[codes, np.searchsorted(classifier.classes_, predicted)])
        tick()
    # row by row: both models meet the same rows and flips
    gain = hits[1] - hits[0]
    error = float(gain.std(ddof=1) / gain.size**0.5)
    return {**scores, "gain": {"score": float(gain.mean()), "standard_error": error}}


def _held_out_predictions(
    model: BaseEstimator, X: Rows, labels: Array, folds: StratifiedKFold
) -> Array:
    """Return the labels that a model predicts for the rows of each fold, trained on the others."""
    predicted = np.empty_like(labels)
    with work(SCORING_FOLDS), silenced():  # the fit to all samples has given the same warnings
        for train, test in folds.split(labels, labels):
            fitted = clone(model).fit(_safe_indexing(X, train), labels[train])
            predicted[test] = fitted.predict(_safe_indexing(X, test))
            tick()
    return predicted


def _suspects(
    audit: LabelAudit, labels: Array, rows: Rows, settled: Collection[int]
) -> list[Record]:
    """Return the rows that most probably are mislabelled, the surest first."""
    order = audit.issues(n=labels.size).tolist()
    # an audit that expects no errors calls nothing suspicious
    suspicious = audit.mislabel_proba_ >= LEAST_SUSPICION
    worst = [k for k in order if suspicious[k] and k not in settled][:SUSPECTS]
    table = None if rows is None else nw.from_native(rows, eager_only=True)
    names = [] if table is None else table.columns
    suspects = []
    for k in worst:
        # a table without columns has no rows in some libraries
        values = () if table is None or not names else table.row(k)
        suspects.append(
            {
                "row": k,
                "label": labels.item(k),
                "suggested": audit.suggested_label_.item(k),
                "unclear": bool(audit.unclear_[k]),
                "p_wrong": float(audit.mislabel_proba_[k]),
                "p_none": float(audit.none_proba_[k]),
                "values": {
                    name: _plain_value(value) for name, value in zip(names, values, strict=True)
                },
            }
        )
    return suspects


def _slice_record(found: NoiseBySlice) -> Record:
    """Return what noise by slice says, ready for `json.dumps`."""
    return {
        "by": found.by,
        "sentence": str(found),
        "slices": [
            {"name": name, "n_rows": n_rows, "wrong_share": share, "interval": interval}
            for name, n_rows, share, interval in zip(
                found.slices,
                found.n_rows.tolist(),
                found.wrong_share.tolist(),
                found.wrong_share_interval.tolist(),
                strict=True,
            )
        ],
        "overall": {"wrong_share": found.overall, "interval": list(found.overall_interval)},
        "p_value": max(found.p_value, LEAST_P),
        "warnings": list(found.diagnostics),
    }


def _plain_value(value: object) -> float | str | None:
    """Return a number, text, or None for a gap, all of which JSON knows."""
    if value is None or value != value:
        return None
    return value if isinstance(value, (int, float)) else str(value)


def _histograms(classifier: BaseEstimator, X: Rows, labels: Array, audit: LabelAudit) -> Record:
    rates = classifier.noise_rates_
    edges = np.linspace(0, 1, BINS + 1)
    wrong = {
        "edges": edges.tolist(),
        "counts": np.histogram(audit.mislabel_proba_, edges)[0].tolist(),
    }
    if audit is classifier:
        return {"mislabelled": wrong, "weights": None, "posterior": None}
    weights = weight_histogram(
        classifier.sample_weight_, labels, rates, bins=BINS, classes=classifier.classes_
    )
    shown: Record = {
        "mislabelled": wrong,
        "weights": {
            "label_share": weights.label_share.tolist(),
            "weight_share": weights.weight_share.tolist(),
            "edges": (top := np.linspace(0, float(weights.edges.max()), BINS + 1)).tolist(),
            "counts": [
                np.histogram(classifier.sample_weight_[labels == label], top)[0].tolist()
                for label in classifier.classes_
            ],
        },
        "posterior": None,
    }
    if classifier.classes_.size == 2:
        posterior = posterior_histogram(
            noisy_proba_of(classifier, X),
            labels,
            rates,
            bins=BINS,
            classes=classifier.classes_,
        )
        shown["posterior"] = {
            "edges": posterior.edges.tolist(),
            "counts": posterior.counts.tolist(),
            "plateaus": posterior.plateaus.tolist(),
        }
    return shown
