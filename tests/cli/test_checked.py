"""`--reviewed` with rows that were drawn at random."""

import json

import numpy as np
import polars as pl
import pytest


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Return a table whose labels are made by a rule, and files of checked rows."""
    folder = tmp_path_factory.mktemp("checked")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 3))
    true = np.where(X.sum(axis=1) > 0, "yes", "no")
    noisy = np.where(X[:, 0] + 0.3 * rng.normal(size=600) > 0.6, "yes", "no")
    pl.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "y": noisy}).write_csv(
        folder / "table.csv"
    )
    rows = rng.choice(600, 120, replace=False)
    drawn = {"row": rows, "label": true[rows], "given": noisy[rows]}
    pl.DataFrame({**drawn, "probability": np.full(120, 0.2)}).write_csv(folder / "drawn.csv")
    answers = np.where(np.arange(120) < 4, "unsure", drawn["label"])
    pl.DataFrame({**drawn, "label": answers, "probability": np.full(120, 0.2)}).write_csv(
        folder / "unsure.csv"
    )
    return folder, X, noisy, true, rows


def test_estimate_prints_both_and_that_they_contradict_each_other(run, files) -> None:
    folder, _, noisy, true, _ = files
    arguments = ("estimate", folder / "table.csv", "--label", "y", "--reviewed")
    said = " ".join(run(*arguments, folder / "drawn.csv").stdout.split())
    assert "120 checked rows" in said
    assert "labels alone" in said
    assert "contradict each other" in said
    found = json.loads(run(*arguments, folder / "drawn.csv", "--json").stdout)["checked"]
    low, high = found["label_error_rate"]["fixed_n"]
    assert low <= np.mean(noisy != true) <= high
    assert found["contradicted"]
    wide = found["label_error_rate"]["at_any_time"]
    assert wide[0] <= low
    assert high <= wide[1]
    unsure = " ".join(run(*arguments, folder / "unsure.csv").stdout.split())
    assert "4 of them unsure" in unsure


def test_rows_checked_by_hand_are_said_to_count_nothing(run, files, tmp_path) -> None:
    folder, *_ = files
    by_hand = tmp_path / "hand.csv"
    pl.read_csv(folder / "drawn.csv").drop("probability").write_csv(by_hand)
    arguments = ("estimate", folder / "table.csv", "--label", "y", "--reviewed", by_hand, "--json")
    found = json.loads(run(*arguments).stdout)
    assert found["checked"] is None
    assert any("by hand" in note for note in found["notes"])


def test_fit_learns_from_drawn_rows_how_labels_go_wrong(run, files, tmp_path) -> None:
    folder, _, _, true, _ = files
    model, out = tmp_path / "model.skops", tmp_path / "out.csv"
    table = folder / "table.csv"
    shares = []
    for extra in ((), ("--reviewed", folder / "drawn.csv")):
        run("fit", table, "--label", "y", "--out", model, "--force", *extra)
        run("predict", model, table, "--out", out, "--force")
        predicted = pl.read_csv(out)
        column = next(name for name in predicted.columns if name.startswith("predict"))
        shares.append(np.mean(predicted[column].to_numpy() == true))
    assert shares[1] > shares[0] + 0.1


def test_audit_leaves_out_rows_that_were_checked(run, files, tmp_path) -> None:
    folder, _, noisy, true, rows = files
    out = tmp_path / "audit.csv"
    arguments = ("audit", folder / "table.csv", "--label", "y", "--out", out)
    run(*arguments, "--reviewed", folder / "drawn.csv", "--top", "60")
    listed = pl.read_csv(out)["row"].to_numpy()
    assert listed.size == 60
    assert not np.isin(listed, rows).any()
    assert np.mean((noisy != true)[listed]) > 1.5 * np.mean(noisy != true)


def test_a_probability_of_zero_is_refused_with_its_row(run, files, tmp_path) -> None:
    path = tmp_path / "r.csv"
    path.write_text("row,label,probability\n3,yes,0.5\n7,no,0\n")
    result = run("estimate", files[0] / "table.csv", "--label", "y", "--reviewed", path)
    assert result.exit_code
    assert "row 7 was drawn with probability 0" in " ".join(result.stderr.split())
