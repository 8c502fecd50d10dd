"""The summary in sentences, for readers who are not statisticians.

They are made of a summary (:func:`unflip.inspection.summary`), and hold **bold** marks; names from
the data are escaped with :func:`~unflip._app.report.plain`.
"""

from collections.abc import Sequence
from typing import NamedTuple

from unflip._app.markup import plain
from unflip._utils.typing import Record
from unflip.diagnostics import PROBABLY, look_alike, strength

LEAST_SHOWN = 0.0005
"""Smaller shares are shown as less than 0.1 %."""

MOSTLY = 0.6
"""A class that takes more of another one's flips takes them mostly."""

ASSUMPTIONS = (
    "Whether a label was flipped depends on the true class only, not on the row: a rare kind of "
    "row that is mislabelled more than others of its class is not seen.",
    "Some rows surely belong to each class. Where the classes overlap everywhere, overlap and "
    "noise look alike, and the rates come out too high.",
    "Labels are right more often than wrong: for two classes, the rates sum to less than 1.",
)


def percent(share: float) -> str:
    """Return a share as a percentage, with one decimal below 10 %."""
    if 0 <= share < LEAST_SHOWN:
        return "less than 0.1%" if share > 0 else "0%"
    return f"{share:.1%}" if abs(share) < 0.0995 else f"{share:.0%}"


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
    """Return what is said wherever there is room for little: how noisy, how sure, if what holds."""
    return [headline(found)] if to_mend(found) else [headline(found), found["range"]]


def headline(found: Record) -> str:
    """Return the main sentence of the summary, which is not sure where anything is doubtful."""
    mend = to_mend(found)
    if mend is not None:
        return mend.headline
    wrong, rows = round(found["expected_errors"]), count(found["n_samples"])
    doubtful = bool(found["warnings"])
    if wrong == 0:
        if found.get("rates_given"):
            return f"**At the rates given, next to none of the {rows} labels is wrong.**"
        if doubtful:
            return f"**Whether the {rows} labels are noisy is open**: no random flips are seen."
        return f"**No random flips are seen** in the {rows} labels."
    share = percent(found["expected_error_share"])
    if doubtful or _strength(found, "noise") == "open":
        return (
            f"**About {share} of the labels may be wrong, but that is not sure**: some "
            f"{count(wrong)} of {rows} rows."
        )
    given = "At the rates given, about" if found.get("rates_given") else "About"
    return f"**{given} {share} of the labels are wrong**: some {count(wrong)} of {rows} rows."


def checked_sentences(checked: Record) -> list[str]:
    """Return what checked rows count, what the labels alone say, and whether the two agree."""
    share = checked["wrong_share"]
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


class Mend(NamedTuple):
    """What must be put right in a table before anything can be said of its labels, and how."""

    headline: str
    step: str


def to_mend(found: Record) -> Mend | None:
    """Return what makes all figures meaningless: a copy of the label, one class under two names."""
    copies = [name_of(column) for column in found.get("leaks", [])]
    if copies:
        which = "column" if len(copies) == 1 else "columns"
        return Mend(
            f"**Drop the {which} {' and '.join(copies)} first**: beside a copy of the label, no "
            "mistake is seen.",
            "Drop what knows the label, and run this again: "
            f"`{' '.join(f'--drop {column}' for column in copies)}`.",
        )
    alike = [" and ".join(map(name_of, group)) for group in look_alike(found["classes"])]
    if alike:
        return Mend(
            f"**Merge the classes that look alike first**: {'; '.join(alike)}. Confusion between "
            "spellings of one class counts as noise.",
            "Make one class of its spellings, and run this again: `--merge-labels`. If they are "
            "not the same, give them names that differ in more than case and blanks.",
        )
    return None


def doubts(found: Record) -> list[str]:
    """Return the warnings, without the sentence on the range, which stands beside the headline."""
    return [plain(said.removesuffix(found["range"]).strip()) for said in found["warnings"]]


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
    """Return how often each class is flipped, a sentence per class, or one where all are alike."""
    names = [name_of(label) for label in found["classes"]]
    said = []
    for k, row in enumerate(found["per_class"]):
        away = [(p, names[j]) for j, p in enumerate(found["transition_matrix"][k]) if j != k]
        largest, other = max(away)
        to = f"**{other}**"
        if len(names) > 2:
            mostly = largest > MOSTLY * sum(p for p, _ in away)
            to = "otherwise" + (f", mostly **{other}**" if mostly else "")
        interval = flip_interval(found, k)
        said.append(
            f"{percent(row['flip_rate'])}{f' ({between(interval)})' if interval else ''} are "
            f"labelled {to}."
        )
    if len(names) > 2 and len(set(said)) == 1:
        return [f"Of the rows of each of the {len(names)} classes, {said[0]}"]
    return [
        f"Of the rows that are truly **{name}**, {often}"
        for name, often in zip(names, said, strict=True)
    ]


def certainty(found: Record) -> list[str]:
    """Return what the intervals mean, and the results of the two tests."""
    sentences = []
    interval = found.get("transition_interval") or found.get("interval")
    tests = found.get("tests")
    if interval is not None:
        sentences.append(
            f"The ranges hold the true rate in {percent(interval['level'])} of such samples, if "
            "the assumptions hold."
        )
    if tests is None or _seems_clean(found):
        return sentences
    some, other, all_alike = "one class is", "the other", "both were"
    if len(found["classes"]) > 2:
        some, other, all_alike = "some classes are", "others", "all were"
    said = [
        _tested(
            _strength(found, "noise"),
            "labels are {}noisy",
            "whether labels are noisy",
            "all labels were right",
            tests["noise"]["p_value"],
        ),
        _tested(
            _strength(found, "symmetry"),
            f"{some} {{}}mislabelled more often than {other}",
            f"whether {some} mislabelled more often than {other}",
            f"{all_alike} mislabelled equally often",
            tests["symmetry"]["p_value"],
        ),
    ]
    if found["warnings"]:  # what is doubtful is the model that the tests rest on
        said = [f"if the assumptions hold, {sentence}" for sentence in said]
    return sentences + [sentence[0].upper() + sentence[1:] for sentence in said]


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
    mend, steps = to_mend(found), []
    if mend is not None:
        return [mend.step]
    if found["warnings"]:
        steps.append("Read the doubts first: with them the figures may be far off.")
    if _seems_clean(found):
        return [
            *steps,
            "Train as usual: nothing here calls for reweighting.",
            "To know what the labels cannot tell, check some rows, drawn at random: `unflip review "
            "--goal count`.",
        ]
    steps.append(
        "Check labels on a page, the most suspicious rows first: `unflip review`. If most of them "
        "are wrong, the estimate is borne out; if not, trust it less."
    )
    steps.append(
        "Train with what was checked: `unflip fit --reviewed FILE`; or on the labels as they are, "
        "reweighted: `unflip fit`."
    )
    if found["noise_rates"] is not None and not found.get("rates_given"):
        steps.append("If you know the rates from elsewhere, give them: `--rates 0.3,0.1`.")
    return steps


def _seems_clean(found: Record) -> bool:
    """Return whether no label is expected to be wrong, and no class to be flipped."""
    flipped = max(row["flip_rate"] for row in found["per_class"])
    return round(found["expected_errors"]) == 0 and flipped < LEAST_SHOWN


def _strength(found: Record, name: str) -> str | None:
    """Return how sure noise, or a difference between the classes, is; None if it is not tested."""
    tests = found.get("tests")
    return None if tests is None else strength(*tests[name].values())


def _tested(sureness: str | None, claim: str, question: str, otherwise: str, p_value: float) -> str:
    """Return the outcome of a test, and how rare such data would be under its hypothesis."""
    rarity = (
        "less than once in 2,000 samples"
        if p_value < 0.0005
        else f"in {percent(p_value)} of samples"
    )
    said, rest = f"{question} is open", ""
    if sureness != "open":
        said = claim.format("probably " if sureness == "likely" else "")
    elif p_value < PROBABLY:  # and yet the hypothesis is not ruled out
        rest = ", but they are hardly likelier otherwise"
    return f"{said}: if {otherwise}, data like these would come up {rarity}{rest}."
