"""Figures in README, paper and site are those that the benchmarks have written."""

import json
import re
import sys
from pathlib import Path

import pytest
from benchmarks.figures import read_figures, read_stamp, write_figures
from benchmarks.page import PAGE, SECTIONS, draw, page
from benchmarks.world_families import CHOSEN_ON, UNKNOWABLE
from benchmarks.worlds import calibration, load, summarise

ROOT = Path(__file__).parents[1]
FIGURES = ROOT / "docs" / "benchmarks"
TRUST = ROOT / "docs" / "user_guide" / "trust.md"
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAPER = (ROOT / "paper.md").read_text(encoding="utf-8")


def real_means() -> dict[str, dict[str, str]]:
    rows = read_figures(FIGURES / "real_mistakes.csv")
    return {row["labels"]: row for row in rows if row["model"] == "mean"}


def test_the_page_is_made_from_the_files() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run `make bench-page`"


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.file.stem)
def test_every_benchmark_that_was_run_is_drawn(section) -> None:
    if not section.file.exists():
        pytest.skip(f"{section.file.name} has not been measured")
    assert section.picture.exists()
    series = section.series(read_figures(section.file))
    assert series
    assert all(series.values())


@pytest.mark.parametrize(
    ("line", "labels"), [("labels that people gave", "people"), ("the same images", "simulated")]
)
def test_readme_has_the_figures_of_real_mistakes(line: str, labels: str) -> None:
    row = next(each for each in README.splitlines() if each.startswith(f"| {line}"))
    mean = real_means()[labels]
    assert [cell.strip() for cell in row.split("|")[2:4]] == [
        mean["unflip"],
        mean["self confidence"],
    ]


def test_the_paper_has_the_figures_of_the_benchmarks() -> None:
    mean = real_means()["people"]
    assert f"{mean['unflip']} (self-confidence: {mean['self confidence']})" in PAPER
    cells = [cell for cell in load(FIGURES / "trust.csv") if cell.family not in UNKNOWABLE]
    found = summarise(cells)
    assert f"{found['sure and wrong']:.1%} of {len(cells)}" in PAPER
    assert f"{found['warned']:.0%} of these" in PAPER
    parts = read_figures(FIGURES / "figure1_parts.csv")
    shown = [row for row in parts if row["rates"] == "true" and row["P(noisy y | x)"] != "UB"]
    assert len(shown) == 3
    for row in shown:
        assert f"{row['IW - UB']} ± {row['standard error']}" in PAPER


def test_the_guide_has_the_figures_of_the_simulated_scenarios() -> None:
    cells = [cell for cell in load(FIGURES / "trust.csv") if cell.family not in UNKNOWABLE]
    text = " ".join(TRUST.read_text(encoding="utf-8").split())
    held_out = calibration([cell for cell in cells if cell.family not in CHOSEN_ON])
    assert f"{summarise(cells)['sure and wrong']:.1%} of {len(cells)} simulated scenarios" in text
    assert f"{held_out['off, warned']:.0%} of the fits that warn" in text
    assert f"{held_out['off, not warned']:.0%} of the fits that do not" in text
    assert f"{held_out['needless, random flips']:.0%} of the fits to randomly flipped" in text


def test_a_table_comes_back_with_where_and_when_it_was_measured(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(sys, "argv", ["/project/benchmarks/rates.py", "--splits", "2"])
    path = tmp_path / "rates.csv"
    assert read_stamp(path) == "The machine and the date were not kept."
    write_figures(path, ("method", "accuracy"), [("a, b", 76.2)])
    assert read_figures(path) == [{"method": "a, b", "accuracy": "76.2"}]
    assert read_stamp(path).startswith("`python -m benchmarks.rates --splits 2`, 20")
    assert json.loads(path.with_suffix(".json").read_text())["versions"]["scikit-learn"]


def test_a_picture_has_a_marker_for_every_value(tmp_path) -> None:
    series = {"ours": {"a": 1.0, "b": 2.0}, "theirs": {"b": 3.0}}
    draw(series, "seconds", tmp_path / "p.svg", log=True)
    drawn = (tmp_path / "p.svg").read_text()
    assert {"ours", "theirs", "seconds", "a", "b"} <= set(re.findall(r">([^<>\n]+)</text>", drawn))
