"""Results as files: CSV, JSON, a Markdown page with pictures, and an HTML page."""

import csv
import io
import json
from dataclasses import asdict
from pathlib import Path

from unflip import __version__
from unflip._app.report import pictures_of, to_html, to_markdown
from unflip._utils.files import write_whole
from unflip.paper.experiments._choices import stated_choices
from unflip.paper.experiments._compare import Measurement, Results
from unflip.paper.experiments._document import REPRODUCTION_TITLE, reproduction_page
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
        The results.
    repeats : int
        Number of splits of each data set.
    folder : Path
        The folder.

    Returns
    -------
    list of Path
        The files that were written.
    """
    files = {"results.csv": as_csv(results), "results.json": as_json(results, repeats)}
    blocks = reproduction_page(results, repeats)
    files |= pictures_of(blocks)
    files |= {PAGE: to_markdown(blocks), "index.html": to_html(REPRODUCTION_TITLE, blocks)}
    for name, text in files.items():
        write_whole(folder / name, text)
    return [folder / name for name in files]


def as_csv(results: Results) -> str:
    """Return the results as CSV, one line per measurement."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(CSV_COLUMNS)
    for entry in results.measurements:
        paper = ("", "") if entry.paper is None else (entry.paper.mean, entry.paper.sd)
        fields = asdict(entry)
        writer.writerow(
            [
                *(fields[column] for column in CSV_COLUMNS[:7]),
                f"{entry.mean:.6g}",
                f"{entry.sd:.6g}",
                len(entry.values),
                *paper,
                f"{entry.seconds:.4g}",
            ]
        )
    return text.getvalue()


def as_json(results: Results, repeats: int) -> str:
    """Return the results as JSON: every measurement with its values, and the choices."""
    # not rounded, so that ties remain ties
    measurements = [json.dumps(asdict(entry)) for entry in results.measurements]
    head = json.dumps({"unflip": __version__, "choices": stated_choices(), "repeats": repeats})
    return f'{head[:-1]}, "figures": [\n' + ",\n".join(measurements) + "\n]}\n"


def read_results(path: Path) -> tuple[Results, int]:
    """Return the results of a `results.json`, and the number of splits.

    Returns
    -------
    tuple of Results and int
        The results and the number.
    """
    content = json.loads(path.read_text(encoding="utf-8"))
    measurements = []
    for record in content["figures"]:
        paper = record.pop("paper")
        record["values"] = tuple(record["values"])
        measurements.append(
            Measurement(paper=None if paper is None else Published(**paper), **record)
        )
    return Results(measurements), int(content["repeats"])
