"""Maximum likelihood of mixture weights by Newton's method, on sums over blocks of samples.

KLIEP in the weights alpha_l = b_l theta_l, with b = mean_den phi: maximise
mean_num log(sum_l alpha_l phi_l / b_l) over alpha >= 0 that sum to one.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from unflip._utils.gaussian_kernel import (
    GaussianBasis,
    row_blocks,
    weighted_gram,
    weighted_sum,
    worth_caching,
)
from unflip._utils.samples import Samples, TwoSamples
from unflip._utils.threads import by_threads
from unflip._utils.typing import Array, Rows
from unflip.density_ratio._newton import nonnegative_newton_target

LOG_TINY = float(np.log(1e-300))
"""Floor of log r, for samples that no basis function reaches."""

MIN_RATIO = 1e-15
"""Minimum ratio of a sample, relative to its largest basis function."""

MIN_SINGLE_MEAN = 1e-30
"""Below this mean of a basis function, single precision would underflow."""

EM_STEPS, EM_GAP = 2, 0.1
"""Number of initial EM steps, taken while the KKT gap is above EM_GAP."""


@dataclass(frozen=True)
class RelativeBlock:
    """psi_il = phi_il / (b_l exp(m_i)), at most 1 in each row, so that r_i = exp(m_i) psi_i alpha.

    Likelihoods depend on phi only through psi, which neither underflows nor overflows in float32.
    """

    psi: Array
    log_scale: Array
    """m_i."""
    weight: Array

    @classmethod
    def from_exponents(cls, exponents: Array, weight: Array, out: Array) -> "RelativeBlock":
        """Compute psi from log(phi / b), into `out`."""
        log_scale = exponents.max(axis=1)
        np.subtract(exponents, log_scale[:, None], out=out, casting="same_kind")
        return cls(np.exp(out, out=out), log_scale.astype(np.float64), weight)

    @classmethod
    def from_values(cls, phi: Array, weight: Array, dtype: DTypeLike) -> "RelativeBlock":
        """Compute psi from phi, with b = 1; a sample that underflowed to zeros is out of reach."""
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
        """Return the sums over the block at alpha."""
        ratio = (self.psi @ alpha.astype(self.psi.dtype)).astype(np.float64)
        reached = self.log_scale > LOG_TINY
        weight = self.weight if reached.all() else np.where(reached, self.weight, 0.0)
        # at the optimum psi_i alpha >= w_i / sum w: smaller is infeasible, and might overflow
        lost = ratio < MIN_RATIO
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
    """Sums over samples, which can be added over blocks in any order.

    Samples out of reach of all basis functions count only in `log`, with r = 1e-300.
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
            raise ValueError("the sums were computed without the Hessian.")
        return self.hessian / self.weight

    def scaled(self, columns: Array) -> "LikelihoodSums":
        """Return the sums for psi_l scaled by `columns`_l."""
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
    """The relative basis values of the numerator in blocks, cached if small, else recomputed."""

    def __init__(
        self,
        X: Rows,
        weight: Array,
        basis: GaussianBasis,
        dtype: DTypeLike,
        blocks: Sequence[RelativeBlock] = (),
        *,
        many_passes: bool = True,
    ) -> None:
        self.X, self.weight, self.basis, self.dtype = X, weight, basis, np.dtype(dtype)
        n_rows, n_centers = X.shape[0], basis.n_centers
        self._slices = list(row_blocks(n_rows, n_centers, basis.dtype.itemsize))
        keep = many_passes and worth_caching(n_rows, n_centers, self.dtype.itemsize)
        self._psi = np.empty((n_rows, n_centers), dtype=dtype) if keep and not blocks else None
        self._cached: list[RelativeBlock | None] = list(blocks) or [None] * len(self._slices)

    def sums(self, alpha: Array, hessian: bool) -> LikelihoodSums:
        """Return the sums over all samples."""
        parts = by_threads(
            lambda indices: sums_over(self._blocks(indices), alpha, hessian),
            len(self._cached),
            self.X.shape[0],
        )
        return reduce(add, parts)

    def _blocks(self, indices: slice) -> Iterator[RelativeBlock]:
        """Yield a range of blocks."""
        buffers: tuple[Array, Array] | None = None
        for k in range(indices.start, indices.stop):
            block = self._cached[k]
            if block is None:
                buffers = buffers or self._buffers()
                block = self._compute(self._slices[k], *buffers)
                if self._psi is not None:
                    self._cached[k] = block
            yield block

    def _buffers(self) -> tuple[Array, Array]:
        """Return buffers for the exponents and for the relative values of a block."""
        shape = self._slices[0].stop, self.basis.n_centers
        exponents = np.empty(shape, dtype=self.basis.dtype)
        return exponents, np.empty(shape, dtype=self.dtype)

    def _compute(self, rows: slice, exponents: Array, psi: Array) -> RelativeBlock:
        psi = psi[: rows.stop - rows.start] if self._psi is None else self._psi[rows]
        values = self.basis.exponents(self.X[rows], exponents)
        return RelativeBlock.from_exponents(values, self.weight[rows], psi)


def one_pass(
    samples: Samples, basis: GaussianBasis, *, single: bool
) -> tuple[Array, list[RelativeBlock]]:
    """Return mean_den phi and, with b = 1, the numerator's blocks if one pass gives both.

    One pass is enough if the numerator's samples are a part of the denominator's and can be cached;
    otherwise the list is empty. In single precision a second pass is cheaper than selecting
    samples.
    """
    keep = worth_caching(samples.n_num, basis.n_centers, basis.dtype.itemsize)
    if isinstance(samples, TwoSamples) and samples.num_mask is not None and keep and not single:
        return _mean_and_blocks(samples, samples.num_mask, basis)
    evaluated = basis.over(np.ones(basis.n_centers), single=True) if single else basis
    mean = samples.sum(_denominator_sum, evaluated) / samples.total_den
    if single and mean.min() < MIN_SINGLE_MEAN:
        return one_pass(samples, basis, single=False)
    return mean, []


def _mean_and_blocks(
    samples: TwoSamples, num_mask: Array, basis: GaussianBasis
) -> tuple[Array, list[RelativeBlock]]:
    total, blocks = np.zeros(basis.n_centers), []
    for rows, phi in basis.blocks(samples.den):
        weight, in_num = samples.weight_den[rows], num_mask[rows]
        total += weighted_sum(phi, weight)
        if in_num.any():
            blocks.append(RelativeBlock.from_values(phi[in_num], weight[in_num], phi.dtype))
    return total / samples.total_den, blocks


def _denominator_sum(
    rows: Rows, weight_num: Array, weight_den: Array, basis: GaussianBasis
) -> Array:
    """Return sum_i w_i phi_i over the denominator's samples of a block."""
    total = np.zeros(basis.n_centers)
    if weight_den.any():
        for some, phi in basis.blocks(rows):
            total += weighted_sum(phi, weight_den[some])
    return total


class OutOfCoreSums:
    """The sums over numerator samples out of memory, one pass per alpha.

    Every pass computes the Hessian too, which is cheaper than a second pass for it.
    """

    def __init__(self, samples: Samples, basis: GaussianBasis, dtype: DTypeLike) -> None:
        self.samples = samples
        self.shared = basis, np.dtype(dtype), samples.total_num / samples.n_num
        self._latest: tuple[Array, LikelihoodSums] | None = None

    def __call__(self, alpha: Array, hessian: bool) -> LikelihoodSums:
        """Return the sums, always with the Hessian."""
        if self._latest is None or not np.array_equal(self._latest[0], alpha):
            sums = self.samples.sum(_numerator_sums, (*self.shared, alpha))
            self._latest = alpha, sums
        return self._latest[1]


def _numerator_sums(
    rows: Rows,
    weight_num: Array,
    weight_den: Array,
    shared: tuple[GaussianBasis, np.dtype[Any], float, Array],
) -> LikelihoodSums:
    """Return the sums over the numerator's samples of a block."""
    basis, dtype, mean_weight, alpha = shared
    num = weight_num > 0
    if not num.any():
        p = alpha.size
        return LikelihoodSums(0.0, 0.0, 0.0, np.zeros(p), np.zeros((p, p)))
    weight = weight_num[num] / mean_weight
    return NumeratorRows(rows[num], weight, basis, dtype, many_passes=False).sums(alpha, True)


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
class MixtureWeights:
    """Mixture weights that sum to one, and their optimality."""

    alpha: Array
    objective: float
    """mean log r."""
    kkt_gap: float
    n_iter: int
    hessian: Array | None
    """The last Hessian, if it is good enough for a further step."""


def maximise(
    sums: Callable[[Array, bool], LikelihoodSums],
    start: Array,
    *,
    tol: float,
    max_iter: int,
    hessian: Array | None = None,
) -> MixtureWeights:
    """Maximise mean log r over alpha >= 0 that sum to one, by Newton's method.

    Each step maximises a quadratic model of mean log r - sum alpha over alpha >= 0; at the
    solution the weights sum to one. A Hessian is reused as long as each step reduces the KKT gap to
    a tenth, as a gradient is much cheaper.
    """
    point = _Point(start, sums(start, False))
    if not point.sums.weight > 0:
        raise ValueError("no numerator sample is within reach of a centre: use a wider bandwidth.")
    # far from the optimum, a Newton step at most doubles a small weight; an EM step does not
    for _ in range(EM_STEPS):
        if point.kkt_gap <= EM_GAP:
            break
        alpha = point.alpha * point.sums.gradient / point.sums.weight
        point = _Point(alpha, sums(alpha, False))
    fresh = False  # whether the Hessian was computed at this point
    n_iter = 0
    while point.kkt_gap > tol and n_iter < max_iter:
        if hessian is None:
            hessian, fresh = sums(point.alpha, True).mean_hessian(), True
        target = nonnegative_newton_target(hessian, -point.slope, point.alpha)
        ahead, step = _line_search(sums, point, target)
        n_iter += 1
        if ahead is None and fresh:  # rounding errors prevent further progress
            break
        if ahead is None or step < 1 or ahead.kkt_gap > max(tol, 0.1 * point.kkt_gap):
            hessian = None
        point, fresh = ahead or point, False
    total = float(point.alpha.sum())
    sums_there = point.sums
    objective = (sums_there.log - sums_there.weight * np.log(total)) / sums_there.all_weight
    return MixtureWeights(point.alpha / total, float(objective), point.kkt_gap, n_iter, hessian)


def _line_search(
    sums: Callable[[Array, bool], LikelihoodSums], point: _Point, target: Array
) -> tuple[_Point | None, float]:
    """Try steps of 1, 1/2, 1/4, ... until one is better; return the point and the step.

    A point is better if it halves the KKT gap or satisfies Armijo's rule. Near the optimum values
    differ by less than rounding errors, and far from it the gap need not decrease.
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
