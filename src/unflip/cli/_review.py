"""`unflip review`: a page on which a person checks labels, and what was decided there."""

import json
import threading
import webbrowser
from contextlib import ExitStack
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from unflip._app.review import (
    ReviewTable,
    RowsOfFile,
    check_name,
    check_review,
    export,
    leading_page,
    serve,
)
from unflip._app.table_files import STDIN, check_writable
from unflip._app.words import verdict
from unflip._utils.files import check_no_input
from unflip._utils.validation import check_choice
from unflip.checked.internals import GOALS
from unflip.cli import _options as options
from unflip.cli._session import Session, complain, session

EXPORTED = ("corrected", "reviewed", "log")
"""Names of the files of an export."""


def review(
    table: options.TableFile,
    label: options.Label,
    decisions: Annotated[
        Path | None,
        typer.Option(help="File of the decisions.", show_default="TABLE.review.sqlite"),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder of what is exported.", show_default="TABLE.review-export"),
    ] = None,
    only_export: Annotated[
        bool, typer.Option("--export", help="Write what was decided, and show no page.")
    ] = False,
    goal: Annotated[
        str,
        typer.Option(
            help="What for: find errors, count them (rows are drawn, so that they say how noisy "
            "all labels are), or train the model. The page can choose another.",
            metavar="find|count|train",
        ),
    ] = "find",
    images: Annotated[
        Path | None,
        typer.Option(help="Folder of pictures that a column names; they are shown with the row."),
    ] = None,
    checker: Annotated[
        str | None,
        typer.Option(help="Who decides, where more than one person checks the same rows."),
    ] = None,
    sample: Annotated[
        int, typer.Option(min=1, help="Rows of the random sample that checks the model.")
    ] = 200,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0: a free one.")] = 0,
    open_page: Annotated[
        bool, typer.Option("--open/--no-open", help="Open the page in the browser.")
    ] = True,
    positive: options.Positive = None,
    drop: options.Drop = None,
    identifier: options.Id = None,
    separator: options.Separator = None,
    encoding: options.Encoding = None,
    skip_unlabelled: options.SkipUnlabelled = False,
    merge_labels: options.MergeLabels = False,
    drop_classes: options.DropClasses = None,
    posterior: options.Posterior = "auto",
    rates: options.Rates = None,
    proba: options.Proba = None,
    seed: options.Seed = 0,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Check labels by hand, on a page on this machine; Ctrl+C ends it, and loses nothing."""
    labels = encoding, skip_unlabelled, merge_labels, drop_classes, proba
    source = options.Source(table, label, positive, drop, identifier, separator, *labels)
    method = options.Method(rates=rates, seed=seed, posterior=posterior)
    with session(as_json=as_json, quiet=quiet) as shell, ExitStack() as until_stopped:
        if table == STDIN:
            raise ValueError("a review comes back to its rows, so that it needs a file, not -.")
        check_choice(goal, tuple(GOALS), "--goal")
        if checker is not None:
            check_name(checker)
        store, folder = _paths(table, decisions, out)
        learn = method.auditor(source, shell.step)
        data = source.read()
        check_writable(data.cells, folder / "corrected.csv")
        rows = RowsOfFile(data.reviewed_as, data.cells)
        if only_export:
            written = export(rows, label, store, folder, id_column=identifier)
            shell.result(json.loads(json.dumps(asdict(written), default=str)))
            shell.written(written.corrected, written.reviewed, written.log)
            return
        # checked before the fit, which takes long
        reviewed = ReviewTable(rows, label, id_column=identifier)
        check_review(store, folder, table=reviewed, images=images, port=port)
        learnt = learn(data)
        shell.step("ranking the rows")
        serve(
            reviewed,
            label,
            learnt.audit(),
            store,
            out=folder,
            sample_size=sample,
            goal=goal,
            images=images,
            checker=checker,
            features=learnt.X,
            port=port,
            title=table.name,
            verdict=verdict(learnt.found),
            started=partial(_say_address, shell, open_page, until_stopped),
            # at once: other notes are printed at the end, when the page is closed
            note=lambda words: None if quiet else complain(f"note: {words}"),
        )


def _paths(table: Path, decisions: Path | None, out: Path | None) -> tuple[Path, Path]:
    """Return the file of the decisions and the folder of exports, neither of which is the table."""
    store = table.with_suffix(".review.sqlite") if decisions is None else decisions
    folder = store.with_name(f"{store.stem}-export") if out is None else out
    for path in (store, *(folder / f"{name}.csv" for name in EXPORTED)):
        check_no_input(path, [table])
    return store, folder


def _say_address(shell: Session, open_page: bool, until_stopped: ExitStack, address: str) -> None:
    """Print where the page is, without which the command is of no use: with --quiet too.

    And open it, where a person started the command and not a program.
    """
    shell.step("reviewing; open the address if no browser does; Ctrl+C ends it, decisions are kept")
    said = json.dumps({"address": address}) if shell.as_json else address
    print(said, file=shell.out, flush=True)
    if open_page and shell.out.isatty():
        page = until_stopped.enter_context(leading_page(address))
        # some browsers are waited for, and the page is served only after this function returns
        threading.Thread(target=webbrowser.open, args=(page,), daemon=True).start()
