"""The evidence as a function of the rates, and the posterior distribution of the rates."""

from collections.abc import Sequence
from itertools import product

import numpy as np

from unflip._utils.typing import Floats
from unflip.channel import EXPLORED, NEGLIGIBLE, Box
from unflip.noise import LARGEST_TOTAL
from unflip.posterior._noisy_channel._evidence import (
    ChannelDesign,
    ChannelFit,
    Slope,
    evidence_slope,
    fit_channel,
)

GridFits = dict[tuple[float, float], list[ChannelFit]]
"""The fits of some models at pairs of rates."""

LAYER = 1e-3
"""Derivatives at a smaller rate do not extrapolate: rows with g near 0 or 1 lose information at
rates as small as g or 1-g."""


def explore(
    designs: Sequence[ChannelDesign],
    axes: tuple[Floats, Floats],
    known: Sequence[Sequence[ChannelFit]],
    tol: float,
) -> GridFits:
    """Fit models at the pairs of a grid where their evidence is not negligible, and around.

    The first pair is the nearest to the best known one. Each later one is a neighbour of the best
    pair that has any left, and its fits start at the nearest fits.
    """
    admissible = np.add.outer(*axes) <= LARGEST_TOTAL + 1e-9
    pairs = [(int(i), int(j)) for i, j in np.argwhere(admissible)]
    rates = {(i, j): np.array([axes[0][i], axes[1][j]]) for i, j in pairs}
    fits: dict[tuple[int, int], list[ChannelFit]] = {}
    heights: dict[tuple[int, int], float] = {}
    starts, depth = [*known], 0.0
    best = max(known, key=total_evidence)[0].rates
    here = min(pairs, key=lambda pair: _distance(rates[pair], best))
    while True:
        nearest = min(starts, key=lambda found: _distance(found[0].rates, rates[here]))
        fits[here] = [
            fit_channel(design, rates[here], start, tol * (1 + depth))
            for design, start in zip(designs, nearest, strict=True)
        ]
        starts.insert(0, fits[here])
        heights[here] = total_evidence(fits[here])
        top = max(heights.values())
        steps = [
            (height, pair)
            for (i, j), height in heights.items()
            if height > top - EXPLORED
            for pair in product((i - 1, i, i + 1), (j - 1, j, j + 1))
            if pair in rates and pair not in fits
        ]
        if not steps:
            break
        height, here = max(steps)
        depth = top - height
    return {(float(axes[0][i]), float(axes[1][j])): found for (i, j), found in fits.items()}


def _distance(one: Floats, other: Floats) -> float:
    return float(np.abs(one - other).sum())


def total_evidence(fits: Sequence[ChannelFit]) -> float:
    """Return the log of the total evidence of the models."""
    return float(np.logaddexp.reduce([fit.log_evidence for fit in fits]))


def climb(
    design: ChannelDesign, start: ChannelFit, box: Box, tol: float = 0.01, max_iter: int = 12
) -> tuple[ChannelFit, Slope]:
    """Maximise the evidence over the rates by Newton's method within their bounds."""
    low, high = np.transpose(box)
    low = np.minimum(np.maximum(low, LAYER), high)
    fit = fit_channel(design, _within(start.rates, low, high), start)
    for _ in range(max_iter):
        slope = evidence_slope(design, fit)
        gradient, curvature = slope.gradient, _positive(slope.curvature)
        free = ~((fit.rates <= low) & (gradient <= 0) | (fit.rates >= high) & (gradient >= 0))
        step = np.zeros(2)
        if free.any():
            step[free] = np.linalg.solve(curvature[np.ix_(free, free)], gradient[free])
        step *= min(1.0, 0.1 / max(np.abs(step).max(), 1e-12))
        for _ in range(3):
            step = _within(fit.rates + step, low, high) - fit.rates
            if gradient @ step < 2 * tol:
                return fit, slope
            moved = ChannelFit(fit.rates, fit.coef + slope.path @ step, fit.variance, -np.inf)
            trial = fit_channel(design, fit.rates + step, moved)
            if trial.log_evidence > fit.log_evidence:
                fit = trial
                break
            step /= 3
        else:
            return fit, slope
    return fit, evidence_slope(design, fit)


def _within(rates: Floats, low: Floats, high: Floats) -> Floats:
    """Return the rates clipped to their bounds, and to a sum of at most LARGEST_TOTAL."""
    inside = np.clip(rates, low, high)
    excess = inside.sum() - LARGEST_TOTAL
    if excess > 0:
        room = inside - low
        inside = inside - room * (excess / max(room.sum(), 1e-12))
    return np.asarray(inside)


def _positive(curvature: Floats, least: float = 10.0) -> Floats:
    """Return the nearest matrix with eigenvalues of at least `least`, as implied by the bounds."""
    values, vectors = np.linalg.eigh(curvature)
    return np.asarray((vectors * np.maximum(values, least)) @ vectors.T)


class QuadraticSurface:
    """The log-evidence around its maximum, from its derivatives there."""

    def __init__(self, fit: ChannelFit, slope: Slope) -> None:
        self.fit, self.gradient = fit, slope.gradient
        self.curvature = _positive(slope.curvature)

    def __call__(self, points: Floats) -> Floats:
        """Return the log-evidence at the points, of shape (n_points, 2)."""
        away = points - self.fit.rates
        bend = ((away @ self.curvature) * away).sum(axis=1)
        return np.asarray(self.fit.log_evidence + away @ self.gradient - 0.5 * bend)

    def region(self, box: Box) -> Box:
        """Return the part of the box where the evidence is not negligible."""
        sides = []
        reach = np.sqrt(2 * NEGLIGIBLE * np.diag(np.linalg.inv(self.curvature)))
        for rate, push, far, (low, high) in zip(
            self.fit.rates, np.abs(self.gradient), reach, box, strict=True
        ):
            if rate < max(low, LAYER) + 1e-9 or rate > high - 1e-9:
                # at a bound the evidence may decrease as exp(-push)
                far = min(far, 2 * NEGLIGIBLE / max(push, 1e-9))
            sides.append((max(low, rate - far), min(high, rate + far)))
        return sides[0], sides[1]


class MixedSurface:
    """The log of the mean evidence of several models, each around its maximum."""

    def __init__(self, surfaces: Sequence[QuadraticSurface]) -> None:
        self.surfaces = surfaces

    def __call__(self, points: Floats) -> Floats:
        """Return the log-evidence at the points, of shape (n_points, 2)."""
        heights = np.array([surface(points) for surface in self.surfaces])
        return np.asarray(np.logaddexp.reduce(heights, axis=0) - np.log(len(heights)))

    def region(self, box: Box) -> Box:
        """Return the part of the box where the evidence of a model is not negligible."""
        tops = np.array([surface.fit.log_evidence for surface in self.surfaces])
        regions = np.array([surface.region(box) for surface in self.surfaces])
        regions = regions[tops > tops.max() - NEGLIGIBLE]
        (a, c), (b, d) = regions[..., 0].min(axis=0), regions[..., 1].max(axis=0)
        return (float(a), float(b)), (float(c), float(d))
