"""Results as files: complete, whole, and the same page from the json."""

import csv
import json

import numpy as np
import pytest

from tests.experiments.made import made_results, papers
from unflip import __version__
from unflip._app.report import to_markdown
from unflip.paper.experiments import (
    read_results,
    reproduction_page,
    save_results,
    stated_choices,
)

TEST_ROWS = 66


@pytest.fixture
def results():
    """Return accuracies such as tests of 66 rows give, with many ties between the methods."""
    draws = np.random.default_rng(0)

    def accuracy(run):
        return 100 * int(draws.integers(40, 45)) / TEST_ROWS

    def rates(run):
        return tuple(draws.uniform(0, 0.4, size=2).tolist())

    return made_results(["table1", "table5", "table6"], accuracy, rates=rates, repeats=3)


def saved(results, repeats, folder):
    """Save results, and return the lines of the csv file and the path of the json file."""
    save_results(results, repeats, folder)
    with (folder / "results.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file)), folder / "results.json"


def test_the_csv_has_one_line_per_figure(results, tmp_path):
    rows, _ = saved(results, 3, tmp_path)
    assert len(rows) == len(results.measurements) == 36 + 72 + 90
    for row, figure in zip(rows, results.measurements, strict=True):
        assert (row["experiment"], row["method"]) == (figure.experiment, figure.method)
        assert float(row["mean"]) == pytest.approx(figure.mean, rel=1e-5)
        assert float(row["sd"]) == pytest.approx(figure.sd, rel=1e-4)
        assert (float(row["paper_mean"]), float(row["paper_sd"])) == (
            figure.paper.mean,
            figure.paper.sd,
        )
        assert row["n"] == "3"


def test_where_the_paper_printed_nothing_the_csv_is_empty(tmp_path):
    rows, _ = saved(made_results(["figure1"]), 2, tmp_path)
    assert {(row["paper_mean"], row["paper_sd"]) for row in rows} == {("", "")}


def test_the_json_says_how_it_was_made(results, tmp_path):
    content = json.loads(saved(results, 3, tmp_path)[1].read_text(encoding="utf-8"))
    assert content["unflip"] == __version__
    assert content["choices"] == stated_choices()
    assert content["repeats"] == 3
    assert len(content["figures"]) == len(results.measurements)


def test_the_page_made_from_the_json_is_the_page(results, tmp_path):
    again, repeats = read_results(saved(results, 3, tmp_path)[1])
    assert repeats == 3
    assert to_markdown(reproduction_page(again, 3)) == to_markdown(reproduction_page(results, 3))


def test_the_json_keeps_ties_between_methods(tmp_path):
    """15/66 + 17/66 and 16/66 + 16/66 have the same mean, but not once they are rounded."""

    def accuracy(run):
        spread = {"ld": 1, "ub": 2, "iw": 3}.get(run.method, 0)
        return 100 * (43 + spread * (1 if run.repeat else -1)) / TEST_ROWS

    results = made_results(["table6"], accuracy)
    again, _ = read_results(saved(results, 2, tmp_path)[1])
    ranks = [summary.rank for summary in again.compare_methods("table6")]
    assert ranks == [3.0] * 5


def test_all_files_are_written_and_nothing_else(results, tmp_path):
    files = save_results(results, 3, tmp_path / "out")
    assert {path.name for path in files} == {
        *("results.csv", "results.json", "reproduction.md", "index.html")
    }
    assert set((tmp_path / "out").iterdir()) == set(files)


def test_pictures_are_files_beside_the_page(tmp_path):
    pytest.importorskip("matplotlib")
    files = save_results(made_results(["figure1"]), 2, tmp_path)
    assert "figure1.svg" in {path.name for path in files}
    assert "](figure1.svg)" in (tmp_path / "reproduction.md").read_text(encoding="utf-8")


def test_a_failure_while_the_page_is_made_leaves_the_old_files(tmp_path, monkeypatch):
    save_results(made_results(["table6"], papers), 2, tmp_path)
    before = {path.name: path.read_text(encoding="utf-8") for path in tmp_path.iterdir()}

    def fails(*_):
        raise RuntimeError

    monkeypatch.setattr("unflip.paper.experiments._save.to_html", fails)
    with pytest.raises(RuntimeError):
        save_results(made_results(["table6"]), 2, tmp_path)
    assert {p.name: p.read_text(encoding="utf-8") for p in tmp_path.iterdir()} == before
