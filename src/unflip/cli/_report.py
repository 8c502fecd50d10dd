"""`unflip report`: the page on a table's labels."""

from pathlib import Path
from typing import Annotated

import typer

from unflip._app.held_out import Audited
from unflip._app.persistence import versions
from unflip._app.report import Report, make_report
from unflip._app.table_files import check_ending
from unflip._app.tables import LabelledTable
from unflip._app.words import verdict
from unflip._app.workflow import Learnt
from unflip._files import check_outputs, write_whole
from unflip._progress import tick, work
from unflip.cli import _options as options
from unflip.cli._estimate import say_doubts
from unflip.cli._session import command_line, session, visible

REPORT_ENDINGS = (".html", ".md", ".json")


def report(
    table: options.TableFile,
    label: options.Label,
    out: Annotated[
        Path, typer.Option(help="The page; its ending tells how: .html, .md or .json.")
    ] = Path("report.html"),
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
    proba: options.Proba = None,
    seed: options.Seed = 0,
    force: options.Force = False,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Write one page on the labels: how noisy, how sure, which rows, what a model gains."""
    labels = encoding, skip_unlabelled, merge_labels, drop_classes, proba
    source = options.Source(table, label, positive, drop, identifier, separator, *labels)
    method = options.Method(estimator, rates, seed, posterior)
    with session(as_json=as_json, quiet=quiet) as shell:
        check_outputs({"--out": out}, (table,), force=force)
        check_report_ending(out)
        learn = method.auditor(source, shell.step)
        data = source.read()
        with work((1.0, 1.0)):
            learnt = learn(data)
            tick()
            cross_validated = isinstance(learnt, Learnt)
            shell.step(f"{'cross-validating, and ' if cross_validated else ''}writing the report")
            page = report_on(learnt, data, source, method)
        write_report(page, out)
        shell.result(page.content)
        for sentence in verdict(learnt.found):
            shell.say(sentence)
        say_doubts(shell, learnt.found)
        shell.written(out)


def report_on(
    learnt: Learnt | Audited,
    data: LabelledTable,
    source: options.Source,
    method: options.Method,
) -> Report:
    """Return the report on what was learnt."""
    shown = data.whole.drop(data.label)
    if source.identifier is not None:
        names = [source.identifier, *(n for n in shown.columns if n != source.identifier)]
        shown = shown.select(names)
    audit = learnt.audit()
    classifier, X = (learnt.classifier, learnt.X) if isinstance(learnt, Learnt) else (audit, None)
    return make_report(
        classifier,
        X,
        learnt.y,
        audit=audit,
        found=learnt.found,
        rows=shown,
        settled=set(learnt.reviewed.rows.tolist()),
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
