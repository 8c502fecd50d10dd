"""Features, noisy labels and weights, and their likelihood as a function of w."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from unflip._utils.typing import Codes, Floats, Singles
from unflip.channel._settings import SETTINGS


@dataclass(frozen=True)
class ChannelDesign:
    """Features, noisy labels and weights."""

    # F, whose first column is one.
    features: Floats
    # The prior block of every column: 0 for the intercept, then 1, 2, ...
    block: NDArray[np.intp]
    # Positions of the noisy labels among the classes.
    codes: Codes
    # Weight of each row.
    weight: Floats
    # Number of classes.
    n_classes: int
    # Logits that are added to F w, such as those of somebody's model; None: none.
    offset: Floats | None = None

    def logits(self, coef: Floats, some: slice = slice(None)) -> Floats:
        """Return t of some samples, a line per class: sums over few classes are slow in rows."""
        t = coef.T @ self.features[some].T
        if self.offset is not None:
            t += self.offset[some].T
        return np.asarray(t)

    def subset(self, kept: Codes, weight: Floats) -> "ChannelDesign":
        """Return some of the samples, with other weights."""
        offset = None if self.offset is None else self.offset[kept]
        features, codes = self.features[kept], self.codes[kept]
        return replace(self, features=features, codes=codes, weight=weight, offset=offset)

    @property
    def latent_variance(self) -> float:
        """Median of the prior variance of t_k.

        The setting is that of t_1 - t_0 for two classes, twice the variance of either.
        """
        return SETTINGS.latent_variance / 2 if self.n_classes == 2 else SETTINGS.latent_variance

    def first_variance(self) -> Floats:
        """Return the prior variance of every block before anything is known."""
        n_blocks = int(self.block.max())
        variance = np.full(1 + n_blocks, self.latent_variance / max(1, n_blocks))
        variance[0] = SETTINGS.intercept_variance * self.latent_variance / SETTINGS.latent_variance
        return variance

    @cached_property
    def single(self) -> Singles:
        """F in single precision."""
        return singles(self.features)

    @cached_property
    def gram(self) -> Floats:
        """F'F over the weighted rows."""
        return np.asarray((self.features * self.weight[:, None]).T @ self.features)

    def counts(self, gamma: Floats) -> Floats:
        """Return the expected number of rows of class k with label j."""
        weighted = gamma.T * self.weight
        return np.array(
            [np.bincount(self.codes, each, minlength=self.n_classes) for each in weighted]
        )

    def some(self, most_rows: int) -> tuple[slice, Floats]:
        """Return rows, at most twice as many, to stand for all, and their weights."""
        rows = slice(None, None, max(1, len(self.features) // most_rows))
        weight = self.weight[rows]
        return rows, weight * (self.weight.sum() / weight.sum())


def affordable_rows(n_classes: int, n_features: int, work: float) -> int:
    """Return how many rows an evaluation of the evidence may have for some multiplications."""
    each = 2 * (n_classes - 1) * n_features**2 + 6 * n_classes**3
    return int(max(work / each, 1000, 40 * n_classes))


def likelihood(
    design: ChannelDesign, coef: Floats, if_class: Floats
) -> tuple[float, Floats, Floats]:
    """Return the log-likelihood, P(true | x, label) and g."""
    g = softmax_over_classes(design.logits(coef))
    gamma = g * if_class
    p = np.maximum(gamma.sum(axis=0), SETTINGS.smallest_probability)
    gamma /= p
    return float(design.weight @ np.log(p)), gamma.T, g.T


def softmax_over_classes(t: Floats) -> Floats:
    """Return softmax(t) over the first axis, in its place."""
    t -= t.max(axis=0)
    np.exp(t, out=t)
    t /= t.sum(axis=0)
    return t


def softmax_of_rows(t: Floats) -> Floats:
    """Return softmax(t) over the last axis: sums over few classes are slow in rows."""
    return softmax_over_classes(np.ascontiguousarray(t.T)).T


def singles(numbers: Floats) -> Singles:
    """Return numbers in single precision, for sums over rows that need no more: half the time.

    Parameters
    ----------
    numbers : ndarray
        The numbers.
    """
    return numbers.astype(np.float32)
