"""The page "Simulated scenarios", written from the cells of `benchmarks.worlds`."""

from collections.abc import Sequence
from math import isnan
from pathlib import Path

from benchmarks.world_families import HELD_OUT, UNKNOWABLE
from benchmarks.worlds import Cell, in_markdown, save, summarise, tables

DOCS = Path(__file__).parents[1] / "docs"
PAGE, CELLS = DOCS / "benchmarks" / "trust.md", DOCS / "benchmarks" / "trust.csv"

OPENING = """\
# Simulated scenarios

<!-- Written by `python -m benchmarks.worlds --page` from trust.csv; not to be edited. -->

This page measures how often an estimate is wrong without a warning.
`ImportanceReweightingClassifier()` with its defaults was fitted to {n_cells} simulated scenarios:
{n_families} families of clean labels with {n_noises} kinds of noise, many of which violate an
assumption. [Can I trust the estimate?](../user_guide/trust.md) explains warnings and ranges.

The thresholds of warnings and ranges were chosen on one part of the families. The other part was
written afterwards, and no number was fitted to it: {held_out}. The mean width of its range was
known when two factors of the range were lowered; the first part decided on them.

A fit is **sure and wrong** if it ends in an error; or if its range (`label_error_range_`) does not
contain the true label error rate, whatever the noise; or if labels are flipped at random, a rate is
off by more than 0.05 and outside its 95 % interval by more than 0.02, and unflip did not warn. This
happened in **{sure_and_wrong:.1%}** of the scenarios.

- *needless, random flips* and *needless, clean*: share of the fits to randomly flipped labels, and
  to clean labels, that warn although both rates are within 0.05 of the truth.
- *off, warned* and *off, not warned*: share of the fits with a rate that is off by more than 0.05,
  among those that warn and among the others, and the *ratio* of the two. Labels are clean or
  flipped at random. If errors depend on the sample, the range accounts for them, not the rates.
- *rules named*: how often a warning names the rule, if the labels are a threshold on one column.
- *range holds*: how often the range contains the true label error rate; in the first table, if
  errors depend on the sample.
- *range width*, *range's upper end*, *true share*: means over the scenarios; the true share is the
  label error rate.
- *interval holds*: how often the 95 % interval contains the true rate, both rates counted. If
  errors depend on the sample, the true rate is the share of the class that is wrong.
- *width*, *error*: of the interval and of the rates, on average.
- *warned*, *needlessly*: share of the fits that warn, and that warn although both rates are within
  0.05 of the truth.
"""

MOST_SHOWN = 25
"""Of the worst cells."""

SECTIONS = {
    "calibration": "## Warnings and ranges",
    "scenarios": "## All scenarios",
    "family": "## By shape of the true classes",
    "noise": "## By kind of noise",
    "table": "## By size and shape of the table",
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
            "## Not identifiable\n\n"
            f"In {', '.join(f'*{name}*' for name in left_out)} the true classes level off at 20 and"
            " 80 %. Correct labels then look like better separated classes with one label in five"
            " flipped, and no method can tell the two apart"
            " ([why](../user_guide/trust.md#when-can-it-not-work)). These scenarios are counted in"
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
        return "## Worst scenarios\n\nNo pair of family and noise misleads in most of its fits."
    rows = [["family", "noise", "true rates", "estimated rates", "true share", "reported range"]]
    rows += [_in_words(cell) for cell in sorted(bad, key=_distance, reverse=True)[:MOST_SHOWN]]
    return (
        f"## Worst scenarios\n\nIn {len(bad)} of {len(pairs)} pairs of family and noise most fits "
        f"are sure and wrong. The table shows the worst fit of at most {MOST_SHOWN} pairs:"
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
