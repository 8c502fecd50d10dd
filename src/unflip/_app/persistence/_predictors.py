"""Predictors with the state of a model file, in numpy, so that versions do not matter."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.special import expit, softmax

from unflip._utils.columns import ColumnEncoder
from unflip._utils.threads import one_blas_thread
from unflip._utils.typing import Array, Floats

BLOCK_BYTES = 16 * 2**20
"""Maximum size in bytes of the encoded rows, or of a kernel matrix, processed at a time."""


@dataclass(frozen=True)
class Logistic:
    """Logistic regression on scaled columns."""

    kind: ClassVar[str] = "logistic"
    has_proba: ClassVar[bool] = True

    mean: Floats
    scale: Floats
    coef: Floats
    intercept: Floats

    def scores(self, rows: Floats) -> Floats:
        """Return P(class | row)."""
        return _probabilities((rows - self.mean) / self.scale @ self.coef.T + self.intercept)


@dataclass(frozen=True)
class Boosting:
    """Gradient boosting: the sum of trees, of which a leaf is its own child."""

    kind: ClassVar[str] = "boosting"
    has_proba: ClassVar[bool] = True

    baseline: Floats
    feature: NDArray[np.int32]
    threshold: Floats
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    value: Floats

    def scores(self, rows: Floats) -> Floats:
        """Return P(class | row); the trees of one iteration follow each other, one per class."""
        raw = np.tile(self.baseline, (len(rows), 1))
        start = np.arange(len(rows)) * rows.shape[1]
        cells = rows.ravel()
        for k in range(len(self.feature)):
            feature, threshold = self.feature[k], self.threshold[k]
            children = np.stack([self.right[k], self.left[k]], axis=1).ravel()
            node = np.zeros(len(rows), dtype=np.intp)
            for _ in range(_depth(self.left[k], self.right[k])):
                goes_left = cells[start + feature[node]] <= threshold[node]
                node = children[2 * node + goes_left]
            raw[:, k % self.baseline.size] += self.value[k][node]
        return _probabilities(raw)


@dataclass(frozen=True)
class Svm:
    """A support vector machine with an RBF kernel: one vote for each pair of classes."""

    kind: ClassVar[str] = "svm"
    has_proba: ClassVar[bool] = False

    mean: Floats
    scale: Floats
    vectors: Floats
    dual_coef: Floats
    intercept: Floats
    n_support: NDArray[np.int32]
    gamma: float

    def scores(self, rows: Floats) -> Floats:
        """Return the number of votes for each class."""
        n_rows = max(1, BLOCK_BYTES // (8 * len(self.vectors)))
        rows = (rows - self.mean) / self.scale
        blocks = [self._votes(rows[k : k + n_rows]) for k in range(0, len(rows), n_rows)]
        return np.concatenate(blocks)

    def _votes(self, rows: Floats) -> Floats:
        squares = (rows**2).sum(axis=1)[:, None] + (self.vectors**2).sum(axis=1)
        kernel = np.exp(-self.gamma * np.maximum(squares - 2 * rows @ self.vectors.T, 0))
        ends = np.cumsum(self.n_support)
        of = [slice(end - n, end) for end, n in zip(ends, self.n_support, strict=True)]
        votes = np.zeros((len(rows), self.n_support.size))
        pair = 0
        for i in range(self.n_support.size):
            for j in range(i + 1, self.n_support.size):
                score = kernel[:, of[i]] @ self.dual_coef[j - 1, of[i]]
                score += kernel[:, of[j]] @ self.dual_coef[i, of[j]] + self.intercept[pair]
                votes[:, i] += score > 0
                votes[:, j] += ~(score > 0)
                pair += 1
        return votes


Predictor = Logistic | Boosting | Svm


@dataclass(frozen=True)
class Imputation:
    """Imputation: the mean replaces missing values, flags mark them, and columns are centred."""

    mean: Floats
    flagged: NDArray[np.int32]
    centre: Floats

    def fill(self, rows: Floats) -> Floats:
        """Return the rows without missing values."""
        missing = np.isnan(rows)
        filled = np.where(missing, self.mean, rows)
        return np.column_stack([filled, missing[:, self.flagged]]) - self.centre


@dataclass(frozen=True)
class Model:
    """Predicts labels from the columns of a table."""

    encoder: ColumnEncoder
    imputation: Imputation
    classes: Array  # texts as objects, which take less memory
    classifier: Any  # Logistic, Boosting, Svm, or the fitted classifier of another package

    @property
    def block_rows(self) -> int:
        """Number of rows to predict at a time."""
        return max(1, BLOCK_BYTES // (8 * self.imputation.centre.size))

    def encode(self, table: "pl.DataFrame") -> Floats:
        """Return rows as encoded features."""
        with np.errstate(over="ignore"):  # the classifier rejects values that are not finite
            return self.imputation.fill(self.encoder.encode(table))

    @one_blas_thread()
    def predict(self, rows: Floats) -> tuple[Array, Floats | None]:
        """Return labels, and probabilities if the classifier has them."""
        if not isinstance(self.classifier, Predictor):
            labels = np.asarray(self.classifier.predict(rows))
            proba = getattr(self.classifier, "predict_proba", None)
            return labels, None if proba is None else np.asarray(proba(rows), dtype=float)
        with np.errstate(all="ignore"):  # values that are not finite are rejected below
            scores = self.classifier.scores(rows)
        if not np.isfinite(scores).all():
            raise ValueError("its probabilities are not finite")
        labels = self.classes[scores.argmax(axis=1)]
        return labels, scores if self.classifier.has_proba else None


def _probabilities(raw: Floats) -> Floats:
    """Return the probabilities of scores; one column is the second of two classes."""
    if raw.shape[1] > 1:
        return np.asarray(softmax(raw, axis=1))
    second = expit(raw)
    return np.column_stack([1 - second, second])


def _depth(left: NDArray[np.int32], right: NDArray[np.int32]) -> int:
    """Return the depth of a tree, whose children come after their parents."""
    depth = np.zeros(left.size, dtype=int)
    for node in range(left.size):
        if left[node] != node:
            depth[[left[node], right[node]]] = depth[node] + 1
    return int(depth.max())
