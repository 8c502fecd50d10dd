"""Why a row stands out, and which rows are like it."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from unflip._app.review._source import Column, Source, number_text

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]

CATEGORY_DISTANCE = 2.0
"""What two different categories add to a squared distance: as much as two independent draws of a
standardised number do on average."""

MOST_LEVELS = 1000
"""A column of more categories is free text, of which none is rarer than another."""


@dataclass(frozen=True)
class Difference:
    """How one feature of a row differs from the rows that have its label.

    Parameters
    ----------
    name : str
        The feature.
    value : str or None
        The row's own, None where it is missing.
    score : float
        How far off it is, in standard deviations of the class; of a category, the number of them
        that is as rare in a normal distribution.
    typical : list of str or None
        What is usual in the row's class, and in one set beside it: the mean, or the commonest
        category.
    share : list of float
        Of a category, the share of these classes that has it; empty for numbers.
    """

    name: str
    value: str | None
    score: float
    typical: list[str | None]
    share: list[float]


class Explainer:
    """Differences and neighbours of single rows, by the table's own columns.

    Parameters
    ----------
    source : Source
        The table.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        n_classes = source.classes.size
        self._numbers: dict[str, tuple[Floats, Floats, float]] = {}
        self._counts: dict[str, Floats] = {}
        for column in source.columns:
            if column.numbers is not None:
                self._numbers[column.name] = _class_moments(column.numbers, source.codes, n_classes)
            elif column.codes is not None and len(column.levels) <= MOST_LEVELS:
                # the last category is "missing", code -1
                counts = np.zeros((n_classes, len(column.levels) + 1))
                np.add.at(counts, (source.codes, column.codes), 1)
                self._counts[column.name] = counts

    def differences(self, row: int, other: int | None, n: int) -> list[Difference]:
        """Return the features in which a row differs most from its class, the largest first.

        Parameters
        ----------
        row : int
            The row.
        other : int or None
            A class to set beside the row's own, as a position.
        n : int
            How many features at most; those that do not differ at all are left out.
        """
        classes = [int(self._source.codes[row])] + ([] if other is None else [other])
        found = [
            self._difference(column, row, classes)
            for column in self._source.columns
            if column.name in self._numbers or column.name in self._counts
        ]
        found.sort(key=lambda difference: -abs(difference.score))
        return [difference for difference in found if difference.score][:n]

    def _difference(self, column: Column, row: int, classes: list[int]) -> Difference:
        value = column.text(row)
        if column.numbers is not None:
            mean, spread, overall = self._numbers[column.name]
            own = classes[0]
            scale = spread[own] or overall
            gap = column.numbers[row] - mean[own]
            # a missing number, or a class without numbers, is no distance
            score = float(gap / scale) if scale and np.isfinite(gap) else 0.0
            return Difference(
                column.name, value, score, [number_text(_rounded(mean[k])) for k in classes], []
            )
        assert column.codes is not None
        counts = self._counts[column.name]
        shares = [counts[k] / counts[k].sum() for k in classes]
        code = column.codes[row]
        # P(a row of the class has a category as rare as this one, or rarer)
        rarity = float(shares[0][shares[0] <= shares[0][code] * (1 + 1e-9)].sum())
        levels = [*column.levels, None]
        return Difference(
            column.name,
            value,
            max(0.0, float(-ndtri(rarity / 2))),
            [levels[int(np.argmax(share))] for share in shares],
            [float(share[code]) for share in shares],
        )

    def similar(self, row: int, n: int) -> list[int]:
        """Return the rows nearest to a row, the nearest first.

        The squared distance adds up the squared differences of standardised numbers, and two for
        every category that is another; a missing cell is one more category.

        Parameters
        ----------
        row : int
            The row.
        n : int
            How many at most.
        """
        distance = np.zeros(self._source.n_rows)
        for column in self._source.columns:
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


def _class_moments(numbers: Floats, codes: Codes, n_classes: int) -> tuple[Floats, Floats, float]:
    """Return the mean and the spread of each class, NaN and 0 without numbers, and the spread of
    all.
    """  # noqa: D205
    mean, spread = np.full(n_classes, np.nan), np.zeros(n_classes)
    there = np.isfinite(numbers)
    for k in range(n_classes):
        own = numbers[there & (codes == k)]
        if own.size:
            mean[k], spread[k] = own.mean(), own.std()
    return mean, spread, float(numbers[there].std()) if there.any() else 0.0


def _rounded(value: float) -> float:
    """Return three significant digits: a mean is not read more closely."""
    return float(f"{value:.3g}")
