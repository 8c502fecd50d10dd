"""The review page on this machine."""

import secrets
import socket
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from unflip._validation import check_count
from unflip.review._desk import Desk
from unflip.review._queue import Opinion
from unflip.review._source import Source
from unflip.review._store import Decisions

ADDRESS = "127.0.0.1"
"""No other machine can reach the page."""


def serve(
    table: Any,
    label: Any,
    audit: Any,
    decisions: str | Path,
    *,
    id_column: str | None = None,
    out: str | Path | None = None,
    sample_size: int = 200,
    port: int = 0,
    title: str = "Review of labels",
    random_state: int | None = None,
    started: Callable[[str], object] = print,
) -> None:
    """Show the rows of a table on a local page, and keep what a person decides of their labels.

    Runs until it is interrupted. Every decision is on disk before the page says "saved"; the table
    is never changed. Opened again with the same file, it goes on where it was.

    Parameters
    ----------
    table : dataframe, mapping of columns or array of shape (n_rows, n_columns)
        The rows.
    label : str or array-like of shape (n_rows,)
        The name of the label column, or the labels.
    audit : LabelAudit
        Fitted to these rows and labels.
    decisions : str or Path
        The file of decisions, SQLite; made where it is missing. A file that was made for another
        table is refused.
    id_column : str, default=None
        A column that names the rows: it is shown and searched, not compared.
    out : str or Path, default=None
        Folder of what the page exports. None: the name of `decisions` with "-export" in place of
        its suffix.
    sample_size : int, default=200
        Rows of the random sample that noise rates are estimated from.
    port : int, default=0
        Port on 127.0.0.1; 0: a free one.
    title : str, default="Review of labels"
        What the page is called.
    random_state : int, default=None
        Seed of the random sample. It is drawn once, and kept with the decisions.
    started : callable, default=print
        Called with the page's address, the secret token in it, when it is ready.
    """
    try:
        import uvicorn

        from unflip.review._app import make_app
    except ImportError as error:
        raise ImportError(
            f"the review page needs {error.name}: pip install 'unflip[review]'"
        ) from error
    check_count(sample_size, "sample_size", least=1)
    path = Path(decisions)
    folder = path.with_name(f"{path.stem}-export") if out is None else Path(out)
    source = Source(table, label, id_column=id_column)
    opinion = Opinion(audit, source)  # before any file is made
    with (
        Decisions(path, source.fingerprint) as store,
        socket.create_server((ADDRESS, port)) as listening,
    ):
        desk = Desk(
            source,
            opinion,
            store,
            folder,
            title=title,
            sample_size=sample_size,
            random_state=random_state,
        )
        host = f"{ADDRESS}:{listening.getsockname()[1]}"
        token = secrets.token_urlsafe(24)
        server = uvicorn.Server(
            uvicorn.Config(
                make_app(desk, token=token, host=host),
                lifespan="off",
                ws="none",
                log_level="warning",
                access_log=False,  # the address has the token in it
                server_header=False,
                limit_concurrency=50,
                timeout_graceful_shutdown=2,
            )
        )
        started(f"http://{host}/{token}/")
        # being interrupted is how it ends
        with suppress(KeyboardInterrupt):
            server.run(sockets=[listening])
