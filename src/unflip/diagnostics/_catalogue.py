"""Findings as data, and the one catalogue of the sentences that put them into words."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

from unflip._utils.warning import warn

MAX_NAMED = 10
"""Maximum number of items that a sentence lists; if there are more, the rest are counted."""

MIN_SHOWN = 0.0005
"""Minimum share that is shown as a number; below it, "less than 0.1%"."""

KNOWN_RATES = (
    "Give the rates you know (on the command line: --rates), better features or more samples."
)

SENTENCES = {
    # what every estimate from labels rests on
    "class_conditional": "This assumes that errors do not depend on the sample beyond its class. "
    "If they do, up to {most} of the labels may be wrong, provided that most labels are right "
    "wherever samples look alike.",
    "checked_range": "According to {n_rows:,} checked samples, {low:.1%} to {high:.1%} of the "
    "labels are wrong, whatever the errors depend on (95% interval for a number of samples fixed "
    "in advance).",
    # the amount of noise, in one sentence
    "clean": "No sign of label errors. {bound} of the labels are wrong if errors strike at random.",
    "known_amount": "About {value} of the labels are wrong: some {count:,} of {n_samples:,} "
    "({low} to {high}).",
    "uncertain_amount": "Between {low} and {high} of the labels are wrong, most likely about "
    "{value}: some {count:,} of {n_samples:,}.",
    "uncertain_small_amount": "Up to {high} of the labels are wrong, most likely about {value}: "
    "some {count:,} of {n_samples:,}.",
    "unknown_amount": "These data do not show how many labels are wrong: {low} to {high} is "
    "possible even if errors strike at random.",
    "few_samples": "{n_samples:,} samples are too few to tell how many labels are wrong: {low} to "
    "{high} is possible even if errors strike at random.",
    "given_amount": "At the given rates, about {value} of the labels are wrong: some {count:,} of "
    "{n_samples:,}.",
    "given_none": "At the given rates, next to none of the {n_samples:,} labels is wrong.",
    # how the estimate was made
    "tree_features": "The boundary between the classes is followed better by trees than by smooth "
    "functions of the columns: tree-based features were used.",
    "small_tree": "A small decision tree reproduces nearly all labels. If somebody labelled by "
    "such a rule, the errors of the rule cannot be seen: verify some labels by hand.",
    "determined_or_not": "{by_class:.1%} of the labels are wrong if errors depend on the true "
    "class alone, which is what unflip reports, and about {if_determined:.1%} if each sample "
    "determines its true label, as a picture of a cat does. The labels alone cannot tell which. "
    "Set determined=True or False if you know.",
    "overlap": "The classes overlap everywhere: hardly any sample surely belongs to one of them, "
    "so the estimated rates depend on the shape of the model. Add features that separate the "
    "classes better, or give the rates you know.",
    "no_anchor_points": "Hardly any sample surely belongs to {labels}; the flip rate in "
    "parentheses is estimated from such samples. Give it, or bounds on it, if you know them.",
    "checked_disagree": "According to {n_rows} checked samples, {low:.1%} to {high:.1%} of the "
    "labels are wrong; the labels alone suggest {alone:.1%}. Errors depend on more than the true "
    "class here, and unflip reports what the checked samples show.",
    "convenience_sample": "The {n_rows} checked samples were picked by hand: the classifier learns "
    "from them, but they do not show how many of the other labels are wrong. If they were drawn at "
    "random, give probability=...",
    # why the reported number is off, or cannot be determined
    "poorly_identified": "The data hardly determine how often samples of some classes are "
    "mislabelled (95% intervals): {labels}. Add samples, or give bounds that you know.",
    "useless_interval": "The flip rate of {label!r} may be anything between {low:.0%} and "
    "{high:.0%}: these samples do not determine it. " + KNOWN_RATES,
    "little_information": "The labels say little about the true classes: only {left:.0%} of their "
    "information is left, and small errors of the model become large errors of the rates. Give "
    "rates that you know, or add samples.",
    "no_information": "The columns do not predict the label: the estimate leaves hardly any "
    "information in the labels ({left:.2f} of 1), so noise cannot be told apart from chance. "
    + KNOWN_RATES,
    "columns_say_nothing": "The columns do not predict the label: on held-out samples they rank "
    "the labels no better than chance, so noise cannot be told apart from chance. " + KNOWN_RATES,
    "unexplained_labels": "The noise model does not fit: trees predict labels that it calls errors "
    "(by {statistic:.0f} standard errors), so the estimate is probably too high. Add features "
    "that describe the classes better, or audit the held-out probabilities of a better model "
    "(`LabelAudit().fit_posterior`).",
    "not_held_out": "The model agrees with {agree:.1%} of the labels and gives them a probability "
    "of {confidence:.3f} on average, which hardly any model does on samples that it has not seen. "
    "If it was trained on these labels, it repeats their errors: use cross-validated "
    "probabilities, such as cross_val_predict(model, X, y, method='predict_proba').",
    # the table
    "leak": "Column {column!r} is the label under another name: the two agree in {share:.1%} of "
    "the samples. Drop it if it was made from the label or is known only after it; beside it, no "
    "label error can be seen.",
    "rule": "{often} one rule: {label!r} where {rule}. Were the labels computed this way? Then "
    "their errors cannot be seen: verify some labels by hand. If {columns} was made from the "
    "label, drop it.",
    "classes_look_alike": "The classes {labels} look like one class written in several ways. Merge "
    "them (on the command line: --merge-labels), or confusion between them counts as noise.",
    "classes_of_few_rows": "Too few of the {n_rows:,} samples are labelled {labels} to estimate "
    "how often these classes are mislabelled. {remedy}",
    "few_rows": "There are only {n_rows:.0f} samples, so the estimate varies a lot from sample to "
    "sample. Add samples.",
    "identifiers": "{columns} has a different value in every sample, as an identifier has. Drop it "
    "(on the command line: {options}).",
    "copies": "{n_copies:,} of {n_rows:,} samples are exact copies of others, label included. If "
    "they are the same cases, leave them out: a copy reveals the label of its original.",
    "contradicting_copies": "Samples with equal features have different labels, in {n_cases:,} "
    "cases (the first: rows {first}, counted from 0). In each case a label is wrong, or the "
    "features do not determine the class: check these labels first.",
    # rates that were given, and weights
    "contradicted_rates": "{rates} contradicts the data: under these rates the share of positive "
    "labels lies between {low:.3f} and {high:.3f}, and it is {share:.3f}. Correct the rates.",
    "unlikely_rates": "{rates} is contradicted by the labels: they are far likelier under "
    "{likelier}. Check where the given rates come from, or leave them out.",
    "contradicted_matrix": "The given transition matrix contradicts the data: the true shares of "
    "{labels} would be negative. Correct the matrix.",
    "impossible_labels": "The posterior gives every label probability 0: it does not fit these "
    "data. Choose another posterior, or a wider bandwidth.",
    "class_without_weight": "Every sample labelled {label!r} gets weight 0 under {rates}, so the "
    "classifier cannot learn that class: flips of the other classes explain all of its labels. "
    "Lower the rates at which they are flipped to {label!r}, or choose another posterior.",
    "few_effective_rows": "The weights leave few samples: as much as {size:.0f} of equal weight "
    "({share:.0%} of all), so the classifier may vary a lot from sample to sample. Add samples, or "
    "choose another posterior.",
    "clipped": "The posterior and the rates do not fit each other: {share:.0%} of the samples have "
    "a P(noisy y | x) that these rates do not allow, and their weights were clipped. Try another "
    "posterior, or check the rates.",
    "mean_weight": "The mean weight is {mean:.2f}; with the right posterior and rates it is 1. Try "
    "another posterior, or check the rates.",
    "rates_scaled_back": "The estimated noise rates {positive:.3f} and {negative:.3f} sum to "
    "{total:.3f}: by this estimate the labels say next to nothing about the true classes. They are "
    "scaled back to sum to {largest}. Check that the features predict the label at all, or give "
    "the rates you know as NoiseRates.",
    "matrix_scaled_back": "The estimated transition matrix (diagonal {diagonal}) leaves {left:.3f} "
    "of the labels' information: by this estimate some classes can hardly be told apart. It is "
    "mixed with the identity, {identity:.2f} I + {share:.2f} T, to leave {least:.2f}. Check that "
    "the features predict the label at all, or give the TransitionMatrix you know.",
}

Severity = Literal["assumption", "note", "warning", "error"]


class LabelNoiseWarning(UserWarning):
    """The reported number is probably off by more than its interval, or cannot be determined.

    The message begins with the code of the finding, such as ``overlap: The classes ...``,
    so that Python's own filters can select one kind of warning: in code as below, or on the command
    line by ``python -W "ignore:overlap:"``. The parameter `ignore` of classifier and audit takes
    the same codes.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> from unflip import LabelAudit, LabelNoiseWarning
    >>> y = np.arange(60) % 2
    >>> X = np.random.default_rng(0).normal(y[:, None], 1.0, (60, 2))
    >>> with warnings.catch_warnings():
    ...     warnings.filterwarnings("ignore", "poorly_identified:", LabelNoiseWarning)
    ...     audit = LabelAudit(random_state=0).fit(X, y)
    """

    @property
    def sentence(self) -> str:
        """The message without the code."""
        return str(self).partition(": ")[2]


@dataclass(frozen=True)
class Diagnostic:
    """One finding about an estimate; `str` puts it into words.

    Parameters
    ----------
    code : str
        What was found; it stays the same while wording improves.
    severity : {"assumption", "note", "warning", "error"}, default="warning"
        An assumption is what the estimate rests on; a note says what was done or may be of
        interest; a warning says that the reported number is probably off by more than its interval
        or cannot be determined, and what to do; `fit` raises an error.
    numbers : dict, default={}
        What the sentence is filled with.

    Examples
    --------
    >>> from unflip.diagnostics import Diagnostic
    >>> str(Diagnostic("mean_weight", "note", {"mean": 1.2}))
    'The mean weight is 1.20; with the right posterior and rates it is 1. Try another ...'
    """

    code: str
    severity: Severity = "warning"
    numbers: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return SENTENCES[self.code].format(**self.numbers)


def sentences(findings: Iterable[Diagnostic], severity: Severity) -> list[str]:
    """Return the distinct findings of one severity, in words."""
    return list(dict.fromkeys(str(one) for one in findings if one.severity == severity))


def raise_or_warn(findings: Iterable[Diagnostic]) -> list[str]:
    """Raise a ValueError for the first error, else warn of the warnings and return them as text."""
    found = list(findings)
    for message in sentences(found, "error"):
        raise ValueError(message)
    for one in found:
        if one.severity == "warning":
            warn(f"{one.code}: {one}", LabelNoiseWarning)
    return sentences(found, "warning")


def named(parts: Iterable[str]) -> str:
    """Return the parts of a list in a sentence, the first ones of many.

    Examples
    --------
    >>> from unflip.diagnostics import named
    >>> named(["a", "b", "c"])
    'a, b and c'
    """
    *first, last = parts
    if len(first) >= MAX_NAMED:
        return f"{', '.join(first[: MAX_NAMED - 1])} and {len(first) + 2 - MAX_NAMED} more"
    return f"{', '.join(first)} and {last}" if first else last


def percent(share: float) -> str:
    """Return a share as a percentage, with one decimal below 10 %.

    Examples
    --------
    >>> from unflip.diagnostics import percent
    >>> percent(0.0814), percent(0.2)
    ('8.1%', '20%')
    """
    if 0 <= share < MIN_SHOWN:
        return "less than 0.1%" if share > 0 else "0%"
    return f"{share:.1%}" if abs(share) < 0.0995 else f"{share:.0%}"
