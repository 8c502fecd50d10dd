"""The command line: what it prints, and how it refuses."""

import json
import re

import pytest
from typer.testing import CliRunner

from unflip import NoiseRates, __version__
from unflip.cli import app
from unflip.demo import run_demo


@pytest.fixture
def run():
    runner = CliRunner()
    return lambda *arguments: runner.invoke(app, arguments, env={"COLUMNS": "100"})


def test_demo_prints_rates_and_three_accuracies_that_rise(run):
    result = run("demo")
    assert result.exit_code == 0
    assert "positive (benign)" in result.output
    accuracies = [float(figure) for figure in re.findall(r"([\d.]+)%", result.output)[-3:]]
    assert len(accuracies) == 3
    as_they_are, reweighted, clean = accuracies
    assert as_they_are < reweighted < clean


def test_demo_as_json_is_what_the_function_returns(run):
    result = run("demo", "--json", "--rates", "0.2,0.2", "--seed", "3")
    assert result.exit_code == 0
    printed = json.loads(result.output)
    expected = run_demo(NoiseRates(0.2, 0.2), random_state=3)
    assert printed["reweighted"] == expected.reweighted
    assert printed["true_rates"] == {"positive": 0.2, "negative": 0.2}


@pytest.mark.parametrize("rates", ["0.5,0.6", "0.3", "a,b", "0.1,0.2,0.3"])
def test_bad_rates_are_bad_usage(run, rates):
    result = run("demo", "--rates", rates)
    assert result.exit_code == 2
    assert f"--rates '{rates}'" in result.stderr


def test_version(run):
    assert run("--version").output.strip() == f"unflip {__version__}"
