"""`unflip review`: a page on which a person checks labels, and what was decided there."""

import json
from dataclasses import asdict
from pathlib import Path

from unflip._app.review import ReviewTable, check_review, export, serve
from unflip._files import check_no_input
from unflip.cli._options import Method, Source
from unflip.cli._session import complain, session

EXPORTED = ("corrected", "reviewed", "log")
"""Names of the files of an export."""


def review(
    source: Source,
    method: Method,
    decisions: Path | None,
    out: Path | None,
    *,
    only_export: bool,
    sample: int,
    port: int,
    as_json: bool,
    quiet: bool,
) -> None:
    """Serve the page until it is interrupted, or export what was decided on it."""
    with session(as_json=as_json, quiet=quiet) as shell:
        store = source.table.with_suffix(".review.sqlite") if decisions is None else decisions
        folder = store.with_name(f"{store.stem}-export") if out is None else out
        for path in (store, *(folder / f"{name}.csv" for name in EXPORTED)):
            check_no_input(path, [source.table])
        learn = method.learner(source, shell.step)
        data = source.read()
        if only_export:
            written = export(data.whole, data.label, store, folder, id_column=source.identifier)
            shell.result(json.loads(json.dumps(asdict(written), default=str)))
            shell.written(written.corrected, written.reviewed, written.log)
            return
        # all that could be refused after a long fit
        table = ReviewTable(data.whole, data.label, id_column=source.identifier)
        check_review(store, folder, table=table, port=port)
        learnt = learn(data)
        shell.step("ranking the rows")
        audit = learnt.audit()

        def started(address: str) -> None:
            shell.step("reviewing; Ctrl+C ends it, decisions are kept")
            # the one thing without which the command is of no use, so said with --quiet too
            print(json.dumps({"address": address}) if as_json else address, flush=True)

        def note(words: str) -> None:
            # now, and not with the notes at the end, which comes when the page is closed
            if not quiet:
                complain(f"note: {words}")

        serve(
            data.whole,
            data.label,
            audit,
            store,
            id_column=source.identifier,
            out=folder,
            sample_size=sample,
            port=port,
            title=source.table.name,
            started=started,
            note=note,
        )
