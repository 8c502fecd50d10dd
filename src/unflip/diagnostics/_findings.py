"""What is noteworthy about rates, weights and probabilities: every threshold in one place."""

from typing import Any, Literal

import numpy as np

from unflip._utils.typing import Array, Floats
from unflip.diagnostics._catalogue import Diagnostic, named, percent
from unflip.noise import RatesInterval, as_transition_matrix
from unflip.weights import Totals

LEVEL = 0.95
"""Confidence of `interval_`."""

LEAST_SURE_SHARE = 0.02
"""A class with a smaller share of sure samples has no anchor points."""

LEAST_RATE = 0.02
"""The rate of a class that is flipped less often needs no anchor points."""

WIDE_INTERVAL, USELESS_INTERVAL = 0.25, 0.6
"""Widths of a rate's 95 % interval from which on the rate cannot be determined, and the estimate is
not to be used at all. The first was chosen on the families `CHOSEN_ON` of `benchmarks.worlds`: of
the estimates with a wider interval, three in four are off by more than 0.05."""

LITTLE_INFORMATION, NO_INFORMATION = 0.2, 0.1
"""What must be left of the labels' information, to be trusted and to be used at all."""

LEAST_RANK_SCORE = 2.0
"""Standard errors by which held-out probabilities must rank some class's samples above others."""

LARGEST_DEFICIT = 0.01
"""A true share of one of many classes may be this far below 0, within an estimate's error."""

LEAST_EFFECTIVE_SHARE, LEAST_EFFECTIVE_ROWS = 0.3, 50
"""Weights must leave this share of the samples, and as many samples."""

LEAST_TAUGHT_SHARE = 1e-6
"""A class whose weights sum to a smaller share of its labels' is not learnt."""

LARGEST_CLIPPED_SHARE = 0.6
"""With the right rates, noise in an estimated posterior puts half of the anchor points outside."""

LARGEST_DRIFT = 0.1
"""The mean weight may be this far from 1."""

LEAST_APART = 0.04
"""Two readings of the same labels are both given if their error rates differ by more (for classes
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

    A rate is read off the plateau that noise leaves: among rows that surely belong to a class, the
    labels are wrong as often as it is flipped. Without such rows the shape of the model decides.
    """
    found = []
    if estimated:
        flipped = 1 - np.diag(as_transition_matrix(rates, classes.size).matrix)
        sure = totals.sure_share
        lacking = (sure < LEAST_SURE_SHARE) & (flipped > LEAST_RATE)
        if lacking.all():
            found.append(Diagnostic("overlap"))
        elif interval is not None:  # other estimators' clean posteriors are too rough for this
            found += _without_plateau(classes, lacking, sure, flipped)
    if interval is not None:
        found += _poorly_identified(classes, interval)
    left = rates.information_left
    if left < LITTLE_INFORMATION:
        found.append(Diagnostic("little_information", numbers={"left": max(left, 0.0)}))
    return [*found, *_contradictions(totals.noisy_prior, classes, rates)]


def _without_plateau(
    classes: Array, lacking: Array, sure: Floats, flipped: Floats
) -> list[Diagnostic]:
    """Return one sentence on all classes that no rows surely belong to."""
    places = np.flatnonzero(lacking)
    if places.size > 1:
        labels = named(f"{_plain(classes[k])!r} ({flipped[k]:.2f})" for k in places)
        return [Diagnostic("no_plateaus", "note", {"labels": labels})]
    return [
        Diagnostic(
            "no_plateau",
            "note",
            {
                "label": _plain(classes[k]),
                "sure_share": float(sure[k]),
                "rate": float(flipped[k]),
            },
        )
        for k in places
    ]


def _poorly_identified(classes: Array, interval: RatesInterval) -> list[Diagnostic]:
    """Return one sentence on all classes whose rates may be nearly anything."""
    wide = [rate for rate in _flip_rates(classes, interval) if rate[2] - rate[1] > WIDE_INTERVAL]
    if len(wide) > 1:
        labels = named(f"{label!r} {low:.2f} to {high:.2f}" for label, low, high in wide)
        numbers = {"n_classes": len(wide), "labels": labels}
        return [Diagnostic("many_poorly_identified", numbers=numbers)]
    return [
        Diagnostic("poorly_identified", numbers={"label": label, "low": low, "high": high})
        for label, low, high in wide
    ]


def diagnose_model(
    verdict: str, statistic: float, features: str, error_share: float
) -> list[Diagnostic]:
    """Return how the noise model explains the labels."""
    if verdict == "rule":
        return [Diagnostic("small_tree", "note")]
    found = [Diagnostic("tree_features", "note")] if features == "trees" else []
    if verdict == "rejected" and error_share > LEAST_RATE:
        found.append(Diagnostic("unexplained_labels", numbers={"statistic": statistic}))
    return found


def assumed(possible: tuple[float, float]) -> Diagnostic:
    """Return what every estimate from labels assumes, and how many are wrong if that fails."""
    return Diagnostic("class_conditional", "assumption", {"most": percent(possible[1])})


def diagnose_readings(by_class: float, if_determined: float, totals: Totals) -> list[Diagnostic]:
    """Return that the error rate depends on whether samples determine their true labels."""
    rare = min(1.0, 2 * (1 - float(totals.noisy_prior.max())))
    if if_determined - by_class <= LEAST_APART * rare:
        return []
    numbers = {"by_class": by_class, "if_determined": if_determined}
    # the number of wrong labels is uncertain, not their ranking: no warning
    return [Diagnostic("determined_or_not", "note", numbers)]


def diagnose_weights(totals: Totals, classes: Array, rates: Any) -> list[Diagnostic]:
    """Return what speaks against learning with the weights."""
    if not totals.n_possible:
        return [Diagnostic("impossible_labels", "error")]
    found = []
    taught = totals.taught_mass > LEAST_TAUGHT_SHARE * totals.label_mass
    if not taught.all():
        # two classes cannot be learnt from one; more can be learnt but for one
        severity: Literal["warning", "error"] = "warning" if taught.sum() >= 2 else "error"
        label = _plain(classes[np.argmin(taught)])
        found.append(
            Diagnostic("class_without_weight", severity, {"label": label, "rates": str(rates)})
        )
    size, rows = totals.effective_sample_size, totals.effective_rows
    if size < LEAST_EFFECTIVE_SHARE * rows:
        numbers = {"size": size, "share": size / rows}
        found.append(Diagnostic("few_effective_rows", "note", numbers))
    return found


def diagnose_weight_summary(
    effective_size: float, effective_share: float, clipped_share: float, mean: float
) -> list[Diagnostic]:
    """Return what a summary notes of the weights, beyond what `fit` warned of."""
    found = []
    if effective_size < LEAST_EFFECTIVE_ROWS:
        n_rows = effective_size / effective_share
        if n_rows < LEAST_EFFECTIVE_ROWS:  # whatever the weights
            found.append(Diagnostic("few_rows", "note", {"n_rows": n_rows}))
        else:
            numbers = {"size": effective_size, "share": effective_share}
            found.append(Diagnostic("few_effective_rows", "note", numbers))
    if clipped_share > LARGEST_CLIPPED_SHARE:
        found.append(Diagnostic("clipped", "note", {"share": clipped_share}))
    if abs(mean - 1) > LARGEST_DRIFT:
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
    """Return that the columns do not tell the labels apart, or None."""
    if max(rank_scores) < LEAST_RANK_SCORE:
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
    if clean_prior.min() >= -LARGEST_DEFICIT:
        return []
    lacking = np.flatnonzero(clean_prior < -LARGEST_DEFICIT)
    labels = named(f"{_plain(classes[k])!r} ({clean_prior[k]:.3f})" for k in lacking)
    return [Diagnostic("contradicted_matrix", numbers={"labels": labels})]


def _flip_rates(classes: Array, interval: RatesInterval) -> list[tuple[Any, float, float]]:
    """Return (label, low, high) of how often each class is flipped, the positive class first."""
    ends = interval.flip_rates.tolist()
    return [(label, *pair) for label, pair in zip(_plain(classes), ends, strict=True)][::-1]


def _plain(labels: Array) -> Any:
    """Return Python's own strings and numbers, whose `repr` is short."""
    return labels.tolist() if hasattr(labels, "tolist") else labels
