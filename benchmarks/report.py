"""Results as a text table, a CSV file and a chart."""

import csv
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from math import isfinite
from pathlib import Path

from benchmarks.cases import PEERS
from benchmarks.harness import OURS, Result

COLUMNS = ("case", "n", "who", "seconds", "ratio to ours", "added MiB", "note")
PACKAGES = ("numpy", "scipy", "scikit-learn", *PEERS, "numba")
# Okabe and Ito's palette for the colour-blind, grey for its pale yellow, and markers besides
COLOURS = ["#0072B2", "#56B4E9", "#D55E00", "#CC79A7", "#000000", "#E69F00", "#009E73", "#888888"]
MARKERS = "ovsDx^P*"


def versions() -> str:
    """Name the packages that take part; densratio uses numba where it is installed."""
    found = []
    for package in PACKAGES:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            found.append(f"no {package}")
    return ", ".join(found)


def rows(results: Sequence[Result]) -> list[list[str]]:
    """Return the table's cells."""
    ours = {(r.case, r.n): r.seconds for r in results if r.who == OURS}
    return [
        [
            r.case,
            str(r.n),
            r.who,
            _number(r.seconds, 4) if r.limit is None else f"> {r.limit:g}",
            _number(r.seconds / ours[r.case, r.n], 2),
            _number(r.added_mib, 1),
            r.note,
        ]
        for r in results
    ]


def _number(value: float, digits: int) -> str:
    return f"{value:.{digits}f}" if isfinite(value) else "-"


def text_table(cells: Sequence[Sequence[str]]) -> str:
    """Align the columns: numbers to the right, the rest to the left."""
    lines = [COLUMNS, *cells]
    widths = [max(len(line[k]) for line in lines) for k in range(len(COLUMNS))]
    right = (1, 3, 4, 5)
    return "\n".join(
        "  ".join(
            cell.rjust(width) if k in right else cell.ljust(width)
            for k, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def write_csv(cells: Sequence[Sequence[str]], path: Path) -> None:
    """Write the table's cells."""
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([COLUMNS, *cells])


def draw(results: Sequence[Result], path: Path) -> None:
    """Draw seconds against rows on log scales, one panel a case; needs matplotlib."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.lines import Line2D

    timed = [r for r in results if isfinite(r.seconds)]
    cases = list(dict.fromkeys(r.case for r in timed))
    styles = dict(
        zip(dict.fromkeys(r.who for r in timed), zip(COLOURS, MARKERS, strict=True), strict=False)
    )
    figure = plt.figure(figsize=(12, 4.5), layout="constrained")
    axes = figure.subplots(1, max(len(cases), 1), sharex=True, sharey=True, squeeze=False)[0]
    for axis, case in zip(axes, cases, strict=False):
        for who, (colour, marker) in styles.items():
            line = [(r.n, r.seconds) for r in timed if (r.case, r.who) == (case, who)]
            if line:
                axis.plot(*zip(*line, strict=True), color=colour, marker=marker)
        axis.set(title=case, xlabel="rows", xscale="log", yscale="log")
        axis.grid(alpha=0.3)
    handles = [Line2D([], [], color=c, marker=m, label=who) for who, (c, m) in styles.items()]
    figure.legend(handles=handles, loc="outside lower center", ncols=8, frameon=False)
    axes[0].set_ylabel("seconds (median)")
    figure.savefig(path, dpi=150)
    plt.close(figure)
