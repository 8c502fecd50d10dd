"""Features of a random forest: what trees say of the noisy label without having seen it."""

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestClassifier

from unflip._typing import Codes, Floats
from unflip.posterior._noisy_channel import ChannelFeatures

N_FOLDS, N_TREES, LEAF = 4, 30, 3
"""Folds, trees that each fold is left to, and rows of a leaf at least."""

MOST_ROWS = 5000
"""Rows that the forest is grown on."""

PRIOR_TREES = 5.0
"""The noisy class shares count as so many trees more, so that no probability is 0."""


class ForestFeatures:
    """x -> (1, the standardised columns, log P(noisy | x) by a forest, centred).

    Rows that the forest is grown on have the probabilities of trees that saw neither them nor any
    copy of them, so that a row's features do not know its label. (Trees that saw a copy with
    another label would speak against a row's own.)

    Parameters
    ----------
    columns : ChannelFeatures
        The features without the forest's, fitted.
    random_state : int
        Seed.
    """

    def __init__(self, columns: ChannelFeatures, random_state: int) -> None:
        self.columns = columns
        self.random_state = random_state

    def fit(self, X: Floats, codes: Codes, weight: Floats, n_classes: int) -> "ForestFeatures":
        """Grow the forest.

        Parameters
        ----------
        X : ndarray of shape (n_samples, n_columns)
            Rows in random order.
        codes : ndarray of shape (n_samples,)
            Positions of the noisy labels among the classes.
        weight : ndarray of shape (n_samples,)
            How often each row counts.
        n_classes : int
            Number of classes.
        """
        n = min(len(X), MOST_ROWS)
        self.share = np.bincount(codes, weight, minlength=n_classes) + 1 / n_classes
        self.share /= self.share.sum()
        fold = _folds(X[:n])
        logs = np.empty((n, n_classes))
        self.forests = []
        for k in range(fold.max() + 1):
            grown, left = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
            grown = grown if grown.size else left
            forest = RandomForestClassifier(
                N_TREES, min_samples_leaf=LEAF, random_state=self.random_state + k
            ).fit(X[grown], codes[grown], weight[grown])
            self.forests.append(forest)
            logs[left] = self._logs([forest], X[left])
        self.scale = float(max(logs.std(), 1e-12) * np.sqrt(n_classes))
        self.held_out = logs / self.scale
        self.block: NDArray[np.intp] = np.append(self.columns.block, np.full(n_classes, 2))
        return self

    def transform(self, X: Floats) -> Floats:
        """Return the features of rows that the forest has not seen."""
        return self._beside(X, self._logs(self.forests, X) / self.scale)

    def transform_seen(self, X: Floats) -> Floats:
        """Return the features of the first rows of the fit."""
        n = len(self.held_out)
        scores = self.held_out[: len(X)]
        if len(X) > n:
            unseen = self._logs(self.forests, X[n:]) / self.scale
            scores = np.concatenate([scores, unseen])
        return self._beside(X, scores)

    def _beside(self, X: Floats, scores: Floats) -> Floats:
        return np.column_stack([self.columns.transform(X), scores])

    def _logs(self, forests: list[RandomForestClassifier], X: Floats) -> Floats:
        """Return the centred logarithms of the probabilities of all classes."""
        votes = np.zeros((len(X), self.share.size))
        for forest in forests:
            votes[:, forest.classes_] += forest.predict_proba(X) / len(forests)
        logs = np.log(N_TREES * votes + PRIOR_TREES * self.share)
        return np.asarray(logs - logs.mean(axis=1, keepdims=True))


def _folds(X: Floats) -> Codes:
    """Return a fold for every row, the same for equal rows, which are neighbours."""
    first = (np.diff(X, axis=0, prepend=np.nan) != 0).any(axis=1)
    group = np.cumsum(first) - 1
    return np.asarray(group * N_FOLDS // (group[-1] + 1), dtype=np.intp)
