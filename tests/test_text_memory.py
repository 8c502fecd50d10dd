"""One long text does not make every other text take its room."""

import tracemalloc

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from unflip import LabelAudit, NoiseRates, flip_labels, noise_by_slice
from unflip.cli import app

RATES = NoiseRates(positive=0.1, negative=0.1)
LONG = "word " * 200_000
"""1 MB, which takes 4 MB in numpy's own strings, and so does every text in the same array."""

ALLOWED = 100 * 2**20


@pytest.fixture
def peak():
    """Return what measures the most bytes that a call takes."""

    def measure(call):
        tracemalloc.start()
        try:
            call()
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    return measure


@pytest.fixture
def table():
    """Return 100 rows, one of which has a text of 1 MB, and labels."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 100)
    texts = [f"{('late', 'fine')[k]} {n}" for n, k in enumerate(y)]
    return pl.DataFrame({"x": rng.normal(2 * y, 1), "note": [LONG, *texts[1:]]}), y


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("command", ["audit", "report", "fit"])
def test_commands_on_a_long_cell(peak, table, tmp_path, command):
    path, out = tmp_path / "table.csv", tmp_path / ("out.html" if command == "report" else "o.csv")
    table[0].with_columns(label=table[1]).write_csv(path)
    words = [command, path, "--label", "label", "--rates", "0.1,0.1", "--out", out]
    runs = []
    assert peak(lambda: runs.append(CliRunner().invoke(app, [*map(str, words)]))) < ALLOWED
    assert runs[0].exit_code == 0, runs[0].output


@pytest.mark.filterwarnings("ignore")
def test_an_audit_of_a_long_cell(peak, table):
    X, y = table
    assert peak(lambda: LabelAudit(noise_rates=RATES, random_state=0).fit(X, y)) < ALLOWED


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", [list, np.array, pl.Series])
def test_slices_by_a_long_cell(peak, table, kind):
    X, y = table
    plans = ["a", "b", "c", "b"] * 25
    plans[0] = LONG
    by = np.array(plans, dtype=object) if kind is np.array else kind(plans)
    found = []
    assert peak(lambda: found.append(noise_by_slice(X["x"].to_frame(), y, by=by))) < ALLOWED
    assert len(found[0].slices) == 4


def test_a_long_label(peak):
    y = ["n" * 10_000] + ["yes"] * 30_000
    found = []
    assert peak(lambda: found.append(flip_labels(y, RATES, random_state=0))) < ALLOWED
    assert set(found[0]) == set(y)
