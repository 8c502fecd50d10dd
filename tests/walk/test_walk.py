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
def doubted(unflip, tmp_path):
    """Run an estimate that is refused or not sure, and return what it says of the reason."""

    def run(path, *arguments):
        command = [sys.executable, "-m", "unflip", "estimate", str(path), "--label", "status"]
        done = subprocess.run(
            [*command, *arguments], capture_output=True, text=True, cwd=tmp_path, timeout=900
        )
        if done.returncode == 1:
            assert done.stderr.startswith("cannot be estimated: ")
            assert done.stderr.count("\n") == 1
            return done.stderr
        assert done.returncode == 0, done.stderr
        assert "but that is not sure" in " ".join(done.stdout.split())
        assert done.stderr == ""  # doubts are said once
        return " ".join(done.stdout.split())

    return run


@pytest.fixture
def estimate(unflip):
    def run(path, *arguments):
        done = unflip("estimate", path, "--label", "status", *arguments, "--json")
        return json.loads(done.stdout)

    return run


def label_error_rate(found):
    return found["expected_error_share"]


def test_a_mixed_table_of_20_000_customers(unflip, estimate, tmp_path):
    rng = np.random.default_rng(0)
    table, true = churn(20_000, rng)
    path = write(table, flipped(true, 0.15, rng), tmp_path / "churn.csv")
    found = estimate(path, "--id", "customer")
    by_class = sum(row["true_share"] * row["flip_rate"] for row in found["per_class"])
    assert abs(by_class - label_error_rate(found)) < 1e-3
    low, high = found["label_error_range"]["at_random"]
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
    assert abs(label_error_rate(found) - 0.2) < 0.05
    page = unflip("report", path, "--label", "status", "--out", "five.html")
    assert "labels are wrong" in page.stdout
    assert "Which classes are confused" in (tmp_path / "five.html").read_text()


def test_two_per_cent_of_fraud(estimate, tmp_path):
    rng = np.random.default_rng(2)
    table, letters = blobs(8000, 2, 6, rng, distance=5.0)
    rare = (letters == "B") & (rng.random(8000) < 0.04)
    kept = (letters == "A") | rare
    true = np.where(rare, "fraud", "fine")[kept]
    path = write(table.filter(pl.Series(kept)), true, tmp_path / "fraud.csv")
    found = estimate(path)
    # a rare class, all labels right: a larger share than there is fraud is never sure
    assert label_error_rate(found) < 0.02 or found["warnings"]


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
    low, high = found["label_error_range"]["at_random"]
    assert low - 0.02 <= 0.2 <= high + 0.02
    unflip("audit", path, "--label", "status", "--top", 50, "--out", "suspects.csv")
    suspects = pl.read_csv(tmp_path / "suspects.csv")
    assert np.mean(suspects["status"].to_numpy() != true[suspects["row"].to_numpy()]) > 0.9


def test_500_columns(estimate, tmp_path):
    rng = np.random.default_rng(5)
    table, true = blobs(2000, 2, 500, rng)
    path = write(table, flipped(true, 0.2, rng), tmp_path / "wide.csv")
    found = estimate(path)
    low, high = found["label_error_range"]["at_random"]
    assert low - 0.03 <= 0.2 <= high + 0.03 or found["warnings"]


def test_26_letters(estimate, tmp_path):
    rng = np.random.default_rng(6)
    table, true = blobs(5200, 26, 16, rng, distance=9.0)
    path = write(table, flipped(true, 0.15, rng), tmp_path / "letters.csv")
    found = estimate(path)
    assert abs(label_error_rate(found) - 0.15) < 0.06 or found["warnings"]


def test_an_id_and_a_leak_are_named(unflip, tmp_path):
    rng = np.random.default_rng(7)
    table, true = churn(1000, rng)
    leaking = table.with_columns(closed=pl.Series((true == "left").astype(int)))
    path = write(leaking, true, tmp_path / "leak.csv")
    done = unflip("estimate", path, "--label", "status")
    assert "Drop the column closed first" in done.stdout
    assert "--drop closed" in done.stdout
    assert done.stderr.count("--id customer") == 1
    unflip("audit", path, "--label", "status", "--id", "customer", "--out", "none.csv")
    assert pl.read_csv(tmp_path / "none.csv").height == 0
    unflip("report", path, "--label", "status", "--id", "customer", "--out", "page.html")
    assert "accuracy on clean labels" not in (tmp_path / "page.html").read_text()


def test_duplicated_rows_do_not_make_it_surer(estimate, unflip, tmp_path):
    rng = np.random.default_rng(8)
    table, true = blobs(400, 2, 4, rng, distance=3.0)
    labels = flipped(true, 0.2, rng)
    once = estimate(write(table, labels, tmp_path / "once.csv"))
    five = estimate(write(pl.concat([table] * 5), np.tile(labels, 5), tmp_path / "five.csv"))
    for name in ("positive", "negative"):
        assert once["interval"][name][0] <= 0.2 <= once["interval"][name][1]
        width = np.diff(once["interval"][name])[0]
        assert np.diff(five["interval"][name])[0] > 0.7 * width
        assert abs(five["noise_rates"][name] - once["noise_rates"][name]) < width / 3
    told = unflip("estimate", tmp_path / "five.csv", "--label", "status", "--rates", "0.2,0.2")
    assert "1,600 of 2,000 rows are copies of others" in told.stderr


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
        assert found["warnings"] or found["label_error_range"]["by_row"][1] > 0.2


def test_spellings_of_one_class_are_named(unflip, estimate, tmp_path):
    rng = np.random.default_rng(11)
    table, true = churn(1000, rng)
    labels = np.where(rng.random(1000) < 0.3, np.char.capitalize(true), true)
    path = write(table, labels, tmp_path / "spelling.csv")
    done = unflip("estimate", path, "--label", "status", "--id", "customer")
    said = " ".join(done.stdout.split())
    assert said.startswith("Merge the classes that look alike first: Left and left; Stayed and")
    assert "run this again: `--merge-labels`" in said
    assert "% of the labels" not in said
    merged = estimate(path, "--id", "customer", "--merge-labels")
    assert merged["classes"] == ["left", "stayed"]


def test_a_class_of_20_rows_among_20_000_is_named_with_the_option_that_helps(
    unflip, doubted, tmp_path
):
    rng = np.random.default_rng(12)
    table, true = churn(20_000, rng)
    labels = flipped(true, 0.1, rng).astype(object)
    labels[rng.choice(20_000, 20, replace=False)] = "deceased"
    path = write(table, labels.astype(str), tmp_path / "rare.csv")
    columns = ("--label", "status", "--id", "customer")
    said = doubted(path, "--id", "customer")
    assert "20,000 rows are labelled 'deceased' (20)" in said
    assert said.count("--drop-classes deceased") == 1
    helped = unflip("estimate", path, *columns, "--drop-classes", "deceased")
    assert helped.stdout.startswith("About 10% of the labels are wrong")


def test_rates_that_the_data_contradict_are_contradicted(unflip, tmp_path):
    rng = np.random.default_rng(13)
    table, true = churn(1500, rng)
    path = write(table, flipped(true, 0.15, rng), tmp_path / "churn.csv")
    columns = ("--label", "status", "--id", "customer")
    done = unflip("estimate", path, *columns, "--rates", "0.45,0.45")
    said = " ".join(done.stdout.split())
    assert "but that is not sure" in said
    assert "is contradicted by the labels: they are far likelier if flipped by" in said
    assert done.stderr == ""  # doubts are said once
    one = unflip("estimate", path, *columns, "--rates", "0.3", code=2).stderr
    assert "expected two numbers such as 0.3,0.1" in one


@pytest.mark.parametrize("n_classes", [2, 4])
def test_sources_that_err_more_are_drawn_apart(unflip, tmp_path, n_classes):
    rng = np.random.default_rng(14)
    table, true = blobs(1500, n_classes, 4, rng)
    source = rng.choice(["phone", "shop", "web"], 1500)
    labels = np.where(source == "phone", flipped(true, 0.3, rng), flipped(true, 0.05, rng))
    path = write(table.with_columns(source=pl.Series(source)), labels, tmp_path / "sources.csv")
    out = tmp_path / "page.html"
    done = unflip("report", path, "--label", "status", "--by", "source", "--out", out)
    said = " ".join(done.stdout.split())
    assert "The noise differs between slices by 'source'" in said
    assert "in phone" in said
    assert out.read_text().count('class="whisker"') == 3


def test_clean_labels_are_not_called_noisy(estimate, unflip, tmp_path):
    rng = np.random.default_rng(15)
    table, true = blobs(2000, 2, 4, rng, distance=7.0)
    path = write(table, true, tmp_path / "clean.csv")
    found = estimate(path)
    assert label_error_rate(found) < 0.005
    assert found["label_error_range"]["at_random"][1] < 0.02
    assert "No row is expected" in unflip("audit", path, "--label", "status").stdout


def test_the_same_class_is_positive_in_every_command(unflip, tmp_path):
    rng = np.random.default_rng(16)
    table, true = blobs(600, 2, 3, rng)
    path = write(table, true, tmp_path / "clean.csv")
    flip = ("--label", "status", "--rates", "0.4,0.0", "--out", "noisy.csv", "--json")
    assert json.loads(unflip("flip", path, *flip).stdout)["positive_class"] == "B"
    noisy = tmp_path / "noisy.csv"
    options = ("--label", "status", "--json")
    reported = unflip("report", noisy, *options, "--out", "r.json").stdout
    audited = unflip("audit", noisy, *options).stdout
    fitted = unflip("fit", noisy, *options, "--out", "m.skops").stdout
    for found in (
        json.loads(unflip("estimate", noisy, *options).stdout),
        *(json.loads(text)["summary"] for text in (reported, audited, fitted)),
    ):
        assert found["positive_class"] == "B"
        assert found["noise_rates"]["positive"] > 0.3 > 0.1 > found["noise_rates"]["negative"]
