"""From raw rows, as OpenML, UCI and KEEL give them, to the tables of Rätsch's collection.

    nominal values -> ordinal codes -> z = (x - mean) / sd, with n-1 -> repeated rows dropped

Two of the collection's tables were scaled by the mean and sd of a part of their rows. Which rows is
not known; their number, sums and sums of squares are, because the published values give them away.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

LabelledArrays = tuple[NDArray[np.float64], NDArray[np.int_]]
TextCodes = Mapping[str, float]

MISSING = {"", "?", "<null>", "nan", "None"}


@dataclass(frozen=True)
class Part:
    """The rows used to scale a table: their number, and each column's sum and sum of squares."""

    n_rows: int
    sums: tuple[float, ...]
    squares: tuple[float, ...]

    def mean_and_sd(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return each column's mean and standard deviation, with n-1."""
        mean = np.array(self.sums) / self.n_rows
        variance = (np.array(self.squares) - self.n_rows * mean**2) / (self.n_rows - 1)
        return mean, np.sqrt(variance)


@dataclass(frozen=True)
class Recipe:
    """How one table is made: columns are counted from 0, in UCI's order without the class.

    A value that `codes` does not list is a number, an interval such as 40-49 (coded by its lower
    end) or one of UCI's codes such as A11 (coded by its digits).
    """

    openml_id: int
    positive: frozenset[str]
    codes: Mapping[int, TextCodes] = field(default_factory=dict)
    constant: int | None = None
    scaled_by: Part | None = None


def convert(name: str, rows: ArrayLike, labels: ArrayLike) -> LabelledArrays:
    """Return (X, y) of the benchmark table `name` from its raw rows and class names."""
    recipe = RECIPES[name]
    X = np.array(
        [
            [_code(value, recipe.codes.get(column, {}), column) for column, value in enumerate(row)]
            for row in np.asarray(rows, dtype=object)
        ],
        dtype=np.float64,
    )
    names = [str(label).strip().removesuffix(".0") for label in np.asarray(labels, dtype=object)]
    y = np.where(np.isin(names, list(recipe.positive)), 1, -1)
    complete = ~np.isnan(X).any(axis=1)
    X, y = X[complete], y[complete]
    if recipe.constant is not None:
        X = np.delete(X, recipe.constant, axis=1)
    # a row is repeated where its label agrees too: some patients differ in nothing else
    _, first = np.unique(np.column_stack([X, y]), axis=0, return_index=True)
    if recipe.scaled_by is None:
        mean, sd = X.mean(axis=0), X.std(axis=0, ddof=1)
    else:
        mean, sd = recipe.scaled_by.mean_and_sd()
    kept = np.sort(first)
    return ((X - mean) / sd)[kept], y[kept]


def _code(value: Any, codes: TextCodes, column: int) -> float:
    """Return the numeric code of a raw value, NaN if it is missing."""
    text = str(value).strip()
    if text in MISSING:
        return np.nan
    if text in codes:
        return codes[text]
    interval_or_code = re.fullmatch(r"(\d+)-\d+|A(\d+)", text)
    try:
        return float(interval_or_code[1] or interval_or_code[2] if interval_or_code else text)
    except ValueError:
        raise ValueError(
            f"column {column + 1} of the raw table holds {text!r}, expected a number or one of "
            f"{list(codes)}. The source has changed its coding: take the finished table from a "
            "folder instead (data_home= or UNFLIP_DATA)."
        ) from None


def _ordered(categories: str) -> TextCodes:
    """Code categories 0, 1, 2, ... in the order in which they are listed."""
    return {category: float(code) for code, category in enumerate(categories.split(", "))}


BREAST_CANCER = Recipe(
    openml_id=13,
    positive=frozenset({"recurrence-events"}),
    codes={
        1: _ordered("lt40, ge40, premeno"),
        4: _ordered("yes, no"),
        6: _ordered("left, right"),
        7: _ordered("left_up, left_low, right_up, right_low, central"),
        8: _ordered("yes, no"),
    },
    scaled_by=Part(
        n_rows=137,
        sums=(6440, 205, 3230, 249, 104, 288, 70, 167, 108),
        squares=(316400, 349, 91950, 2583, 104, 680, 70, 413, 108),
    ),
)

# OpenML's names in the order of UCI's A11, A12, ...; the purpose "other" is UCI's A410, and the
# collection took that for the number 410
GERMAN = Recipe(
    openml_id=31,
    positive=frozenset({"bad", "2"}),
    codes={
        0: _ordered("<0, 0<=X<200, >=200, no checking"),
        2: _ordered(
            "no credits/all paid, all paid, existing paid, delayed previously, "
            "critical/other existing credit"
        ),
        3: {
            **_ordered(
                "new car, used car, furniture/equipment, radio/tv, domestic appliance, "
                "repairs, education, vacation, retraining, business"
            ),
            "other": 410.0 - 40.0,
        },
        5: _ordered("<100, 100<=X<500, 500<=X<1000, >=1000, no known savings"),
        6: _ordered("unemployed, <1, 1<=X<4, 4<=X<7, >=7"),
        8: _ordered("male div/sep, female div/dep/mar, male single, male mar/wid, female single"),
        9: _ordered("none, co applicant, guarantor"),
        11: _ordered("real estate, life insurance, car, no known property"),
        13: _ordered("bank, stores, none"),
        14: _ordered("rent, own, for free"),
        16: _ordered(
            "unemp/unskilled non res, unskilled resident, skilled, high qualif/self emp/mgmt"
        ),
        18: _ordered("none, yes"),
        19: _ordered("yes, no"),
    },
)

THYROID = Recipe(
    openml_id=40682,
    positive=frozenset({"2", "3", "hyper", "hypo"}),
    scaled_by=Part(
        n_rows=100,
        sums=(10938, 988.1, 190.2, 285.6, 416.7),
        squares=(1209574, 11885.15, 481.92, 5471.66, 8391.09),
    ),
)

RECIPES = {
    "breast-cancer": BREAST_CANCER,
    "diabetis": Recipe(openml_id=37, positive=frozenset({"tested_positive", "positive"})),
    "german": GERMAN,
    "heart": Recipe(openml_id=53, positive=frozenset({"present", "2"})),
    # classes 1, 2, 3 and 6 of UCI's seven; the constant column is region-pixel-count
    "image": Recipe(
        openml_id=36,
        positive=frozenset({"brickface", "sky", "foliage", "path", "1", "2", "3", "6"}),
        constant=2,
    ),
    "thyroid": THYROID,
}
