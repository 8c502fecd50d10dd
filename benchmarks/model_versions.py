"""Model files between versions of scikit-learn, and how long predicting with a file takes.

`python -m benchmarks.model_versions` makes an environment with the oldest scikit-learn that unflip
takes and one with the newest, fits models of each kind in one, predicts in both, and prints the
largest difference of a probability (for `svm`, which has none, the share of other labels). Then it
prints the size of a file and the seconds of loading it and predicting, for two sizes of tables.
"""

import argparse
import os
import subprocess
import tempfile
import time
import tomllib
import venv
from pathlib import Path

import numpy as np
import polars as pl

from benchmarks.harness import ROOT
from unflip import NoiseRates
from unflip._app.persistence import load_model, save_model
from unflip._app.tables import kind_of, split_label
from unflip._app.workflow import learn, make_estimator

VERSIONS = ("scikit-learn==1.6.1", "scikit-learn")
"""The oldest that unflip takes, and the newest."""

KINDS = ("logistic", "boosting", "svm")

SIZES = ((400, 7), (40_000, 20))
"""Rows and columns of the tables for which the time is measured."""


def environment(folder: Path, requirement: str) -> Path:
    """Return the interpreter of a new environment with what the commands need."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = [*project["dependencies"], *project["optional-dependencies"]["cli"], requirement]
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", *needed], check=True)
    return python


def table(n_rows: int, n_classes: int) -> pl.DataFrame:
    """Return numbers, categories, dates and text, with gaps."""
    rng = np.random.default_rng(0)
    y = np.arange(n_rows) % n_classes
    words = np.array(["late angry refund", "fine good thanks", "where when how"])[y]
    return pl.DataFrame(
        {
            "x": [None, *rng.normal(2 * y, 1)[1:]],
            "plan": rng.choice(["a", "b", "c"], n_rows),
            "since": [f"2020-{1 + k % 12:02}-01" for k in range(n_rows)],
            "note": [f"{text} {k}" for k, text in enumerate(words)],
            "y": [f"class {k}" for k in y],
        }
    )


def unflip(python: Path, *arguments: object) -> None:
    """Run a command in an environment."""
    words = [*map(str, arguments), "--quiet", "--force"]
    command = [str(python), "-W", "ignore", "-m", "unflip", *words]
    here = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(command, env=here, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{arguments[0]} failed: {done.stderr}")


def difference(one: Path, other: Path) -> float:
    """Return the largest difference of a probability, or the share of other labels if larger."""
    a, b = pl.read_csv(one), pl.read_csv(other)
    largest = float((a["predicted"] != b["predicted"]).to_numpy().mean())
    for name in a.columns:
        if name.startswith("probability_"):
            largest = max(largest, float(np.abs(a[name].to_numpy() - b[name].to_numpy()).max()))
    return largest


def compare(folder: Path) -> None:
    """Print how far predictions of the same file are apart in two versions."""
    print("file written with     kind     classes  largest difference")
    pythons = {name: environment(folder / f"venv{k}", name) for k, name in enumerate(VERSIONS)}
    for n_classes in (2, 3):
        rows, model = folder / "rows.csv", folder / "model"
        table(150, n_classes).write_csv(rows)
        rates = ("--rates", "0.1,0.1") if n_classes == 2 else ()
        for kind in KINDS:
            for written, python in pythons.items():
                how = ("--label", "y", "--estimator", kind, "--out", model, *rates)
                unflip(python, "fit", rows, *how)
                outs = [folder / f"{k}.csv" for k in range(len(pythons))]
                for out, reader in zip(outs, pythons.values(), strict=True):
                    unflip(reader, "predict", model, rows, "--out", out)
                print(f"{written:21} {kind:9} {n_classes:6} {difference(*outs):19.1e}", flush=True)


def measure(folder: Path) -> None:
    """Print the size of files and the seconds that they take to predict."""
    print("   rows columns kind       bytes of the file   load [s]   predict [s]")
    rng = np.random.default_rng(0)
    for n_rows, n_columns in SIZES:
        y = np.arange(n_rows) % 2
        X = rng.normal(size=(n_rows, n_columns)) + y[:, None]
        data = split_label(
            pl.DataFrame({f"x{k}": X[:, k] for k in range(n_columns)} | {"y": y}), "y"
        )
        columns = {name: kind_of(data.features[name]) for name in data.features.columns}
        for kind in KINDS if n_rows <= 1000 else KINDS[:2]:  # an svm of many rows fits for minutes
            fitted = learn(data, estimator=make_estimator(kind), rates=NoiseRates(0.1, 0.1)).model
            path = folder / "model"
            save_model(path, fitted, {"label": "y", "columns": columns, "set_aside": []})
            start = time.perf_counter()
            model, _ = load_model(path)
            loaded = time.perf_counter()
            model.predict(model.encode(data.features))
            ended = time.perf_counter()
            print(
                f"{n_rows:7} {n_columns:7} {kind:9} {path.stat().st_size:18,}"
                f" {loaded - start:10.3f} {ended - loaded:13.3f}",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", action="store_true", help="only sizes and seconds")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if not options.sizes:
            compare(Path(folder))
        measure(Path(folder))


if __name__ == "__main__":
    main()
