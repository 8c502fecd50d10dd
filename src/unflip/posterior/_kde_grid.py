"""Gaussian kernel sums in one or two dimensions, from a grid."""

from collections.abc import Iterator

import numpy as np
from scipy.ndimage import gaussian_filter1d

from unflip._utils.typing import Array

POINTS_PER_WIDTH = 8
"""Grid points per kernel width."""

MAX_GRID_POINTS = 2**22
"""Maximum number of grid points."""

REACH = 8.0
"""Cutoff of the kernel, in widths."""


class KernelGrid:
    """S_k(x) = sum_i v_ik exp(-|x - x_i|^2 / (2 s^2)) for x within the range of the rows.

    Each sample is dealt to the corners of its cell, the grid is smoothed along each axis, and S is
    interpolated between the corners of the cell of x, both linearly. Dealing and interpolating
    each smooth by the variance spacing^2 / 6 on average; the filter leaves that out.
    """

    def __init__(self, rows: Array, values: Array, width: float) -> None:
        self.spacing = width / POINTS_PER_WIDTH
        self.low, self.high = rows.min(axis=0), rows.max(axis=0)
        self.shape = grid_shape(rows, width)
        n_points = int(np.prod(self.shape))
        sums = np.zeros((values.shape[1], n_points))
        for corner, share in self._corners(rows):
            for k, column in enumerate(values.T):
                sums[k] += np.bincount(corner, share * column, minlength=n_points)
        sums = sums.reshape(-1, *self.shape)
        sigma = np.sqrt(POINTS_PER_WIDTH**2 - 1 / 3)
        for axis in range(1, sums.ndim):
            sums = gaussian_filter1d(sums, sigma, axis=axis, mode="constant", truncate=REACH)
        # the filter's weights sum to one, a kernel's values on the grid to this
        kernel_sum = (np.sqrt(2 * np.pi) * POINTS_PER_WIDTH) ** len(self.shape)
        self.sums = sums.reshape(len(sums), -1).T * kernel_sum

    def covers(self, X: Array) -> Array:
        """Say which samples lie within the range."""
        return np.asarray(((self.low <= X) & (self.high >= X)).all(axis=1))

    def __call__(self, X: Array) -> Array:
        """Return S at samples within the range, one column per column of the values."""
        sums = np.zeros((len(X), self.sums.shape[1]))
        for corner, share in self._corners(X):
            sums += share[:, None] * self.sums[corner]
        return sums

    def _corners(self, X: Array) -> Iterator[tuple[Array, Array]]:
        """Yield, for each corner of the rows' cells, its place and its share."""
        position = (X - self.low) / self.spacing
        cell = np.floor(position).astype(np.intp)
        beyond = position - cell
        for upper in np.ndindex(*(2,) * len(self.shape)):
            share = np.where(upper, beyond, 1 - beyond).prod(axis=1)
            yield np.ravel_multi_index(tuple((cell + upper).T), self.shape), share


def grid_shape(rows: Array, width: float) -> tuple[int, ...]:
    """Return the number of points along each axis of the rows' grid."""
    span = np.ptp(rows, axis=0) / (width / POINTS_PER_WIDTH)
    return tuple(int(n) for n in np.floor(span) + 2)
