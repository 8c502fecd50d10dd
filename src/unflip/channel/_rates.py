"""The distribution of two rates given the labels, by quadrature over a grid of them."""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.interpolate import Akima1DInterpolator, CloughTocher2DInterpolator
from scipy.stats import chi2

from unflip._utils.typing import Floats
from unflip.channel._outcomes import EvidenceTest
from unflip.channel._settings import SETTINGS
from unflip.noise import MAX_TOTAL_RATE, NoiseRates

Box = tuple[tuple[float, float], tuple[float, float]]
"""The range of rho_pos, and that of rho_neg."""


def box_of(known: NoiseRates | None) -> Box:
    """Return the range of each rate; that of a known rate is a point.

    Parameters
    ----------
    known : NoiseRates or None
        The known rates or bounds.
    """
    known = NoiseRates(None, None) if known is None else known
    if not isinstance(known, NoiseRates):
        raise TypeError(
            "known must be NoiseRates(positive=..., negative=...), where each may be a number, "
            f"bounds or None, got {known!r}."
        )
    if known.known:
        return known.bounds
    rates = known.positive, known.negative
    # what is known of one rate tells the classes apart: the other one may be anything
    most = SETTINGS.largest_unknown_rate if rates == (None, None) else MAX_TOTAL_RATE
    box = np.array(
        [
            (0.0, most) if rate is None else ends
            for rate, ends in zip(rates, known.bounds, strict=True)
        ]
    )
    lowest = box[:, 0].sum()
    if lowest > MAX_TOTAL_RATE:
        raise ValueError(
            f"the given rates sum to at least {lowest:.3g}; beyond {MAX_TOTAL_RATE} the labels "
            "carry almost no information about the true classes. Lower them, or give both."
        )
    box[:, 1] = np.minimum(box[:, 1], MAX_TOTAL_RATE - box[::-1, 0])
    return (box[0, 0], box[0, 1]), (box[1, 0], box[1, 1])


class GridSurface:
    """The log-evidence, interpolated between the pairs of a grid."""

    def __init__(self, pairs: Floats, log_evidence: Floats) -> None:
        top = log_evidence.max()
        values = np.maximum(log_evidence, top - 10 * SETTINGS.explored_drop)
        self.spread = np.ptp(pairs, axis=0) > 0
        self.between: Any
        if self.spread.all():
            self.between = CloughTocher2DInterpolator(pairs, values, rescale=True)
        elif self.spread.any():
            self.between = Akima1DInterpolator(pairs[:, self.spread][:, 0], values)
        else:
            self.between = lambda points: np.full(len(points), top)
        self.outside = top - 1e3

    def __call__(self, points: Floats) -> Floats:
        """Return the log-evidence at the points, of shape (n_points, 2)."""
        if self.spread.sum() == 1:
            points = points[:, self.spread][:, 0]
        values = self.between(points)
        return np.where(np.isnan(values), self.outside, values)


class RatePosterior:
    """The posterior distribution of the rates: evidence times prior, on grid cells.

    The prior has probability 0.1 at (0, 0); of the rest, 0.25 is on equal rates and 0.75 uniform on
    the box. Parts outside the box are left out.

    Attributes
    ----------
    log_evidence : float
        Log P(labels), the rates summed out.
    noise_test : EvidenceTest or None
        Test of no noise, (0, 0); None if the box excludes it.
    symmetry_test : EvidenceTest or None
        Test of equal rates; None if the box excludes them.
    """

    def __init__(
        self, surface: Callable[[Floats], Floats], box: Box, region: Box, origin: float | None
    ) -> None:
        n_cells, none = SETTINGS.grid_cells, SETTINGS.no_noise_probability
        alike = SETTINGS.equal_rates_probability
        self.edges = [
            np.linspace(low, high, n_cells + 1 if high > low else 2) for low, high in region
        ]
        A, B = np.meshgrid(*map(_middles, self.edges), indexing="ij")
        log_box = surface(np.column_stack([A.ravel(), B.ravel()])).reshape(A.shape)
        log_box[A + B > MAX_TOTAL_RATE] = -np.inf
        log_origin = -np.inf if origin is None else origin
        top = max(log_box.max(), log_origin)
        over_box = np.exp(log_box - top)
        over_box *= np.prod([np.ptp(e) / (e.size - 1) for e in self.edges if np.ptp(e)])
        over_box /= _area(box)
        masses = [over_box.sum(axis=1), over_box.sum(axis=0)]
        whole, part = _equal_rates(box), _equal_rates(region)
        on_line, top_line = np.zeros(1), -np.inf
        if whole is not None:
            masses = [(1 - alike) * mass for mass in masses]
            if part is not None:
                t = _middles(np.linspace(*part, 2 * n_cells + 1))
                log_line = surface(np.column_stack([t, t]))
                top_line = log_line.max()
                on_line = np.exp(log_line - top)
                on_line *= alike * (part[1] - part[0]) / t.size / (whole[1] - whole[0])
                for mass, edges in zip(masses, self.edges, strict=True):
                    mass += np.histogram(t, bins=edges, weights=on_line)[0]
        noise = (1 - none) * masses[0].sum()
        clean = none * np.exp(log_origin - top)
        equal = (1 - none) * on_line.sum() + clean
        self.p_origin = float(clean / (clean + noise))
        self.log_evidence = float(top + np.log(clean + noise))
        self.masses = [mass / mass.sum() for mass in masses]
        self.noise_test = self.symmetry_test = None
        if origin is not None:
            self.noise_test = _noise_test(2 * (top - log_origin), self.p_origin)
        if whole is not None:
            deviance = 2 * (top - max(top_line, log_origin))
            self.symmetry_test = EvidenceTest(
                float(deviance), float(chi2.sf(deviance, 1)), float(equal / (clean + noise))
            )

    @property
    def structure_probability(self) -> dict[str, float]:
        """The probability of no noise, of equal rates, and of two rates."""
        none = 0.0 if self.noise_test is None else self.noise_test.probability
        alike = none if self.symmetry_test is None else self.symmetry_test.probability
        return {"none": none, "one rate": alike - none, "one rate per class": 1 - alike}

    def estimate(self, kind: str) -> tuple[float, float]:
        """Return one pair of rates."""
        if kind == "mean":
            means = [m @ _middles(e) for m, e in zip(self.masses, self.edges, strict=True)]
            return ((1 - self.p_origin) * float(means[0]), (1 - self.p_origin) * float(means[1]))
        return self._median(0), self._median(1)

    def _median(self, k: int) -> float:
        if self.p_origin > 0.5:
            return 0.0
        below = np.append(0, np.cumsum(self.masses[k]))
        return float(np.interp(0.5, below, self.edges[k]))

    def interval(self, level: float) -> tuple[tuple[float, float], tuple[float, float]]:
        """Return the shortest interval of each rate with probability `level`, given noise.

        It extends to 0 where no noise is not excluded at that level.
        """
        ranges = []
        for mass, edges in zip(self.masses, self.edges, strict=True):
            below = np.append(0, np.cumsum(mass))
            last = np.searchsorted(below, np.minimum(below + level, 1 - 1e-9))
            last = last.clip(max=edges.size - 1)
            lengths = np.where(below[last] - below > level - 1e-6, edges[last] - edges, np.inf)
            first = int(np.argmin(lengths))
            low = 0.0 if self.p_origin > 1 - level else float(edges[first])
            ranges.append((low, float(edges[last[first]])))
        return ranges[0], ranges[1]


def _noise_test(deviance: float, probability: float) -> EvidenceTest:
    """Test two non-negative rates against 0: the statistic is a mixture of chi-squared ones."""
    p_value = 1.0 if deviance <= 0 else 0.5 * chi2.sf(deviance, 1) + 0.25 * chi2.sf(deviance, 2)
    return EvidenceTest(float(deviance), float(p_value), probability)


def _middles(edges: Floats) -> Floats:
    return np.asarray((edges[1:] + edges[:-1]) / 2)


def narrow(surface: GridSurface, box: Box, margin: float) -> Box:
    """Return the part of the box where the interpolated evidence is not negligible."""
    axes = [np.linspace(*side, 101) if side[1] > side[0] else np.array(side[:1]) for side in box]
    A, B = np.meshgrid(*axes, indexing="ij")
    values = surface(np.column_stack([A.ravel(), B.ravel()])).reshape(A.shape)
    near = values > values.max() - 2 * SETTINGS.explored_drop
    sides = []
    for k, (low, high) in enumerate(box):
        held = axes[k][near.any(axis=1 - k)]
        room = margin * (high - low)
        sides.append((max(low, held[0] - room), min(high, held[-1] + room)))
    return sides[0], sides[1]


def _area(box: Box) -> float:
    """Return the area of the box (the length, if one rate is known) below MAX_TOTAL_RATE."""
    (a, b), (c, d) = box
    if a == b or c == d:
        return (b - a or 1.0) * (d - c or 1.0)
    corner = max(0.0, b + d - MAX_TOTAL_RATE)
    return (b - a) * (d - c) - 0.5 * corner**2


def _equal_rates(box: Box) -> tuple[float, float] | None:
    """Return the range of equal rates; None if there is none."""
    low, high = max(box[0][0], box[1][0]), min(box[0][1], box[1][1], MAX_TOTAL_RATE / 2)
    return (low, high) if high > low else None
