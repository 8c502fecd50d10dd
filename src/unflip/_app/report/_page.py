"""The blocks of the page, from the content of a report."""

from collections.abc import Iterable

import numpy as np

from unflip._app import words
from unflip._app.markup import plain
from unflip._app.report._document import Block, Cell, Details, Heading, Picture, Table, Text
from unflip._app.report._svg import draw_histogram, draw_intervals, draw_matrix
from unflip._utils.typing import Record
from unflip.diagnostics import percent

TITLE = "How reliable are these labels?"

MOST_SHOWN_COLUMNS = 8
LONGEST_VALUE, LONGEST_OPENED = 40, 2000
"""Maximum number of columns in the table of suspicious rows, and of characters of a cell there and
in an opened row."""

NOTEBOOK_ROWS = 10
"""Number of suspicious rows shown in a notebook."""

MOST_DRAWN = 30
"""Maximum number of classes in a drawn matrix."""

MOST_CONFUSIONS, LEAST_CONFUSION = 12, 0.005
"""Maximum number of confused pairs of classes that are listed, and the minimum rate of each."""

MOST_SERIES = 4
"""Maximum number of classes with a colour of their own."""


def page_blocks(content: Record, *, drawn: bool = True) -> list[Block]:
    """Return the whole page, from top to bottom."""
    made = content["made"]
    blocks: list[Block] = [Heading(TITLE, 1)]
    if made.get("table"):
        blocks.append(Text(f"{plain(made['table'])}, label **{plain(made['label'])}**"))
    if drawn and not words.is_meaningless(content["summary"]):
        blocks += _overview(content["summary"])
    blocks += _short(content)
    blocks += [Heading("What to do next"), *_items(content["next_steps"])]
    if not words.is_meaningless(
        content["summary"]
    ):  # beside a copy of the label, all looks perfect
        blocks += _confusion(content["summary"])
        if content["histograms"]["weights"] is not None:  # else there is no model to train
            blocks += _accuracy(content["accuracy"])
            blocks += _weights(content)
        blocks += _posterior(content) if drawn else []
        for slices in content["slices"]:
            blocks += _slices(slices)
        blocks += _suspects(content)
    notes = words.notes_of(content["summary"])
    blocks += [Heading("Notes"), *_items(notes)] if notes else []
    blocks += [Heading("Assumptions"), *_items(content["assumptions"]), *_made(made)]
    return [block for block in blocks if drawn or not isinstance(block, Picture)]


def _overview(found: Record) -> list[Block]:
    """Return pictures of the error rate of all labels and each class, and of the confusions."""
    names, per_class = [str(label) for label in found["classes"]], found["per_class"]
    shares, rate = [row["flip_rate"] for row in per_class], found["expected_error_share"]
    ends = [words.flip_interval(found, k) or [share, share] for k, share in enumerate(shares)]
    at_random, by_row = (found["label_error_range"][name] for name in ("at_random", "by_row"))
    blocks: list[Block] = []
    if len(names) <= MOST_DRAWN:
        picture = draw_intervals(
            [rate, *shares],
            [at_random, *ends],
            ["all labels", *(f"truly {name}" for name in names)],
            axis="label error rate, 95% intervals; grey: wider range",
            band=tuple(by_row),
            n_banded=1,
        )
        title = "Label error rates with intervals; grey: range if errors depend on the row"
        blocks.append(Picture("errors.svg", picture, title))
    if 2 < len(names) <= MOST_DRAWN:
        matrix, notes = found["transition_matrix"], []
        for i, j in np.ndindex(len(names), len(names)):
            ends_here = _between(_flip_ends(found, i, j))
            note = f"truly {names[i]}, labelled {names[j]}: {percent(matrix[i][j])}"
            notes.append(note + (f" ({ends_here})" if ends_here else ""))
        picture = draw_matrix(matrix, names, rows="truly", columns="labelled as", notes=notes)
        title = "How often each true class gets each label"
        blocks.append(Picture("confusion.svg", picture, title))
    return blocks


def short_blocks(content: Record) -> list[Block]:
    """Return the short version for notebooks."""
    blocks = _short(content)
    if not words.is_meaningless(content["summary"]):
        blocks += _accuracy_table(content["accuracy"])
        blocks += [Text(plain(slices["sentence"])) for slices in content["slices"]]
    suspects = content["suspects"][:NOTEBOOK_ROWS]
    if words.is_meaningless(content["summary"]) or not suspects:
        return blocks
    return [*blocks, _suspects_table(suspects)]


def _short(content: Record) -> list[Block]:
    found = content["summary"]
    first, *rest = words.verdict(found)
    alarming = words.is_meaningless(found)
    blocks: list[Block] = [Text(first, lead=True, warning=alarming), *map(Text, rest)]
    blocks += [
        Text(f"**Warning:** {sentence}", warning=True) for sentence in words.warnings_of(found)
    ]
    if alarming:
        return blocks
    blocks += _items(words.rate_sentences(found))
    blocks += [Text(sentence) for sentence in words.certainty(found)]
    has_counts = "n_labels" in found["per_class"][0]
    if not has_counts:
        return blocks
    rows = tuple(
        _row(
            words.name_of(row["label"]),
            f"{row['n_labels']:,}",
            percent(row["label_share"]),
            percent(row["true_share"]),
            (percent(row["flip_rate"]), _between(words.flip_interval(found, k))),
            f"{row['expected_errors']:,.0f}",
        )
        for k, row in enumerate(found["per_class"])
    )
    head = ("class", "labels", "share", "true share", "noise rate", "wrong labels")
    return [*blocks, Table(head, rows, sortable=len(rows) > 2)]


def _row(*parts: str | tuple[str, str] | Cell) -> tuple[Cell, ...]:
    """Return cells from texts, and from figures with an interval or error below them."""
    texts = [(part,) if isinstance(part, str) else part for part in parts]
    return tuple(text if isinstance(text, Cell) else Cell(*text) for text in texts)


def _between(interval: list[float] | None) -> str:
    title = "" if interval is None else words.between(interval)
    return title.removeprefix("between ").replace(" and ", " to ")


def _accuracy(accuracy: Record | None) -> list[Block]:
    blocks: list[Block] = [Heading("Accuracy gained by reweighting")]
    if accuracy is None:
        return [*blocks, Text("Not estimated: a class has too few rows for cross-validation.")]
    blocks += _accuracy_table(accuracy)
    return blocks + [Text(sentence) for sentence in words.accuracy_sentences(accuracy)]


def _accuracy_table(accuracy: Record | None) -> list[Block]:
    if accuracy is None:
        return []
    trained = {
        "labels as they are": accuracy["labels_as_they_are"],
        "reweighted labels": accuracy["reweighted"],
    }
    rows = tuple(
        _row(name, (f"{one['score']:.1%}", words.plus_minus(one["standard_error"])))
        for name, one in trained.items()
    )
    return [Table(("trained on", "accuracy on clean labels"), rows)]


def _weights(content: Record) -> list[Block]:
    found, weights = content["summary"], content["histograms"]["weights"]
    names = [words.name_of(label) for label in found["classes"]]
    shares = zip(names, weights["label_share"], weights["weight_share"], strict=True)
    rows = tuple(_row(name, percent(before), percent(after)) for name, before, after in shares)
    blocks: list[Block] = [Heading("Training weights")]
    blocks += [Text(sentence) for sentence in words.weight_sentences(found)]
    blocks.append(Table(("class", "share of rows", "share of weight"), rows))
    counts, labels = weights["counts"], [f"labelled {label}" for label in found["classes"]]
    if len(counts) > MOST_SERIES:
        counts, labels = [[sum(of_bin) for of_bin in zip(*counts, strict=True)]], ["all labels"]
    picture = draw_histogram(weights["edges"], counts, labels, axis="training weight of a row")
    return [*blocks, Picture("weights.svg", picture, "Rows by training weight")]


def _flip_ends(found: Record, i: int, j: int) -> list[float] | None:
    """Return the interval (low, high) of P(labelled j | truly i); None if unknown."""
    interval = found.get("transition_interval")
    return None if interval is None else [interval["low"][i][j], interval["high"][i][j]]


def _confusion(found: Record) -> list[Block]:
    """Return which classes are confused; nothing for two classes."""
    names, matrix = [str(label) for label in found["classes"]], found["transition_matrix"]
    if len(names) == 2:
        return []
    blocks: list[Block] = [
        Heading("Which classes are confused"),
        Text("How often rows of one class are labelled as another, if errors are random."),
    ]
    pairs = [(i, j) for i in range(len(names)) for j in range(len(names))]
    flips = [(matrix[i][j], i, j) for i, j in pairs if i != j and matrix[i][j] >= LEAST_CONFUSION]
    flips.sort(key=lambda flip: -flip[0])
    rows = tuple(
        _row(plain(names[i]), plain(names[j]), (percent(p), _between(_flip_ends(found, i, j))))
        for p, i, j in flips[:MOST_CONFUSIONS]
    )
    if not rows:
        return [*blocks, Text("No class is labelled as another in more than one of 200 rows.")]
    caption = "Most frequent label errors, with intervals."
    head = ("true class", "label", "rate")
    return [*blocks, Table(head, rows, caption, n_labels=2, sortable=True)]


def _slices(slices: Record) -> list[Block]:
    """Return how the noise differs between the values of a column."""
    parts, overall = slices["slices"], slices["overall"]
    picture = draw_intervals(
        [part["label_error_rate"] for part in parts],
        [part["interval"] for part in parts],
        [part["name"] for part in parts],
        axis="label error rate, 95% intervals",
        band=tuple(overall["interval"]),
    )
    rows = tuple(
        _row(
            plain(part["name"]),
            f"{part['n_rows']:,}",
            (percent(part["label_error_rate"]), _between(part["interval"])),
        )
        for part in parts
    )
    caption = f"Grey band: the error rate if all are alike, {percent(overall['label_error_rate'])}"
    caption += f" ({_between(overall['interval'])})."
    return [
        Heading(f"Noise by {plain(slices['by'])}"),
        Text(plain(slices["sentence"])),
        Picture("slices.svg", picture, f"Label error rate by {slices['by']}"),
        Table((plain(slices["by"]), "rows", "wrong labels"), rows, caption, sortable=True),
    ]


def _suspects(content: Record) -> list[Block]:
    suspects, wrong = content["suspects"], content["histograms"]["mislabelled"]
    blocks: list[Block] = [Heading("Most suspicious rows")]
    if not suspects:
        return [*blocks, Text("No row is suspicious at these noise rates.")]
    picture = draw_histogram(
        wrong["edges"], [wrong["counts"]], ["rows"], axis="probability that the label is wrong"
    )
    alternative = "Rows by the probability that their label is wrong"
    blocks.append(Picture("mislabelled.svg", picture, alternative))
    blocks.append(_suspects_table(suspects, " Open a row below to see all."))
    if len(suspects[0]["values"]) <= MOST_SHOWN_COLUMNS and not any(map(_is_cut, suspects)):
        return blocks
    return blocks + [
        Details(
            f"Row {one['row']}: **{words.name_of(one['label'])}**, P(wrong) {one['p_wrong']:.2f}",
            tuple(
                (plain(name), _value(value, LONGEST_OPENED).text)
                for name, value in one["values"].items()
            ),
        )
        for one in suspects
    ]


def _suspects_table(suspects: list[Record], all_columns: str = "") -> Table:
    """Return the table of suspicious rows with their first columns."""
    columns = list(suspects[0]["values"])
    shown = columns[:MOST_SHOWN_COLUMNS]
    head = ("row", "label", "suggested", "P(wrong)", *(plain(name) for name in shown))
    rows = tuple(
        _row(
            f"{one['row']}",
            words.name_of(one["label"]),
            _suggestion(one),
            f"{one['p_wrong']:.2f}",
            *(_value(one["values"][name]) for name in shown),
        )
        for one in suspects
    )
    caption = f"The {len(rows)} rows most likely to be mislabelled, counted from 0."
    if len(columns) > len(shown):
        caption += f" {len(shown)} of {len(columns)} columns shown.{all_columns}"
    return Table(head, rows, caption, n_labels=3, sortable=True)


def _is_cut(suspect: Record) -> bool:
    return any(
        isinstance(value, str) and len(value) > LONGEST_VALUE
        for value in suspect["values"].values()
    )


def _suggestion(one: Record) -> str:
    """Return the suggested label, or the reason that there is none."""
    if one["p_none"] >= 0.5:
        return "none of these"
    return "unclear" if one["unclear"] else words.name_of(one["suggested"])


def _posterior(content: Record) -> list[Block]:
    posterior = content["histograms"]["posterior"]
    if posterior is None:
        return []
    negative, positive = content["summary"]["classes"]
    low, high = posterior["anchor_values"]
    picture = draw_histogram(
        posterior["edges"],
        posterior["counts"],
        [f"labelled {negative}", f"labelled {positive}"],
        axis=f"estimated probability of the label {_cut(str(positive))}",
        marks=[
            (low, f"certainly {_cut(str(negative), 18)}: {low:.2f}"),
            (high, f"certainly {_cut(str(positive), 18)}: {high:.2f}"),
        ],
    )
    return [
        Heading("How the noise rates are estimated"),
        Text(
            "For rows that certainly belong to a class, the probability of a label equals the rate "
            "at which that class gets this label. The dashed lines are these rates. If they are "
            "right, the bars end or pile up there. Many bars well outside the lines mean that a "
            "rate is too high; a gap between bars and a line means that no row is certain."
        ),
        Picture(
            "posterior.svg", picture, "Rows by the probability of a label, and the noise rates"
        ),
    ]


def _made(made: Record) -> list[Block]:
    if not made:
        return []
    lines = []
    if made.get("command"):
        lines.append(f"Command: `{made['command'].replace('`', chr(39))}`")
    if made.get("seed") is not None:
        lines.append(f"Seed: {made['seed']}")
    if made.get("versions"):
        stated = ", ".join(f"{name} {version}" for name, version in made["versions"].items())
        lines.append(f"Versions: {plain(stated)}")
    return [Heading("How this report was made"), *_items(lines)]


def _items(sentences: Iterable[str]) -> list[Block]:
    return [Text(sentence, item=True) for sentence in sentences]


def _value(value: object, longest: int = LONGEST_VALUE) -> Cell:
    if isinstance(value, str):
        return Cell(plain(_cut(value, longest)), words=True)
    if isinstance(value, float):
        return Cell(f"{value:.4g}" if abs(value) < 1e4 else f"{value:.0f}")
    return Cell("" if value is None else str(value))


def _cut(text: str, longest: int = LONGEST_VALUE) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"
