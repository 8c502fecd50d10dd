"""Which labels are wrong: the audit beside cleanlab's scores, on the same splits.

`python -m benchmarks.audit [--splits 10]` flips the training labels of the six benchmark tables
(`UNFLIP_DATA`) at (0.3, 0.1) and prints the average precision with which each ranks the flipped
rows first, and the expected calibration error of P(mislabelled), which cleanlab does not give; then
that error on simulated data; then, of labels that rules made (the tables by a small tree, and the
comments of `UNFLIP_REAL`, where they are), area under the ROC curve and average precision beside
cleanlab's self-confidence, and the mean area over eight other rules of each table.
"""

import argparse
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from cleanlab.rank import get_label_quality_scores
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.checked import REAL, by_rules, comments
from benchmarks.figures import write_figures
from unflip import NoiseRates, flip_labels
from unflip.audit import LabelAudit
from unflip.datasets import BENCHMARKS
from unflip.inspection import mislabel_calibration
from unflip.paper.experiments._protocol import dataset_table, noisy_split

Array = NDArray[Any]

RATES = NoiseRates(positive=0.3, negative=0.1)
COLUMNS = (
    "table",
    "unflip",
    "rates known",
    "cleanlab",
    "calibration error",
    "calibration error, rates known",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--out", type=Path, help="File of the figures, for the page.")
    options = parser.parse_args()
    splits = range(options.splits)
    print(f"{'':14} average precision          calibration error")
    print(f"{'':14} audit   known  cleanlab   audit   known")
    rows = []
    for dataset in BENCHMARKS:
        measured = np.mean([one_split(dataset, split) for split in splits], axis=0)
        rows.append(measured)
        print(f"{dataset:14} " + "   ".join(f"{value:.3f}" for value in measured), flush=True)
    rows.append(np.mean(rows, axis=0))
    print(f"{'mean':14} " + "   ".join(f"{value:.3f}" for value in rows[-1]))
    if options.out:
        named = zip([*BENCHMARKS, "mean"], rows, strict=True)
        cells = [[name, *(f"{value:.3f}" for value in row)] for name, row in named]
        write_figures(options.out, COLUMNS, cells)
    print("\nsimulated, 20 000 rows, calibration error: audit, known rates")
    for distance in (1.5, 2.0, 3.0):
        print(f"distance {distance}: " + ", ".join(f"{v:.3f}" for v in simulated(distance)))
    print("\nlabels by rules  wrong  audit          self-confidence")
    for name, X, given, true, *_ in (*by_rules(), *(comments() if REAL.is_dir() else ())):
        wrong, ranks = given != true, (audited(X, given, "auto", 0), doubted(X, given))
        figures = [
            f"{roc_auc_score(wrong, rank):.3f} / {average_precision_score(wrong, rank):.3f}"
            for rank in ranks
        ]
        print(f"{name:14} {wrong.mean():.3f}  " + "  ".join(figures), flush=True)
    other_rules()


def other_rules(seeds: Sequence[int] = range(11, 19)) -> None:
    """Print the mean areas over other rules: one rule for each table says little.

    Parameters
    ----------
    seeds : sequence of int, default=range(11, 19)
        What draws the columns that the rules see.
    """
    areas = np.array(
        [
            [
                roc_auc_score(given != true, rank)
                for rank in (audited(X, given, "auto", 0), doubted(X, given))
            ]
            for seed in seeds
            for _, X, given, true, *_ in by_rules(seed=seed)
        ]
    )
    ahead = areas[:, 0] - areas[:, 1]
    error = ahead.std(ddof=1) / np.sqrt(len(ahead))
    means = "          ".join(f"{area:.3f}" for area in areas.mean(axis=0))
    lead = f"ahead by {ahead.mean():+.3f} ± {error:.3f}"
    print(f"{len(areas)} other rules          {means}         {lead}")


def one_split(dataset: str, split: int) -> list[float]:
    X, y_noisy, _, _, _ = noisy_split(dataset, *RATES.both(), split)
    _, y = dataset_table(dataset, split)
    order = np.random.RandomState(split).permutation(len(y))[: len(y_noisy)]
    wrong = y[order] != y_noisy
    audit, known = audited(X, y_noisy, "auto", split), audited(X, y_noisy, RATES, split)
    scores = audit, known, doubted(X, y_noisy)
    return [
        *(average_precision_score(wrong, score) for score in scores),
        *(mislabel_calibration(wrong, score).calibration_error for score in (audit, known)),
    ]


def doubted(X: Array, y_noisy: Array) -> Array:
    """Return 1 - cleanlab's self-confidence, by logistic regression."""
    model = make_pipeline(StandardScaler(), LogisticRegression())
    held_out = cross_val_predict(model, X, y_noisy, cv=5, method="predict_proba")
    return np.asarray(1 - get_label_quality_scores((y_noisy == 1).astype(int), held_out))


def simulated(distance: float) -> list[float]:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 20_000)
    X = rng.normal(distance / np.sqrt(2) * y[:, None], 1.0, (y.size, 2))
    y_noisy = np.asarray(flip_labels(y, RATES, random_state=0))
    scores = [audited(X, y_noisy, rates, 0) for rates in ("auto", RATES)]
    return [mislabel_calibration(y_noisy != y, score).calibration_error for score in scores]


def audited(X: Array, y_noisy: Array, rates: Any, seed: int) -> Array:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return LabelAudit(noise_rates=rates, random_state=seed).fit(X, y_noisy).mislabel_proba_


if __name__ == "__main__":
    main()
