"""`unflip fit`: a model, and where it comes from."""

import warnings
from pathlib import Path

import numpy as np
import polars as pl

from unflip._app.persistence import save_model, trust_options
from unflip._app.tables import check_ending, check_writable, kind_of, write_table
from unflip._app.workflow import read_reviewed
from unflip._files import check_outputs
from unflip.cli._estimate import say_found
from unflip.cli._options import Method, Source
from unflip.cli._report import check_report_ending, report_on, write_report
from unflip.cli._session import command_line, session


def fit(
    source: Source,
    method: Method,
    out: Path,
    *,
    weights: Path | None,
    report: Path | None,
    reviewed: Path | None,
    force: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Train on a table, and write the model; weights and report too where they are asked for."""
    with session(as_json=as_json, quiet=quiet) as shell:
        outputs = {"--out": out, "--weights": weights, "--report": report}
        check_outputs(outputs, (source.table, reviewed), force=force)
        if weights is not None:
            check_ending(weights)
        if report is not None:
            check_report_ending(report)
        learn = method.learner(source, shell.step)
        data = source.read()
        if weights is not None and source.identifier is not None:
            check_writable(data.whole.select(source.identifier), weights)
        checked = {} if reviewed is None else read_reviewed(reviewed, data)
        learnt = learn(data, reviewed=checked)
        found = learnt.found
        page = None
        if report is not None:
            shell.step("writing the report")
            page = report_on(learnt, data, source, method)
        shell.step("writing")
        provenance = {
            "label": data.label,
            "classes": data.classes.tolist(),
            "positive": learnt.positive,
            "columns": {name: kind_of(data.features[name]) for name in data.features.columns},
            "set_aside": list(data.set_aside),
            "estimator": method.estimator,
            "noise_rates": found["noise_rates"],
            "transition_matrix": found["transition_matrix"],
            "seed": method.seed,
            "n_rows": data.y.size,
            "n_reviewed": len(checked),
            "command": command_line(),
        }
        strangers = save_model(out, learnt.model, provenance)
        if strangers:
            warnings.warn(
                f"`unflip predict` will not load this model unless its types are trusted: "
                f"{trust_options(strangers)}",
                stacklevel=1,
            )
        if weights is not None:
            is_reviewed = np.isin(np.arange(data.y.size), list(checked))
            columns = {"row": range(data.y.size), "weight": learnt.weights, "reviewed": is_reviewed}
            if source.identifier is not None:
                columns = {source.identifier: data.whole[source.identifier], **columns}
            write_table(pl.DataFrame(columns), weights)
        if report is not None and page is not None:
            write_report(page, report)
        shell.result({**provenance, "model": str(out), "trust": strangers, "summary": found})
        say_found(shell, found)
        shell.say()
        rows = f"{data.y.size:,} rows"
        joined = f", {len(checked):,} of them reviewed" if checked else ""
        shell.say(f"Trained ({method.estimator}) on {rows}{joined}.")
        shell.written(out, weights, report)
