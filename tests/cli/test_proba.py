"""Held-out probabilities on the command line: `--proba`."""

import json

import numpy as np
import polars as pl
import pytest

from unflip import LabelAudit, TransitionMatrix, flip_labels

CLASSES = np.array(["cat", "dog", "owl"])
COLUMNS = ["p_cat", "p_dog", "p_owl"]


def made(n_rows=600, seed=0):
    """Probabilities, labels of which a sixth is wrong, and the wrong ones."""
    rng = np.random.default_rng(seed)
    clean = rng.dirichlet(np.full(3, 0.05), n_rows)
    true = (clean.cumsum(axis=1) > rng.random(n_rows)[:, None]).argmax(axis=1)
    noise = TransitionMatrix.uniform(3, 0.15)
    given = np.asarray(flip_labels(true, noise, random_state=seed))
    return noise.noisy_posterior(clean), CLASSES[given], given != true


PROBA, LABELS, WRONG = made()


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "animals.csv"
    columns = {"y": LABELS, **dict(zip(COLUMNS, PROBA.T, strict=True)), "x": np.arange(len(LABELS))}
    pl.DataFrame(columns).write_csv(path)
    return path


@pytest.fixture
def files(tmp_path):
    """The same probabilities in files of their own."""
    np.save(tmp_path / "p.npy", PROBA)
    frame = pl.DataFrame(dict(zip(CLASSES.tolist(), PROBA.T, strict=True)))
    frame.select("owl", "cat", "dog").write_parquet(tmp_path / "p.parquet")
    return tmp_path


def ranked(run, *arguments):
    result = run("audit", *arguments, "--label", "y", "--top", 50, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_columns_files_and_python_say_the_same(run, table, files):
    expected = LabelAudit(random_state=0).fit_posterior(PROBA, LABELS).issues(n=50)
    for proba in ("p_cat,p_dog,p_owl", files / "p.npy", files / "p.parquet", "p_owl, p_cat,p_dog"):
        printed = ranked(run, table, "--proba", proba)
        assert [row["row"] for row in printed["rows"]] == expected.tolist()
    assert WRONG[expected].mean() > 0.8


def test_estimate_says_how_many_and_the_range(run, table):
    result = run("estimate", table, "--label", "y", "--proba", "p_cat,p_dog,p_owl", "--json")
    found = json.loads(result.stdout)
    low, high = found["label_error_range"]["by_row"]
    assert low <= WRONG.mean() <= high
    assert not found["rates_given"]
    words = run("estimate", table, "--label", "y", "--proba", "p_cat,p_dog,p_owl").stdout
    assert "of the labels" in words


@pytest.mark.parametrize("ending", ["html", pytest.param("md", marks=pytest.mark.slow), "json"])
def test_report_has_the_suspects_and_nothing_on_training(run, table, tmp_path, ending):
    out = tmp_path / f"report.{ending}"
    arguments = ("--label", "y", "--proba", "p_cat,p_dog,p_owl", "--out", out)
    result = run("report", table, *arguments)
    assert result.exit_code == 0, result.output
    page = out.read_text()
    assert "Accuracy gained" not in page
    assert "suspic" in page or "suspects" in page


def test_junk_is_shown_as_such(run, tmp_path):
    rng = np.random.default_rng(1)
    clean = rng.dirichlet(np.full(6, 0.03), 1500)
    true = (clean.cumsum(axis=1) > rng.random(1500)[:, None]).argmax(axis=1)
    junk = rng.random(1500) < 0.15
    clean[junk] = rng.dirichlet(np.full(6, 1.5), int(junk.sum()))
    given = np.where(junk, rng.integers(0, 6, 1500), true)
    table, out = tmp_path / "t.csv", tmp_path / "audit.csv"
    pl.DataFrame({"y": given}).write_csv(table)
    np.save(tmp_path / "p.npy", clean)
    arguments = (table, "--label", "y", "--proba", tmp_path / "p.npy")
    assert run("audit", *arguments, "--out", out).exit_code == 0
    listed = pl.read_csv(out)
    assert junk[listed["row"].to_numpy()[:100]].mean() > 0.9
    assert listed["p_none"][:50].mean() > 0.5
    assert run("report", *arguments, "--out", tmp_path / "r.md").exit_code == 0
    assert "none of these" in (tmp_path / "r.md").read_text()


def test_review_shows_the_audit_of_the_probabilities(run, table, monkeypatch):
    shown = []

    def serve(whole, label, audit, *paths, **options):
        shown.append((audit.mislabel_proba_, options["verdict"]))

    monkeypatch.setattr("unflip.cli._review.serve", serve)
    result = run("review", table, "--label", "y", "--proba", "p_cat,p_dog,p_owl")
    assert result.exit_code == 0, result.output
    expected = LabelAudit(random_state=0).fit_posterior(PROBA, LABELS)
    np.testing.assert_array_equal(shown[0][0], expected.mislabel_proba_)
    assert "of the labels" in shown[0][1][0]


def refused(run, table, proba):
    result = run("audit", table, "--label", "y", "--proba", proba)
    assert result.exit_code != 0
    return " ".join(result.output.split())


def test_bad_probabilities_are_named(run, table, tmp_path):
    def saved(values):
        np.save(tmp_path / "bad.npy", values)
        return refused(run, table, tmp_path / "bad.npy")

    assert "no column 'p_cow'" in refused(run, table, "p_cat,p_cow,p_owl")
    assert "no such file" in refused(run, table, tmp_path / "missing.npy")
    assert "no such file" in refused(run, table, "missing.parquet")
    assert "599 rows" in saved(PROBA[:-1])
    assert "2 columns" in saved(PROBA[:, :2])
    assert "2 columns" in refused(run, table, "p_cat,p_dog")
    assert "has shape (600,)" in saved(PROBA[:, 0])
    assert "another order than the classes" in saved(PROBA[:, [1, 2, 0]])
    assert "sums to" in saved(0.8 * PROBA)
    assert "softmax" in saved(np.log(PROBA))
    assert "not probabilities" in saved(np.full((600, 3), "a"))
    assert "cannot be read" in saved(np.array([[None] * 3] * 600, dtype=object))
    bad = PROBA.copy()
    bad[5, 1] = np.nan
    assert "row 5" in saved(bad)
    pl.DataFrame(dict(zip(COLUMNS, bad.T, strict=True))).write_parquet(tmp_path / "bad.parquet")
    assert "row 5" in refused(run, table, tmp_path / "bad.parquet")
    (tmp_path / "text.npy").write_text("no array")
    assert "cannot be read" in refused(run, table, tmp_path / "text.npy")


def test_probabilities_of_seen_labels_are_doubted(run, table, tmp_path):
    seen = np.full((600, 3), 0.004)
    seen[np.arange(600), np.searchsorted(CLASSES, LABELS)] = 0.992
    np.save(tmp_path / "seen.npy", seen)
    result = run("estimate", table, "--label", "y", "--proba", tmp_path / "seen.npy")
    assert "repeats their errors" in " ".join(result.output.split())
