"""`unflip fit`: a model, and where it comes from."""

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
from unflip._app.workflow import Learnt
from unflip._utils.files import check_outputs
from unflip._utils.progress import tick, work
from unflip._utils.typing import Record
from unflip.cli import _options as options
from unflip.cli._estimate import say_briefly, say_checked
from unflip.cli._report import check_report_ending, report_on, write_report
from unflip.cli._session import command_line, session

PICKLES = (".pkl", ".pickle", ".joblib")
"""Endings of files that other programs unpickle."""


def fit(
    table: options.TableFile,
    label: options.Label,
    out: Annotated[Path, typer.Option(help="File of the model.")] = Path("model.unflip"),
    weights: Annotated[
        Path | None, typer.Option(help="Also write the weight of each row, as a table.")
    ] = None,
    report: Annotated[
        Path | None, typer.Option(help="Also write the report: .html, .md or .json.")
    ] = None,
    reviewed: options.Reviewed = None,
    positive: options.Positive = None,
    drop: options.Drop = None,
    identifier: options.Id = None,
    separator: options.Separator = None,
    encoding: options.Encoding = None,
    skip_unlabelled: options.SkipUnlabelled = False,
    merge_labels: options.MergeLabels = False,
    drop_classes: options.DropClasses = None,
    estimator: options.Estimator = "logistic",
    posterior: options.Posterior = "auto",
    rates: options.Rates = None,
    seed: options.Seed = 0,
    force: options.Force = False,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Train a model on noisy labels as if they were clean, and save it."""
    labels = encoding, skip_unlabelled, merge_labels, drop_classes
    source = options.Source(table, label, positive, drop, identifier, separator, *labels)
    method = options.Method(estimator, rates, seed, posterior)
    with session(as_json=as_json, quiet=quiet) as shell:
        _check_outputs(out, weights, report, inputs=(table, reviewed), force=force)
        learn = method.learner(source, shell.step)
        data = source.read()
        if weights is not None and identifier is not None:
            check_writable(data.for_format(weights)[[identifier]], weights)
        checked = None if reviewed is None else read_reviewed(reviewed, data)
        page = None
        with work(1 if report is None else 2):
            learnt = learn(data, reviewed=checked)
            tick()
            if report is not None:
                shell.step("writing the report")
                page = report_on(learnt, data, source, method)
        shell.step("writing")
        provenance = _provenance(learnt, data, method, n_reviewed=len(learnt.reviewed))
        strangers = _save(out, learnt, provenance)
        if weights is not None:
            write_table(_weights_table(learnt, data, identifier, weights), weights)
        if report is not None and page is not None:
            write_report(page, report)
        shell.result({**provenance, "model": str(out), "trust": strangers, "summary": learnt.found})
        say_briefly(shell, learnt.found)
        shell.say(
            "`unflip estimate` says how often each class is mislabelled, and how sure that is."
        )
        say_checked(shell, learnt.found)
        shell.say()
        n_reviewed = len(learnt.reviewed)
        joined = f", {n_reviewed:,} of them reviewed" if n_reviewed else ""
        shell.say(f"Trained ({estimator}) on {data.y.size:,} rows{joined}.")
        shell.written(out, weights, report)


def _check_outputs(
    out: Path,
    weights: Path | None,
    report: Path | None,
    *,
    inputs: tuple[Path | None, ...],
    force: bool,
) -> None:
    """Raise an error, before the long work, if an output cannot be written."""
    if out.suffix.lower() in PICKLES:
        raise ValueError(
            f"--out {out}: a model file of unflip is no pickle, and programs that read pickles "
            f"would fail on it. Name it {out.with_suffix('.unflip')}."
        )
    outputs = {"--out": out, "--weights": weights, "--report": report}
    check_outputs(outputs, inputs, force=force)
    if weights is not None:
        check_ending(weights)
    if report is not None:
        check_report_ending(report)


def _save(out: Path, learnt: Learnt, provenance: Record) -> list[str]:
    """Write the model; warn of, and return, the types that it is not loaded with unless trusted."""
    strangers = save_model(out, learnt.model, provenance)
    if strangers:
        warnings.warn(
            f"`unflip predict` will not load this model unless its types are trusted: "
            f"{trust_options(packages_of(strangers))}",
            stacklevel=1,
        )
    return strangers


def _provenance(
    learnt: Learnt, data: LabelledTable, method: options.Method, *, n_reviewed: int
) -> Record:
    """Return where a model comes from, and which columns it expects."""
    return {
        "label": data.label,
        "classes": data.classes.tolist(),
        "positive": learnt.positive,
        "columns": {name: kind_of(data.features[name]) for name in data.features.columns},
        "set_aside": list(data.set_aside),
        "estimator": method.estimator,
        "noise_rates": rounded(learnt.found["noise_rates"]),
        "transition_matrix": rounded(learnt.found["transition_matrix"]),
        "seed": method.seed,
        "n_rows": data.y.size,
        "n_reviewed": n_reviewed,
        "command": command_line(),
    }


def _weights_table(
    learnt: Learnt, data: LabelledTable, identifier: str | None, path: Path
) -> pl.DataFrame:
    """Return the weight of each row, under its name where it has one."""
    n_rows = data.y.size
    names = {} if identifier is None else {identifier: data.for_format(path)[identifier]}
    is_reviewed = np.isin(np.arange(n_rows), learnt.reviewed.rows)
    return pl.DataFrame(
        {**names, "row": range(n_rows), "weight": learnt.weights, "reviewed": is_reviewed}
    )
