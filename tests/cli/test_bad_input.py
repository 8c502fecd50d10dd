"""Bad input is refused in words, with exit code 2 (or 1 where the data do not tell), and writes
nothing."""

import errno
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from tests.cli.mixed import COLUMNS, RATES, mixed_table
from unflip import ImportanceReweightingClassifier
from unflip._app import table_files
from unflip.noise import RatesInterval
from unflip.noise_rates import ChannelRates

LEARNING = ("estimate", "fit", "audit", "report")
WRITING = ("fit", "audit", "flip", "report", "predict")


@pytest.fixture
def refused(run, tmp_path, monkeypatch):
    """Run a command on a bad table, in an empty folder; check that it writes nothing."""
    folder = tmp_path / "folder"
    folder.mkdir()
    monkeypatch.chdir(folder)

    def check(command, *arguments, code=2):
        result = run(command, *arguments)
        assert result.exit_code == code, result.output
        assert not list(folder.iterdir())
        assert "Traceback" not in result.output
        assert not result.stdout
        return " ".join(result.stderr.split())

    return check


def arguments_of(command, table):
    """Return a working call's arguments, but for the table."""
    extra = {"flip": ("--rates", "0.3,0.1"), "predict": ()}.get(command, ())
    out = {"report": "r.html", "fit": "m.skops", "estimate": None}.get(command, "out.csv")
    return (table, "--label", "churn", *extra, *(("--out", out) if out else ()))


@pytest.mark.parametrize("command", [*LEARNING, "flip"])
@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is empty"),
        (b"a,churn\n", "holds no rows"),
        (b"a,b\n1,2\n", "there is no column 'churn'"),
        (b"a,chrun\n1,2\n", "Did you mean 'chrun'?"),
        (b"a;churn\n1;yes\n2;no\n", "--separator ';'"),
        (b"a,churn\n1,yes\n2,yes\n", "one class only, 'yes'"),
        (b"a,churn\n1,yes\n2,\n3,no\n", "1 of 3 rows have no label in column 'churn' (rows 1,"),
        (b"a,churn\n1,NaN\n2,0\n3,1\n", "1 of 3 rows have no label"),
        (b"a,churn\n1,0.5\n2,0\n3,1\n", "fractions such as 0.5"),
        (b"a,churn\n1,caf\xe9\n2,no\n", "line 2 of"),
        ("a,churn\n1,café\n".encode() + b"2,caf\xe9\n", "line 3 of"),
        (b"a,churn\n1,yes\n2,no,3\n", "more fields than the header"),
        (b"PAR1\0\0\0\n", "holds binary data"),
        (b"a,churn,a\n1,yes,2\n2,no,2\n", "two columns called 'a'"),
        (b"churn\nyes\nno\n", "no column is left to learn from"),
        (b"a,churn\n1,yes\ninf,no\n", "holds infinity"),
    ],
    ids=range(16),
)
def test_a_bad_table_is_refused_by_every_command(refused, tmp_path, command, content, words):
    path = tmp_path / "table.csv"
    path.write_bytes(content)
    assert words in refused(command, *arguments_of(command, path))


@pytest.mark.parametrize("command", [*LEARNING, "flip"])
def test_more_than_fifty_classes_are_refused(refused, tmp_path, command):
    path = tmp_path / "many.csv"
    pl.DataFrame({"a": range(102), "churn": [f"c{k // 2}" for k in range(102)]}).write_csv(path)
    said = refused(command, *arguments_of(command, path))
    assert "51 distinct values" in said


def test_a_line_without_end_is_refused_before_it_is_held_in_memory(refused, tmp_path, monkeypatch):
    monkeypatch.setattr("unflip._app.table_files.LONGEST_LINE", 2**21)
    path = tmp_path / "long.csv"
    path.write_bytes(b"a,churn\n1,yes\n" + b"x" * 2**22 + b",no\n")
    monkeypatch.setattr(pl, "read_csv", lambda *a, **k: pytest.fail("was read"))
    assert "line 3 of" in refused("estimate", path, "--label", "churn")


def test_many_long_lines_are_read(tmp_path):
    path = tmp_path / "wide.csv"
    path.write_bytes(b"a,churn\n" + (b"x" * 2**19 + b",yes\n") * 5)
    assert table_files.read_table(path).height == 5


@pytest.mark.parametrize(
    ("name", "content"),
    [("t.parquet", b"hello"), ("t.arrow", b"hello"), ("t.jsonl", b'{"a": 1}\n{oops\n')],
)
def test_a_file_that_is_not_what_its_name_says_is_refused(refused, tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    said = refused("estimate", tmp_path / name, "--label", "churn")
    assert f"cannot be read as {name[2:]}" in said


def test_lists_in_json_lines_are_refused_by_name(refused, tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_text('{"a": [1], "churn": "x"}\n{"a": [2], "churn": "y"}\n')
    assert "--drop 'a'" in refused("estimate", path, "--label", "churn")


@pytest.mark.parametrize("name", ["t.xls", "table"])
def test_an_unknown_ending_is_refused_and_the_known_ones_are_listed(refused, tmp_path, name):
    (tmp_path / name).write_text("a,churn\n")
    assert ".csv, .tsv" in refused("estimate", tmp_path / name, "--label", "churn")


def test_missing_files_and_folders_are_refused(refused, tmp_path):
    assert "does not exist" in refused("estimate", tmp_path / "no.csv", "--label", "churn")
    assert "is not a file" in refused("estimate", tmp_path, "--label", "churn")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--drop", "nothing"), "there is no column 'nothing'"),
        (("--drop", "churn"), "it cannot be dropped"),
        (("--id", "nobody"), "there is no column 'nobody'"),
        (("--positive", "maybe"), "'maybe' is not one of the classes: 'no', 'yes'"),
        (("--rates", "0.3"), "--rates '0.3': expected a number"),
        (("--rates", "0.6,0.6"), "must sum to less than 1"),
        (("--rates", "0.3:0.1,?"), "must be (low, high)"),
        (("--estimator", "forest"), "is not one of logistic, boosting, svm"),
        (("--estimator", "no.such.Thing"), "cannot be created"),
        (("--estimator", "sklearn.linear_model.Ridge"), "is not a classifier"),
        (("--estimator", "sklearn.neighbors.KNeighborsClassifier"), "sample_weight"),
        (("--separator", "::"), "the separator must be one character"),
    ],
)
def test_bad_options_are_refused(refused, noisy, arguments, words):
    assert words in refused("estimate", noisy, "--label", "churn", *arguments)


def test_rates_of_two_classes_are_refused_for_three(refused, tmp_path):
    path = tmp_path / "three.csv"
    pl.DataFrame({"a": range(30), "churn": ["x", "y", "z"] * 10}).write_csv(path)
    said = refused("estimate", path, "--label", "churn", "--rates", "0.1,0.1")
    assert "3: 'x', 'y', 'z'" in said


def test_columns_that_tell_nothing_are_no_estimate(refused, tmp_path):
    rng = np.random.default_rng(0)
    path = tmp_path / "chance.csv"
    labels = pl.Series("churn", rng.choice(["yes", "no"], 500))
    mixed_table().with_columns(labels).write_csv(path)
    for command in LEARNING:
        said = refused(command, *arguments_of(command, path), code=1)
        assert said.startswith("cannot be estimated: The columns do not predict")


def test_too_few_rows_are_no_estimate(refused, tmp_path):
    path = tmp_path / "few.csv"
    mixed_table(9).write_csv(path)
    assert "at least 10 are required" in refused("estimate", path, "--label", "churn", code=1)


def test_a_class_of_one_row_is_no_estimate(refused, tmp_path):
    path = tmp_path / "rare.csv"
    table = mixed_table(60).sort("churn")
    table.filter(pl.col("churn") == "no").vstack(table[-1:]).write_csv(path)
    said = refused("estimate", path, "--label", "churn", code=1)
    assert "class 'yes' has one row only" in said


def test_an_interval_of_nearly_everything_is_no_estimate(refused, noisy, monkeypatch):
    unsure = RatesInterval.from_pairs(positive=(0.02, 0.81), negative=(0.0, 0.3))
    monkeypatch.setattr(ChannelRates, "interval", lambda self: unsure)
    said = refused("estimate", noisy, *COLUMNS, code=1)
    assert "The flip rate of 'yes' may be anything between 2% and 81%" in said


def test_other_columns_than_in_training_are_refused_with_the_list(refused, noisy, model, tmp_path):
    table = pl.read_csv(noisy).drop("plan").rename({"note": "remark"})
    path = tmp_path / "other.csv"
    table.with_columns(pl.lit("many").alias("visits")).write_csv(path)
    said = refused("predict", model, path, "--out", "out.csv")
    for words in (
        "missing: 'plan'",
        "missing: 'note'",
        "not seen in training: 'remark'",
        "'visits' holds text instead of numbers",
    ):
        assert words in said


@pytest.mark.parametrize("content", [b"", b"hello", b"zip"])
def test_what_is_no_model_is_refused(refused, noisy, tmp_path, content):
    path = tmp_path / "model.skops"
    if content == b"zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("a.txt", "a")
    else:
        path.write_bytes(content)
    assert "is not a model file of unflip" in refused("predict", path, noisy, "--out", "o.csv")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("row,decision\n1,yes\n", "has no column 'label'"),
        ("row,label\n1,perhaps\n", "gives row 1 the label 'perhaps', which is not one of the"),
        ("row,label\n5000,yes\n", "names row 5000"),
        ("row,label\nfirst,yes\n", "got 'first'"),
        ("row,label\n1,\n2,yes\n", "no label for row 1"),
        ("row,label\n1,yes\n1,no\n", "gives row 1 two labels"),
        ("row,label,probability\n1,yes,\n7,no,often\n", "row 7 has 'often'"),
        ("row,label,given\n1,yes,maybe\n", "column 'given': rows 1"),
    ],
)
def test_bad_files_of_reviewed_labels_are_refused(refused, noisy, tmp_path, content, words):
    path = tmp_path / "reviewed.csv"
    path.write_text(content)
    assert words in refused("fit", noisy, *COLUMNS, "--reviewed", path)


def test_top_and_precision_exclude_each_other(refused, noisy):
    said = refused("audit", noisy, *COLUMNS, "--top", "3", "--precision", "0.9")
    assert "give --top or --precision, not both" in said
    assert "expected a share" in refused("audit", noisy, *COLUMNS, "--precision", "1.2")


def test_names_that_are_taken_are_refused(refused, noisy, model, tmp_path):
    path = tmp_path / "taken.csv"
    table = pl.read_csv(noisy)
    table.with_columns(pl.lit(1).alias("row")).write_csv(path)
    assert "has a column 'row'" in refused("audit", path, *COLUMNS, "--out", "a.csv")
    said = refused("flip", noisy, *arguments_of("flip", noisy)[1:], "--truth", "truth")
    assert "already has a column" in said


@pytest.fixture
def calls(small, model):
    """Return a working call of every command that writes."""
    return {
        "fit": (small, *COLUMNS, *RATES, "--out", "m.skops", "--report", "r.html"),
        "audit": (small, *COLUMNS, *RATES, "--out", "a.csv"),
        "flip": arguments_of("flip", small),
        "report": (small, *COLUMNS, *RATES, "--out", "r.html"),
        "predict": (model, small, "--out", "p.csv"),
    }


@pytest.mark.parametrize("command", WRITING)
def test_a_folder_that_may_not_be_written_to_is_refused(refused, calls, monkeypatch, command):
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)
    assert "is not writable" in refused(command, *calls[command])


@pytest.mark.parametrize("command", WRITING)
def test_a_full_disk_leaves_nothing(refused, calls, monkeypatch, command):
    def half(path, content):
        with path.open("wb") as file:
            file.write(content[: len(content) // 2])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", half)
    assert "No space left on device" in refused(command, *calls[command])


@pytest.mark.parametrize("command", WRITING)
def test_an_interrupt_leaves_nothing(refused, calls, monkeypatch, command):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupted)
    assert "interrupted" in refused(command, *calls[command], code=130)


def test_an_interrupt_in_the_midst_of_learning_leaves_nothing(refused, calls, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(ImportanceReweightingClassifier, "_fit", interrupted)
    monkeypatch.setattr(tempfile, "mkstemp", lambda **_: pytest.fail("a file was begun"))
    assert "interrupted" in refused("fit", *calls["fit"], code=130)


INTERRUPTED = """
import os, signal, sys

class CtrlC:
    def find_spec(self, name, *_):
        if name == module and not sent:
            sent.append(name)
            os.kill(os.getpid(), signal.SIGINT)

module, sent = sys.argv.pop(1), []
sys.meta_path.insert(0, CtrlC())
from unflip.__main__ import main
main()
"""


@pytest.mark.skipif(os.name != "posix", reason="sends itself the signal of Ctrl+C")
@pytest.mark.parametrize(
    "module", ["typer", "polars", "numpy", "scipy.optimize", "sklearn.base", "sklearn.ensemble"]
)
def test_an_interrupt_while_modules_are_imported_shows_no_traceback(tmp_path, module):
    table = tmp_path / "table.csv"
    mixed_table().write_csv(table)
    stopped = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, module, "estimate", str(table), "--label", "churn"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert stopped.returncode == 130, stopped.stderr
    assert "Traceback" not in stopped.stderr
    assert not stopped.stdout
