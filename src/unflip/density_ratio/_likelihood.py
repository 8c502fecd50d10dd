"""Maximum likelihood of mixture weights: sums over blocks of rows, and Newton's method on them.

KLIEP in the weights alpha_l = b_l theta_l, with b = mean_den phi: maximise
mean_num log(sum_l alpha_l phi_l / b_l) over alpha >= 0 that sum to one.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unflip._gaussian_kernel import (
    GaussianBasis,
    row_blocks,
    weighted_gram,
    weighted_sum,
    worth_keeping,
)
from unflip._samples import Samples, TwoSamples
from unflip._threads import by_threads
from unflip.density_ratio._newton import nonnegative_newton_target

Array = NDArray[Any]

LOG_TINY = float(np.log(1e-300))
"""Stands for the logarithm of r = 0: a row that no basis function reaches."""

LEAST_RATIO = 1e-15
"""Least share of a row's best basis function that its ratio may have."""

LEAST_SINGLE_MEAN = 1e-30
"""A smaller mean of a basis function is computed in double precision: single would underflow."""

EM_STEPS, EM_GAP = 2, 0.1
"""So many steps of expectation maximisation come first where the KKT gap is above this."""


@dataclass(frozen=True)
class RelativeBlock:
    """psi_il = phi_il / (b_l exp(m_i)), at most 1 in each row, so that r_i = exp(m_i) psi_i alpha.

    Likelihoods need no more of phi than this, and it neither underflows nor overflows in float32.
    """

    psi: Array
    log_scale: Array
    """m_i."""
    weight: Array

    @classmethod
    def from_exponents(cls, exponents: Array, weight: Array, out: Array) -> "RelativeBlock":
        """Take log(phi / b), and put psi into `out`."""
        log_scale = exponents.max(axis=1)
        np.subtract(exponents, log_scale[:, None], out=out, casting="same_kind")
        return cls(np.exp(out, out=out), log_scale.astype(np.float64), weight)

    @classmethod
    def from_values(cls, phi: Array, weight: Array, dtype: Any) -> "RelativeBlock":
        """Take phi, with b = 1; a row that underflowed to zeros is out of reach."""
        scale = phi.max(axis=1)
        log_scale = np.full(scale.shape, -np.inf)
        np.log(scale, out=log_scale, where=scale > 0)
        psi = np.empty(phi.shape, dtype=dtype)
        np.divide(phi, np.where(scale > 0, scale, 1)[:, None], out=psi, casting="same_kind")
        return cls(psi, log_scale, weight)

    def over(self, mean: Array) -> "RelativeBlock":
        """Return the block with b times `mean`."""
        psi = self.psi / mean.astype(self.psi.dtype)
        block = RelativeBlock.from_values(psi, self.weight, psi.dtype)
        return RelativeBlock(block.psi, block.log_scale + self.log_scale, self.weight)

    def sums(self, alpha: Array, hessian: bool) -> "LikelihoodSums":
        """Return this block's part of the sums at alpha."""
        ratio = (self.psi @ alpha.astype(self.psi.dtype)).astype(np.float64)
        reached = self.log_scale > LOG_TINY
        weight = self.weight if reached.all() else np.where(reached, self.weight, 0.0)
        # at the optimum psi_i alpha >= w_i / sum w: less is no candidate, and might overflow
        lost = ratio < LEAST_RATIO
        ratio[lost] = 1.0
        log_ratio = np.maximum(np.log(ratio) + self.log_scale, LOG_TINY)
        log_sum = -np.inf if (lost & reached).any() else float(self.weight @ log_ratio)
        inverse = 1 / ratio
        return LikelihoodSums(
            float(self.weight.sum()),
            float(weight.sum()),
            log_sum,
            weighted_sum(self.psi, weight * inverse),
            weighted_gram(self.psi, weight * inverse**2) if hessian else None,
        )


@dataclass(frozen=True)
class LikelihoodSums:
    """Sums over rows, of which each block gives its part: add them up in any order.

    Rows out of reach of all basis functions count in `log` only, where r has the floor 1e-300.
    """

    all_weight: float
    """sum_i w_i."""
    weight: float
    """sum_i w_i over the rows within reach."""
    log: float
    """sum_i w_i log r_i."""
    gradient: Array
    """sum_i w_i psi_i / (psi_i alpha)."""
    hessian: Array | None
    """sum_i w_i psi_i psi_i' / (psi_i alpha)^2: minus the second derivative of `log`."""

    def mean_hessian(self) -> Array:
        """Return minus the second derivative of the mean log r."""
        if self.hessian is None:
            raise ValueError("the sums were taken without the Hessian.")
        return self.hessian / self.weight

    def scaled(self, columns: Array) -> "LikelihoodSums":
        """Return the sums of the problem whose psi_l is `columns`_l times as large."""
        hessian = self.hessian
        if hessian is not None:
            hessian = hessian * columns * columns[:, None]
        return replace(self, gradient=self.gradient * columns, hessian=hessian)

    def __add__(self, other: "LikelihoodSums") -> "LikelihoodSums":
        hessian = None
        if self.hessian is not None and other.hessian is not None:
            hessian = self.hessian + other.hessian
        return LikelihoodSums(
            self.all_weight + other.all_weight,
            self.weight + other.weight,
            self.log + other.log,
            self.gradient + other.gradient,
            hessian,
        )


class NumeratorRows:
    """The numerator's relative basis values, by blocks: kept where few enough, else recomputed.

    Parameters
    ----------
    X, weight : array-like of shape (n_num, n_features) and (n_num,)
        The rows.
    basis : GaussianBasis
        phi / b.
    dtype : dtype
        Precision of the relative values.
    blocks : sequence of RelativeBlock, default=()
        The blocks, where they are at hand.
    many_passes : bool, default=True
        Whether the values are kept, where few enough.
    """

    def __init__(
        self,
        X: Any,
        weight: Array,
        basis: GaussianBasis,
        dtype: Any,
        blocks: Sequence[RelativeBlock] = (),
        *,
        many_passes: bool = True,
    ) -> None:
        self.X, self.weight, self.basis, self.dtype = X, weight, basis, np.dtype(dtype)
        n_rows, n_centers = X.shape[0], basis.n_centers
        self._slices = list(row_blocks(n_rows, n_centers, basis.dtype.itemsize))
        keep = many_passes and worth_keeping(n_rows, n_centers, self.dtype.itemsize)
        self._psi = np.empty((n_rows, n_centers), dtype=dtype) if keep and not blocks else None
        self._kept: list[RelativeBlock | None] = list(blocks) or [None] * len(self._slices)

    def sums(self, alpha: Array, hessian: bool) -> LikelihoodSums:
        """Return the sums over all rows."""
        parts = by_threads(
            lambda places: sums_over(self._blocks(places), alpha, hessian),
            len(self._kept),
            self.X.shape[0],
        )
        return reduce(add, parts)

    def _blocks(self, places: slice) -> Iterator[RelativeBlock]:
        """Yield the blocks at these places."""
        rooms: tuple[Array, Array] | None = None
        for place in range(places.start, places.stop):
            block = self._kept[place]
            if block is None:
                rooms = rooms or self._rooms()
                block = self._made(self._slices[place], *rooms)
                if self._psi is not None:
                    self._kept[place] = block
            yield block

    def _rooms(self) -> tuple[Array, Array]:
        """Return room for the exponents of a block, and for its relative values."""
        shape = self._slices[0].stop, self.basis.n_centers
        exponents = np.empty(shape, dtype=self.basis.dtype)
        return exponents, np.empty(shape, dtype=self.dtype)

    def _made(self, rows: slice, exponents: Array, psi: Array) -> RelativeBlock:
        psi = psi[: rows.stop - rows.start] if self._psi is None else self._psi[rows]
        values = self.basis.exponents(self.X[rows], exponents)
        return RelativeBlock.from_exponents(values, self.weight[rows], psi)


def one_pass(
    samples: Samples, basis: GaussianBasis, *, single: bool
) -> tuple[Array, list[RelativeBlock]]:
    """Return mean_den phi and, with b = 1, the numerator's blocks if they can be had at once.

    They can where the numerator's rows are among the denominator's and few enough to be kept; else
    the list is empty. In single precision a pass of their own costs less than to pick them out.
    """
    keep = worth_keeping(samples.n_num, basis.n_centers, basis.dtype.itemsize)
    if isinstance(samples, TwoSamples) and samples.num_mask is not None and keep and not single:
        return _picked(samples, samples.num_mask, basis)
    evaluated = basis.over(np.ones(basis.n_centers), single=True) if single else basis
    mean = samples.sum(_denominator_sum, evaluated) / samples.total_den
    if single and mean.min() < LEAST_SINGLE_MEAN:
        return one_pass(samples, basis, single=False)
    return mean, []


def _picked(
    samples: TwoSamples, among: Array, basis: GaussianBasis
) -> tuple[Array, list[RelativeBlock]]:
    total, blocks = np.zeros(basis.n_centers), []
    for rows, phi in basis.blocks(samples.den):
        weight, picked = samples.weight_den[rows], among[rows]
        total += weighted_sum(phi, weight)
        if picked.any():
            blocks.append(RelativeBlock.from_values(phi[picked], weight[picked], phi.dtype))
    return total / samples.total_den, blocks


def _denominator_sum(
    rows: Any, weight_num: Array, weight_den: Array, basis: GaussianBasis
) -> Array:
    """Return sum_i w_i phi_i over a block's rows of the denominator."""
    total = np.zeros(basis.n_centers)
    if weight_den.any():
        for some, phi in basis.blocks(rows):
            total += weighted_sum(phi, weight_den[some])
    return total


class SumsElsewhere:
    """The sums over numerator rows out of memory: a pass for every alpha.

    It takes the Hessian as well, which costs less than to come back for it.
    """

    def __init__(self, samples: Samples, basis: GaussianBasis, dtype: Any) -> None:
        self.samples = samples
        self.shared = basis, np.dtype(dtype), samples.total_num / samples.n_num
        self._latest: tuple[Array, LikelihoodSums] | None = None

    def __call__(self, alpha: Array, hessian: bool) -> LikelihoodSums:
        """Return the sums, with the Hessian in any case."""
        if self._latest is None or not np.array_equal(self._latest[0], alpha):
            sums = self.samples.sum(_numerator_sums, (*self.shared, alpha))
            self._latest = alpha, sums
        return self._latest[1]


def _numerator_sums(
    rows: Any,
    weight_num: Array,
    weight_den: Array,
    shared: tuple[GaussianBasis, np.dtype[Any], float, Array],
) -> LikelihoodSums:
    """Return the sums over a block's rows of the numerator."""
    basis, dtype, mean_weight, alpha = shared
    num = weight_num > 0
    if not num.any():
        p = alpha.size
        return LikelihoodSums(0.0, 0.0, 0.0, np.zeros(p), np.zeros((p, p)))
    own = NumeratorRows(rows[num], weight_num[num] / mean_weight, basis, dtype, many_passes=False)
    return own.sums(alpha, True)


def sums_over(blocks: Iterable[RelativeBlock], alpha: Array, hessian: bool) -> LikelihoodSums:
    """Return the sums over all blocks."""
    return reduce(add, (block.sums(alpha, hessian) for block in blocks))


@dataclass(frozen=True)
class _Point:
    """Mixture weights, with the value and the slope of F(alpha) = mean log r - sum alpha."""

    alpha: Array
    sums: LikelihoodSums

    @property
    def value(self) -> float:
        return float(self.sums.log / self.sums.weight - self.alpha.sum())

    @property
    def slope(self) -> Array:
        return self.sums.gradient / self.sums.weight - 1

    @property
    def kkt_gap(self) -> float:
        """max_l g_l - 1 at the weights scaled to sum to one."""
        return float(self.alpha.sum() * self.sums.gradient.max() / self.sums.weight - 1)


@dataclass(frozen=True)
class Solution:
    """Mixture weights that sum to one, and how good they are."""

    alpha: Array
    objective: float
    """mean log r."""
    kkt_gap: float
    n_iter: int
    hessian: Array | None
    """One that was computed on the way and would serve for a further step, if any."""


def maximise(
    sums: Callable[[Array, bool], LikelihoodSums],
    start: Array,
    *,
    tol: float,
    max_iter: int,
    hessian: Array | None = None,
) -> Solution:
    """Maximise mean log r over alpha >= 0 that sum to one, by Newton's method.

    Each step maximises a quadratic model of mean log r - sum alpha over alpha >= 0; at the
    solution the weights sum to one by themselves. A Hessian serves for further steps while each of
    them brings the KKT gap down to a tenth: a gradient costs a small part of it.

    Parameters
    ----------
    sums : callable
        `sums(alpha, with_hessian)` returns the :class:`LikelihoodSums`.
    start : ndarray of shape (n_centers,)
        Positive weights.
    tol : float
        Bound on the KKT gap, at which to stop.
    max_iter : int
        Bound on the number of steps.
    hessian : ndarray of shape (n_centers, n_centers), default=None
        A Hessian to begin with, of a problem nearby.
    """
    point = _Point(start, sums(start, False))
    if not point.sums.weight > 0:
        raise ValueError("no numerator row is within reach of any centre: widen the bandwidth.")
    # far away, a Newton step doubles a weight that is too small; one of EM's takes it there
    for _ in range(EM_STEPS):
        if point.kkt_gap <= EM_GAP:
            break
        alpha = point.alpha * point.sums.gradient / point.sums.weight
        point = _Point(alpha, sums(alpha, False))
    own = False  # whether the Hessian is the one at this point
    n_iter = 0
    while point.kkt_gap > tol and n_iter < max_iter:
        if hessian is None:
            hessian, own = sums(point.alpha, True).mean_hessian(), True
        target = nonnegative_newton_target(hessian, -point.slope, point.alpha)
        ahead, step = _line_search(sums, point, target)
        n_iter += 1
        if ahead is None and own:  # the limits of arithmetic: nothing improves
            break
        if ahead is None or step < 1 or ahead.kkt_gap > max(tol, 0.1 * point.kkt_gap):
            hessian = None
        point, own = ahead or point, False
    total = float(point.alpha.sum())
    sums_there = point.sums
    objective = (sums_there.log - sums_there.weight * np.log(total)) / sums_there.all_weight
    return Solution(point.alpha / total, float(objective), point.kkt_gap, n_iter, hessian)


def _line_search(
    sums: Callable[[Array, bool], LikelihoodSums], point: _Point, target: Array
) -> tuple[_Point | None, float]:
    """Go 1, 1/2, 1/4, ... of the way until that is better; also return how far it was.

    Better is a KKT gap of at most half, or the rise that Armijo's rule asks for: near the optimum
    values differ by less than their rounding, and far from it the gap need not fall.
    """
    direction = target - point.alpha
    rise = 1e-4 * float(point.slope @ direction)
    step = 1.0
    while step > 1e-10:
        alpha = point.alpha + step * direction
        ahead = _Point(alpha, sums(alpha, False))
        better = ahead.kkt_gap <= point.kkt_gap / 2 or ahead.value >= point.value + step * rise
        if better and np.isfinite(ahead.value):
            return ahead, step
        step /= 2
    return None, 0.0
