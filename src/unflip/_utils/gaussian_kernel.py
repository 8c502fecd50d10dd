"""Gaussian basis functions, evaluated on blocks of rows to bound memory."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from copy import copy
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.extmath import row_norms, safe_sparse_dot

from unflip._utils.threads import by_threads
from unflip._utils.typing import Array, Rows

KERNEL_BLOCK_BYTES = 2**20
"""Size of one block of kernel values (1 MiB: 1310 rows of 100 centres in float64)."""

SELECTION_ROWS = 10_000
"""Maximum number of rows of each sample, drawn at random, to choose a width."""

CACHE_BYTES = 2**28
"""Maximum size of a cached design (256 MiB); larger ones are recomputed in every pass."""

SINGLE_EXPONENT, SINGLE_SUM = 4.0, 64
"""Maximum |c|^2 / (2 s^2) to compute exponents in single precision, and maximum number of terms to
sum in it."""

MIN_MEAN = 1e-145
"""Minimum mean of a basis function over the denominator's rows: below it, the square of the mean
would underflow, and the coefficient might overflow."""


def reached(mean: Array) -> Array:
    """Return a mask of the basis functions that the denominator's rows reach, from their means."""
    return mean > MIN_MEAN


def row_blocks(n_rows: int, n_columns: int, itemsize: int = 8) -> Iterator[slice]:
    """Yield slices of rows with at most `KERNEL_BLOCK_BYTES` bytes of `n_columns` values."""
    step = max(1, KERNEL_BLOCK_BYTES // max(1, n_columns * itemsize))
    for start in range(0, n_rows, step):
        yield slice(start, min(start + step, n_rows))


def worth_caching(n_rows: int, n_columns: int, itemsize: int) -> bool:
    """Return whether a design is small enough to cache."""
    return n_rows * n_columns * itemsize <= CACHE_BYTES


class DistancesTo:
    """D[i, l] = |x_i - c_l|^2 to fixed centres, by one matrix product per block of rows."""

    def __init__(self, centers: Rows, *, sparse_rows: bool = False) -> None:
        # centring reduces cancellation; sparse rows cannot be shifted
        self.origin = None if sparse_rows else centers.mean(axis=0)
        shifted = centers if self.origin is None else centers - self.origin
        self.minus_twice = -2.0 * shifted.T
        self.norms = row_norms(shifted, squared=True)

    def __call__(self, X: Rows) -> Array:
        """Return the squared distances of the rows of X."""
        shifted = X if self.origin is None else X - self.origin
        distances = safe_sparse_dot(shifted, self.minus_twice, dense_output=True)
        distances = np.asarray(distances)  # a sparse matrix (not array) gives a numpy.matrix
        distances += row_norms(shifted, squared=True)[:, None]
        distances += self.norms
        return np.maximum(distances, 0.0, out=distances)


def squared_distances(X: Rows, centers: Rows) -> Array:
    """Return D[i, l] = |x_i - c_l|^2."""
    return DistancesTo(centers, sparse_rows=sparse.issparse(X))(X)


def gaussian(distances: Array, bandwidth: float) -> Array:
    """Return exp(-d^2 / (2 bandwidth^2)) of squared distances, in place."""
    distances *= -0.5 / bandwidth**2
    return np.exp(distances, out=distances)


def gaussian_at_widths(distances: Array, widths: Array) -> Iterator[tuple[int, Array]]:
    """Yield the index of a width and exp(-d^2 / (2 width^2)), in descending order of width.

    The next iteration overwrites the values. If a width is the previous one divided by sqrt(2), as
    in `width_grid`, the values are the squares of the previous ones, without another exp.
    """
    values, previous = np.empty_like(distances), np.inf
    for k in np.argsort(-widths, kind="stable").tolist():
        width = float(widths[k])
        if abs((previous / width) ** 2 - 2) < 1e-12:
            np.square(values, out=values)
        else:
            np.exp(np.multiply(distances, -0.5 / width**2, out=values), out=values)
        previous = width
        yield k, values


class GaussianBasis:
    """phi_l(x) = exp(-|x - c_l|^2 / (2 s^2)): exponents by one matrix product, then one exp.

    The product of (x, |x|^2, 1) and (c / s^2, -1 / (2 s^2), -|c|^2 / (2 s^2)) gives the exponents.
    """

    def __init__(self, centers: Array, bandwidth: float, *, sparse_rows: bool = False) -> None:
        self.n_centers, self.dtype = centers.shape[0], centers.dtype
        # centring reduces cancellation; sparse rows cannot be shifted
        self.origin = np.zeros_like(centers[0]) if sparse_rows else centers.mean(axis=0)
        shifted = centers - self.origin
        factor = -0.5 / bandwidth**2
        self.right = np.vstack(
            [
                -2 * factor * shifted.T,
                np.full(self.n_centers, factor),
                factor * row_norms(shifted, squared=True),
            ]
        ).astype(self.dtype)
        # many widths from the origin, rounding errors may make exponents positive
        self.rounds = bool(np.abs(self.right[-1]).max() * np.finfo(self.dtype).eps > 1e-10)

    def over(self, mean: Array, *, single: bool) -> "GaussianBasis":
        """Return phi_l / mean_l of the centres within reach.

        `single` requests single precision, used only if it changes the exponents by at most 1e-6:
        their rounding error grows with |c|^2 / s^2.
        """
        usable = reached(mean)
        basis = copy(self)
        basis.right = self.right[:, usable]
        if single and np.abs(basis.right[-1]).max() <= SINGLE_EXPONENT:
            basis.dtype = np.dtype(np.float32)
        basis.right[-1] -= np.log(mean[usable])
        basis.right = basis.right.astype(basis.dtype)
        basis.n_centers = basis.right.shape[1]
        return basis

    def exponents(self, X: Rows, out: Array | None = None) -> Array:
        """Return log phi at a block of rows, in `out` if given."""
        if sparse.issparse(X):
            values = safe_sparse_dot(X, self.right[:-2], dense_output=True)
            values += row_norms(X, squared=True)[:, None] * self.right[-2]
            values += self.right[-1]
            return np.asarray(values)
        left = np.empty((X.shape[0], X.shape[1] + 2), dtype=self.dtype)
        np.subtract(X, self.origin, out=left[:, :-2], casting="same_kind")
        np.einsum("ij,ij->i", left[:, :-2], left[:, :-2], out=left[:, -2])
        left[:, -1] = 1
        return np.matmul(left, self.right, out=None if out is None else out[: len(left)])

    def __call__(self, X: Rows, out: Array | None = None) -> Array:
        """Return phi at a block of rows, in `out` if given."""
        values = self.exponents(X, out)
        if self.rounds:
            np.minimum(values, 0.0, out=values)
        return np.exp(values, out=values)

    def blocks(self, X: Rows) -> Iterator[tuple[slice, Array]]:
        """Yield a slice of rows and phi at these rows, in a buffer that is reused."""
        slices = list(row_blocks(X.shape[0], self.n_centers, self.dtype.itemsize))
        buffer = np.empty((slices[0].stop, self.n_centers), dtype=self.dtype)
        for rows in slices:
            yield rows, self(X[rows], buffer)


def weighted_sum(phi: Array, weight: Array) -> Array:
    """Return sum_i w_i phi_i over a block of rows, in float64.

    In single precision at most `SINGLE_SUM` terms are summed.
    """
    weight = weight.astype(phi.dtype)
    if phi.dtype != np.float32:
        return weight @ phi
    n_parts = len(phi) // SINGLE_SUM
    end = n_parts * SINGLE_SUM
    parts = weight[:end].reshape(n_parts, 1, SINGLE_SUM) @ phi[:end].reshape(
        n_parts, SINGLE_SUM, phi.shape[1]
    )
    return parts.sum(axis=(0, 1), dtype=np.float64) + weight[end:] @ phi[end:]


def weighted_gram(phi: Array, weight: Array) -> Array:
    """Return sum_i w_i phi_i phi_i' over a block of rows, in float64."""
    scaled = phi * np.sqrt(weight).astype(phi.dtype)[:, None]
    return (scaled.T @ scaled).astype(np.float64)


class Design(ABC):
    """A matrix Phi of basis functions at rows, iterated in read-only blocks."""

    n_rows: int
    n_centers: int
    dtype: np.dtype[Any]

    @abstractmethod
    def blocks(self) -> Iterator[tuple[slice, Array]]:
        """Yield a slice of rows and Phi at these rows."""

    def dot(self, coef: Array) -> Array:
        """Return Phi @ coef."""
        values = np.empty(self.n_rows, dtype=coef.dtype)
        for rows, block in self.blocks():
            values[rows] = block @ coef
        return values

    def mean(self, weight: Array) -> Array:
        """Return the weighted mean of the rows of Phi, summed in float64."""
        total = sum((weighted_sum(block, weight[rows]) for rows, block in self.blocks()), 0.0)
        return total / weight.sum()

    def gram(self, weight: Array) -> Array:
        """Return the weighted mean of the outer products of the rows of Phi."""
        total = sum((weighted_gram(block, weight[rows]) for rows, block in self.blocks()), 0.0)
        return total / weight.sum()


class MatrixDesign(Design):
    """A design given as a matrix."""

    def __init__(self, phi: Array) -> None:
        self.phi = phi
        self.n_rows, self.n_centers = phi.shape
        self.dtype = phi.dtype

    def blocks(self) -> Iterator[tuple[slice, Array]]:
        """Yield the matrix by slices."""
        for rows in row_blocks(self.n_rows, self.n_centers, self.phi.itemsize):
            yield rows, self.phi[rows]


class GaussianDesign(Design):
    """Phi[i, l] = exp(-|x_i - c_l|^2 / (2 s^2)), computed on demand.

    With `many_passes` the values are cached in the first pass, if small enough.
    """

    def __init__(
        self, X: Rows, centers: Array, bandwidth: float, *, many_passes: bool = False
    ) -> None:
        self.X, self.centers, self.bandwidth = X, centers, bandwidth
        self.many_passes = many_passes
        self.n_rows, self.n_centers = int(X.shape[0]), centers.shape[0]
        self.dtype = centers.dtype
        self._cached: list[Array] = []

    def blocks(self) -> Iterator[tuple[slice, Array]]:
        """Yield the kernel values by slices, in a reused buffer unless cached."""
        itemsize = self.centers.itemsize
        slices = list(row_blocks(self.n_rows, self.n_centers, itemsize))
        if self._cached:
            yield from zip(slices, self._cached, strict=True)
            return
        basis = GaussianBasis(self.centers, self.bandwidth, sparse_rows=sparse.issparse(self.X))
        if not (self.many_passes and worth_caching(self.n_rows, self.n_centers, itemsize)):
            yield from basis.blocks(self.X)
            return
        cached = []
        for rows in slices:
            cached.append(basis(self.X[rows]))
            yield rows, cached[-1]
        self._cached = cached


def median_distance(centers: Array) -> float:
    """Return the median distance between distinct centres."""
    distances = squared_distances(centers, centers)
    apart = distances[distances > 1e-12 * distances.max()]
    return float(np.sqrt(np.median(apart))) if apart.size else 1.0


def width_grid(centers: Array) -> Array:
    """Return nine widths from 1/8 to 2 times the median distance between centres."""
    return median_distance(centers) * 2.0 ** np.linspace(-3, 1, 9)


def smooth(X: Rows, rows: Rows, values: Array, weight: Array, bandwidth: float) -> Array:
    """Nadaraya-Watson: sum_i w_i k(x, x_i) v_i / sum_i w_i k(x, x_i) for every row x of X.

    Kernels are relative to that of the nearest row: far from all rows the result is the value of
    the nearest one, not 0 / 0.
    """
    weighted = np.column_stack([weight[:, None] * values, weight]).astype(rows.dtype)
    distances_to = DistancesTo(rows, sparse_rows=sparse.issparse(X))

    def smoothed(some: slice) -> Array:
        part = X[some]
        means = np.empty((part.shape[0], values.shape[1]))
        for block in row_blocks(part.shape[0], rows.shape[0], rows.dtype.itemsize):
            distances = distances_to(part[block])
            distances -= distances.min(axis=1, keepdims=True)
            sums = gaussian(distances, bandwidth) @ weighted
            means[block] = sums[:, :-1] / sums[:, -1:]
        return means

    n_hundreds = X.shape[0] * rows.shape[0] // 100  # every row of X meets all rows
    return np.concatenate(by_threads(smoothed, X.shape[0], n_hundreds))
