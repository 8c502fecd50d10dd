"""Three and ten classes: how well T is found, and how much of the accuracy lost comes back.

`python -m benchmarks.multiclass` prints one line per number of classes, noise, rates and
classifier. Every class is a mixture of two Gaussians in ten dimensions; 20 000 rows to train on,
and as many with true labels to test on. P(noisy | x) and the rates are those of "auto".

T error is the mean absolute error of the transition matrix, and gap closed is
(reweighted - noisy) / (clean - noisy), of the accuracies of one classifier trained on the noisy
labels with weights and without, and on the true labels.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

from unflip import TransitionMatrix, flip_labels, importance_weights
from unflip._stages import fit_stages
from unflip._validation import check_labels

Array = NDArray[Any]

N_ROWS = 20_000
N_FEATURES = 10
DISTANCE = {3: 4.5, 10: 5.5}
"""Root mean square distance of two centres, in standard deviations."""


def main() -> None:
    print("classes  noise    rates     T error  classifier  clean  noisy  reweighted  gap closed")
    for n_classes in DISTANCE:
        for line in run(n_classes):
            print(line, flush=True)


def run(n_classes: int) -> Iterator[str]:
    X, y, X_test, y_test = gaussian_mixtures(n_classes, np.random.default_rng(n_classes))
    models = {"logistic": LogisticRegression(), "boosting": boosting()}
    clean = {name: model.fit(X, y).score(X_test, y_test) for name, model in models.items()}
    for kind, noise in {
        "pair": TransitionMatrix.pair_flip(n_classes, 0.3),
        "uniform": TransitionMatrix.uniform(n_classes, 0.3),
    }.items():
        y_noisy = flip_labels(y, noise, random_state=0)
        # what ImportanceReweightingClassifier does, with stage 1 done once for all lines
        labels = check_labels(y_noisy, binary=False)
        stages = fit_stages("auto", "auto", X, labels, random_state=0)
        posterior = stages.noisy_posterior
        matrices = {"known": noise.matrix, "auto": stages.rates.matrix}
        for name, model in models.items():
            noisy = model.fit(X, y_noisy).score(X_test, y_test)
            for rates, matrix in matrices.items():
                weights = importance_weights(posterior, y_noisy, matrix)
                score = model.fit(X, y_noisy, sample_weight=weights).score(X_test, y_test)
                closed = (score - noisy) / (clean[name] - noisy)
                error = np.abs(matrix - noise.matrix).mean()
                yield (
                    f"{n_classes:7d}  {kind:8s} {rates:8s} {error:8.3f}"
                    f"  {name:10s} {clean[name]:6.3f} {noisy:6.3f} {score:11.3f} {closed:11.0%}"
                )


def gaussian_mixtures(
    n_classes: int, rng: np.random.Generator
) -> tuple[Array, Array, Array, Array]:
    """Return rows and labels to train on, and others to test on."""
    centers = rng.normal(size=(n_classes, 2, N_FEATURES))
    centers *= DISTANCE[n_classes] / np.sqrt(2 * N_FEATURES)
    y = rng.integers(0, n_classes, 2 * N_ROWS)
    X = centers[y, rng.integers(0, 2, y.size)] + rng.normal(size=(y.size, N_FEATURES))
    return X[:N_ROWS], y[:N_ROWS], X[N_ROWS:], y[N_ROWS:]


def boosting() -> HistGradientBoostingClassifier:
    return HistGradientBoostingClassifier(
        max_iter=50,
        max_leaf_nodes=15,
        min_samples_leaf=50,
        l2_regularization=1.0,
        early_stopping=False,
        random_state=0,
    )


if __name__ == "__main__":
    main()
