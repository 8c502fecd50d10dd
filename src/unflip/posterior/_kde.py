"""P(observed y | x) by kernel densities of the noisy classes and Bayes' rule."""

from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from unflip._utils.compat import validate_data
from unflip._utils.docs import documented_like
from unflip._utils.gaussian_kernel import (
    SELECTION_ROWS,
    DistancesTo,
    gaussian_at_widths,
    row_blocks,
    smooth,
)
from unflip._utils.threads import one_blas_thread
from unflip._utils.typing import Array, RandomState, Rows
from unflip._utils.validation import check_choice, check_count, check_width, check_widths, new_rows
from unflip.posterior._base import BasePosterior, check_rows
from unflip.posterior._kde_grid import MAX_GRID_POINTS, KernelGrid, grid_shape

MAX_LEFT_OUT = 2000
"""Maximum number of samples, drawn at random, in the leave-one-out choice of the width."""

MIN_KERNEL_WEIGHT = 1.0
"""Minimum total kernel weight, in rows, at which the grid is used."""


class KernelDensityPosterior(BasePosterior):
    r"""P(observed y | x) = sum_{i: y_i = y} K(x, x_i) / sum_i K(x, x_i).

    The kernel estimates of p(x | observed y), the noisy class shares and Bayes' rule, put together.
    K is Gaussian with width `bandwidth` times the standard deviation of each feature.

    Parameters
    ----------
    bandwidth : "cv" or float, default=1.0
        The width in units of each feature's standard deviation: 1 is the paper's. "cv" takes, of
        `bandwidths`, the one under which the left-out labels are most likely.
    bandwidths : array-like, default=None
        Widths for "cv". None: nine, from 1/8 to 2.
    exact_rows : int or None, default=20_000
        Sums over more training samples than this are approximated (see Notes). None: no
        approximation.
    random_state : int, RandomState instance or None, default=None
        Seed of the rows that "cv" uses: at most 10 000, of which at most 2000 are left out in turn;
        and of the samples that approximate all.

    Attributes
    ----------
    bandwidth_ : float
        The width in units of the standard deviation.
    classes_ : ndarray of shape (n_classes,)
        The labels.

    Notes
    -----
    A prediction sums over all training samples, in blocks: O(n) memory, O(n^2)
    time for n samples. Beyond `exact_rows` training samples it is linear in n:

    - In one or two dimensions sums are interpolated from a grid of eight points a width. The
      probabilities are within 0.002 of the exact ones. Where no training sample is near, the sums
      are taken directly.
    - In more dimensions, or where the grid would have more than 4 million points, `exact_rows`
      random samples approximate all. That adds sampling error: a standard deviation of about
      sqrt(p (1-p) / m) at a sample with probability p, with m = (sum_i K_i)^2 / sum_i K_i^2 the
      number of drawn samples that count there. In many dimensions m is small; and a training sample
      that is not drawn is without its own label, which decides the exact sum there: at 100 000
      training samples of 20 features the probabilities differ by 0.2 on average.

    In more than a few dimensions a sample's own label dominates its in-sample
    probability; use `cv` in :class:`~unflip.ImportanceReweightingClassifier` there.

    Examples
    --------
    >>> import numpy as np
    >>> from unflip.posterior import KernelDensityPosterior
    >>> X, y = np.array([[-1.0], [-1.1], [1.0], [1.2]]), ["no", "no", "yes", "no"]
    >>> KernelDensityPosterior(bandwidth=0.3).fit(X, y).predict_proba([[-1.0], [1.1]]).round(2)
    array([[1. , 0. ],
           [0.5, 0.5]])
    """

    bandwidth_: float

    def __init__(
        self,
        bandwidth: float | str = 1.0,
        *,
        bandwidths: ArrayLike | None = None,
        exact_rows: int | None = 20_000,
        random_state: RandomState = None,
    ) -> None:
        self.bandwidth = bandwidth
        self.bandwidths = bandwidths
        self.exact_rows = exact_rows
        self.random_state = random_state

    @documented_like(BasePosterior.fit)
    @one_blas_thread()
    def fit(self, X: Rows, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Keep the samples, scaled, and choose the width."""
        rows, classes, codes, weight = check_rows(self, X, y, sample_weight)
        scaler = StandardScaler(with_mean=not sparse.issparse(rows)).fit(rows, sample_weight=weight)
        scaled = scaler.transform(rows)
        if self.exact_rows is not None:
            check_count(self.exact_rows, "exact_rows", least=1)
        random_state = check_random_state(self.random_state)
        if isinstance(self.bandwidth, str):
            check_choice(self.bandwidth, ("cv",), "bandwidth")
            bandwidth = self._choose_bandwidth(scaled, codes, weight, random_state)
        else:
            bandwidth = check_width(self.bandwidth, "bandwidth")
        indicator, grid = _indicator(codes, classes.size), None
        if self.exact_rows is not None and scaled.shape[0] > self.exact_rows:
            if _fits_grid(scaled, bandwidth):
                grid = KernelGrid(scaled, weight[:, None] * indicator, bandwidth)
            else:
                drawn = random_state.permutation(scaled.shape[0])[: self.exact_rows]
                # single precision errs by less than the draw
                scaled = scaled[drawn].astype(np.float32)
                indicator, weight = indicator[drawn], weight[drawn]
        validate_data(self, X, skip_check_array=True)
        self.classes_, self.bandwidth_ = classes, bandwidth
        self._scaler, self._rows, self._weight = scaler, scaled, weight
        self._indicator, self._grid = indicator, grid
        return self

    @one_blas_thread()
    def predict_proba(self, X: Rows) -> Array:
        """Return P(observed y | x), one column per class in the order of `classes_`."""
        check_is_fitted(self)
        X = new_rows(self, X)
        scaled = self._scaler.transform(X)
        if self._grid is None:
            return self._directly(scaled)
        covered = self._grid.covers(scaled)
        sums = np.zeros((scaled.shape[0], self.classes_.size))
        sums[covered] = self._grid(scaled[covered])
        total = sums.sum(axis=1, keepdims=True)
        far = total[:, 0] < MIN_KERNEL_WEIGHT * self._weight.mean()
        probabilities = sums / np.where(far[:, None], 1.0, total)
        probabilities[far] = self._directly(scaled[far])
        return probabilities

    def _directly(self, scaled: Rows) -> Array:
        """Return the probabilities by sums over the rows that were kept."""
        rows = scaled.astype(self._rows.dtype, copy=False)
        return smooth(rows, self._rows, self._indicator, self._weight, self.bandwidth_)

    def _choose_bandwidth(
        self, rows: Rows, codes: Array, weight: Array, random_state: np.random.RandomState
    ) -> float:
        """Return the width under which the labels of left-out samples are most likely."""
        grid = 2.0 ** np.linspace(-3, 1, 9) if self.bandwidths is None else self.bandwidths
        widths = check_widths(grid, "bandwidths")
        chosen = random_state.permutation(rows.shape[0])[:SELECTION_ROWS]
        rows, codes, weight = rows[chosen], codes[chosen], weight[chosen]
        weighted = weight[:, None] * _indicator(codes, codes.max() + 1)
        log_likelihood = np.zeros(widths.size)
        distances_to = DistancesTo(rows, sparse_rows=sparse.issparse(rows))
        for block in row_blocks(min(rows.shape[0], MAX_LEFT_OUT), rows.shape[0]):
            left_out = np.arange(block.start, block.stop)
            distances = distances_to(rows[block])
            distances[left_out - block.start, left_out] = np.inf
            distances -= distances.min(axis=1, keepdims=True)
            for k, kernel in gaussian_at_widths(distances, widths):
                sums = kernel @ weighted
                own = sums[left_out - block.start, codes[block]] / sums.sum(axis=1)
                # smoothed by half a sample of the other class: no label has probability 0
                log_likelihood[k] += weight[block] @ np.log(np.maximum(own, 0.5 / codes.size))
        return float(widths[np.argmax(log_likelihood)])


def _fits_grid(rows: Rows, width: float) -> bool:
    return (
        not sparse.issparse(rows)
        and rows.shape[1] <= 2
        and float(np.prod(grid_shape(rows, width), dtype=float)) <= MAX_GRID_POINTS
    )


def _indicator(codes: Array, n_classes: int) -> Array:
    """Return 1 where a sample has the column's class, else 0."""
    return np.eye(n_classes)[codes]
