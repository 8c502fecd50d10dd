"""How often unflip is sure and wrong with more than two classes, in worlds it was not made for.

`python -m benchmarks.multiclass_worlds [--classes 3 5 10 26] [--rows 1000] [--seeds 1] [--jobs 1]`:
`ImportanceReweightingClassifier().fit(X, y)` in every cell, as `benchmarks.worlds` does it for two
classes; `--csv` keeps the cells, `--markdown` the tables.

Sure and wrong is a fit that ends in an error; or whose range does not hold the true share of wrong
labels; or, where labels are flipped at random, one without a warning in which more than 5 % of the
classes' flip rates, or the share of wrong labels, are off by more than 0.05 and outside their
intervals by more than 0.02.
"""

import argparse
import csv
import sys
import time
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from math import nan
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed

from benchmarks.multiclass_families import AT_RANDOM, FAMILIES, NOISES, MulticlassWorld
from benchmarks.worlds import FAR_OFF, FAR_OUTSIDE, grouped, in_columns, in_markdown
from unflip import ImportanceReweightingClassifier, LabelNoiseWarning

ALLOWED = 0.05
"""Share of the flip rates that may be outside of intervals of 95 %."""


@dataclass(frozen=True)
class Cell:
    """What one fit said, and what is true. NaN: not to be had after an error."""

    family: str
    noise: str
    classes: int
    rows: int
    seed: int
    true_share: float
    share: float = nan
    low_at_random: float = nan
    high_at_random: float = nan
    low_share: float = nan
    high_share: float = nan
    matrix_error: float = nan
    wrong_rates: float = nan
    held_rates: float = nan
    width: float = nan
    warned: bool = False
    seconds: float = nan
    said: str = ""
    error: str = ""

    @property
    def wrong_error_rate(self) -> bool:
        """Whether the share of wrong labels is far off, and far outside its interval."""
        outside = max(self.low_at_random - self.true_share, self.true_share - self.high_at_random)
        return abs(self.share - self.true_share) > FAR_OFF and outside > FAR_OUTSIDE

    @property
    def range_missed(self) -> bool:
        """Whether the range that was said does not hold the true share of wrong labels."""
        return self.true_share < self.low_share or self.true_share > self.high_share

    @property
    def wrong(self) -> bool:
        """Whether too many flip rates, or the share of wrong labels, are wrong."""
        return self.wrong_rates > ALLOWED or self.wrong_error_rate

    @property
    def sure_and_wrong(self) -> bool:
        """Whether the result misleads, given what it assumes and warns of."""
        unwarned = self.noise in AT_RANDOM and self.wrong and not self.warned
        return bool(self.error) or unwarned or self.range_missed


def measure(world: MulticlassWorld) -> Cell:
    """Fit the classifier to one world."""
    X, y, given, T = world.draw()
    known = asdict(world) | {"true_share": float(np.mean(y != given))}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        start = time.process_time()
        try:
            fitted = ImportanceReweightingClassifier().fit(X, given)
        except Exception as error:  # noqa: BLE001  a crash of any kind is what is looked for
            return Cell(**known, error=f"{type(error).__name__}: {error}")
        seconds = time.process_time() - start
    doubts = [str(w.message) for w in caught if issubclass(w.category, LabelNoiseWarning)]
    interval = fitted.noise_.transition_interval
    assert interval is not None
    assert interval.label_error_rate is not None
    matrix, flips = fitted.transition_matrix_, 1 - np.diag(T)
    low, high = interval.flip_rates.T
    outside = np.maximum(np.maximum(low - flips, flips - high), 0.0)
    off = np.abs(1 - np.diag(matrix) - flips)
    true = np.linalg.lstsq(matrix.T, np.bincount(given, minlength=len(T)) / given.size)[0]
    return Cell(
        **known,
        share=float(1 - np.diag(matrix) @ np.clip(true, 0, 1) / np.clip(true, 0, 1).sum()),
        low_at_random=interval.label_error_rate[0],
        high_at_random=interval.label_error_rate[1],
        low_share=fitted.label_error_range_[0],
        high_share=fitted.label_error_range_[1],
        matrix_error=float(0.5 * np.abs(matrix - T).sum(axis=1).mean()),
        wrong_rates=float(np.mean((off > FAR_OFF) & (outside > FAR_OUTSIDE))),
        held_rates=float(np.mean(outside == 0)),
        width=float(np.mean(high - low)),
        warned=bool(doubts),
        seconds=seconds,
        said=" ".join(doubts),
    )


COLUMNS = (
    "cells",
    "sure and wrong",
    "rates wrong",
    "interval holds",
    "width",
    "T error",
    "range holds",
    "range's upper end",
    "true share",
    "warned",
    "needlessly",
    "seconds",
)


def summarise(cells: Sequence[Cell]) -> list[str]:
    """Return the figures of one row of a table."""
    fitted = [cell for cell in cells if not cell.error]

    def mean(name: str) -> float:
        return float(np.mean([getattr(cell, name) for cell in fitted])) if fitted else nan

    needless = [cell.warned and not cell.wrong for cell in fitted]
    return [
        str(len(cells)),
        f"{np.mean([cell.sure_and_wrong for cell in cells]):.0%}",
        f"{mean('wrong'):.0%}",
        f"{mean('held_rates'):.0%}",
        f"{mean('width'):.3f}",
        f"{mean('matrix_error'):.3f}",
        f"{1 - mean('range_missed'):.0%}",
        f"{mean('high_share'):.3f}",
        f"{np.mean([cell.true_share for cell in cells]):.3f}",
        f"{mean('warned'):.0%}",
        f"{np.mean(needless):.0%}" if fitted else "-",
        f"{mean('seconds'):.1f}",
    ]


def tables(cells: Sequence[Cell]) -> list[list[list[str]]]:
    """Return tables of all cells, and by number of classes, family and noise."""
    groups = {"worlds": {"all": list(cells)}} | {
        key: grouped(cells, key) for key in ("classes", "family", "noise")
    }
    return [
        [[title, *COLUMNS], *([name, *summarise(some)] for name, some in group.items())]
        for title, group in groups.items()
    ]


def save(cells: Sequence[Cell], path: Path) -> None:
    """Write the cells as csv."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        names = [field.name for field in fields(Cell)]
        writer.writerow([*names, "sure_and_wrong"])
        for cell in cells:
            values = [*(getattr(cell, name) for name in names), cell.sure_and_wrong]
            writer.writerow(f"{v:.5g}" if isinstance(v, float) else v for v in values)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--classes", type=int, nargs="+", default=[3, 5, 10, 26])
    parser.add_argument("--rows", type=int, nargs="+", default=[1000])
    parser.add_argument("--families", nargs="+", default=list(FAMILIES), choices=list(FAMILIES))
    parser.add_argument("--noises", nargs="+", default=list(NOISES), choices=list(NOISES))
    parser.add_argument("--seeds", type=int, default=1, help="draws of every cell")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--csv", type=Path, help="keep the cells here")
    parser.add_argument("--markdown", type=Path, help="write the tables here")
    options = parser.parse_args(arguments)
    worlds = [
        MulticlassWorld(family, noise, classes, rows, seed)
        for classes in options.classes
        for rows in options.rows
        for family in options.families
        for noise in options.noises
        for seed in range(options.first, options.first + options.seeds)
    ]
    cells: list[Cell] = []
    for cell in Parallel(options.jobs, return_as="generator")(delayed(measure)(w) for w in worlds):
        cells.append(cell)
        print(
            f"{len(cells)}/{len(worlds)} {cell.classes} classes, {cell.family}, {cell.noise}:"
            f" wrong {cell.true_share:.2f} said {cell.share:.2f}"
            f" ({cell.low_at_random:.2f} to {cell.high_at_random:.2f}), T {cell.matrix_error:.3f}"
            f"{' warned' * cell.warned}{'  SURE AND WRONG' * cell.sure_and_wrong}",
            file=sys.stderr,
        )
        if options.csv:
            save(cells, options.csv)
    found = tables(cells)
    print("\n\n".join(in_columns(rows) for rows in found))
    if options.markdown:
        text = "\n\n".join(in_markdown(rows) for rows in found)
        options.markdown.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
