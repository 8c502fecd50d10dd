"""Each command on a table of numbers, categories, dates, text and gaps."""

import contextlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from tests.cli.mixed import COLUMNS, RATES, mixed_table
from unflip import cli
from unflip._app.persistence import load_model
from unflip._app.table_files import read_table, write_table
from unflip.cli import COMMANDS


def read(path):
    return pl.read_csv(path)


def test_flip_flips_at_the_rates_and_keeps_the_truth_and_all_else(noisy):
    table, clean = read(noisy), read(noisy.parent / "clean.csv")
    assert table["truth"].equals(clean["churn"], check_names=False)
    assert table.drop("churn", "truth").equals(clean.drop("churn"))
    flipped = (table["churn"] != table["truth"]).to_numpy()
    is_positive = (table["truth"] == "yes").to_numpy()
    assert flipped[is_positive].mean() == pytest.approx(0.3, abs=0.07)
    assert flipped[~is_positive].mean() == pytest.approx(0.1, abs=0.05)


def test_intervals_go_with_their_class_whichever_is_positive(run, noisy, estimated):
    found = json.loads(run("estimate", noisy, *COLUMNS, "--positive", "no", "--json").stdout)
    assert found["per_class"] == estimated["per_class"]
    for name in ("interval", "noise_rates"):
        swapped = {"positive": estimated[name]["negative"], "negative": estimated[name]["positive"]}
        assert found[name] == estimated[name] | swapped


def test_the_positive_class_can_be_named(run, noisy, tmp_path):
    out = tmp_path / "flipped.csv"
    arguments = ("--label", "churn", "--positive", "no", "--rates", "0.4,0", "--out", out)
    result = run("flip", noisy.parent / "clean.csv", *arguments, "--json")
    clean, flipped = read(noisy.parent / "clean.csv")["churn"], read(out)["churn"]
    assert json.loads(result.stdout)["positive_class"] == "no"
    assert (flipped[(clean == "yes").arg_true()] == "yes").all()
    assert json.loads(result.stdout)["n_flipped"] == (clean != flipped).sum() > 50


@pytest.mark.parametrize("kind", [pl.Int32, pl.Boolean, pl.Categorical])
def test_flipped_labels_keep_their_type(run, tmp_path, kind):
    labels = pl.Series("y", [0, 1] * 50)
    labels = labels.cast(pl.String).cast(kind) if kind == pl.Categorical else labels.cast(kind)
    pl.DataFrame({"x": range(100), "y": labels}).write_parquet(tmp_path / "a.parquet")
    out = tmp_path / "b.parquet"
    result = run("flip", tmp_path / "a.parquet", "--label", "y", "--rates", "0.5,0", "--out", out)
    assert result.exit_code == 0, result.output
    assert pl.read_parquet(out)["y"].dtype == kind
    assert (pl.read_parquet(out)["y"] != labels).any()


def test_estimate_says_in_words_how_often_each_class_is_wrong(run, noisy):
    result = run("estimate", noisy, *COLUMNS)
    assert result.exit_code == 0, result.output
    words = " ".join(result.stdout.split())
    share = re.search(r"bout (\d+)%( of the labels are wrong)?: some \d+ of 500", words)
    assert 5 <= int(share[1]) <= 30
    assert "of truly yes rows" in result.stdout
    assert "are labelled no." in result.stdout
    assert "What to do next:" in result.stdout


def test_estimate_as_json_is_the_summary_and_the_same_seed_gives_the_same(run, noisy):
    result = run("estimate", noisy, *COLUMNS, "--json", "--seed", "3")
    again = run("estimate", noisy, *COLUMNS, "--json", "--seed", "3")
    found = json.loads(result.stdout)
    assert result.stdout == again.stdout
    assert found["n_samples"] == 500
    assert found["positive_class"] == "yes"
    assert 0.05 < found["noise_rates"]["positive"] < 0.45
    assert found["noise_rates"]["negative"] < found["noise_rates"]["positive"]


@pytest.mark.parametrize(
    "given",
    [("--positive", "no", "--rates", "0.45,0"), ("--rates", "yes=0,no=0.45")],
    ids=["positive first", "by class"],
)
def test_rates_are_shown_by_class_however_they_were_given(run, noisy, given):
    result = run("estimate", noisy, *COLUMNS, *given, "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    rates = dict(
        zip(found["classes"], (row["flip_rate"] for row in found["per_class"]), strict=True)
    )
    assert rates == {"no": 0.45, "yes": 0.0}
    assert "by_class({'no': 0.45, 'yes': 0})" in " ".join(found["warnings"])


@pytest.mark.parametrize("rates", ["maybe=0.1,no=0.1", "no=0.1", "no=0.1,no=0.2", "no=0.1,0.2"])
def test_rates_of_classes_that_are_not_there_are_refused(run, noisy, rates):
    result = run("estimate", noisy, *COLUMNS, "--rates", rates)
    assert result.exit_code == 2, result.output


def test_naming_the_other_class_swaps_the_two_rates_and_nothing_else(run, noisy, estimated):
    yes = estimated
    no = json.loads(run("estimate", noisy, *COLUMNS, "--json", "--positive", "no").stdout)
    assert (yes["positive_class"], no["positive_class"]) == ("yes", "no")
    assert yes["noise_rates"] == {
        "positive": no["noise_rates"]["negative"],
        "negative": no["noise_rates"]["positive"],
    }
    assert yes["per_class"] == no["per_class"]


def test_known_rates_and_bounds_are_used(run, noisy):
    found = json.loads(run("estimate", noisy, *COLUMNS, "--rates", "0.3,0.1", "--json").stdout)
    assert found["noise_rates"] == {"positive": 0.3, "negative": 0.1}
    bounded = run("estimate", noisy, *COLUMNS, "--rates", "0.25:0.26,?", "--json")
    assert 0.25 <= json.loads(bounded.stdout)["noise_rates"]["positive"] <= 0.26


def test_quiet_prints_nothing_and_quiet_json_only_json(run, noisy):
    result = run("estimate", noisy, *COLUMNS, *RATES, "--quiet")
    assert (result.exit_code, result.output) == (0, "")
    assert json.loads(run("estimate", noisy, *COLUMNS, *RATES, "--quiet", "--json").stdout)


@pytest.mark.parametrize(
    "ending",
    [".parquet", ".jsonl", *(pytest.param(e, marks=pytest.mark.slow) for e in (".tsv", ".arrow"))],
)
def test_every_format_says_the_same(run, noisy, estimated, tmp_path, ending):
    table = read_table(noisy)
    path = tmp_path / f"table{ending}"
    write_table(table.with_columns(pl.col("since").cast(pl.String)), path)
    found = json.loads(run("estimate", path, *COLUMNS, "--json").stdout)
    assert found["noise_rates"] == pytest.approx(estimated["noise_rates"], abs=1e-9)


@pytest.fixture
def new(tmp_path):
    """Rows that no model has seen, without their labels."""
    path = tmp_path / "new.csv"
    mixed_table(seed=1).drop("churn").write_csv(path)
    return path


def test_fit_then_predict_is_right_more_often_than_the_labels(run, new, model, tmp_path):
    out = tmp_path / "predicted.csv"
    result = run("predict", model, new, "--out", out)
    assert result.exit_code == 0, result.output
    table = read(out)
    assert table.columns[-3:] == ["predicted", "probability_no", "probability_yes"]
    assert (table["predicted"] == mixed_table(seed=1)["churn"]).mean() > 0.9
    assert np.allclose(table["probability_no"] + table["probability_yes"], 1)
    assert table["customer"].equals(pl.read_csv(new)["customer"])


def test_the_model_file_says_where_it_comes_from(model):
    _, provenance = load_model(model)
    assert provenance["classes"] == ["no", "yes"]
    assert provenance["columns"] == {
        "amount": "numbers",
        "visits": "numbers",
        "plan": "text",
        "since": "dates",
        "note": "text",
    }
    assert provenance["seed"] == 0
    assert provenance["noise_rates"] == {"positive": 0.3, "negative": 0.1}
    assert provenance["versions"]["unflip"]
    assert provenance["command"].split()[0] == "unflip"


@pytest.mark.parametrize(
    "estimator",
    [
        "boosting",
        "svm",
        pytest.param("sklearn.ensemble.RandomForestClassifier", marks=pytest.mark.slow),
    ],
)
def test_other_estimators_are_trained_and_loaded(run, noisy, new, tmp_path, estimator):
    model, out = tmp_path / "m.skops", tmp_path / "p.parquet"
    arguments = ("--estimator", estimator, "--rates", "0.3,0.1", "--out", model)
    fitted = run("fit", noisy, *COLUMNS, *arguments, "--json")
    assert fitted.exit_code == 0, fitted.output
    needed = json.loads(fitted.stdout)["trust"]
    trust = [word for name in needed for word in ("--trust", name)]
    if "." in estimator:
        assert fitted.stderr.count("will not load this model unless") == 1
        assert " ".join(trust) in fitted.stderr
        refused = run("predict", model, noisy, "--out", out)
        assert refused.exit_code == 2
        assert " ".join(trust) in refused.stderr
    else:
        assert not needed
        assert "trust" not in fitted.stderr
    result = run("predict", model, new, "--out", out, "--json", *trust)
    assert result.exit_code == 0, result.output
    labels = pl.read_csv(noisy)
    # on rows that it has not seen: a forest knows the labels of the others by heart
    right = (pl.read_parquet(out)["predicted"] == mixed_table(seed=1)["churn"]).mean()
    assert right > (labels["churn"] == labels["truth"]).mean()
    # a support vector machine has no probabilities
    assert ("probability_yes" in json.loads(result.stdout)["columns"]) == (estimator != "svm")


def test_fit_writes_weights_and_the_report_too(run, noisy, tmp_path):
    names = {"out": "m.skops", "weights": "w.csv", "report": "r.md"}
    paths = {name: tmp_path / file for name, file in names.items()}
    files = [word for name, path in paths.items() for word in (f"--{name}", path)]
    result = run("fit", noisy, *COLUMNS, *files, "--rates", "0.3,0.1", "--json")
    assert result.exit_code == 0, result.output
    weights = read(paths["weights"])
    assert weights.columns == ["customer", "row", "weight", "reviewed"]
    assert weights["weight"].max() <= 1 / 0.7 + 1e-9
    assert weights["weight"].min() >= 0
    assert paths["report"].read_text(encoding="utf-8").startswith("# How reliable")
    assert set(tmp_path.iterdir()) == set(paths.values())


def test_reviewed_labels_are_the_truth_and_count_as_clean_rows(run, noisy, estimated, tmp_path):
    table = read(noisy)
    wrong = (table["churn"] != table["truth"]).arg_true().to_list()
    reviewed, out, weights = (tmp_path / name for name in ("r.csv", "m.skops", "w.csv"))
    pl.DataFrame({"row": wrong, "label": table["truth"][wrong]}).write_csv(reviewed)
    arguments = ("--out", out, "--weights", weights, "--reviewed", reviewed, "--json")
    result = run("fit", noisy, *COLUMNS, *arguments)
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["n_reviewed"] == len(wrong)
    assert found["noise_rates"] == estimated["noise_rates"]
    told = read(weights)
    assert (told["weight"][wrong] == 1).all()
    assert told["reviewed"].arg_true().to_list() == wrong


def test_the_audit_ranks_rows_and_most_of_the_first_are_wrong(run, noisy, tmp_path):
    out = tmp_path / "audit.csv"
    result = run("audit", noisy, *COLUMNS, "--rates", "0.3,0.1", "--top", 40, "--out", out)
    assert result.exit_code == 0, result.output
    table = read(out)
    assert table.columns[:4] == ["row", "p_wrong", "suggested", "customer"]
    assert table.height == 40
    assert table["p_wrong"].is_sorted(descending=True)
    assert (table["churn"] != table["truth"]).mean() > 0.9
    assert table["churn"].equals(read(noisy)["churn"][table["row"]])


def test_the_audit_prints_the_first_rows_and_says_how_to_get_the_rest(run, noisy):
    result = run("audit", noisy, *COLUMNS, "--rates", "0.3,0.1")
    assert result.exit_code == 0
    assert "p_wrong" in result.stdout
    assert len(re.findall(r"C\d{4}", result.stdout)) == 20
    assert "--out audit.csv" in result.stdout


def test_the_audit_cut_by_precision_keeps_its_promise(run, noisy):
    strict, loose = (
        json.loads(run("audit", noisy, *COLUMNS, *RATES, "--precision", share, "--json").stdout)
        for share in (0.95, 0.5)
    )
    assert strict["n_rows"] < loose["n_rows"]
    assert strict["expected_wrong"] >= 0.95 * strict["n_rows"]


def test_every_command_finds_the_same_rates(run, noisy, estimated, tmp_path):
    audited = json.loads(run("audit", noisy, *COLUMNS, "--json").stdout)
    page = ("--out", tmp_path / "r.json", "--json")
    reported = json.loads(run("report", noisy, *COLUMNS, *page).stdout)
    assert audited["summary"]["noise_rates"] == estimated["noise_rates"]
    assert reported["summary"]["noise_rates"] == estimated["noise_rates"]
    # as many rows as there are expected errors, by the same probabilities
    assert audited["n_rows"] == round(estimated["expected_errors"])


def test_the_report_is_written_in_the_format_of_its_name(run, small, tmp_path):
    for ending, start in ((".html", "<!doctype html>"), (".md", "# How"), (".json", "{")):
        path = tmp_path / f"report{ending}"
        result = run("report", small, *COLUMNS, *RATES, "--out", path)
        assert result.exit_code == 0, result.output
        assert path.read_text(encoding="utf-8").startswith(start)


def test_an_existing_file_is_kept_unless_forced(run, small, model, tmp_path):
    commands = {
        "fit": (small, *COLUMNS, *RATES),
        "predict": (model, small),
        "audit": (small, *COLUMNS, *RATES),
        "flip": (small, "--label", "churn", "--rates", "0.1,0.1"),
        "report": (small, *COLUMNS, *RATES),
    }
    for name, arguments in commands.items():
        path = tmp_path / (f"{name}.html" if name == "report" else f"{name}.csv")
        path.write_text("old")
        result = run(name, *arguments, "--out", path)
        assert result.exit_code == 2
        assert "exists: choose another name, or overwrite it with --force" in result.stderr
        assert path.read_text() == "old"
        assert run(name, *arguments, "--out", path, "--force").exit_code == 0
        assert path.read_bytes() != b"old"


def test_more_than_two_classes_are_estimated_and_reported(run, tmp_path):
    kinds = np.random.default_rng(0).integers(0, 3, 150)
    table = {
        "size": kinds * 10 + np.random.default_rng(1).normal(size=150),
        "churn": np.array(["*pro*", "no", "yes"])[kinds],
    }
    pl.DataFrame(table).write_csv(tmp_path / "three.csv")
    columns = ("--label", "churn")
    result = run("estimate", tmp_path / "three.csv", *columns)
    assert result.exit_code == 0, result.output
    assert "No sign of label errors" in result.stdout
    page = tmp_path / "r.html"
    assert run("report", tmp_path / "three.csv", *columns, "--out", page).exit_code == 0
    assert "*pro*" in page.read_text(encoding="utf-8")


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_every_command_says_what_its_options_are(run, command):
    result = run(command, "--help")
    assert result.exit_code == 0
    assert "--json" in result.stdout


def test_every_command_that_there_is_is_listed(run):
    listed = run("--help").stdout
    for command, line in COMMANDS.items():
        assert re.search(rf"{command} +{re.escape(line)}", listed)
    modules = {path.stem for path in Path(cli.__file__).parent.glob("_[a-z]*.py")}
    assert modules - {"_options", "_session"} == {f"_{name}" for name in COMMANDS}


def test_a_mistyped_command_is_named_with_what_may_be_meant(run):
    result = run("audti")
    assert result.exit_code == 2
    assert "Did you mean 'audit'" in result.stderr


@pytest.mark.slow
def test_options_are_completed_of_a_command_that_is_not_imported_yet():
    code = "import sys; sys.argv = ['unflip']; from unflip.__main__ import main; main()"
    words = {"COMP_WORDS": "unflip audit --prec", "COMP_CWORD": "2"}
    result = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        env={**os.environ, "_UNFLIP_COMPLETE": "complete_bash", **words},
        text=True,
        check=False,
    )
    assert result.stdout.split() == ["--precision"]


def test_shell_completion_is_there(run):
    assert "--install-completion" in run("--help").stdout


@pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals are POSIX's")
@pytest.mark.slow
def test_on_a_terminal_progress_is_gone_before_words_are_printed(small):
    import pty

    words = ["estimate", str(small), *COLUMNS, *RATES]
    main, terminal = pty.openpty()
    command = [sys.executable, "-m", "unflip", *words]
    with subprocess.Popen(command, stdout=terminal, stderr=terminal) as process:
        os.close(terminal)
        shown = b""
        # at the process's end Linux raises an error, other systems return nothing
        with contextlib.suppress(OSError):
            while part := os.read(main, 4096):
                shown += part
    os.close(main)
    assert process.returncode == 0
    text = shown.decode()
    assert "encoding the columns ..." in text
    assert text.rindex("...") < text.index("of the labels")
