"""Rates and clean posterior from one sample: which models are compared, on which rows."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from scipy.special import expit

from unflip._row_weights import common_unit, effective_rows
from unflip._threads import by_threads
from unflip.noise import LARGEST_TOTAL, NoiseRates
from unflip.posterior._noisy_channel._evidence import (
    ChannelFit,
    Design,
    first_guess,
    fit_channel,
    information_factor,
    mean_sigmoid,
)
from unflip.posterior._noisy_channel._features import ChannelFeatures, row_keys
from unflip.posterior._noisy_channel._surface import (
    NEGLIGIBLE,
    Box,
    CertainRates,
    GridSurface,
    QuadraticSurface,
    RatePosterior,
    climb,
    explore,
    narrow,
    total_evidence,
)

Floats = NDArray[np.float64]

WIDTHS = (None, 1.0, 0.5)
"""Widths of the bumps to choose from, in median distances of two rows; None: no bumps."""

N_GRID = 3000
"""Up to so many rows the evidence is computed on a grid; beyond, around its maximum."""

N_VALUES, COARSE_TOL, FINE_TOL = 6, 0.1, 0.05
"""Values per rate in a grid, and the tolerance in the first one and in the one that zooms in."""

PILOT_ROWS, N_PILOT, SCOUT_TOL = 1000, 3, 0.1
"""Of more rows: so many, and a grid so coarse, to find the neighbourhood of the maximum."""

RIVALS, ROUGH = 6.0, 0.5
"""Difference of the log-evidence on few rows up to which all rows choose, and its tolerance."""

RULED_OUT = 40.0
"""Difference of the log-evidence on few rows beyond which more rows need not be asked."""

LARGEST_UNKNOWN = 0.5
"""A rate of which nothing is known is at most this."""

LEAST_SHARE = 1e-3
"""Models whose part in the clean posterior is smaller are left out."""

LEAST_MIXED = 0.05
"""Share of the repeated rows that carry both labels, from which on repetitions are rows of their
own and not copies: rows of few categories repeat by chance, and noise gives them both labels."""

CHUNK = 20_000
"""Rows of which the features are made at once."""


@dataclass(frozen=True)
class _Part:
    """One model's part in the clean posterior; `factor` tells how sure the coefficients are."""

    share: float
    features: ChannelFeatures
    coef: Floats
    factor: Floats | None = None

    def clean_posterior(self, rows: Floats) -> Floats:
        if self.factor is None:
            return np.asarray(expit(self.features.latent(rows, self.coef)))
        return mean_sigmoid(self.features.transform(rows), self.coef, self.factor)


@dataclass(frozen=True)
class NoisyChannel:
    """What was found: the rates, how sure they are, and the clean posterior, a mixture of models.

    The clean posterior is the one at these rates.
    """

    rates: tuple[float, float]
    distribution: RatePosterior | CertainRates
    parts: list[_Part]

    def clean_posterior(self, rows: Any) -> Floats:
        """Return P(true=+1 | x) of every row; sparse ones are made dense a chunk at a time."""
        return np.concatenate(
            by_threads(lambda some: self._by_chunks(rows[some]), rows.shape[0], rows.shape[0])
        )

    def _by_chunks(self, rows: Any) -> Floats:
        clean = np.zeros(rows.shape[0])
        for first in range(0, clean.size, CHUNK):
            chunk = slice(first, first + CHUNK)
            some = dense(rows[chunk])
            for part in self.parts:
                clean[chunk] += part.share * part.clean_posterior(some)
        return clean


def dense(rows: Any) -> Floats:
    """Return the rows as an array."""
    return np.asarray(rows.toarray() if issparse(rows) else rows)


@dataclass(frozen=True)
class Sample:
    """The rows that the rates are estimated on.

    Parameters
    ----------
    rows : ndarray of shape (n_samples, n_features)
        The columns that t is a function of.
    positive : ndarray of bool of shape (n_samples,)
        Whether the noisy label is positive.
    weight : ndarray of shape (n_samples,)
        How many rows each row counts as.
    """

    rows: Floats
    positive: NDArray[np.bool_]
    weight: Floats

    def head(self, n_rows: int) -> "Sample":
        return Sample(self.rows[:n_rows], self.positive[:n_rows], self.weight[:n_rows])

    def seen_by(self, features: ChannelFeatures) -> Design:
        return Design(features.transform(self.rows), features.block, self.positive, self.weight)

    def merged(self, random_state: np.random.RandomState) -> "Sample":
        """Return the distinct rows in random order, each label of a row once.

        Copies are not evidence. Where repeated rows carry one label only, they are taken for
        copies, and the weights are scaled to the effective number of distinct rows; where some
        carry both, every row counts.

        Parameters
        ----------
        random_state : RandomState instance
            What draws the order.
        """
        _, group = np.unique(row_keys(self.rows, random_state), return_inverse=True)
        pairs, first, position = np.unique(
            2 * group + self.positive, return_index=True, return_inverse=True
        )
        weight: Floats = np.bincount(position, self.weight).astype(float)
        repeated = np.bincount(pairs // 2, weight) > 1
        mixed = np.bincount(pairs // 2) > 1
        if not repeated.any() or mixed[repeated].mean() < LEAST_MIXED:
            weight *= effective_rows(weight) / weight.sum()
        else:
            weight /= common_unit(weight) or 1.0
        return Sample(self.rows[first], self.positive[first], weight)


def fit_noisy_channel(
    sample: Sample,
    known: NoiseRates | None,
    random_state: np.random.RandomState,
    *,
    bumps: bool,
    n_centers: int,
    one_scale: bool = False,
    estimate: str = "median",
) -> NoisyChannel:
    """Fit P(noisy=+1 | x) = rho_neg + (1 - rho_pos - rho_neg) sigmoid(t(x)).

    Parameters
    ----------
    sample : Sample
        The noisy data.
    known : NoiseRates or None
        What is known of the rates.
    random_state : RandomState instance
        What draws the centers, and the order of the rows.
    bumps : bool
        Whether t may have Gaussian bumps beside the columns.
    n_centers : int
        How many, at most.
    one_scale : bool, default=False
        Whether the columns keep their proportions, or are standardised each.
    estimate : {"median", "mean"}, default="median"
        Of the rates' distribution.
    """
    box = box_of(known)
    sample = sample.merged(random_state)
    head = sample.head(N_GRID)
    order = np.flatnonzero((np.diff(head.rows, axis=0, prepend=np.nan) != 0).any(axis=1))
    maps = [
        ChannelFeatures(width, n_centers, one_scale=one_scale).fit(head.rows, head.weight, order)
        for width in (WIDTHS if bumps else (None,))
    ]
    if known is not None and known.known:
        return _at_known_rates(sample, maps, known)
    if len(sample.rows) <= N_GRID:
        return _on_a_grid(sample, maps, box, estimate)
    return _around_the_maximum(sample, maps, box, estimate)


def box_of(known: NoiseRates | None) -> Box:
    """Return the range of either rate, a known one's being a point.

    Parameters
    ----------
    known : NoiseRates or None
        What is known of the rates.
    """
    known = NoiseRates(None, None) if known is None else known
    if not isinstance(known, NoiseRates):
        raise TypeError(
            "known must be NoiseRates(positive=..., negative=...), of which each may be a number, "
            f"bounds or None, got {known!r}."
        )
    if known.known:
        return known.bounds
    rates = known.positive, known.negative
    box = np.array(
        [
            (0.0, LARGEST_UNKNOWN) if rate is None else ends
            for rate, ends in zip(rates, known.bounds, strict=True)
        ]
    )
    lowest = box[:, 0].sum()
    if lowest > LARGEST_TOTAL:
        raise ValueError(
            f"the rates are given to sum to at least {lowest:.3g}; beyond {LARGEST_TOTAL} the "
            "labels say next to nothing about the true classes. Lower them, or give both."
        )
    box[:, 1] = np.minimum(box[:, 1], LARGEST_TOTAL - box[::-1, 0])
    return (box[0, 0], box[0, 1]), (box[1, 0], box[1, 1])


def _at_known_rates(sample: Sample, maps: list[ChannelFeatures], known: NoiseRates) -> NoisyChannel:
    """Return the clean posterior at given rates; of many rows, some choose the model."""
    rates = known.both()
    few = [sample.head(N_GRID).seen_by(features) for features in maps]
    fits = [fit_channel(design, rates, first_guess(design)) for design in few]
    if len(sample.rows) <= N_GRID:
        return NoisyChannel(rates, CertainRates(rates), _mixture(maps, few, fits))
    best = max(range(len(fits)), key=lambda k: fits[k].log_evidence)
    fit = fit_channel(sample.seen_by(maps[best]), rates, fits[best])
    return NoisyChannel(rates, CertainRates(rates), [_Part(1.0, maps[best], fit.coef)])


def _mixture(
    maps: list[ChannelFeatures], designs: list[Design], fits: list[ChannelFit]
) -> list[_Part]:
    """Return the models' parts, by their evidence."""
    shares = np.exp([fit.log_evidence - total_evidence(fits) for fit in fits])
    return [
        _Part(share, features, fit.coef, information_factor(design, fit))
        for share, features, design, fit in zip(shares.tolist(), maps, designs, fits, strict=True)
        if share > LEAST_SHARE
    ]


def _on_a_grid(
    sample: Sample, maps: list[ChannelFeatures], box: Box, estimate: str
) -> NoisyChannel:
    """Return the distribution of the rates, from the evidence on a grid, and the models' parts."""
    designs = [sample.seen_by(features) for features in maps]
    guesses = [first_guess(design) for design in designs]
    fits = explore(designs, _axes(box, N_VALUES), [guesses], COARSE_TOL)
    origin = total_evidence(fits[0.0, 0.0]) if (0.0, 0.0) in fits else None
    surface = _surface(fits)
    region = narrow(surface, box, margin=0.5 / N_VALUES)
    if any(r[1] - r[0] < 0.7 * (b[1] - b[0]) for r, b in zip(region, box, strict=True)):
        kept = _shareholders(fits)
        maps, designs = [maps[k] for k in kept], [designs[k] for k in kept]
        known = [[found[k] for k in kept] for found in fits.values()]
        fits = explore(designs, _axes(region, N_VALUES), known, FINE_TOL)
        surface = _surface(fits)
    posterior = RatePosterior(surface, box, region, origin)
    rates = posterior.estimate(estimate)
    near = fits[min(fits, key=lambda pair: float(np.abs(np.subtract(pair, rates)).sum()))]
    there = [fit_channel(design, rates, start) for design, start in zip(designs, near, strict=True)]
    return NoisyChannel(rates, posterior, _mixture(maps, designs, there))


def _surface(fits: dict[tuple[float, float], list[ChannelFit]]) -> GridSurface:
    pairs = sorted(fits)
    return GridSurface(np.array(pairs), np.array([total_evidence(fits[pair]) for pair in pairs]))


def _shareholders(fits: dict[tuple[float, float], list[ChannelFit]]) -> list[int]:
    """Return the models that have a part in the evidence anywhere that it is not negligible."""
    evidence = np.array([[fit.log_evidence for fit in found] for found in fits.values()])
    totals = np.logaddexp.reduce(evidence, axis=1)
    held = (evidence - totals[:, None])[totals > totals.max() - NEGLIGIBLE]
    return [int(k) for k in np.flatnonzero((held > np.log(LEAST_SHARE)).any(axis=0))]


def _around_the_maximum(
    sample: Sample, maps: list[ChannelFeatures], box: Box, estimate: str
) -> NoisyChannel:
    """Return the same from the evidence's maximum and its derivatives there.

    A coarse grid on few rows finds the neighbourhood, more rows choose the model, all rows end it.
    """
    scouts: list[_Summit] = []
    for features in maps:
        few = sample.head(N_GRID).seen_by(features)
        start = first_guess(few)
        if len(scouts) < 2:  # the second width begins where the first one ended
            pilot = few.head(PILOT_ROWS)
            fits = explore([pilot], _axes(box, N_PILOT), [[start]], SCOUT_TOL)
            (start,) = max(fits.values(), key=total_evidence)
        else:
            start = replace(start, rates=scouts[-1].fit.rates)
        found, _ = climb(few, start, box, tol=SCOUT_TOL)
        scouts.append(_Summit(found, few, features))
    best = max(scouts, key=_height)
    rivals = [scouts[0], *sorted(scouts[1:], key=_height)[-1:]]
    leader, slope = None, None
    for scout in rivals:
        if _height(scout) < _height(best) - RIVALS:
            continue
        design, start = sample.seen_by(scout.features), scout.fit
        if leader is not None and scout is not best:
            start = fit_channel(design, leader.fit.rates, start, tol=ROUGH)
            if start.log_evidence < _height(leader):
                continue
        fit, here = climb(design, start, box)
        if leader is None or fit.log_evidence > _height(leader):
            leader, slope = _Summit(fit, design, scout.features), here
    assert leader is not None
    assert slope is not None
    clean = _clean_fit(best, leader) if box[0][0] == 0 == box[1][0] else None
    surface = QuadraticSurface(leader.fit, slope)
    origin = None if clean is None else clean.log_evidence
    posterior = RatePosterior(surface, box, surface.region(box), origin)
    rates = posterior.estimate(estimate)
    if clean is not None and rates == (0.0, 0.0):
        return NoisyChannel(rates, posterior, [_Part(1.0, leader.features, clean.coef)])
    coef = leader.fit.coef + slope.path @ (rates - leader.fit.rates)
    return NoisyChannel(rates, posterior, [_Part(1.0, leader.features, coef)])


@dataclass(frozen=True)
class _Summit:
    """The highest evidence of one model, on some rows."""

    fit: ChannelFit
    design: Design
    features: ChannelFeatures


def _height(summit: _Summit) -> float:
    return summit.fit.log_evidence


def _clean_fit(scout: _Summit, leader: _Summit) -> ChannelFit:
    """Return the fit without noise; where few rows rule it out, theirs, of no evidence."""
    clean = fit_channel(scout.design, (0.0, 0.0), scout.fit)
    if clean.log_evidence < _height(scout) - RULED_OUT:
        return replace(clean, log_evidence=-np.inf)
    return fit_channel(leader.design, (0.0, 0.0), leader.fit)


def _axes(box: Box, n: int) -> tuple[Floats, Floats]:
    """Return n values of either rate, or the one that is known."""
    axes = [np.linspace(low, high, n) if high > low else np.array([low]) for low, high in box]
    return axes[0], axes[1]
