"""Choosing parameters on noisy labels: by their accuracy, or by the estimate of the clean one.

`python -m benchmarks.scorer [--splits 10]`: on the six benchmark tables (`UNFLIP_DATA`) with the
rates (0, 0.4), a grid search by fivefold cross-validation on the noisy training labels, scored by
"accuracy" and by `make_clean_scorer("accuracy", rates)`; printed is the accuracy of what either
chose on clean test labels.
"""

import argparse
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from unflip import NoiseRates
from unflip.datasets import BENCHMARKS
from unflip.metrics import make_clean_scorer
from unflip.paper.experiments._protocol import noisy_split

RATES = NoiseRates(positive=0.0, negative=0.4)

SEARCHES: dict[str, tuple[Any, dict[str, Any]]] = {
    "logistic regression, C": (
        make_pipeline(StandardScaler(), LogisticRegression(max_iter=300)),
        {"logisticregression__C": np.logspace(-3, 2, 6)},
    ),
    "support vectors, C and width": (
        make_pipeline(StandardScaler(), SVC()),
        {"svc__C": [0.1, 1, 10], "svc__gamma": [0.01, 0.05, 0.2]},
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--splits", type=int, default=10)
    splits = range(parser.parse_args().splits)
    for name, (model, grid) in SEARCHES.items():
        print(f"{name:30} by noisy accuracy   by clean accuracy")
        better = 0
        for dataset in BENCHMARKS:
            scores = 100 * np.mean([chosen(model, grid, dataset, s) for s in splits], axis=0)
            better += int(scores[1] > scores[0])
            print(f"  {dataset:28} {scores[0]:17.1f} {scores[1]:19.1f}", flush=True)
        print(f"  the clean score chooses better on {better} of {len(BENCHMARKS)}\n")


def chosen(model: Any, grid: dict[str, Any], dataset: str, split: int) -> list[float]:
    """Return the clean test accuracies of what the two scores choose."""
    X, y_noisy, X_test, y_test, _ = noisy_split(dataset, *RATES.both(), split)
    scoring = {"noisy": "accuracy", "clean": make_clean_scorer("accuracy", RATES)}
    folds = StratifiedKFold(5, shuffle=True, random_state=split)
    search = GridSearchCV(model, grid, scoring=scoring, refit=False, cv=folds).fit(X, y_noisy)
    scores = []
    for name in scoring:
        best = search.cv_results_["params"][np.argmax(search.cv_results_[f"mean_test_{name}"])]
        scores.append(clone(model).set_params(**best).fit(X, y_noisy).score(X_test, y_test))
    return scores


if __name__ == "__main__":
    main()
