"""The first hour, end to end: what commands say of tables as strangers bring them."""

import json
import subprocess
import sys

import numpy as np
import polars as pl
import pytest

from tests.walk.tables import blobs, churn, flipped, texts, write

pytestmark = pytest.mark.slow


@pytest.fixture
def unflip(tmp_path):
    """Run a command in a process of its own, and return it, its exit code checked."""

    def run(*arguments, code=0):
        command = [sys.executable, "-m", "unflip", *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=900)
        assert done.returncode == code, done.stderr
        assert "Traceback" not in done.stderr
        return done

    return run


@pytest.fixture
def estimate(unflip):
    def run(path, *arguments):
        done = unflip("estimate", path, "--label", "status", *arguments, "--json")
        return json.loads(done.stdout)

    return run


def wrong_share(found):
    return found["expected_error_share"]


def test_a_mixed_table_of_20_000_customers(unflip, estimate, tmp_path):
    rng = np.random.default_rng(0)
    table, true = churn(20_000, rng)
    path = write(table, flipped(true, 0.15, rng), tmp_path / "churn.csv")
    found = estimate(path, "--id", "customer")
    low, high = found["wrong_share"]["at_random"]
    assert low - 0.01 <= 0.15 <= high + 0.01 or found["warnings"]
    columns = ("--label", "status", "--id", "customer")
    unflip("audit", path, *columns, "--top", 100, "--out", "suspects.csv")
    suspects = pl.read_csv(tmp_path / "suspects.csv")
    given, right = suspects["status"].to_numpy(), true[suspects["row"].to_numpy()]
    assert np.mean(given != right) > 0.7
    unflip("report", path, *columns, "--out", "page.html")
    assert (tmp_path / "page.html").read_text().startswith("<!doctype html>")
    unflip("fit", path, *columns, "--out", "model.skops")
    unflip("predict", "model.skops", path, "--out", "predicted.csv")
    assert np.mean(pl.read_csv(tmp_path / "predicted.csv")["predicted"].to_numpy() == true) > 0.85


def test_five_classes(estimate, unflip, tmp_path):
    rng = np.random.default_rng(1)
    table, true = blobs(3000, 5, 8, rng)
    path = write(table, flipped(true, 0.2, rng), tmp_path / "five.csv")
    found = estimate(path)
    assert abs(wrong_share(found) - 0.2) < 0.05
    page = unflip("report", path, "--label", "status", "--out", "five.html")
    assert "labels are wrong" in page.stdout
    assert "What is taken for what" in (tmp_path / "five.html").read_text()


def test_two_per_cent_of_fraud(estimate, tmp_path):
    rng = np.random.default_rng(2)
    table, letters = blobs(8000, 2, 6, rng, distance=5.0)
    rare = (letters == "B") & (rng.random(8000) < 0.04)
    kept = (letters == "A") | rare
    true = np.where(rare, "fraud", "fine")[kept]
    path = write(table.filter(pl.Series(kept)), true, tmp_path / "fraud.csv")
    found = estimate(path)
    # a rare class, all labels right: a larger share than there is fraud is never sure
    assert wrong_share(found) < 0.02 or found["warnings"]


def test_semicolons_and_latin_1(unflip, estimate, tmp_path):
    rng = np.random.default_rng(3)
    table, true = churn(800, rng)
    table = table.with_columns(plan=pl.col("plan").str.replace("one year", "ein Jahr, für alle"))
    path = write(table, flipped(true, 0.1, rng), tmp_path / "latin.csv", separator=";")
    path.write_bytes(path.read_text().encode("latin-1"))
    refused = unflip("estimate", path, "--label", "status", code=2)
    assert "--encoding latin-1" in refused.stderr
    refused = unflip("estimate", path, "--label", "status", "--encoding", "latin-1", code=2)
    assert "--separator ';'" in refused.stderr
    found = estimate(path, "--encoding", "latin-1", "--separator", ";", "--id", "customer")
    assert found["n_samples"] == 800


def test_text_only(estimate, unflip, tmp_path):
    rng = np.random.default_rng(4)
    table, true = texts(2000, rng)
    path = write(table, flipped(true, 0.2, rng), tmp_path / "text.csv")
    found = estimate(path)
    low, high = found["wrong_share"]["at_random"]
    assert low - 0.02 <= 0.2 <= high + 0.02
    unflip("audit", path, "--label", "status", "--top", 50, "--out", "suspects.csv")
    suspects = pl.read_csv(tmp_path / "suspects.csv")
    assert np.mean(suspects["status"].to_numpy() != true[suspects["row"].to_numpy()]) > 0.9


def test_500_columns(estimate, tmp_path):
    rng = np.random.default_rng(5)
    table, true = blobs(2000, 2, 500, rng)
    path = write(table, flipped(true, 0.2, rng), tmp_path / "wide.csv")
    found = estimate(path)
    low, high = found["wrong_share"]["at_random"]
    assert low - 0.03 <= 0.2 <= high + 0.03 or found["warnings"]


def test_26_letters(estimate, tmp_path):
    rng = np.random.default_rng(6)
    table, true = blobs(5200, 26, 16, rng, distance=9.0)
    path = write(table, flipped(true, 0.15, rng), tmp_path / "letters.csv")
    found = estimate(path)
    assert abs(wrong_share(found) - 0.15) < 0.06 or found["warnings"]


def test_an_id_and_a_leak_are_named(unflip, tmp_path):
    rng = np.random.default_rng(7)
    table, true = churn(1000, rng)
    leaking = table.with_columns(closed=pl.Series((true == "left").astype(int)))
    path = write(leaking, true, tmp_path / "leak.csv")
    said = unflip("estimate", path, "--label", "status").stdout
    assert "Drop the column closed first" in said
    assert "--drop closed" in said


def test_duplicated_rows_do_not_make_it_surer(estimate, tmp_path):
    rng = np.random.default_rng(8)
    table, true = blobs(400, 2, 4, rng, distance=3.0)
    labels = flipped(true, 0.2, rng)
    once = estimate(write(table, labels, tmp_path / "once.csv"))
    five = estimate(write(pl.concat([table] * 5), np.tile(labels, 5), tmp_path / "five.csv"))
    for name in ("positive", "negative"):
        width = np.diff(once["interval"][name])[0]
        assert np.diff(five["interval"][name])[0] > 0.7 * width
        assert abs(five["noise_rates"][name] - once["noise_rates"][name]) < width / 3


def test_gaps_in_cells_and_labels(unflip, estimate, tmp_path):
    rng = np.random.default_rng(9)
    table, true = churn(1000, rng)
    holes = pl.Series(rng.random(1000) < 0.3)
    table = table.with_columns(pl.when(~holes).then(pl.col("months")).alias("months"))
    labels = np.where(rng.random(1000) < 0.2, "", true)
    path = write(table, labels, tmp_path / "gaps.csv")
    assert "--skip-unlabelled" in unflip("estimate", path, "--label", "status", code=2).stderr
    found = estimate(path, "--skip-unlabelled", "--id", "customer")
    assert found["n_samples"] == int(np.sum(labels != ""))


def test_twelve_rows_are_too_few_to_be_sure(unflip, tmp_path):
    rng = np.random.default_rng(10)
    table, true = blobs(12, 2, 2, rng)
    path = write(table, true, tmp_path / "tiny.csv")
    command = [sys.executable, "-m", "unflip", "estimate", str(path), "--label", "status", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode in (0, 1)
    if done.returncode == 0:
        found = json.loads(done.stdout)
        assert found["warnings"] or found["wrong_share"]["by_row"][1] > 0.2


def test_spellings_of_one_class_are_named(unflip, estimate, tmp_path):
    rng = np.random.default_rng(11)
    table, true = churn(1000, rng)
    labels = np.where(rng.random(1000) < 0.3, np.char.capitalize(true), true)
    path = write(table, labels, tmp_path / "spelling.csv")
    said = unflip("estimate", path, "--label", "status", "--id", "customer", code=1)
    assert "look like one class" in said.stderr
    assert "--merge-labels" in said.stderr
    merged = estimate(path, "--id", "customer", "--merge-labels")
    assert merged["classes"] == ["left", "stayed"]
