"""The main job on a table that ships with scikit-learn: compute only, `unflip demo` prints it."""

from dataclasses import dataclass

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from unflip._utils.progress import tick, work
from unflip._utils.warning import silenced
from unflip.noise import NoiseRates, as_transition_matrix, flip_labels
from unflip.reweighting import ImportanceReweightingClassifier


@dataclass(frozen=True)
class DemoResult:
    """Rates and accuracies on clean test labels, averaged over splits."""

    true_rates: NoiseRates
    estimated_rates: NoiseRates
    labels_as_they_are: float
    reweighted: float
    clean_labels: float
    n_rows: int
    n_splits: int


def run_demo(rates: NoiseRates, *, n_splits: int = 10, random_state: int | None = 0) -> DemoResult:
    """Flip the training labels of the breast-cancer table and learn from them in three ways."""
    bunch = load_breast_cancer()
    X, y = bunch.data, bunch.target_names[bunch.target]
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    reweighted = ImportanceReweightingClassifier(model)
    generator = np.random.RandomState(random_state)
    estimates, scores = [], []
    with work(n_splits):
        for _ in range(n_splits):
            X_train, X_test, y_train, y_test = train_test_split(
                X, y, stratify=y, random_state=generator
            )
            y_noisy = flip_labels(y_train, rates, random_state=generator)
            with silenced():  # the mean over the splits is shown, and no single fit
                reweighted.fit(X_train, y_noisy)
            estimates.append(as_transition_matrix(reweighted.noise_rates_).rates.both())
            scores.append(
                (
                    model.fit(X_train, y_noisy).score(X_test, y_test),
                    reweighted.score(X_test, y_test),
                    model.fit(X_train, y_train).score(X_test, y_test),
                )
            )
            tick()
    positive, negative = np.mean(estimates, axis=0)
    plain, ours, clean = np.mean(scores, axis=0)
    return DemoResult(
        true_rates=rates,
        estimated_rates=NoiseRates(positive=positive, negative=negative),
        labels_as_they_are=float(plain),
        reweighted=float(ours),
        clean_labels=float(clean),
        n_rows=len(y),
        n_splits=n_splits,
    )
