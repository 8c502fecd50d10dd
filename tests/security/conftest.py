"""`unflip predict` on a hostile file, and what it must not touch."""

import io
from contextlib import redirect_stderr, redirect_stdout
from typing import NamedTuple

import numpy as np
import polars as pl
import pytest
import typer

from unflip._app.persistence import save_model
from unflip._app.tables import kind_of, split_label
from unflip._app.workflow import learn, make_estimator, parse_rates
from unflip.cli import load_command


class Outcome(NamedTuple):
    code: int
    stdout: str
    stderr: str


@pytest.fixture
def canary(tmp_path):
    """Return a folder with a file in it, which is to stay the only one."""
    folder = tmp_path / "canary"
    folder.mkdir()
    (folder / "file").write_text("here")
    return folder


@pytest.fixture
def predict(tmp_path, canary, monkeypatch):
    """Return what runs the command on a file's bytes, in an empty folder."""
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    table = tmp_path / "table.csv"
    table.write_text("x\n1\n2\n")

    command = load_command("predict")

    def run(data, trust=(), rows=table):
        path, out, err, code = tmp_path / "model.skops", io.StringIO(), io.StringIO(), 0
        path.write_bytes(data)
        options = {"separator": None, "force": False, "as_json": False, "quiet": False}
        # without typer's reading of words, which takes longer than all else
        with redirect_stdout(out), redirect_stderr(err):
            try:
                command.callback(
                    model=path, table=rows, out=here / "out.csv", trust=list(trust), **options
                )
            except typer.Exit as error:
                code = error.exit_code
        return Outcome(code, out.getvalue(), err.getvalue())

    return run


@pytest.fixture
def refused(predict, canary, tmp_path):
    """Return what checks that a file is refused in one line, and nothing has happened."""

    def check(data, **options):
        result = predict(data, **options)
        said = result.stderr
        assert result.code == 2, result
        assert said.startswith("error: ")
        assert said.count("\n") == 1
        assert said.strip().isprintable()
        assert len(said) < 4000
        assert not result.stdout
        assert [path.name for path in canary.iterdir()] == ["file"]
        assert not list((tmp_path / "here").iterdir())
        return said

    return check


@pytest.fixture(scope="session")
def rows():
    """Return a small table of three kinds of columns, with its labels."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 120)
    words = np.where(y[:, None], rng.choice(["late", "angry"], (120, 2)), "fine")
    return pl.DataFrame(
        {
            "x": rng.normal(2 * y, 1),
            "plan": rng.choice(["a", "b", "c"], 120),
            "note": [f"{' '.join(pair)} {k}" for k, pair in enumerate(words)],
            "y": y,
        }
    )


@pytest.fixture(scope="session")
def genuine(rows, tmp_path_factory):
    """Return the bytes of a model file as `unflip fit` writes it, by the name of its estimator."""
    data = split_label(rows, "y")
    columns = {name: kind_of(data.features[name]) for name in data.features.columns}
    files = {}
    for name in ("logistic", "boosting", "svm"):
        learnt = learn(data, estimator=make_estimator(name), rates=parse_rates("0.1,0.1"))
        path = tmp_path_factory.mktemp("models") / name
        needed = save_model(path, learnt.model, {"label": "y", "columns": columns, "set_aside": []})
        assert needed == []
        files[name] = path.read_bytes()
    return files
