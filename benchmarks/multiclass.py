"""More than two classes: accuracy and the error of T, beside cleanlab.

`python -m benchmarks.multiclass [--splits 5] [--estimator boosting] [--tables wine digits]` runs
scikit-learn's digits and the tables of a folder (`UNFLIP_MANY`: CSV files whose last column is the
label), up to 1000 rows to train on, with no noise, symmetric and pair flips of 0.3, and random rows
of T. Every method sees the same splits and flips; the accuracy is that on clean test labels. Tables
that have 1000 rows to train on are printed by themselves too.
`--simulated` prints the error of T with 20 000 rows of Gaussian classes.

T error is half the mean L1 distance of T's rows. Worst is the largest loss of a cell (table and
noise) against labels as they are, with its standard error over the splits. With the true labels
known, the classifier is trained on them, and T is counted.
"""

import argparse
import os
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

from unflip import ImportanceReweightingClassifier, TransitionMatrix, flip_labels
from unflip.noise_rates import ChannelRates

Array = NDArray[Any]

Cells = dict[tuple[str, str, str], list[tuple[float, float]]]
"""Accuracy and error of T in every split, by method, table and noise."""

MOST_ROWS = 1000
"""Rows to train on."""

TRUTH = "true labels known"
NOISES = ("none", "symmetric .3", "pair .3", "random")

MODELS: dict[str, Callable[[], Any]] = {
    "logistic": LogisticRegression,
    "boosting": lambda: HistGradientBoostingClassifier(max_iter=50, random_state=0),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--first", type=int, default=0, help="first split, to keep some unseen")
    parser.add_argument("--estimator", default="logistic", choices=MODELS)
    parser.add_argument("--tables", nargs="+", help="only these")
    parser.add_argument("--simulated", action="store_true", help="error of T with 20 000 rows")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.simulated:
        print_simulated()
        return
    seeds = range(options.first, options.first + options.splits)
    print_accuracies(options.estimator, seeds, options.tables)


def print_accuracies(estimator: str, seeds: range, only: list[str] | None = None) -> None:
    cells: Cells = defaultdict(list)
    large: set[str] = set()
    names = ["labels as they are", "CleanLearning", "unflip", "unflip, beta", "T known", TRUTH]
    if find_spec("cleanlab") is None:
        print("cleanlab is not installed, and is left out")
        names.remove("CleanLearning")
    for table, X, y in tables():
        if only is not None and table not in only:
            continue
        for noise in NOISES:
            for seed in seeds:
                rows = split(X, y, noise, seed)
                for name in names:
                    cells[name, table, noise].append(result(name, estimator, rows))
        if len(rows[0]) == MOST_ROWS:
            large.add(table)
        print(f"{table} done", flush=True)
    print_summary(estimator, cells, names)
    if large and large < {table for _, table, _ in cells}:
        some = {key: values for key, values in cells.items() if key[1] in large}
        print(f"\nonly tables with {MOST_ROWS} rows to train on: {', '.join(sorted(large))}")
        print_summary(estimator, some, names)


def print_summary(estimator: str, cells: Cells, names: list[str]) -> None:
    print(f"\n{estimator:20} accuracy  worst (+-)      T error  T error, clean labels")
    plain = {key[1:]: np.array(values) for key, values in cells.items() if key[0] == names[0]}
    for name in names:
        mine = {key[1:]: np.array(values) for key, values in cells.items() if key[0] == name}
        gains = {key: values[:, 0] - plain[key][:, 0] for key, values in mine.items()}
        worst = min(gains.values(), key=np.mean)
        spread = float(np.std(worst, ddof=1) / np.sqrt(worst.size)) if worst.size > 1 else np.nan
        accuracy, error = np.mean([values.mean(axis=0) for values in mine.values()], axis=0)
        clean = np.mean([values[:, 1] for (_, noise), values in mine.items() if noise == "none"])
        print(
            f"{name:20} {accuracy:8.2f} {worst.mean():6.2f} ({spread:.2f})"
            f" {error:12.3f} {clean:8.3f}"
        )


def result(name: str, estimator: str, rows: tuple[Array, ...]) -> tuple[float, float]:
    """Return the accuracy in per cent, and the error of T."""
    X, y_noisy, X_test, y_test, T, y_true = rows
    model = MODELS[estimator]()
    if name == TRUTH:
        counts = np.zeros_like(T)
        np.add.at(counts, (y_true, y_noisy), 1.0)
        counted = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1.0)
        return 100 * model.fit(X, y_true).score(X_test, y_test), error_of(counted, T)
    if name == "labels as they are":
        return 100 * model.fit(X, y_noisy).score(X_test, y_test), float("nan")
    if name == "CleanLearning":
        from cleanlab.classification import CleanLearning

        cleaned = CleanLearning(model, seed=0)
        cleaned.fit(X, y_noisy)
        return 100 * cleaned.score(X_test, y_test), error_of(cleaned.noise_matrix.T, T)
    rates: Any = TransitionMatrix(T) if name == "T known" else "auto"
    weighting: Any = "rho" if name.endswith("beta") else "auto"
    clf = ImportanceReweightingClassifier(
        model, noise_rates=rates, weighting=weighting, random_state=0
    )
    clf.fit(X, y_noisy)
    return 100 * clf.score(X_test, y_test), error_of(clf.transition_matrix_, T)


def error_of(found: Array, T: Array) -> float:
    return float(0.5 * np.abs(found - T).sum(axis=1).mean())


def tables() -> Iterator[tuple[str, Array, Array]]:
    """Yield name, rows and labels."""
    folder = os.environ.get("UNFLIP_MANY")
    for path in sorted(Path(folder).glob("*.csv")) if folder else []:
        lines = [line.split(",") for line in path.read_text().split()[1:]]
        X = np.array([line[:-1] for line in lines], dtype=float)
        yield path.stem, X, np.unique([line[-1] for line in lines], return_inverse=True)[1]
    yield "digits", *load_digits(return_X_y=True)


def split(X: Array, y: Array, noise: str, seed: int) -> tuple[Array, ...]:
    """Return rows and noisy labels to train on, others to test on, T, and the true labels."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(y.size)
    train, test = np.split(order, [min(MOST_ROWS, 2 * y.size // 3)])
    test = test[:3000]
    mean, scale = X[train].mean(axis=0), X[train].std(axis=0)
    Z = (X - mean) / np.where(scale > 0, scale, 1)
    n_classes = int(y.max()) + 1
    T = matrix(noise, n_classes, rng)
    y_noisy = flip_labels(y[train], T, random_state=seed, classes=np.arange(n_classes))
    for k in np.setdiff1d(np.arange(n_classes), y_noisy):  # every class has a label
        y_noisy[np.flatnonzero(y[train] == k)[:1]] = k
    return Z[train], y_noisy, Z[test], y[test], T, y[train]


def matrix(noise: str, n_classes: int, rng: np.random.Generator) -> Array:
    if noise == "none":
        return np.eye(n_classes)
    if noise == "symmetric .3":
        return TransitionMatrix.uniform(n_classes, 0.3).matrix
    if noise == "pair .3":
        return TransitionMatrix.pair_flip(n_classes, 0.3).matrix
    rates = rng.uniform(0.1, 0.4, n_classes)
    T = np.diag(1 - rates)
    for k, rate in enumerate(rates):
        T[k, np.arange(n_classes) != k] = rate * rng.dirichlet(np.ones(n_classes - 1))
    return T


def print_simulated(n_rows: int = 20_000) -> None:
    """Print the error of T on Gaussian classes at the corners of a simplex."""
    print("classes  noise         T error")
    for n_classes in (3, 5, 10):
        rng = np.random.default_rng(n_classes)
        y = rng.integers(0, n_classes, n_rows)
        X = 3 * np.eye(n_classes)[y] + rng.normal(size=(n_rows, n_classes))
        for noise in NOISES:
            T = matrix(noise, n_classes, rng)
            rates = ChannelRates(random_state=0).fit(X, flip_labels(y, T, random_state=0))
            error = error_of(rates.transition_matrix_, T)
            print(f"{n_classes:7d}  {noise:12} {error:8.4f}", flush=True)


if __name__ == "__main__":
    main()
