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

from benchmarks.cases import CASES, HEAVY_PEERS, PEERS

ROOT = Path(__file__).parents[1]
THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMBA_NUM_THREADS",
)


@dataclass(frozen=True)
class Plan:
    """What to run, and how."""

    size: str = "usual"
    """"quick", "usual" or "full"."""
    threads: tuple[int, ...] = (1,)
    repeats: int = 7
    limit: float = 30.0
    """Seconds after which a contender is given up."""
    clock: str = "wall"
    """"wall", or "cpu" for a machine that others use too."""
    only: str = ""
    """Part of the names of the cases to run."""
    heavy: bool = False
    """Whether the peers that bring much with them take part."""


@dataclass(frozen=True)
class Result:
    """One line of the table; NaN is what was not measured."""

    case: str
    n: int
    d: int
    threads: int
    who: str
    note: str
    seconds: float = float("nan")
    added_mib: float = float("nan")
    limit: float | None = None
    """Seconds after which the contender was given up."""


def run_all(plan: Plan) -> Iterator[Result]:
    """Yield results as they come, with a line of progress to stderr for each."""
    peers = PEERS + (HEAVY_PEERS if plan.heavy else ())
    missing = [peer for peer in peers if find_spec(peer) is None]
    for peer in missing:
        print(f"{peer} is skipped: not installed", file=sys.stderr)
    left_out = {*missing, *(set(HEAVY_PEERS) - set(peers))}
    todo = [
        (name, shape, threads, who)
        for name, case in CASES.items()
        if plan.only in name
        for shape, who in case.todo(plan.size)
        for threads in plan.threads
        if who not in left_out
    ]
    for k, (name, (n, d), threads, who) in enumerate(todo, start=1):
        where = f"{name}, {n} x {d}, {threads} thread(s): {who}"
        print(f"[{k}/{len(todo)}] {where} ... ", end="", file=sys.stderr, flush=True)
        result = measure(plan, name, n, d, threads, who)
        print(f"{result.seconds:.4f} s, {result.note}", file=sys.stderr, flush=True)
        yield result


def measure(plan: Plan, case: str, n: int, d: int, threads: int, who: str) -> Result:
    """Start a worker, and give up on it after so many seconds."""
    task = [case, who, str(n), str(d), str(plan.repeats), plan.clock]
    environment = os.environ | dict.fromkeys(THREAD_VARIABLES, str(threads))
    try:
        process = subprocess.run(
            [sys.executable, "-m", "benchmarks.worker", *task],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            timeout=plan.limit,
        )
    except subprocess.TimeoutExpired:
        return Result(case, n, d, threads, who, "given up", limit=plan.limit)
    if process.returncode != 0:
        lines = process.stderr.strip().splitlines() or [f"exit status {process.returncode}"]
        return Result(case, n, d, threads, who, f"skipped, it fails: {lines[-1]}")
    measured = json.loads(process.stdout.splitlines()[-1])  # peers may print before
    seconds, added = median(measured["seconds"]), measured["added_mib"]
    return Result(case, n, d, threads, who, measured["note"], seconds, added)
