"""`unflip report`: one page on a table's labels."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from unflip._app.markup import plain
from unflip._app.persistence import versions
from unflip._app.report import Report, make_report
from unflip._app.table_files import check_ending
from unflip._app.tables import LabelledTable, check_features, check_has_columns, without
from unflip._app.words import verdict
from unflip._app.workflow import Audited, CannotEstimateError
from unflip._utils.files import check_outputs, write_whole
from unflip._utils.progress import tick, work
from unflip._utils.warning import silenced
from unflip.cli import _options as options
from unflip.cli._estimate import say_findings
from unflip.cli._session import command_line, session, visible
from unflip.inspection import NoiseBySlice, noise_by_slice

REPORT_ENDINGS = (".html", ".md", ".json")


def report(
    source: options.Source,
    method: options.Method,
    out: Annotated[Path, typer.Option(help="File to write, as .html, .md or .json.")] = Path(
        "report.html"
    ),
    estimator: options.Estimator = "logistic",
    proba: options.Proba = None,
    by: Annotated[
        list[str] | None,
        typer.Option(
            help="Compare the noise between the values of this column, such as sources, months or "
            "annotators. Repeatable."
        ),
    ] = None,
    force: options.Force = False,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Write one page on the labels: error rates, suspicious rows, and what a model gains."""
    with session(as_json=as_json, quiet=quiet) as shell:
        check_outputs({"--out": out}, (source.table,), force=force)
        check_report_ending(out)
        learn = method.auditor(source, shell.step, proba, estimator)
        data = source.read(check_columns=proba is None)
        by = by or []
        _check_by(by, data, proba)
        with work((1.0, *[0.7] * len(by), 1.0)):
            audited = learn(data)
            tick()
            slices = []
            for name in by:
                shell.step(f"comparing the noise by {visible(name)}")
                slices.append(_noise_by(name, data, method.seed))
                tick()
            shell.step(f"{'' if audited.X is None else 'cross-validating, and '}writing the report")
            page = report_on(audited, data, source, method, slices)
        write_report(page, out)
        shell.result(page.content)
        for sentence in verdict(audited.found):
            shell.say(sentence)
        say_findings(shell, audited.found)
        for found in slices:
            shell.say()
            shell.say(plain(str(found)))
        shell.written(out)


def _check_by(names: Sequence[str], data: LabelledTable, proba: str | None) -> None:
    """Reject, before the long work, columns that do not split the table."""
    if not names:
        return
    check_has_columns(data.whole, names)
    if proba is not None:
        raise ValueError("--by needs the columns of the table: leave out --proba.")
    for name in names:
        if name == data.label:
            raise ValueError(f"--by {name!r} is the label: name another column.")
        if data.whole[name].n_unique() < 2:
            raise ValueError(f"--by {name!r} has one value only: name a column with several.")


def _noise_by(name: str, data: LabelledTable, seed: int) -> NoiseBySlice:
    """Return the noise by the values of a column, estimated from the other columns."""
    features = without(data.features, [name])
    check_features(features)
    with silenced():  # the page shows these warnings beside the slices
        try:
            return noise_by_slice(features, data.y, by=data.whole[name], random_state=seed)
        except ValueError as error:
            raise CannotEstimateError(f"--by {name}: {error}") from error


def report_on(
    audited: Audited,
    data: LabelledTable,
    source: options.Source,
    method: options.Method,
    slices: Sequence[NoiseBySlice] = (),
) -> Report:
    """Return the report on an audited table."""
    shown = without(data.whole, [data.label])
    if source.identifier is not None:
        names = [source.identifier, *(n for n in shown.columns if n != source.identifier)]
        shown = shown[names]
    return make_report(
        audited.classifier,
        audited.X,
        data.y,
        noise=audited.noise,
        found=audited.found,
        rows=shown,
        slices=slices,
        settled=set(audited.reviewed.rows.tolist()),
        made={
            "table": visible(source.table.name),
            "label": source.label,
            "command": command_line(),
            "seed": method.seed,
            "versions": versions(),
        },
        seed=method.seed,
    )


def write_report(page: Report, path: Path) -> None:
    """Write the report in the format that the name ends in."""
    writers = {".html": page.to_html, ".md": page.to_markdown, ".json": page.to_json}
    write_whole(path, writers[path.suffix.lower()]())


def check_report_ending(path: Path) -> None:
    """Raise an error unless the name ends in a format of reports."""
    check_ending(path, REPORT_ENDINGS)
