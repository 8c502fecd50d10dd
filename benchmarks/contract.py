"""What can be put in, and what comes out: unflip's classifier beside cleanlab's.

`python -m benchmarks.contract` counts how many of scikit-learn's own estimator checks each passes,
tries four kinds of labels, and prints the rates that each finds where the labels are clean and the
classes overlap.
"""

import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
from cleanlab.classification import CleanLearning
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import check_estimator

from unflip import ImportanceReweightingClassifier

CONTENDERS: dict[str, Callable[[], Any]] = {
    "unflip": ImportanceReweightingClassifier,
    "cleanlab": lambda: CleanLearning(LogisticRegression(), seed=0),
}
LABELS = {
    "0, 1": np.array([0, 1]),
    "-1, 1": np.array([-1, 1]),
    "1, 3": np.array([1, 3]),
    "no, yes": np.array(["no", "yes"]),
}


def main() -> None:
    warnings.simplefilter("ignore")
    print("scikit-learn's checks: passed, failed, skipped")
    for name, make in CONTENDERS.items():
        status = Counter(
            result["status"] for result in check_estimator(make(), on_fail=None, on_skip=None)
        )
        print(f"  {name:9} {status['passed']:4d} {status['failed']:4d} {status['skipped']:4d}")
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 2000)
    X = rng.normal(2 * y[:, None], 1.0, (2000, 1))
    print("labels that are taken")
    for name, make in CONTENDERS.items():
        taken = [kind for kind, values in LABELS.items() if takes(make(), X, values[y])]
        print(f"  {name:9} {'; '.join(taken)}")
    print("rates found, clean labels, two Gaussians at distance 2")
    for name, make in CONTENDERS.items():
        print("  {:9} {:.3f} {:.3f}".format(name, *rates_of(make().fit(X, y))))


def takes(model: Any, X: Any, labels: Any) -> bool:
    try:
        model.fit(X, labels)
    except (TypeError, ValueError, IndexError):
        return False
    return True


def rates_of(model: Any) -> tuple[float, float]:
    """Return (rho_pos, rho_neg)."""
    if hasattr(model, "noise_rates_"):
        return model.noise_rates_.both()
    matrix = model.noise_matrix  # P(noisy | true), by columns
    return float(matrix[0, 1]), float(matrix[1, 0])


if __name__ == "__main__":
    main()
