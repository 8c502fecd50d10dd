"""A table that is made, its audit, and a review page of it as a process of its own."""

import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from unflip._app.review import Opinion, ReviewSession
from unflip._app.review._connections import REQUEST_TIMEOUT
from unflip._app.review._file import LOCK_TIMEOUT
from unflip.audit import LabelAudit
from unflip.estimate import NoiseEstimate
from unflip.noise import TransitionMatrix
from unflip.review import Decisions, ReviewTable

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
    joint = density * noise.matrix[:, codes].T
    clean = density / density.sum(axis=1, keepdims=True)
    return audit_of(
        NoiseEstimate(
            classes,
            codes,
            noise,
            noisy_proba=clean @ noise.matrix,
            clean_proba=clean,
            label_proba=joint / joint.sum(axis=1, keepdims=True),
            error_range=(0.0, 1.0),
        )
    )


def audit_of(noise: NoiseEstimate) -> LabelAudit:
    """Return an audit that shows an estimate."""
    audit = LabelAudit()
    audit.noise_, audit.classes_, audit.rate_estimator_ = noise, noise.classes, None
    return audit


def client_of(
    table: ReviewTable, audit: LabelAudit, store: Decisions, folder: Path, **options: Any
) -> Any:
    """Return what calls the page's server, in this process."""
    # not above: this file is run as a script too
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
    process = subprocess.Popen(
        [sys.executable, __file__, *map(str, settings)],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        address = process.stdout.readline().strip()
        assert address.startswith("http://127.0.0.1:"), address
        yield process, address
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


if __name__ == "__main__":
    from unflip._app.review import _connections, _file
    from unflip.review import serve

    _connections.REQUEST_TIMEOUT, _file.LOCK_TIMEOUT = map(float, sys.argv[5:7])
    made = made_table(int(sys.argv[2]), int(sys.argv[4]))
    serve(
        made,
        "kind",
        made_audit(made),
        sys.argv[1],
        id_column="name",
        sample_size=int(sys.argv[3]),
        random_state=0,
        started=lambda address: print(address, flush=True),
    )
