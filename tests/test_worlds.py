"""`python -m benchmarks.worlds`: two small cells, and what is counted as sure and wrong."""

from itertools import product

import numpy as np
import pytest

worlds = pytest.importorskip("benchmarks.worlds", reason="benchmarks are not in this copy")
families = pytest.importorskip("benchmarks.world_families")
pages = pytest.importorskip("benchmarks.worlds_page")


def cell(**values):
    plain = {
        "family": "linear",
        "noise": "none",
        "rows": 100,
        "seed": 0,
        "positives": np.nan,
        "columns": 0,
        "true_positive": 0.0,
        "true_negative": 0.0,
        "true_share": 0.0,
        "positive": 0.0,
        "negative": 0.0,
        "low_positive": 0.0,
        "high_positive": 0.0,
        "low_negative": 0.0,
        "high_negative": 0.0,
    }
    return worlds.Cell(**plain | values)


@pytest.mark.parametrize("which", ["positive", "negative"])
def test_sure_and_wrong_is_what_brute_force_finds(which):
    steps = np.linspace(0.013, 0.413, 5)
    seen = set()
    for truth, said, low, width, warned in product(steps, steps, steps, (0.0, 0.11), (False, True)):
        high = low + width
        case = cell(
            **{
                f"true_{which}": truth,
                which: said,
                f"low_{which}": low,
                f"high_{which}": high,
                "warned": warned,
            }
        )
        distance = np.abs(np.linspace(low, high, 1001) - truth).min()
        expected = abs(said - truth) > 0.05 and distance > 0.02 and not warned
        assert case.sure_and_wrong == expected
        seen.add(expected)
    assert seen == {True, False}


@pytest.mark.parametrize("warned", [False, True])
@pytest.mark.parametrize(
    ("share", "low", "high", "missed"),
    [
        (0.10, 0.0, 0.2, False),
        (0.21, 0.0, 0.2, True),
        (0.10, 0.11, 0.2, True),
        (0.10, np.nan, np.nan, False),
    ],
)
def test_a_range_that_misses_the_truth_is_wrong_with_or_without_a_warning(
    share, low, high, missed, warned
):
    case = cell(true_share=share, low_share=low, high_share=high, warned=warned)
    assert case.sure_and_wrong == missed


def test_where_errors_depend_on_the_sample_the_range_is_what_counts():
    wrong = {"true_positive": 0.3, "positive": 0.0, "low_share": 0.0, "true_share": 0.15}
    assert cell(**wrong, noise="(.3, .1)", high_share=0.2).sure_and_wrong
    assert not cell(**wrong, noise="in one slice", high_share=0.2).sure_and_wrong
    assert cell(**wrong, noise="in one slice", high_share=0.1).sure_and_wrong


def test_calibration_counts_needless_and_missing_warnings_where_flips_are_random():
    good = {"low_share": 0.0, "high_share": 0.2}
    off = {**good, "positive": 0.1}
    cells = [
        *[cell(**good)] * 8,
        *[cell(**good, warned=True)] * 2,
        *[cell(**off, noise="(.05, .05)", warned=True, true_negative=0.05, negative=0.05)] * 2,
        cell(**off),
        cell(**good, noise=worlds.RULE, said="rule", warned=True, true_share=0.3),
        cell(**good, noise=worlds.RULE, true_share=0.1),
    ]
    found = worlds.calibration(cells)
    assert found["needless, clean"] == pytest.approx(2 / 11)
    assert found["needless, random flips"] == 0
    assert found["off, warned"] == pytest.approx(2 / 4)
    assert found["off, not warned"] == pytest.approx(1 / 9)
    assert found["ratio"] == pytest.approx(4.5)
    assert (found["rules named"], found["range holds"]) == (0.5, 0.5)


def test_the_halves_of_the_families_share_none():
    assert not set(families.CHOSEN_ON) & set(families.HELD_OUT)
    assert set(families.CHOSEN_ON) | set(families.HELD_OUT) == set(families.FAMILIES)


def test_an_error_is_sure_and_wrong(monkeypatch):
    def refuse(*_, **__):
        raise IndexError("out of bounds")

    monkeypatch.setattr(worlds.ImportanceReweightingClassifier, "fit", refuse)
    case = worlds.measure(families.World("linear", "none", rows=60))
    assert case.sure_and_wrong
    assert case.error == "IndexError: out of bounds"
    assert worlds.summarise([case])["errors raised"] == 1


def test_two_small_cells_are_measured_kept_and_read_again(tmp_path):
    kept, said = tmp_path / "cells.csv", tmp_path / "tables.md"
    worlds.main(
        [
            *("--rows", "300", "--families", "linear", "--noises", "(.3, .1)", "near the border"),
            *("--csv", str(kept), "--markdown", str(said)),
        ]
    )
    at_random, border = worlds.load(kept)
    assert (at_random.true_positive, at_random.true_negative) == (0.3, 0.1)

    X, y, given = families.World("linear", "near the border", rows=300).draw()
    assert X.shape == (300, 5)
    assert border.true_positive == pytest.approx(1 - given[y].mean(), abs=1e-4)
    assert border.true_negative == pytest.approx(given[~y].mean(), abs=1e-4)
    assert border.true_share == pytest.approx((y != given).mean(), abs=1e-4)
    assert "near the border" in said.read_text()

    total = worlds.summarise([at_random, border])
    assert total["sure and wrong"] == np.mean([at_random.sure_and_wrong, border.sure_and_wrong])
    widths = [at_random.high_positive - at_random.low_positive]
    widths += [at_random.high_negative - at_random.low_negative]
    assert worlds.summarise([at_random])["width"] == pytest.approx(np.mean(widths))


@pytest.mark.parametrize("family", families.FAMILIES)
def test_every_family_has_both_classes_under_every_noise(family):
    for noise, kind in families.NOISES.items():
        world = families.World(family, noise, rows=400)
        X, y, given = world.draw()
        assert X.shape[0] == y.size == given.size == 400
        assert 0 < y.mean() < 1
        assert 0 < given.mean() < 1
        again = world.draw()
        assert np.array_equal(again[2], given)
        if kind.rates == (0.0, 0.0):
            assert np.array_equal(y, given)


def test_random_flips_have_the_rates_they_are_named_by():
    _, y, given = families.World("linear", "(.3, .1)", rows=40_000).draw()
    assert 1 - given[y].mean() == pytest.approx(0.3, abs=0.015)
    assert given[~y].mean() == pytest.approx(0.1, abs=0.015)


def test_a_share_of_positives_and_more_columns_are_as_asked():
    X, y, _ = families.World("tree", "none", rows=500, positives=0.1, columns=7).draw()
    assert X.shape == (500, 15)
    assert y.mean() == 0.1


def test_the_page_is_what_its_cells_say():
    assert pages.PAGE.read_text(encoding="utf-8") == pages.page(worlds.load(pages.CELLS))
