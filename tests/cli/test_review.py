"""The command that serves the review page, and what it exports."""

import json
import os
import signal
import subprocess
import sys
from urllib.request import urlopen

import polars as pl
import pytest

from unflip.review import Decisions, ReviewTable


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "noisy.csv"
    rows = [f"{k},{'yes' if (k > 100) != (k % 9 == 0) else 'no'}" for k in range(200)]
    path.write_text("x,y\n" + "\n".join(rows))
    return path


def test_the_page_is_served_until_it_is_interrupted_and_decisions_are_kept(table):
    command = [sys.executable, "-m", "unflip", "review", str(table), "--label", "y", "--json"]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as server:
        address = json.loads(server.stdout.readline())["address"]
        assert address.startswith("http://127.0.0.1:")
        with urlopen(address) as page:  # noqa: S310
            assert page.status == 200
        server.send_signal(signal.SIGINT)
        assert server.wait(timeout=30) in (0, 130)
    assert table.with_suffix(".review.sqlite").exists()


def test_what_was_decided_is_exported_and_trained_with(run, table, tmp_path):
    refused = run("review", table, "--label", "y", "--export")
    assert refused.exit_code == 2
    assert "noisy.review.sqlite" in refused.stderr
    before = table.read_bytes()
    store = table.with_suffix(".review.sqlite")
    with Decisions(store, ReviewTable(pl.read_csv(table), "y").fingerprint) as decisions:
        decisions.decide(row=9, version=0, verdict="change", label=0)
        decisions.decide(row=10, version=0, verdict="keep", label=0)
    out = tmp_path / "out"
    assert run("review", table, "--label", "y", "--export", "--out", out).exit_code == 0
    assert pl.read_csv(out / "corrected.csv")["y"][9] == "no" != pl.read_csv(table)["y"][9]
    assert table.read_bytes() == before
    reviewed, model = out / "reviewed.csv", tmp_path / "model.skops"
    again = run("fit", table, "--label", "y", "--reviewed", reviewed, "--out", model)
    assert again.exit_code == 0, again.output
    assert "2 of them reviewed" in again.stdout


def test_an_export_says_which_decisions_moved_and_which_could_not_be_matched(run, table, tmp_path):
    store = table.with_suffix(".review.sqlite")
    with Decisions(store, ReviewTable(pl.read_csv(table), "y").fingerprint) as decisions:
        decisions.decide(row=9, version=0, verdict="change", label=0)
        decisions.decide(row=10, version=0, verdict="keep", label=0)
    other = pl.read_csv(table).reverse().filter(pl.col("x") != 10)
    other.write_csv(tmp_path / "other.csv")
    arguments = ("review", tmp_path / "other.csv", "--label", "y", "--export")
    done = run(*arguments, "--decisions", store, "--out", tmp_path / "out", "--json")
    assert done.exit_code == 0, done.output
    assert "1 decision moved along" in done.stderr
    assert "1 decision could not be matched with the table" in done.stderr
    assert len(json.loads(done.stdout)["notes"]) == 2
    corrected = pl.read_csv(tmp_path / "out" / "corrected.csv")
    changed = corrected.filter(corrected["y"] != other["y"])
    assert changed["x"].to_list() == [9]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (".", "is a folder"),
        ("empty.sqlite", "is empty"),
        ("noisy.csv/d.sqlite", "is a file"),
        ("noisy.csv", "is an input, so it cannot be written to"),
        ("other.sqlite", "holds decisions on another table"),
        ("/proc/d.sqlite", "is not writable"),
    ],
)
def test_decisions_that_cannot_be_kept_are_refused_before_the_fit(
    run, table, tmp_path, monkeypatch, name, words
):
    (tmp_path / "empty.sqlite").touch()
    another = ReviewTable({"a": [1, 2, 3], "y": ["n", "p", "n"]}, "y").fingerprint
    Decisions(tmp_path / "other.sqlite", another).close()
    monkeypatch.setattr("unflip._app.workflow.learn", lambda *_, **__: pytest.fail("it was fitted"))
    refused = run("review", table, "--label", "y", "--decisions", tmp_path / name)
    assert refused.exit_code == 2, refused.output
    assert words in refused.stderr
    assert "Traceback" not in refused.stderr
