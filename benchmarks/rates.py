"""How far off the estimated rates are, and what reweighting with them gives.

`python -m benchmarks.rates [--splits 10]` runs the six benchmark tables (`UNFLIP_DATA`) with five
noises: every way to get the rates sees the same splits and flips. The accuracy is that of logistic
regression (or `--estimator boosting`) on clean test labels: trained on noisy labels as they are,
reweighted, or cleaned by cleanlab.
"""

import argparse
import warnings
from collections import defaultdict
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.figures import write_figures
from unflip import ImportanceReweightingClassifier, NoiseRates
from unflip.datasets import BENCHMARKS
from unflip.paper import eiw
from unflip.paper.experiments._protocol import noisy_split

Array = NDArray[Any]

COLUMNS = (
    "method",
    "error of rates",
    "error if clean",
    "accuracy",
    "accuracy if clean",
    "worst loss",
)

PAIRS = ((0.0, 0.4), (0.1, 0.3), (0.2, 0.2), (0.3, 0.1), (0.4, 0.4))
CLEAN = (0.0, 0.0)


ESTIMATORS: dict[str, Callable[[], Any]] = {
    "logistic": lambda: make_pipeline(StandardScaler(), LogisticRegression()),
    "boosting": lambda: HistGradientBoostingClassifier(random_state=0),
}


def reweighted(**choices: Any) -> Callable[[Any, NoiseRates, int], Any]:
    return lambda model, true, seed: ImportanceReweightingClassifier(
        model, random_state=seed, **choices
    )


class CleanLearning:
    """cleanlab's, which takes labels 0 and 1 only."""

    def __init__(self, model: Any, true: NoiseRates, seed: int) -> None:
        from cleanlab.classification import CleanLearning

        self.wrapped = CleanLearning(model, seed=seed)

    def fit(self, X: Array, y: Array) -> None:
        """Train, and keep the rates."""
        self.wrapped.fit(X, (y == 1).astype(int))
        matrix = self.wrapped.noise_matrix  # P(noisy | true), by columns
        # its rates may sum to more than one, which NoiseRates would refuse
        self.noise_rates_ = SimpleNamespace(both=lambda: (matrix[0, 1], matrix[1, 0]))

    def score(self, X: Array, y: Array) -> float:
        """Return the accuracy."""
        return float(self.wrapped.score(X, (y == 1).astype(int)))


METHODS: dict[str, Callable[[Any, NoiseRates, int], Any]] = {
    "labels as they are": lambda model, true, seed: model,
    "known rates": lambda model, true, seed: ImportanceReweightingClassifier(
        model, noise_rates=true, random_state=seed
    ),
    "auto": reweighted(),
    "quantile": reweighted(noise_rates="quantile"),
    "selective": reweighted(noise_rates="selective", cv=5),
    "best_bin": reweighted(noise_rates="best_bin", cv=5),
    "scott": reweighted(noise_rates="scott", cv=5),
    "confident joint": reweighted(noise_rates="confident_joint", cv=5),
    "the paper's eIW": lambda model, true, seed: eiw(model, random_state=seed),
    "cleanlab": CleanLearning,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--first", type=int, default=0, help="first split, to keep some unseen")
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--estimator", default="logistic", choices=ESTIMATORS)
    parser.add_argument("--out", type=Path, help="File of the figures, for the page.")
    options = parser.parse_args()
    names = options.methods.split(",")
    if "cleanlab" in names and find_spec("cleanlab") is None:
        print("cleanlab is not installed, and is left out")
        names.remove("cleanlab")
    splits = range(options.first, options.first + options.splits)
    errors: dict[tuple[str, str, tuple[float, float]], list[float]] = defaultdict(list)
    scores: dict[tuple[str, str, tuple[float, float]], list[float]] = defaultdict(list)
    for dataset in BENCHMARKS:
        for pair in (*PAIRS, CLEAN):
            for split in splits:
                X, y_noisy, X_test, y_test, _ = noisy_split(dataset, *pair, split)
                for name in names:
                    model = ESTIMATORS[options.estimator]()
                    fitted = METHODS[name](model, NoiseRates(*pair), split)
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        fitted.fit(X, y_noisy)
                    scores[name, dataset, pair].append(100 * fitted.score(X_test, y_test))
                    if hasattr(fitted, "noise_rates_"):
                        found = np.array(fitted.noise_rates_.both())
                        errors[name, dataset, pair].append(float(np.abs(found - pair).mean()))
        print(f"{dataset} done", flush=True)
    print_tables(names, errors, scores)
    if options.out:
        write_figures(options.out, COLUMNS, figures(names, errors, scores))


def figures(names: list[str], errors: Any, scores: Any) -> list[list[str]]:
    """Return for each method errors and accuracies, with noise and without, and the worst loss."""
    rows = []
    for name in names:
        row = [name]
        for values, digits in ((errors, 3), (scores, 1)):
            for pairs in (PAIRS, (CLEAN,)):
                cells = [values[name, d, pair] for d in BENCHMARKS for pair in pairs]
                known = all(cells)
                row.append(f"{np.mean([np.mean(c) for c in cells]):.{digits}f}" if known else "")
        rows.append([*row, f"{worst(name, scores, scores, names):.1f}"])
    return rows


def print_tables(names: list[str], errors: Any, scores: Any) -> None:
    heads = " ".join(f"{dataset[:9]:>9}" for dataset in BENCHMARKS)
    for title, values, width in (
        ("mean absolute error of the rates", errors, 3),
        ("accuracy", scores, 1),
    ):
        print(f"\n{title}\n{'':20} {heads} {'all':>9} {'clean':>9} {'worst':>9}")
        for name in names:
            if not any(key[0] == name for key in values):
                continue
            by_set = [
                np.mean([np.mean(values[name, d, pair]) for pair in PAIRS]) for d in BENCHMARKS
            ]
            clean = np.mean([np.mean(values[name, d, CLEAN]) for d in BENCHMARKS])
            row = [*by_set, np.mean(by_set), clean, worst(name, values, scores, names)]
            print(f"{name:20} " + " ".join(f"{value:9.{width}f}" for value in row))
    print(
        "\nworst: the largest cell error; for accuracy, the largest loss against labels as they are"
    )


def worst(name: str, values: Any, scores: Any, names: list[str]) -> float:
    """Return the largest error of a cell, or the least gain over labels as they are."""
    cells = [(dataset, pair) for dataset in BENCHMARKS for pair in PAIRS]
    if values is not scores:
        return float(max(np.mean(values[name, *cell]) for cell in cells))
    if "labels as they are" not in names:
        return float("nan")
    return float(
        min(
            np.mean(values[name, *cell]) - np.mean(values["labels as they are", *cell])
            for cell in cells
        )
    )


if __name__ == "__main__":
    main()
