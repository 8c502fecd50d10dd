"""What files hold is shown, and is never a command to the terminal; no fault shows a traceback."""

import json
import os
import subprocess
import sys
import warnings
from datetime import date, datetime, timedelta

import numpy as np
import polars as pl
import pytest

from unflip._app import workflow
from unflip._app.table_files import write_table

EVIL = "\x1b[31mred\x1b]0;title\x07 \x9b2J \u202e \x7f\r"
"""Colours, a window's title, an erased screen and turned text, as sequences for terminals."""

RATES = ("--label", "y", "--rates", "0.2,0.1")
X = np.random.default_rng(0).normal(size=60)


def labels(first, second, **options):
    return pl.Series("y", [first if x > 0 else second for x in X], **options)


def table(folder, *columns, name="t.parquet"):
    write_table(pl.DataFrame({"x": X}).with_columns(*columns), folder / name)
    return folder / name


def is_harmless(text):
    return all(c == "\n" or (c.isprintable() and c != "\u202e") for c in text)


def strings(value):
    """Yield every string in parsed JSON."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from strings(part)


@pytest.fixture
def evil(tmp_path):
    """Return a table whose name, columns, labels and cells hold sequences for terminals."""
    values = pl.Series(EVIL, [EVIL] * X.size)
    return table(tmp_path, values, labels(EVIL, f"not {EVIL}"), name=f"{EVIL}.parquet")


COMMANDS = {
    "estimate": (),
    "audit": (),
    "report": ("--out", "r.html"),
    "fit": ("--out", "m.skops", "--weights", f"{EVIL}.csv"),
    "flip": ("--out", f"{EVIL}.csv", "--truth", f"was {EVIL}"),
}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("how", [(), ("--json",)])
def test_nothing_in_a_file_is_a_command_to_the_terminal(
    run, evil, monkeypatch, tmp_path, command, how
):
    monkeypatch.chdir(tmp_path)
    result = run(command, evil, *RATES, *COMMANDS[command], *how)
    assert result.exit_code == 0, result.output
    assert is_harmless(result.output)
    if how:
        assert EVIL in "".join(strings(json.loads(result.stdout)))


def test_errors_are_no_commands_to_the_terminal(run, evil, tmp_path):
    calls = [
        ("estimate", evil.with_name(f"none {EVIL}.csv"), *RATES),
        ("estimate", evil, "--label", f"{EVIL}?"),
        ("estimate", evil, *RATES, "--positive", EVIL[:-1]),
        ("estimate", evil, *RATES, "--estimator", f"{EVIL}.x"),
        ("flip", evil, *RATES, "--out", evil),
        ("predict", evil, evil, "--out", tmp_path / "p.csv"),
        ("reproduce", EVIL),
    ]
    for call in calls:
        result = run(*call)
        assert result.exit_code == 2, result.output
        assert is_harmless(result.output)
        assert r"\x1b[31m" in result.stderr


def test_the_audit_shows_control_characters_written_out(run, evil):
    shown = run("audit", evil, *RATES).stdout
    assert r"\x1b[31mred\x1b]" in shown


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("naïve 日本 👍", "naïve 日本 👍"),
        ("a\x1b[0m\tb\nc", r"a\x1b[0m\tb\nc"),
        ("\x9b \u202e \u2028", r"\x9b \u202e \u2028"),
        (os.fsdecode(b"caf\xe9"), r"caf\xe9"),
    ],
)
def test_only_what_is_not_shown_is_written_out(run, tmp_path, text, expected):
    out = tmp_path / f"{text}.csv"
    shown = run("flip", table(tmp_path, labels("yes", "no")), *RATES, "--out", out).stdout
    assert out.exists()
    # lines are broken where the terminal ends
    assert f"/{expected}.csv".replace(" ", "") in "".join(shown.split())


NOT_UTF8 = os.fsdecode(b"caf\xe9")


@pytest.mark.skipif(sys.platform != "linux", reason="names are UTF-8 on other systems")
def test_files_whose_names_are_not_utf8_are_read_and_written(run, tmp_path):
    source = table(tmp_path, labels("yes", "no"), name=f"{NOT_UTF8}.csv")
    flipped = tmp_path / f"{NOT_UTF8}-flipped.parquet"
    model = tmp_path / f"{NOT_UTF8}.skops"
    files = ("--weights", tmp_path / f"{NOT_UTF8}.jsonl", "--report", tmp_path / "r.html")
    calls = [
        ("flip", source, *RATES, "--out", flipped),
        ("fit", flipped, *RATES, "--out", model, *files),
        ("predict", model, flipped, "--out", tmp_path / f"{NOT_UTF8}-p.arrow"),
        ("report", flipped, *RATES, "--out", tmp_path / f"{NOT_UTF8}.json", "--json"),
        ("report", flipped, *RATES, "--out", tmp_path / f"{NOT_UTF8}.md"),
    ]
    for call in calls:
        result = run(*call)
        assert result.exit_code == 0, result.output
    assert r"caf\xe9-flipped.parquet" in (tmp_path / "r.html").read_text(encoding="utf-8")
    refused = run("flip", source, *RATES, "--truth", NOT_UTF8, "--out", tmp_path / "t.csv")
    assert refused.exit_code == 2
    assert "is not UTF-8" in refused.stderr


def test_a_name_that_looks_like_a_pattern_is_a_name(run, tmp_path):
    for name in ("table[1].csv", "*.csv", "t?.parquet", "[.jsonl"):
        source = table(tmp_path, labels("yes", "no"), name=name)
        assert run("estimate", source, *RATES).exit_code == 0


TYPES = {
    "date": labels(date(2020, 1, 1), date(2020, 5, 1)),
    "time": labels(datetime(2020, 1, 1, 5), datetime(2020, 5, 1)),
    "decimal": labels(1, 2).cast(pl.Decimal(10, 2)),
    "float": labels(1.0, 2.0),
    "enum": labels("a", "b").cast(pl.Enum(["b", "a"])),
}


@pytest.mark.parametrize("kind", TYPES)
def test_labels_of_any_type_are_flipped_and_keep_it(run, tmp_path, kind):
    source, out = table(tmp_path, TYPES[kind]), tmp_path / "out.parquet"
    result = run("flip", source, *RATES, "--out", out)
    assert result.exit_code == 0, result.output
    flipped = pl.read_parquet(out)["y"]
    assert flipped.dtype == TYPES[kind].dtype
    assert set(flipped) == set(TYPES[kind])
    assert 0 < (flipped != TYPES[kind]).sum() < 30


@pytest.mark.parametrize("command", ["estimate", "flip"])
@pytest.mark.parametrize(
    ("column", "words"),
    [
        (labels(2**63, 1, dtype=pl.UInt64), "holds 9223372036854775808"),
        (labels(1e300, 0.0), "holds 1e+300"),
        (labels(float("inf"), 0.0), "holds inf, which"),
        (labels(0.5, 0.25).cast(pl.Decimal(5, 2)), "holds fractions such as 0.50"),
        (labels(timedelta(1), timedelta(2)), "which cannot be labels"),
    ],
    ids=range(5),
)
def test_labels_that_cannot_be_are_refused_in_one_line(run, tmp_path, command, column, words):
    out = ("--out", tmp_path / "o.parquet") if command == "flip" else ()
    result = run(command, table(tmp_path, column), *RATES, *out)
    assert result.exit_code == 2, result.output
    assert words in result.stderr
    assert result.stderr.count("\n") == 1


KINDS = {
    "duration": [timedelta(seconds=k) for k in range(X.size)],
    "binary": [b"\xff"] * X.size,
    "list": [[1, 2]] * X.size,
    "struct": [{"a": 1}] * X.size,
}
CANNOT_HOLD = [
    *((kind, ending) for kind in KINDS for ending in (".csv", ".tsv")),
    ("binary", ".jsonl"),
]


def writing(command, out, folder):
    """Return the options of a command that writes a table with the column `a`."""
    if command == "fit":
        return ("--id", "a", "--out", folder / "m.skops", "--weights", out)
    if command == "review":  # whose corrected table is a CSV file
        return ("--id", "a", "--no-open")
    return (*(("--id", "a") if command == "audit" else ()), "--out", out)


@pytest.mark.parametrize(
    ("command", "kind", "ending"),
    [
        *((command, *case) for command in ("audit", "fit") for case in CANNOT_HOLD),
        ("flip", "duration", ".csv"),
        *(("review", kind, ".csv") for kind in KINDS),
    ],
)
def test_what_a_format_cannot_hold_is_refused_before_the_work(
    run, tmp_path, monkeypatch, command, kind, ending
):
    monkeypatch.setattr("unflip._app.workflow.learn", lambda *_, **__: pytest.fail("has begun"))
    source = table(tmp_path, pl.Series("a", KINDS[kind]), labels("yes", "no"))
    result = run(command, source, *RATES, *writing(command, tmp_path / f"out{ending}", tmp_path))
    assert result.exit_code == 2, result.output
    assert list(tmp_path.iterdir()) == [source]
    assert "column 'a' holds " in result.stderr
    assert f"{ending} files cannot store" in result.stderr


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_format_can_hold_is_written(run, tmp_path, kind):
    source = table(tmp_path, pl.Series("a", KINDS[kind]), labels("yes", "no"))
    for ending in (".jsonl", ".parquet", ".arrow"):
        if (kind, ending) not in CANNOT_HOLD:
            out = tmp_path / f"out{ending}"
            result = run("audit", source, *RATES, *writing("audit", out, tmp_path))
            assert result.exit_code == 0, result.output


def test_predictions_that_a_format_cannot_hold_are_refused(run, tmp_path):
    source = table(tmp_path, pl.Series("a", KINDS["duration"]), labels("yes", "no"))
    model = tmp_path / "m.skops"
    assert run("fit", source, *RATES, "--out", model).exit_code == 0
    result = run("predict", model, source, "--out", tmp_path / "p.csv")
    assert result.exit_code == 2
    assert ".csv files cannot store" in result.stderr


@pytest.mark.slow
def test_without_a_home_and_on_a_terminal_of_ascii_commands_run(tmp_path):
    source = table(tmp_path, labels("großes", "日本"))
    environment = {
        **os.environ,
        "HOME": os.path.join(os.devnull, "home"),
        "PYTHONIOENCODING": "ascii",
        "XDG_CACHE_HOME": "",
        "XDG_CONFIG_HOME": "",
    }
    for name in ("MPLCONFIGDIR", "SKB_DATA_DIRECTORY"):
        environment.pop(name, None)
    command = [sys.executable, "-m", "unflip", "estimate", str(source), *RATES]
    result = subprocess.run(command, capture_output=True, env=environment, check=False)
    assert result.returncode == 0, result.stderr
    assert result.stderr == b""
    assert rb"gro\xdfes" in result.stdout


class UnexpectedError(Exception):
    """What no command expects."""


def fails_with(error):
    def read(*_, **__):
        raise error

    return read


def test_a_fault_is_one_line_and_its_own_exit_code(run, monkeypatch, tmp_path):
    monkeypatch.setattr(
        "unflip._app.table_files.read_file", fails_with(UnexpectedError(f"{EVIL}\nmore"))
    )
    result = run("estimate", tmp_path / "t.csv", *RATES)
    assert result.exit_code == 3
    assert result.stderr.count("\n") == 1
    assert "UnexpectedError: " in result.stderr
    assert is_harmless(result.output)
    monkeypatch.setenv("UNFLIP_DEBUG", "1")
    assert isinstance(run("estimate", tmp_path / "t.csv", *RATES).exception, UnexpectedError)


def test_a_table_that_memory_does_not_hold_is_refused(run, monkeypatch, tmp_path):
    monkeypatch.setattr("unflip._app.table_files.read_file", fails_with(MemoryError()))
    result = run("estimate", tmp_path / "t.csv", *RATES)
    assert result.exit_code == 2
    assert "not enough memory" in result.stderr


def test_warnings_are_no_commands_to_the_terminal(run, monkeypatch, tmp_path):
    learn = workflow.learn

    def warns(*arguments, **options):
        warnings.warn(EVIL, stacklevel=1)
        return learn(*arguments, **options)

    monkeypatch.setattr("unflip._app.workflow.learn", warns)
    result = run("estimate", table(tmp_path, labels("yes", "no")), *RATES)
    assert "note: " in result.stderr
    assert is_harmless(result.output)
