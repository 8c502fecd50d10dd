"""Measure everything, print the table, write CSV and chart."""

import argparse
import sys
from math import isnan
from pathlib import Path

from benchmarks import report
from benchmarks.harness import OURS, ROOT, run_all


def main() -> int:
    """Return 1 where unflip itself could not be measured, else 0."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="smallest size, one repeat")
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results", metavar="DIR")
    parser.add_argument("--threads", type=int, default=1, help="threads of each process")
    parser.add_argument("--repeats", type=int, default=7, help="at most so many runs of each")
    parser.add_argument("--limit", type=float, default=30, help="seconds before giving up on one")
    options = parser.parse_args()

    results = list(
        run_all(
            quick=options.quick,
            threads=options.threads,
            repeats=1 if options.quick else options.repeats,
            limit=options.limit,
        )
    )
    cells = report.rows(results)
    print(f"{options.threads} thread(s); {report.versions()}\n")
    print(report.text_table(cells))

    options.out.mkdir(parents=True, exist_ok=True)
    report.write_csv(cells, options.out / "results.csv")
    try:
        report.draw(results, options.out / "results.png")
    except ModuleNotFoundError as missing:
        print(f"no chart: {missing}", file=sys.stderr)
    print(f"\nwritten to {options.out}", file=sys.stderr)
    return int(any(r.who == OURS and isnan(r.seconds) for r in results))


if __name__ == "__main__":
    sys.exit(main())
