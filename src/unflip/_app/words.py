"""The summary in sentences, for readers who are not statisticians.

They are made of a summary (:func:`unflip.inspection.summary`), and hold **bold** marks; names from
the data are escaped with :func:`~unflip._app.report.plain`.
"""

from collections.abc import Sequence

from unflip._app.markup import plain
from unflip._utils.typing import Record
from unflip.diagnostics import LEAST_SHOWN, MEANINGLESS, labels_to_verify, percent

MOSTLY = 0.6
"""A class that takes more of another one's flips takes them mostly."""

NO_ERRORS = ("clean", "given_none")
"""Verdicts by which no label is wrong."""

MOST_RATES = 3
"""Number of classes whose flip rates are put into sentences: those with the highest ones."""

ASSUMPTIONS = (
    "Whether a label was flipped depends only on the true class, not on the sample: unflip does "
    "not see that a rare kind of sample is mislabelled more often than others of its class.",
    "Some samples surely belong to each class. Where the classes overlap everywhere, overlap and "
    "noise look alike, and the rates come out too high.",
    "Labels are right more often than wrong: for two classes, the rates sum to less than 1.",
)


def plus_minus(error: float) -> str:
    """Return a standard error in points; none is known to be less than a tenth of one."""
    return f"± {max(100 * error, 0.1):.1f}"


def count(number: float) -> str:
    """Return a number of rows, rounded, with commas."""
    return f"{round(number):,}"


def name_of(label: object) -> str:
    """Return a class's name, fit for a sentence; in quotes where it begins or ends with a blank."""
    text = str(label)
    return plain(text if text == text.strip() else repr(text))


def verdict(found: Record) -> list[str]:
    """Return what is shown where space is short: the amount of label errors, and the assumption."""
    headline = f"**{plain(found['verdict']['sentence'])}**"
    # checked samples assume nothing
    return [headline] if is_meaningless(found) or not found["range"] else [headline, found["range"]]


def is_meaningless(found: Record) -> bool:
    """Return whether a copy of the label, a rule or spellings make all numbers meaningless."""
    return found["verdict"]["code"] in MEANINGLESS


def checked_sentences(checked: Record) -> list[str]:
    """Return what checked rows count, what the labels alone say, and whether the two agree."""
    share = checked["label_error_rate"]
    either = f", {share['n_unsure']} of them unsure" if share["n_unsure"] else ""
    sentences = [
        f"**By {checked['n_rows']:,} checked rows{either}, {percent(share['value'])} of the labels "
        f"are wrong**: {between(share['fixed_n'])} (95%, if their number was fixed in advance), "
        f"{between(share['at_any_time'])} (95% at every moment). By the labels alone: "
        f"{percent(checked['labels_alone'])}.",
        "The two contradict each other: mistakes are not flips at random within each class, and "
        "the checked rows are to be believed."
        if checked["contradicted"]
        else "The two do not contradict each other.",
    ]
    for rate in checked["flip_rates"]:
        if rate["value"] is not None:
            often = f"{percent(rate['value'])} ({between(rate['fixed_n'])})"
            sentences.append(
                f"By the checked rows, {often} of the rows that are truly "
                f"**{name_of(rate['label'])}** are labelled otherwise."
            )
    if checked["rows_for_two_points"]:
        more = count(checked["rows_for_two_points"])
        sentences.append(f"About {more} more rows would tell the share to within 2 points.")
    return sentences


def warnings_of(found: Record) -> list[str]:
    """Return the warnings, but for one that is the verdict already."""
    first = found["verdict"]["sentence"]
    return [plain(said) for said in found["warnings"] if said != first]


def notes_of(found: Record) -> list[str]:
    """Return the notes."""
    return [plain(said) for said in found["notes"]]


def between(interval: Sequence[float]) -> str:
    """Return the ends of an interval, such as "between 8.2% and 11%"."""
    low, high = map(percent, interval)
    if interval[1] < LEAST_SHOWN:
        return "less than 0.1%"
    return f"about {low}" if low == high else f"between {low} and {high}"


def flip_interval(found: Record, k: int) -> list[float] | None:
    """Return (low, high) of how often class k is flipped, or None where it is not known."""
    interval = found.get("transition_interval")
    if interval is None:
        ends: list[float] | None = found["per_class"][k].get("interval")
        return ends
    return [1 - interval["high"][k][k], 1 - interval["low"][k][k]]


def rate_sentences(found: Record) -> list[str]:
    """Return how often each class is flipped; of many classes those that are most often."""
    if found["verdict"]["code"] in (*NO_ERRORS, "few_samples"):
        return []
    names = [name_of(label) for label in found["classes"]]
    rates = [row["flip_rate"] for row in found["per_class"]]
    shown = [
        k
        for k in sorted(range(len(rates)), key=lambda k: (-rates[k], k))
        if len(rates) == 2 or rates[k] >= LEAST_SHOWN
    ]
    if not shown:
        return []
    said = [
        f"Of the rows that are truly **{names[k]}**, {_often(found, k)} are labelled "
        f"{_otherwise(found, k)}."
        for k in (sorted(shown) if len(rates) == 2 else shown[:MOST_RATES])
    ]
    rest = sorted(set(range(len(rates))) - set(shown[:MOST_RATES]), key=lambda k: -rates[k])
    if len(rates) > 2 and rest:
        highest = percent(rates[rest[0]])
        said.append(f"Of each other class, at most {highest}.")
    return said


def _often(found: Record, k: int) -> str:
    """Return how often class k is flipped, with the interval."""
    interval = flip_interval(found, k)
    return percent(found["per_class"][k]["flip_rate"]) + (
        f" ({between(interval)})" if interval else ""
    )


def _otherwise(found: Record, k: int) -> str:
    """Return which label samples of class k have instead."""
    names = [name_of(label) for label in found["classes"]]
    away = [(p, names[j]) for j, p in enumerate(found["transition_matrix"][k]) if j != k]
    largest, other = max(away)
    if len(names) == 2:
        return f"**{other}**"
    return "otherwise" + (
        f", mostly **{other}**" if largest > MOSTLY * sum(p for p, _ in away) else ""
    )


def certainty(found: Record) -> list[str]:
    """Return what the intervals mean."""
    interval = found.get("transition_interval") or found.get("interval")
    if interval is None or not rate_sentences(found):
        return []
    return [f"Intervals are {percent(interval['level'])} intervals, if errors strike at random."]


def weight_sentences(found: Record) -> list[str]:
    """Return what the weights do, and what they cost."""
    weights = found["weights"]
    if weights is None:
        return []
    largest = max(found["per_class"], key=lambda row: row["largest_weight"] or 0.0)
    sentences = [
        "Every row counts in training as far as its label can be believed: 0 where the label is "
        "surely wrong, and more than 1 where it is surely right, to stand for those of its class "
        "that are labelled otherwise.",
        f"The weights cost information: {count(found['n_samples'])} weighted rows are worth as "
        f"much as {count(weights['effective_sample_size'])} "
        f"({percent(weights['effective_share'])}) of equal weight.",
    ]
    if largest["largest_weight"]:
        sentences.append(
            f"No row counts more than {largest['largest_weight']:.2f} times (rows labelled "
            f"**{name_of(largest['label'])}**)."
        )
    return sentences


def accuracy_sentences(accuracy: Record) -> list[str]:
    """Return how often a model would be right on clean labels, before and after."""
    gain, error = accuracy["gain"]["score"], accuracy["gain"]["standard_error"]
    points = f"{abs(100 * gain):.1f} points ({plus_minus(error)})"
    if abs(gain) <= 2 * error:
        verdict = f"The difference, {points}, is within what chance does."
    elif gain > 0:
        verdict = f"Reweighting gains {points}."
    else:
        verdict = f"Reweighting loses {points}: look at the warnings."
    return [
        f"{verdict} Both figures are estimates of the accuracy on clean labels, from held-out "
        f"rows with noisy ones ({accuracy['folds']} folds), at the rates found above; the ± is one "
        "standard error, which does not include the error of the rates. An estimate may pass 100%."
    ]


def next_steps(found: Record) -> list[str]:
    """Return the recommended next steps."""
    code = found["verdict"]["code"]
    if code == "leak":
        options = " ".join(f"--drop {name_of(column)}" for column in found["leaks"])
        return [f"Drop the copy of the label, and run this again: `{options}`."]
    if code == "classes_look_alike":
        return [
            "Merge the spellings of one class, and run this again: `--merge-labels`. If they are "
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
        return [*steps, "If the columns of the rule were made from the label, drop them: `--drop`."]
    if code in NO_ERRORS:
        return ["Train as usual: nothing here calls for reweighting.", *steps]
    return [
        "Check the most suspicious labels first: `unflip review`. If most of them are wrong, the "
        "estimate is confirmed.",
        *steps,
        "Train on the labels as they are, reweighted: `unflip fit`; or with the checked labels: "
        "`unflip fit --reviewed FILE`.",
    ]
