"""The command line on a table of mixed columns whose labels are partly wrong."""

import json

import pytest
from typer.testing import CliRunner

from tests.cli.mixed import COLUMNS, mixed_table
from unflip.cli import app


@pytest.fixture
def run():
    runner = CliRunner()
    return lambda *arguments: runner.invoke(
        app, [str(argument) for argument in arguments], env={"COLUMNS": "100"}
    )


@pytest.fixture(scope="session")
def noisy(tmp_path_factory):
    """Return a CSV file with the columns churn, 18 % of it wrong, and truth."""
    return _flipped(mixed_table(), tmp_path_factory.mktemp("tables"))


@pytest.fixture(scope="session")
def small(tmp_path_factory):
    """Return such a file of few rows, where it does not matter what is learnt from them."""
    return _flipped(mixed_table(120), tmp_path_factory.mktemp("small"))


def _flipped(table, folder):
    clean, path = folder / "clean.csv", folder / "noisy.csv"
    table.write_csv(clean)
    flip = ["flip", clean, "--label", "churn", "--rates", "0.3,0.1", "--out", path]
    result = CliRunner().invoke(app, [*map(str, flip), "--truth", "truth"])
    assert result.exit_code == 0, result.output
    return path


@pytest.fixture(scope="session")
def estimated(noisy):
    """Return what `unflip estimate --json` says of the table, estimated once."""
    result = CliRunner().invoke(app, ["estimate", str(noisy), *COLUMNS, "--json"])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.fixture(scope="session")
def model(noisy):
    """Return the file of a model that was trained on it."""
    path = noisy.parent / "model.skops"
    fit = ["fit", noisy, "--label", "churn", "--id", "customer", "--drop", "truth", "--out", path]
    result = CliRunner().invoke(app, [*map(str, fit), "--rates", "0.3,0.1"])
    assert result.exit_code == 0, result.output
    return path
