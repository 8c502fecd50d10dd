"""`unflip fit`: a trained model and its provenance."""

import warnings
from pathlib import Path
from typing import Annotated

import numpy as np
import polars as pl
import typer

from unflip._app.markup import rounded
from unflip._app.persistence import packages_of, save_model, trust_options
from unflip._app.reviewed import read_reviewed
from unflip._app.table_files import check_ending, check_writable, write_table
from unflip._app.tables import LabelledTable, kind_of
from unflip._app.workflow import Trained
from unflip._utils.files import check_outputs
from unflip._utils.progress import tick, work
from unflip._utils.typing import Record
from unflip.cli import _options as options
from unflip.cli._estimate import say_briefly, say_checked
from unflip.cli._report import check_report_ending, report_on, write_report
from unflip.cli._session import command_line, session

PICKLES = (".pkl", ".pickle", ".joblib")
"""Extensions of files that other programs unpickle."""


def fit(
    source: options.Source,
    method: options.Method,
    out: Annotated[Path, typer.Option(help="File to write the model to.")] = Path("model.unflip"),
    weights: Annotated[
        Path | None, typer.Option(help="Also write a table with the training weight of each row.")
    ] = None,
    report: Annotated[
        Path | None, typer.Option(help="Also write a report, as .html, .md or .json.")
    ] = None,
    reviewed: options.Reviewed = None,
    estimator: options.Estimator = "logistic",
    force: options.Force = False,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Train a model on noisy labels, corrected for the noise, and save it."""
    with session(as_json=as_json, quiet=quiet) as shell:
        outputs = {"--out": out, "--weights": weights, "--report": report}
        check_outputs(outputs, (source.table, reviewed), force=force)
        _check_names(out, weights, report)
        learn = method.learner(source, shell.step, estimator)
        data = source.read()
        if weights is not None and source.identifier is not None:
            check_writable(data.for_format(weights)[[source.identifier]], weights)
        checked = None if reviewed is None else read_reviewed(reviewed, data)
        page = None
        with work(1 if report is None else 2):
            trained = learn(data, reviewed=checked)
            tick()
            if report is not None:
                shell.step("writing the report")
                page = report_on(trained, data, source, method)
        shell.step("writing")
        provenance = _provenance(trained, data, estimator, method.seed)
        untrusted = _save(out, trained, provenance)
        if weights is not None:
            write_table(_weights_table(trained, data, source.identifier, weights), weights)
        if report is not None and page is not None:
            write_report(page, report)
        shell.result(
            {**provenance, "model": str(out), "trust": untrusted, "summary": trained.found}
        )
        say_briefly(shell, trained.found)
        shell.say("`unflip estimate` shows the error rate of each class, with intervals.")
        say_checked(shell, trained.found)
        shell.say()
        n_reviewed = len(trained.reviewed)
        joined = f", {n_reviewed:,} of them reviewed" if n_reviewed else ""
        shell.say(f"Trained ({estimator}) on {data.y.size:,} rows{joined}.")
        shell.written(out, weights, report)


def _check_names(out: Path, weights: Path | None, report: Path | None) -> None:
    """Raise an error, before the long work, if an output has the wrong extension."""
    if out.suffix.lower() in PICKLES:
        raise ValueError(
            f"--out {out}: model files of unflip are not pickles. Name the file "
            f"{out.with_suffix('.unflip')}."
        )
    if weights is not None:
        check_ending(weights)
    if report is not None:
        check_report_ending(report)


def _save(out: Path, trained: Trained, provenance: Record) -> list[str]:
    """Write the model; return, and warn about, the types that must be trusted to load it."""
    untrusted = save_model(out, trained.model, provenance)
    if untrusted:
        warnings.warn(
            f"`unflip predict` loads this model only if you trust its types: "
            f"{trust_options(packages_of(untrusted))}",
            stacklevel=1,
        )
    return untrusted


def _provenance(trained: Trained, data: LabelledTable, estimator: str, seed: int) -> Record:
    """Return where a model comes from, and which columns it expects."""
    return {
        "label": data.label,
        "classes": data.classes.tolist(),
        "positive": trained.positive,
        "columns": {name: kind_of(data.features[name]) for name in data.features.columns},
        "set_aside": list(data.set_aside),
        "estimator": estimator,
        "noise_rates": rounded(trained.found["noise_rates"]),
        "transition_matrix": rounded(trained.found["transition_matrix"]),
        "seed": seed,
        "n_rows": data.y.size,
        "n_reviewed": len(trained.reviewed),
        "command": command_line(),
    }


def _weights_table(
    trained: Trained, data: LabelledTable, identifier: str | None, path: Path
) -> pl.DataFrame:
    """Return the training weight of each row, with its identifier if there is one."""
    n_rows = data.y.size
    names = {} if identifier is None else {identifier: data.for_format(path)[identifier]}
    is_reviewed = np.isin(np.arange(n_rows), trained.reviewed.rows)
    return pl.DataFrame(
        {**names, "row": range(n_rows), "weight": trained.weights, "reviewed": is_reviewed}
    )
