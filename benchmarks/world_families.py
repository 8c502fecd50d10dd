"""The scenarios of `benchmarks.worlds`: how samples and clean labels are made, and how labels err.

A family draws rows, a score whose zero is the border of the classes, and P(true=1 | x). A noise
gives every row the probability that its label is wrong, given its row and its true label.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, hstack, issparse
from scipy.special import expit
from scipy.stats import norm, rankdata
from sklearn.datasets import make_classification, make_friedman1, make_moons
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

Array = NDArray[Any]
Rows = tuple[Any, Array, Array]
"""X, the score and P(true=1 | x)."""
Family = Callable[[np.random.Generator, int], Rows]


def _sharp(X: Any, score: Array) -> Rows:
    return X, score, (score > 0).astype(float)


def _steep(X: Any, score: Array, slope: float) -> Rows:
    return X, score, expit(slope * score)


def _direction(rng: np.random.Generator, n_columns: int) -> Array:
    weights = rng.normal(size=n_columns)
    return weights / np.linalg.norm(weights)


def linear(rng: np.random.Generator, n: int) -> Rows:
    X = rng.normal(size=(n, 5))
    return _steep(X, X @ _direction(rng, 5), 6.0)


def steep_linear(rng: np.random.Generator, n: int) -> Rows:
    X = rng.normal(size=(n, 10))
    return _sharp(X, X @ _direction(rng, 10) + 0.3)


def bumps(rng: np.random.Generator, n: int) -> Rows:
    X = rng.uniform(-2, 2, (n, 2))
    centers = rng.uniform(-1.8, 1.8, (7, 2))
    heights = rng.choice([-1.0, 1.0], 7)
    score = np.exp(-2 * ((X[:, None] - centers) ** 2).sum(axis=2)) @ heights
    return _steep(X, score - np.median(score), 25.0)


def clusters(rng: np.random.Generator, n: int) -> Rows:
    X, y = make_classification(
        n,
        n_features=10,
        n_informative=6,
        n_redundant=2,
        n_clusters_per_class=3,
        class_sep=1.8,
        flip_y=0.0,
        random_state=int(rng.integers(2**31)),
    )
    near = KNeighborsClassifier(min(25, n)).fit(X[:3000], y[:3000]).predict_proba(X)[:, 1]
    return X, near - 0.5, y.astype(float)


def waves(rng: np.random.Generator, n: int) -> Rows:
    X = np.c_[rng.uniform(-4, 4, n), rng.normal(size=(n, 3))]
    return _steep(X, np.sin(2.2 * X[:, 0] + 0.5), 8.0)


def product_of_two(rng: np.random.Generator, n: int) -> Rows:
    X = rng.normal(size=(n, 6))
    return _sharp(X, X[:, 1] * X[:, 4])


def product_of_three(rng: np.random.Generator, n: int) -> Rows:
    X = rng.uniform(-1, 1, (n, 5))
    return _sharp(X, X[:, 0] * X[:, 1] * X[:, 2])


def product_of_four(rng: np.random.Generator, n: int) -> Rows:
    X = rng.uniform(-1, 1, (n, 6))
    return _sharp(X, X[:, :4].prod(axis=1))


def rings(rng: np.random.Generator, n: int) -> Rows:
    X = rng.normal(size=(n, 10))
    radius = np.hypot(X[:, 3], X[:, 7])
    return _sharp(X, 0.4 - np.abs(radius - 1.2))


def tree(rng: np.random.Generator, n: int) -> Rows:
    X = rng.uniform(size=(n, 8))
    score = np.where(
        X[:, 0] > 0.5,
        np.where(X[:, 1] > 0.3, X[:, 2] - 0.4, 0.6 - X[:, 3]),
        np.where(X[:, 4] > 0.6, 0.5 - X[:, 2], X[:, 5] - 0.7),
    )
    return _sharp(X, score)


def checkerboard(rng: np.random.Generator, n: int) -> Rows:
    X = np.c_[rng.uniform(0, 4, (n, 2)), rng.normal(size=(n, 2))]
    return _sharp(X, np.sin(np.pi * X[:, 0]) * np.sin(np.pi * X[:, 1]))


def sparse_linear(rng: np.random.Generator, n: int) -> Rows:
    X = rng.normal(size=(n, 60))
    return _steep(X, X[:, :5] @ _direction(rng, 5), 8.0)


def _levels(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    codes = rng.integers(0, 6, (n, 3))
    effects = rng.normal(size=(3, 6))
    score = sum(effects[j, codes[:, j]] for j in range(3))
    return codes, np.asarray(score) - np.median(score)


def categories(rng: np.random.Generator, n: int) -> Rows:
    codes, score = _levels(rng, n)
    return _sharp(np.c_[codes, rng.normal(size=n)], score)


def one_hot(rng: np.random.Generator, n: int) -> Rows:
    codes, score = _levels(rng, n)
    hot = (codes[:, :, None] == np.arange(6)).reshape(n, 18).astype(float)
    return _sharp(np.c_[hot, rng.normal(size=n)], score)


def heavy_tails(rng: np.random.Generator, n: int) -> Rows:
    X = rng.standard_t(1.5, (n, 6))
    return _sharp(X, np.tanh(X) @ _direction(rng, 6))


def lognormal(rng: np.random.Generator, n: int) -> Rows:
    logs = 1.5 * rng.normal(size=(n, 5))
    return _steep(np.exp(logs), logs @ _direction(rng, 5), 4.0)


def counts(rng: np.random.Generator, n: int) -> Rows:
    X = rng.poisson([1, 2, 4, 8, 3], (n, 5)).astype(float)
    return _sharp(X, X[:, 0] + X[:, 1] - X[:, 4] + 0.5 * (X[:, 2] - X[:, 3]) + 2.25)


def _gaussians(rng: np.random.Generator, n: int, error: float) -> Rows:
    """Return two Gaussian classes whose best classifier errs as often as said."""
    distance = -2 * norm.ppf(error)
    side = rng.choice([-0.5, 0.5], n)
    X = rng.normal(size=(n, 4))
    X[:, 0] += distance * side
    return X, X[:, 0], expit(distance * X[:, 0])


def overlap_5(rng: np.random.Generator, n: int) -> Rows:
    return _gaussians(rng, n, 0.05)


def overlap_12(rng: np.random.Generator, n: int) -> Rows:
    return _gaussians(rng, n, 0.12)


def overlap_20(rng: np.random.Generator, n: int) -> Rows:
    return _gaussians(rng, n, 0.20)


def rare_class(rng: np.random.Generator, n: int) -> Rows:
    X = rng.normal(size=(n, 6))
    return _steep(X, X @ _direction(rng, 6) - norm.ppf(0.95), 8.0)


def duplicates(rng: np.random.Generator, n: int) -> Rows:
    few = rng.normal(size=(max(n // 10, 2), 4))
    score = few @ _direction(rng, 4) + 0.5 * np.sin(3 * few[:, 0])
    rows = rng.integers(0, len(few), n)
    return _sharp(few[rows], score[rows])


def copies(rng: np.random.Generator, n: int) -> Rows:
    return linear(rng, n)


def text(rng: np.random.Generator, n: int) -> Rows:
    """Return word counts: 30 of 300 words are commoner in one of the topics."""
    topic = rng.normal(size=n)
    weights = np.zeros(300)
    weights[:30] = rng.choice([-0.8, 0.8], 30)
    words = rng.poisson(0.15 * np.exp(topic[:, None] * weights)).astype(float)
    return _sharp(csr_array(words), words @ weights)


def thresholds(rng: np.random.Generator, n: int) -> Rows:
    X = rng.uniform(size=(n, 7))
    passed = (X[:, :5] > [0.3, 0.4, 0.5, 0.6, 0.7]).sum(axis=1)
    return _sharp(X, passed - 2.5)


def separated(rng: np.random.Generator, n: int) -> Rows:
    direction = _direction(rng, 5)
    X = rng.normal(size=(n, 5)) + rng.choice([-4.0, 4.0], n)[:, None] * direction
    return _sharp(X, X @ direction)


def gate(rng: np.random.Generator, n: int) -> Rows:
    X = rng.normal(size=(n, 6))
    score = np.where(X[:, 0] > 0, X[:, 1] + X[:, 2], X[:, 3] - X[:, 4])
    return _steep(X, score, 6.0)


def quadric(rng: np.random.Generator, n: int) -> Rows:
    X = rng.normal(size=(n, 6))
    score = X[:, 0] ** 2 + X[:, 1] ** 2 - X[:, 2] ** 2 + X[:, 3] * X[:, 4] - 1
    return _sharp(X, score)


def few_sure(rng: np.random.Generator, n: int) -> Rows:
    """Return classes that level off: P(true=1 | x) goes from 0.2 to 0.8 and no further."""
    X = rng.normal(size=(n, 3))
    return X, X[:, 0], 0.2 + 0.6 * expit(6 * X[:, 0])


def correlated(rng: np.random.Generator, n: int) -> Rows:
    X = rng.normal(size=(n, 8)) @ rng.normal(size=(8, 8))
    score = X @ _direction(rng, 8)
    return _steep(X, score / score.std(), 6.0)


def gentle(rng: np.random.Generator, n: int) -> Rows:
    X = rng.normal(size=(n, 6))
    return _steep(X, X @ _direction(rng, 6), 3.0)


def moons(rng: np.random.Generator, n: int) -> Rows:
    X, y = make_moons(n, noise=0.15, random_state=int(rng.integers(2**31)))
    near = KNeighborsClassifier(min(25, n)).fit(X[:3000], y[:3000]).predict_proba(X)[:, 1]
    return np.c_[X, rng.normal(size=(n, 3))], near - 0.5, y.astype(float)


def ball(rng: np.random.Generator, n: int) -> Rows:
    X = rng.normal(size=(n, 8))
    return _sharp(X, 7.34 - (X**2).sum(axis=1))  # 7.34: the median of chi2 with 8 degrees


def sum_of_waves(rng: np.random.Generator, n: int) -> Rows:
    X = rng.uniform(-2, 2, (n, 6))
    return _steep(X, np.sin(2 * X[:, :4]).sum(axis=1), 5.0)


def friedman(rng: np.random.Generator, n: int) -> Rows:
    X, score = make_friedman1(n, random_state=int(rng.integers(2**31)))
    return _steep(X, score - 14.4, 2.0)  # 14.4: about the median


def unequal_gaussians(rng: np.random.Generator, n: int) -> Rows:
    """Return a narrow class inside of a wide one, each a Gaussian."""
    y = rng.random(n) < 0.5
    X = rng.normal(size=(n, 5)) * np.where(y, 0.6, 1.8)[:, None]
    score = norm.logpdf(X, scale=0.6).sum(axis=1) - norm.logpdf(X, scale=1.8).sum(axis=1)
    return _steep(X, score, 1.0)


def slopes_by_group(rng: np.random.Generator, n: int) -> Rows:
    """Return a number whose effect differs between the levels of a category."""
    level, X = rng.integers(0, 5, n), rng.normal(size=(n, 3))
    slope = np.array([-2.0, -1.0, 1.0, 2.0, 3.0])[level]
    return _steep(np.c_[level, X], slope * X[:, 0] + X[:, 1], 4.0)


def larger_of_two(rng: np.random.Generator, n: int) -> Rows:
    X = rng.normal(size=(n, 5))
    return _steep(X, X[:, :2].max(axis=1) - 0.5, 8.0)


def network(rng: np.random.Generator, n: int) -> Rows:
    X = rng.normal(size=(n, 6))
    score = np.tanh(1.5 * X @ rng.normal(size=(6, 8))) @ _direction(rng, 8)
    return _steep(X, score - np.median(score), 10.0)


def deep_tree(rng: np.random.Generator, n: int) -> Rows:
    """Return the leaves of a random tree of depth 6."""
    X, leaf = rng.uniform(size=(n, 10)), np.zeros(n, dtype=int)
    columns, cuts = rng.integers(0, 10, 63), rng.uniform(0.3, 0.7, 63)
    for _ in range(6):
        leaf = 2 * leaf + 1 + (X[np.arange(n), columns[leaf]] > cuts[leaf])
    value = rng.normal(size=64)
    return _sharp(X, (value - np.median(value))[leaf - 63])


def yes_or_no(rng: np.random.Generator, n: int) -> Rows:
    X = (rng.random((n, 20)) < 0.35).astype(float)
    score = X[:, :8] @ rng.choice([-1.0, 1.0], 8) + 1.5 * X[:, 8] * X[:, 9]
    return _steep(X, score - np.median(score) - 0.2, 4.0)


def customers(rng: np.random.Generator, n: int) -> Rows:
    """Return a business table: age, income, months, calls and a tariff; a quarter leaves."""
    age, income = rng.integers(18, 80, n), rng.lognormal(10, 0.6, n)
    months, calls, tariff = rng.exponential(24, n), rng.poisson(2, n), rng.integers(0, 4, n)
    score = 0.9 * calls - 0.06 * months - 0.02 * age + np.array([0, 0.8, -0.5, 1.5])[tariff]
    X = np.c_[age, income, months, calls, tariff].astype(float)
    return _steep(X, score - np.quantile(score, 0.75), 4.0)


def spirals(rng: np.random.Generator, n: int) -> Rows:
    y, turn = rng.random(n) < 0.5, np.sqrt(rng.uniform(0.05, 1, n)) * 2.2 * np.pi
    X = (turn * np.array([np.cos(turn + np.pi * y), np.sin(turn + np.pi * y)])).T
    X = np.c_[X + 0.3 * rng.normal(size=(n, 2)), rng.normal(size=n)]
    near = KNeighborsClassifier(min(25, n)).fit(X[:3000, :2], y[:3000])
    return X, near.predict_proba(X[:, :2])[:, 1] - 0.5, y.astype(float)


def pictures(rng: np.random.Generator, n: int) -> Rows:
    """Return pictures of 8 x 8 points: one of two patterns, in smooth noise."""
    smooth = np.exp(-(np.subtract.outer(np.arange(8), np.arange(8)) ** 2) / 4)
    field = np.einsum("ai,nij,bj->nab", smooth, rng.normal(size=(n, 8, 8)), smooth)
    X, pattern = field.reshape(n, 64), (smooth @ rng.normal(size=(8, 8)) @ smooth).ravel()
    side = rng.choice([-1.0, 1.0], n)
    X = X + 0.5 * side[:, None] * pattern
    covariance = np.kron(smooth @ smooth.T, smooth @ smooth.T)
    return _steep(X, X @ np.linalg.solve(covariance, pattern), 1.0)


def few_of_many(rng: np.random.Generator, n: int) -> Rows:
    X = rng.normal(size=(n, 80))
    return _steep(X, X[:, :3] @ _direction(rng, 3) + 0.3 * X[:, 0] ** 2 - 0.2, 6.0)


def _named(*families: Family) -> dict[str, Family]:
    return {draw.__name__.replace("_", " "): draw for draw in families}


CHOSEN_ON = _named(
    linear,
    steep_linear,
    sparse_linear,
    rare_class,
    separated,
    overlap_5,
    overlap_12,
    overlap_20,
    bumps,
    clusters,
    rings,
    quadric,
    waves,
    product_of_two,
    product_of_three,
    product_of_four,
    checkerboard,
    gate,
    tree,
    thresholds,
    categories,
    one_hot,
    counts,
    text,
    heavy_tails,
    lognormal,
    duplicates,
    copies,
    few_sure,
)
"""Families by which models, thresholds and factors in the code were chosen."""

HELD_OUT = _named(
    correlated,
    gentle,
    moons,
    ball,
    sum_of_waves,
    friedman,
    unequal_gaussians,
    slopes_by_group,
    larger_of_two,
    network,
    deep_tree,
    yes_or_no,
    customers,
    spirals,
    pictures,
    few_of_many,
)
"""Families by which nothing was chosen: what is reported of warnings and ranges rests on them."""

FAMILIES = CHOSEN_ON | HELD_OUT
COPIES = {"copies": 5}
"""How often every row of a family stands in the table, its label with it."""
UNKNOWABLE = ("few sure",)
"""Families in which labels cannot tell overlap from noise, whatever the method."""


@dataclass(frozen=True)
class Noise:
    """How labels go wrong: X and P(wrong | x, true label); the rates, where constant."""

    spoil: Callable[[np.random.Generator, Any, Array, Array], tuple[Any, Array]]
    rates: tuple[float, float] | None = None


def at_random(positive: float, negative: float) -> Noise:
    return Noise(
        lambda rng, X, y, score: (X, np.where(y, positive, negative)), (positive, negative)
    )


def _dense(X: Any) -> Array:
    return np.asarray(X.toarray() if issparse(X) else X)


def _part(rng: np.random.Generator, rows: Array, share: float) -> Array:
    """Return which rows are high in a column: about `share` of them, ties going along."""
    # a column of few values has no such quantile; the best of three columns will do
    rows = rows[:, rng.permutation(rows.shape[1])[:3]]
    masks = (rows >= np.quantile(rows, 1 - share, axis=0)) & (rows > rows.min(axis=0))
    return np.asarray(masks[:, np.argmin(np.abs(masks.mean(axis=0) - share))])


def _near_border(rng: np.random.Generator, X: Any, y: Array, score: Array) -> tuple[Any, Array]:
    far = rankdata(np.abs(score)) / score.size
    return X, np.clip(0.5 * (1 - far / 0.5), 0, None)


def _near_border_positives(
    rng: np.random.Generator, X: Any, y: Array, score: Array
) -> tuple[Any, Array]:
    return X, _near_border(rng, X, y, score)[1] * 1.5 * y


def _in_a_slice(rng: np.random.Generator, X: Any, y: Array, score: Array) -> tuple[Any, Array]:
    return X, np.where(_part(rng, _dense(X), 0.25), 0.4, 0.0)


def _leaf(rng: np.random.Generator, X: Any, y: Array, score: Array) -> tuple[Any, Array]:
    rows = _dense(X)
    half = rows.shape[1] // 2
    leaf = _part(rng, rows[:, :half], 0.35) & _part(rng, rows[:, half:], 0.35)
    return X, leaf.astype(float)


def _rule(rng: np.random.Generator, X: Any, y: Array, score: Array) -> tuple[Any, Array]:
    """Labels are what a tree says, of that size which is right in about 90 %."""
    rows = _dense(X)
    said = [
        DecisionTreeClassifier(max_leaf_nodes=size, random_state=0).fit(rows, y).predict(rows)
        for size in (2, 3, 4, 6, 8, 12, 16, 32, 64, 128, 256)
    ]
    both = [labels for labels in said if 0 < labels.mean() < 1]
    wrong = min(((labels != y) for labels in both), key=lambda wrong: abs(wrong.mean() - 0.1))
    return X, wrong.astype(float)


def _annotators(rng: np.random.Generator, X: Any, y: Array, score: Array) -> tuple[Any, Array]:
    """Five people label, of whom one is careless; who did is a column."""
    who = rng.integers(0, 5, y.size)
    rates = np.array([0.0, 0.02, 0.05, 0.1, 0.4])
    column = who[:, None].astype(float)
    X = csr_array(hstack([X, csr_array(column)])) if issparse(X) else np.c_[X, column]
    return X, rates[who]


def _two_groups(rng: np.random.Generator, X: Any, y: Array, score: Array) -> tuple[Any, Array]:
    """In one group positives are flipped, in the other negatives; the group is a column."""
    group = rng.random(y.size) < 0.4
    column = group[:, None].astype(float)
    X = csr_array(hstack([X, csr_array(column)])) if issparse(X) else np.c_[X, column]
    return X, np.where(group, 0.35 * y, 0.2 * ~y)


def _threshold(rng: np.random.Generator, X: Any, y: Array, score: Array) -> tuple[Any, Array]:
    """Labels are whether one column passes a threshold: the column most correlated with truth."""
    rows = _dense(X)
    ranks = rankdata(rows, axis=0)
    spread = ranks.std(axis=0)
    centred = (ranks - ranks.mean(axis=0)) / np.where(spread > 0, spread, 1)
    correlation = centred.T @ (y - y.mean())
    best = int(np.argmax(np.abs(correlation)))
    column = rows[:, best] * np.sign(correlation[best] or 1)
    cuts = np.unique(column)
    cuts = (cuts[1:] + cuts[:-1]) / 2
    shares = 1 - np.searchsorted(np.sort(column), cuts) / y.size
    said = column > cuts[np.argmin(np.abs(shares - y.mean()))]
    return X, (said != y).astype(float)


def _growing(rng: np.random.Generator, X: Any, y: Array, score: Array) -> tuple[Any, Array]:
    rows = _dense(X)
    scale = rows.std(axis=0)
    size = np.linalg.norm((rows - rows.mean(axis=0)) / np.where(scale > 0, scale, 1), axis=1)
    return X, 0.45 * (rankdata(size) / y.size) ** 2


NOISES: dict[str, Noise] = {
    "none": at_random(0.0, 0.0),
    "(.05, .05)": at_random(0.05, 0.05),
    "(.3, .1)": at_random(0.3, 0.1),
    "(.1, .3)": at_random(0.1, 0.3),
    "(0, .2)": at_random(0.0, 0.2),
    "(.2, 0)": at_random(0.2, 0.0),
    "(.25, .25)": at_random(0.25, 0.25),
    "(.4, .2)": at_random(0.4, 0.2),
    "near the border": Noise(_near_border),
    "near the border, positives": Noise(_near_border_positives),
    "in one slice": Noise(_in_a_slice),
    "one leaf all wrong": Noise(_leaf),
    "labels by a rule": Noise(_rule),
    "one careless annotator": Noise(_annotators),
    "growing with |x|": Noise(_growing),
    "in two groups": Noise(_two_groups),
    "threshold of a column": Noise(_threshold),
}


@dataclass(frozen=True)
class World:
    """One cell: a family, a noise and what else varies.

    Parameters
    ----------
    family, noise : str
        Keys of `FAMILIES` and `NOISES`.
    rows : int
        How many.
    seed : int
        Of all that is drawn.
    positives : float or None
        The share of true positives, reached by leaving rows out; None: as the family has it.
    columns : int
        How many columns are added that say nothing.
    """

    family: str
    noise: str
    rows: int = 3000
    seed: int = 0
    positives: float | None = None
    columns: int = 0

    def draw(self) -> tuple[Any, Array, Array]:
        """Return rows, true labels and given labels, both of them boolean."""
        rng = np.random.default_rng([self.seed, *self.family.encode(), 0, *self.noise.encode()])
        n_copies = COPIES.get(self.family, 1)
        X, y, score = self._clean(rng, self.rows // n_copies)
        if self.columns:
            more = rng.normal(size=(y.size, self.columns))
            X = csr_array(hstack([X, csr_array(more)])) if issparse(X) else np.c_[X, more]
        X, wrong = NOISES[self.noise].spoil(rng, X, y, score)
        given = y ^ (rng.random(y.size) < wrong)
        if n_copies > 1:
            rows = rng.permutation(np.repeat(np.arange(y.size), n_copies))
            X, y, given = X[rows], y[rows], given[rows]
        return X, y, given

    def _clean(self, rng: np.random.Generator, size: int) -> tuple[Any, Array, Array]:
        if self.positives is None:
            X, score, proba = FAMILIES[self.family](rng, size)
            return X, rng.random(size) < proba, score
        wanted = (size - round(self.positives * size), round(self.positives * size))
        for factor in (2, 5, 25):  # until there are enough of both
            X, score, proba = FAMILIES[self.family](rng, factor * size)
            y = rng.random(score.size) < proba
            pools = np.flatnonzero(~y), np.flatnonzero(y)
            if all(pool.size >= count for pool, count in zip(pools, wanted, strict=True)):
                break
        kept = [
            rng.choice(pool, count, replace=False)
            for pool, count in zip(pools, wanted, strict=True)
        ]
        chosen = rng.permutation(np.concatenate(kept))
        return X[chosen], y[chosen], score[chosen]
