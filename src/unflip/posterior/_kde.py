"""P(noisy y | x) by kernel densities of the noisy classes and Bayes' rule."""

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from unflip._validation import FLOATS, check_choice, check_positive, check_positives
from unflip.density_ratio._kernel import SELECTION_ROWS, DistancesTo, gaussian, row_blocks, smooth
from unflip.posterior._base import BasePosterior, check_rows

Array = NDArray[Any]

LEFT_OUT_ROWS = 2000
"""At most this many rows, drawn at random, are left out in turn to choose the width."""


class KernelDensityPosterior(BasePosterior):
    r"""P(noisy y | x) = sum_{i: y_i = y} K(x, x_i) / sum_i K(x, x_i).

    The kernel estimates of p(x | noisy y), the noisy class shares and Bayes' rule, put together.
    K is Gaussian with width `bandwidth` times the standard deviation of each feature.

    Parameters
    ----------
    bandwidth : "cv" or float, default=1.0
        The width in units of each feature's standard deviation: 1 is the paper's. "cv" takes, of
        `bandwidths`, the one under which the left-out labels are most likely.
    bandwidths : array-like, default=None
        Widths for "cv". None: nine, from 1/8 to 2.
    random_state : int, RandomState instance or None, default=None
        Seed of the rows that "cv" uses: at most 10 000, of which at most 2000 are left out in turn.

    Attributes
    ----------
    bandwidth_ : float
        The width in units of the standard deviation.
    classes_ : ndarray of shape (n_classes,)
        The labels.

    Notes
    -----
    Evaluation takes all training rows for each row asked for, by blocks: O(n) memory, O(n^2) time
    for n rows. In more than a few dimensions a row's own label dominates its in-sample
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
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.bandwidth = bandwidth
        self.bandwidths = bandwidths
        self.random_state = random_state

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Keep the rows, scaled, and choose the width.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Noisy labels.
        sample_weight : array-like of shape (n_samples,), default=None
            How often each row counts.
        """
        rows, classes, codes, weight = check_rows(self, X, y, sample_weight)
        scaler = StandardScaler(with_mean=not sparse.issparse(rows)).fit(rows, sample_weight=weight)
        scaled = scaler.transform(rows)
        if isinstance(self.bandwidth, str):
            check_choice(self.bandwidth, ("cv",), "bandwidth")
            bandwidth = self._choose_bandwidth(scaled, codes, weight)
        else:
            bandwidth = check_positive(self.bandwidth, "bandwidth")
        validate_data(self, X, skip_check_array=True)
        self.classes_, self.bandwidth_ = classes, bandwidth
        self._scaler, self._rows, self._weight = scaler, scaled, weight
        self._indicator = _indicator(codes, classes.size)
        return self

    def predict_proba(self, X: Any) -> Array:
        """Return P(noisy y | x), one column per class in the order of `classes_`."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, accept_sparse="csr", dtype=FLOATS)
        scaled = self._scaler.transform(X)
        return smooth(scaled, self._rows, self._indicator, self._weight, self.bandwidth_)

    def _choose_bandwidth(self, rows: Any, codes: Array, weight: Array) -> float:
        """Return the width under which the labels of left-out rows are most likely."""
        grid = 2.0 ** np.linspace(-3, 1, 9) if self.bandwidths is None else self.bandwidths
        widths = check_positives(grid, "bandwidths")
        chosen = check_random_state(self.random_state).permutation(rows.shape[0])[:SELECTION_ROWS]
        rows, codes, weight = rows[chosen], codes[chosen], weight[chosen]
        weighted = weight[:, None] * _indicator(codes, codes.max() + 1)
        log_likelihood = np.zeros(widths.size)
        distances_to = DistancesTo(rows, sparse_rows=sparse.issparse(rows))
        for block in row_blocks(min(rows.shape[0], LEFT_OUT_ROWS), rows.shape[0]):
            left_out = np.arange(block.start, block.stop)
            distances = distances_to(rows[block])
            distances[left_out - block.start, left_out] = np.inf
            distances -= distances.min(axis=1, keepdims=True)
            for k, width in enumerate(widths):
                sums = gaussian(distances.copy(), width) @ weighted
                own = sums[left_out - block.start, codes[block]] / sums.sum(axis=1)
                # no label is impossible: half a row of the other class is granted
                log_likelihood[k] += weight[block] @ np.log(np.maximum(own, 0.5 / codes.size))
        return float(widths[np.argmax(log_likelihood)])


def _indicator(codes: Array, n_classes: int) -> Array:
    """Return 1 where a row has the column's class, else 0."""
    return np.eye(n_classes)[codes]
