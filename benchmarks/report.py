"""Results as a text table, a CSV file and a chart."""

import csv
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from benchmarks.harness import Result

COLUMNS = ("case", "n", "who", "seconds", "ratio to ours", "added MiB", "note")
OURS = "unflip"
PACKAGES = ("numpy", "scipy", "scikit-learn", "densratio", "numba", "skada", "cleanlab")
# Okabe and Ito's palette, told apart by the colour-blind, and markers besides
STYLES = (("#0072B2", "o"), ("#56B4E9", "v"), ("#D55E00", "s"), ("#CC79A7", "D"), ("#000000", "x"))


def versions() -> str:
    """Name the packages that take part; densratio uses numba where it is installed."""
    found = []
    for package in PACKAGES:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            found.append(f"no {package}")
    return ", ".join(found)


def rows(results: Sequence[Result]) -> list[tuple[str, ...]]:
    """Return the table's cells."""
    ours = {(r.case, r.n): r.seconds for r in results if r.who == OURS}
    table = []
    for r in results:
        base = ours[r.case, r.n]
        table.append(
            (
                r.case,
                str(r.n),
                r.who,
                "-" if r.seconds is None else f"{r.seconds:.4f}",
                "-" if r.seconds is None or base is None else f"{r.seconds / base:.2f}",
                "-" if r.added_mib is None else f"{r.added_mib:.1f}",
                r.note,
            )
        )
    return table


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

    cases = list(dict.fromkeys(r.case for r in results))
    figure, axes = plt.subplots(
        1, len(cases), figsize=(3.6 * len(cases), 4.2), sharey=True, layout="constrained"
    )
    for axis, case in zip(axes, cases, strict=True):
        mine = [r for r in results if r.case == case and r.seconds is not None]
        for who, (colour, marker) in zip(dict.fromkeys(r.who for r in mine), STYLES, strict=False):
            line = [(r.n, r.seconds) for r in mine if r.who == who]
            axis.plot(*zip(*line, strict=True), color=colour, marker=marker, label=who)
        axis.set(title=case, xlabel="rows", xscale="log", yscale="log")
        axis.grid(alpha=0.3)
        axis.legend(fontsize="small", frameon=False)
    axes[0].set_ylabel("seconds (median)")
    figure.savefig(path, dpi=150)
    plt.close(figure)
