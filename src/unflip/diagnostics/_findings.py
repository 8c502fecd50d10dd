"""Whether rates and weights can be trusted: all thresholds, tests and sentences in one place.

A :class:`Diagnostic` is data: a code, a severity and the numbers it rests on. Its text is English,
made here and nowhere else.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import ceil, floor
from typing import Any, Literal

import numpy as np

from unflip._utils.typing import Array, Floats
from unflip._utils.warning import warn
from unflip.noise import RatesInterval, as_transition_matrix
from unflip.weights import Totals

LEVEL = 0.95
"""Confidence of `interval_`."""

LEAST_SURE_SHARE = 0.02
"""A class with a smaller share of sure rows shows no plateau."""

LEAST_RATE = 0.02
"""The rate of a class that is flipped less often needs no plateau."""

WIDE_INTERVAL, USELESS_INTERVAL = 0.4, 0.6
"""Widths of a rate's interval beyond which it is poorly identified, and not to be used at all."""

LITTLE_INFORMATION, NO_INFORMATION = 0.2, 0.1
"""What must be left of the labels' information, to be trusted and to be used at all."""

LEAST_RANK_SCORE = 2.0
"""Standard errors by which held-out probabilities must rank some class's rows above the others."""

LARGEST_DEFICIT = 0.01
"""A true share of one of many classes may be this far below 0, within an estimate's error."""

LEAST_EFFECTIVE_SHARE, LEAST_EFFECTIVE_ROWS = 0.3, 50
"""Weights must leave this share of the rows, and as many rows."""

LEAST_TAUGHT_SHARE = 1e-6
"""A class whose weights sum to a smaller share of its labels' is not learnt."""

LARGEST_CLIPPED_SHARE = 0.6
"""With the right rates an estimated posterior scatters about the plateaus, half of it outside."""

LARGEST_DRIFT = 0.1
"""The mean weight may be this far from 1."""

CLEARLY, PROBABLY = 0.01, 0.05
"""A hypothesis whose p-value and probability are smaller is clearly, or probably, wrong."""

LEAST_HIDDEN = 0.04
"""Overlap of the classes may hide mistakes that depend on the row: a doubt where it may hide more
than is said to be wrong, plus this (of classes of equal size; in proportion, of a rare one)."""

MOST_DISAGREEMENT, MOST_UNEXPLAINED = 0.35, 0.12
"""A doubt where the model disagrees with this share of the labels, and with so many more than are
said to be wrong."""

CHECKED_ROWS = 100
"""So many checked rows tell what labels alone do not."""

MOST_NAMED = 10
"""Classes that a sentence names."""

POINT = 0.0005
"""A shorter range of shares is one share, that of rates that were given."""

REMEDY = "Give what you know of the rates (--rates), or better columns, or more rows."

RANGE = (
    "If labels were flipped at random within each class, {at_random} are wrong; if mistakes depend "
    "on the row, up to {most} may be. Checking {enough} would tell."
)

NO_RANGE = (
    "This holds if labels were flipped at random within each class; if mistakes depend on the row, "
    "the labels alone do not tell how many are wrong. Checking {enough} would tell."
)

SENTENCES = {
    "overlap": "The classes overlap everywhere: next to no row surely belongs to one of them, and "
    "overlap cannot be told from noise there. The estimated rates rest on the model's shape alone. "
    "Add features that tell the classes apart, or give the rates you know.",
    "no_plateau": "P(noisy y | x) shows no plateau for class {label!r}: {sure_share:.1%} of the "
    "rows surely belong to it, and the rate at which it is flipped ({rate:.2f}) is read off such "
    "rows. Give that rate or bounds of it, if you know them.",
    "no_plateaus": "P(noisy y | x) shows no plateau for the classes {labels}: next to no rows "
    "surely belong to them, and the rates at which they are flipped are read off such rows. Give "
    "these rates or bounds of them, if you know them.",
    "poorly_identified": "The flip rate of {label!r} is poorly identified (95 % interval {low:.2f} "
    "to {high:.2f}). More rows, or bounds that you know, would narrow it.",
    "many_poorly_identified": "The flip rates of {n_classes} classes are poorly identified (95 % "
    "intervals: {labels}). More rows, or bounds that you know, would narrow them.",
    "useless_interval": "The flip rate of {label!r} may be anything between {low:.0%} and "
    "{high:.0%}: these rows do not tell it. " + REMEDY,
    "little_information": "The labels say little about the true classes: {left:.2f} of their "
    "information is left, and every error of the posterior is amplified.",
    "no_information": "The columns do not predict the label: by the estimate hardly anything is "
    "left of what the labels say ({left:.2f} of 1), so that noise and chance cannot be told apart. "
    + REMEDY,
    "columns_say_nothing": "The columns do not tell one label from another: on held-out rows they "
    "rank them no better than chance does, so that noise and chance look alike. " + REMEDY,
    "refuted_channel": "Boosted trees predict labels that the noise model calls chance (by "
    "{statistic:.0f} standard errors): the classes, or the mistakes, follow a shape that it does "
    "not. The rates are read off the trees' scores instead, and mistakes that follow a rule cannot "
    "be told from the classes themselves. " + RANGE,
    "unexplained_labels": "Trees predict labels that the noise model calls chance (by "
    "{statistic:.0f} standard errors): the classes, or the mistakes, follow a shape that it does "
    "not, and what it cannot follow it takes for noise. " + RANGE,
    "labels_by_a_rule": "A small decision tree gives nearly all labels: they may have been made by "
    "a rule, and labels that follow a rule do not show the rule's own mistakes. " + RANGE,
    "doubted_channel": "Two models of the classes that explain the labels about equally well give "
    "other rates, ({positive:.2f}, {negative:.2f}) being one of the two. " + RANGE,
    "hidden_mistakes": "Where the classes overlap, mistakes that depend on the row look like "
    "overlap. " + RANGE,
    "determined_or_not": "{by_class:.1%} of the labels are wrong if errors depend on the true "
    "class alone, which is what unflip reports, and about {if_determined:.1%} if each sample "
    "determines its true label, as a picture of a cat does. Labels alone cannot tell which, and up "
    "to {most} may be wrong. Set determined=True or False if you know, or verify {enough}.",
    "checked_range": "By {n_rows:,} checked rows, {low:.1%} to {high:.1%} of the labels are wrong, "
    "whatever the noise (95 % interval for a number of rows fixed in advance).",
    "checked_otherwise": "{n_rows} checked rows say that {low:.1%} to {high:.1%} of the labels are "
    "wrong, where the labels alone say {said:.1%}: mistakes are not flips at random within each "
    "class. The checked rows are believed.",
    "picked_by_hand": "{n_rows} checked rows train the classifier and say nothing of the others, "
    "since they were picked by hand. If they were drawn at random, say so with probability=...",
    "leak": "Column {column!r} is the label under another name: the two go together in "
    "{share:.1%} of the rows. Drop it, if it was made from the label or is known only after it.",
    "determined": "Column {column!r} alone determines the label, in {share:.1%} of the rows. If it "
    "was made from the label, drop it; if the label was made from it, wrong labels cannot be seen.",
    "rule": "A rule of the columns {columns} gives {share:.1%} of the labels. Labels that follow a "
    "rule cannot show the rule's own mistakes: check some rows by hand.",
    "classes_look_alike": "The classes {labels} look like one class, written in several ways. Make "
    "them one (on the command line: --merge-labels), or confusion between them counts as noise.",
    "classes_of_few_rows": "Too few of the {n_rows:,} rows are labelled {labels} to tell how often "
    "these classes are mislabelled. {remedy}",
    "few_rows": "There are {n_rows:.0f} rows only: all that is said here may vary much from sample "
    "to sample. More rows would help.",
    "identifier": "Column {columns} has another value in every row, as an identifier has: "
    "{options} keeps it out of what is learnt.",
    "identifiers": "Columns {columns} have another value in every row, as identifiers have: "
    "{options} keeps them out of what is learnt.",
    "copies": "{n_copies:,} of {n_rows:,} rows are copies of others, cell by cell and with the "
    "same label. If they are the same cases, leave them out: a row's copy tells its label.",
    "contradicting_copies": "Rows that are equal cell by cell have different labels, in "
    "{n_cases:,} cases (rows {first}, counted from 0, are the first): of each case some label is "
    "wrong, or the columns do not tell the classes apart.",
    "not_held_out": "The model agrees with {agree:.1%} of the labels and gives them a probability "
    "of {confidence:.3f} on average, as hardly any model does on rows that it has not seen. If it "
    "was trained on these labels, it repeats their mistakes: take probabilities by "
    "cross-validation, such as cross_val_predict(model, X, y, method='predict_proba').",
    "contradicted_rates": "{rates} contradicts the data: under these rates the share of positive "
    "labels lies between {low:.3f} and {high:.3f}, and it is {share:.3f}.",
    "unlikely_rates": "{rates} is contradicted by the labels: they are far likelier under "
    "{likelier}. Check where the given rates come from, or leave them out.",
    "contradicted_matrix": "The matrix of rates contradicts the data: with the shares of the "
    "labels, the true shares of {labels} would be less than none.",
    "impossible_labels": "The posterior gives every row's label probability 0, so no label can be "
    "believed: it does not fit these data. Choose another posterior, or a wider bandwidth.",
    "class_without_weight": "Every row labelled {label!r} gets weight 0 under {rates}, so that the "
    "classifier cannot learn that class: where such a row looks likely, its probability is still "
    "no more than what the other classes' flips explain. Lower the rates at which they are flipped "
    "to {label!r}, or choose another posterior.",
    "few_effective_rows": "The weights leave few rows: as much as {size:.0f} of equal weight "
    "({share:.0%} of all), so that the classifier may vary much from sample to sample. More rows "
    "would help, or another posterior.",
    "clipped": "Posterior and rates do not fit each other: {share:.0%} of the rows have a "
    "P(noisy y | x) that these rates do not allow, and their weights were clipped. Try another "
    "posterior, or check the rates.",
    "mean_weight": "The mean weight is {mean:.2f}, and with the right posterior and rates it is 1.",
    "rates_scaled_back": "The estimated noise rates {positive:.3f} and {negative:.3f} sum to "
    "{total:.3f}: by this estimate the labels say next to nothing about the true classes. They are "
    "scaled back to sum to {largest}. Check that the features predict the label at all, or give "
    "the rates you know as NoiseRates.",
    "matrix_scaled_back": "The estimated transition matrix (diagonal {diagonal}) leaves {left:.3f} "
    "of the labels' information: by this estimate some classes can hardly be told apart. It is "
    "mixed with the identity, {identity:.2f} I + {share:.2f} T, to leave {least:.2f}. Check that "
    "the features predict the label at all, or give the TransitionMatrix you know.",
}

Severity = Literal["note", "warning", "error"]


class LabelNoiseWarning(UserWarning):
    """Rates, weights or probabilities that may not be trusted.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> from unflip import ImportanceReweightingClassifier, LabelNoiseWarning
    >>> X, y = np.random.default_rng(0).normal(size=(200, 2)), np.arange(200) % 2
    >>> with warnings.catch_warnings(record=True) as doubts:
    ...     warnings.simplefilter("always")
    ...     clf = ImportanceReweightingClassifier(noise_rates="minimum").fit(X, y)
    >>> any(issubclass(doubt.category, LabelNoiseWarning) for doubt in doubts)
    True
    """


@dataclass(frozen=True)
class Diagnostic:
    """One finding about an estimate; `str` says it in English.

    Parameters
    ----------
    code : str
        What was found; it stays the same while wording improves.
    severity : {"note", "warning", "error"}, default="warning"
        Notes stand in summaries, `fit` warns of warnings, and raises errors.
    numbers : dict, default={}
        What the sentence is filled with.

    Examples
    --------
    >>> from unflip.diagnostics import Diagnostic
    >>> str(Diagnostic("mean_weight", "note", {"mean": 1.2}))
    'The mean weight is 1.20, and with the right posterior and rates it is 1.'
    """

    code: str
    severity: Severity = "warning"
    numbers: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return SENTENCES[self.code].format(**self.numbers)


def raise_or_warn(diagnostics: Iterable[Diagnostic]) -> list[str]:
    """Raise a ValueError for the first error, warn of the warnings, and return all as text."""
    found = sorted(diagnostics, key=lambda diagnostic: diagnostic.severity != "error")
    for diagnostic in found:
        if diagnostic.severity == "error":
            raise ValueError(str(diagnostic))
        if diagnostic.severity == "warning":
            warn(str(diagnostic), LabelNoiseWarning)
    return [str(diagnostic) for diagnostic in found]


def judge_rates(
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
        return [Diagnostic("no_plateaus", numbers={"labels": labels})]
    return [
        Diagnostic(
            "no_plateau",
            numbers={
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


def named(parts: Iterable[str]) -> str:
    """Return the parts of a list in a sentence, the first ones of many.

    Examples
    --------
    >>> from unflip.diagnostics import named
    >>> named(["a", "b", "c"])
    'a, b and c'
    """
    *first, last = parts
    if len(first) >= MOST_NAMED:
        return f"{', '.join(first[: MOST_NAMED - 1])} and {len(first) + 2 - MOST_NAMED} more"
    return f"{', '.join(first)} and {last}" if first else last


def range_sentence(
    at_random: tuple[float, float],
    possible: tuple[float, float] | None,
    n_rows: int | None = None,
) -> str:
    """Return the one sentence on what share of the labels is wrong, under which assumption.

    It stands wherever a rate or that share is shown.

    Examples
    --------
    >>> from unflip.diagnostics import range_sentence
    >>> print(range_sentence((0.0, 0.003), (0.0, 0.132)))
    If labels were flipped at random within each class, less than 1% are wrong; if mistakes depend
    on the row, up to 14% may be. Checking about 100 rows would tell.
    """
    if possible is None:
        return NO_RANGE.format(enough=enough_rows(n_rows))
    return RANGE.format(**_range_words(at_random, possible, n_rows))


def enough_rows(n_rows: int | None) -> str:
    """Return how many rows to check by hand, in words."""
    return f"about {CHECKED_ROWS} rows" if n_rows is None or n_rows >= CHECKED_ROWS else "all rows"


def _range_words(
    at_random: tuple[float, float], possible: tuple[float, float], n_rows: int | None
) -> dict[str, str]:
    """Return both in whole per cent, rounded outwards: what is said holds what was found."""
    low, high = at_random
    least, largest, most = floor(_hundredths(low)), ceil(_hundredths(high)), possible[1]
    between = f"{least} to {largest}%" if high - low >= POINT else f"about {low:.0%}"
    return {
        "at_random": "less than 1%" if high < 0.01 else between,
        "most": f"{max(ceil(_hundredths(most)), 1)}%",
        "enough": enough_rows(n_rows),
    }


def _hundredths(share: float) -> float:
    return round(100 * share, 6)  # 0.14 is 14.000000000000002 of them


def judge_model(
    verdict: str,
    statistic: float,
    disagreement: float,
    rates: Any,
    totals: Totals,
    *,
    at_random: tuple[float, float],
    possible: tuple[float, float],
) -> list[Diagnostic]:
    """Return why the noisy channel may not describe the labels at all."""
    numbers: dict[str, Any] = _range_words(at_random, possible, totals.n_rows)
    if verdict == "rule":
        return [Diagnostic("labels_by_a_rule", numbers=numbers)]
    if verdict != "believed" and rates.n_classes > 2:
        return [Diagnostic("unexplained_labels", numbers={**numbers, "statistic": statistic})]
    if verdict == "refuted":
        return [Diagnostic("refuted_channel", numbers={**numbers, "statistic": statistic})]
    if verdict == "doubted":
        positive, negative = rates.both()
        numbers |= {"positive": positive, "negative": negative}
        return [Diagnostic("doubted_channel", numbers=numbers)]
    return [Diagnostic("hidden_mistakes", numbers=numbers)] if _hides(disagreement, totals) else []


def judge_readings(
    by_class: float, if_determined: float, totals: Totals, possible: tuple[float, float]
) -> list[Diagnostic]:
    """Return that the error rate depends on whether samples determine their true labels."""
    if if_determined - by_class <= _least_hidden(totals):
        return []
    numbers = {"by_class": by_class, "if_determined": if_determined}
    words = _range_words((by_class, by_class), possible, totals.n_rows)
    # the number of wrong labels is uncertain, not their ranking: no warning
    return [Diagnostic("determined_or_not", "note", {**numbers, **words})]


def _hides(disagreement: float, totals: Totals) -> bool:
    """Return whether overlap may hide more mistakes than are said."""
    said = totals.error_share
    most = max(MOST_DISAGREEMENT, said + MOST_UNEXPLAINED)
    return disagreement > min(2 * said + _least_hidden(totals), most)


def _least_hidden(totals: Totals) -> float:
    return LEAST_HIDDEN * min(1.0, 2 * (1 - float(totals.noisy_prior.max())))


def judge_weights(totals: Totals, classes: Array, rates: Any) -> list[Diagnostic]:
    """Return what speaks against learning with the weights."""
    if not totals.n_possible:
        return [Diagnostic("impossible_labels", "error")]
    found = []
    taught = totals.taught_mass > LEAST_TAUGHT_SHARE * totals.label_mass
    if not taught.all():
        # two classes cannot be learnt from one; more can be learnt but for one
        severity: Severity = "warning" if taught.sum() >= 2 else "error"
        label = _plain(classes[np.argmin(taught)])
        found.append(
            Diagnostic("class_without_weight", severity, {"label": label, "rates": str(rates)})
        )
    size, rows = totals.effective_sample_size, totals.effective_rows
    if size < LEAST_EFFECTIVE_SHARE * rows:
        numbers = {"size": size, "share": size / rows}
        found.append(Diagnostic("few_effective_rows", numbers=numbers))
    return found


def judge_weight_summary(
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


def judge_usefulness(
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


def judge_columns(rank_scores: Floats) -> Diagnostic | None:
    """Return that the columns do not tell the labels apart, or None."""
    if max(rank_scores) < LEAST_RANK_SCORE:
        return Diagnostic("columns_say_nothing", "error")
    return None


def strength(p_value: float, probability: float) -> Literal["clear", "likely", "open"]:
    """Return how sure the opposite of a hypothesis is.

    Both its p-value and its probability given the labels must be small, so that what is said of
    one is not contradicted by the other.
    """
    largest = max(p_value, probability)
    if largest < CLEARLY:
        return "clear"
    return "likely" if largest < PROBABLY else "open"


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
