"""A model file from anybody is predicted with or refused in one line, and does nothing else."""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

import unflip
from unflip._app.persistence import NOTE, load_model

FUZZ = "from benchmarks.fuzz_models import run; print(run({}))"
ORIGIN = {"format": 2, "label": "y", "columns": {"x": "numbers"}, "set_aside": [], "versions": {}}


def fuzzed(n_changes):
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FUZZ.format(n_changes)],
        capture_output=True,
        text=True,
    )


@pytest.mark.skipif(sys.platform != "linux", reason="limits memory")
@pytest.mark.parametrize("n_changes", [25, pytest.param(10_000, marks=pytest.mark.slow)])
def test_changed_values_neither_crash_nor_open_files_nor_fill_the_memory(n_changes):
    done = fuzzed(n_changes)
    assert done.returncode == 0, done.stderr
    assert "predicted" in done.stdout


def write(path, note, members=None, compression=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(path, "w", compression) as archive:
        archive.writestr(NOTE, note if isinstance(note, str) else json.dumps(note))
        for name, content in (members or {}).items():
            archive.writestr(name, content)


@pytest.mark.parametrize(
    ("note", "members"),
    [
        ("[]", {}),
        ("no json", {}),
        ("[" * 200_000, {}),
        (" " * 2**24 + "{}", {}),
        ("[" + "[]," * 2_500_000 + "[]]", {}),
        ({"format": 2}, {}),
        (ORIGIN, {}),
        (ORIGIN, {"a.npy": bytes(40 * 2**20)}),
        (ORIGIN, {"../a.npy": b""}),
        ({**ORIGIN, "model": {"columns": [{"name": "x", "kind": "number"}]}}, {}),
    ],
)
def test_what_is_no_model_is_refused(tmp_path, note, members):
    path = tmp_path / "model"
    write(path, note, members)
    with pytest.raises(ValueError, match="is not a model file of unflip") as error:
        load_model(path)
    assert "\n" not in str(error.value)


def test_an_array_is_no_larger_than_its_member(tmp_path):
    path = tmp_path / "model"
    header = (
        "{'descr': '<f8', 'fortran_order': False, 'shape': (100000000000,), }".ljust(117) + "\n"
    )
    content = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode()
    state = {"columns": [{"name": "x", "kind": "number"}]}
    write(path, {**ORIGIN, "model": state}, {"gaps_mean.npy": content})
    with pytest.raises(ValueError, match="type or shape"):
        load_model(path)


def test_a_pickle_is_not_read(tmp_path):
    path = tmp_path / "model"
    np.save(tmp_path / "a.npy", np.array([print], dtype=object), allow_pickle=True)
    state = {"columns": [{"name": "x", "kind": "number"}]}
    content = (tmp_path / "a.npy").read_bytes()
    write(path, {**ORIGIN, "model": state}, {"gaps_mean.npy": content})
    with pytest.raises(ValueError, match="type or shape"):
        load_model(path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes")
def test_what_is_no_regular_file_is_not_read(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path):
        with pytest.raises(ValueError, match="not a regular file"):
            load_model(path)


def test_modules_of_the_current_folder_are_not_imported(tmp_path):
    (tmp_path / "typer.py").write_text("raise SystemExit('imported')")
    run = [sys.executable, "-m", "unflip", "--help"]
    here = {**os.environ, "PYTHONPATH": str(Path(unflip.__file__).parents[1])}
    done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, env=here)
    assert done.returncode == 0, done.stderr
    assert "imported" not in done.stderr
