"""The worlds of `benchmarks.multiclass_worlds`: rows, classes, and how labels go wrong.

A family draws rows and P(true | x), one column per class. A noise gives every row the probability
of every label, given its row and its true class.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax
from scipy.stats import rankdata
from sklearn.tree import DecisionTreeClassifier

from benchmarks.multiclass import matrix

Array = NDArray[Any]
Family = Callable[[np.random.Generator, int, int], tuple[Array, Array]]
Noise = Callable[[np.random.Generator, Array, Array, Array], Array]


def _gaussians(
    rng: np.random.Generator, n: int, K: int, distance: float, share: Array, columns: int = 8
) -> tuple[Array, Array]:
    """Return Gaussian classes whose means are so far from the nearest other, on average."""
    means = rng.normal(size=(K, columns))
    apart = np.linalg.norm(means[:, None] - means, axis=2) + np.diag(np.full(K, np.inf))
    means *= distance / apart.min(axis=1).mean()
    X = means[rng.choice(K, n, p=share)] + rng.normal(size=(n, columns))
    logs = -0.5 * ((X[:, None] - means) ** 2).sum(axis=2) + np.log(share)
    return X, softmax(logs, axis=1)


def gaussians(rng: np.random.Generator, n: int, K: int) -> tuple[Array, Array]:
    return _gaussians(rng, n, K, 4.0, np.full(K, 1 / K))


def overlapping(rng: np.random.Generator, n: int, K: int) -> tuple[Array, Array]:
    return _gaussians(rng, n, K, 1.8, np.full(K, 1 / K))


def uneven(rng: np.random.Generator, n: int, K: int) -> tuple[Array, Array]:
    share = 1 / np.arange(1, K + 1)
    return _gaussians(rng, n, K, 4.0, share / share.sum())


def linear(rng: np.random.Generator, n: int, K: int) -> tuple[Array, Array]:
    X = rng.normal(size=(n, 10))
    return X, softmax(3 * X @ rng.normal(size=(10, K)), axis=1)


def ordered(rng: np.random.Generator, n: int, K: int) -> tuple[Array, Array]:
    """Return classes in order, of which neighbours overlap."""
    X = rng.normal(size=(n, 6))
    weights = rng.normal(size=6)
    score = X @ weights / np.linalg.norm(weights)
    edges = np.quantile(score, np.arange(1, K) / K)
    above = expit(4 * K * (score[:, None] - edges) / 2)
    ends = np.column_stack([np.ones(n), above, np.zeros(n)])
    return X, -np.diff(ends, axis=1)


def clusters(rng: np.random.Generator, n: int, K: int) -> tuple[Array, Array]:
    """Return classes of two clusters each."""
    X, parts = _gaussians(rng, n, 2 * K, 5.0, np.full(2 * K, 1 / (2 * K)))
    return X, parts[:, :K] + parts[:, K:]


def sectors(rng: np.random.Generator, n: int, K: int) -> tuple[Array, Array]:
    """Return sharp sectors of a plane, with columns that say nothing."""
    X = rng.normal(size=(n, 4))
    angle = (np.arctan2(X[:, 1], X[:, 0]) / (2 * np.pi) + 0.5) * K
    return X, np.eye(K)[np.minimum(angle.astype(int), K - 1)]


def leaves(rng: np.random.Generator, n: int, K: int) -> tuple[Array, Array]:
    """Return the classes of the leaves of a random tree."""
    X = rng.uniform(size=(n, 6))
    random = rng.integers(0, K, n)
    tree = DecisionTreeClassifier(
        max_leaf_nodes=2 * K, min_samples_leaf=max(1, n // (6 * K)), splitter="random",
        random_state=int(rng.integers(2**31)),
    ).fit(X, random)  # fmt: skip
    leaf = np.unique(tree.apply(X), return_inverse=True)[1]
    return X, np.eye(K)[rng.permutation(leaf.max() + 1)[leaf] % K]


FAMILIES: dict[str, Family] = {
    draw.__name__: draw
    for draw in (gaussians, overlapping, uneven, linear, ordered, clusters, sectors, leaves)
}


def _at_random(name: str) -> Noise:
    def noise(rng: np.random.Generator, X: Array, proba: Array, y: Array) -> Array:
        return matrix(name, proba.shape[1], rng)[y]

    return noise


def _second(proba: Array, y: Array) -> Array:
    """Return the likeliest class but the true one; of sure rows, the next in order."""
    K = proba.shape[1]
    near = proba + 1e-9 * ((np.arange(K) - y[:, None]) % K == 1)
    near[np.arange(y.size), y] = -1.0
    return near.argmax(axis=1)


def _flipped(wrong: Array, target: Array, y: Array, K: int) -> Array:
    labels = np.zeros((y.size, K))
    rows = np.arange(y.size)
    labels[rows, y] = 1 - wrong
    labels[rows, target] += wrong
    return labels


def near_the_border(rng: np.random.Generator, X: Array, proba: Array, y: Array) -> Array:
    """Give rows the label of another class the likelier, the nearer they are to it."""
    K = proba.shape[1]
    scale = np.where(X.std(axis=0) > 0, X.std(axis=0), 1)
    Z = X / scale
    means = np.array([Z[y == k].mean(axis=0) if (y == k).any() else Z[0] + 99 for k in range(K)])
    distance = ((Z[:, None] - means) ** 2).sum(axis=2)
    own = distance[np.arange(y.size), y]
    distance[np.arange(y.size), y] = np.inf
    far = rankdata(distance.min(axis=1) - own) / y.size
    return _flipped(np.clip(0.6 * (1 - far / 0.5), 0, None), distance.argmin(axis=1), y, K)


def in_a_slice(rng: np.random.Generator, X: Array, proba: Array, y: Array) -> Array:
    """Make half the labels wrong of a quarter of the rows, by a column."""
    column = X[:, rng.integers(X.shape[1])]
    wrong = np.where(column > np.quantile(column, 0.75), 0.5, 0.0)
    return _flipped(wrong, _second(proba, y), y, proba.shape[1])


def by_a_rule(rng: np.random.Generator, X: Array, proba: Array, y: Array) -> Array:
    """Label by a tree, of that size which is right in about 85 %."""
    K = proba.shape[1]
    said = [
        DecisionTreeClassifier(max_leaf_nodes=size, random_state=0).fit(X, y).predict(X)
        for size in K * np.array([1, 2, 3, 5, 8, 12, 20])
    ]
    labels = min(said, key=lambda labels: abs(np.mean(labels != y) - 0.15))
    return np.eye(K)[labels]


NOISES: dict[str, Noise] = {
    "none": _at_random("none"),
    "symmetric .3": _at_random("symmetric .3"),
    "pair .3": _at_random("pair .3"),
    "random": _at_random("random"),
    "near the border": near_the_border,
    "in a slice": in_a_slice,
    "by a rule": by_a_rule,
}
AT_RANDOM = ("none", "symmetric .3", "pair .3", "random")


@dataclass(frozen=True)
class MulticlassWorld:
    """One cell: a family, a noise and the size.

    Parameters
    ----------
    family, noise : str
        Keys of `FAMILIES` and `NOISES`.
    classes, rows : int
        How many.
    seed : int
        Of all that is drawn.
    """

    family: str
    noise: str
    classes: int
    rows: int = 1000
    seed: int = 0

    def draw(self) -> tuple[Array, Array, Array, Array]:
        """Return rows, true labels, given labels and T: the shares of labels of every class."""
        text = [*self.family.encode(), 0, *self.noise.encode()]
        rng = np.random.default_rng([self.seed, self.classes, *text])
        X, proba = FAMILIES[self.family](rng, self.rows, self.classes)
        y = _drawn(rng, proba)
        for k in np.setdiff1d(np.arange(self.classes), y):  # no class is left out
            y[proba[:, k].argmax()] = k
        labels = NOISES[self.noise](rng, X, proba, y)
        given = _drawn(rng, labels)
        T = np.array([labels[y == k].mean(axis=0) for k in range(self.classes)])
        for k in np.setdiff1d(np.arange(self.classes), given):
            given[np.flatnonzero(y == k)[0]] = k
        return X, y, given, T


def _drawn(rng: np.random.Generator, proba: Array) -> Array:
    edges = proba.cumsum(axis=1)
    labels = (rng.random((len(proba), 1)) * edges[:, -1:] >= edges).sum(axis=1)
    return np.minimum(labels, proba.shape[1] - 1)
