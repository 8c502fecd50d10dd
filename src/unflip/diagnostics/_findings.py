"""Diagnostics of rates, weights and probabilities, and their thresholds."""

from typing import Any, Literal

import numpy as np

from unflip._utils.typing import Array, Floats
from unflip.diagnostics._catalogue import Diagnostic, named, percent
from unflip.noise import RatesInterval, as_transition_matrix
from unflip.weights import Totals

LEVEL = 0.95
"""Confidence level of `interval_`."""

MIN_ANCHOR_SHARE = 0.02
"""Minimum share of samples that surely belong to a class, for it to have anchor points."""

MIN_RATE = 0.02
"""Minimum flip rate of a class for which anchor points are needed."""

WIDE_INTERVAL, USELESS_INTERVAL = 0.25, 0.6
"""Widths of a rate's 95 % interval above which unflip warns, and refuses the estimate. The first is
from the families `CHOSEN_ON` of `benchmarks.worlds`: of the estimates with a wider interval, three
in four are off by more than 0.05."""

WIDE_ERROR_RATE, WIDE_MEAN_RATE = 0.2, 0.45
"""Widths of 95 % intervals above which unflip warns if there are more than two classes: that of the
error rate, and the mean of those of the classes' rates. Single classes of few samples are less
certain than the whole. Of the estimates with a wider one, three in four are off by more than 0.05
in the error rate or in the mean of the rates (`python -m benchmarks.multiclass_worlds`, the
families on which neither was chosen)."""

LITTLE_INFORMATION, NO_INFORMATION = 0.2, 0.1
"""Information left in the labels (1 without noise) below which unflip warns, and refuses."""

MIN_RANK_SCORE = 2.0
"""Minimum number of standard errors by which held-out probabilities must rank the samples of some
class above the others."""

MAX_DEFICIT = 0.01
"""Maximum amount by which the true share of one of many classes may be below 0."""

MIN_EFFECTIVE_SHARE, MIN_EFFECTIVE_SAMPLES = 0.3, 50
"""Minimum effective sample size of the weights: per sample, and in samples."""

MIN_WEIGHT_SHARE = 1e-6
"""Minimum weight of a class, per label, for the class to be learnt."""

MAX_CLIPPED_SHARE = 0.6
"""Maximum share of clipped weights. With the right rates, the error of an estimated posterior clips
half of the anchor points."""

MAX_DRIFT = 0.1
"""Maximum distance of the mean weight from 1."""

MIN_DIFFERENCE = 0.04
"""Minimum difference of the error rates under two assumptions for both to be reported (for classes
of equal size; in proportion, for a rare class)."""


def diagnose_rates(
    totals: Totals,
    classes: Array,
    rates: Any,
    *,
    estimated: bool,
    interval: RatesInterval | None = None,
) -> list[Diagnostic]:
    """Return why rates may be far off.

    A rate is estimated from anchor points: among samples that surely belong to a class, the labels
    are wrong as often as the class is flipped. Without them the shape of the model decides.
    """
    found = []
    if estimated:
        flipped = 1 - np.diag(as_transition_matrix(rates, classes.size).matrix)
        # the minimum is that of one of two classes: one of K has 2 / K as many samples
        least = MIN_ANCHOR_SHARE * 2 / classes.size
        lacking = (totals.anchor_share < least) & (flipped > MIN_RATE)
        if lacking.all():
            found.append(Diagnostic("overlap"))
        # the clean posteriors of other estimators are too rough to count anchor points
        elif interval is not None and lacking.any():
            labels = named(
                f"{classes.item(k)!r} ({flipped[k]:.2f})" for k in np.flatnonzero(lacking)
            )
            found.append(Diagnostic("no_anchor_points", "note", {"labels": labels}))
    if interval is not None and _is_wide(interval, totals.noisy_prior):
        ends = _flip_rates(classes, interval)
        limit = min(WIDE_INTERVAL, max(high - low for _, low, high in ends))
        wide = [
            f"{label!r} {low:.2f} to {high:.2f}" for label, low, high in ends if high - low >= limit
        ]
        found.append(Diagnostic("poorly_identified", numbers={"labels": named(wide)}))
    left = rates.information_left
    if left < LITTLE_INFORMATION:
        found.append(Diagnostic("little_information", numbers={"left": max(left, 0.0)}))
    return [*found, *_contradictions(totals.noisy_prior, classes, rates)]


def _is_wide(interval: RatesInterval, shares: Floats) -> bool:
    """Return whether the estimate is probably off, by the widths of its intervals."""
    widths = np.ptp(interval.flip_rates, axis=1)
    if widths.size == 2:
        return bool(widths.max() > WIDE_INTERVAL)
    low, high = interval.label_error_rate or (0.0, 0.0)
    return bool(high - low > WIDE_ERROR_RATE or shares @ widths > WIDE_MEAN_RATE)


def diagnose_model(
    verdict: str, statistic: float, features: str, error_rate: float
) -> list[Diagnostic]:
    """Return findings about the goodness of fit of the noise model."""
    if verdict == "rule":
        return [Diagnostic("small_tree", "note")]
    found = [Diagnostic("tree_features", "note")] if features == "trees" else []
    if verdict == "rejected" and error_rate > MIN_RATE:
        found.append(Diagnostic("unexplained_labels", numbers={"statistic": statistic}))
    return found


def assumed(possible: tuple[float, float]) -> Diagnostic:
    """Return the assumption of every estimate from labels, with the error rate if it fails."""
    return Diagnostic("class_conditional", "assumption", {"most": percent(possible[1])})


def diagnose_readings(by_class: float, if_determined: float, totals: Totals) -> list[Diagnostic]:
    """Return that the error rate depends on whether samples determine their true labels."""
    rare = min(1.0, 2 * (1 - float(totals.noisy_prior.max())))
    if if_determined - by_class <= MIN_DIFFERENCE * rare:
        return []
    numbers = {"by_class": by_class, "if_determined": if_determined}
    # the number of wrong labels is uncertain, not their ranking: no warning
    return [Diagnostic("determined_or_not", "note", numbers)]


def diagnose_weights(totals: Totals, classes: Array, rates: Any) -> list[Diagnostic]:
    """Return why a classifier should not be trained with these weights."""
    if not totals.n_possible:
        return [Diagnostic("impossible_labels", "error")]
    found = []
    trained = totals.trained_mass > MIN_WEIGHT_SHARE * totals.label_mass
    if not trained.all():
        # of two classes both are needed; of more, one may be lacking
        severity: Literal["warning", "error"] = "warning" if trained.sum() >= 2 else "error"
        label = classes.item(np.argmin(trained))
        found.append(
            Diagnostic("class_without_weight", severity, {"label": label, "rates": str(rates)})
        )
    size, rows = totals.effective_sample_size, totals.effective_rows
    if size < MIN_EFFECTIVE_SHARE * rows:
        numbers = {"size": size, "share": size / rows}
        found.append(Diagnostic("few_effective_rows", "note", numbers))
    return found


def diagnose_weight_summary(
    effective_size: float, effective_share: float, clipped_share: float, mean: float
) -> list[Diagnostic]:
    """Return notes on the weights for a summary, beyond the warnings of `fit`."""
    found = []
    if effective_size < MIN_EFFECTIVE_SAMPLES:
        n_rows = effective_size / effective_share
        if n_rows < MIN_EFFECTIVE_SAMPLES:  # whatever the weights
            found.append(Diagnostic("few_rows", "note", {"n_rows": n_rows}))
        else:
            numbers = {"size": effective_size, "share": effective_share}
            found.append(Diagnostic("few_effective_rows", "note", numbers))
    if clipped_share > MAX_CLIPPED_SHARE:
        found.append(Diagnostic("clipped", "note", {"share": clipped_share}))
    if abs(mean - 1) > MAX_DRIFT:
        found.append(Diagnostic("mean_weight", "note", {"mean": mean}))
    return found


def diagnose_usefulness(
    classes: Array, rates: Any, *, interval: RatesInterval | None = None
) -> Diagnostic | None:
    """Return why estimated rates are not to be used at all, or None."""
    left = rates.information_left
    if left < NO_INFORMATION:
        return Diagnostic("no_information", "error", {"left": left})
    if interval is None:
        return None
    for label, low, high in _flip_rates(classes, interval):
        if high - low > USELESS_INTERVAL:
            return Diagnostic(
                "useless_interval", "error", {"label": label, "low": low, "high": high}
            )
    return None


def diagnose_columns(rank_scores: Floats) -> Diagnostic | None:
    """Return the finding that the columns do not predict the labels, or None."""
    if max(rank_scores) < MIN_RANK_SCORE:
        return Diagnostic("columns_say_nothing", "error")
    return None


def _contradictions(noisy_prior: Floats, classes: Array, rates: Any) -> list[Diagnostic]:
    if rates.n_classes == 2:
        positive, negative = rates.both()
        share = float(noisy_prior[1])
        if negative <= share <= 1 - positive:
            return []
        numbers = {"rates": str(rates), "low": negative, "high": 1 - positive, "share": share}
        return [Diagnostic("contradicted_rates", numbers=numbers)]
    clean_prior = rates.clean_posterior(noisy_prior, clip=False)
    if clean_prior.min() >= -MAX_DEFICIT:
        return []
    lacking = np.flatnonzero(clean_prior < -MAX_DEFICIT)
    labels = named(f"{classes.item(k)!r} ({clean_prior[k]:.3f})" for k in lacking)
    return [Diagnostic("contradicted_matrix", numbers={"labels": labels})]


def _flip_rates(classes: Array, interval: RatesInterval) -> list[tuple[Any, float, float]]:
    """Return (label, low, high) of how often each class is flipped, the positive class first."""
    ends = interval.flip_rates.tolist()
    return [(label, *pair) for label, pair in zip(classes.tolist(), ends, strict=True)][::-1]
