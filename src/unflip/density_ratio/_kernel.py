"""Gaussian basis functions, evaluated by blocks of rows so that memory stays bounded."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.extmath import row_norms, safe_sparse_dot

Array = NDArray[Any]

BLOCK_BYTES = 2**24
"""Size of one block of kernel values (16 MiB: 20 972 rows of 100 centres in float64)."""

CACHE_BYTES = 2**27
"""A design of up to this size (128 MiB) is kept; a larger one is computed again at every pass."""


def row_blocks(n_rows: int, n_columns: int, itemsize: int = 8) -> Iterator[slice]:
    """Cut `n_rows` rows into slices of at most `BLOCK_BYTES` bytes of `n_columns` values."""
    step = max(1, BLOCK_BYTES // max(1, n_columns * itemsize))
    for start in range(0, n_rows, step):
        yield slice(start, min(start + step, n_rows))


def squared_distances(X: Any, centers: Array) -> Array:
    """Return D[i, l] = |x_i - c_l|^2, by one matrix product."""
    if not sparse.issparse(X):  # an origin amid the centres keeps the cancellation small
        origin = centers.mean(axis=0)
        X, centers = X - origin, centers - origin
    distances = safe_sparse_dot(X, -2.0 * centers.T, dense_output=True)
    distances += row_norms(X, squared=True)[:, None]
    distances += row_norms(centers, squared=True)
    return np.maximum(distances, 0.0, out=distances)


def gaussian(distances: Array, bandwidth: float) -> Array:
    """Turn squared distances into exp(-d^2 / (2 bandwidth^2)), in place."""
    distances *= -0.5 / bandwidth**2
    return np.exp(distances, out=distances)


class Design(ABC):
    """A matrix Phi of basis functions at rows, iterated by blocks: treat those as read-only."""

    n_rows: int
    n_centers: int
    dtype: np.dtype[Any]

    @abstractmethod
    def blocks(self) -> Iterator[tuple[slice, Array]]:
        """Yield a slice of rows and Phi at those rows."""

    def dot(self, coef: Array) -> Array:
        """Return Phi @ coef."""
        values = np.empty(self.n_rows, dtype=coef.dtype)
        for rows, block in self.blocks():
            values[rows] = block @ coef
        return values

    def mean(self, weight: Array) -> Array:
        """Return the weighted mean of the rows of Phi, summed in float64."""
        total = np.zeros(self.n_centers)
        for rows, block in self.blocks():
            total += weight[rows] @ block
        return total / weight.sum()

    def gram(self, weight: Array) -> Array:
        """Return the weighted mean of the outer products of the rows of Phi."""
        total = np.zeros((self.n_centers, self.n_centers))
        for rows, block in self.blocks():
            scaled = block * np.sqrt(weight[rows]).astype(block.dtype)[:, None]
            total += scaled.T @ scaled
        return total / weight.sum()


class MatrixDesign(Design):
    """A design whose matrix is at hand."""

    def __init__(self, phi: Array) -> None:
        self.phi = phi
        self.n_rows, self.n_centers = phi.shape
        self.dtype = phi.dtype

    def blocks(self) -> Iterator[tuple[slice, Array]]:
        """Yield the matrix by slices."""
        for rows in row_blocks(self.n_rows, self.n_centers, self.phi.itemsize):
            yield rows, self.phi[rows]


class GaussianDesign(Design):
    """Phi[i, l] = exp(-|x_i - c_l|^2 / (2 s^2)), computed when asked for."""

    def __init__(self, X: Any, centers: Array, bandwidth: float) -> None:
        self.X, self.centers, self.bandwidth = X, centers, bandwidth
        self.n_rows, self.n_centers = int(X.shape[0]), centers.shape[0]
        self.dtype = centers.dtype
        self._kept: list[Array] = []

    def blocks(self) -> Iterator[tuple[slice, Array]]:
        """Yield the kernel values by slices, kept for the next pass where they are few."""
        itemsize = self.centers.itemsize
        slices = list(row_blocks(self.n_rows, self.n_centers, itemsize))
        if len(self._kept) == len(slices):
            yield from zip(slices, self._kept, strict=True)
            return
        keep = self.n_rows * self.n_centers * itemsize <= CACHE_BYTES
        kept = []
        for rows in slices:
            block = gaussian(squared_distances(self.X[rows], self.centers), self.bandwidth)
            if keep:
                kept.append(block)
            yield rows, block
        self._kept = kept


def median_distance(X: Any, centers: Array, random_state: np.random.RandomState) -> float:
    """Return the median distance between centres and (at most 1000) rows: a scale for widths."""
    if X.shape[0] > 1000:
        X = X[random_state.choice(X.shape[0], 1000, replace=False)]
    distances = squared_distances(X, centers)
    positive = distances[distances > 1e-12 * max(1.0, float(distances.max()))]
    return float(np.sqrt(np.median(positive))) if positive.size else 1.0
