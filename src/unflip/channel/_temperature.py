r"""Temperature scaling: the factor of the logits at which held-out labels are likeliest.

With few rows of a class the distribution of w is skewed: labels become less likely more slowly with
a larger w than with a smaller one. So its maximum is nearer to zero than its mean, g is too flat,
and what it is too flat for seems to be noise. Labels of rows that were left out tell by how much:

    P(noisy | x) = softmax(a t(x)) T,    a >= 1,

with t(x) without the row's own label, and T found anew along with a.
"""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from unflip._utils.typing import Floats
from unflip.channel._design import ChannelDesign, softmax_over_classes
from unflip.channel._determinant import leverages
from unflip.channel._evidence import ChannelFit
from unflip.channel._settings import SETTINGS
from unflip.channel._structure import NoiseStructure


@dataclass(frozen=True)
class TemperatureScaling:
    """What held-out labels say."""

    # a; 1 where they do not say more.
    factor: float
    # The parameters of T.
    theta: Floats
    # By how much they move with one standard deviation of log a.
    spread: Floats


def held_out_logits(fit: ChannelFit, most_rows: int | None = None) -> Floats:
    """Return t of every row without its own label: one step of Newton's method."""
    some = slice(most_rows)
    U, given, clean = fit.directions, fit.label_posterior, fit.clean
    given, clean = given[some], clean[some]
    own = np.minimum(fit.design.weight[some], 1.0)[:, None]  # one row, however often it counts
    leverage = leverages(fit.design.single[some], fit.unscaled_roots).T
    # a row that looks mislabelled holds less than none: the fit would move on without it
    curvature = _spread(clean, U) - _spread(given, U)
    held = np.minimum(own * leverage * curvature, SETTINGS.largest_leverage)
    moved = (own * leverage * ((given - clean) @ U) / (1 - held)) @ U.T
    return np.asarray(fit.design.logits(fit.unscaled_coef, some).T - moved)


def _spread(proba: Floats, directions: Floats) -> Floats:
    """Return the variance of every direction's entry of a class drawn by its probability."""
    return np.asarray(proba @ directions**2 - (proba @ directions) ** 2)


def temperature_scaling(
    logits: Floats,
    design: ChannelDesign,
    structure: NoiseStructure,
    theta: Floats,
    T: Floats | None = None,
) -> TemperatureScaling:
    """Return a, and the parameters of T, at which held-out labels are likeliest."""
    t = np.ascontiguousarray(logits.T)

    def loss(x: Floats) -> tuple[float, Floats]:
        a, there = np.exp(x[0]), x[1:]
        matrix = structure.matrix(there) if T is None else T
        g = softmax_over_classes(a * t)
        gamma = g * matrix[:, design.codes]
        p = np.maximum(gamma.sum(axis=0), SETTINGS.smallest_probability)
        gamma /= p
        by_a = a * float((((gamma - g) * t).sum(axis=0)) @ design.weight)
        value, slope = float(design.weight @ np.log(p)), np.zeros(0)
        if T is None:
            prior, of_prior, _ = structure.log_prior(there)
            value += prior
            slope = structure.gradient(design.counts(gamma.T), there) + of_prior
        return -value, -np.append(by_a, slope)

    free = theta if T is None else np.zeros(0)

    def highest(least: float, most: float) -> tuple[float, Floats]:
        bounds = [(least, most), *[(-SETTINGS.largest_logit, SETTINGS.largest_logit)] * free.size]
        start = np.append(least, free)
        found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds)
        return -float(found.fun), found.x

    plain, _ = highest(0.0, 0.0)
    best, x = highest(0.0, float(np.log(SETTINGS.largest_factor)))
    if best - plain < SETTINGS.factor_gain:
        return TemperatureScaling(1.0, theta, np.zeros(theta.size))
    factor = float(np.exp(x[0]))
    if T is not None:
        return TemperatureScaling(factor, theta, np.zeros(theta.size))
    step, widest = SETTINGS.log_factor_step, SETTINGS.largest_log_factor_deviation
    (below, low), (above, high) = (highest(end, end) for end in (x[0] - step, x[0] + step))
    bend = max((2 * best - below - above) / step**2, 1 / widest**2)
    return TemperatureScaling(factor, x[1:], (high - low)[1:] / (2 * step) / np.sqrt(bend))
