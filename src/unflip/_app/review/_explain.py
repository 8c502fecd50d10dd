"""The columns in which a row is unusual for its class, and similar rows."""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from unflip._app.review._table import Column, ReviewTable, number_text
from unflip._utils.typing import Codes, Floats

CATEGORY_DISTANCE = 2.0
"""Squared distance of two different categories: the expected squared difference of two independent
standardised numbers."""

MAX_LEVELS = 1000
"""Maximum number of categories; a column with more is free text, where rare values are normal."""


@dataclass(frozen=True)
class Difference:
    """How one feature of a row differs from the rows with the same label."""

    name: str
    # The value of the row; None if missing.
    value: str | None
    # Distance from the class mean in standard deviations; for a category, the normal quantile that
    # is as rare.
    score: float
    # Mean or most frequent category of the row's class, and of the class to compare with.
    typical: list[str | None]
    # Shares of these classes with the same category; empty for numbers.
    share: list[float]


class Explainer:
    """Differences and neighbours of single rows, from the columns of the table."""

    def __init__(self, table: ReviewTable) -> None:
        self._table = table
        n_classes = table.classes.size
        self._numbers: dict[str, tuple[Floats, Floats, float]] = {}
        self._counts: dict[str, Floats] = {}
        for column in table.columns:
            if column.numbers is not None:
                self._numbers[column.name] = _class_moments(column.numbers, table.codes, n_classes)
            elif column.codes is not None and len(column.levels) <= MAX_LEVELS:
                # the last category is "missing", code -1
                counts = np.zeros((n_classes, len(column.levels) + 1))
                np.add.at(counts, (table.codes, column.codes), 1)
                self._counts[column.name] = counts

    def differences(self, row: int, other: int | None, n: int) -> list[Difference]:
        """Return the features in which a row differs most from its class, largest first."""
        classes = [int(self._table.codes[row])] + ([] if other is None else [other])
        found = [
            self._difference(column, row, classes)
            for column in self._table.columns
            if column.name in self._numbers or column.name in self._counts
        ]
        found.sort(key=lambda difference: -abs(difference.score))
        return [difference for difference in found if difference.score][:n]

    def _difference(self, column: Column, row: int, classes: list[int]) -> Difference:
        value = column.text(row)
        if column.numbers is not None:
            mean, spread, overall = self._numbers[column.name]
            given = classes[0]
            scale = spread[given] or overall
            gap = column.numbers[row] - mean[given]
            # a missing number, or a class without numbers, has no distance
            score = float(gap / scale) if scale and np.isfinite(gap) else 0.0
            return Difference(
                column.name, value, score, [number_text(_rounded(mean[k])) for k in classes], []
            )
        assert column.codes is not None
        counts = self._counts[column.name]
        shares = [counts[k] / counts[k].sum() for k in classes]
        code = column.codes[row]
        # P(a row of the class has a category at most as frequent as this one)
        rarity = float(shares[0][shares[0] <= shares[0][code] * (1 + 1e-9)].sum())
        levels = [*column.levels, None]
        return Difference(
            column.name,
            value,
            max(0.0, float(-ndtri(rarity / 2))),
            [levels[_usual(share)] for share in shares],
            [float(share[code]) for share in shares],
        )

    def similar(self, row: int, n: int) -> list[int]:
        """Return the nearest rows, closest first.

        The squared distance adds the squared differences of standardised numbers, and 2 for every
        different category. A missing value is a category.
        """
        distance = np.zeros(self._table.n_rows)
        for column in self._table.columns:
            if column.numbers is not None:
                scale = self._numbers[column.name][2]
                if scale:
                    gap = ((column.numbers - column.numbers[row]) / scale) ** 2
                    missing = np.isnan(column.numbers)
                    distance += np.where(
                        missing | missing[row], CATEGORY_DISTANCE * (missing != missing[row]), gap
                    )
            else:
                distance += CATEGORY_DISTANCE * (column.codes != column.codes[row])  # type: ignore[index]
        distance[row] = np.inf
        n = min(n, distance.size - 1)
        nearest = np.argpartition(distance, n - 1)[:n]
        return [int(k) for k in nearest[np.argsort(distance[nearest], kind="stable")]]


def _usual(shares: Floats) -> int:
    """Return the most frequent category; "missing", the last one, only if there is no other."""
    told = shares[:-1]
    return int(np.argmax(told)) if told.any() else shares.size - 1


def _class_moments(numbers: Floats, codes: Codes, n_classes: int) -> tuple[Floats, Floats, float]:
    """Return the mean and standard deviation of each class (NaN and 0 if empty) and of all rows."""
    mean, spread = np.full(n_classes, np.nan), np.zeros(n_classes)
    present = np.isfinite(numbers)
    for k in range(n_classes):
        values = numbers[present & (codes == k)]
        if values.size:
            mean[k], spread[k] = values.mean(), values.std()
    return mean, spread, float(numbers[present].std()) if present.any() else 0.0


def _rounded(value: float) -> float:
    """Return a mean in three significant digits."""
    return float(f"{value:.3g}")
