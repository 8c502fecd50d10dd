"""Labels that people got wrong: the audit of a network's probabilities beside cleanlab's scores.

`python -m benchmarks.real` reads `people.npz`, `simulated.npz` and `reviewed.npz` from the folder
`UNFLIP_REAL` (default `../shared/real`) and prints, for every network, the area under the ROC
curve and the average precision with which each score ranks the wrong labels first, the errors said
and there, the range, and the calibration error; of reviewed rows, which are few, by how much unflip
is ahead of the best score, with the standard error of that (rows drawn again, the same for both);
then the same of digits with rows that are none.
Where the folder is absent it says so. `--out docs/benchmarks/real_mistakes.csv` writes the figures
that the page beside cleanlab shows.
"""

import argparse
import os
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.figures import write_figures
from unflip import LabelAudit
from unflip.inspection import mislabel_calibration

Array = NDArray[Any]

SCORES = ("self_confidence", "normalized_margin", "confidence_weighted_entropy")


HEAD = ["labels", "model", "unflip", *(name.replace("_", " ") for name in SCORES)]
HEAD += ["estimated to true errors", "calibration error", "ahead of the best"]

DETERMINED = {"auto": "auto", "True": True, "False": False}
"""Values of `LabelAudit(determined=)`, as written on the command line."""

DRAWS = 1000
"""Times that reviewed rows are drawn again, for the standard error of a difference."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, help="File of the figures, for the page.")
    parser.add_argument("--limit", action="store_true", help="How well junk can be ranked at all.")
    parser.add_argument(
        "--determined", choices=DETERMINED, help="Default: True for people, auto for the others."
    )
    arguments = parser.parse_args()
    # people label images; the other sets have labels flipped at random, digits and texts
    determined = DETERMINED[arguments.determined or "auto"]
    of_people = DETERMINED[arguments.determined or "True"]
    if arguments.limit:
        limit()
        return
    out = arguments.out
    folder = Path(os.environ.get("UNFLIP_REAL", "../shared/real"))
    print(f"{'':26} {'audit':13} self-confidence  margin        entropy        said  range  error")
    rows = []
    if folder.is_dir():
        for name in ("people", "simulated"):
            cases = networks(folder / f"{name}.npz")
            chosen = of_people if name == "people" else determined
            rows += measured(name, cases, determined=chosen)
        rows += reviewed(folder / "reviewed.npz", determined=determined)
    else:
        print(f"no real labels: {folder} is not there (set UNFLIP_REAL)")
    rows += measured("junk", junk(), determined=determined)
    if out is not None:
        write_figures(out, HEAD, rows)


def networks(path: Path) -> Iterator[tuple[str, Array, Array, Array]]:
    """Yield each network's name and probabilities, the given labels and whether they are wrong."""
    data = np.load(path)
    given = data["given"].astype(int)
    for name in data.files:
        if name.startswith("proba_"):
            yield name[6:], scaled(data[name]), given, given != data["true"]


def junk() -> Iterator[tuple[str, Array, Array, Array]]:
    """Yield three models' probabilities of digits; a tenth are none, and labelled at random."""
    X, y = load_digits(return_X_y=True)
    rng = np.random.default_rng(0)
    picked = rng.integers(0, len(X), len(X) // 9)
    rows = np.r_[X, rng.permuted(X[picked], axis=1)]
    given = np.r_[y, rng.integers(0, 10, picked.size)]
    order = rng.permutation(len(rows))
    rows, given, wrong = rows[order], given[order], order >= len(X)
    models = {
        "logistic regression": LogisticRegression(C=0.03, max_iter=300),
        "network": MLPClassifier((64,), early_stopping=True, random_state=0),
        "forest": RandomForestClassifier(200, min_samples_leaf=2, random_state=0),
    }
    for name, model in models.items():
        whole = make_pipeline(StandardScaler(), model)
        yield (
            name,
            cross_val_predict(whole, rows, given, cv=5, method="predict_proba"),
            given,
            wrong,
        )


def limit() -> None:
    """Print how well models rank junk that are taught which labels are wrong, held out ten-fold.

    They see the same probabilities: those of the label and of the likeliest other class, the four
    largest, their mean logarithm, entropy and margin.
    """
    taught = {
        "logistic regression": make_pipeline(StandardScaler(), LogisticRegression(max_iter=500)),
        "extra trees": ExtraTreesClassifier(300, min_samples_leaf=4, random_state=0),
        "forest": RandomForestClassifier(300, min_samples_leaf=4, random_state=0),
    }
    folds = StratifiedKFold(10, shuffle=True, random_state=0)
    found: dict[str, list[list[float]]] = {name: [] for name in taught}
    for _, proba, given, wrong in junk():
        p = np.clip(proba, 1e-6, 1)
        rows = np.arange(given.size)
        own, others = p[rows, given], p.copy()
        others[rows, given] = 0
        next_best, logs = others.max(axis=1), np.log(p)
        parts = [np.log(own), np.log(next_best), -(p * logs).sum(axis=1), own - next_best]
        seen = np.column_stack([*parts, logs.mean(axis=1), np.sort(logs, axis=1)[:, -4:]])
        for name, model in taught.items():
            said = cross_val_predict(model, seen, wrong, cv=folds, method="predict_proba")[:, 1]
            found[name].append([roc_auc_score(wrong, said), average_precision_score(wrong, said)])
    for name, figures in found.items():
        print(f"taught {name:20} {pairs(list(np.mean(figures, axis=0)))}")


def measured(
    title: str, cases: Iterator[tuple[str, Array, Array, Array]], *, determined: Any = "auto"
) -> list[list[str]]:
    table, rows = [], []
    for name, proba, given, wrong in cases:
        audit = audited(proba, given, determined=determined)
        ranks = [audit.mislabel_proba_, *cleanlab_scores(proba, given)]
        figures = [
            f(wrong, rank) for rank in ranks for f in (roc_auc_score, average_precision_score)
        ]
        said = audit.n_errors_ / max(wrong.sum(), 1)
        low, high = audit.label_error_range_
        error = mislabel_calibration(wrong, audit.mislabel_proba_).calibration_error
        inside = "inside" if low <= wrong.mean() <= high else "OUTSIDE"
        table.append(figures)
        rows.append([title, name, *shown(figures), f"{said:.2f}", f"{error:.3f}", ""])
        print(
            f"{title:10} {name:20} {pairs(figures)}  {said:.2f}  {inside}  {error:.3f}", flush=True
        )
    means = list(np.mean(table, axis=0))
    print(f"{title:10} {'mean':20} {pairs(means)}")
    return [*rows, [title, "mean", *shown(means), "", "", ""]]


def reviewed(path: Path, *, determined: Any = "auto") -> list[list[str]]:
    """Print how well rows are ranked that five people judged: guessed or neither beats given."""
    data, table = np.load(path), []
    for name in ("mnist", "cifar10", "20news"):
        keys = {
            part: next(k for k in data.files if k.startswith(name) and part in k)
            for part in ("prob", "given")
        }
        proba, given = scaled(data[keys["prob"]]), data[keys["given"]].astype(int)
        rows, votes = data[f"{name}_reviewed"], data[f"{name}_votes"]
        wrong = (votes[:, 1] > votes[:, 0]) | (votes[:, 2] > votes[:, 0])
        audit = audited(proba, given, determined=determined)
        ranks = [audit.mislabel_proba_, *cleanlab_scores(proba, given)]
        few = [rank[rows] for rank in ranks]
        figures = [f(wrong, rank) for rank in few for f in (roc_auc_score, average_precision_score)]
        ahead = " / ".join(
            "{:+.3f} ± {:.3f}".format(*lead(f, wrong, few)).replace("0.", ".")
            for f in (roc_auc_score, average_precision_score)
        )
        lowest = proba[np.arange(given.size), given].argsort().argsort()[rows].max() / given.size
        print(f"{'reviewed':10} {name:20} {pairs(figures)}  {ahead}  lowest {lowest:.1%} of all")
        table.append(["reviewed", name, *shown(figures), "", "", ahead])
    return table


def lead(score: Callable[[Array, Array], float], wrong: Array, ranks: list[Array]) -> Array:
    """Return by how much the first ranking is ahead of the best other one, and its standard error.

    Parameters
    ----------
    score : callable
        Of what is wrong and a ranking.
    wrong : ndarray of shape (n_samples,)
        What is to be ranked first.
    ranks : list of ndarray of shape (n_samples,)
        The rankings.
    """
    best = max(ranks[1:], key=lambda rank: score(wrong, rank))
    rng, found = np.random.default_rng(0), []
    for _ in range(DRAWS):
        drawn = rng.integers(0, wrong.size, wrong.size)
        if 0 < wrong[drawn].sum() < wrong.size:
            found.append(score(wrong[drawn], ranks[0][drawn]) - score(wrong[drawn], best[drawn]))
    return np.array([score(wrong, ranks[0]) - score(wrong, best), np.std(found, ddof=1)])


def audited(proba: Array, given: Array, *, determined: Any = "auto") -> LabelAudit:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return LabelAudit(determined=determined).fit_posterior(proba, given)


def cleanlab_scores(proba: Array, given: Array) -> list[Array]:
    from cleanlab.rank import get_label_quality_scores  # a peer: not needed to draw the page

    return [1 - get_label_quality_scores(given, proba, method=method) for method in SCORES]


def scaled(proba: Array) -> Array:
    double = proba.astype(float)
    return double / double.sum(axis=1, keepdims=True)


def shown(figures: list[float]) -> list[str]:
    """Return each area and precision with three digits, as in .984 / .913."""
    digits = [f"{figure:.3f}".removeprefix("0") for figure in figures]
    return [f"{a} / {b}" for a, b in zip(digits[::2], digits[1::2], strict=True)]


def pairs(figures: list[float]) -> str:
    return "  ".join(f"{a:.4f}/{b:.4f}" for a, b in zip(figures[::2], figures[1::2], strict=True))


if __name__ == "__main__":
    main()
