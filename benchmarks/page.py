"""The page "Benchmarks", from the files that the benchmarks have written.

`python -m benchmarks.page` (`make bench-page`) reads `docs/benchmarks/*.csv`, draws a picture of
each, and writes `docs/benchmarks.md`. A benchmark that was not run is left out.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.figures import read_figures, read_stamp

DOCS = Path(__file__).parents[1] / "docs"
PAGE, FOLDER = DOCS / "benchmarks.md", DOCS / "benchmarks"
Series = dict[str, dict[str, float]]
# Okabe and Ito's palette for the colour-blind, and markers besides
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#888888")
MARKERS = "os^Dvx*"

OPENING = """\
# Benchmarks

<!-- Written by `python -m benchmarks.page`; not to be edited. -->

Speed and accuracy of unflip and of packages for the same task. Every figure is read from a file
that a command in `benchmarks/` has written. The command, the machine and the versions are listed
below each table. [How does unflip compare with cleanlab?](user_guide/comparison.md) discusses the
results.

```{toctree}
:hidden:

Simulated scenarios <benchmarks/trust>
Checked samples <benchmarks/checked>
Dask cluster <benchmarks/dask>
```
"""


@dataclass(frozen=True)
class Section:
    """A benchmark on the page.

    Parameters
    ----------
    title : str
        The heading.
    file : Path
        What the command has written.
    words : str
        What was measured.
    series : callable
        From the rows of the file to what is drawn: name -> category -> value.
    axis : str
        What the values are.
    logarithmic : bool
        Whether they are drawn on a log scale.
    table : bool
        Whether the file is shown as a table too.
    """

    title: str
    file: Path
    words: str
    series: Callable[[list[dict[str, str]]], Series]
    axis: str
    logarithmic: bool = False
    table: bool = True

    @property
    def picture(self) -> Path:
        """The file of the picture."""
        return FOLDER / f"{self.file.stem}.svg"


def speed(rows: list[dict[str, str]]) -> Series:
    """Return seconds by case and shape; lines without a number were stopped."""
    found: Series = {}
    least = min((int(row["threads"]) for row in rows), default=1)
    for row in rows:
        if int(row["threads"]) == least and row["seconds"].replace(".", "").isdigit():
            case = f"{row['case']}, {int(row['n']):,} x {row['d']}"
            found.setdefault(row["who"], {})[case] = float(row["seconds"])
    return found


def rates(rows: list[dict[str, str]]) -> Series:
    """Return the accuracy by method, with noise and without."""
    columns = {"noisy labels": "accuracy", "clean labels": "accuracy if clean"}
    return {
        name: {row["method"]: float(row[column]) for row in rows}
        for name, column in columns.items()
    }


def audit(rows: list[dict[str, str]]) -> Series:
    """Return the average precision by table."""
    names = ("unflip", "rates known", "cleanlab")
    return {name: {row["table"]: float(row[name]) for row in rows} for name in names}


def worlds(rows: list[dict[str, str]]) -> Series:
    """Return the share of worlds by family in which a fit was sure and wrong, or warned."""
    from benchmarks.world_families import UNKNOWABLE
    from benchmarks.worlds import load, summarise

    cells = [cell for cell in load(FOLDER / "trust.csv") if cell.family not in UNKNOWABLE]
    families = dict.fromkeys(cell.family for cell in cells)
    figures = {
        name: summarise([cell for cell in cells if cell.family == name]) for name in families
    }
    return {
        said: {name: 100 * values[said] for name, values in figures.items()}
        for said in ("sure and wrong", "warned")
    }


def real(rows: list[dict[str, str]]) -> Series:
    """Return the average precision by labels and model."""
    names = ("unflip", "self confidence", "normalized margin", "confidence weighted entropy")
    shown = [row for row in rows if row["model"] != "mean"]
    return {
        name: {f"{row['labels']}, {row['model']}": float(row[name].split("/")[1]) for row in shown}
        for name in names
    }


def parts(rows: list[dict[str, str]]) -> Series:
    """Return the accuracy by what is known."""
    return {
        "accuracy": {
            f"{row['P(noisy y | x)']}; rates: {row['rates']}": float(row["accuracy"])
            for row in rows
            if row["rates"] != "-"
        }
    }


SECTIONS = (
    Section(
        "Speed",
        FOLDER / "results.csv",
        "Seconds, median of up to five runs, each in a process of its own with one thread.",
        speed,
        "seconds",
        logarithmic=True,
    ),
    Section(
        "Noise rates, and training with them",
        FOLDER / "rates.csv",
        "Six tables with five pairs of rates each: the mean absolute error of the estimated rates, "
        "and the accuracy of logistic regression on clean test labels, in per cent.",
        rates,
        "accuracy, %",
    ),
    Section(
        "Which labels are wrong",
        FOLDER / "audit.csv",
        "Labels of six tables, flipped at the rates (0.3, 0.1): the average precision with which "
        "the flipped samples are ranked first, and the calibration error of P(mislabelled).",
        audit,
        "average precision",
    ),
    Section(
        "Label errors of people",
        FOLDER / "real_mistakes.csv",
        "Labels that people gave, ranked by networks' held-out probabilities: the area under the "
        "ROC curve / the average precision "
        "([details](user_guide/audit.md#how-does-it-rank-real-errors)).",
        real,
        "average precision",
    ),
    Section(
        "Simulated scenarios",
        FOLDER / "trust.csv",
        "How often a fit is sure and wrong if assumptions are violated, and how often it warns "
        "([all scenarios](benchmarks/trust.md)).",
        worlds,
        "% of the scenarios",
        table=False,
    ),
    Section(
        "Importance reweighting, part by part",
        FOLDER / "figure1_parts.csv",
        "The setting of the paper's figure 1: which part of the method costs accuracy "
        "([details](user_guide/paper.md#which-part-of-the-method-costs-accuracy)).",
        parts,
        "accuracy, %",
    ),
)


def page() -> str:
    """Return the page as Markdown."""
    blocks = [OPENING]
    for section in SECTIONS:
        if not section.file.exists():
            continue
        blocks.append(f"## {section.title}\n\n{section.words}\n")
        blocks.append(f"![{section.title}: {section.axis}](benchmarks/{section.picture.name})\n")
        if section.table:
            file = section.file.relative_to(DOCS).as_posix()
            blocks.append(f"```{{csv-table}}\n:file: {file}\n:header-rows: 1\n```\n")
        blocks.append(f"{read_stamp(section.file)}\n")
    return "\n".join(blocks)


def draw(series: Mapping[str, Mapping[str, float]], axis: str, path: Path, *, log: bool) -> None:
    """Draw one line per category, with a marker for each series."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    names = list(dict.fromkeys(name for values in series.values() for name in values))
    settings: Any = {"svg.hashsalt": "unflip", "svg.fonttype": "none", "font.size": 10}
    with matplotlib.rc_context(settings):
        height = 1.1 + 0.27 * len(names)
        figure, ax = plt.subplots(figsize=(8, height), layout="constrained")
        for k, (label, values) in enumerate(series.items()):
            places = [names.index(name) for name in values]
            ax.plot(
                list(values.values()),
                places,
                MARKERS[k % len(MARKERS)],
                color=COLOURS[k % len(COLOURS)],
                fillstyle="full" if k < len(COLOURS) else "none",  # a second round is hollow
                label=label,
                alpha=0.85,
            )
        ax.set_yticks(range(len(names)), names)
        ax.invert_yaxis()
        ax.set_xlabel(axis)
        if log:
            ax.set_xscale("log")
        ax.grid(alpha=0.3)
        ax.spines[["top", "right"]].set_visible(False)
        if len(series) > 1:
            figure.legend(loc="outside upper center", ncols=4, frameon=False)
        figure.savefig(path, metadata={"Date": None})
        plt.close(figure)


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for section in SECTIONS:
        if section.file.exists():
            series = section.series(read_figures(section.file))
            draw(series, section.axis, section.picture, log=section.logarithmic)
    PAGE.write_text(page(), encoding="utf-8")
    print(f"written: {PAGE}")


if __name__ == "__main__":
    main()
