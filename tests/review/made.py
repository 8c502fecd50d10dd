"""A table that is made, its audit, and a review page of it as a process of its own."""

import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import polars as pl

from unflip.audit import LabelAudit
from unflip.noise import NoiseRates


def made_table(n: int = 300, seed: int = 0) -> pl.DataFrame:
    """Return rows of two kinds of fruit, numbers and a category, some of them labelled wrong."""
    rng = np.random.default_rng(seed)
    apple = rng.random(n) < 0.5
    wrong = rng.random(n) < 0.15
    return pl.DataFrame(
        {
            "name": [f"fruit {k}" for k in range(n)],
            "weight": np.where(apple, 3.0, 0.0) + rng.normal(size=n),
            "length": rng.normal(size=n),
            "colour": np.where(rng.random(n) < 0.9, np.where(apple, "red", "yellow"), "green"),
            "kind": np.where(apple ^ wrong, "apple", "<b>banana</b>"),
        }
    )


def made_audit(table: pl.DataFrame) -> LabelAudit:
    """Return an audit as if it were fitted: P(true=apple | x) by the weight alone, in no time."""
    labels = table["kind"].to_numpy()
    classes, codes = np.unique(labels, return_inverse=True)
    rates = NoiseRates(positive=0.2, negative=0.1)
    apple = 1 / (1 + np.exp(-3 * (table["weight"].to_numpy() - 1.5)))
    audit = LabelAudit()
    audit.classes_, audit.noise_rates_ = classes, rates
    audit.transition_matrix_ = rates.transition_matrix
    audit.clean_proba_ = np.column_stack([1 - apple, apple])
    joint = audit.clean_proba_ * audit.transition_matrix_[:, codes].T
    audit.mislabel_proba_ = 1 - joint[np.arange(codes.size), codes] / joint.sum(axis=1)
    audit.suggested_label_ = classes[joint.argmax(axis=1)]
    return audit


@contextmanager
def served(decisions: Path, n: int = 300, sample_size: int = 30):
    """Serve the made table from another process; give the process and the page's address."""
    process = subprocess.Popen(
        [sys.executable, __file__, str(decisions), str(n), str(sample_size)],
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
    from unflip.review import serve

    made = made_table(int(sys.argv[2]))
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
