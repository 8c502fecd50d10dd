"""The command line: what it prints, and how it refuses."""

import csv
import json
import re
import sys

import pytest
from typer.testing import CliRunner

from unflip import __version__
from unflip.cli import app
from unflip.paper.experiments import EXPERIMENTS, Outcome, planned_runs

COMMAND = "unflip.cli._reproduce"
RUNS = "unflip.paper.experiments._run"
"""Modules in which tests take the place of what takes long, or is not there."""


@pytest.fixture
def run():
    runner = CliRunner()
    return lambda *arguments: runner.invoke(app, arguments, env={"COLUMNS": "100"})


def test_demo_prints_rates_and_three_accuracies_that_rise(run):
    result = run("demo")
    assert result.exit_code == 0
    # the greater label, as in every command
    assert "positive (malignant)" in result.output
    accuracies = [float(figure) for figure in re.findall(r"([\d.]+)%", result.output)[-3:]]
    assert len(accuracies) == 3
    as_they_are, reweighted, clean = accuracies
    assert as_they_are < reweighted < clean


@pytest.mark.parametrize("rates", ["0.5,0.6", "0.3", "a,b", "0.1,0.2,0.3"])
def test_bad_rates_are_bad_usage(run, rates):
    result = run("demo", "--rates", rates)
    assert result.exit_code == 2
    assert f"--rates '{rates}'" in result.stderr


def test_version(run):
    assert run("--version").output.strip() == f"unflip {__version__}"


class Calls(list):
    """The runs that were asked for; at so many of them the user interrupts."""

    interrupted_at = None


@pytest.fixture
def performed(monkeypatch):
    """Let `reproduce` perform nothing, and list the runs it asked for."""
    calls = Calls()

    def fake(run):
        if len(calls) == calls.interrupted_at:
            raise KeyboardInterrupt
        calls.append(run)
        return Outcome(70.0 + run.repeat, run.rho_pos, run.rho_neg, 0.25)

    monkeypatch.setattr(f"{RUNS}.perform", fake)
    return calls


@pytest.fixture
def reproduce(run, tmp_path):
    """Run `unflip reproduce` in one process and into a folder of the test's own."""
    usual = {"--jobs": "1", "--out": str(tmp_path)}

    def reproduce(*arguments):
        left = [part for pair in usual.items() if pair[0] not in arguments for part in pair]
        return run("reproduce", *left, *arguments)

    return reproduce


TABLE_1_FILES = {"runs.jsonl", "results.csv", "results.json", "reproduction.md", "index.html"}


def test_reproduce_writes_its_files_and_prints_ours_beside_the_papers(
    reproduce, performed, tmp_path
):
    result = reproduce("table1", "--repeats", "2")
    assert result.exit_code == 0, result.output
    assert {path.name for path in tmp_path.iterdir()} == TABLE_1_FILES
    assert len(performed) == 36
    assert "Table 1: noise rates, synthetic data" in result.stdout
    assert "0.100, 0.300" in result.stdout
    assert "(0.125," in result.stdout  # the paper's, by the minimum, at (0.1, 0.3)
    assert "36/36" in result.stdout
    assert "`unflip reproduce table1 --repeats 2`" in (tmp_path / "reproduction.md").read_text(
        encoding="utf-8"
    )


def test_reproduce_measures_what_it_prints(reproduce, monkeypatch, tmp_path):
    pytest.importorskip("matplotlib")

    def cheap(names, repeats, **options):
        return (r for r in planned_runs(names, repeats, **options) if r.method in ("plain", "ld"))

    monkeypatch.setattr(f"{COMMAND}.planned_runs", cheap)
    result = reproduce("figure1", "--repeats", "1")
    assert result.exit_code == 0, result.output
    files = {path.name for path in tmp_path.iterdir()}
    assert files == TABLE_1_FILES | {"figure1.svg"}
    with (tmp_path / "results.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 24
    mean = {
        row["method"]: float(row["mean"])
        for row in rows
        if (row["learner"], row["rho_pos"], row["rho_neg"]) == ("linear-logistic", "0.3", "0.1")
    }
    assert mean["ld"] > mean["plain"]
    assert f"{mean['ld']:.1f}" in result.stdout


def test_accuracy_tables_are_printed_with_ranks_tests_and_seconds(
    reproduce, performed, monkeypatch
):
    monkeypatch.setattr(f"{COMMAND}.load_benchmark", lambda name: None)
    result = reproduce("table6", "--repeats", "1")
    assert result.exit_code == 0, result.output
    assert "70.0 (70.0)" in result.stdout  # plain on breast-cancer at (0.2, 0.2)
    assert "average rank: plain 3.00, LD 3.00" in result.stdout
    assert "Wilcoxon p against plain: LD 1.000" in result.stdout
    assert "seconds per fit: plain 0.25" in result.stdout


def test_finished_runs_are_not_done_again_and_more_repeats_add_theirs(reproduce, performed):
    reproduce("table1", "--repeats", "1")
    performed.clear()
    assert reproduce("table1", "--repeats", "1").exit_code == 0
    assert not performed
    assert reproduce("table1", "--repeats", "2").exit_code == 0
    assert {call.repeat for call in performed} == {1}
    assert len(performed) == 18


def test_reproduce_as_json_prints_nothing_else_on_stdout(reproduce, performed, tmp_path):
    result = reproduce("table1", "--repeats", "1", "--json")
    assert result.exit_code == 0, result.output
    printed = json.loads(result.stdout)
    assert printed == json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))
    assert len(printed["figures"]) == 36
    assert printed["repeats"] == 1


def test_only_what_was_asked_for_is_written_though_the_folder_holds_more(
    reproduce, performed, monkeypatch
):
    monkeypatch.setattr(f"{COMMAND}.load_benchmark", lambda name: None)
    reproduce("table1", "table2", "--repeats", "2")
    printed = json.loads(reproduce("table1", "--repeats", "1", "--json").stdout)
    assert {figure["experiment"] for figure in printed["figures"]} == {"table1"}
    assert {len(figure["values"]) for figure in printed["figures"]} == {1}


def test_an_unknown_experiment_is_bad_usage_and_the_known_ones_are_listed(reproduce, performed):
    result = reproduce("table1", "table7")
    assert result.exit_code == 2
    assert "'table7'" in result.stderr
    for name in (*EXPERIMENTS, "all"):
        assert repr(name) in result.stderr
    assert not performed


def test_missing_data_is_said_before_any_work_with_both_ways_to_get_them(
    reproduce, performed, monkeypatch, tmp_path
):
    empty = tmp_path / "empty"
    empty.mkdir()
    monkeypatch.setenv("UNFLIP_DATA", str(empty))
    result = reproduce("table1", "table2")
    assert result.exit_code == 2
    assert f"{empty}/diabetis.csv does not exist. Put the file there" in result.stderr
    assert "OpenML" in result.stderr
    assert not performed
    assert not (tmp_path / "runs.jsonl").exists()


def test_force_discards_the_runs_of_the_folder(reproduce, performed):
    reproduce("table1", "--repeats", "1")
    performed.clear()
    assert reproduce("table1", "--repeats", "1", "--force").exit_code == 0
    assert len(performed) == 18


def test_runs_with_other_choices_are_refused_until_forced(reproduce, performed, monkeypatch):
    reproduce("table1", "--repeats", "1")
    performed.clear()
    monkeypatch.setattr(f"{RUNS}.stated_choices", lambda: {"alpha": 1.0})
    result = reproduce("table1", "--repeats", "1")
    assert result.exit_code == 2
    assert "runs.jsonl holds runs of another version or with other choices" in result.stderr
    assert not performed
    assert reproduce("table1", "--repeats", "1", "--force").exit_code == 0
    assert len(performed) == 18


def test_an_interrupt_exits_with_130_says_what_is_kept_and_the_same_command_goes_on(
    reproduce, performed, tmp_path
):
    performed.interrupted_at = 5
    result = reproduce("table1", "--repeats", "1")
    assert result.exit_code == 130
    assert "5 of 18 runs" in result.stderr
    assert not (tmp_path / "results.csv").exists()
    performed.interrupted_at = None
    performed.clear()
    assert reproduce("table1", "--repeats", "1").exit_code == 0
    assert len(performed) == 13


def test_peers_without_cleanlab_are_refused_before_any_work(reproduce, performed, monkeypatch):
    monkeypatch.setattr(f"{COMMAND}.find_spec", lambda name: None)
    result = reproduce("table1", "--peers")
    assert result.exit_code == 2
    assert "pip install cleanlab" in result.stderr
    assert not performed


def test_the_figure_without_matplotlib_is_refused_before_any_work(
    reproduce, performed, monkeypatch
):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    result = reproduce("figure1")
    assert result.exit_code == 2
    assert "pip install 'unflip[plot]'" in result.stderr
    assert not performed


@pytest.mark.parametrize("arguments", [["--repeats", "0"], ["--repeats", "x"]])
def test_repeats_must_be_a_count(reproduce, performed, arguments):
    assert reproduce("table1", *arguments).exit_code == 2
    assert not performed


def test_no_processes_are_bad_usage(reproduce, performed):
    result = reproduce("table1", "--repeats", "1", "--jobs", "0")
    assert result.exit_code == 2
    assert "jobs" in result.stderr


def test_a_file_in_the_place_of_the_folder_is_bad_usage(reproduce, performed, tmp_path):
    path = tmp_path / "results"
    path.write_text("")
    result = reproduce("table1", "--repeats", "1", "--out", str(path))
    assert result.exit_code == 2
    assert str(path) in result.stderr


def test_a_journal_that_cannot_be_read_is_refused_by_name(reproduce, performed, tmp_path):
    (tmp_path / "runs.jsonl").write_text("hello\n")
    result = reproduce("table1", "--repeats", "1")
    assert result.exit_code == 2
    assert "runs.jsonl" in result.stderr
    assert not performed
