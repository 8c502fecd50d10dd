"""The noise estimate corrected by checked samples, and the error model that is fitted to them."""

from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse
from scipy.stats import norm
from sklearn.base import clone
from sklearn.preprocessing import StandardScaler

from unflip._utils.simplex import scaled_rows
from unflip._utils.typing import Codes, Floats, Rows
from unflip._utils.validation import Labels
from unflip.checked._counting import Estimate
from unflip.checked._draws import Draws
from unflip.checked._error_model import (
    MIN_CHECKED,
    Evidence,
    HypothesisMixture,
    PriorEstimate,
    fit_hypotheses,
)
from unflip.checked._labels import CheckedLabels
from unflip.diagnostics import LEVEL, Diagnostic
from unflip.estimate import CheckedEvidence, ErrorRate, NoiseEstimate
from unflip.noise import NoiseRates, TransitionMatrix
from unflip.noise_rates import admissible_matrix

SAME_SPREAD = 0.01
"""Minimum relative difference of the columns' standard deviations for scales to differ."""

MIN_SCALE = 1e-6
"""Minimum scale of a column, relative to the root mean square."""

MANY_BY_HAND = 20
"""Minimum number of rows picked by hand to ask whether they are a random sample."""

MAX_AVERAGED = 2000
"""Maximum number of samples over which the error rate is averaged while a model is fitted to picked
rows. If there are more, a random subset of this size is used: a mean of probabilities then has a
standard error of at most 1 / (2 sqrt(2000)) = 0.011."""


def correct(
    noise: NoiseEstimate,
    checked: CheckedLabels | None,
    X: Rows | None = None,
    held_out: Floats | None = None,
) -> NoiseEstimate:
    """Return the estimate from noisy labels and checked samples together.

    `held_out` is P(observed | x) by a model that did not see the sample's label; None: that of the
    estimate.
    """
    if checked is None or not has_checked(checked):
        return noise
    labels = Labels(noise.classes, noise.codes)
    classes, codes = labels
    own = scaled_rows(noise.label_proba)
    held_out = scaled_rows(noise.noisy_proba if held_out is None else held_out)
    truth, draws = checked.truth(labels), checked.draws(labels)
    features = Features.of(X, checked.rows, held_out)
    evidence = Evidence(own, held_out, features.transform(X), codes)
    found = fit_checked(checked, truth, draws, evidence.take(checked.rows))
    proba = found.predict(evidence)
    known, none = (truth >= 0) & (truth < classes.size), truth == classes.size
    proba[checked.rows[known]] = np.eye(classes.size)[truth[known]]
    nowhere = checked.rows[none]
    proba[nowhere] = _elsewhere(proba[nowhere], codes[nowhere])
    joint = joint_counts(proba, codes)
    proba[nowhere] = 0.0  # they certainly belong to no class
    share = None
    if draws.rows.size >= MIN_CHECKED:
        share = checked.label_error_rate(labels.observed, own, level=LEVEL)
    alone = float(1 - own[np.arange(codes.size), codes].mean())
    findings = tuple(diagnose_checked(checked, draws, share, alone))
    corrected = replace(
        noise,
        label_proba=proba,
        findings=noise.findings + findings if share is None else findings,
        checked=CheckedEvidence(share, found.shares, noise),
    )
    if share is None:  # too few were drawn to estimate the rates
        return corrected
    return replace(
        corrected,
        noise_rates=rates_of(joint),
        error_range=share.interval,
        error_interval=share.interval,
        estimated=True,
        instance_dependent=0.0,  # part of the counted rate
        interval=None,
    )


def has_checked(checked: CheckedLabels | None) -> bool:
    """Return whether there are checked samples; raise an error for anything else."""
    if checked is None:
        return False
    if not isinstance(checked, CheckedLabels):
        raise TypeError(f"checked must be a CheckedLabels(rows, labels), got {checked!r}.")
    return len(checked) > 0


def recalibrate(
    checked: CheckedLabels,
    X: Rows | None,
    labels: Labels,
    own: Floats,
    held_out: Floats,
    error_rate: ErrorRate,
) -> Floats:
    """Return P(true = k | x, observed label) by answers to rows that were selected in any way.

    Rows selected by their score, such as the most suspicious first, inform about similar rows, but
    not about how many labels are wrong: for that `error_rate`, the estimate before any answer, is
    the prior. Checked rows get the probability of rows that were not checked.
    """
    truth = checked.truth(labels)
    known = np.flatnonzero((truth >= 0) & (truth < labels.classes.size))
    rows = checked.rows[known]
    features = Features.of(X, rows, held_out)
    evidence = Evidence(scaled_rows(own), held_out, features.transform(X), labels.codes)
    some = np.arange(len(own))
    if some.size > MAX_AVERAGED:
        some = np.sort(np.random.default_rng(0).choice(some.size, MAX_AVERAGED, replace=False))
    # the bounds hold with probability LEVEL; no standard deviation is below one label
    z = norm.ppf((1 + LEVEL) / 2)
    bounds = (error_rate.interval, error_rate.range)
    before = PriorEstimate(
        evidence.take(some), *(max(np.ptp(each) / (2 * z), 1 / len(own)) for each in bounds)
    )
    answers = evidence.take(rows)
    return fit_hypotheses(answers, truth[known], np.ones(known.size), before).predict(evidence)


def fit_checked(
    checked: CheckedLabels, truth: Codes, draws: Draws, rows: Evidence
) -> HypothesisMixture:
    """Fit the mixture to rows of known class, weighted by inverse probability of the draw."""
    weight = np.zeros(truth.size)
    weight[checked.is_representative(draws.n_rows)] = draws.weight
    # by position: the same folds in whatever order the rows were checked
    known = np.flatnonzero((truth >= 0) & (truth < draws.n_classes))
    known = known[np.argsort(checked.rows[known])]
    weight = weight[known]
    if weight.any():
        weight /= weight[weight > 0].mean()
    return fit_hypotheses(rows.take(known), truth[known], weight)


@dataclass(frozen=True)
class Features:
    """Encoded features in several scales, with at most as many columns as checked rows.

    A ridge-penalised model stays in the span of its samples, so that more columns are not needed.
    """

    # The scaler, and the span of the checked rows if there are more columns than these: every
    # column standardised; as given, if spreads differ; and by the share of the column's variance
    # that the noisy labels explain, which helps most for text with few informative components.
    # Empty if the rows are not all finite numbers.
    scales: dict[str, tuple[StandardScaler, Floats | None]]

    @classmethod
    def of(cls, X: Rows | None, checked_rows: Codes, noisy_proba: Floats) -> "Features":
        """Return the features of these rows."""
        x = _numbers(X)
        if x is None:
            return cls({})
        alike = StandardScaler(with_mean=not sparse.issparse(x)).fit(x)
        spread = np.sqrt(alike.var_)
        explained = _explained_share(alike.transform(x), noisy_proba)
        scalers = {"alike": alike}
        for name, size in (("as given", spread), ("by labels", explained)):
            if np.ptp(size) > SAME_SPREAD * size.max():
                scalers[name] = scaler = clone(alike).fit(x)
                share = size / np.sqrt((size**2).mean())
                scaler.scale_ = alike.scale_ / np.maximum(share, MIN_SCALE)
        axes: dict[str, Floats] = {}
        if 0 < checked_rows.size < x.shape[1]:
            axes = {name: _span(each, x[checked_rows]) for name, each in scalers.items()}
        return cls({name: (each, axes.get(name)) for name, each in scalers.items()})

    def transform(self, X: Rows | None) -> dict[str, Rows]:
        """Return rows in each scale, with missing values at the mean of their column."""
        found = {}
        for name, (scaler, axes) in self.scales.items():
            x = scaler.transform(_as_numbers(X))
            x = x if sparse.issparse(x) else np.where(np.isnan(x), 0.0, x)
            found[name] = x if axes is None else np.asarray(x @ axes)
        return found


def _explained_share(x: Rows, proba: Floats) -> Floats:
    """Return the share of each standardised column's variance that the classes explain.

    sum_k P(k) (E[x | k] - E[x])^2 = sum_k Cov(x, P(k | x))^2 / P(k), the correlation ratio.
    """
    share = np.maximum(proba.mean(axis=0), 1e-12)
    covariance = np.asarray(x.T @ (proba - proba.mean(axis=0))) / len(proba)
    explained = (covariance**2 / share).sum(axis=1)
    return np.where(explained > 1e-12, explained, 0.0)


def _span(scaler: StandardScaler, rows: Rows) -> Floats:
    """Return an orthonormal basis of the span of rows."""
    scaled = scaler.transform(rows)
    scaled = scaled.toarray() if sparse.issparse(scaled) else scaled
    return np.asarray(np.linalg.svd(scaled, full_matrices=False)[2].T)


def _numbers(X: Rows | None) -> Rows | None:
    """Return rows as finite numbers, or None."""
    x = None if X is None else _as_numbers(X)
    if x is None or not np.isfinite(x.data if sparse.issparse(x) else x).all():
        return None
    return x


def _as_numbers(X: Rows) -> Rows | None:
    """Return rows as numbers, missing values as NaN; or None."""
    if sparse.issparse(X):
        return X.astype(float).tocsr()
    try:
        x = np.asarray(X, dtype=float)
    except (TypeError, ValueError):
        return None
    return x if x.ndim == 2 else None


def _elsewhere(proba: Floats, codes: Codes) -> Floats:
    """Return probabilities with that of the observed label set to 0, for rows of no class."""
    others = proba.copy()
    others[np.arange(codes.size), codes] = 0.0
    total = others.sum(axis=1, keepdims=True)
    even = np.ones_like(others)
    even[np.arange(codes.size), codes] = 0.0
    even /= max(others.shape[1] - 1, 1)
    return np.where(total > 0, others / np.where(total > 0, total, 1.0), even)


def joint_counts(proba: Floats, codes: Codes) -> Floats:
    """Return the sums of P(true = i | x, observed) over rows with observed label j, at [i, j]."""
    return np.stack([proba[codes == j].sum(axis=0) for j in range(proba.shape[1])], axis=1)


def rates_of(joint: Floats) -> NoiseRates | TransitionMatrix:
    """Return P(observed = j | true = i)."""
    # the diagonal of a class without rows is 1
    noise = admissible_matrix(joint + 1e-9 * np.eye(len(joint)))
    return noise.rates if len(joint) == 2 else noise


def diagnose_checked(
    checked: CheckedLabels, draws: Draws, share: Estimate | None, alone: float
) -> list[Diagnostic]:
    """Return findings about checked rows."""
    if share is not None and not share.anytime[0] <= alone <= share.anytime[1]:
        low, high = share.interval
        numbers = {"low": low, "high": high, "alone": alone, "n_rows": share.n_rows}
        return [Diagnostic("checked_disagree", "note", numbers)]
    if not draws.rows.size and len(checked) >= MANY_BY_HAND:
        return [Diagnostic("convenience_sample", "note", {"n_rows": len(checked)})]
    return []
