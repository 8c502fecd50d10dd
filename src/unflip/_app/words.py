"""The summary in sentences, for readers who are not statisticians.

They are made of a summary (:func:`unflip.inspection.summary`), and hold **bold** marks; names from
the data are escaped with :func:`~unflip._app.report.plain`.
"""

from unflip._app.markup import plain
from unflip._diagnostics import strength
from unflip._typing import Record

LEAST_SHOWN = 0.0005
"""Smaller shares are shown as less than 0.1 %."""

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


def count(number: float) -> str:
    """Return a number of rows, rounded, with commas."""
    return f"{round(number):,}"


def name_of(label: object) -> str:
    """Return a class's name, fit for a sentence."""
    return plain(str(label))


def headline(found: Record) -> str:
    """Return the main sentence of the summary."""
    wrong, rows = found["expected_errors"], found["n_samples"]
    if _seems_clean(found):
        return f"**None of the {count(rows)} labels seems to be wrong.**"
    if round(wrong) == 0:
        return f"**Less than one of the {count(rows)} labels is expected to be wrong.**"
    return (
        f"**About {percent(found['expected_error_share'])} of the labels are wrong**: some "
        f"{count(wrong)} of {count(rows)} rows."
    )


def rate_sentences(found: Record) -> list[str]:
    """Return how often each class is flipped, a sentence per class."""
    names = [name_of(label) for label in found["classes"]]
    sentences = []
    for k, row in enumerate(found["per_class"]):
        away = [(p, names[j]) for j, p in enumerate(found["transition_matrix"][k]) if j != k]
        largest, other = max(away)
        to = f"**{other}**"
        if len(names) > 2:
            to = "otherwise" + (f", mostly **{other}**" if largest > 0 else "")
        interval = row.get("interval")
        between = (
            f" (between {percent(interval[0])} and {percent(interval[1])})" if interval else ""
        )
        sentences.append(
            f"Of the rows that are truly **{names[k]}**, {percent(row['flip_rate'])}{between} are "
            f"labelled {to}."
        )
    return sentences


def certainty(found: Record) -> list[str]:
    """Return what the intervals mean, and the results of the two tests."""
    sentences = []
    interval, tests = found.get("interval"), found.get("tests")
    if interval is not None:
        sentences.append(
            f"The ranges hold the true rate in {percent(interval['level'])} of such samples, if "
            "the assumptions hold."
        )
    if tests is None:
        return sentences
    noise, symmetry = tests.get("noise"), tests.get("symmetry")
    if noise is not None:
        sentences.append(
            f"Are any labels wrong? {_verdict(noise['p_value'], noise['probability_of_none'])} "
            f"{_rarity('all labels were right', noise['p_value'])} The probability that all are "
            f"right is {_chance(noise['probability_of_none'])}."
        )
    if symmetry is not None:
        sentences.append(
            "Is one class mislabelled more often than the other? "
            f"{_verdict(symmetry['p_value'], symmetry['probability_of_equal'])} "
            f"{_rarity('both were mislabelled equally often', symmetry['p_value'])} The "
            f"probability that they are is {_chance(symmetry['probability_of_equal'])}."
        )
    return sentences


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
    points = f"{abs(100 * gain):.1f} points (± {100 * error:.1f})"
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
    steps = []
    if found["warnings"]:
        steps.append("Read the warnings first: with them the figures may be far off.")
    if _seems_clean(found):
        return [*steps, "Train as usual: nothing here calls for reweighting."]
    steps.append(
        "Look at the most suspicious rows (`unflip audit`): if most of them are labelled wrongly, "
        "the estimate is borne out; if not, trust it less."
    )
    steps.append(
        "Put the labels that you corrected into a file with the columns row and label, and train "
        "with them: `unflip fit --reviewed FILE`."
    )
    steps.append("Train on the labels as they are, reweighted: `unflip fit`.")
    if found["noise_rates"] is not None:
        steps.append("If you know the rates from elsewhere, give them: `--rates 0.3,0.1`.")
    return steps


def _seems_clean(found: Record) -> bool:
    """Return whether no label is expected to be wrong, and no class to be flipped."""
    flipped = max(row["flip_rate"] for row in found["per_class"])
    return round(found["expected_errors"]) == 0 and flipped < LEAST_SHOWN


def _verdict(p_value: float, probability: float) -> str:
    sureness = strength(p_value, probability)
    words = {"almost sure": "Almost surely.", "likely": "Probably."}
    return words.get(sureness, "These rows do not show it.")


def _chance(probability: float) -> str:
    # a probability that underflows to 0 is not 0
    return percent(max(probability, 1e-9))


def _rarity(otherwise: str, p_value: float) -> str:
    if p_value < 0.0005:
        return f"If {otherwise}, data like these would come up less than once in 2,000 samples."
    return f"If {otherwise}, data like these would come up in {percent(p_value)} of samples."
