"""A model file neither fills the memory nor keeps the machine busy, however it is made."""

import io
import json
import random
import subprocess
import sys
import zipfile
import zlib
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from unflip._app.persistence import NOTE, ModelFileError, load_model
from unflip._app.persistence._archive import as_npy

ALLOWED = 200 * 2**20
"""Bytes that a file may take for one row, beyond what the command takes by itself."""

SECONDS = 20

TRUSTED = "sklearn.dummy.DummyClassifier"

MEASURE = f"""
import re, sys, time
from pathlib import Path
import typer, polars, skops.io, sklearn.dummy
from unflip.cli._predict import predict

def memory(key):
    status = Path("/proc/self/status").read_text()
    return int(re.search(rf"{{key}}:\\s*(\\d+) kB", status)[1]) * 1024

folder = Path(sys.argv[1])
for path in sorted(folder.glob("*.unflip")):
    trust = ["{TRUSTED}"] if path.name.startswith("trusted") else None
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts from here
    before, code, start = memory("VmRSS"), 0, time.perf_counter()
    try:
        predict(path, folder / "table.csv", folder / "out.csv", trust=trust, force=True)
    except typer.Exit as error:
        code = error.exit_code
    print(path.stem, code, memory("VmHWM") - before, time.perf_counter() - start, file=sys.stderr)
"""

ORIGIN = {"format": 2, "label": "y", "columns": {"x": "numbers"}, "set_aside": [], "versions": {}}
STATE = {
    "columns": [{"name": "x", "kind": "number"}],
    "labels": {"kind": "integers", "values": [0, 1]},
    "classifier": {"kind": "logistic"},
}
OTHER = {**STATE, "classifier": {"kind": "other", "types": [TRUSTED]}}
GAPS = {
    "gaps_mean.npy": as_npy(np.zeros(1)),
    "gaps_flagged.npy": as_npy(np.zeros(0, dtype=np.int32)),
    "gaps_centre.npy": as_npy(np.zeros(1)),
}
ARRAYS = GAPS | {
    "classifier_mean.npy": as_npy(np.zeros(1)),
    "classifier_scale.npy": as_npy(np.ones(1)),
    "classifier_coef.npy": as_npy(np.ones((1, 1))),
    "classifier_intercept.npy": as_npy(np.zeros(1)),
}
COEF = "classifier_coef.npy"


class Forged:
    """A member of zeros that states any size, and a start that is not zero."""

    def __init__(self, n_bytes, stated=None, start=b""):
        block = zlib.compressobj(9, zlib.DEFLATED, -15)
        zeros = block.compress(bytes(2**20)) + block.flush(zlib.Z_FULL_FLUSH)
        first = zlib.compressobj(9, zlib.DEFLATED, -15)
        head = first.compress(start) + first.flush(zlib.Z_FULL_FLUSH)
        # blocks that end with a full flush can be repeated, which takes no time
        self.content = head + zeros * (n_bytes // 2**20) + zlib.compressobj(9, 8, -15).flush()
        self.stated = len(start) + n_bytes if stated is None else stated
        # right where it could be checked; a larger member is never read to its end
        self.crc = zlib.crc32(start.ljust(min(self.stated, 2**24), b"\0")[: self.stated])


def archive(members, compression=zipfile.ZIP_DEFLATED):
    """Return an archive of bytes, and of members that are not what they state."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as file:
        for name, content in members.items():
            if not isinstance(content, Forged):
                file.writestr(name, content)
                continue
            file.writestr(name, content.content, zipfile.ZIP_STORED)
            # the directory is written at the end, from these
            entry = file.infolist()[-1]
            entry.compress_type, entry.file_size = zipfile.ZIP_DEFLATED, content.stated
            entry.CRC = content.crc
    return buffer.getvalue()


def model(arrays=None, state=STATE, note=None, **options):
    """Return a model file in which some members are others."""
    text = json.dumps({**ORIGIN, "model": state}) if note is None else note
    return archive({NOTE: text, **ARRAYS, **(arrays or {})}, **options)


def other(inner):
    """Return a model file whose classifier is the given archive of skops."""
    note = json.dumps({**ORIGIN, "model": OTHER})
    return archive({NOTE: note, **GAPS, "classifier.skops": inner})


def root(**fields):
    return {"__module__": "sklearn.dummy", "__class__": "DummyClassifier", "protocol": 2, **fields}


def header(descr, shape):
    text = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}\n".encode("latin1")
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


def many(n_members):
    return {f"a{k}.npy": b"" for k in range(n_members)}


GIB = 2**30
BOMBS = {
    "10 GB in an array": lambda: model({COEF: Forged(10 * GIB)}),
    "10 GB in many arrays": lambda: model({f"a{k}.npy": Forged(GIB) for k in range(10)}),
    "10 GB in the note": lambda: model(note=Forged(10 * GIB, start=b"{}")),
    "array larger than stated": lambda: model({COEF: Forged(GIB, 10**6, ARRAYS[COEF])}),
    "array much smaller than stated": lambda: model({COEF: Forged(0, 10 * GIB, ARRAYS[COEF])}),
    "array smaller than stated": lambda: model({COEF: Forged(0, 10**7, ARRAYS[COEF])}),
    "note larger than stated": lambda: model(note=Forged(GIB, 2, b"{}")),
    "bzip2": lambda: model(compression=zipfile.ZIP_BZIP2),
    "lzma": lambda: model(compression=zipfile.ZIP_LZMA),
    "many members": lambda: model(many(20_000), compression=zipfile.ZIP_STORED),
    "very many members": lambda: model(many(400_000), compression=zipfile.ZIP_STORED),
    "note of spaces": lambda: model(note=" " * 2**24 + "{}"),
    "note of lists": lambda: model(note="[" + "[]," * 2_500_000 + "[]]"),
    "note of objects": lambda: model(note='{"a":[' + '{"b":0},' * 1_000_000 + "0]}"),
    "note of one word": lambda: model(note=json.dumps("😀" + "a" * 7 * 2**20)),
    "deep note": lambda: model(note="[" * 200_000 + "]" * 200_000),
    "long number": lambda: model(note='{"format":' + "9" * 10**6 + "}"),
    "array larger than its member": lambda: model({COEF: header("'<f8'", (10**11,))}),
    "array of items without bytes": lambda: model({COEF: header("'|V0'", (10**11,))}),
    "array of long items": lambda: model({COEF: header("'<U500000000'", (0,))}),
    "array of a negative shape": lambda: model({COEF: header("'<f8'", (-1, -(10**11)))}),
    "array of many fields": lambda: model(
        {COEF: header([(f"f{k}", "<f8", (10**6,)) for k in range(99)], (0,))}
    ),
    "array with a long header": lambda: model({COEF: header("(" * 60_000, (1,))}),
    "untrusted 10 GB": lambda: other(archive({"schema.json": Forged(10 * GIB)})),
    "trusted 10 GB": lambda: other(archive({"schema.json": Forged(10 * GIB)})),
    "trusted schema larger than stated": lambda: other(
        archive({"schema.json": Forged(GIB, 2, b"{}")})
    ),
    "trusted array of 10 GB": lambda: other(
        archive({"schema.json": json.dumps(root()), "0.npy": Forged(10 * GIB)})
    ),
    "trusted array larger than stated": lambda: other(
        archive(
            {
                "schema.json": json.dumps(
                    root(__loader__="NdArrayNode", type="numpy", file="0.npy")
                ),
                "0.npy": Forged(GIB, 136, ARRAYS[COEF]),
            }
        )
    ),
    "trusted bzip2": lambda: other(archive({"schema.json": json.dumps(root())}, zipfile.ZIP_BZIP2)),
    "trusted many members": lambda: other(archive(many(400_000), zipfile.ZIP_STORED)),
    "trusted deep schema": lambda: other(archive({"schema.json": "[" * 200_000})),
    "trusted schema of lists": lambda: other(
        archive({"schema.json": "[" + "[]," * 2_500_000 + "[]]"})
    ),
}


def measured(folder):
    """Return the exit codes, most bytes taken and seconds, by file, and what was said."""
    (folder / "table.csv").write_text("x\n1\n")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", MEASURE, folder],
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    lines = done.stderr.splitlines()
    rows = [line.rsplit(" ", 3) for line in lines if not line.startswith("error: ")]
    found = {name: (int(code), int(peak), float(seconds)) for name, code, peak, seconds in rows}
    return found, [line for line in lines if line.startswith("error: ")]


@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak of memory from /proc")
def test_no_file_fills_the_memory_or_takes_long(tmp_path):
    for name, make in BOMBS.items():
        (tmp_path / f"{name}.unflip").write_bytes(make())
    found, said = measured(tmp_path)
    assert set(found) == set(BOMBS)
    assert {name: row[0] for name, row in found.items()} == dict.fromkeys(BOMBS, 2)
    assert len(said) == len(BOMBS)
    large = {name: peak for name, (_, peak, _) in found.items() if peak > ALLOWED}
    slow = {name: seconds for name, (*_, seconds) in found.items() if seconds > SECONDS}
    assert (large, slow) == ({}, {})


@pytest.fixture
def predicted(tmp_path):
    """Return whether the bytes of a file predict; if not, they are refused in one line."""

    def load(data):
        path = tmp_path / "model.unflip"
        path.write_bytes(data)
        try:
            found, _ = load_model(path)
        except ModelFileError as error:
            said = str(error)
        else:
            found.predict(found.encode(pl.DataFrame({"x": [1.0]})))
            return True
        assert "\n" not in said
        return False

    return load


def test_the_file_that_bombs_are_made_of_predicts(predicted):
    assert predicted(model())
    assert predicted(model({COEF: Forged(0, start=ARRAYS[COEF])}))


def test_files_that_end_early_are_refused(predicted):
    data = model()
    sizes = {0, 1, 21, 22, 100, len(data) // 2, len(data) - 23, len(data) - 1}
    sizes |= set(range(0, len(data), 37))
    assert not any(predicted(data[:size]) for size in sizes)
    assert not predicted(data[1000:])


@pytest.mark.parametrize("n_flips", [500, pytest.param(20_000, marks=pytest.mark.slow)])
def test_flipped_bits_are_noticed_or_do_not_matter(predicted, n_flips):
    rng = random.Random(0)  # noqa: S311
    whole = model()
    # where members and the directory begin, there is more than compressed bytes
    heads = [k for k in range(len(whole)) if whole[k : k + 2] == b"PK"]
    for _ in range(n_flips):
        data = bytearray(whole)
        near = min(rng.choice(heads) + rng.randrange(60), len(data) - 1)
        data[rng.choice([rng.randrange(len(data)), near])] ^= 1 << rng.randrange(8)
        predicted(bytes(data))


def test_an_object_is_not_looked_at_unless_its_type_is_trusted(tmp_path, monkeypatch):
    def read(*_, **__):
        raise AssertionError("read without trust")

    monkeypatch.setattr("skops.io.get_untrusted_types", read)
    Path(tmp_path / "model.unflip").write_bytes(other(b"no archive"))
    with pytest.raises(ValueError, match=f"--trust {TRUSTED}"):
        load_model(tmp_path / "model.unflip")
    with pytest.raises(ValueError, match="damaged"):
        load_model(tmp_path / "model.unflip", trusted=[TRUSTED])
