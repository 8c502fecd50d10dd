"""Features of the noise model: an intercept, the columns, and RBF features around samples."""

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from unflip._utils.typing import Array, Floats
from unflip.channel._settings import SETTINGS


class ChannelFeatures:
    r"""x -> (1, z / sqrt(d), R' k(z, centers) - its mean), z the standardised columns.

    k(z, c) = exp(-|z-c|^2 / (2 width^2 m)) with m the median squared distance of two rows, and
    R R' = K^-1 for the kernel matrix K of the centers (Nystroem). With w ~ N(0, s I) they are a
    Gaussian process of variance s at the centers.

    Parameters
    ----------
    width : float or None
        Width of the RBF features; None: there are none.
    n_centers : int
        Maximum number of centers.
    one_scale : bool, default=False
        Whether to divide all columns by the same number, as for the scores of an SVD: with all
        scores, t then has the same prior as with the original columns.
    """

    def __init__(self, width: float | None, n_centers: int, *, one_scale: bool = False) -> None:
        self.width = width
        self.n_centers = n_centers
        self.one_scale = one_scale

    def fit(self, X: Floats, weight: Floats, order: Array) -> "ChannelFeatures":
        """Fit the scales, and take centers from the head of `order`: distinct rows, shuffled."""
        self.mean = np.average(X, axis=0, weights=weight)
        variance = np.average((X - self.mean) ** 2, axis=0, weights=weight)
        if self.one_scale:
            variance = np.full_like(variance, variance.mean())
        deviation = np.sqrt(variance)
        self.scale = np.where(deviation > 1e-12 * (1 + np.abs(self.mean)), deviation, 1.0)
        n_columns = X.shape[1]
        self.block = np.repeat([0, 1], [1, n_columns])
        if self.width is None:
            return self
        some = self._standardised(X[order[: SETTINGS.distance_samples]])
        distances = _squared_distances(some, some)
        apart = distances[distances > 1e-9 * (1 + distances.max())]
        self.gamma = 1 / (2 * self.width**2 * (np.median(apart) if apart.size else 1.0))
        self.centers = self._standardised(X[order[: self.n_centers]])
        eigenvalues, vectors = np.linalg.eigh(self._kernel(self.centers))
        keep = eigenvalues > SETTINGS.smallest_eigenvalue * eigenvalues[-1]
        self.root = vectors[:, keep] / np.sqrt(eigenvalues[keep])
        self.shift = np.average(self._kernel(self._standardised(X)), axis=0, weights=weight)
        self.block = np.repeat([0, 1, 2], [1, n_columns, int(keep.sum())])
        return self

    def transform(self, X: Floats) -> Floats:
        """Return the features, one row per row of X."""
        Z = self._standardised(X)
        F = np.empty((len(Z), self.block.size))
        n_columns = Z.shape[1]
        F[:, 0] = 1
        F[:, 1 : 1 + n_columns] = Z / np.sqrt(n_columns)
        if self.width is not None:
            np.matmul(self._kernel(Z) - self.shift, self.root, out=F[:, 1 + n_columns :])
        return F

    def offset(self, X: Floats) -> Floats | None:
        """Return logits that are added to t; None: there are none."""
        return None

    def _standardised(self, X: Floats) -> Floats:
        return (X - self.mean) / self.scale

    def _kernel(self, Z: Floats) -> Floats:
        kernel = _squared_distances(Z, self.centers)
        kernel *= -self.gamma
        return np.exp(kernel, out=kernel)


class LogitFeatures(ChannelFeatures):
    r"""x -> (1, z / sqrt(d)), for rows x that are centred logits themselves.

    A factor a times log q is added to t = F w, with q T = softmax(x): the prior mean of t are the
    given logits without the noise T that a model has learnt. Without `columns`, F is (1).

    Parameters
    ----------
    factor : float, default=1.0
        a: above 1 if the logits are underconfident.
    columns : bool, default=True
        Whether t also has terms that are linear in all logits.
    removed : ndarray of shape (n_classes, n_classes), default=None
        T; None: the logits are added as they are.
    """

    def __init__(
        self, factor: float = 1.0, *, columns: bool = True, removed: Floats | None = None
    ) -> None:
        super().__init__(None, 0, one_scale=True)
        self.factor = factor
        self.columns = columns
        self.removed = removed

    def fit(self, X: Floats, weight: Floats, order: Array) -> "LogitFeatures":
        """Fit the scale of the columns."""
        super().fit(X, weight, order)
        if not self.columns:
            self.block = self.block[:1]
        return self

    def transform(self, X: Floats) -> Floats:
        """Return the features, one row per row of X."""
        return super().transform(X) if self.columns else np.ones((len(X), 1))

    def offset(self, X: Floats) -> Floats:
        """Return the logits that are added to t."""
        return self.factor * (X if self.removed is None else without_noise(X, self.removed))


def without_noise(logits: Floats, T: Floats) -> Floats:
    """Return log q of softmax(logits) = q T, centred, by a few EM steps towards the likeliest q.

    What they leave is small beside what is not known of p.
    """
    p = softmax(logits, axis=1)
    q = np.maximum(p @ np.linalg.inv(T), SETTINGS.inversion_start)
    q /= q.sum(axis=1, keepdims=True)
    for _ in range(SETTINGS.inversion_steps):
        # T may rule a label out
        q *= (p / np.maximum(q @ T, SETTINGS.smallest_held_out)) @ T.T
    return centred_logs(q)


def centred_logs(p: Floats) -> Floats:
    """Return log p less its mean over the classes."""
    logs = np.log(np.maximum(p, SETTINGS.smallest_held_out))
    logs -= logs.mean(axis=1, keepdims=True)
    return np.asarray(logs)


def row_keys(X: Floats) -> NDArray[np.uint64]:
    """Return a number for every row that tells it from other rows, whatever its position."""
    bits = np.ascontiguousarray(X + 0.0, dtype=np.float64).view(np.uint64)  # -0.0 becomes 0.0
    bits = bits ^ (bits >> np.uint64(32))  # short numbers use only the upper half
    column = np.arange(1, X.shape[1] + 1, dtype=np.uint64)
    return _mixed((bits * (_mixed(column) | np.uint64(1))).sum(axis=1, dtype=np.uint64))


def shuffled_keys(
    X: Floats, weight: Floats, random_state: np.random.RandomState
) -> NDArray[np.uint64]:
    """Return a random number for every row, by which to shuffle rows.

    It depends on the standardised values of the row, rounded, but not on its position, on copies of
    it, on the order and the units of the columns, nor (but for a few rows) on their precision.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Rows.
    weight : ndarray of shape (n_samples,)
        Weight of each row.
    random_state : RandomState instance
        Generator of the order.
    """
    share = weight / weight.sum()
    mean, variance, skewness = share @ X, np.zeros(X.shape[1]), np.zeros(X.shape[1])
    size = 1024  # samples at a time: the standardised values need little memory
    parts = [slice(first, first + size) for first in range(0, len(X), size)]
    for part in parts:
        variance += share[part] @ (X[part] - mean) ** 2
    deviation = np.sqrt(np.where(variance > 0, variance, 1.0))
    # values are rounded to a thousandth of a standard deviation, which single precision keeps
    steps, rounded = 1000, np.empty(X.shape, dtype=np.int64)
    for part in parts:
        Z = (X[part] - mean) / deviation
        np.rint(np.clip(steps * Z, -(2.0**52), 2.0**52), out=rounded[part], casting="unsafe")
        np.clip(Z, -10, 10, out=Z)
        skewness += share[part] @ (Z * Z * Z)
    # columns are known by their shape, not by their place
    seed = random_state.randint(2**31, dtype=np.int64)
    column = _mixed((np.rint(steps * skewness).astype(np.int64) + seed).view(np.uint64))
    # sums of products wrap around, as they may
    return _mixed(rounded.view(np.uint64) @ (column | np.uint64(1)))


def _mixed(bits: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the bits scrambled (Steele, Lea and Flood's SplitMix64)."""
    bits = bits + np.uint64(0x9E3779B97F4A7C15)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


def _squared_distances(A: Floats, B: Floats) -> Floats:
    distances = A @ (-2 * B.T)
    distances += (A**2).sum(axis=1)[:, None]
    distances += (B**2).sum(axis=1)
    return np.maximum(distances, 0, out=distances)
