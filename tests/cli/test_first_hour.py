"""What a stranger tries: other files, other encodings, labels that are not in order, more rates."""

import gzip
import json
import re

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from tests.cli.mixed import COLUMNS, RATES, mixed_table
from tests.cli.through import through_flip
from unflip.cli import app

TABLE = pl.DataFrame({"a": [1.5, 2.5, None], "name": ["Zoë", "Ana", None], "y": ["u", "v", "u"]})


@pytest.mark.parametrize("ending", [".csv.gz", ".tsv.gz", ".jsonl.gz", ".xlsx"])
def test_packed_and_excel_files_hold_the_same_table(tmp_path, ending):
    path = tmp_path / f"table{ending}"
    if ending == ".xlsx":
        from openpyxl import Workbook

        book = Workbook()
        book.active.append(TABLE.columns)
        for row in TABLE.iter_rows():
            book.active.append(row)
        book.save(path)
    else:
        if ending == ".jsonl.gz":
            content = TABLE.write_ndjson()
        else:
            content = TABLE.write_csv(separator="\t" if ending == ".tsv.gz" else ",")
        path.write_bytes(gzip.compress(content.encode()))
    assert through_flip(path)[0].equals(TABLE)


def test_a_packed_file_that_is_damaged_or_too_large_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "table.csv.gz"
    path.write_bytes(gzip.compress(b"a,y\n" + b"1,u\n" * 100)[:-9])
    with pytest.raises(ValueError, match="cannot be read as csv"):
        through_flip(path)
    path.write_bytes(gzip.compress(b"a,y\n" * 100))
    monkeypatch.setattr("unflip._app.table_files.LARGEST_UNPACKED", 100)
    with pytest.raises(ValueError, match="holds more than"):
        through_flip(path)


@pytest.mark.parametrize(
    ("encoding", "text"), [("latin-1", "Zoë"), ("cp1252", "“Zoë”"), ("utf-16", "Zoë")]
)
def test_the_message_names_the_encoding_and_the_encoding_works(tmp_path, encoding, text):
    path = tmp_path / "table.csv"
    path.write_bytes(f"name,y\n{text},u\nAna,v\n".encode(encoding))
    with pytest.raises(ValueError, match=f"--encoding {encoding}$"):
        through_flip(path)
    table, _ = through_flip(path, "--encoding", encoding)
    assert table["name"].to_list() == [text, "Ana"]


def test_an_encoding_that_is_not_known_or_not_the_right_one_is_refused(tmp_path):
    path = tmp_path / "table.csv"
    path.write_bytes("name,y\nZoë,u\n".encode("latin-1"))
    with pytest.raises(ValueError, match="klingon"):
        through_flip(path, "--encoding", "klingon")
    with pytest.raises(ValueError, match=r"line 2 .* is not ascii"):
        through_flip(path, "--encoding", "ascii")
    TABLE.write_parquet(tmp_path / "table.parquet")
    with pytest.raises(ValueError, match="is for text"):
        through_flip(tmp_path / "table.parquet", "--encoding", "latin-1")


def test_a_table_comes_from_standard_input(noisy):
    arguments = ["estimate", "-", *COLUMNS, *RATES, "--json"]
    piped = CliRunner().invoke(app, arguments, input=noisy.read_bytes())
    assert piped.exit_code == 0, piped.stderr
    assert json.loads(piped.stdout)["n_samples"] == 500
    empty = CliRunner().invoke(app, arguments, input=b"")
    assert (empty.exit_code, "standard input is empty" in empty.stderr) == (2, True)
    page = CliRunner().invoke(app, ["review", "-", *COLUMNS], input=b"")
    assert (page.exit_code, "needs a file" in page.stderr) == (2, True)


def test_rows_without_a_label_are_left_out_when_asked(run, tmp_path, small):
    table = pl.read_csv(small).with_columns(
        pl.when(pl.int_range(pl.len()) % 10 == 0)
        .then(None)
        .otherwise(pl.col("churn"))
        .alias("churn")
    )
    path = tmp_path / "gaps.csv"
    table.write_csv(path)
    refused = run("estimate", path, *COLUMNS, *RATES)
    assert (refused.exit_code, "--skip-unlabelled" in refused.stderr) == (2, True)
    found = run("estimate", path, *COLUMNS, *RATES, "--skip-unlabelled", "--json")
    assert found.exit_code == 0, found.stderr
    assert json.loads(found.stdout)["n_samples"] == 108
    assert "12 of 120 rows" in found.stderr


def test_classes_are_left_out_by_name(run, tmp_path, small):
    path = tmp_path / "other.csv"
    other = pl.when(pl.int_range(pl.len()) % 10 == 0).then(pl.lit("other"))
    pl.read_csv(small).with_columns(churn=other.otherwise("churn")).write_csv(path)
    found = run("estimate", path, *COLUMNS, *RATES, "--drop-classes", "other", "--json")
    assert json.loads(found.stdout)["classes"] == ["no", "yes"]
    assert json.loads(found.stdout)["n_samples"] == 108
    refused = run("estimate", path, *COLUMNS, *RATES, "--drop-classes", "d")
    assert refused.exit_code == 2
    assert "'no', 'other', 'yes'" in refused.stderr


def test_the_doubt_about_labels_names_the_option_that_helps(run, tmp_path, small):
    table = pl.read_csv(small).with_columns(
        pl.when(pl.int_range(pl.len()) % 3 == 0)
        .then(pl.col("churn").str.to_uppercase())
        .otherwise(pl.col("churn"))
        .alias("churn")
    )
    path = tmp_path / "spelling.csv"
    table.write_csv(path)
    found = run("estimate", path, *COLUMNS)
    assert "--merge-labels" in found.output.replace("\n", " ")
    merged = run("estimate", path, *COLUMNS, *RATES, "--merge-labels", "--json")
    assert json.loads(merged.stdout)["classes"] == ["no", "yes"]


# --- rates


@pytest.mark.parametrize(
    ("text", "said"), [("0.3", "there is 1"), ("0.1,0.2,0.3", "there are 3"), ("a,b", "float")]
)
def test_what_is_wrong_with_rates_is_said(tmp_path, text, said):
    TABLE.write_csv(tmp_path / "t.csv")
    with pytest.raises(ValueError, match=f"such as 0.3,0.1.*{said}"):
        through_flip(tmp_path / "t.csv", rates=text)


MATRIX = "true,b,a,c\na,0.1,0.8,0.1\nb,0.7,0.2,0.1\nc,0,0,1\n"
"""Columns in another order than the classes."""


def flip_at(run, folder, labels, content):
    """Flip labels at the rates that a file holds."""
    pl.DataFrame({"x": labels, "y": labels}).write_csv(folder / "t.csv")
    (folder / "rates.csv").write_text(content)
    at = ("--rates", folder / "rates.csv", "--out", folder / "o.csv", "--json")
    return run("flip", folder / "t.csv", "--label", "y", *at)


def test_a_matrix_is_read_by_the_names_of_its_classes(run, tmp_path):
    three = flip_at(run, tmp_path, ["a", "b", "c"], MATRIX)
    expected = [[0.8, 0.1, 0.1], [0.2, 0.7, 0.1], [0, 0, 1]]
    np.testing.assert_allclose(json.loads(three.stdout)["transition_matrix"], expected)
    (tmp_path / "o.csv").unlink()
    two = flip_at(run, tmp_path, [0, 1], "0,1\n0.9,0.1\n0.2,0.8\n")
    expected = [[0.9, 0.1], [0.2, 0.8]]
    np.testing.assert_allclose(json.loads(two.stdout)["transition_matrix"], expected)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("a,b\n1,0\n0,1\n", "expected a column and a row for each of the 3 classes"),
        ("true,a,b,c\na,1,0,0\nb,0,1,0\nx,0,0,1\n", "'x' is not one of the classes"),
        ("true,a,b,c\na,1,0,0\nb,0,1,0\nc,0,u,1\n", "holds no noise rates"),
        ("true,a,b,c\na,1,0,0\nb,0,1,0\nc,0,0,2\n", "holds no noise rates"),
    ],
)
def test_a_file_that_holds_no_matrix_is_refused(run, tmp_path, content, said):
    refused = flip_at(run, tmp_path, ["a", "b", "c"], content)
    assert refused.exit_code == 2
    assert said in refused.stderr


def test_labels_of_three_classes_are_flipped_and_estimated_at_rates_of_a_file(run, tmp_path):
    rng = np.random.default_rng(0)
    true = rng.integers(0, 3, 3000)
    table = pl.DataFrame(
        {"x": 4.0 * true + rng.normal(size=3000), "y": np.array(list("abc"))[true]}
    )
    clean, noisy, rates = (tmp_path / name for name in ("clean.csv", "noisy.csv", "rates.csv"))
    table.write_csv(clean)
    rates.write_text(MATRIX)
    flipped = run("flip", clean, "--label", "y", "--rates", rates, "--out", noisy, "--truth", "t")
    assert flipped.exit_code == 0, flipped.stderr
    made = pl.read_csv(noisy)
    seen = made.filter(pl.col("t") == "b")["y"].value_counts(normalize=True)
    assert abs(seen.filter(pl.col("y") == "a")["proportion"].item() - 0.2) < 0.04
    found = run("estimate", noisy, "--label", "y", "--drop", "t", "--rates", rates, "--json")
    assert found.exit_code == 0, found.stderr
    expected = [[0.8, 0.1, 0.1], [0.2, 0.7, 0.1], [0, 0, 1]]
    np.testing.assert_allclose(json.loads(found.stdout)["transition_matrix"], expected)
    two = run("estimate", noisy, "--label", "y", "--drop", "t", *RATES)
    assert (two.exit_code, "Give a file" in two.stderr) == (2, True)


def test_the_posterior_can_be_chosen(run, tmp_path):
    path = tmp_path / "table.csv"
    mixed_table(300).drop("note").write_csv(path)
    arguments = ("estimate", path, "--label", "churn", "--id", "customer")
    trees = run(*arguments, "--posterior", "boosting", "--json")
    assert trees.exit_code == 0, trees.stderr
    for wrong, said in (("forest", "is not one of auto"), ("svm", "predict_proba")):
        refused = run(*arguments, "--posterior", wrong)
        assert (refused.exit_code, said in refused.stderr) == (2, True)


# --- what is noticed, progress, and parts of the table


def test_an_identifier_and_copies_are_noted_once(run, tmp_path):
    table = mixed_table(120)
    path = tmp_path / "table.csv"
    pl.concat([table, table[:30]]).with_columns(
        key=pl.Series([f"K{k}" for k in range(150)])
    ).write_csv(path)
    options = (path, "--label", "churn", "--drop", "customer", *RATES)
    found = run("estimate", *options)
    assert found.exit_code == 0, found.output
    words = " ".join(found.stdout.split())
    assert words.count("--id key") == 1
    assert words.count("30 of 150 samples are exact copies") == 1
    assert found.stderr == ""
    flipped = run("flip", *options[:3], *RATES, "--out", tmp_path / "f.csv")
    assert (flipped.exit_code, flipped.stderr) == (0, "")


def test_a_terminal_is_shown_what_share_of_the_work_is_done(small):
    # rich before 14 goes by the colours
    terminal = {"COLUMNS": "120", "TTY_COMPATIBLE": "1", "TTY_INTERACTIVE": "1", "FORCE_COLOR": "1"}
    arguments = ["estimate", str(small), *COLUMNS, *RATES]
    shown = CliRunner().invoke(app, arguments, env=terminal)
    assert shown.exit_code == 0, shown.output
    shares = [int(share) for share in re.findall(r"(\d+)%", shown.stderr)]
    assert shares == sorted(shares)
    assert shares[0] < 30
    quiet = CliRunner().invoke(app, [*arguments, "--quiet"], env=terminal)
    assert quiet.stderr == ""


@pytest.mark.slow
def test_parts_of_a_table_are_compared_in_the_report(run, tmp_path):
    rng = np.random.default_rng(0)
    x, source = rng.normal(size=600) * 3, rng.choice(["phone", "web"], 600)
    wrong = rng.random(600) < np.where(source == "phone", 0.35, 0.02)
    table = pl.DataFrame({"x": x, "source": source, "y": np.where((x > 0) ^ wrong, "u", "v")})
    path, out = tmp_path / "table.csv", tmp_path / "page.json"
    table.write_csv(path)
    arguments = ("report", path, "--label", "y", "--rates", "0.2,0.2", "--by", "source")
    told = run(*arguments, "--out", out)
    assert told.exit_code == 0, told.output
    assert "The noise differs between slices by 'source'" in told.stdout.replace("\n", " ")
    (slices,) = json.loads(out.read_text())["slices"]
    shares = {part["name"]: part["label_error_rate"] for part in slices["slices"]}
    assert shares["phone"] > shares["web"] + 0.2
    assert '"p_value": 0.0\n' not in out.read_text()


@pytest.mark.parametrize(
    ("by", "said"),
    [
        ("sorce", "there is no column 'sorce'. Did you mean 'source'?"),
        ("y", "--by 'y' is the label"),
        ("same", "--by 'same' has one value only"),
    ],
)
def test_parts_that_cannot_be_compared_are_refused_before_the_work(run, tmp_path, by, said):
    table = pl.DataFrame({"source": ["a", "b"] * 10, "y": ["u", "v", "v", "u"] * 5})
    path = tmp_path / "table.csv"
    table.with_columns(same=pl.lit(1)).write_csv(path)
    refused = run("report", path, "--label", "y", "--by", by, "--out", tmp_path / "p.html")
    assert refused.exit_code == 2, refused.output
    assert said in refused.stderr


@pytest.mark.slow
def test_parts_are_compared_for_three_classes_too(run, tmp_path):
    rng = np.random.default_rng(0)
    true, source = rng.integers(0, 3, 450), rng.choice(["desk", "phone"], 450)
    wrong = rng.random(450) < np.where(source == "phone", 0.4, 0.0)
    x, y = (5 * np.array([[0, 0], [1, 0], [0, 1]])[true] + rng.normal(size=(450, 2))).T
    labels = np.array(["u", "v", "w"])[np.where(wrong, (true + 1) % 3, true)]
    path, page = tmp_path / "table.csv", tmp_path / "p.html"
    pl.DataFrame({"a": x, "b": y, "source": source, "y": labels}).write_csv(path)
    done = run("report", path, "--label", "y", "--by", "source", "--out", page)
    assert done.exit_code == 0, done.output
    assert "The noise differs between slices by 'source'" in " ".join(done.stdout.split())
    assert page.read_text().count('class="whisker"') == 2


def test_beside_a_copy_of_the_label_no_row_is_called_suspicious(run, tmp_path):
    table = mixed_table(200).with_columns(left=pl.col("churn") == "yes")
    path, out = tmp_path / "table.csv", tmp_path / "audit.csv"
    table.write_csv(path)
    found = run("audit", path, "--label", "churn", "--id", "customer", "--out", out)
    assert found.exit_code == 0, found.output
    assert "Column 'left' is the label under another name" in " ".join(found.stdout.split())
    assert "rows to check" not in found.stdout
    assert pl.read_csv(out).height == 0


def test_a_refusal_is_said_once_and_with_the_reason_first(run, tmp_path):
    rng = np.random.default_rng(0)
    labels = np.where(rng.random(300) < 0.5, "Left", "left")
    table = pl.DataFrame(
        {"x": rng.normal(size=300), "y": np.where(rng.random(300) < 0.5, labels, "stayed")}
    )
    path = tmp_path / "table.csv"
    table.write_csv(path)
    refused = run("estimate", path, "--label", "y")
    assert refused.exit_code == 1
    assert refused.stderr.startswith(
        "cannot be estimated: The classes 'Left', 'left' look like one"
    )
    assert refused.stderr.count("look like one class") == 1
    assert refused.stderr.count("\n") == 1


def test_what_an_estimator_prints_is_no_part_of_the_result(run, small, tmp_path):
    talkative = (
        "--estimator",
        "tests.cli.mixed.TalkativeClassifier",
        "--out",
        tmp_path / "m.skops",
    )
    found = run("fit", small, *COLUMNS, *RATES, *talkative, "--json")
    assert found.exit_code == 0, found.output
    trusted = json.loads(found.stdout)["trust"]
    assert trusted == ["tests.cli.mixed.TalkativeClassifier"]
    assert "[Info] Number of rows" in found.stderr
    assert "--trust tests.cli.mixed.TalkativeClassifier" in found.stderr
    quiet = run("fit", small, *COLUMNS, *RATES, *talkative, "--force", "--quiet")
    assert (quiet.exit_code, quiet.output) == (0, "")


def test_predictions_by_blocks_are_those_of_all_rows_and_warn_once(
    run, noisy, model, tmp_path, monkeypatch
):
    table = pl.read_csv(noisy).with_columns(plan=pl.lit("gold"))
    path = tmp_path / "new.csv"
    table.write_csv(path)
    whole, parts = tmp_path / "whole.csv", tmp_path / "parts.csv"
    assert run("predict", model, path, "--out", whole).exit_code == 0
    monkeypatch.setattr("unflip._app.persistence._predictors.BLOCK_BYTES", 4000)
    found = run("predict", model, path, "--out", parts)
    assert found.exit_code == 0, found.output
    assert found.stderr.count("column 'plan'") == 1
    expected, told = pl.read_csv(whole), pl.read_csv(parts)
    assert told["predicted"].equals(expected["predicted"])
    difference = told["probability_yes"] - expected["probability_yes"]
    assert difference.abs().max() < 1e-9


def test_an_option_that_changes_nothing_names_the_one_that_does(run, small):
    told = run("estimate", small, *COLUMNS, *RATES, "--estimator", "boosting").stderr
    assert "--estimator boosting" in told
    assert "--posterior" in told
    assert "--estimator" not in run("estimate", small, *COLUMNS, *RATES).stderr
