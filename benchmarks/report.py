"""Results as a text table, a CSV file and a chart."""

from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from math import isfinite
from pathlib import Path

from benchmarks.cases import HEAVY_PEERS, OURS, PEERS
from benchmarks.figures import write_figures
from benchmarks.harness import Result

COLUMNS = ("case", "n", "d", "threads", "who", "seconds", "ratio to ours", "added MiB", "note")
PACKAGES = ("numpy", "scipy", "scikit-learn", *PEERS, *HEAVY_PEERS, "numba")
# Okabe and Ito's palette for the colour-blind, grey for its pale yellow, and markers besides
COLOURS = ["#0072B2", "#56B4E9", "#D55E00", "#CC79A7", "#000000", "#E69F00", "#009E73", "#888888"]
COLOURS += COLOURS[:4]
MARKERS = "ovsDx^P*v^os"
PANELS = 5
"""Side by side in the chart."""


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
    ours = {(r.case, r.n, r.d, r.threads): r.seconds for r in results if r.who == OURS}
    return [
        [
            r.case,
            str(r.n),
            str(r.d),
            str(r.threads),
            r.who,
            _number(r.seconds, 4) if r.limit is None else f"> {r.limit:g}",
            _number(r.seconds / ours[r.case, r.n, r.d, r.threads], 2),
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
    right = (1, 2, 3, 5, 6, 7)
    return "\n".join(
        "  ".join(
            cell.rjust(width) if k in right else cell.ljust(width)
            for k, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def write_csv(cells: Sequence[Sequence[str]], path: Path) -> None:
    """Write the table's cells."""
    write_figures(path, COLUMNS, cells)


def draw(results: Sequence[Result], path: Path) -> None:
    """Draw seconds against rows on log scales, one panel a case and dimension; needs matplotlib."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.lines import Line2D

    least = min(r.threads for r in results)
    timed = [r for r in results if isfinite(r.seconds) and r.threads == least]
    panels = list(dict.fromkeys((r.case, r.d) for r in timed))
    styles = dict(
        zip(dict.fromkeys(r.who for r in timed), zip(COLOURS, MARKERS, strict=True), strict=False)
    )
    n_rows = -(-len(panels) // PANELS)
    figure = plt.figure(figsize=(3 * PANELS, 1 + 2.8 * n_rows), layout="constrained")
    axes = figure.subplots(n_rows, PANELS, sharex=True, sharey=True, squeeze=False).ravel()
    for axis in axes[len(panels) :]:
        axis.set_axis_off()
    for axis, panel in zip(axes, panels, strict=False):
        for who, (colour, marker) in styles.items():
            line = [(r.n, r.seconds) for r in timed if (r.case, r.d, r.who) == (*panel, who)]
            if line:
                axis.plot(*zip(*line, strict=True), color=colour, marker=marker)
        axis.set_title(f"{panel[0]}, d = {panel[1]}", fontsize="small")
        axis.set(xscale="log", yscale="log")
        axis.grid(alpha=0.3)
    handles = [Line2D([], [], color=c, marker=m, label=who) for who, (c, m) in styles.items()]
    figure.legend(handles=handles, loc="outside upper center", ncols=5, frameon=False)
    figure.supxlabel("rows")
    figure.supylabel(f"seconds (median, {least} thread(s))")
    figure.savefig(path, dpi=150)
    plt.close(figure)
