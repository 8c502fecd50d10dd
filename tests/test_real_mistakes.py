"""Labels that people got wrong, beside cleanlab: the page's figures, and what they must show."""

import csv
import os
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from benchmarks import probability_worlds, real
from sklearn.metrics import average_precision_score, roc_auc_score

FOLDER = Path(os.environ.get("UNFLIP_REAL", Path(__file__).parents[2] / "shared" / "real"))
PAGE = Path(__file__).parents[1] / "docs" / "benchmarks" / "real_mistakes.csv"

needs_labels = pytest.mark.skipif(
    not FOLDER.is_dir(), reason=f"no real labels: {FOLDER} is not there (set UNFLIP_REAL)"
)


def test_the_page_shows_what_the_command_writes():
    with PAGE.open() as file:
        head, *rows = csv.reader(file)
    assert head == real.HEAD
    assert {row[0] for row in rows} == {"people", "simulated", "reviewed", "junk"}
    assert all(len(row) == len(head) for row in rows)


def both(row):
    """Return the areas and precisions of one line, unflip's first."""
    return np.array([[float(part) for part in cell.split(" / ")] for cell in row[2:6]])


def test_on_the_mean_of_the_reviewed_sets_no_score_is_ahead_by_more_than_chance():
    with PAGE.open() as file:
        sets = [both(row) for row in csv.reader(file) if row[0] == "reviewed"]
    assert len(sets) == 3
    means = np.mean(sets, axis=0)
    # the table has standard errors of .01 to .05 for the differences of single sets
    assert (means[0] > means[1:] - 0.005).all()
    said = " ".join((PAGE.parents[1] / "user_guide" / "audit.md").read_text().split())
    for area, precision in means:
        assert f"{area:.3f} / {precision:.3f}".replace("0.", ".") in said


def check_ahead(rows):
    means = both(rows[-1])
    assert (means[0] >= means[1:].max(axis=0)).all()


@pytest.fixture
def cleanlab():
    return pytest.importorskip("cleanlab", reason="the peer is not installed (make bench does)")


@pytest.mark.slow
@pytest.mark.usefixtures("cleanlab")
@needs_labels
@pytest.mark.parametrize(
    ("name", "determined", "largest", "said"),
    [("people", True, 0.04, 0.8), ("simulated", "auto", 0.015, 0.9)],
)
def test_networks_are_ranked_ahead_and_calibrated(name, determined, largest, said, capsys):
    cases = real.networks(FOLDER / f"{name}.npz")
    rows = real.measured(name, cases, determined=determined)
    check_ahead(rows)
    assert "OUTSIDE" not in capsys.readouterr().out
    assert all(float(row[7]) <= largest for row in rows[:-1])
    assert all(said <= float(row[6]) <= 1.1 for row in rows[:-1])


@pytest.mark.slow
@pytest.mark.usefixtures("cleanlab")
def test_junk_is_ranked_ahead():
    check_ahead(real.measured("junk", real.junk()))


def ranked(name):
    """Return area and precision in a made-up world, of the audit and of 1 - P(given label)."""
    ((_, proba, given, wrong),) = probability_worlds.cases([name], 1)
    ranks = real.audited(proba, given).mislabel_proba_, 1 - proba[np.arange(given.size), given]
    scores = roc_auc_score, average_precision_score
    return np.array([[score(wrong, rank) for score in scores] for rank in ranks])


@pytest.mark.parametrize("name", ["junk, flat", "junk, timid"])
def test_flat_junk_is_ranked_far_ahead_of_self_confidence(name):
    audit, self_confidence = ranked(name)
    assert (audit > self_confidence + 0.015).all()


@pytest.mark.slow
@pytest.mark.usefixtures("cleanlab")
@pytest.mark.parametrize(
    "name", ["people 40 %", "people 40 %, taught", "numerals", "numerals, sharp"]
)
def test_mistakes_of_people_are_ranked_at_least_as_well_as_by_the_best_score(name):
    networks = [(0.4, 0.8), (0.8, 1.0), (1.2, 1.3), (0.6, 0.6), (1.0, 1.0)]
    cases = []
    for seed, (blur, temperature) in enumerate(networks):
        world = replace(probability_worlds.WORLDS[name], blur=blur, temperature=temperature)
        cases.append((name, *probability_worlds.drawn(world, seed)[:3]))
    check_ahead(real.measured("made", iter(cases)))


@pytest.mark.parametrize("name", ["hard rows 10 %", "by class 20 %", "alike 40 %", "numerals"])
def test_mistakes_of_other_kinds_are_ranked_as_well_as_by_self_confidence(name):
    audit, self_confidence = ranked(name)
    assert (audit >= self_confidence - 0.01).all()


@pytest.mark.slow
@pytest.mark.usefixtures("cleanlab")
def test_the_truth_lies_in_the_range_in_all_worlds(capsys):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # labels that are all right have no ROC curve
        names = [name for name in probability_worlds.WORLDS if "100" not in name]
        rows = real.measured("made", probability_worlds.cases(names, 1))
    assert "OUTSIDE" not in capsys.readouterr().out
    assert len(rows) == len(names) + 1
