"""The page "How far to trust it", written from the cells of `benchmarks.worlds`."""

from collections.abc import Sequence
from math import isnan
from pathlib import Path

from benchmarks.world_families import HELD_OUT, UNKNOWABLE
from benchmarks.worlds import Cell, in_markdown, save, summarise, tables

DOCS = Path(__file__).parents[1] / "docs"
PAGE, CELLS = DOCS / "user_guide" / "trust.md", DOCS / "user_guide" / "trust.csv"

OPENING = """\
# How far to trust it

<!-- Written by `python -m benchmarks.worlds --page` from trust.csv; not to be edited. -->

This page measures how often an estimate misleads. `ImportanceReweightingClassifier()` with its
defaults was fitted to {n_cells} simulated scenarios: {n_families} families of clean labels with
{n_noises} kinds of noise, many of which break an assumption. Thresholds of warnings and ranges were
chosen on one part of the families; the other part was written afterwards, and no number was fitted
to it: {held_out}. Its mean width of the range was seen before two factors
of the range were lowered, which the first part decided.

**Sure and wrong** is a fit that ends in an error; or whose range (`label_error_range_`) does not
hold the true share of wrong labels, however the errors come about; or, where labels are flipped at
random as every estimate assumes, in which a rate is off by more than 0.05 and outside its 95 %
interval by more than 0.02, and no warning was given. It happened in **{sure_and_wrong:.1%}** of the
scenarios.

- *needless, random flips* and *needless, clean*: share of the fits to labels flipped at random, and
  to clean labels, with a warning although both rates are within 0.05 of the truth.
- *off, warned* and *off, not warned*: share of the fits with a rate that is off by more than 0.05,
  among those with a warning and among the others, and the *ratio* of the two. Labels are clean or
  flipped at random: where errors depend on the sample, the rates of the model are not what is
  wrong, and the range says so.
- *rules named*: where the labels are a threshold on one column, how often a warning names the rule.
- *range holds*: how often the range holds the true share of wrong labels. In the first table: where
  errors depend on the sample.
- *range width*: in all scenarios. *Range's upper end* is to be read beside the *true share*.
- *interval holds*: how often the 95 % interval holds the true rate, both rates counted. Where
  errors depend on the sample, the true rates are the shares of each class that are wrong.
- *width*, *error*: of the interval, and of the rates, on average.
- *warned*, *needlessly*: with a warning, and with one although both rates were within 0.05.
"""

MOST_SHOWN = 25
"""Of the worst cells."""

SECTIONS = {
    "calibration": "## What warnings and ranges are worth",
    "worlds": "## In short",
    "family": "## By the shape of the true classes",
    "noise": "## By the kind of errors",
    "table": "## By the size and shape of the table",
}


def page(cells: Sequence[Cell]) -> str:
    """Return the page as markdown.

    Parameters
    ----------
    cells : sequence of Cell
        What was measured.
    """
    known = [cell for cell in cells if cell.family not in UNKNOWABLE]
    figures = summarise(known)
    opening = OPENING.format(
        n_cells=len(known),
        n_families=len({cell.family for cell in known}),
        n_noises=len({cell.noise for cell in known}),
        held_out=", ".join(f"*{name}*" for name in HELD_OUT),
        **{key.replace(" ", "_"): value for key, value in figures.items()},
    )
    parts = [opening]
    for title, rows in tables(cells).items():
        parts += [SECTIONS[title], in_markdown(rows)]
    parts.append(_worst(known))
    left_out = sorted({cell.family for cell in cells if cell.family in UNKNOWABLE})
    if left_out:
        parts.append(
            "## Where nobody can know\n\n"
            f"In {', '.join(f'*{name}*' for name in left_out)} the true classes level off at 20 and"
            " 80 %: labels that are right look like sharper classes with one label in five"
            " flipped, and no method can tell the two apart"
            " ([why](limits.md#no-row-surely-is-of-its-class)). These scenarios are counted in"
            " their own line only."
        )
    return "\n\n".join(part.strip() for part in parts) + "\n"


def _worst(cells: Sequence[Cell]) -> str:
    """Return the pairs of family and noise in which more than half of the fits mislead."""
    pairs: dict[tuple[str, str], list[Cell]] = {}
    for cell in cells:
        pairs.setdefault((cell.family, cell.noise), []).append(cell)
    bad = [
        max((cell for cell in group if cell.sure_and_wrong), key=_distance)
        for group in pairs.values()
        if summarise(group)["sure and wrong"] > 0.5
    ]
    if not bad:
        return "## The worst cells\n\nNo pair of family and noise misleads in most of its fits."
    rows = [["family", "noise", "true rates", "said", "true share", "range said"]]
    rows += [_in_words(cell) for cell in sorted(bad, key=_distance, reverse=True)[:MOST_SHOWN]]
    return (
        f"## The worst cells\n\nIn {len(bad)} of {len(pairs)} pairs of family and noise most fits "
        f"are sure and wrong. Those farthest off, at most {MOST_SHOWN}, with the worst fit of each:"
        "\n\n" + in_markdown(rows)
    )


def _distance(cell: Cell) -> float:
    """Return how far a fit is off: an error is farther than any."""
    return 1.0 if cell.error else max(cell.outside)


def _in_words(cell: Cell) -> list[str]:
    has_range = not isnan(cell.low_share)
    return [
        cell.family,
        cell.noise,
        f"{cell.true_positive:.2f}, {cell.true_negative:.2f}",
        "an error" if cell.error else f"{cell.positive:.2f}, {cell.negative:.2f}",
        f"{cell.true_share:.2f}",
        f"{cell.low_share:.2f} to {cell.high_share:.2f}" if has_range else "-",
    ]


def write_page(cells: Sequence[Cell]) -> None:
    """Write the page and the cells that it was made from.

    Parameters
    ----------
    cells : sequence of Cell
        What was measured.
    """
    save(cells, CELLS)
    PAGE.write_text(page(cells), encoding="utf-8")
