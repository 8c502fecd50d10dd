"""One measurement in a process of its own: see `harness.measure`."""

import ctypes
import json
import re
import sys
import time
from contextlib import suppress
from pathlib import Path

from benchmarks.cases import CASES

WARM_UP_ROWS = 300
BUDGET = 4.0
"""Seconds after which no further repeat is started."""


def peak_memory(*, reset: bool = False) -> float:
    """Return the peak resident memory in MiB, since the last reset; NaN where /proc is missing."""
    try:
        if reset:
            with suppress(AttributeError):  # freed memory goes back, so that its use is seen again
                ctypes.CDLL(None).malloc_trim(0)
            with suppress(PermissionError):  # then it is the peak since the start
                Path("/proc/self/clear_refs").write_text("5")
        found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    except FileNotFoundError:
        return float("nan")
    return int(found[1]) / 1024 if found else float("nan")


def main(case: str, who: str, n: str, d: str, repeats: str, clock: str) -> None:
    """Print seconds of every repeat, MiB added by the first one, and the judgement, as JSON."""
    prepare = CASES[case].contenders[who]
    now = {"wall": time.perf_counter, "cpu": time.process_time}[clock]
    # what is imported or set up at the first call is not counted
    prepare(WARM_UP_ROWS, int(d)).run()
    work = prepare(int(n), int(d))
    baseline = peak_memory(reset=True)
    seconds: list[float] = []
    added = 0.0
    while len(seconds) < int(repeats) and sum(seconds) < BUDGET:
        start = now()
        result = work.run()
        seconds.append(now() - start)
        if len(seconds) == 1:
            added = peak_memory() - baseline
    print(json.dumps({"seconds": seconds, "added_mib": added, "note": work.judge(result)}))


if __name__ == "__main__":
    main(*sys.argv[1:])
