"""IW of the paper's figure 1, part by part: the posterior, the rates, the weights.

`python -m benchmarks.figure1_parts [--draws 100] [--out parts.csv]`: the figure's synthetic data,
logistic loss, at the two pairs of rates that differ, as many draws as asked for, each scored on
20 000 clean rows. A row of the table takes P(noisy y | x) and the rates from the truth or from an
estimate; UB knows the rates and needs no posterior.
"""

import argparse
import csv
import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.figures import write_figures
from unflip import ImportanceReweightingClassifier, NoiseRates, flip_labels, importance_weights
from unflip._utils.estimators import clone_seeded
from unflip.baselines import UnbiasedLossClassifier
from unflip.datasets import make_separable
from unflip.learners import LinearClassifier
from unflip.noise_rates import MinimumRates
from unflip.paper import eiw

ALPHA, TRAIN, TEST = 0.001, 750, 20_000
PAIRS = (NoiseRates(0.3, 0.1), NoiseRates(0.1, 0.3))
COLUMNS = ("P(noisy y | x)", "rates", "accuracy", "IW - UB", "standard error", "error of P")
Draw = tuple[Any, Any, Any, NoiseRates, int]


def true_posterior(draw: Draw) -> Any:
    """Return P(noisy y | x): rho_neg or 1 - rho_pos, as the classes do not overlap."""
    _, y, _, rates, _ = draw
    positive = rates.noisy_posterior((y == 1).astype(float))
    return np.column_stack([1 - positive, positive])


def kliep_posterior(draw: Draw) -> Any:
    """Return the paper's estimate of P(noisy y | x)."""
    X, _, noisy, _, seed = draw
    posterior: Any = clone_seeded(eiw().posterior, seed)
    return posterior.fit_predict_proba(X, noisy)


def channel_posterior(draw: Draw) -> Any:
    """Return the library's own estimate, which is told the rates."""
    X, _, noisy, rates, seed = draw
    clf = ImportanceReweightingClassifier(noise_rates=rates, random_state=seed)
    return clf.fit(X, noisy).noisy_proba_


POSTERIORS: dict[str, Callable[[Draw], Any]] = {
    "true": true_posterior,
    "KLIEP, as in the paper": kliep_posterior,
    "the noisy channel": channel_posterior,
}


def accuracies(rates: NoiseRates, seed: int) -> dict[tuple[str, str], tuple[float, float]]:
    """Return the accuracy in per cent, and the error of P, of every row of the table."""
    X, y = make_separable(TRAIN, 2, random_state=seed)
    X_test, y_test = make_separable(TEST, 2, random_state=10_000 + seed)
    X, X_test = 2 * X - 1, 2 * X_test - 1
    noisy = np.asarray(flip_labels(y, rates, random_state=seed))
    draw = (X, y, noisy, rates, seed)
    truth = true_posterior(draw)

    def score(model: Any, **weights: Any) -> float:
        return 100 * float(np.mean(model.fit(X, noisy, **weights).predict(X_test) == y_test))

    found = {
        ("labels as they are", "-"): (score(LinearClassifier("logistic", alpha=ALPHA)), np.nan),
        ("UB", "true"): (
            score(UnbiasedLossClassifier("logistic", rates, learner=LinearClassifier(alpha=ALPHA))),
            np.nan,
        ),
    }
    for name, estimate in POSTERIORS.items():
        proba = estimate(draw)
        error = float(np.mean(np.abs(proba[:, 1] - truth[:, 1])))
        estimated = MinimumRates().fit_posterior(proba, noisy).rates_
        for kind, used in {"true": rates, "its minimum": estimated}.items():
            if (name, kind) == ("true", "its minimum"):
                continue  # the minimum of the true posterior is the true rates
            given = proba[np.arange(TRAIN), (noisy == 1).astype(int)]
            beta = importance_weights(given, noisy, used)
            model = LinearClassifier("logistic", alpha=ALPHA)
            found[name, kind] = (score(model, sample_weight=beta), error)
    return found


def table(draws: int) -> list[list[str]]:
    """Return the rows of the table, averaged over pairs of rates and draws."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the published estimates leave their range
        runs = [accuracies(rates, seed) for rates in PAIRS for seed in range(draws)]
    rows = []
    for key in runs[0]:
        mean = np.mean([run[key][0] for run in runs])
        difference = np.array([run[key][0] - run["UB", "true"][0] for run in runs])
        spread = difference.std(ddof=1) / np.sqrt(len(runs))
        error = np.mean([run[key][1] for run in runs])
        numbers = (f"{mean:.2f}", f"{difference.mean():+.2f}", f"{spread:.2f}", f"{error:.3f}")
        rows.append([*key, *("-" if number == "nan" else number for number in numbers)])
    return rows


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=100)
    parser.add_argument("--out", type=Path, help="also write the table as CSV")
    options = parser.parse_args(arguments)
    rows = table(options.draws)
    csv.writer(sys.stdout).writerows([COLUMNS, *rows])
    if options.out:
        write_figures(options.out, COLUMNS, rows)


if __name__ == "__main__":
    main()
