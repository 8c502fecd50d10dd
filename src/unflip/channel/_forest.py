"""Features of forests of random trees: what trees say of the noisy label without having seen it."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.ensemble import ExtraTreesClassifier

from unflip._utils.threads import SCIKIT_LEARN
from unflip._utils.typing import Array, Codes, Floats
from unflip.channel._copies import starts_of_equal
from unflip.channel._features import ChannelFeatures
from unflip.channel._settings import SETTINGS


@dataclass(frozen=True)
class Trees:
    """A forest as arrays, over the nodes of all trees."""

    # A row goes left where its column `feature` is at most `threshold`.
    feature: NDArray[np.intp]
    threshold: Floats
    # The nodes on the left and on the right; of a leaf, itself.
    child: NDArray[np.intp]
    # Shares of the classes.
    proba: Floats
    # The first node of each tree.
    root: NDArray[np.intp]

    @classmethod
    def of(cls, forest: ExtraTreesClassifier, n_classes: int) -> "Trees":
        """Return the trees of a fitted forest, whose classes are positions among all."""
        trees = [each.tree_ for each in forest.estimators_]
        sizes = [tree.node_count for tree in trees]
        root = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.intp)
        own = np.concatenate([np.arange(size) for size in sizes])
        left, right, feature, threshold = (
            np.concatenate([getattr(tree, name) for tree in trees])
            for name in ("children_left", "children_right", "feature", "threshold")
        )
        is_leaf, shift = left < 0, np.repeat(root, sizes)
        child = np.column_stack([np.where(is_leaf, own, side) + shift for side in (left, right)])
        proba = np.zeros((own.size, n_classes))
        proba[:, forest.classes_] = np.concatenate([tree.value[:, 0] for tree in trees])
        return cls(np.where(is_leaf, 0, feature), threshold, child.ravel(), proba, root)

    def predict_proba(self, X: Floats) -> Floats:
        """Return the mean shares of the classes in the leaves of every row."""
        mean = np.zeros((len(X), self.proba.shape[1]))
        size = 2048  # samples at a time: the positions in a tree fit a processor's cache
        for first in range(0, len(X), size):
            rows = for_trees(X[first : first + size])
            flat, place = rows.ravel(), np.arange(len(rows)) * X.shape[1]
            for root in self.root:
                node = np.full(len(rows), root)
                for _ in range(SETTINGS.tree_depth):
                    goes_right = flat[place + self.feature[node]] > self.threshold[node]
                    node = self.child[2 * node + goes_right]
                mean[first : first + size] += self.proba[node]
        return mean / self.root.size


class ForestFeatures:
    """x -> (1, the standardised columns, log P(noisy | x) by forests, centred).

    Rows that the forests are grown on have the probabilities of trees that saw neither them nor any
    copy of them, so that a row's features do not know its label. (Trees that saw a copy with
    another label would speak against a row's own.)
    """

    def __init__(self, columns: ChannelFeatures) -> None:
        self.columns = columns

    def fit(
        self, X: Floats, codes: Codes, weight: Floats, n_classes: int, random_state: int
    ) -> Floats:
        """Grow the forests, and return the held-out scores of the first rows."""
        n = min(len(X), SETTINGS.forest_samples)
        self.share = class_shares(codes, weight, n_classes)
        self.seed = random_state
        votes, self.forests = self._grown(X[:n], codes, weight, folds_of(X[:n])[0], random_state)
        logs = self._logs(votes)
        self.scale = float(max(logs.std(), 1e-12) * np.sqrt(n_classes))
        self.block: NDArray[np.intp] = np.append(self.columns.block, np.full(n_classes, 2))
        return np.asarray(logs / self.scale)

    def steadier(self, X: Floats, codes: Codes, weight: Floats, held_out: Floats) -> Floats:
        """Return held-out scores of as many trees as a new row has: the rows are folded again."""
        n, n_folds = len(held_out), SETTINGS.n_folds
        n_trees, prior = SETTINGS.forest_trees, SETTINGS.prior_trees
        proba = softmax(held_out * self.scale, axis=1)
        mean = ((n_trees + prior) * proba - prior * self.share) / n_trees
        for k, fold in enumerate(folds_of(X[:n])[1:], start=1):
            mean += self._grown(X[:n], codes, weight, fold, self.seed + k * n_folds)[0]
        return np.asarray(self._logs(np.maximum(mean / n_folds, 0.0)) / self.scale)

    def _grown(
        self, X: Floats, codes: Codes, weight: Floats, fold: Codes, seed: int
    ) -> tuple[Floats, list[Trees]]:
        """Return the mean shares of the classes in the leaves of held-out rows, and forests."""
        X, forests = for_trees(X), []
        votes = np.empty((len(X), self.share.size))
        for k in range(fold.max() + 1):
            grown, left = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
            grown = grown if grown.size else left
            forest = ExtraTreesClassifier(
                SETTINGS.forest_trees,
                min_samples_leaf=SETTINGS.tree_leaf,
                max_depth=SETTINGS.tree_depth,
                max_features=None,  # thresholds are random: the best of them need all columns
                random_state=seed + k,
            )
            with SCIKIT_LEARN:
                forest.fit(X[grown], codes[grown], weight[grown])
            forests.append(Trees.of(forest, self.share.size))
            votes[left] = forests[-1].predict_proba(X[left])
        return votes, forests

    def transform(self, X: Floats, held_out: Floats | None = None) -> Floats:
        """Return the features of rows."""
        known = np.empty((0, self.share.size)) if held_out is None else held_out[: len(X)]
        votes = np.zeros((len(X) - len(known), self.share.size))
        for forest in self.forests:
            votes += forest.predict_proba(X[len(known) :]) / len(self.forests)
        scores = self._logs(votes) / self.scale
        return np.column_stack([self.columns.transform(X), np.concatenate([known, scores])])

    def offset(self, X: Floats) -> Floats | None:
        """Return logits that are added to t: there are none."""
        return None

    def _logs(self, votes: Floats) -> Floats:
        return centred_logs(votes, self.share, SETTINGS.forest_trees)


def centred_logs(proba: Floats, share: Floats, n_trees: int) -> Floats:
    """Return log-probabilities of trees, the classes' shares counted as some more of them."""
    logs = np.log(n_trees * proba + SETTINGS.prior_trees * share)
    return np.asarray(logs - logs.mean(axis=1, keepdims=True))


def class_shares(codes: Codes, weight: Floats, n_classes: int) -> Floats:
    """Return the shares of the noisy classes, none of them 0."""
    share = np.bincount(codes, weight, minlength=n_classes) + 1 / n_classes
    return np.asarray(share / share.sum())


def for_trees(X: Floats) -> Array:
    """Return numbers in single precision, as trees take them; larger ones are clipped."""
    largest = np.finfo(np.float32).max * 1e-8  # scikit-learn sums them in single precision, too
    return np.clip(X, -largest, largest).astype(np.float32)


def folds_of(X: Floats) -> list[Codes]:
    """Return a fold for every row, in several ways, the same for equal rows, neighbours here."""
    group, n_folds = np.cumsum(starts_of_equal(X)) - 1, SETTINGS.n_folds
    ways = group * n_folds // (group[-1] + 1), group % n_folds, group // n_folds % n_folds
    return [np.asarray(way, dtype=np.intp) for way in ways]
