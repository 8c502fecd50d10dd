r"""The noisy channel at given rates: P(noisy=+1 | x) = rho_neg + (1 - rho_pos - rho_neg) g(x).

g = sigmoid(t) is the clean posterior and t = F w is linear in features F. They form blocks, each
with a Gaussian prior of its own variance,

    w_j ~ N(0, s_b) for j in block b,    log(s_1 + s_2 + ...) ~ N(log 9, 1),

and the intercept (block 0) has the variance 0.3 (s_1 + s_2 + ... + 3). This module estimates w and
the variances at given rates, the evidence of the labels (w integrated out by Laplace's method) and
its derivatives with respect to the rates.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, solve_triangular
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs
from scipy.special import expit

from unflip._utils.typing import Floats, Singles
from unflip.channel import (
    LATENT_VARIANCE,
    MAX_VARIANCE,
    MIN_VARIANCE,
    TINY,
    VARIANCE_OFFSET,
    singles,
)

LATENT_SPREAD = 1.0
"""Standard deviation of the logarithm of the variance of t."""

SHARE_SPREAD = 0.3
"""Variance of the intercept relative to that of t: clean class shares of about 0.5 +- 0.2."""

MAX_STEP, MIN_CURVATURE = 1.0, 0.1
"""Newton's method for a variance s works in log(s + 0.5), with bounded steps and curvature: in
log s, a block with a tiny variance would need many steps to grow again."""

MAX_MATRICES, MAX_CHORDS, ENOUGH = 30, 5, 0.03
"""Maximum number of information matrices per fit and of steps with one matrix, and the share of the
first predicted gain at which these steps stop."""

MAX_LEVERAGE = 0.95
"""Upper bound of a row's share in its own t, when it is left out."""


@dataclass(frozen=True)
class ChannelDesign:
    """Features, noisy labels and weights."""

    # F, whose first column is one.
    features: Floats
    # The prior block of every column: 0 for the intercept, then 1, 2, ...
    block: NDArray[np.intp]
    # Whether the noisy label is positive.
    positive: NDArray[np.bool_]
    # Weight of each row.
    weight: Floats

    @cached_property
    def single(self) -> Singles:
        """F in single precision."""
        return singles(self.features)

    def head(self, n_rows: int) -> "ChannelDesign":
        """Return the first rows."""
        return self.where(slice(n_rows))

    def where(self, rows: slice | NDArray[np.bool_]) -> "ChannelDesign":
        """Return some of the rows."""
        return ChannelDesign(
            self.features[rows], self.block, self.positive[rows], self.weight[rows]
        )


@dataclass(frozen=True)
class ChannelFit:
    """The fit at one pair of rates."""

    rates: Floats
    # w at its maximum.
    coef: Floats
    # The prior variance of each block.
    variance: Floats
    # log P(noisy labels | rates), up to a constant independent of the rates.
    log_evidence: float


def first_guess(design: ChannelDesign) -> ChannelFit:
    """Return a start for :func:`fit_channel`: the share of positive labels, without features."""
    n_blocks = int(design.block.max())
    coef = np.zeros(design.block.size)
    share = np.clip(np.average(design.positive, weights=design.weight), 1e-3, 1 - 1e-3)
    coef[0] = np.log(share / (1 - share))
    variance = np.full(1 + n_blocks, LATENT_VARIANCE / n_blocks)
    variance[0] = SHARE_SPREAD * (LATENT_VARIANCE + 3)
    return ChannelFit(np.zeros(2), coef, variance, -np.inf)


class _ChannelPoint:
    """The likelihood of one w at given rates, and its derivatives with respect to t.

    p_1 = (1 - rho_pos) g + rho_neg h and p_0 = rho_pos g + (1 - rho_neg) h are the probabilities of
    the labels, with g = sigmoid(t) and h = 1 - g; gamma = P(true=+1 | x, noisy label).
    """

    def __init__(self, design: ChannelDesign, rates: Floats, coef: Floats) -> None:
        (rho_pos, rho_neg), positive = rates, design.positive
        self.design, self.rates, self.information_left = design, rates, 1 - rho_pos - rho_neg
        self.if_positive = np.where(positive, 1 - rho_pos, rho_pos)
        self.if_negative = np.where(positive, rho_neg, 1 - rho_neg)
        self._move(coef)

    def _move(self, coef: Floats) -> None:
        t = self.design.features @ coef
        small = np.exp(-np.abs(t))
        large = 1 / (1 + small)
        small *= large
        up = t > 0
        self.coef, self.g, self.h = coef, np.where(up, large, small), np.where(up, small, large)
        self.p_given = np.maximum(self.if_positive * self.g + self.if_negative * self.h, TINY)

    def moved(self, coef: Floats) -> Self:
        """Return the point at another w."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other._move(coef)
        return other

    @property
    def gamma(self) -> Floats:
        return self.if_positive * self.g / self.p_given

    @property
    def p_1(self) -> Floats:
        return np.maximum((1 - self.rates[0]) * self.g + self.rates[1] * self.h, TINY)

    @property
    def p_0(self) -> Floats:
        return np.maximum(self.rates[0] * self.g + (1 - self.rates[1]) * self.h, TINY)

    def penalised(self, precision: Floats) -> float:
        """Return the sum of log-likelihood and log-prior of w, up to a constant."""
        log_likelihood = self.design.weight @ np.log(self.p_given)
        return float(log_likelihood - 0.5 * (precision @ self.coef**2))

    def gradient(self, precision: Floats) -> Floats:
        """Return d/dw: F'(gamma - g) of the labels, -w / s of the prior."""
        residual = self.design.weight * (self.gamma - self.g)
        return np.asarray(self.design.features.T @ residual - precision * self.coef)

    def expected_curvature(self) -> Floats:
        """Return the Fisher information about t, (d g h)^2 / (p_1 p_0) >= 0."""
        return (self.information_left * self.g * self.h) ** 2 / (self.p_1 * self.p_0)

    def observed_curvature(self) -> Floats:
        """Return -d^2/dt^2 of the log-likelihood."""
        gamma = self.gamma
        return self.g * self.h - gamma * (1 - gamma)

    def information(self, curvature: Floats, precision: Floats) -> Floats:
        """Return F' diag(curvature) F + 1/s."""
        F, c = self.design.features, self.design.weight * curvature
        if (c >= 0).all():
            rooted = self.design.single * singles(np.sqrt(c))[:, None]
            # a symmetric product costs half, and half of that in single precision
            information = (rooted.T @ rooted).astype(float)
        else:
            information = (F * c[:, None]).T @ F
        information.flat[:: precision.size + 1] += precision
        return np.asarray(information)


def fit_channel(
    design: ChannelDesign, rates: Any, start: ChannelFit, tol: float = 0.02
) -> ChannelFit:
    """Maximise over w, with the variances at a stationary point of the evidence.

    Fisher scoring in w alternates with Newton's method for MacKay's fixed point of the variances.
    An information matrix is reused for several steps, as it is the most expensive part.
    """
    updated = start.variance
    point = _ChannelPoint(design, np.asarray(rates, dtype=float), start.coef)
    last = np.zeros(updated.size - 1)
    limit = np.full(last.size, MAX_STEP)
    for _ in range(MAX_MATRICES):
        variance = updated
        precision = 1 / variance[design.block]
        before = point.penalised(precision)
        factor = _factor(point.information(point.expected_curvature(), precision))
        point, value, decrement = _ascend(point, before, precision, factor, tol / 4)
        step, slope, moves = _variance_step(point, variance, precision, factor)
        limit = np.where(step * last < 0, np.abs(last) / 2, limit)  # the last step went too far
        updated = _changed(variance, np.clip(step, -limit, limit))
        last = np.log((updated + VARIANCE_OFFSET) / (variance + VARIANCE_OFFSET))[1:]
        gain = float(slope @ last) / 2
        # conservative: the slope ignores that the factor changes with w
        if max(2 * abs(gain), decrement, (value - before) / 5) < tol:
            break
        change = np.clip(np.log(updated[1:] / variance[1:]), -1, 1)
        point = point.moved(point.coef + moves @ change)
    factor = _factor(point.information(point.expected_curvature(), precision))
    evidence = _log_evidence(value + decrement / 2, precision, variance, factor)
    return ChannelFit(point.rates, point.coef, variance, evidence + gain)


def refit_coef(
    design: ChannelDesign, rates: Any, start: ChannelFit, tol: float = 1e-10, max_iter: int = 100
) -> ChannelFit:
    """Maximise over w with fixed variances."""
    precision = 1 / start.variance[design.block]
    point = _ChannelPoint(design, np.asarray(rates, dtype=float), start.coef)
    for _ in range(max_iter):
        factor = _factor(point.information(point.expected_curvature(), precision))
        point, value, decrement = _ascend(point, point.penalised(precision), precision, factor, tol)
        if decrement < tol:
            break
    factor = _factor(point.information(point.expected_curvature(), precision))
    evidence = _log_evidence(value, precision, start.variance, factor)
    return ChannelFit(point.rates, point.coef, start.variance, evidence)


def information_factor(design: ChannelDesign, fit: ChannelFit) -> Floats:
    """Return L with L L' = A, the inverse covariance of w given the labels (Laplace)."""
    point = _ChannelPoint(design, fit.rates, fit.coef)
    precision = 1 / fit.variance[design.block]
    return _factor(point.information(point.expected_curvature(), precision))


def mean_sigmoid(features: Floats, coef: Floats, factor: Floats) -> Floats:
    r"""Return the mean of sigmoid(F w) over w ~ N(coef, (L L')^-1).

    MacKay's approximation: sigmoid(t / sqrt(1 + pi v / 8)), v the variance of t.
    """
    roots = solve_triangular(factor, features.T, lower=True, check_finite=False)
    variance = (roots**2).sum(axis=0)
    return np.asarray(expit(features @ coef / np.sqrt(1 + np.pi / 8 * variance)))


def leave_one_out(units: ChannelDesign, fit: ChannelFit, factor: Floats) -> Floats:
    r"""Return P(true=+1 | x) of rows of the fit, each without its own label.

    One step of Newton's method from the fit: t_i - v_i r_i / (1 - c_i v_i), with v the variance of
    t, r the slope and c the expected curvature of a row's log-likelihood.
    """
    point = _ChannelPoint(units, fit.rates, fit.coef)
    roots = solve_triangular(factor, units.features.T, lower=True, check_finite=False)
    variance = (roots**2).sum(axis=0)
    own = np.minimum(units.weight, 1.0)  # one row, however often it counts
    left = 1 - np.minimum(own * point.expected_curvature() * variance, MAX_LEVERAGE)
    variance /= left
    t = units.features @ fit.coef - variance * own * (point.gamma - point.g)
    return np.asarray(expit(t / np.sqrt(1 + np.pi / 8 * variance)))


def _factor(information: Floats) -> Floats:
    """Return the Cholesky factor by LAPACK, as wrappers are slow for small matrices."""
    factor, failed = dpotrf(information.T, lower=True, overwrite_a=True)
    if failed:
        raise LinAlgError("the information matrix is not positive definite")
    return np.asarray(factor)


def _solve(factor: Floats, right: Floats) -> Floats:
    return np.asarray(dpotrs(factor, right, lower=True)[0])


def _log_evidence(penalised: float, precision: Floats, variance: Floats, factor: Floats) -> float:
    """Return penalised log-likelihood - half the log-determinants + log-prior of the variances."""
    half_determinant = np.log(np.diag(factor)).sum() - 0.5 * np.log(precision).sum()
    surprise = np.log(variance[1:].sum() / LATENT_VARIANCE) / LATENT_SPREAD
    return penalised - float(half_determinant + 0.5 * surprise**2)


def _ascend(
    point: _ChannelPoint, value: float, precision: Floats, factor: Floats, tol: float
) -> tuple[_ChannelPoint, float, float]:
    """Return the point after some steps, its value, and twice the predicted gain of a further step.

    Conjugate gradients with the information matrix as preconditioner (Polak and Ribière): a plain
    step overshoots where the observed curvature exceeds the expected one.
    """
    direction = last_gradient = np.zeros_like(point.coef)
    last_decrement = np.inf
    for _ in range(MAX_CHORDS):
        gradient = point.gradient(precision)
        step = _solve(factor, gradient)
        decrement = float(gradient @ step)
        if decrement < tol:
            break
        tol = max(tol, ENOUGH * min(decrement, last_decrement))
        share = max(0.0, float((gradient - last_gradient) @ step) / last_decrement)
        direction = step + share * direction
        slope = float(gradient @ direction)
        if slope <= 0:
            direction, slope = step, decrement
        trial, reached = _line_search(point, precision, direction, slope, value)
        if reached <= value:
            break
        point, value, last_gradient, last_decrement = trial, reached, gradient, decrement
    return point, value, decrement


def _line_search(
    point: _ChannelPoint, precision: Floats, direction: Floats, slope: float, value: float
) -> tuple[_ChannelPoint, float]:
    """Return a better point along the direction: at length 1, or at the maximum of a parabola."""

    def at(length: float) -> tuple[_ChannelPoint, float]:
        trial = point.moved(point.coef + length * direction)
        return trial, trial.penalised(precision)

    length = 1.0
    trial, reached = at(length)
    for _ in range(12):
        bend = (slope * length - (reached - value)) / length**2
        best = slope / (2 * bend) if bend > 0 else 3 * length
        best = min(max(best, 0.1 * length), 3 * length)
        if reached > value and 0.7 < best / length < 1.5:
            break
        other, other_reached = at(best)
        if other_reached <= reached and reached > value:
            break
        length, trial, reached = best, other, other_reached
        if reached > value:
            break
    return trial, reached


def _variance_step(
    point: _ChannelPoint, variance: Floats, precision: Floats, factor: Floats
) -> tuple[Floats, Floats, Floats]:
    """Return Newton's step in log(s + 0.5), the slope of the evidence, and dw / d log s.

    With A the information and P_b = 1/s_b within block b, the slope in log s_b is half of
    w' P_b w + tr(A^-1 P_b) - (columns of b), plus that of the prior; dw / d log s_b = A^-1 P_b w.
    """
    block, s = point.design.block, variance[1:]
    P = precision[:, None] * (block[:, None] == np.arange(1, variance.size))
    pull = point.coef[:, None] * P
    moves = _solve(factor, pull)
    half = np.asarray(dpotri(factor, lower=True)[0])  # the lower triangle of A^-1
    spread = np.diag(half)
    size = point.coef @ pull + spread @ P
    share, surprise = s / s.sum(), np.log(s.sum() / LATENT_VARIANCE) / LATENT_SPREAD**2
    slope = (size - np.bincount(block)[1:]) / 2 - surprise * share
    squares = P.T @ half**2 @ P
    squares += squares.T - (P.T * spread**2) @ P
    bend = np.diag(size / 2 + surprise * share) - pull.T @ moves - squares / 2
    bend += (1 / LATENT_SPREAD**2 - surprise) * np.outer(share, share)
    stretch = 1 + VARIANCE_OFFSET / s  # d log s / d log(s + 0.5)
    bend = bend * np.outer(stretch, stretch) + np.diag(slope * stretch * (stretch - 1))
    slope = slope * stretch
    values, vectors = np.linalg.eigh(bend)
    step = vectors @ (vectors.T @ slope / np.maximum(np.abs(values), MIN_CURVATURE))
    return step, slope, moves


def _changed(variance: Floats, step: Floats) -> Floats:
    """Return the variances after a step in log(s + 0.5), within their bounds."""
    blocks = (variance[1:] + VARIANCE_OFFSET) * np.exp(step) - VARIANCE_OFFSET
    blocks = np.clip(blocks, MIN_VARIANCE, MAX_VARIANCE)
    return np.append(SHARE_SPREAD * (blocks.sum() + 3), blocks)


@dataclass(frozen=True)
class Slope:
    """Derivatives of the evidence with respect to the rates."""

    # d log-evidence / d (rho_pos, rho_neg), at given variances.
    gradient: Floats
    # Minus the second derivative of the log-likelihood maximised over w.
    curvature: Floats
    # dw / d (rho_pos, rho_neg) along that maximum.
    path: Floats


def evidence_slope(design: ChannelDesign, fit: ChannelFit) -> Slope:
    r"""Return the derivatives of the log-evidence in the rates, exact if w is at its maximum.

    w is at a maximum, so the likelihood contributes only its partial derivative. The
    log-determinant contributes -1/2 sum_i l_i dW_i, with l_i = F_i A^-1 F_i' and W_i the expected
    curvature, which depends on the rates and on w.
    """
    precision = 1 / fit.variance[design.block]
    point = _ChannelPoint(design, fit.rates, fit.coef)
    F, weight, positive = design.features, design.weight, design.positive
    (rho_pos, rho_neg), g, h, p_given = fit.rates, point.g, point.h, point.p_given
    expected = point.expected_curvature()
    factor = _factor(point.information(expected, precision))
    try:
        observed = _factor(point.information(point.observed_curvature(), precision))
    except LinAlgError:  # w is not at a maximum: use the expected information
        observed = factor
    # d p_given / d rates, and d gamma / d rates
    moves = np.where(positive, -1.0, 1.0)[:, None] * np.column_stack([g, -h])
    blend = (
        np.where(positive[:, None], [-rho_neg, -(1 - rho_pos)], [1 - rho_neg, rho_pos])
        * (g * h / p_given**2)[:, None]
    )
    mixed = F.T @ (weight[:, None] * blend)
    path = _solve(observed, mixed)
    scaled = moves / p_given[:, None]
    curvature = (scaled * weight[:, None]).T @ scaled - mixed.T @ path
    odds = 1 / point.p_1 - 1 / point.p_0
    by_t = 2 * (h - g) - point.information_left * g * h * odds
    by_rates = -2 / point.information_left + np.column_stack([g, -h]) * odds[:, None]
    leverage = (solve_triangular(factor, F.T, lower=True, check_finite=False) ** 2).sum(axis=0)
    drift = by_rates + by_t[:, None] * (F @ path)
    gradient = weight @ scaled - 0.5 * (weight * leverage * expected) @ drift
    return Slope(gradient, curvature, path)
