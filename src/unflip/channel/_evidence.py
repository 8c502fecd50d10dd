r"""The noisy channel at given rates: P(noisy=+1 | x) = rho_neg + (1 - rho_pos - rho_neg) g(x).

g = sigmoid(t) is the clean posterior and t = F w is linear in features F that come in blocks, each
with a Gaussian prior of its own variance,

    w_j ~ N(0, s_b) for j in block b,    log(s_1 + s_2 + ...) ~ N(log 9, 1),

and the intercept (block 0) has the variance 0.3 (s_1 + s_2 + ... + 3). Here w and the variances are
found at given rates, with the evidence of the labels (w integrated out by Laplace's method) and its
derivatives in the rates.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve, solve_triangular
from scipy.special import expit

Floats = NDArray[np.float64]

LATENT_VARIANCE, LATENT_SPREAD = 9.0, 1.0
"""Median of the variance of t, and the standard deviation of its logarithm: logits of about +-3."""

SHARE_SPREAD = 0.3
"""Variance of the intercept beside the variance of t: clean class shares of about 0.5 +- 0.2."""

LEAST_VARIANCE, LARGEST_VARIANCE = 1e-2, 400.0

DAMPING = 0.5
"""Power of the factor by which a variance is to change: the plain fixed point swings."""

MOST_STEPS, MOST_CHORDS = 30, 5
"""Information matrices per fit, and steps with one of them."""


@dataclass(frozen=True)
class Design:
    """Rows as the channel sees them.

    Parameters
    ----------
    features : ndarray of shape (n_samples, n_features)
        F, whose first column is one.
    block : ndarray of shape (n_features,)
        The prior block of every column: 0 for the intercept, then 1, 2, ...
    positive : ndarray of bool of shape (n_samples,)
        Whether the noisy label is positive.
    weight : ndarray of shape (n_samples,)
        How often each row counts.
    """

    features: Floats
    block: NDArray[np.intp]
    positive: NDArray[np.bool_]
    weight: Floats

    def head(self, n_rows: int) -> "Design":
        """Return the first rows."""
        return Design(
            self.features[:n_rows], self.block, self.positive[:n_rows], self.weight[:n_rows]
        )


@dataclass(frozen=True)
class ChannelFit:
    """What is found at one pair of rates.

    Parameters
    ----------
    rates : ndarray of shape (2,)
        rho_pos, rho_neg.
    coef : ndarray of shape (n_features,)
        w at its maximum.
    variance : ndarray of shape (n_blocks,)
        The prior variance of each block.
    log_evidence : float
        log P(noisy labels | rates), up to a constant that all rates share.
    """

    rates: Floats
    coef: Floats
    variance: Floats
    log_evidence: float


def first_guess(design: Design) -> ChannelFit:
    """Return a start for :func:`fit_channel`: no features, the share of positive labels."""
    n_blocks = int(design.block.max())
    coef = np.zeros(design.block.size)
    share = np.clip(np.average(design.positive, weights=design.weight), 1e-3, 1 - 1e-3)
    coef[0] = np.log(share / (1 - share))
    variance = np.full(1 + n_blocks, LATENT_VARIANCE / n_blocks)
    variance[0] = SHARE_SPREAD * (LATENT_VARIANCE + 3)
    return ChannelFit(np.zeros(2), coef, variance, -np.inf)


class _Point:
    """The likelihood of one w, at given rates, and its derivatives by t.

    p_1 = (1 - rho_pos) g + rho_neg h and p_0 = rho_pos g + (1 - rho_neg) h are the probabilities of
    either label, with g = sigmoid(t) and h = 1 - g; gamma = P(true=+1 | x, noisy label).
    """

    def __init__(self, design: Design, rates: Floats, coef: Floats) -> None:
        (rho_pos, rho_neg), positive = rates, design.positive
        t = design.features @ coef
        self.g, self.h = g, h = expit(t), expit(-t)
        self.p_1, self.p_0 = (1 - rho_pos) * g + rho_neg * h, rho_pos * g + (1 - rho_neg) * h
        self.own = np.maximum(np.where(positive, self.p_1, self.p_0), 1e-300)
        self.gamma = np.where(positive, 1 - rho_pos, rho_pos) * g / self.own
        self.youden = 1 - rho_pos - rho_neg
        self.design, self.rates, self.coef = design, rates, coef

    def log_likelihood(self) -> float:
        return float(self.design.weight @ np.log(self.own))

    def gradient(self, precision: Floats) -> Floats:
        """d/dw: the labels pull by gamma - g, the prior by -w / s."""
        pull = self.design.weight * (self.gamma - self.g)
        return np.asarray(self.design.features.T @ pull - precision * self.coef)

    def expected_curvature(self) -> Floats:
        """Fisher's information about t, (d g h)^2 / (p_1 p_0), which is never negative."""
        return (self.youden * self.g * self.h) ** 2 / (self.p_1 * self.p_0)

    def observed_curvature(self) -> Floats:
        """-d^2/dt^2 of the log-likelihood."""
        return self.g * self.h - self.gamma * (1 - self.gamma)

    def information(self, curvature: Floats, precision: Floats) -> Floats:
        """F' diag(curvature) F + 1/s."""
        F, c = self.design.features, self.design.weight * curvature
        if (c >= 0).all():
            rooted = F * np.sqrt(c)[:, None]
            information = rooted.T @ rooted  # a symmetric product, at half the price
        else:
            information = (F * c[:, None]).T @ F
        information[np.diag_indices_from(information)] += precision
        return np.asarray(information)


def fit_channel(design: Design, rates: Any, start: ChannelFit, tol: float = 0.02) -> ChannelFit:
    """Maximise over w, and set the variances to where the evidence is stationary.

    Fisher scoring in w; between its steps, each variance is set by MacKay's fixed point. An
    information matrix serves for several steps, because it costs more than all of them.

    Parameters
    ----------
    design : Design
        The noisy data.
    rates : array-like of shape (2,)
        rho_pos, rho_neg.
    start : ChannelFit
        Where to begin: a fit at rates near by, or :func:`first_guess`.
    tol : float, default=0.02
        Of the log-evidence.
    """
    rates = np.asarray(rates, dtype=float)
    variance, before = start.variance, -np.inf
    precision = 1 / variance[design.block]
    point = _Point(design, rates, start.coef)
    for _ in range(MOST_STEPS):
        factor = _factor(point.information(point.expected_curvature(), precision))
        evidence = _log_evidence(point, precision, variance, factor)
        point, decrement = _ascend(point, precision, factor, tol / 4)
        if abs(evidence - before) < tol and decrement < tol:
            break
        before = evidence
        variance = _updated_variance(point, variance, precision, factor)
        precision = 1 / variance[design.block]
    return ChannelFit(rates, point.coef, variance, evidence + decrement / 2)


def refit_coef(
    design: Design, rates: Any, start: ChannelFit, tol: float = 1e-10, most_steps: int = 100
) -> ChannelFit:
    """Maximise over w with the variances as they are.

    Parameters
    ----------
    design, rates, start : Design, array-like, ChannelFit
        As for :func:`fit_channel`.
    tol : float, default=1e-10
        Of the penalised log-likelihood.
    most_steps : int, default=100
        Information matrices.
    """
    precision = 1 / start.variance[design.block]
    point = _Point(design, np.asarray(rates, dtype=float), start.coef)
    for _ in range(most_steps):
        factor = _factor(point.information(point.expected_curvature(), precision))
        point, decrement = _ascend(point, precision, factor, tol)
        if decrement < tol:
            break
    factor = _factor(point.information(point.expected_curvature(), precision))
    evidence = _log_evidence(point, precision, start.variance, factor)
    return ChannelFit(point.rates, point.coef, start.variance, evidence)


def information_factor(design: Design, fit: ChannelFit) -> Floats:
    """Return L with L L' = A, the inverse covariance of w given the labels (Laplace).

    Parameters
    ----------
    design : Design
        The data of the fit.
    fit : ChannelFit
        A fit.
    """
    point = _Point(design, fit.rates, fit.coef)
    precision = 1 / fit.variance[design.block]
    return np.tril(_factor(point.information(point.expected_curvature(), precision)))


def mean_sigmoid(features: Floats, coef: Floats, factor: Floats) -> Floats:
    r"""Return the mean of sigmoid(F w) over w ~ N(coef, (L L')^-1).

    MacKay's approximation: sigmoid(t / sqrt(1 + pi v / 8)), v the variance of t.

    Parameters
    ----------
    features : ndarray of shape (n_samples, n_features)
        F.
    coef : ndarray of shape (n_features,)
        The mean of w.
    factor : ndarray of shape (n_features, n_features)
        L.
    """
    roots = solve_triangular(factor, features.T, lower=True, check_finite=False)
    variance = (roots**2).sum(axis=0)
    return np.asarray(expit(features @ coef / np.sqrt(1 + np.pi / 8 * variance)))


def _factor(information: Floats) -> Floats:
    return np.asarray(cho_factor(information, lower=True, check_finite=False)[0])


def _solve(factor: Floats, right: Floats) -> Floats:
    return np.asarray(cho_solve((factor, True), right, check_finite=False))


def _penalised(point: _Point, precision: Floats) -> float:
    return point.log_likelihood() - 0.5 * float(precision @ point.coef**2)


def _log_evidence(point: _Point, precision: Floats, variance: Floats, factor: Floats) -> float:
    """log-likelihood + log-prior - half the log-determinants, and the prior of the variances."""
    half_determinant = np.log(np.diag(factor)).sum() - 0.5 * np.log(precision).sum()
    surprise = np.log(variance[1:].sum() / LATENT_VARIANCE) / LATENT_SPREAD
    return _penalised(point, precision) - float(half_determinant + 0.5 * surprise**2)


def _ascend(point: _Point, precision: Floats, factor: Floats, tol: float) -> tuple[_Point, float]:
    """Return the point after some steps, and what a further step promises, twice.

    Conjugate gradients with the information matrix as preconditioner (Polak and Ribière): a plain
    step overshoots where the observed curvature is above the expected one.
    """
    value = _penalised(point, precision)
    direction = last_gradient = np.zeros_like(point.coef)
    last_decrement = np.inf
    for _ in range(MOST_CHORDS):
        gradient = point.gradient(precision)
        step = _solve(factor, gradient)
        decrement = float(gradient @ step)
        if decrement < tol:
            break
        share = max(0.0, float((gradient - last_gradient) @ step) / last_decrement)
        direction = step + share * direction
        slope = float(gradient @ direction)
        if slope <= 0:
            direction, slope = step, decrement
        trial, reached = _line_search(point, precision, direction, slope, value)
        if reached <= value:
            break
        point, value, last_gradient, last_decrement = trial, reached, gradient, decrement
    return point, decrement


def _line_search(
    point: _Point, precision: Floats, direction: Floats, slope: float, value: float
) -> tuple[_Point, float]:
    """Return a higher point along the direction: of length one, or at the top of a parabola."""

    def at(length: float) -> tuple[_Point, float]:
        trial = _Point(point.design, point.rates, point.coef + length * direction)
        return trial, _penalised(trial, precision)

    length = 1.0
    trial, reached = at(length)
    for _ in range(12):
        bend = (slope * length - (reached - value)) / length**2
        best = slope / (2 * bend) if bend > 0 else 3 * length
        best = float(np.clip(best, 0.1 * length, 3 * length))
        if reached > value and 0.7 < best / length < 1.5:
            break
        other, other_reached = at(best)
        if other_reached <= reached and reached > value:
            break
        length, trial, reached = best, other, other_reached
        if reached > value:
            break
    return trial, reached


def _updated_variance(point: _Point, variance: Floats, precision: Floats, factor: Floats) -> Floats:
    """Return s_b = |w_b|^2 / (number of well-determined w in the block + pull of the prior)."""
    spread = np.diag(_solve(factor, np.eye(precision.size)))
    determined = 1 - precision * spread
    total = variance[1:].sum()
    prior_pull = 2 * np.log(total / LATENT_VARIANCE) / LATENT_SPREAD**2 / total
    updated = variance.copy()
    for b in range(1, variance.size):
        columns = point.design.block == b
        used = max(float(determined[columns].sum()), 0.0)
        size = float(point.coef[columns] @ point.coef[columns]) + 1e-3
        aim = size / max(used + prior_pull * variance[b], 0.1 * used + 1e-3)
        factor_of_change = np.clip(aim / variance[b], 1 / 8, 8) ** DAMPING
        updated[b] = np.clip(variance[b] * factor_of_change, LEAST_VARIANCE, LARGEST_VARIANCE)
    updated[0] = SHARE_SPREAD * (updated[1:].sum() + 3)
    return updated


@dataclass(frozen=True)
class Slope:
    """How the evidence changes with the rates.

    Parameters
    ----------
    gradient : ndarray of shape (2,)
        d log-evidence / d (rho_pos, rho_neg), at given variances.
    curvature : ndarray of shape (2, 2)
        Minus the second derivative of the log-likelihood maximised over w.
    path : ndarray of shape (n_features, 2)
        dw / d (rho_pos, rho_neg) along that maximum.
    """

    gradient: Floats
    curvature: Floats
    path: Floats


def evidence_slope(design: Design, fit: ChannelFit) -> Slope:
    r"""Return the derivatives of the log-evidence in the rates, exact where w is at its maximum.

    The likelihood contributes its own derivative only, w being at a maximum; the log-determinant
    contributes -1/2 sum_i l_i dW_i, with l_i = F_i A^-1 F_i' and W_i the expected curvature, which
    moves with the rates and with w.

    Parameters
    ----------
    design : Design
        The data of the fit.
    fit : ChannelFit
        A fit at the rates in question.
    """
    precision = 1 / fit.variance[design.block]
    point = _Point(design, fit.rates, fit.coef)
    F, weight, positive = design.features, design.weight, design.positive
    (rho_pos, rho_neg), g, h, own = fit.rates, point.g, point.h, point.own
    expected = point.expected_curvature()
    factor = _factor(point.information(expected, precision))
    try:
        observed = _factor(point.information(point.observed_curvature(), precision))
    except LinAlgError:  # no maximum in w: the expected information stands in
        observed = factor
    # d p_own / d rates, and d gamma / d rates
    moves = np.where(positive, -1.0, 1.0)[:, None] * np.column_stack([g, -h])
    blend = (
        np.where(positive[:, None], [-rho_neg, -(1 - rho_pos)], [1 - rho_neg, rho_pos])
        * (g * h / own**2)[:, None]
    )
    mixed = F.T @ (weight[:, None] * blend)
    path = _solve(observed, mixed)
    scaled = moves / own[:, None]
    curvature = (scaled * weight[:, None]).T @ scaled - mixed.T @ path
    odds = 1 / point.p_1 - 1 / point.p_0
    by_t = 2 * (h - g) - point.youden * g * h * odds
    by_rates = -2 / point.youden + np.column_stack([g, -h]) * odds[:, None]
    leverage = (solve_triangular(factor, F.T, lower=True, check_finite=False) ** 2).sum(axis=0)
    drift = by_rates + by_t[:, None] * (F @ path)
    gradient = weight @ scaled - 0.5 * (weight * leverage * expected) @ drift
    return Slope(gradient, curvature, path)
