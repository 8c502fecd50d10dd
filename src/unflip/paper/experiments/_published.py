"""The numbers that the paper printed."""

import csv
from dataclasses import dataclass
from functools import cache
from importlib import resources

PublishedCell = tuple[str, str, float, float, str]
"""Experiment, data set, rho_pos, rho_neg, method."""


@dataclass(frozen=True)
class Published:
    """Mean and standard deviation over ten splits, as printed."""

    mean: float
    sd: float


@cache
def published() -> dict[tuple[PublishedCell, str], Published]:
    """Return the paper's numbers by cell and quantity: "accuracy", "rho_pos" or "rho_neg"."""
    text = resources.files("unflip.paper.experiments").joinpath("published.csv").read_text()
    numbers = {}
    for row in csv.DictReader(text.splitlines()):
        cell = (
            row["experiment"],
            row["dataset"],
            float(row["rho_pos"]),
            float(row["rho_neg"]),
            row["method"],
        )
        numbers[cell, row["quantity"]] = Published(float(row["mean"]), float(row["sd"]))
    return numbers
