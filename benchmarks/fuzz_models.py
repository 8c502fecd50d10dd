"""Change values of model files at random: each is predicted with, or refused in one line.

`python -m benchmarks.fuzz_models --n 10000` writes models of all kinds, changes one to three values
of copies (JSON values, array entries, shapes, types and headers), so many copies of each kind, and
predicts in one process under a limit of memory and an audit hook that forbids processes and files
outside the folder. It prints what became of them; what asks for more memory fails. Classifiers of
another package are among them: nothing is trusted here, so all of these are refused.
"""

import argparse
import collections
import copy
import io
import json
import random
import resource
import sys
import tempfile
import tokenize
import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from unflip import NoiseRates
from unflip._app.persistence import ModelFileError, load_model, save_model
from unflip._app.tables import kind_of, split_label
from unflip._app.workflow import learn, make_estimator

ALLOWED = 200 * 2**20
"""Bytes of address space that the changed files may take in all, beyond what is there before."""

VALUES: list[Any] = [
    *(
        None,
        True,
        False,
        0,
        -1,
        1,
        2**31,
        2**63,
        10**30,
        -0.5,
        1e308,
        1e-320,
        "",
        "x",
        "a" * 20_000,
    ),
    *(
        [],
        {},
        [[]],
        float("nan"),
        float("inf"),
        "number",
        "text",
        "date",
        "\ud800",
        "../x",
        "other",
    ),
]
NUMBERS = [0, -1, 1, 60, 61, 2**31 - 1, -(2**31), 1e308, -1e308, 1e-320, np.nan, np.inf]
OTHER = "sklearn.naive_bayes.GaussianNB"
"""A classifier whose files need `--trust`."""

FORBIDDEN = ("subprocess.Popen", "os.exec", "os.fork", "os.posix_spawn", "os.system", "socket.")


def genuine(folder: Path) -> tuple[dict[str, bytes], pl.DataFrame]:
    """Return model files of each kind, for two classes and for three, and rows to predict."""
    rng, files = np.random.default_rng(0), {}
    for n_classes in (2, 3):
        y = np.arange(150) % n_classes
        words = np.array(["late angry refund", "fine good thanks", "where when"])[y]
        rows = pl.DataFrame(
            {
                "x": [None, *rng.normal(3 * y, 1)[1:]],
                "plan": rng.choice(["a", "b", "c"], 150),
                "since": [f"2020-{1 + k % 12:02}-01" for k in range(150)],
                "note": [f"{text} {k}" for k, text in enumerate(words)],
                "y": y,
            }
        )
        data = split_label(rows, "y")
        columns = {name: kind_of(data.features[name]) for name in data.features.columns}
        rates = NoiseRates(0.1, 0.1) if n_classes == 2 else None
        for name in ("logistic", "boosting", "svm", OTHER):
            model = learn(data, estimator=make_estimator(name), rates=rates).model
            path = folder / "genuine"
            save_model(path, model, {"label": "y", "columns": columns, "set_aside": []})
            files[f"{name} {n_classes}"] = path.read_bytes()
    return files, rows.drop("y").head(20)


def changed(data: bytes, rng: random.Random) -> bytes:
    """Return a file in which one to three values, or parts of arrays, are others."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    for _ in range(rng.choice([1, 1, 2, 3])):
        name = rng.choice(sorted(members))
        if name == "unflip.json" or rng.random() < 0.4:
            members["unflip.json"] = _changed_json(members["unflip.json"], rng)
        elif name.endswith(".npy"):
            members[name] = _changed_array(members[name], rng)
        else:
            members[name] = _changed_byte(members[name], rng)
    if rng.random() < 0.02:
        members.pop(rng.choice(sorted(members)))
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def _changed_json(text: bytes, rng: random.Random) -> bytes:
    note = json.loads(text)
    places: list[tuple[Any, Any]] = []

    def walk(value: Any) -> None:
        for key in list(value) if isinstance(value, dict) else range(len(value)):
            places.append((value, key))
            if isinstance(value[key], (dict, list)):
                walk(value[key])

    walk(note)
    container, key = rng.choice(places)
    other, name = rng.choice(places)
    container[key] = copy.deepcopy(rng.choice([rng.choice(VALUES), other[name]]))
    try:
        return json.dumps(note).encode()
    except (ValueError, RecursionError):
        return text


def _changed_byte(content: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(content))
    return content[:at] + bytes([rng.randrange(256)]) + content[at + 1 :]


def _changed_array(content: bytes, rng: random.Random) -> bytes:
    way = rng.randrange(5)
    if way == 0:
        return _changed_byte(content, rng)  # in the header too
    try:
        array = np.load(io.BytesIO(content)).copy()
    except (ValueError, OSError, EOFError, SyntaxError, TypeError, tokenize.TokenError):
        return content
    if way == 1 and array.size:
        with np.errstate(all="ignore"):
            kinds = np.iinfo(array.dtype) if array.dtype.kind in "iu" else None
            value: Any = rng.choice(NUMBERS)
            if kinds is not None:
                value = rng.choice([int(kinds.min), int(kinds.max), 0, 1, 60, 61])
            array.flat[rng.randrange(array.size)] = value
    elif way == 2:
        array = array[: rng.randrange(len(array) + 1)] if array.ndim else array
    elif way == 3:
        array = rng.choice([array.ravel(), array.T, array[None], np.repeat(array, 2, axis=0)])
    else:
        kind = rng.choice(["f4", "f8", "i4", "i8", "u8", "U3", "?", ">f8", "c16"])
        # a printed warning would open this file
        with np.errstate(invalid="ignore"), warnings.catch_warnings(action="ignore"):
            try:
                array = array.astype(kind)
            except ValueError:  # three characters of a number may be none
                return content
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def run(n_changes: int, seed: int = 0) -> dict[str, dict[str, int]]:
    """Return of each kind how many changed files were predicted with and refused, and how.

    Raises on anything else: a fault, a file or a process that is opened, memory beyond the limit.
    """
    counts: dict[str, collections.Counter[str]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files, rows = genuine(folder)
        path, events = folder / "model", []

        def predict(data: bytes) -> str:
            path.write_bytes(data)
            try:
                model, note = load_model(path)
            except ModelFileError as error:
                if isinstance(error.__cause__, MemoryError):
                    raise MemoryError("not refused, but stopped by the limit") from error
                return "refused" if "\n" not in str(error) else "refused in several lines"
            if set(note["columns"]) != set(rows.columns):
                return "columns differ"
            try:
                model.predict(model.encode(rows))
            except ValueError:  # the command says so in one line
                return "cannot predict"
            return "predicted"

        for kind, data in files.items():
            assert predict(data) == ("refused" if kind.startswith(OTHER) else "predicted")
        watching = True

        def hook(event: str, arguments: tuple[Any, ...]) -> None:
            if not watching:
                return
            outside = event == "open" and str(arguments[0]) != str(path)
            if outside or event.startswith(FORBIDDEN):
                events.append(f"{event} {arguments[:1]}")

        sys.addaudithook(hook)
        size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        before = resource.getrlimit(resource.RLIMIT_AS)
        events.clear()  # the line above has opened a file
        resource.setrlimit(resource.RLIMIT_AS, (size + ALLOWED, before[1]))
        rng = random.Random(seed)  # noqa: S311
        try:
            for kind in sorted(files):
                counts[kind] = collections.Counter(
                    predict(changed(files[kind], rng)) for _ in range(n_changes)
                )
        finally:
            watching = False
            resource.setrlimit(resource.RLIMIT_AS, before)
        assert not events, events[:5]
        for kind, outcomes in counts.items():
            assert "refused in several lines" not in outcomes, (kind, outcomes)
            assert not (kind.startswith(OTHER) and "predicted" in outcomes), (kind, outcomes)
    return {kind: dict(outcomes) for kind, outcomes in counts.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=10_000, help="changed files of each kind")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    for kind, outcomes in run(options.n, options.seed).items():
        print(f"{kind:36}", ", ".join(f"{k}: {n:,}" for k, n in sorted(outcomes.items())))


if __name__ == "__main__":
    main()
