"""Measure everything, print the table, write CSV and chart."""

import argparse
import sys
from math import isnan
from pathlib import Path

from benchmarks import report
from benchmarks.cases import OURS
from benchmarks.harness import ROOT, Plan, run_all


def main() -> int:
    """Return 1 where unflip itself could not be measured, else 0."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="smallest shapes, one repeat")
    parser.add_argument("--full", action="store_true", help="up to a million rows, d = 2, 20, 100")
    parser.add_argument("--only", default="", metavar="TEXT", help="cases whose name has this")
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results", metavar="DIR")
    parser.add_argument("--threads", type=int, nargs="+", default=[1], help="of each process")
    parser.add_argument("--repeats", type=int, default=5, help="at most so many runs of each")
    parser.add_argument("--limit", type=float, default=30, help="seconds before giving up on one")
    parser.add_argument(
        "--clock", choices=["wall", "cpu"], default="wall", help="cpu: where others share the cores"
    )
    parser.add_argument("--adapt", action="store_true", help="with adapt, which needs TensorFlow")
    options = parser.parse_args()
    plan = Plan(
        size="quick" if options.quick else "full" if options.full else "usual",
        threads=tuple(options.threads),
        repeats=1 if options.quick else options.repeats,
        limit=options.limit,
        clock=options.clock,
        only=options.only,
        heavy=options.adapt,
    )

    results = list(run_all(plan))
    cells = report.rows(results)
    print(f"{plan.clock} clock; {report.versions()}\n")
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
