"""The review page on this machine."""

import secrets
import socket
import warnings
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from unflip._app.review._desk import Desk
from unflip._app.review._export import check_export
from unflip._app.review._file import check_place
from unflip._app.review._queue import Opinion
from unflip._app.review._source import Source
from unflip._app.review._store import Decisions
from unflip._validation import check_count

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
    note: Callable[[str], object] = warnings.warn,
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
        The file of decisions, SQLite; made where it is missing. Decisions are found again by the
        cells of their rows; a file of which no row is in the table is refused.
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
    note : callable, default=warnings.warn
        Called before with each sentence on decisions that were moved with their rows or could not
        be matched; the page shows them too.
    """
    check_review(decisions, out, port=port)
    import uvicorn

    from unflip._app.review._app import make_app
    from unflip._app.review._connections import BoundedProtocol

    check_count(sample_size, "sample_size", least=1)
    source = Source(table, label, id_column=id_column)
    opinion = Opinion(audit, source)  # before any file is made
    with (
        Decisions(Path(decisions), source.fingerprint) as store,
        socket.create_server((ADDRESS, port)) as listening,
    ):
        desk = Desk(
            source,
            opinion,
            store,
            _export_folder(decisions, out),
            title=title,
            sample_size=sample_size,
            random_state=random_state,
        )
        for sentence in store.notes:
            note(sentence)
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
                timeout_graceful_shutdown=2,
                http=BoundedProtocol,
            )
        )
        started(f"http://{host}/{token}/")
        # being interrupted is how it ends
        with suppress(KeyboardInterrupt):
            server.run(sockets=[listening])


def check_review(
    decisions: str | Path,
    out: str | Path | None = None,
    *,
    source: Source | None = None,
    port: int = 0,
) -> None:
    """Raise what `serve` would raise whatever the audit says; to be asked before a long fit.

    No file is made. Nothing is said of a file of decisions that does not exist yet.

    Parameters
    ----------
    decisions : str or Path
        The file of decisions.
    out : str or Path, default=None
        Folder of what the page exports. None: as in `serve`.
    source : Source, default=None
        The table: whether it is the one that the file was made for. None: that is not asked.
    port : int, default=0
        Port on 127.0.0.1; 0: a free one.

    Examples
    --------
    >>> from tempfile import mkdtemp
    >>> from unflip._app.review import check_review
    >>> check_review(Path(mkdtemp()) / "review.sqlite")
    """
    for package in ("uvicorn", "starlette"):
        try:
            import_module(package)
        except ImportError as error:
            raise ImportError(
                f"the review page needs {error.name}: pip install 'unflip[review]'"
            ) from error
    check_place(Path(decisions))
    check_export(_export_folder(decisions, out))
    if source is not None and Path(decisions).exists():
        Decisions(Path(decisions), source.fingerprint).close()
    try:
        socket.create_server((ADDRESS, port)).close()
    except OSError as error:
        raise OSError(
            f"port {port} of {ADDRESS} cannot be used ({error.strerror}): name another one, or 0 "
            "for one that is free."
        ) from error


def _export_folder(decisions: str | Path, out: str | Path | None) -> Path:
    path = Path(decisions)
    return path.with_name(f"{path.stem}-export") if out is None else Path(out)
