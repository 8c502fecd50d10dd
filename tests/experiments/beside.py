"""What may lie beside the project: the benchmark tables and the paper's figures."""

from pathlib import Path

import pytest

from tests.datasets.raw import FOLDER
from unflip.datasets import BENCHMARKS

PAPER = Path(__file__).parents[3] / "shared" / "paper"


def benchmark_folder() -> str:
    """Return the folder of the benchmark tables, for UNFLIP_DATA; skip where one is absent."""
    for name in BENCHMARKS:
        if not (FOLDER / f"{name}.csv").exists():
            pytest.skip(f"{FOLDER}/{name}.csv is absent: point UNFLIP_DATA at the benchmark tables")
    return str(FOLDER)


def paper_table(number: int) -> Path:
    """Return the file of the paper's table; skip where it is absent."""
    if not PAPER.is_dir():
        pytest.skip(f"{PAPER} is absent: the paper's tables are not beside the project")
    (path,) = PAPER.glob(f"table{number}_*.csv")
    return path
