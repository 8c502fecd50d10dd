"""A table as the commands read and write it."""

from pathlib import Path

import polars as pl
from typer.testing import CliRunner

from unflip.cli import app


def through_flip(path: Path, *options: str, rates: str = "0,0") -> tuple[pl.DataFrame, str]:
    """Return what `unflip flip` writes as Parquet, and its notes; raise its error."""
    out = path.with_name("flipped.parquet")
    words = ["flip", str(path), "--label", "y", "--rates", rates, "--out", str(out), "--force"]
    result = CliRunner().invoke(app, [*words, *options], env={"COLUMNS": "1000"})
    if result.exit_code:
        raise ValueError(result.stderr.strip())
    return pl.read_parquet(out), result.stderr
