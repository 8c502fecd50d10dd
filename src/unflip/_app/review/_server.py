"""The local server of the review page."""

import os
import secrets
import socket
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory

from unflip._app import words
from unflip._app.markup import unmarked
from unflip._app.review._export import check_export
from unflip._app.review._file import check_place
from unflip._app.review._images import Images
from unflip._app.review._learning import short_turns
from unflip._app.review._queue import GOAL_QUEUES, Opinion
from unflip._app.review._session import ReviewSession
from unflip._app.review._store import Decisions
from unflip._app.review._table import ReviewTable
from unflip._utils.typing import ArrayLike, Rows
from unflip._utils.validation import check_choice, check_count
from unflip.audit import LabelAudit
from unflip.inspection import summary

ADDRESS = "127.0.0.1"
"""Loopback: other machines cannot reach the page."""


PAGE = """<!doctype html>
<meta charset="utf-8">
<meta http-equiv="content-security-policy" content="default-src 'none'">
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url={address}">
<title>unflip review</title>
<a href="{address}">Open the review</a>
"""
"""A page that redirects to another address without a script."""


def serve(
    table: Rows,
    label: ArrayLike,
    audit: LabelAudit,
    decisions: str | Path,
    *,
    id_column: str | None = None,
    out: str | Path | None = None,
    sample_size: int = 200,
    port: int = 0,
    title: str = "Review of labels",
    verdict: Sequence[str] | None = None,
    random_state: int | None = None,
    goal: str = "find",
    images: str | Path | None = None,
    checker: str | None = None,
    features: Rows | None = None,
    started: Callable[[str], object] = print,
    note: Callable[[str], object] = warnings.warn,
) -> None:
    """Serve a local page to review the labels of a table, and store the decisions.

    Runs until it is interrupted. Every decision is on disk before the page shows "Saved"; the table
    is never changed. Serving again with the same file continues the review.

    Parameters
    ----------
    table : dataframe, mapping of columns or array of shape (n_rows, n_columns), or ReviewTable
        The rows. A ReviewTable already has its label and row names.
    label : str or array-like of shape (n_rows,)
        The name of the label column, or the labels.
    audit : LabelAudit
        The audit, fitted to these rows and labels.
    decisions : str or Path
        The SQLite file of decisions; created if missing. Decisions are matched by the cells of
        their rows; a file without any row of the table raises an error.
    id_column : str, default=None
        A column of row names: shown and searched, but not compared.
    out : str or Path, default=None
        Folder to export to. None: the name of `decisions` with "-export" in place of its suffix.
    sample_size : int, default=200
        Number of rows in the random sample from which noise rates are estimated.
    port : int, default=0
        Port on 127.0.0.1; 0 takes any free port.
    title : str, default="Review of labels"
        Title of the page.
    verdict : sequence of str, default=None
        Sentences on how noisy the labels are, shown at the top. None: those of the audit.
    random_state : int, default=None
        Random seed of the sample and the draws, which are stored with the decisions.
    goal : {"find", "count", "train"}, default="find"
        What the page is opened for: the most suspicious rows first, rows drawn to count the
        errors, or rows drawn to train the model. The page can choose another.
    images : str or Path, default=None
        Folder of pictures that a column of the table names.
    checker : str, default=None
        Name of the person who decides. Rows decided by others only are shown as open, and the page
        shows how far the checkers agree.
    features : {array-like, sparse matrix} of shape (n_rows, n_features), default=None
        The encoded rows, such as the audit was fitted to. P(mislabelled) is updated in the
        background after every few decisions: from these features, the observed labels and the
        audit's probabilities, or from the latter alone.
    started : callable, default=print
        Called with the address of the page, including the secret token, when it is ready.
    note : callable, default=warnings.warn
        Called before with each note on decisions whose rows moved or could not be matched; the
        page shows them too.
    """
    check_review(decisions, out, port=port)
    import uvicorn

    from unflip._app.review._app import make_app
    from unflip._app.review._connections import BoundedProtocol

    check_count(sample_size, "sample_size", least=1)
    check_choice(goal, tuple(GOAL_QUEUES), "goal")
    review_table = (
        table if isinstance(table, ReviewTable) else ReviewTable(table, label, id_column=id_column)
    )
    opinion = Opinion(audit, review_table)  # checks the audit before a file is created
    pictures = None if images is None else Images(Path(images), review_table.columns)
    said = words.verdict(summary(audit)) if verdict is None else verdict
    with (
        Decisions(Path(decisions), review_table.fingerprint, checker) as store,
        socket.create_server((ADDRESS, port)) as listening,
        short_turns(),
    ):
        # an answer is sent in two parts: the second must not wait for the first to be acknowledged
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        session = ReviewSession(
            review_table,
            opinion,
            store,
            _export_folder(decisions, out),
            title=title,
            verdict=[unmarked(sentence) for sentence in said],
            sample_size=sample_size,
            random_state=random_state,
            goal=goal,
            images=pictures,
            features=features,
        )
        for changed in store.notes:
            note(changed)
        host = f"{ADDRESS}:{listening.getsockname()[1]}"
        token = secrets.token_urlsafe(24)
        server = uvicorn.Server(
            uvicorn.Config(
                make_app(session, token=token, host=host),
                lifespan="off",
                ws="none",
                log_level="warning",
                access_log=False,  # the address contains the token
                server_header=False,
                timeout_graceful_shutdown=2,
                http=BoundedProtocol,
            )
        )
        started(f"http://{host}/{token}/")
        # Ctrl+C is the way to stop the server
        with suppress(KeyboardInterrupt):
            server.run(sockets=[listening])


def check_review(
    decisions: str | Path,
    out: str | Path | None = None,
    *,
    table: ReviewTable | None = None,
    images: str | Path | None = None,
    port: int = 0,
) -> None:
    """Raise the errors of `serve` that do not depend on the audit, before a long fit.

    Creates no file.

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
    if table is not None and images is not None:
        Images(Path(images), table.columns)
    if table is not None and Path(decisions).exists():
        Decisions(Path(decisions), table.fingerprint).close()
    try:
        socket.create_server((ADDRESS, port)).close()
    except OSError as error:
        raise OSError(
            f"port {port} of {ADDRESS} cannot be used ({error.strerror}): choose another one, or 0 "
            "for any free port."
        ) from error


def _export_folder(decisions: str | Path, out: str | Path | None) -> Path:
    path = Path(decisions)
    return path.with_name(f"{path.stem}-export") if out is None else Path(out)


@contextmanager
def leading_page(address: str) -> Iterator[str]:
    """Yield the address of a file that redirects to `address` and only this user can read."""
    # mode 700; on Windows, the temporary folder is the user's own
    with TemporaryDirectory(prefix="unflip-") as folder:
        page = Path(folder) / "review.html"
        handle = os.open(page, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(handle, "w", encoding="utf-8") as file:
            file.write(PAGE.format(address=address))
        yield page.as_uri()
