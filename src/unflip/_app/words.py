"""The summary in sentences: all that commands, report and review page write about an estimate.

They are made from :func:`unflip.inspection.summary` and hold **bold** marks; names from the data
are escaped with :func:`~unflip._app.markup.plain`.
"""

from collections.abc import Sequence

from unflip._app.markup import plain
from unflip._utils.typing import Record
from unflip.diagnostics import MEANINGLESS, MIN_SHOWN, labels_to_verify, percent

MOSTLY = 0.6
"""Minimum share of a class's errors that have one label for the sentence to name that label."""

NO_ERRORS = ("clean", "given_none")
"""Codes of the verdicts that no label is wrong."""

MOST_RATES = 3
"""Maximum number of classes whose noise rates are written out, the highest ones first."""

ASSUMPTIONS = (
    "Label errors depend only on the true class, not on the row. unflip cannot detect that a rare "
    "kind of row is mislabelled more often than the rest of its class.",
    "Some rows of each class clearly belong to it. If the classes overlap everywhere, overlap "
    "looks like noise, and unflip overestimates the noise rates.",
    "Labels are more often right than wrong: for two classes, the noise rates sum to less than 1.",
)


def plus_minus(error: float) -> str:
    """Return a standard error in percentage points, at least 0.1."""
    return f"± {max(100 * error, 0.1):.1f}"


def count(number: float) -> str:
    """Return a number of rows, rounded, with commas."""
    return f"{round(number):,}"


def name_of(label: object) -> str:
    """Return a class's name for a sentence, in quotes if it begins or ends with whitespace."""
    text = str(label)
    return plain(text if text == text.strip() else repr(text))


def verdict(found: Record) -> list[str]:
    """Return the short version: how many labels are wrong, and what this assumes."""
    headline = f"**{plain(found['verdict']['sentence'])}**"
    # checked samples assume nothing
    return [headline] if is_meaningless(found) or not found["range"] else [headline, found["range"]]


def is_meaningless(found: Record) -> bool:
    """Return whether a copy of the label, a rule or spelling variants invalidate all numbers."""
    return found["verdict"]["code"] in MEANINGLESS


def checked_sentences(checked: Record) -> list[str]:
    """Return the error rate from checked rows and from the labels alone, and whether they agree."""
    share = checked["label_error_rate"]
    unsure = f" ({share['n_unsure']} of them unsure)" if share["n_unsure"] else ""
    sentences = [
        f"**According to {checked['n_rows']:,} checked rows{unsure}, {percent(share['value'])} of "
        f"the labels are wrong**: {between(share['fixed_n'])} (95% interval for a number of rows "
        f"fixed in advance) or {between(share['at_any_time'])} (95% interval whenever you stop). "
        f"The labels alone give {percent(checked['labels_alone'])}.",
        "The two contradict each other: label errors do not occur at random within each class, and "
        "unflip reports what the checked rows show."
        if checked["contradicted"]
        else "The two agree within their uncertainty.",
    ]
    sentences += [
        f"According to the checked rows, {percent(rate['value'])} ({between(rate['fixed_n'])}) of "
        f"truly **{name_of(rate['label'])}** rows are mislabelled."
        for rate in checked["flip_rates"]
        if rate["value"] is not None
    ]
    if checked["rows_for_two_points"]:
        more = count(checked["rows_for_two_points"])
        sentences.append(
            f"Check about {more} more randomly drawn rows to narrow the interval to ± 2 percentage "
            "points: `unflip review --goal count`."
        )
    return sentences


def warnings_of(found: Record) -> list[str]:
    """Return the warnings, except one that is the verdict already."""
    first = found["verdict"]["sentence"]
    return [plain(said) for said in found["warnings"] if said != first]


def notes_of(found: Record) -> list[str]:
    """Return the notes."""
    return [plain(said) for said in found["notes"]]


def between(interval: Sequence[float]) -> str:
    """Return the ends of an interval, such as "between 8.2% and 11%"."""
    low, high = map(percent, interval)
    if interval[1] < MIN_SHOWN:
        return "less than 0.1%"
    return f"about {low}" if low == high else f"between {low} and {high}"


def flip_interval(found: Record, k: int) -> list[float] | None:
    """Return the interval (low, high) of class k's noise rate; None if unknown."""
    interval = found.get("transition_interval")
    if interval is None:
        ends: list[float] | None = found["per_class"][k].get("interval")
        return ends
    return [1 - interval["high"][k][k], 1 - interval["low"][k][k]]


def rate_sentences(found: Record) -> list[str]:
    """Return the noise rate of each class; for many classes, the highest ones."""
    if found["verdict"]["code"] in (*NO_ERRORS, "few_samples"):
        return []
    rates = [row["flip_rate"] for row in found["per_class"]]
    if len(rates) == 2:
        return [_rate_sentence(found, k) for k in range(2)]
    order = sorted(range(len(rates)), key=lambda k: (-rates[k], k))
    shown = [k for k in order if rates[k] >= MIN_SHOWN][:MOST_RATES]
    sentences = [_rate_sentence(found, k) for k in shown]
    if shown and len(shown) < len(rates):
        highest = percent(rates[order[len(shown)]])
        sentences.append(f"At most {highest} of the rows of any other class are mislabelled.")
    return sentences


def _rate_sentence(found: Record, k: int) -> str:
    """Return the noise rate of class k, with its interval and the most frequent wrong label."""
    names, interval = [name_of(label) for label in found["classes"]], flip_interval(found, k)
    rate = percent(found["per_class"][k]["flip_rate"])
    wrong = [(p, names[j]) for j, p in enumerate(found["transition_matrix"][k]) if j != k]
    largest, other = max(wrong)
    mostly = f", mostly as **{other}**" if largest > MOSTLY * sum(p for p, _ in wrong) else ""
    return (
        f"{rate}{f' ({between(interval)})' if interval else ''} of truly **{names[k]}** rows are "
        + (f"labelled **{other}**." if len(names) == 2 else f"mislabelled{mostly}.")
    )


def certainty(found: Record) -> list[str]:
    """Return what the intervals mean."""
    interval = found.get("transition_interval") or found.get("interval")
    if interval is None or not rate_sentences(found):
        return []
    level = percent(interval["level"])
    return [f"These are {level} intervals, valid if errors occur at random within each class."]


def weight_sentences(found: Record) -> list[str]:
    """Return what the training weights do, and what they cost."""
    weights = found["weights"]
    if weights is None:
        return []
    largest = max(found["per_class"], key=lambda row: row["largest_weight"] or 0.0)
    sentences = [
        "A row's training weight depends on how likely its label is right: 0 if the label is "
        "certainly wrong, and more than 1 if it is certainly right, to make up for the mislabelled "
        "rows of its class.",
        f"The weights cost information: {count(found['n_samples'])} weighted rows are worth "
        f"{count(weights['effective_sample_size'])} rows of equal weight "
        f"({percent(weights['effective_share'])}).",
    ]
    if largest["largest_weight"]:
        sentences.append(
            f"The largest weight is {largest['largest_weight']:.2f}, of rows labelled "
            f"**{name_of(largest['label'])}**."
        )
    return sentences


def accuracy_sentences(accuracy: Record) -> list[str]:
    """Return how reweighting changes the accuracy on clean labels."""
    gain, error = accuracy["gain"]["score"], accuracy["gain"]["standard_error"]
    points = f"{abs(100 * gain):.1f} points ({plus_minus(error)})"
    if abs(gain) <= 2 * error:
        verdict = f"The difference of {points} is not significant."
    elif gain > 0:
        verdict = f"Reweighting gains {points}."
    else:
        verdict = f"Reweighting loses {points}: see the warnings."
    return [
        f"{verdict} Both figures estimate the accuracy on clean labels from held-out rows with "
        f"noisy labels ({accuracy['folds']} folds), given the noise rates above. The ± is one "
        "standard error and leaves out the uncertainty of the rates. An estimate can exceed 100%."
    ]


def next_steps(found: Record) -> list[str]:
    """Return the recommended next steps."""
    code = found["verdict"]["code"]
    if code == "leak":
        options = " ".join(f"--drop {name_of(column)}" for column in found["leaks"])
        return [f"Drop the copy of the label and run this again: `{options}`."]
    if code == "classes_look_alike":
        return [
            "Merge the spellings of one class and run this again: `--merge-labels`. If they are "
            "different classes, give them names that differ in more than case and whitespace."
        ]
    steps = []
    possible = found["label_error_range"]["by_row"]
    wanted = labels_to_verify(possible, found["expected_error_share"], found["n_samples"])
    if wanted is not None and found["checked"] is None:
        low, high = map(percent, possible)
        steps.append(
            f"Verify about {wanted} randomly drawn labels to halve the range from {low} to {high}: "
            "`unflip review --goal count`."
        )
    if code == "few_samples":
        return [f"Verify all {found['n_samples']} labels: `unflip review`."]
    if code == "rule":
        return [*steps, "If the columns in the rule were made from the label, drop them: `--drop`."]
    if code in NO_ERRORS:
        return ["Train as usual: these labels need no reweighting.", *steps]
    return [
        "Check the most suspicious labels first: `unflip review`. If most of them are wrong, the "
        "estimate is confirmed.",
        *steps,
        "Train a model that corrects for the errors: `unflip fit`, or `unflip fit --reviewed FILE` "
        "with the labels that you checked.",
    ]
