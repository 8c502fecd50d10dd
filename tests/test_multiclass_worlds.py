"""`python -m benchmarks.multiclass_worlds`: its families, its noises, and what counts as wrong."""

import numpy as np
import pytest

worlds = pytest.importorskip("benchmarks.multiclass_worlds", reason="no benchmarks in this copy")
families = pytest.importorskip("benchmarks.multiclass_families")


@pytest.mark.parametrize("family", families.FAMILIES)
@pytest.mark.parametrize("n_classes", [3, 10])
def test_a_family_gives_probabilities_and_all_classes(family, n_classes):
    X, proba = families.FAMILIES[family](np.random.default_rng(0), 300, n_classes)
    assert len(X) == len(proba) == 300
    assert proba.shape[1] == n_classes
    assert proba.min() >= 0
    assert proba.sum(axis=1) == pytest.approx(np.ones(300))


@pytest.mark.parametrize("noise", families.NOISES)
def test_a_world_is_what_its_seed_says(noise):
    world = families.MulticlassWorld("gaussians", noise, 5, 400)
    X, y, given, T = world.draw()
    again = world.draw()
    assert all(np.array_equal(a, b) for a, b in zip((X, y, given, T), again, strict=True))
    assert T.sum(axis=1) == pytest.approx(np.ones(5))
    assert set(y) == set(given) == set(range(5))
    counted = np.array([[np.mean(given[y == k] == j) for j in range(5)] for k in range(5)])
    assert np.abs(counted - T).max() < 0.2
    assert (np.mean(y != given) == 0) == (noise == "none")


def test_labels_are_drawn_by_their_probabilities():
    proba = np.tile([0.2, 0.5, 0.3], (20_000, 1))
    drawn = families._drawn(np.random.default_rng(0), proba)
    assert np.bincount(drawn) / 20_000 == pytest.approx([0.2, 0.5, 0.3], abs=0.015)


def cell(**values):
    plain = {"family": "linear", "noise": "none", "classes": 10, "rows": 100, "seed": 0}
    said = {"true_share": 0.2, "share": 0.2, "low_at_random": 0.1, "high_at_random": 0.3}
    ranges = {"low_share": 0.0, "high_share": 0.5, "wrong_rates": 0.0}
    return worlds.Cell(**plain | said | ranges | values)


@pytest.mark.parametrize(
    ("values", "wrong"),
    [
        ({}, False),
        ({"wrong_rates": 0.1}, True),
        ({"wrong_rates": 0.1, "warned": True}, False),
        ({"wrong_rates": 0.1, "noise": "in a slice"}, False),
        ({"wrong_rates": 1 / 26}, False),
        ({"share": 0.05, "low_at_random": 0.0, "high_at_random": 0.1}, True),
        ({"share": 0.05, "low_at_random": 0.0, "high_at_random": 0.19}, False),
        ({"high_share": 0.19, "warned": True}, True),
        ({"error": "ValueError: no"}, True),
    ],
)
def test_sure_and_wrong(values, wrong):
    assert cell(**values).sure_and_wrong == wrong


@pytest.mark.filterwarnings("ignore::unflip.LabelNoiseWarning")
def test_a_small_cell_is_measured_and_summarised(tmp_path, capsys):
    path = tmp_path / "cells.csv"
    small = ["--classes", "3", "--rows", "200", "--families", "gaussians", "--noises", "pair .3"]
    worlds.main([*small, "--csv", str(path)])
    assert "sure and wrong" in capsys.readouterr().out
    assert path.read_text().count("\n") == 2
