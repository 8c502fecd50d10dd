"""What a case is made of, and the data that most of them share."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unflip import NoiseRates, flip_labels

Array = NDArray[Any]
Shape = tuple[int, int]
"""Rows and features."""

SEED = 0
RATES = NoiseRates(positive=0.1, negative=0.3)


@dataclass(frozen=True)
class Work:
    """What is timed, and what to say afterwards of the result it returns."""

    run: Callable[[], Any]
    judge: Callable[[Any], str]


@dataclass(frozen=True)
class Case:
    """A task at several shapes; `contenders` prepare their work for n rows and d features.

    unflip comes first among the contenders, and the others are compared with it.
    """

    contenders: dict[str, Callable[[int, int], Work]]
    quick: Shape
    shapes: tuple[Shape, ...]
    more: tuple[Shape, ...] = ()
    """Shapes of the full run, besides."""
    limits: tuple[tuple[str, int], ...] = ()
    """Contenders that are not asked for more than so many rows."""

    def todo(self, size: str) -> list[tuple[Shape, str]]:
        """Return what a "quick", "usual" or "full" run measures."""
        shapes = {"quick": (self.quick,), "usual": self.shapes, "full": self.shapes + self.more}
        most = dict(self.limits)
        return [
            (shape, who)
            for shape in sorted(shapes[size], key=lambda shape: shape[::-1])
            for who in self.contenders
            if shape[0] <= most.get(who, shape[0])
        ]


def noisy_gaussians(n: int, d: int, seed: int = SEED) -> tuple[Array, Array, Array]:
    """Return rows of two Gaussians (Bayes accuracy 0.90), their noisy and their true labels."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    X = rng.normal(size=(n, d)) + (y[:, None] - 0.5) * 2.56 / np.sqrt(d)
    return X, flip_labels(y, RATES, random_state=seed), y
