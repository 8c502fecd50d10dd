"""The commands say the same of the same table, and do each piece of work once."""

import json

import numpy as np
import polars as pl
import pytest
import uvicorn
from benchmarks.work import DECISIONS, run_counted, write_table

from tests.review.caller import TOKEN, Caller

SCORING_FOLDS = 5


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(0)
    true = rng.integers(0, 2, 300)
    wrong = rng.random(300) < 0.2
    columns = {"a": 2.0 * true + rng.normal(size=300), "b": rng.normal(size=300)}
    path = tmp_path / "t.csv"
    pl.DataFrame(columns | {"y": np.where(true ^ wrong, "yes", "no")}).write_csv(path)
    return path


@pytest.fixture
def review_page(run, monkeypatch):
    """Return the head of a table's review page and its first count, before any decision."""

    def opened(path):
        answers = []

        def ask(server, sockets):
            caller = Caller(server.config.app)
            host = f"127.0.0.1:{sockets[0].getsockname()[1]}"
            answers.extend(caller.get(f"api/{name}", host=host).json() for name in names)
            caller.close()

        names = ("about", "tally")
        monkeypatch.setattr(uvicorn.Server, "run", ask)
        monkeypatch.setattr("secrets.token_urlsafe", lambda _: TOKEN)
        run("review", path, "--label", "y", "--no-open")
        return answers

    return opened


def test_every_command_reports_the_same_error_rate(run, review_page, table):
    page = table.with_name("page.json")
    found = json.loads(run("estimate", table, "--label", "y", "--json").stdout)
    audited = json.loads(run("audit", table, "--label", "y", "--json").stdout)["summary"]
    run("report", table, "--label", "y", "--out", page)
    reported = json.loads(page.read_text())["summary"]
    about, tally = review_page(table)
    share, count = found["expected_error_share"], found["expected_errors"]
    assert 0 < share < 1
    assert count == pytest.approx(300 * share, rel=1e-3)  # JSON has four digits
    for other in (audited, reported):
        assert (other["expected_error_share"], other["expected_errors"]) == (share, count)
    assert tally["estimate"]["wrong"]["model"] == pytest.approx(share, rel=1e-3)
    assert about["verdict"][0] == found["verdict"]["sentence"]


@pytest.mark.parametrize(("command", "n_fits"), [("report", 1 + SCORING_FOLDS), ("review", 1)])
def test_a_command_does_each_piece_of_work_once(command, n_fits, tmp_path):
    write_table(tmp_path / "table.csv")
    counts = run_counted(command, str(tmp_path))
    started = counts["at the start"]
    # a report scores on held-out labels, of which the weights may not know either
    assert started["fits of the noise model"] == n_fits
    assert started["goodness-of-fit checks"] == 1
    assert started["encodings of the table"] == 1
    assert started.get("review tables built", 0) == (command == "review")
    assert counts["per decision"].get("uses of the store", 0) <= 4 * DECISIONS
