"""Weights beta or soft labels: which makes the better classifier, on tables with known truth.

`python -m benchmarks.weighting [--classes 2 3 5 10] [--seeds 1]`: families and random flips of
`benchmarks.multiclass_worlds`, 1000 rows to train on and 2000 clean ones to test on. One fit of the
channel gives both: beta to the rows, and every class by P(true | x, label). Printed are accuracies
in per cent, and the difference with its standard error over the cells.
"""

import argparse
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone

from benchmarks.multiclass import MODELS
from benchmarks.multiclass_families import AT_RANDOM, FAMILIES, MulticlassWorld
from unflip import ImportanceReweightingClassifier
from unflip._utils.estimators import fit_soft_labels, fit_weighted
from unflip.weights import LabelPosterior

TRAIN, TEST = 1000, 2000


def accuracies(world: MulticlassWorld) -> list[list[float]]:
    """Return, for every model, the accuracy with labels as they are, with beta and soft labels."""
    X, y, given, _ = world.draw()
    X_test, y_test = X[TRAIN:], y[TRAIN:]
    X, given = X[:TRAIN], given[:TRAIN]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        clf = ImportanceReweightingClassifier().fit(X, given)
        codes = np.searchsorted(clf.classes_, given)
        found = LabelPosterior(clf.noisy_proba_, codes, clf.noise_rates_, clf.classes_)
        scores = []
        for make in MODELS.values():
            plain, weighted, soft = (clone(make()) for _ in range(3))
            plain.fit(X, given)
            fit_weighted(weighted, X, given, found.weights)
            fit_soft_labels(soft, X, found.proba, clf.classes_)
            scores.append([100 * m.score(X_test, y_test) for m in (plain, weighted, soft)])
    return scores


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--classes", type=int, nargs="+", default=[2, 3, 5, 10])
    parser.add_argument("--families", nargs="+", default=list(FAMILIES), choices=list(FAMILIES))
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args(arguments)
    print("classes  model     as they are    beta  relabel  relabel - beta  cells")
    for n_classes in options.classes:
        worlds = [
            MulticlassWorld(family, noise, n_classes, TRAIN + TEST, seed)
            for family in options.families
            for noise in AT_RANDOM
            for seed in range(options.seeds)
        ]
        found: Any = Parallel(options.jobs)(delayed(accuracies)(world) for world in worlds)
        for name, scores in zip(MODELS, np.swapaxes(found, 0, 1), strict=True):
            plain, beta, soft = scores.mean(axis=0)
            gain = scores[:, 2] - scores[:, 1]
            error = gain.std(ddof=1) / np.sqrt(gain.size)
            print(
                f"{n_classes:7d}  {name:9} {plain:11.2f} {beta:7.2f} {soft:8.2f}"
                f" {gain.mean():+8.2f} ± {error:.2f} {gain.size:7d}",
                flush=True,
            )


if __name__ == "__main__":
    main()
