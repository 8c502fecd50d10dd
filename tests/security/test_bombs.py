"""A small file does not fill the memory, and does not keep the machine busy."""

import io
import json
import os
import struct
import subprocess
import sys
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pytest

from tests.security.hostile import (
    NOTE,
    archive,
    array,
    constant,
    dict_of,
    list_of,
    node,
    npy,
    saved,
)
from unflip._app.persistence import ModelFileError, load_model

ALLOWED = 200 * 2**20

MEASURE = """
import re, sys
from pathlib import Path
import typer, polars, skops.io, sklearn.svm, sklearn.ensemble, skrub
from unflip.cli._predict import predict

def memory(key):
    return int(re.search(rf"{key}:\\s*(\\d+) kB", Path("/proc/self/status").read_text())[1]) * 1024

for path in sorted(Path(sys.argv[1]).glob("*.skops")):
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts from here
    before, code = memory("VmRSS"), 0
    try:
        predict(path, Path(sys.argv[1], "table.csv"), Path(sys.argv[1], "out.csv"), separator=None,
                trust=(), force=False, as_json=False, quiet=False)
    except typer.Exit as error:
        code = error.exit_code
    print(path.stem, code, memory("VmHWM") - before)
"""


def numbered(loader, name, number, **fields):
    return {**node(loader, name, **fields), "__id__": number}


def doubled(levels):
    """Return lists in lists, each twice in the next: 2**levels of them in few words."""
    lists = numbered("ListNode", "builtins.list", 1, content=[])
    for number in range(2, levels + 2):
        content = [lists, {"__id__": number - 1}]
        lists = numbered("ListNode", "builtins.list", number, content=content)
    return lists


def lying(size, n_bytes):
    """Return an archive whose array says that it takes `size` bytes, and takes `n_bytes`."""
    content = npy(data=bytes(16)) + bytes(n_bytes)
    data = bytearray(archive(list_of(array()), {"0.npy": content}))
    for mark, at in ((b"PK\x03\x04", 14), (b"PK\x01\x02", 16)):
        place = data.rindex(mark)
        assert struct.unpack_from("<I", data, place + at + 8)[0] == len(content)
        struct.pack_into("<I", data, place + at, zlib.crc32(content[:size]))
        struct.pack_into("<I", data, place + at + 8, size)
    return bytes(data)


def nested(text, depth):
    return "[" * depth + text + "]" * depth


def generator(pool_size):
    seed = dict_of(entropy=constant(1), pool_size=constant(pool_size))
    content = {"bit_generator": dict_of(bit_generator=constant("PCG64")), "seed_seq": seed}
    return node("RandomGeneratorNode", "numpy.random._generator.Generator", content=content)


def header(descr, shape):
    return npy(f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}", b"")


def many_members(n_members):
    return {f"{k}.npy": b"" for k in range(n_members)}


zeros = bytes(20 * 2**20)
BOMBS = {
    "member of zeros": lambda: archive(list_of(array()), {"0.npy": zeros}),
    "schema of spaces": lambda: archive(" " * 2**24 + "{}"),
    "note of spaces": lambda: archive(constant(1), note=" " * 2**24 + "{}"),
    "schema of lists": lambda: archive("[" + "[]," * 2_500_000 + "[]]"),
    "schema of objects": lambda: archive('{"a":[' + '{"b":0},' * 1_000_000 + "0]}"),
    "schema of words": lambda: archive('["' + '","'.join(map(str, range(500_000))) + '"]'),
    "schema of one word": lambda: archive(json.dumps("😀" + "a" * 9 * 2**20)),
    "note of lists": lambda: archive(constant(1), note="[" + "[]," * 3 * 10**6 + "[]]"),
    "constant of lists": lambda: archive(constant([[]] * 10**6)),
    "constant of hidden lists": lambda: archive(
        json.dumps({**constant(0), "protocol": 2, "content": "[C[]]"}).replace(
            "[C[]]", "[" + "\\\\u005b\\\\u005d\\\\u002c" * 5 * 10**5 + "0]"
        )
    ),
    "nodes": lambda: archive(list_of(*[node("TypeNode", "builtins.str")] * 35_000)),
    "deep schema": lambda: archive(nested("1", 200_000)),
    "deep note": lambda: archive(constant(1), note=nested("1", 200_000)),
    "deep constant": lambda: archive({**constant(1), "content": nested("1", 150_000)}),
    "deep nodes": lambda: archive(deep_nodes(100)),
    "deeper nodes": lambda: archive(deep_nodes(130)),
    "long number": lambda: archive('{"a":' + "9" * 10**6 + "}"),
    "long number in a note": lambda: archive(
        constant(1), note=json.dumps({**NOTE, "format": 7}).replace("7", "9" * 5000)
    ),
    "doubled lists": lambda: archive(doubled(60)),
    "doubled lists as an array": lambda: archive(
        node(
            "NdArrayNode",
            "numpy.ndarray",
            type="json",
            content=[doubled(40)],
            shape=node("TupleNode", "builtins.tuple", content=[constant(1), constant(1)]),
        )
    ),
    "one member read often": lambda: archive(
        list_of(*[array()] * 5000), {"0.npy": saved(np.zeros(10**6))}
    ),
    "many members": lambda: archive(constant(1), many_members(20_000), compression=0),
    "array larger than its member": lambda: archive(
        list_of(array()), {"0.npy": header("'<f8'", (10**11,))}
    ),
    "array of items without bytes": lambda: archive(
        list_of(array()), {"0.npy": header("'|V0'", (10**11,))}
    ),
    "array of long items": lambda: archive(
        list_of(array()), {"0.npy": header("'<U500000000'", (0,))}
    ),
    "array of a negative shape": lambda: archive(
        list_of(array()), {"0.npy": header("'<f8'", (-1, -(10**11)))}
    ),
    "array of many fields": lambda: archive(
        list_of(array()), {"0.npy": header([(f"f{k}", "<f8", (10**6,)) for k in range(99)], (0,))}
    ),
    "array with a long header": lambda: archive(
        list_of(array()), {"0.npy": npy("(" * 60_000, b"")}
    ),
    "random generator with a large pool": lambda: archive(generator(10**9)),
    "bzip2": lambda: archive(
        list_of(array()), {"0.npy": saved(np.zeros(10**5))}, compression=zipfile.ZIP_BZIP2
    ),
    "lzma": lambda: archive(
        list_of(array()), {"0.npy": saved(np.zeros(10**5))}, compression=zipfile.ZIP_LZMA
    ),
    "size that is not true": lambda: lying(144, 210 * 2**20),
    "arrays that fit": lambda: archive(list_of(array()), {"0.npy": saved(np.zeros(2 * 10**6))}),
    "arrays that fit, of a larger file": lambda: archive(
        list_of(array("0.npy"), array("1.npy")),
        {
            "0.npy": saved(np.random.default_rng(0).random(10**6)),
            "1.npy": saved(np.zeros(3 * 10**6)),
        },
    ),
}


def deep_nodes(depth):
    nodes = list_of()
    for _ in range(depth):
        nodes = list_of(nodes)
    return nodes


def measured(folder):
    """Return names, exit codes and the most bytes taken, by file, and what was said."""
    (folder / "table.csv").write_text("x\n1\n")
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, folder], capture_output=True, text=True, check=True
    )
    rows = [line.rsplit(" ", 2) for line in done.stdout.splitlines()]
    names, codes, peaks = zip(*rows, strict=True)
    return list(names), [int(code) for code in codes], [int(peak) for peak in peaks], done.stderr


linux = pytest.mark.skipif(sys.platform != "linux", reason="reads the peak of memory from /proc")


@linux
@pytest.mark.slow
def test_no_bomb_takes_200_megabytes(tmp_path):
    for name, make in BOMBS.items():
        (tmp_path / f"{name}.skops").write_bytes(make())
    names, codes, peaks, said = measured(tmp_path)
    assert set(names) == set(BOMBS)
    assert set(codes) == {2}, dict(zip(names, codes, strict=True))
    assert said.count("\n") == len(BOMBS)
    assert said.count("error: ") == len(BOMBS)
    assert max(peaks) < ALLOWED, dict(zip(names, peaks, strict=True))


@linux
@pytest.mark.slow
def test_ten_gigabytes_in_eleven_megabytes_are_not_unpacked(tmp_path):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("schema.json", json.dumps({**list_of(array()), "protocol": 2}))
        file.writestr("unflip.json", json.dumps(NOTE))
        with file.open("0.npy", "w", force_zip64=True) as member:
            for _ in range(10 * 2**10):
                member.write(zeros[: 2**20])
    (tmp_path / "bomb.skops").write_bytes(buffer.getvalue())
    _, codes, peaks, said = measured(tmp_path)
    assert codes == [2]
    assert "it has 10,737,41" in said
    assert max(peaks) < ALLOWED


@linux
@pytest.mark.slow
def test_as_many_nodes_as_are_allowed_stay_in_bounds(tmp_path):
    heaviest = node("FunctionNode", "skrub._dataframe._common.is_numeric")
    (tmp_path / "bomb.skops").write_bytes(archive(list_of(*[heaviest] * 29_990)))
    _, codes, peaks, said = measured(tmp_path)
    assert codes == [2]
    assert "it holds list" in said  # it was made
    assert max(peaks) < ALLOWED


@linux
@pytest.mark.slow
def test_a_central_directory_of_many_entries_stays_in_bounds(tmp_path):
    entries = many_members(150_000)
    (tmp_path / "bomb.skops").write_bytes(archive(constant(1), entries, compression=0))
    _, codes, peaks, _ = measured(tmp_path)
    assert codes == [2]
    assert max(peaks) < ALLOWED


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes")
def test_what_is_no_regular_file_is_not_read(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (pipe, tmp_path, Path("/dev/zero"), Path("/dev/null")):
        with pytest.raises(ModelFileError, match="it is no file"):
            load_model(path)
    with pytest.raises(FileNotFoundError):
        load_model(tmp_path / "absent")
