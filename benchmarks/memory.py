"""Peak memory of the commands on tables with long texts, beside the bar that unflip promises.

`python -m benchmarks.memory` writes three tables, runs each command in a process of its own and
prints the peak of its resident memory. The bar is 10 times the file plus 300 MB. The line "imports"
is what a process takes that has imported unflip, polars and scikit-learn. The exit code is 1 where
a command takes more than the bar, or fails. Run it where `unflip[cli,review]` alone is installed:
scikit-learn imports pandas where it finds it, and pandas pyarrow, which takes 110 MB more.
"""

import argparse
import csv
import os
import random
import signal
import subprocess
import sys
import tempfile
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

# nothing large is imported here: the peak of a new process is at least that of the one that
# started it
MB = 10**6
TIMES, BEYOND = 10, 300 * MB
"""The bar: so many times the file, and so many bytes beyond."""

SECONDS = 60
"""The page answers within so many."""

IMPORTS = "import unflip.audit, polars, sklearn.ensemble"

LABEL = ("--label", "label")
PAGE = ("", "api/about", "api/queue?queue=suspicious", "api/row?queue=suspicious&row=7")
"""What the review page asks for when it is opened; row 7 has a long text."""

RATES = (*LABEL, "--rates", "0.1,0.1")

Row = tuple[str, str, str]


def rows(n_rows: int, long: dict[int, int]) -> Iterator[Row]:
    """Yield numbers, texts and labels; the texts of some rows have so many characters."""
    rng = random.Random(0)  # noqa: S311
    words = (("late", "angry", "refund", "broken"), ("fine", "thanks", "good", "quick"))
    for k in range(n_rows):
        label = k % 2
        n_words = 1 + long.get(k, 40) // 6
        text = " ".join(rng.choices(words[label], k=n_words))
        wrong = rng.random() < 0.1
        yield f"{rng.gauss(2 * label, 1):.3f}", text, ("no", "yes")[label ^ wrong]


TABLES: dict[str, Callable[[], Iterator[Row]]] = {
    "300 rows, one cell of 1 MB": lambda: rows(300, {7: MB}),
    "4000 texts, 40 of them long": lambda: rows(4000, {100 * k: 220_000 for k in range(40)}),
    "300 rows, one cell of 10 MB": lambda: rows(300, {7: 10 * MB}),
}


def write(path: Path, table: Iterator[Row]) -> None:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([("x", "text", "label"), *table])


def commands(path: Path) -> dict[str, list[str]]:
    """Return the arguments of the commands, in the order in which they are run."""
    folder, table = path.parent, str(path)
    model = str(folder / "model")
    return {
        "audit": ["audit", table, *RATES, "--out", str(folder / "audit.csv")],
        "report": ["report", table, *RATES, "--out", str(folder / "report.html")],
        "flip": ["flip", table, *RATES, "--out", str(folder / "flipped.csv")],
        "fit": ["fit", table, *RATES, "--out", model, "--weights", str(folder / "weights.csv")],
        "predict": ["predict", model, table, "--out", str(folder / "predicted.csv")],
        "review": ["review", table, *RATES, "--no-open"],
        "export": ["review", table, *RATES, "--export"],
    }


def peak(process: subprocess.Popen[str]) -> tuple[int, int]:
    """Return the exit code and the peak of the memory of a process, in bytes, once it has ended."""
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    unit = 1 if sys.platform == "darwin" else 1024  # of ru_maxrss
    return process.returncode, used.ru_maxrss * unit


def run(arguments: list[str]) -> tuple[int, int]:
    """Return the exit code and the peak of a command, or of imports; `review` shows a page once."""
    what = ["-m", "unflip", *arguments] if arguments else ["-c", IMPORTS]
    command = [sys.executable, "-W", "ignore", *what]
    is_page = "--no-open" in arguments
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE if is_page else subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    if is_page:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        try:
            for place in PAGE:
                _fetch(urllib.parse.urljoin(address, place))
        finally:
            process.send_signal(signal.SIGINT)
            process.stdout.close()
    return peak(process)


def _fetch(address: str) -> None:
    with urllib.request.urlopen(address, timeout=SECONDS) as answer:  # noqa: S310
        answer.read()


def main() -> int:
    argparse.ArgumentParser(description=__doc__).parse_args()
    print(f"{'imports':30} {'':8} {run([])[1] / MB:6.0f} MB", flush=True)
    worst = 0
    for name, table in TABLES.items():
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "table.csv"
            write(path, table())
            bar = TIMES * path.stat().st_size + BEYOND
            for command, arguments in commands(path).items():
                code, most = run(arguments)
                failed = f", exit code {code}" if code else ""
                beyond = ", too much" if most > bar else ""
                print(
                    f"{name:30} {command:8} {most / MB:6.0f} MB, bar {bar / MB:6.0f} MB"
                    f"{beyond}{failed}",
                    flush=True,
                )
                worst = max(worst, bool(code), most > bar)
    return int(worst)


if __name__ == "__main__":
    sys.exit(main())
