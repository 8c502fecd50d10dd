"""One number: the error rate of the same table, label and seed through every entry point.

`python -m benchmarks.one_answer` fits 20 tables by the classifier, the audit, `unflip estimate`,
`unflip report`, `unflip review`, streaming and Dask, and prints what each reports. The commands
read the table from a file. Streaming and Dask take the columns as numbers, and weights that the
commands have no option for; a table of text is encoded for them as the classifier encodes it.
"""

import argparse
import json
import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import sparse
from sklearn.datasets import (
    load_breast_cancer,
    load_digits,
    load_iris,
    load_wine,
    make_classification,
    make_moons,
)
from typer.testing import CliRunner

from unflip import ImportanceReweightingClassifier, LabelAudit, TransitionMatrix, flip_labels
from unflip.cli import app
from unflip.streaming import ArrayBatches, StreamingAudit

Array = NDArray[Any]


@dataclass(frozen=True)
class Table:
    """One of the tables: samples, observed labels, and sample weights where there are some."""

    name: str
    X: Any
    y: Array
    weight: Array | None = None


def tables() -> Iterator[Table]:
    """Yield two classes and more, text, sparse and weighted samples, clean and noisy labels."""
    for n_classes in (2, 3, 5):
        X, y = blobs(n_classes, 700)
        yield Table(f"{n_classes} classes, clean", X, y)
        yield Table(f"{n_classes} classes, 20 % wrong", X, noisy(y, 0.2))
    X, y = blobs(2, 300)
    yield Table("small", X, noisy(y, 0.1))
    yield Table("copies", np.repeat(X, 3, axis=0), np.repeat(noisy(y, 0.1), 3))
    X, y = blobs(2, 900, class_sep=0.6)
    yield Table("overlapping", X, noisy(y, 0.1))
    X, y = make_moons(800, noise=0.15, random_state=0)
    yield Table("curved, clean", X, y)
    yield Table("curved, 15 % wrong", X, noisy(y, 0.15))
    weight = np.random.default_rng(0).integers(1, 4, y.size).astype(float)
    yield Table("weighted", X, noisy(y, 0.15), weight)
    X, y = blobs(3, 700)
    yield Table("weighted, 3 classes", X, noisy(y, 0.1), np.resize([1.0, 2.0], y.size))
    rng = np.random.default_rng(0)
    X, y = blobs(2, 800, n_features=30)
    yield Table("sparse", sparse.csr_matrix(np.where(rng.random(X.shape) < 0.7, 0, X)), y)
    y = rng.integers(0, 2, 600)
    words = np.array([["parcel late refund", "love great perfect"][k] for k in y], dtype=object)
    extra = rng.choice(["box", "mail", "shop", "today"], (600, 3))
    text = [f"{' '.join(few)} {said}" for few, said in zip(extra, words, strict=True)]
    yield Table(
        "text", pl.DataFrame({"message": text, "amount": rng.normal(y, 1.0)}), noisy(y, 0.1)
    )
    plan = np.where(rng.random(600) < 0.8, np.array(["basic", "pro"])[y], "trial")
    frame = pl.DataFrame({"plan": plan, "spend": np.where(rng.random(600) < 0.1, np.nan, y + 0.5)})
    yield Table("categories and missing values", frame, noisy(y, 0.15))
    for name, load in (
        ("breast cancer", load_breast_cancer),
        ("iris", load_iris),
        ("wine", load_wine),
        ("digits", load_digits),
    ):
        X, y = load(return_X_y=True)
        yield Table(name, X, noisy(y, 0.1) if name == "digits" else y)


def blobs(n_classes: int, n_samples: int, n_features: int = 6, class_sep: float = 1.5) -> Any:
    """Return Gaussian classes."""
    return make_classification(
        n_samples,
        n_features,
        n_informative=4,
        n_redundant=0,
        n_classes=n_classes,
        n_clusters_per_class=1,
        class_sep=class_sep,
        flip_y=0,
        random_state=n_classes,
    )


def noisy(y: Array, rate: float) -> Array:
    """Return labels of which this share is flipped, to all other classes alike."""
    matrix = TransitionMatrix.uniform(np.unique(y).size, rate)
    return np.asarray(flip_labels(y, matrix, random_state=0))


def answers(table: Table) -> dict[str, float]:
    """Return the error rate by the name of each entry point that takes the table."""
    X, y, weight = table.X, table.y, table.weight
    classifier = ImportanceReweightingClassifier(random_state=0).fit(X, y, weight)
    audit = LabelAudit(random_state=0).fit(X, y, weight)
    found = {
        "classifier": classifier.label_error_rate_,
        "audit": audit.label_error_rate_,
        "mean": float(np.average(audit.mislabel_proba_, weights=weight)),
    }
    encoder = classifier.preprocessing_
    numbers = X if encoder is None else encoder.transform(X)
    found["streaming"] = (
        StreamingAudit(random_state=0)
        .fit(ArrayBatches(numbers, y, weight, batch_rows=250))
        .label_error_rate_
    )
    found["Dask"] = by_dask(numbers, y, weight)
    if weight is None and not sparse.issparse(X):
        found |= by_commands(X, y)
    return found


def by_dask(X: Any, y: Array, weight: Array | None) -> float:
    """Return what Dask reports, in partitions of 250 samples."""
    import dask.array as da

    from unflip.dask import DaskAudit

    dense = X.toarray() if sparse.issparse(X) else np.asarray(X, dtype=float)
    rows, labels = da.from_array(dense, chunks=(250, dense.shape[1])), da.from_array(y, chunks=250)
    own = None if weight is None else da.from_array(weight, chunks=250)
    return float(DaskAudit(random_state=0).fit(rows, labels, sample_weight=own).label_error_rate_)


def by_commands(X: Any, y: Array) -> dict[str, float]:
    """Return what the commands report of the table in a file."""
    from unflip._app.review._queue import Opinion
    from unflip._app.review._table import ReviewTable, RowsOfFile
    from unflip.cli import _options as options

    if not isinstance(X, pl.DataFrame):
        X = pl.DataFrame({f"x{k}": column for k, column in enumerate(np.asarray(X).T)})
    with tempfile.TemporaryDirectory() as folder:
        path, page = Path(folder) / "table.csv", Path(folder) / "page.json"
        X.with_columns(label=pl.Series(y)).write_csv(path)
        here = [str(path), "--label", "label", "--quiet"]
        estimate = CliRunner().invoke(app, ["estimate", *here, "--json"])
        report = CliRunner().invoke(app, ["report", *here, "--out", str(page)])
        if estimate.exit_code or report.exit_code:
            raise RuntimeError(f"{estimate.output}{report.output}")
        source = options.Source(path, "label")
        data = source.read()
        learnt = options.Method().auditor(source, lambda step: None)(data)
        table = ReviewTable(RowsOfFile(data.whole, data.cells), "label")
        opinion = Opinion(learnt.audit(), table)
        return {
            "estimate": json.loads(estimate.stdout)["expected_error_share"],
            "report": json.loads(page.read_text())["summary"]["expected_error_share"],
            "review": float(opinion.errors.sum() / y.size),
        }


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    warnings.simplefilter("ignore")
    worst = 0.0
    for table in tables():
        found = answers(table)
        apart = max(found.values()) - min(found.values())
        worst = max(worst, apart)
        said = "  ".join(f"{name} {value:.4f}" for name, value in found.items())
        print(f"{table.name:30} apart {apart:.1e}   {said}", flush=True)
    print(f"largest difference {worst:.1e}")


if __name__ == "__main__":
    main()
