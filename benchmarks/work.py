"""How often each command does each kind of work, and what starting it costs.

`python -m benchmarks.work` runs every command once, in a process of its own, on scikit-learn's
breast cancer table (569 samples) with 15 % of its labels flipped. Python's profiler counts calls of
functions by their names, so that two checkouts can be compared:
`PYTHONPATH=../before/src python -m benchmarks.work`.
"""

import asyncio
import io
import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from pathlib import Path
from sqlite3 import Connection
from types import FrameType
from typing import Any

import numpy as np

FITS = {"ChannelPosterior._fit", "MulticlassChannelPosterior._fit"}
COUNTED = {
    "fits of the noise model": FITS,
    "goodness-of-fit checks": {"check_channel", "check_softmax_channel"},
    "label validations": {"check_labels"},
    "fits of the column encoder": {"ColumnEncoder.fit"},
    "encodings of the table": {"ColumnEncoder.transform"},
    "review tables built": {"ReviewTable.__init__"},
    "uses of the store": {"OpenFile.check_in_place"},
}
"""Each kind of work, and the functions of which a call is one piece of it. Each use of the file of
decisions begins with a check that it is still the same file, and a write also ends with one."""

STATEMENTS = "statements of SQL"

COMMANDS = {
    "estimate": ["estimate"],
    "audit": ["audit", "--out", "audit.csv"],
    "fit": ["fit", "--out", "model.unflip"],
    "report": ["report", "--out", "report.html"],
    "review": ["review", "--no-open", "--decisions", "r.sqlite", "--checker", "ann"],
}

STARTS = {
    "import unflip": ["-c", "import unflip"],
    "unflip --help": ["-m", "unflip", "--help"],
    "unflip estimate": ["-m", "unflip", "estimate", "table.csv", "--label", "diagnosis", "--json"],
}
"""What is timed, as arguments of Python."""

IMPORTS = "import sklearn.linear_model, sklearn.ensemble, sklearn.pipeline, polars, rich, typer"
"""What `unflip estimate` cannot do without."""

REPEATS = 5
"""Runs of each timed command, of which the quickest counts: others share the processor."""

DECISIONS = 10


def main() -> None:
    if sys.argv[1:2] == ["count"]:
        print(json.dumps(counted(sys.argv[2])), file=sys.__stdout__)
        return
    with tempfile.TemporaryDirectory() as folder:
        write_table(Path(folder) / "table.csv")
        columns = {name: run_counted(name, folder) for name in COMMANDS}
        print(f"{'':28}", *(f"{name:>10}" for name in columns))
        for work in (*COUNTED, STATEMENTS):
            cells = (f"{column['at the start'].get(work, 0):10}" for column in columns.values())
            print(f"{work:28}", *cells)
        print()
        for work, n in columns["review"]["per decision"].items():
            print(f"{work} per decision: {n / DECISIONS:g}")
        print("\nseconds of the processor, the least of", REPEATS)
        for name, arguments in {**STARTS, "its libraries": ["-c", IMPORTS]}.items():
            print(f"{name:28} {seconds(arguments, folder):6.2f}")


def write_table(path: Path) -> None:
    """Write the breast cancer table with flipped labels as CSV."""
    from sklearn.datasets import load_breast_cancer

    found = load_breast_cancer()
    wrong = np.random.default_rng(0).random(found.target.size) < 0.15
    labels = found.target_names[found.target ^ wrong]
    lines = [",".join([*(name.replace(" ", "_") for name in found.feature_names), "diagnosis"])]
    lines += [
        ",".join([*map(repr, row), label])
        for row, label in zip(found.data.tolist(), labels.tolist(), strict=True)
    ]
    path.write_text("\n".join(lines) + "\n")


def run_counted(name: str, folder: str) -> dict[str, dict[str, int]]:
    """Return the counts of one command, from a process of its own."""
    command = [sys.executable, "-m", "benchmarks.work", "count", name, folder]
    root = Path(__file__).parents[1]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=root)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def counted(name: str) -> dict[str, dict[str, int]]:
    """Run a command in this process and return how often it did what."""
    os.chdir(sys.argv[3])
    counts = Counter[str]()
    kinds = {function: kind for kind, functions in COUNTED.items() for function in functions}

    def note(frame: FrameType, event: str, called: Any) -> None:
        if event == "call" and frame.f_code.co_qualname in kinds:
            counts[kinds[frame.f_code.co_qualname]] += 1
        elif event == "c_call" and isinstance(getattr(called, "__self__", None), Connection):
            counts[STATEMENTS] += called.__name__ in ("execute", "executemany")

    from unflip.__main__ import main as unflip

    result: dict[str, dict[str, int]] = {"per decision": {}}
    printed = io.StringIO()
    if name == "review":
        answer_requests(printed, counts, result)
    sys.argv = ["unflip", *COMMANDS[name], "table.csv", "--label", "diagnosis", "--json"]
    threading.setprofile(note)
    sys.setprofile(note)
    sys.stdout = printed
    try:
        unflip()
    except SystemExit as done:
        if done.code:
            raise
    sys.setprofile(None)
    result.setdefault("at the start", dict(counts))
    return result


def answer_requests(
    printed: io.StringIO, counts: Counter[str], result: dict[str, dict[str, int]]
) -> None:
    """Have the page's server make decisions instead of waiting for a browser."""
    import uvicorn

    def run(server: Any, sockets: Any) -> None:
        result["at the start"] = dict(counts)
        address = json.loads(printed.getvalue().splitlines()[-1])["address"]
        before = Counter(counts)
        for row in range(DECISIONS):
            body = {"row": row, "version": 0, "verdict": "keep", "queue": "suspicious"}
            asyncio.run(post(server.config.app, f"{address}api/decide", body))
        result["per decision"] = dict(counts - before)

    uvicorn.Server.run = run


async def post(app: Any, address: str, body: dict[str, Any]) -> None:
    """Send one request to a web application, and check that it is answered."""
    host, _, path = address.removeprefix("http://").partition("/")
    content = json.dumps(body).encode()
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": content, "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    headers = {"host": host, "origin": f"http://{host}", "content-type": "application/json"}
    scope = {
        "type": "http",
        "method": "POST",
        "path": f"/{path}",
        "raw_path": f"/{path}".encode(),
        "query_string": b"",
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
    }
    await app(scope, receive, send)
    assert sent[0]["status"] == 200, sent


def seconds(arguments: list[str], folder: str) -> float:
    """Return the seconds of the processor that Python takes for this."""
    took = []
    for _ in range(REPEATS):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, *arguments], check=True, cwd=folder, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        took.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(took)


if __name__ == "__main__":
    main()
