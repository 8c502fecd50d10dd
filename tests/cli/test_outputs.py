"""What is written replaces regular files only, and never what the same command reads or writes."""

import os
import socket

import pytest

from tests.cli.mixed import COLUMNS

pytestmark = pytest.mark.skipif(os.name != "posix", reason="pipes, devices and links are POSIX's")

RATES = ("--rates", "0.3,0.1")


@pytest.fixture
def here(tmp_path, monkeypatch, noisy, model):
    """Work in a folder with a table and a model of its own."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_bytes(noisy.read_bytes())
    (tmp_path / "m.skops").write_bytes(model.read_bytes())
    (tmp_path / "reviewed.csv").write_text("row,label\n1,yes\n")
    return tmp_path


CALLS = {
    "fit": ("t.csv", *COLUMNS, *RATES),
    "audit": ("t.csv", *COLUMNS, *RATES),
    "report": ("t.csv", *COLUMNS, *RATES),
    "flip": ("t.csv", "--label", "churn", *RATES),
    "predict": ("m.skops", "t.csv"),
    "demo": (),
}


def refused(result, *words):
    assert result.exit_code == 2, result.output
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
    for word in words:
        assert word in result.stderr


def content(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


OUT = {"fit": "o.skops", "report": "o.html"} | dict.fromkeys(("audit", "flip", "predict"), "o.csv")


@pytest.mark.parametrize("command", OUT)
def test_a_private_file_stays_private_when_it_is_replaced(run, here, command):
    out = here / OUT[command]
    out.write_text("old")
    out.chmod(0o600)
    result = run(command, *CALLS[command], "--out", out, "--force")
    assert result.exit_code == 0, result.output
    assert out.read_bytes() != b"old"
    assert out.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("kind", ["pipe", "socket", "device", "link to a device", "folder"])
@pytest.mark.parametrize("command", CALLS)
def test_only_regular_files_are_replaced(run, here, command, kind):
    out = here / "out.csv"
    if kind == "pipe":
        os.mkfifo(out)
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as made:
            made.bind("out.csv")
    elif kind == "device":
        out = "/dev/null"
    elif kind == "link to a device":
        out.symlink_to("/dev/null")
    else:
        out.mkdir()
    before = os.lstat(out)
    words = "is a folder" if kind == "folder" else "is a device, a pipe or a socket"
    refused(run(command, *CALLS[command], "--out", out, "--force"), words)
    after = os.lstat(out)
    assert (after.st_mode, after.st_ino) == (before.st_mode, before.st_ino)


def test_a_link_to_a_file_stays_and_the_file_is_replaced(run, here):
    (here / "other").mkdir()
    file, link = here / "other" / "f.csv", here / "link.csv"
    file.write_text("old")
    link.symlink_to(file)
    assert run("flip", *CALLS["flip"], "--out", link).exit_code == 2
    assert run("flip", *CALLS["flip"], "--out", link, "--force").exit_code == 0
    assert link.is_symlink()
    assert file.read_text().startswith("customer,")


@pytest.mark.parametrize(
    ("options", "both"),
    [
        ({"--out": "x.csv", "--weights": "x.csv"}, "--out and --weights are both"),
        ({"--out": "x.html", "--report": "./x.html"}, "--out and --report are both"),
        ({"--weights": "x.csv", "--report": "sub/../x.csv"}, "--weights and --report are both"),
        ({"--out": "x.csv/m.skops", "--weights": "x.csv"}, "--out x.csv/m.skops is below x.csv"),
        ({"--out": "x", "--weights": "x/w.csv"}, "--weights x/w.csv is below x"),
    ],
)
@pytest.mark.parametrize("force", [(), ("--force",)])
def test_outputs_of_one_command_are_different_files(run, here, options, both, force):
    before = content(here)
    words = [word for pair in options.items() for word in pair]
    refused(run("fit", *CALLS["fit"], *words, *force), both)
    assert content(here) == before


@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_outputs_that_are_links_to_one_file_are_refused(run, here, link):
    (here / "a.csv").write_text("old")
    link("a.csv", "b.csv")
    words = ("--out", "a.csv", "--weights", "b.csv", "--force")
    refused(run("fit", *CALLS["fit"], *words), "--out and --weights are both b.csv")
    assert (here / "a.csv").read_text() == "old"


@pytest.mark.parametrize("link", [None, os.symlink, os.link])
@pytest.mark.parametrize(
    ("command", "name"),
    [
        *((command, "t.csv") for command in CALLS if command != "demo"),
        ("predict", "m.skops"),
        ("fit", "reviewed.csv"),
    ],
)
def test_what_is_read_is_not_written_over_even_with_force(run, here, command, name, link):
    extra = ("--reviewed", "reviewed.csv") if name == "reviewed.csv" else ()
    out = name
    if link is not None:
        out = "linked.csv"
        link(name, out)
    before = content(here)
    for force in ((), ("--force",)):
        refused(run(command, *CALLS[command], *extra, "--out", out, *force), "is an input")
    assert content(here) == before


@pytest.mark.parametrize("option", ["--decisions", "--out"])
def test_a_review_does_not_write_over_its_table(run, here, option):
    (here / "corrected.csv").write_bytes((here / "t.csv").read_bytes())
    before = content(here)
    given = "corrected.csv" if option == "--decisions" else "."
    call = ("corrected.csv", *COLUMNS, *RATES, "--export", option, given)
    refused(run("review", *call), "corrected.csv is an input")
    assert content(here) == before
