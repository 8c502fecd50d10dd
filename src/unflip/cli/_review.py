"""`unflip review`: a local page on which a person checks labels."""

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
    EXPORTED_FILES,
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


def review(
    source: options.Source,
    method: options.Method,
    decisions: Annotated[
        Path | None,
        typer.Option(
            help="File in which decisions are stored.", show_default="TABLE.review.sqlite"
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder to export to.", show_default="TABLE.review-export")
    ] = None,
    only_export: Annotated[
        bool, typer.Option("--export", help="Export the decisions without showing the page.")
    ] = False,
    goal: Annotated[
        str,
        typer.Option(
            help="Show the most suspicious rows (find), random rows that estimate the error rate "
            "(count), or rows that improve the model (train). The page can switch.",
            metavar="find|count|train",
        ),
    ] = "find",
    images: Annotated[
        Path | None,
        typer.Option(help="Folder of images, shown with the rows whose cells name them."),
    ] = None,
    checker: Annotated[
        str | None, typer.Option(help="Your name, if several people check the same rows.")
    ] = None,
    sample: Annotated[
        int, typer.Option(min=1, help="Number of rows in the random sample that checks the model.")
    ] = 200,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 takes any free one.")] = 0,
    open_page: Annotated[
        bool, typer.Option("--open/--no-open", help="Open the page in the browser.")
    ] = True,
    proba: options.Proba = None,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Check labels by hand on a local web page. Ctrl+C stops it; decisions are kept."""
    with session(as_json=as_json, quiet=quiet) as shell, ExitStack() as until_stopped:
        if source.table == STDIN:
            raise ValueError("a review needs a file to come back to: save the table, and name it.")
        check_choice(goal, tuple(GOALS), "--goal")
        if checker is not None:
            check_name(checker)
        store, folder = _paths(source.table, decisions, out)
        learn = method.auditor(source, shell.step, proba)
        data = source.read(check_columns=proba is None)
        check_writable(data.cells, folder / "corrected.csv")
        rows = RowsOfFile(data.reviewed_as, data.cells)
        if only_export:
            written = export(rows, source.label, store, folder, id_column=source.identifier)
            shell.result(json.loads(json.dumps(asdict(written), default=str)))
            shell.written(written.corrected, written.reviewed, written.log)
            return
        # checked before the fit, which takes long
        reviewed = ReviewTable(rows, source.label, id_column=source.identifier)
        check_review(store, folder, table=reviewed, images=images, port=port)
        audited = learn(data)
        shell.step("ranking the rows")
        serve(
            reviewed,
            source.label,
            audited.audit(),
            store,
            out=folder,
            sample_size=sample,
            goal=goal,
            images=images,
            checker=checker,
            features=audited.X,
            port=port,
            title=source.table.name,
            verdict=verdict(audited.found),
            started=partial(_say_address, shell, open_page, until_stopped),
            # now: other notes are printed at the end, when the page is closed
            note=lambda words: None if quiet else complain(f"note: {words}"),
        )


def _paths(table: Path, decisions: Path | None, out: Path | None) -> tuple[Path, Path]:
    """Return the file of decisions and the export folder; neither overwrites the table."""
    store = table.with_suffix(".review.sqlite") if decisions is None else decisions
    folder = store.with_name(f"{store.stem}-export") if out is None else out
    for path in (store, *(folder / f"{name}.csv" for name in EXPORTED_FILES)):
        check_no_input(path, [table])
    return store, folder


def _say_address(shell: Session, open_page: bool, until_stopped: ExitStack, address: str) -> None:
    """Print the address of the page, even with --quiet, and open it if stdout is a terminal."""
    shell.step("reviewing; open the address in a browser; Ctrl+C stops, decisions are kept")
    said = json.dumps({"address": address}) if shell.as_json else address
    print(said, file=shell.out, flush=True)
    if open_page and shell.out.isatty():
        page = until_stopped.enter_context(leading_page(address))
        # some browsers are waited for, and the page is served only after this function returns
        threading.Thread(target=webbrowser.open, args=(page,), daemon=True).start()
