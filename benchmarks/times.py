"""Time and memory of the default fit and of the audit, beside cleanlab's CleanLearning.

`python -m benchmarks.times [--rows 100000] [--only 26] [--pairs]` measures few and many rows,
columns and classes, with symmetric noise, or with labels of each class that become the next one.
Every line comes from processes of their own with one thread: seconds are the least processor time
of some runs, that of started processes included, after a first run on few rows that is not counted;
MiB is the peak of resident memory over what was held before, the data included.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from benchmarks.harness import ROOT, THREAD_VARIABLES
from benchmarks.worker import BUDGET, peak_memory
from unflip import ImportanceReweightingClassifier, LabelAudit, TransitionMatrix, flip_labels

Array = NDArray[Any]

SIZES = (
    (1000, 20, 2),
    (3000, 20, 2),
    (3000, 200, 2),
    (10_000, 500, 2),
    (1000, 20, 5),
    (10_000, 20, 10),
    (5000, 50, 26),
    (100_000, 20, 2),
    (100_000, 20, 10),
    (50_000, 768, 10),
)
"""Rows, columns and classes."""

CONTENDERS = ("cleanlab", "fit", "audit")
NOISE, MOST_RUNS = 0.2, 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=100_000, help="no larger sizes are measured")
    parser.add_argument("--only", type=int, help="sizes of so many classes")
    parser.add_argument("--pairs", action="store_true", help="each class is taken for the next one")
    parser.add_argument("--one", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        n_rows, n_columns, n_classes = map(int, options.one[:3])
        noise = transition(n_classes, pairs=options.pairs)
        print(json.dumps(measured(n_rows, n_columns, noise, options.one[3])))
        return
    print("   rows columns classes  cleanlab    fit  ratio  audit / fit  MiB of the fit  T error")
    for size in SIZES:
        if size[0] > options.rows or options.only not in (None, size[2]):
            continue
        theirs, fit, audit = (started(*size, who, pairs=options.pairs) for who in CONTENDERS)
        print(
            f"{size[0]:7d} {size[1]:7d} {size[2]:7d} {theirs['seconds']:9.2f}"
            f" {fit['seconds']:6.2f} {fit['seconds'] / theirs['seconds']:6.1f}"
            f" {audit['seconds'] / fit['seconds']:12.1f} {fit['mib']:15.0f} {fit['error']:8.3f}",
            flush=True,
        )


def started(
    n_rows: int, n_columns: int, n_classes: int, who: str, *, pairs: bool
) -> dict[str, float]:
    """Return what a process of its own has measured."""
    task = [str(n_rows), str(n_columns), str(n_classes), who, *["--pairs"] * pairs]
    process = subprocess.run(
        [sys.executable, "-m", "benchmarks.times", "--one", *task],
        cwd=ROOT,
        env=os.environ | dict.fromkeys(THREAD_VARIABLES, "1"),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    found: dict[str, float] = json.loads(process.stdout.splitlines()[-1])
    return found


def transition(n_classes: int, *, pairs: bool) -> TransitionMatrix:
    """Return the noise."""
    if pairs:
        return TransitionMatrix.pair_flip(n_classes, NOISE)
    return TransitionMatrix.uniform(n_classes, NOISE)


def measured(n_rows: int, n_columns: int, noise: TransitionMatrix, who: str) -> dict[str, float]:
    """Return seconds, MiB and, of the fit, the error of T."""
    warnings.simplefilter("ignore")
    contender(who).fit(*noisy_rows(300, n_columns, noise))
    X, y = noisy_rows(n_rows, n_columns, noise)
    seconds: list[float] = []
    before, mib = peak_memory(reset=True), 0.0
    while len(seconds) < MOST_RUNS and sum(seconds) < BUDGET:
        start, model = processor_time(), contender(who)
        model.fit(X, y)
        seconds.append(processor_time() - start)
        mib = mib or peak_memory() - before
    found = model.transition_matrix_ if who == "fit" else noise.matrix
    error = float(0.5 * np.abs(found - noise.matrix).sum(axis=1).mean())
    return {"seconds": min(seconds), "mib": mib, "error": error}


def processor_time() -> float:
    """Return seconds of this process and of those that it has started."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def contender(who: str) -> Any:
    if who == "fit":
        return ImportanceReweightingClassifier(random_state=0)
    if who == "audit":
        return LabelAudit(random_state=0)
    from cleanlab.classification import CleanLearning

    return CleanLearning(LogisticRegression(), seed=0)


def noisy_rows(n_rows: int, n_columns: int, noise: TransitionMatrix) -> tuple[Array, Array]:
    """Return Gaussian classes around random centers, with a fifth of the labels flipped."""
    rng, n_classes = np.random.default_rng(0), len(noise.matrix)
    y = rng.integers(0, n_classes, n_rows)
    X = rng.normal(size=(n_classes, n_columns))[y] * 4 / np.sqrt(n_columns)
    X += rng.normal(size=X.shape)
    return X, flip_labels(y, noise, random_state=0)


if __name__ == "__main__":
    main()
