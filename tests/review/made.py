"""A table that is made, its audit, and a review page of it as a process of its own."""

import multiprocessing
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from unflip._app.review import Decisions, Opinion, ReviewSession, ReviewTable
from unflip._app.review._connections import REQUEST_TIMEOUT
from unflip._app.review._file import LOCK_TIMEOUT
from unflip.audit import LabelAudit
from unflip.noise import TransitionMatrix

KINDS = np.array(["<b>banana</b>", "apple", "cherry"])


def made_table(n: int = 300, n_kinds: int = 2) -> pl.DataFrame:
    """Return fruit of two or three kinds, numbers and a category, some of it labelled wrong."""
    rng = np.random.default_rng(0)
    kind = rng.integers(0, n_kinds, n)
    noisy = np.where(rng.random(n) < 0.15, rng.integers(0, n_kinds, n), kind)
    return pl.DataFrame(
        {
            "name": [f"fruit {k}" for k in range(n)],
            "weight": 3.0 * kind + rng.normal(size=n),
            "length": rng.normal(size=n),
            "colour": np.where(rng.random(n) < 0.9, np.where(kind, "red", "yellow"), "green"),
            "kind": KINDS[noisy],
        }
    )


def made_audit(table: pl.DataFrame) -> LabelAudit:
    """Return an audit as if it were fitted: P(true y | x) by the weight alone, in no time."""
    classes, codes = np.unique(table["kind"].to_numpy(), return_inverse=True)
    weight = table["weight"].to_numpy()
    density = np.exp(-((weight[:, None] - 3.0 * np.arange(classes.size)) ** 2) / 2) + 1e-9
    noise = TransitionMatrix.uniform(classes.size, 0.1)
    audit = LabelAudit()
    audit.classes_, audit.noise_rates_ = classes, noise
    audit.rate_estimator_, audit.diagnostics_ = None, []
    audit.transition_matrix_ = noise.matrix
    joint = density * noise.matrix[:, codes].T
    audit.label_proba_ = joint / joint.sum(axis=1, keepdims=True)
    audit.mislabel_proba_ = 1 - audit.label_proba_[np.arange(codes.size), codes]
    audit.suggested_label_ = classes[joint.argmax(axis=1)]
    audit.none_proba_, audit._codes = np.zeros(len(joint)), codes
    audit.noisy_proba_ = density / density.sum(axis=1, keepdims=True) @ noise.matrix
    return audit


def client_of(
    table: ReviewTable, audit: LabelAudit, store: Decisions, folder: Path, **options: Any
) -> Any:
    """Return what calls the page's server, in this process."""
    # not above: servers need neither
    from tests.review.caller import HOST, TOKEN, Caller
    from unflip._app.review._app import make_app

    session = ReviewSession(table, Opinion(audit, table), store, folder, **options)
    return Caller(make_app(session, token=TOKEN, host=HOST))


@contextmanager
def served(
    decisions: Path,
    n: int = 300,
    sample_size: int = 30,
    n_kinds: int = 2,
    *,
    slowest: float = REQUEST_TIMEOUT,
    patience: float = LOCK_TIMEOUT,
):
    """Serve the made table from another process; give the process and the page's address."""
    settings = (decisions, n, sample_size, n_kinds, slowest, patience)
    receiver, sender = SERVERS.Pipe(duplex=False)
    process = SERVERS.Process(target=_serve, args=(sender, *settings), daemon=True)
    process.start()
    sender.close()
    try:
        address = receiver.recv()
        assert address.startswith("http://127.0.0.1:"), address
        yield process, address
    finally:
        process.kill()
        process.join()
        receiver.close()


def _serve(
    sender: Any,
    decisions: Path,
    n: int,
    sample_size: int,
    n_kinds: int,
    slowest: float,
    patience: float,
) -> None:
    """Serve until killed, and send the address once it listens."""
    from unflip._app.review import _connections, _file, serve

    _connections.REQUEST_TIMEOUT, _file.LOCK_TIMEOUT = slowest, patience
    made = made_table(n, n_kinds)
    serve(
        made,
        "kind",
        made_audit(made),
        decisions,
        id_column="name",
        sample_size=sample_size,
        random_state=0,
        started=sender.send,
    )


def _server_processes() -> Any:
    """Return what starts servers: where it can, by one process that has imported the library."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["unflip._app.review._app", "uvicorn"])
    return context


SERVERS = _server_processes()
