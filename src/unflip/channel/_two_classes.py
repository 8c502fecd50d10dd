"""Two classes: T has two free parameters, so that its distribution is found by quadrature.

At every pair of rates on a grid, the coefficients are integrated out as they are for more classes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from unflip._utils.typing import Floats
from unflip.channel._design import ChannelDesign
from unflip.channel._evidence import ChannelFit
from unflip.channel._maximise import at_matrix
from unflip.channel._rates import Box, GridSurface, RatePosterior, narrow
from unflip.channel._settings import SETTINGS
from unflip.noise import MAX_TOTAL_RATE


def two_rates(rates: Sequence[float] | Floats) -> Floats:
    """Return T of (rho_pos, rho_neg), the positive class last."""
    positive, negative = rates
    return np.array([[1 - negative, negative], [positive, 1 - positive]])


def rates_at(fit: ChannelFit) -> Floats:
    """Return (rho_pos, rho_neg) of a fit."""
    return np.array([fit.T[1, 0], fit.T[0, 1]])


def fit_at(
    design: ChannelDesign, rates: Sequence[float] | Floats, start: ChannelFit | None = None
) -> ChannelFit:
    """Return the maximum over the coefficients and variances at one pair of rates."""
    return at_matrix(design, two_rates(rates), start)


@dataclass(frozen=True)
class Quadrature:
    """The evidence as a function of the rates, and their distribution."""

    fits: list[ChannelFit]
    # The rates that have evidence.
    region: Box
    distribution: RatePosterior

    @property
    def best(self) -> ChannelFit:
        """The fit at the pair of the highest evidence."""
        return max(self.fits, key=_height)

    def at(self, rates: Sequence[float]) -> ChannelFit:
        """Return the maximum at any pair of rates."""
        near = nearest(self.fits, rates)
        return fit_at(near.design, rates, near)


def first_quadrature(design: ChannelDesign, box: Box) -> Quadrature:
    """Return the distribution of the rates within a box, by a coarse grid of all."""
    start = fit_at(design, np.clip(SETTINGS.starting_rate, *np.transpose(box)))
    return _distributed(explored(design, box, [start]), box)


def finer_quadrature(design: ChannelDesign, box: Box, before: Quadrature) -> Quadrature:
    """Return the distribution by a grid of the rates that have evidence on a coarser one.

    Parameters
    ----------
    design : ChannelDesign
        The features of the same rows, or of more.
    box : pair of pairs of floats
        The range of each rate.
    before : Quadrature
        The coarser one.
    """
    shares = [
        (high - low) / (most - least)
        for (low, high), (least, most) in zip(before.region, box, strict=True)
        if most > least
    ]
    is_wide = min(shares) >= SETTINGS.wide_region
    if is_wide and design is before.best.design:
        return before
    region = box if is_wide else before.region
    return _distributed(explored(design, region, before.fits), box, region)


def explored(design: ChannelDesign, region: Box, starts: list[ChannelFit]) -> list[ChannelFit]:
    """Return the fits at the pairs of a grid whose evidence is not negligible, and around them.

    The first pair is the nearest to the best known one. Each later one is a neighbour of the best
    pair that has any left, and its search starts from the nearest fit.
    """
    axes = _axes(region)
    places = np.argwhere(np.add.outer(*axes) <= MAX_TOTAL_RATE + 1e-9)
    rates = {(i, j): np.array([axes[0][i], axes[1][j]]) for i, j in places.tolist()}
    found: dict[tuple[int, int], ChannelFit] = {}
    best = rates_at(max(starts, key=_height))
    here = min(rates, key=lambda place: _distance(rates[place], best))
    while True:
        near = nearest([*found.values(), *starts], rates[here])
        found[here] = fit_at(design, rates[here], near)
        top = max(map(_height, found.values()))
        steps = [
            (_height(fit), place)
            for (i, j), fit in found.items()
            if _height(fit) > top - SETTINGS.explored_drop
            for place in product((i - 1, i, i + 1), (j - 1, j, j + 1))
            if place in rates and place not in found
        ]
        if not steps:
            return list(found.values())
        here = max(steps)[1]


def nearest(fits: list[ChannelFit], rates: Sequence[float] | Floats) -> ChannelFit:
    """Return the fit at the nearest rates."""
    return min(fits, key=lambda fit: _distance(rates_at(fit), rates))


def _height(fit: ChannelFit) -> float:
    return fit.log_likelihood


def _distance(one: Sequence[float] | Floats, other: Sequence[float] | Floats) -> float:
    return float(np.abs(np.subtract(one, other)).sum())


def _axes(box: Box) -> tuple[Floats, Floats]:
    """Return some values of each rate, or the one that is known; as many pairs either way."""
    n_free = sum(high > low for low, high in box)
    n_values = SETTINGS.grid_values ** (2 // max(n_free, 1))
    axes = [
        np.linspace(low, high, n_values) if high > low else np.array([low]) for low, high in box
    ]
    return axes[0], axes[1]


def _distributed(fits: list[ChannelFit], box: Box, region: Box | None = None) -> Quadrature:
    """Return the distribution of the rates, by the evidence at some pairs."""
    ordered = sorted(fits, key=lambda fit: tuple(rates_at(fit)))
    heights = np.array([fit.log_likelihood for fit in ordered])
    surface = GridSurface(np.array([rates_at(fit) for fit in ordered]), heights)
    if region is None:
        region = narrow(surface, box, margin=0.5 / SETTINGS.grid_values)
    origin = None
    if not any(low for low, _ in box):  # no noise is possible
        near = nearest(fits, (0.0, 0.0))
        origin = near if not rates_at(near).any() else fit_at(near.design, (0.0, 0.0), near)
    height = None if origin is None else origin.log_likelihood
    return Quadrature(fits, region, RatePosterior(surface, box, region, height))
