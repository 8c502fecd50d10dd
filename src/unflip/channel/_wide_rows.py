"""Rows of many columns, brought to few."""

from typing import Any, Self

import numpy as np
from scipy.linalg import eigh, solve
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.decomposition import TruncatedSVD
from sklearn.utils.validation import check_is_fitted

from unflip._utils.typing import Array, Floats
from unflip.channel._features import shuffled_keys
from unflip.channel._settings import SETTINGS


class RidgeScores(TransformerMixin, BaseEstimator):
    """x -> (scores of the noisy classes by ridge regression, leading principal components).

    Where classes differ in their means, the scores hold all that a linear function says of them,
    whatever the noise: the means of the noisy classes are mixtures of those of the clean ones. The
    rows of the fit have scores of the regression on four other fifths of the rows. (Scores that
    leave out single rows would tell their labels: without any signal they are the mean of all other
    labels.) Copies of a row are left out together.

    Attributes
    ----------
    directions_ : ndarray of shape (n_features, n_scores + n_components)
        What the standardised columns are multiplied with.
    penalty_ : float
        The penalty of the least mean squared leave-one-out error.
    """

    def __init__(self, n_components: int = SETTINGS.n_components) -> None:
        self.n_components = n_components

    def fit(self, X: Floats, y: Array, sample_weight: Floats | None = None) -> Self:
        """Find the directions."""
        self._fit(X, y, sample_weight)
        return self

    def fit_transform(self, X: Floats, y: Array, sample_weight: Floats | None = None) -> Floats:
        """Fit, and return what the rows become: out-of-fold scores where they took part."""
        rows, scores = self._fit(X, y, sample_weight)
        reduced = self.transform(X)
        reduced[rows, : scores.shape[1]] = scores
        return reduced

    def transform(self, X: Floats) -> Floats:
        """Return the scores and components of rows."""
        check_is_fitted(self)
        reduced = np.empty((len(X), self.directions_.shape[1]))
        size = 4096  # samples at a time: bounds the memory of the standardised columns
        for first in range(0, len(X), size):
            some = slice(first, first + size)
            reduced[some] = ((X[some] - self.mean_) / self.scale_) @ self.directions_
        return reduced

    def _fit(self, X: Floats, y: Array, sample_weight: Floats | None) -> tuple[Array, Floats]:
        """Return the positions of the rows of the fit, and their out-of-fold scores."""
        weight = np.ones(len(X)) if sample_weight is None else sample_weight
        rows = np.flatnonzero(weight)
        if rows.size > SETTINGS.reducer_samples:
            rows = np.sort(np.random.RandomState(0).permutation(rows)[: SETTINGS.reducer_samples])
        some, weight = np.asarray(X[rows], dtype=np.float64), weight[rows]
        weight = weight / weight.mean()
        mean = weight @ some / weight.sum()
        scale = np.sqrt(weight @ (some - mean) ** 2 / weight.sum())
        scale = np.where(scale > 1e-12 * (1 + np.abs(mean)), scale, 1.0)
        Z, root = (some - mean) / scale, np.sqrt(weight)[:, None]
        targets, rooted = _targets(y[rows], weight), Z * root
        wide = len(Z) < Z.shape[1]
        values, vectors = eigh(rooted @ rooted.T if wide else rooted.T @ rooted)
        kept = values > 1e-9 * values[-1]
        values, vectors = values[kept][::-1], vectors[:, kept][:, ::-1]
        if wide:
            left, vectors = vectors, rooted.T @ (vectors / np.sqrt(values))
        else:
            left = (rooted @ vectors) / np.sqrt(values)
        penalty = _best_penalty(left, values, targets * root, weight)
        fold = shuffled_keys(some, weight, np.random.RandomState(0)) % SETTINGS.score_folds
        scores = _out_of_fold(left * np.sqrt(values) / root, targets, weight, penalty, fold)
        shrunk = np.sqrt(values) / (values + penalty)
        by_score = vectors @ (shrunk[:, None] * (left.T @ (targets * root)))
        components = vectors[:, : self.n_components]
        self.mean_, self.scale_, self.penalty_ = mean, scale, penalty
        self.directions_ = np.column_stack([by_score, components])
        return rows, scores


def _targets(codes: Array, weight: Floats) -> Floats:
    """Return the centred indicators of the classes but one: the last follows from the others."""
    present = np.unique(codes)[:-1]
    indicators = (codes[:, None] == present).astype(float)
    return np.asarray(indicators - np.average(indicators, axis=0, weights=weight))


def _best_penalty(left: Floats, values: Floats, targets: Floats, weight: Floats) -> float:
    """Return the penalty of the least mean squared leave-one-out error."""
    projected = left.T @ targets
    errors = {}
    squares, own = left**2, weight / weight.sum()
    for relative in 10.0 ** np.arange(*SETTINGS.penalty_exponents):
        penalty = float(relative * values.sum() / values.size)
        shrink = values / (values + penalty)
        leverage = np.minimum(squares @ shrink + own, 1 - 1e-6)
        residual = (targets - left @ (shrink[:, None] * projected)) / (1 - leverage)[:, None]
        errors[penalty] = float((residual**2).mean())
    return min(errors, key=lambda penalty: errors[penalty])


def _out_of_fold(Z: Floats, targets: Floats, weight: Floats, penalty: float, fold: Array) -> Floats:
    """Return the scores of each fold by ridge regression on the others."""
    scores = np.zeros_like(targets)
    squares = weight @ Z**2
    for k in np.unique(fold):
        out = fold == k
        if out.all():
            break
        rooted = Z[out] * np.sqrt(weight[out])[:, None]
        gram = -(rooted.T @ rooted)
        gram.flat[:: len(gram) + 1] += squares + penalty
        mine = weight[~out][:, None]
        others = mine * (targets[~out] - (mine * targets[~out]).sum(axis=0) / mine.sum())
        scores[out] = Z[out] @ solve(gram, Z[~out].T @ others, assume_a="pos")
    return scores


def fit_reducer(transformer: Any, rows: Any, codes: Array, weight: Floats) -> Any:
    """Fit a transformer, and return what the rows become."""
    if isinstance(transformer, RidgeScores):
        return transformer.fit_transform(rows, codes, weight)
    return transformer.fit_transform(rows, codes)


def reducer(rows: Any, random_state: np.random.RandomState) -> Any:
    """Return what brings rows to few columns; None where they have few."""
    n_rows, n_columns = rows.shape
    if not issparse(rows):
        return RidgeScores() if n_columns > SETTINGS.most_columns else None
    if n_columns <= SETTINGS.most_sparse_columns:
        return None
    seed = random_state.randint(np.iinfo(np.int32).max)
    return TruncatedSVD(min(SETTINGS.most_columns, n_rows - 1), random_state=seed)
