"""Runs every contender of every case in a process of its own, one at a time."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from statistics import median

from benchmarks.cases import CASES, PEERS

ROOT = Path(__file__).parents[1]
THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMBA_NUM_THREADS",
)


OURS = "unflip"


@dataclass(frozen=True)
class Result:
    """One line of the table; NaN is what was not measured."""

    case: str
    n: int
    who: str
    note: str
    seconds: float = float("nan")
    added_mib: float = float("nan")
    limit: float | None = None
    """Seconds after which the contender was given up."""


def run_all(*, quick: bool, threads: int, repeats: int, limit: float) -> Iterator[Result]:
    """Yield results as they come, with a line of progress to stderr for each."""
    missing = [peer for peer in PEERS if find_spec(peer) is None]
    for peer in missing:
        print(f"{peer} is skipped: not installed", file=sys.stderr)
    todo = [
        (name, n, who)
        for name, case in CASES.items()
        for n in ((case.quick_size,) if quick else case.sizes)
        for who in case.contenders
        if who not in missing
    ]
    for k, (name, n, who) in enumerate(todo, start=1):
        print(f"[{k}/{len(todo)}] {name}, n = {n}: {who}", file=sys.stderr, flush=True)
        yield measure(name, n, who, threads=threads, repeats=repeats, limit=limit)


def measure(case: str, n: int, who: str, *, threads: int, repeats: int, limit: float) -> Result:
    """Start a worker, and give up on it after `limit` seconds."""
    command = [sys.executable, "-m", "benchmarks.worker", case, who, str(n), str(repeats)]
    environment = os.environ | dict.fromkeys(THREAD_VARIABLES, str(threads))
    try:
        process = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=limit
        )
    except subprocess.TimeoutExpired:
        return Result(case, n, who, "given up", limit=limit)
    if process.returncode != 0:
        lines = process.stderr.strip().splitlines() or [f"exit status {process.returncode}"]
        return Result(case, n, who, f"skipped, it fails: {lines[-1]}")
    measured = json.loads(process.stdout.splitlines()[-1])  # peers may print before
    seconds = median(measured["seconds"])
    return Result(case, n, who, measured["note"], seconds, measured["added_mib"])
