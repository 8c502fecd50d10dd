"""Results as files: csv, json, a Markdown page with its pictures, and one HTML page."""

import csv
import io
import json
from dataclasses import asdict
from pathlib import Path

from unflip import __version__
from unflip._app.report import Picture, to_html, to_markdown
from unflip._files import write_whole
from unflip.paper.experiments._choices import stated_choices
from unflip.paper.experiments._compare import Figure, Results
from unflip.paper.experiments._document import TITLE, reproduction_page
from unflip.paper.experiments._published import Published

PAGE = "reproduction.md"

CSV_COLUMNS = (
    *("experiment", "learner", "dataset", "rho_pos", "rho_neg", "method", "quantity"),
    *("mean", "sd", "n", "paper_mean", "paper_sd", "seconds"),
)


def save_results(results: Results, repeats: int, folder: Path) -> list[Path]:
    """Write the results into a folder, and return the files.

    Parameters
    ----------
    results : Results
        What to write.
    repeats : int
        Splits of each data set.
    folder : Path
        Where to.
    """
    files = {"results.csv": as_csv(results), "results.json": as_json(results, repeats)}
    blocks = reproduction_page(results, repeats)
    files |= {block.name: block.svg for block in blocks if isinstance(block, Picture)}
    files |= {PAGE: to_markdown(blocks), "index.html": to_html(TITLE, blocks)}
    for name, text in files.items():
        write_whole(folder / name, text)
    return [folder / name for name in files]


def as_csv(results: Results) -> str:
    """Return one line per figure."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(CSV_COLUMNS)
    for figure in results.figures:
        paper = ("", "") if figure.paper is None else (figure.paper.mean, figure.paper.sd)
        writer.writerow(
            [
                figure.experiment,
                figure.learner,
                figure.dataset,
                figure.rho_pos,
                figure.rho_neg,
                figure.method,
                figure.quantity,
                f"{figure.mean:.6g}",
                f"{figure.sd:.6g}",
                len(figure.values),
                *paper,
                f"{figure.seconds:.4g}",
            ]
        )
    return text.getvalue()


def as_json(results: Results, repeats: int) -> str:
    """Return every figure with its values split by split, and the choices."""
    # not rounded: methods that tie must still tie
    figures = [json.dumps(asdict(figure)) for figure in results.figures]
    head = json.dumps({"unflip": __version__, "choices": stated_choices(), "repeats": repeats})
    return f'{head[:-1]}, "figures": [\n' + ",\n".join(figures) + "\n]}\n"


def read_results(path: Path) -> tuple[Results, int]:
    """Return the results of a `results.json`, and the splits of each data set."""
    content = json.loads(path.read_text(encoding="utf-8"))
    figures = []
    for record in content["figures"]:
        paper = record.pop("paper")
        record["values"] = tuple(record["values"])
        figures.append(Figure(paper=None if paper is None else Published(**paper), **record))
    return Results(figures), int(content["repeats"])
