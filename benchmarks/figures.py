"""Figures of a benchmark as a CSV file, and beside it where and when they were measured."""

import csv
import json
import os
import platform
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGES = ("unflip", "numpy", "scipy", "scikit-learn", "cleanlab", "densratio", "skada")


def write_figures(path: Path, head: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Write a table, and its stamp beside it.

    Parameters
    ----------
    path : Path
        The CSV file; the stamp is the JSON file of the same name.
    head : sequence of str
        Names of the columns.
    rows : iterable of sequences
        The table.
    """
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([head, *rows])
    stamp(path)


def read_figures(path: Path) -> list[dict[str, str]]:
    """Return the rows of a table by the names of its columns."""
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def stamp(path: Path) -> None:
    """Write beside a table by which command, when, on which machine, with which versions."""
    # `python -m benchmarks.rates` is known by the file that it runs
    module = f"benchmarks.{Path(sys.argv[0]).stem}".removesuffix(".__main__")
    words = {
        "command": " ".join(["python -m", module, *sys.argv[1:]]),
        "date": datetime.now(UTC).date().isoformat(),
        "machine": f"{_processor()}, {os.cpu_count()} cores, {platform.system()}",
        "python": platform.python_version(),
        "versions": {name: found for name in PACKAGES if (found := _version(name))},
    }
    path.with_suffix(".json").write_text(json.dumps(words, indent=2) + "\n", encoding="utf-8")


def read_stamp(path: Path) -> str:
    """Return in a sentence what is known of the making of a table."""
    file = path.with_suffix(".json")
    if not file.exists():
        return "The machine and the date were not kept."
    words = json.loads(file.read_text(encoding="utf-8"))
    versions = ", ".join(f"{name} {number}" for name, number in words["versions"].items())
    return (
        f"`{words['command']}`, {words['date']}, {words['machine']}, "
        f"Python {words['python']}; {versions}."
    )


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
