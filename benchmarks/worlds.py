"""How often unflip is sure and wrong in simulated scenarios, and what its warnings are worth.

`python -m benchmarks.worlds [--rows 3000] [--families linear waves] [--noises none "(.3, .1)"]
[--seeds 1] [--jobs 1]`: `ImportanceReweightingClassifier().fit(X, y)` in every scenario. It prints
how well warnings and ranges are calibrated, on the families that thresholds were chosen on and on
those that nothing was chosen on, then one line per family and one per noise; `--csv` keeps the
cells, `--markdown` the tables. `--full` adds other sizes, shares of the classes and columns that
say nothing. `--page` writes the page of the documentation, of this run or of cells that were kept
(`--read`).

Sure and wrong is a fit that ends in an error; or whose range does not hold the true share of wrong
labels, however the errors come about; or, where labels are flipped at random as the estimate
assumes, in which a rate is off by more than 0.05 and outside its interval by more than 0.02, and no
warning was given.
"""

import argparse
import csv
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from math import nan
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

import numpy as np
from joblib import Parallel, delayed

from benchmarks.figures import stamp
from benchmarks.world_families import CHOSEN_ON, FAMILIES, NOISES, UNKNOWABLE, World
from unflip import ImportanceReweightingClassifier, LabelNoiseWarning

AnyCell = TypeVar("AnyCell")

FAR_OFF, FAR_OUTSIDE = 0.05, 0.02
"""How far a rate must be off, and outside its interval, to be wrong."""

SIDES: tuple[dict[str, Any], ...] = (
    {"rows": 300},
    {"rows": 1000},
    {"rows": 20_000},
    {"positives": 0.1},
    {"positives": 0.02, "rows": 10_000},
    {"columns": 30},
)
SIDE_FAMILIES = (
    "linear",
    "clusters",
    "waves",
    "product of two",
    "tree",
    "overlap 12",
    "categories",
)
SIDE_NOISES = ("none", "(.3, .1)", "(0, .2)", "near the border", "in one slice")
RULE = "threshold of a column"
"""The noise in which a rule should be named."""
EASY = ("linear", "steep linear", "bumps", "clusters")
"""Families that the method's own models can follow."""


@dataclass(frozen=True)
class Cell:
    """What one fit said, and what is true. NaN: not said, or not to be had after an error."""

    family: str
    noise: str
    rows: int
    seed: int
    positives: float
    columns: int
    true_positive: float
    true_negative: float
    true_share: float
    positive: float = nan
    negative: float = nan
    low_positive: float = nan
    high_positive: float = nan
    low_negative: float = nan
    high_negative: float = nan
    low_share: float = nan
    high_share: float = nan
    warned: bool = False
    seconds: float = nan
    said: str = ""
    error: str = ""

    @property
    def variant(self) -> str:
        """The size and shape of the table."""
        share = "" if np.isnan(self.positives) else f", {self.positives:.0%} positive"
        columns = f", {self.columns} more columns" if self.columns else ""
        return f"{self.rows} rows{share}{columns}"

    @property
    def errors(self) -> tuple[float, float]:
        """How far either rate is off."""
        return abs(self.positive - self.true_positive), abs(self.negative - self.true_negative)

    @property
    def outside(self) -> tuple[float, float]:
        """How far either true rate is outside its interval."""
        return (
            _outside(self.true_positive, self.low_positive, self.high_positive),
            _outside(self.true_negative, self.low_negative, self.high_negative),
        )

    @property
    def wrong_rate(self) -> bool:
        """Whether a rate is far off and far outside its interval."""
        return any(
            error > FAR_OFF and outside > FAR_OUTSIDE
            for error, outside in zip(self.errors, self.outside, strict=True)
        )

    @property
    def range_missed(self) -> bool:
        """Whether a range was said and does not hold the true share of wrong labels."""
        return self.true_share < self.low_share or self.true_share > self.high_share

    @property
    def sure_and_wrong(self) -> bool:
        """Whether the result misleads, given what it assumes and warns of."""
        unwarned = self.at_random and self.wrong_rate and not self.warned
        return bool(self.error) or unwarned or self.range_missed

    @property
    def at_random(self) -> bool:
        """Whether labels are right or flipped at random, as every estimate assumes."""
        return NOISES[self.noise].rates is not None

    @property
    def off(self) -> bool:
        """Whether a rate is off by more than 0.05."""
        return bool(self.error) or max(self.errors) > FAR_OFF

    @property
    def needless_warning(self) -> bool:
        """Whether a warning was given though both rates are right."""
        return self.warned and not self.off


def _outside(value: float, low: float, high: float) -> float:
    return max(low - value, value - high, 0.0)


def measure(world: World) -> Cell:
    """Fit the classifier to one world."""
    X, y, given = world.draw()
    wrong = y != given
    rates = NOISES[world.noise].rates or (float(wrong[y].mean()), float(wrong[~y].mean()))
    known: dict[str, Any] = asdict(world) | {
        "positives": nan if world.positives is None else world.positives,
        "true_positive": rates[0],
        "true_negative": rates[1],
        "true_share": float(wrong.mean()),
    }
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        start = time.process_time()
        try:
            fitted = ImportanceReweightingClassifier().fit(X, given)
        except Exception as error:  # noqa: BLE001  a crash of any kind is what is looked for
            return Cell(**known, error=f"{type(error).__name__}: {error}")
        seconds = time.process_time() - start
    codes = [one.code for one in fitted.noise_.findings if one.severity == "warning"]
    return Cell(
        **known,
        **_said(fitted),
        warned=any(issubclass(w.category, LabelNoiseWarning) for w in caught),
        seconds=seconds,
        said=" ".join(codes),
    )


def _said(fitted: Any) -> dict[str, Any]:
    positive, negative = fitted.noise_rates_.both()
    # rates without an interval are said to be exact
    interval = getattr(fitted.rate_estimator_, "interval_", fitted.noise_rates_)
    bounds = [pair if isinstance(pair, tuple) else (pair, pair) for pair in interval.both()]
    low, high = getattr(fitted, "label_error_range_", None) or (nan, nan)
    return {
        "positive": positive,
        "negative": negative,
        "low_positive": bounds[0][0],
        "high_positive": bounds[0][1],
        "low_negative": bounds[1][0],
        "high_negative": bounds[1][1],
        "low_share": low,
        "high_share": high,
    }


COLUMNS = (
    "cells",
    "sure and wrong",
    "errors raised",
    "interval holds",
    "width",
    "error",
    "range holds",
    "range's upper end",
    "true share",
    "warned",
    "needlessly",
)


def summarise(cells: Sequence[Cell]) -> dict[str, float]:
    """Return the figures of one row of a table, keyed by `COLUMNS`."""
    fitted = [cell for cell in cells if not cell.error]
    ranged = [cell for cell in fitted if not np.isnan(cell.low_share)]
    widths = [
        width
        for cell in fitted
        for width in (
            cell.high_positive - cell.low_positive,
            cell.high_negative - cell.low_negative,
        )
    ]
    return {
        "cells": len(cells),
        "sure and wrong": _mean(cell.sure_and_wrong for cell in cells),
        "errors raised": _mean(bool(cell.error) for cell in cells),
        "interval holds": _mean(out == 0 for cell in fitted for out in cell.outside),
        "width": _mean(widths),
        "error": _mean(error for cell in fitted for error in cell.errors),
        "range holds": _mean(not cell.range_missed for cell in ranged),
        "range's upper end": _mean(cell.high_share for cell in ranged),
        "true share": _mean(cell.true_share for cell in cells),
        "warned": _mean(cell.warned for cell in fitted),
        "needlessly": _mean(cell.needless_warning for cell in fitted),
    }


CALIBRATION = (
    "cells",
    "needless, random flips",
    "needless, clean",
    "sure and wrong",
    "off, warned",
    "off, not warned",
    "ratio",
    "rules named",
    "range holds",
    "range width",
)


def calibration(cells: Sequence[Cell]) -> dict[str, float]:
    """Return what warnings and ranges are worth, keyed by `CALIBRATION`.

    Rates are off, and warnings needless, where labels are clean or flipped at random; ranges hold
    where errors depend on the sample.
    """
    at_random = [cell for cell in cells if cell.at_random]
    clean = [cell for cell in at_random if cell.noise == "none"]
    flipped = [cell for cell in at_random if cell.noise != "none"]
    dependent = [cell for cell in cells if not cell.at_random and not cell.error]
    warned = _mean(cell.off for cell in at_random if cell.warned)
    silent = _mean(cell.off for cell in at_random if not cell.warned)
    rules = [cell for cell in dependent if cell.noise == RULE]
    return {
        "cells": len(cells),
        "needless, random flips": _mean(cell.needless_warning for cell in flipped),
        "needless, clean": _mean(cell.needless_warning for cell in clean),
        "sure and wrong": _mean(cell.sure_and_wrong for cell in cells),
        "off, warned": warned,
        "off, not warned": silent,
        "ratio": warned / silent if silent else nan,
        "rules named": _mean(bool({"rule", "leak"} & set(cell.said.split())) for cell in rules),
        "range holds": _mean(not cell.range_missed for cell in dependent),
        "range width": _mean(cell.high_share - cell.low_share for cell in cells if not cell.error),
    }


def _calibration_table(cells: Sequence[Cell]) -> list[list[str]]:
    """Return the rows of the table on calibration, one for each half of the families."""
    halves = {
        "held-out families": [c for c in cells if c.family not in CHOSEN_ON],
        "families used to choose thresholds": [c for c in cells if c.family in CHOSEN_ON],
    }
    rows = [["", *CALIBRATION]]
    for name, half in halves.items():
        if half:
            figures = calibration(half)
            rows.append([name, *(_text(column, figures[column]) for column in CALIBRATION)])
    return rows


def _mean(values: Iterable[float]) -> float:
    numbers = list(values)
    return float(np.mean(numbers)) if numbers else nan


def table(groups: dict[str, list[Cell]], title: str) -> list[list[str]]:
    """Return the rows of a table, its head first; figures that no cell has are left out."""
    figures = {name: summarise(cells) for name, cells in groups.items()}
    figures = {name: row for name, row in figures.items() if row["cells"]}
    shown = [c for c in COLUMNS if not all(np.isnan(row[c]) for row in figures.values())]
    return [
        [title, *shown],
        *([name, *(_text(c, row[c]) for c in shown)] for name, row in figures.items()),
    ]


def _text(column: str, value: float) -> str:
    if np.isnan(value):
        return "-"
    if column == "cells":
        return str(int(value))
    if column in ("width", "error", "range's upper end", "true share", "range width"):
        return f"{value:.3f}"
    if column == "ratio":
        return f"{value:.1f}"
    return f"{value:.0%}"


def grouped(cells: Iterable[AnyCell], key: str) -> dict[str, list[AnyCell]]:
    """Return the cells by one of their fields, in the order of their first."""
    groups: dict[str, list[AnyCell]] = {}
    for cell in cells:
        groups.setdefault(str(getattr(cell, key)), []).append(cell)
    return groups


def in_columns(rows: list[list[str]]) -> str:
    """Return a table for the terminal."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        f"{row[0]:{widths[0]}}  "
        + "  ".join(f"{text:>{width}}" for text, width in zip(row[1:], widths[1:], strict=True))
        for row in rows
    )


def in_markdown(rows: list[list[str]]) -> str:
    """Return a table for the documentation."""
    head, *body = [
        "| " + " | ".join(text.replace("|", "\\|") for text in row) + " |" for row in rows
    ]
    return "\n".join([head, "|---" + "|---:" * (len(rows[0]) - 1) + "|", *body])


def save(cells: Iterable[Cell], path: Path) -> None:
    """Write the cells as csv."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        names = [field.name for field in fields(Cell)]
        writer.writerow(names)
        for cell in cells:
            values = (getattr(cell, name) for name in names)
            writer.writerow(f"{v:.5g}" if isinstance(v, float) else v for v in values)


def load(path: Path) -> list[Cell]:
    """Read the cells that `save` wrote."""
    read: dict[str, Any] = get_type_hints(Cell) | {"warned": "True".__eq__}
    with path.open(newline="", encoding="utf-8") as file:
        return [
            Cell(**{name: read[name](text) for name, text in line.items()})
            for line in csv.DictReader(file)
        ]


def plan(options: argparse.Namespace) -> list[World]:
    """Return the worlds to measure."""
    main = [
        World(family, noise, rows, seed, options.positives, options.columns)
        for rows in options.rows
        for family in options.families
        for noise in options.noises
        for seed in range(options.seeds)
    ]
    sides = [
        World(family, noise, seed=seed, **side)
        for side in SIDES
        for family in SIDE_FAMILIES
        for noise in SIDE_NOISES
        for seed in range(options.seeds)
    ]
    return main + sides if options.full else main


def run(worlds: Sequence[World], jobs: int, csv_file: Path | None = None) -> list[Cell]:
    """Measure the worlds, keep the cells as they come and say how far it is."""
    cells: list[Cell] = []
    for cell in Parallel(jobs, return_as="generator")(delayed(measure)(w) for w in worlds):
        cells.append(cell)
        mark = "  SURE AND WRONG" if cell.sure_and_wrong else ""
        print(
            f"{len(cells)}/{len(worlds)} {cell.family}, {cell.noise}, {cell.rows} rows:"
            f" true {cell.true_positive:.2f} {cell.true_negative:.2f}"
            f" said {cell.positive:.2f} {cell.negative:.2f}{' warned' * cell.warned}{mark}",
            file=sys.stderr,
        )
        if csv_file and (len(cells) % 20 == 0 or len(cells) == len(worlds)):
            save(cells, csv_file)
    return cells


def tables(cells: Sequence[Cell]) -> dict[str, list[list[str]]]:
    """Return all tables: of all cells, of the families, of the noises and of what else varies."""
    known = [cell for cell in cells if cell.family not in UNKNOWABLE]
    # families and noises are compared on tables of one size and shape
    sizes = Counter(cell.variant for cell in cells)
    usual = [cell for cell in cells if sizes[cell.variant] == max(sizes.values())]
    alike = [c for c in known if c.family in SIDE_FAMILIES and c.noise in SIDE_NOISES]
    groups = {
        "scenarios": {"all": known} | {"random flips, " + "/".join(EASY): easy(known)},
        "family": grouped(usual, "family"),
        "noise": grouped([cell for cell in usual if cell.family not in UNKNOWABLE], "noise"),
        "table": grouped(alike, "variant"),
    }
    if len(groups["table"]) < 2:
        del groups["table"]
    found = {"calibration": _calibration_table(known)}
    return found | {
        title: table(group, title) for title, group in groups.items() if any(group.values())
    }


def easy(cells: Iterable[Cell]) -> list[Cell]:
    """Return the cells in which the method's assumptions hold and its models fit."""
    return [cell for cell in cells if cell.family in EASY and NOISES[cell.noise].rates]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[3000])
    parser.add_argument("--families", nargs="+", default=list(FAMILIES), choices=list(FAMILIES))
    parser.add_argument("--noises", nargs="+", default=list(NOISES), choices=list(NOISES))
    parser.add_argument("--seeds", type=int, default=1, help="draws of every cell")
    parser.add_argument("--positives", type=float, help="share of true positives")
    parser.add_argument("--columns", type=int, default=0, help="columns added that say nothing")
    parser.add_argument("--full", action="store_true", help="other sizes, shares and columns too")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--csv", type=Path, help="keep the cells here")
    parser.add_argument("--markdown", type=Path, help="write the tables here")
    parser.add_argument("--read", type=Path, help="cells that were kept, instead of a run")
    parser.add_argument("--page", action="store_true", help="write the page of the documentation")
    options = parser.parse_args(arguments)
    cells = load(options.read) if options.read else run(plan(options), options.jobs, options.csv)
    found = tables(cells)
    print("\n\n".join(in_columns(rows) for rows in found.values()))
    if options.markdown:
        text = "\n\n".join(in_markdown(rows) for rows in found.values())
        options.markdown.write_text(text + "\n", encoding="utf-8")
    if options.page:
        from benchmarks.worlds_page import CELLS, write_page

        write_page(cells)
        if not options.read:
            stamp(CELLS)


if __name__ == "__main__":
    main()
