"""Fit of the rates and the clean posterior: choice of models and of rows."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.sparse import issparse
from scipy.special import expit, logit

from unflip._utils.threads import by_threads
from unflip._utils.typing import Floats
from unflip.channel import (
    EXPLORED,
    LEAST_GAIN,
    NEGLIGIBLE,
    SHARPEST,
    TINY,
    Box,
    CertainRates,
    ChannelFeatures,
    GridSurface,
    RatePosterior,
    box_of,
    distinct_rows,
    narrow,
    starts_of_equal,
)
from unflip.noise import NoiseRates
from unflip.posterior._noisy_channel._evidence import (
    ChannelDesign,
    ChannelFit,
    first_guess,
    fit_channel,
    information_factor,
    leave_one_out,
    mean_sigmoid,
    refit_coef,
)
from unflip.posterior._noisy_channel._surface import (
    GridFits,
    MixedSurface,
    QuadraticSurface,
    climb,
    explore,
    total_evidence,
)

WIDTHS = (None, 1.0, 0.5)
"""Candidate widths of the bumps, in median distances of two rows; None: no bumps."""

N_DRAWS = 3
"""Number of draws of the centers that the best model is averaged over."""

N_GRID = 3000
"""Maximum number of rows to compute the evidence on a grid; around its maximum beyond."""

N_VALUES, COARSE_TOL, FINE_TOL = 6, 0.1, 0.05
"""Grid points per rate, and the tolerances of the first and of the refined grid."""

PILOT_ROWS, N_PILOT, SCOUT_TOL = 1000, 3, 0.1
"""Pilot size, grid points per rate and tolerance above N_GRID rows."""

MODEL_GAP, ROUGH_TOL = 6.0, 0.5
"""Models within this log-evidence of the best on N_GRID rows are compared on all rows, with this
tolerance."""

HELP = 1.0
"""Gain of the log-evidence by bumps from which on models have any, up to N_GRID rows."""

RULED_OUT = 40.0
"""Difference of the log-evidence on N_GRID rows that rules out zero noise."""

MIN_SHARE = 1e-3
"""Minimum share of a model in the mixture; smaller ones are dropped."""

CHUNK = 20_000
"""Number of rows to compute features for at a time."""


Fold = tuple[NDArray[np.bool_], NDArray[np.bool_]]
"""Which rows to train on, and which to hold out."""


@dataclass(frozen=True)
class _Part:
    """One model of the clean posterior; `factor` is that of the inverse covariance of its coef."""

    share: float
    features: ChannelFeatures
    fit: ChannelFit
    factor: Floats | None = None

    def clean_posterior(self, rows: Floats) -> Floats:
        if self.factor is None:
            return np.asarray(expit(self.features.latent(rows, self.fit.coef)))
        return self.mean_sigmoid(self.features.transform(rows), self.fit.coef)

    def mean_sigmoid(self, features: Floats, coef: Floats) -> Floats:
        """Return P(true=+1 | x) for other coefficients, as sure of them as of these."""
        if self.factor is None:
            return np.asarray(expit(features @ coef))
        return mean_sigmoid(features, coef, self.factor)

    def held_out(self, sample: "ChannelSample", units: "ChannelSample") -> Floats:
        factor = self.factor
        if factor is None:
            factor = information_factor(sample.design(self.features), self.fit)
        return leave_one_out(units.design(self.features), self.fit, factor)


@dataclass(frozen=True)
class NoisyChannel:
    """The estimated rates, their distribution, and the clean posterior, a mixture of models.

    The clean posterior is conditional on these rates.
    """

    rates: tuple[float, float]
    distribution: RatePosterior | CertainRates
    parts: list[_Part]
    sharpness: float = 1.0

    def clean_posterior(self, rows: Any) -> Floats:
        """Return P(true=+1 | x) of every row; sparse rows are made dense in chunks."""
        return np.concatenate(
            by_threads(lambda some: self._by_chunks(rows[some]), rows.shape[0], rows.shape[0])
        )

    def interval(self, level: float) -> Box:
        """Return bounds of each rate that hold it with probability `level`."""
        return self.distribution.interval(level)

    def held_out(self, evidence: "Evidence") -> Floats:
        """Return P(true=+1 | x) of the rows of the fit, each without its own label."""
        clean = np.zeros(len(evidence.units.rows))
        for part in self.parts:
            clean += part.share * part.held_out(evidence.sample, evidence.units)
        return self._sharpened(clean)

    def sharpened(self, evidence: "Evidence") -> "NoisyChannel":
        """Return the channel with the clean posterior as sharp as held-out labels say it is.

        Where classes hardly overlap, the coefficients are nearer to zero than their mean would be:
        larger ones explain the labels as well, but for the prior.
        """
        units, rates = evidence.units, NoiseRates(*self.rates)
        clean = self.held_out(evidence)

        def height(log_factor: float) -> float:
            noisy = rates.noisy_posterior(sharper(clean, np.exp(log_factor)))
            given = np.where(units.positive, noisy, 1 - noisy)
            return float(units.weight @ np.log(np.maximum(given, TINY)))

        bounds = 0.0, float(np.log(SHARPEST))
        best = minimize_scalar(lambda x: -height(x), bounds=bounds, method="bounded").x
        if height(best) < height(0.0) + LEAST_GAIN:
            return self
        return replace(self, sharpness=float(np.exp(best)))

    def _sharpened(self, clean: Floats) -> Floats:
        clean = np.minimum(clean, 1.0)  # the shares sum to 1 but for rounding
        return clean if self.sharpness == 1 else sharper(clean, self.sharpness)

    def out_of_fold(self, units: "ChannelSample", folds: list[Fold]) -> Floats:
        """Return P(true=+1 | x) of the rows, each fold's fitted to the others at the same rates."""
        clean = np.zeros(len(units.rows))
        for part in self.parts:
            design = units.design(part.features)
            for others, fold in folds:
                fit = refit_coef(design.where(others), self.rates, part.fit, tol=0.1, max_iter=5)
                clean[fold] += part.share * part.mean_sigmoid(design.features[fold], fit.coef)
        return self._sharpened(clean)

    def _by_chunks(self, rows: Any) -> Floats:
        clean = np.zeros(rows.shape[0])
        for first in range(0, clean.size, CHUNK):
            chunk = slice(first, first + CHUNK)
            some = dense(rows[chunk])
            for part in self.parts:
                clean[chunk] += part.share * part.clean_posterior(some)
        return self._sharpened(clean)


def sharper(proba: Floats, factor: float) -> Floats:
    """Return probabilities whose logits are multiplied by a factor."""
    return np.asarray(expit(factor * logit(np.maximum(proba, TINY))))


def dense(rows: Any) -> Floats:
    """Return the rows as a dense array."""
    return np.asarray(rows.toarray() if issparse(rows) else rows)


@dataclass(frozen=True)
class ChannelSample:
    """The rows that the rates are estimated on.

    Parameters
    ----------
    rows : ndarray of shape (n_samples, n_features)
        The inputs of t.
    positive : ndarray of bool of shape (n_samples,)
        Whether the noisy label is positive.
    weight : ndarray of shape (n_samples,)
        Weight of each row.
    """

    rows: Floats
    positive: NDArray[np.bool_]
    weight: Floats

    def head(self, n_rows: int) -> "ChannelSample":
        """Return the first rows."""
        return ChannelSample(self.rows[:n_rows], self.positive[:n_rows], self.weight[:n_rows])

    def design(self, features: ChannelFeatures) -> ChannelDesign:
        return ChannelDesign(
            features.transform(self.rows), features.block, self.positive, self.weight
        )

    def merged(self, random_state: np.random.RandomState) -> "Evidence":
        """Return what of the rows is evidence, in random order.

        Copies are not evidence. If repeated rows have only one label each, they count as copies,
        and the weights are scaled to the effective number of distinct rows. If some have both,
        every row counts.

        Parameters
        ----------
        random_state : RandomState instance
            Generator of the order.
        """
        found = distinct_rows(self.rows, self.positive, self.weight, random_state)
        sample = ChannelSample(self.rows[found.first], self.positive[found.first], found.weight)
        if found.unit is None:
            return Evidence(sample, sample, found.position)
        order, place = found.order, np.empty_like(found.order)
        place[order] = np.arange(order.size)
        units = ChannelSample(
            self.rows[order], self.positive[order], self.weight[order] / found.unit
        )
        return Evidence(sample, units, place)


@dataclass(frozen=True)
class Evidence:
    """The rows that a channel is fitted to, and those that can be held out one by one.

    Parameters
    ----------
    sample : ChannelSample
        Distinct pairs of row and label, with weights.
    units : ChannelSample
        The same where repeated rows are copies of each other; else all rows.
    place : ndarray of shape (n_samples,)
        For each original row, its position among the units.
    """

    sample: ChannelSample
    units: ChannelSample
    place: NDArray[np.intp]


def fit_noisy_channel(
    evidence: Evidence,
    known: NoiseRates | None,
    *,
    bumps: bool,
    n_centers: int,
    one_scale: bool = False,
    estimate: str = "median",
) -> NoisyChannel:
    """Fit P(noisy=+1 | x) = rho_neg + (1 - rho_pos - rho_neg) sigmoid(t(x)).

    Parameters
    ----------
    evidence : Evidence
        The noisy data.
    known : NoiseRates or None
        The known rates or bounds.
    bumps : bool
        Whether t may have Gaussian bumps in addition to the columns.
    n_centers : int
        Maximum number of bumps.
    one_scale : bool, default=False
        Whether the columns keep their proportions instead of being standardised.
    estimate : {"median", "mean"}, default="median"
        Point estimate of the rates.
    """
    box = box_of(known)
    sample = evidence.sample
    head = sample.head(N_GRID)
    distinct = np.flatnonzero(starts_of_equal(head.rows))

    def features_of(width: float | None, draw: int = 0) -> ChannelFeatures:
        order = np.roll(distinct, -draw * n_centers)
        return ChannelFeatures(width, n_centers, one_scale=one_scale).fit(
            head.rows, head.weight, order
        )

    maps = [features_of(width) for width in (WIDTHS if bumps else (None,))]
    if known is not None and known.known:
        return _at_known_rates(sample, maps, known)
    n_draws = min(N_DRAWS, distinct.size // n_centers)
    redraw = partial(_redrawn, features_of, n_draws)
    if len(sample.rows) <= N_GRID:
        return _on_a_grid(sample, maps, redraw, box, estimate)
    return _around_the_maximum(sample, maps, redraw, box, estimate)


def _redrawn(
    features_of: Callable[[float | None, int], ChannelFeatures],
    n_draws: int,
    features: ChannelFeatures,
) -> list[ChannelFeatures]:
    """Return the same features with other centers, so that no draw of them decides the rates."""
    if features.width is None:
        return []
    return [features_of(features.width, draw) for draw in range(1, n_draws)]


def _at_known_rates(
    sample: ChannelSample, maps: list[ChannelFeatures], known: NoiseRates
) -> NoisyChannel:
    """Return the channel at known rates; with many rows, a part of them selects the model."""
    rates = known.both()
    few = [sample.head(N_GRID).design(features) for features in maps]
    fits = [fit_channel(design, rates, first_guess(design)) for design in few]
    if len(sample.rows) <= N_GRID:
        return NoisyChannel(rates, CertainRates(rates), _mixture(maps, few, fits))
    best = max(range(len(fits)), key=lambda k: fits[k].log_evidence)
    fit = fit_channel(sample.design(maps[best]), rates, fits[best])
    return NoisyChannel(rates, CertainRates(rates), [_Part(1.0, maps[best], fit)])


def _mixture(
    maps: list[ChannelFeatures], designs: list[ChannelDesign], fits: list[ChannelFit]
) -> list[_Part]:
    """Return the mixture of the models, by their evidence."""
    shares = np.exp([fit.log_evidence - total_evidence(fits) for fit in fits])
    return [
        _Part(share, features, fit, information_factor(design, fit))
        for share, features, design, fit in zip(shares.tolist(), maps, designs, fits, strict=True)
        if share > MIN_SHARE
    ]


def _on_a_grid(
    sample: ChannelSample,
    maps: list[ChannelFeatures],
    redraw: Callable[[ChannelFeatures], list[ChannelFeatures]],
    box: Box,
    estimate: str,
) -> NoisyChannel:
    """Return the channel from the evidence on a grid of rates."""
    designs = [sample.design(features) for features in maps]
    fits = _explored(designs, _axes(box, N_VALUES))
    n_models = len(next(iter(fits.values())))
    maps, designs = maps[:n_models], designs[:n_models]
    origin = total_evidence(fits[0.0, 0.0]) if (0.0, 0.0) in fits else None
    surface = _surface(fits)
    region = narrow(surface, box, margin=0.5 / N_VALUES)
    kept = _relevant_models(fits)
    best = max(fits.values(), key=total_evidence)
    leader = max(kept, key=lambda k: best[k].log_evidence)
    # where a model without bumps is likely too, their centers matter little
    others = [] if maps[kept[0]].width is None else redraw(maps[leader])
    if others or any(r[1] - r[0] < 0.7 * (b[1] - b[0]) for r, b in zip(region, box, strict=True)):
        maps = [maps[k] for k in kept] + others
        designs = [designs[k] for k in kept] + [sample.design(features) for features in others]
        guesses = [first_guess(design) for design in designs[len(kept) :]]
        known = [[*(found[k] for k in kept), *guesses] for found in fits.values()]
        fits = explore(designs, _axes(region, N_VALUES), known, FINE_TOL)
        surface = _surface(fits)
        if origin is not None:
            origin = total_evidence(_fits_at((0.0, 0.0), designs, fits))
    posterior = RatePosterior(surface, box, region, origin)
    rates = posterior.estimate(estimate)
    return NoisyChannel(rates, posterior, _mixture(maps, designs, _fits_at(rates, designs, fits)))


def _explored(designs: list[ChannelDesign], axes: tuple[Floats, Floats]) -> GridFits:
    """Return the fits on the first grid; those with bumps only where they help.

    The first model has none. The others are compared with it wherever it is likely and at the
    lowest rates, where bumps explain most, and at the highest unless what they gain at the lowest
    would not be enough there.
    """
    first, *guesses = [first_guess(design) for design in designs]
    fits = explore(designs[:1], axes, [[first]], COARSE_TOL)
    heights = {pair: found.log_evidence for pair, (found,) in fits.items()}
    top = max(heights.values())
    likely = sorted(
        (pair for pair in fits if heights[pair] > top - EXPLORED), key=heights.__getitem__
    )
    most = np.inf
    for pair in dict.fromkeys([*likely[::-1], min(fits), max(fits)]):
        if heights[pair] + most < top - NEGLIGIBLE:
            continue
        bumps = [
            fit_channel(design, pair, guess, COARSE_TOL)
            for design, guess in zip(designs[1:], guesses, strict=True)
        ]
        gain = max((fit.log_evidence for fit in bumps), default=-np.inf) - heights[pair]
        if gain > max(HELP, top - NEGLIGIBLE - heights[pair]):
            return explore(designs, axes, [[*fits[pair], *bumps]], COARSE_TOL)
        most = gain if pair == min(fits) else most
    return fits


def _fits_at(
    rates: tuple[float, float],
    designs: list[ChannelDesign],
    fits: GridFits,
) -> list[ChannelFit]:
    """Return the fits at given rates, started at the nearest ones."""
    near = fits[min(fits, key=lambda pair: float(np.abs(np.subtract(pair, rates)).sum()))]
    return [fit_channel(design, rates, start) for design, start in zip(designs, near, strict=True)]


def _surface(fits: GridFits) -> GridSurface:
    pairs = sorted(fits)
    return GridSurface(np.array(pairs), np.array([total_evidence(fits[pair]) for pair in pairs]))


def _relevant_models(fits: GridFits) -> list[int]:
    """Return the models with a share of the evidence wherever it is not negligible."""
    evidence = np.array([[fit.log_evidence for fit in found] for found in fits.values()])
    totals = np.logaddexp.reduce(evidence, axis=1)
    held = (evidence - totals[:, None])[totals > totals.max() - NEGLIGIBLE]
    return [int(k) for k in np.flatnonzero((held > np.log(MIN_SHARE)).any(axis=0))]


def _around_the_maximum(
    sample: ChannelSample,
    maps: list[ChannelFeatures],
    redraw: Callable[[ChannelFeatures], list[ChannelFeatures]],
    box: Box,
    estimate: str,
) -> NoisyChannel:
    """Return the channel from the maximum of the evidence and its derivatives there.

    A coarse grid on few rows finds the neighbourhood, more rows select the model, and all rows give
    the maximum.
    """
    scouts: list[_ModelMaximum] = []
    for features in maps:
        few = sample.head(N_GRID).design(features)
        start = first_guess(few)
        if len(scouts) < 2:  # further widths start at the previous maximum
            pilot = few.head(PILOT_ROWS)
            fits = explore([pilot], _axes(box, N_PILOT), [[start]], SCOUT_TOL)
            (start,) = max(fits.values(), key=total_evidence)
        else:
            start = replace(start, rates=scouts[-1].fit.rates)
        found, _ = climb(few, start, box, tol=SCOUT_TOL)
        scouts.append(_ModelMaximum(found, few, features))
    best = max(scouts, key=_log_evidence)
    rivals = [scouts[0], *sorted(scouts[1:], key=_log_evidence)[-1:]]
    leader, slope = None, None
    for scout in rivals:
        if _log_evidence(scout) < _log_evidence(best) - MODEL_GAP:
            continue
        design, start = sample.design(scout.features), scout.fit
        if leader is not None and scout is not best:
            start = fit_channel(design, leader.fit.rates, start, tol=ROUGH_TOL)
            if start.log_evidence < _log_evidence(leader):
                continue
        fit, here = climb(design, start, box)
        if leader is None or fit.log_evidence > _log_evidence(leader):
            leader, slope = _ModelMaximum(fit, design, scout.features), here
    assert leader is not None
    assert slope is not None
    clean = _clean_fit(best, leader) if box[0][0] == 0 == box[1][0] else None
    peaks = [(leader, slope)]
    # where a model without bumps is likely too, their centers matter little
    smooth = scouts[0].features.width is None
    likely_too = _log_evidence(scouts[0]) > _log_evidence(best) - MODEL_GAP
    for features in [] if smooth and likely_too else redraw(leader.features):
        design = sample.design(features)
        fit, here = climb(design, replace(first_guess(design), rates=leader.fit.rates), box)
        peaks.append((_ModelMaximum(fit, design, features), here))
    surface = MixedSurface([QuadraticSurface(peak.fit, slope) for peak, slope in peaks])
    origin = None if clean is None else clean.log_evidence
    posterior = RatePosterior(surface, box, surface.region(box), origin)
    rates = posterior.estimate(estimate)
    if clean is not None and rates == (0.0, 0.0):
        return NoisyChannel(rates, posterior, [_Part(1.0, leader.features, clean)])
    total = total_evidence([peak.fit for peak, _ in peaks])
    parts = []
    for peak, slope in peaks:
        coef = peak.fit.coef + slope.path @ (rates - peak.fit.rates)
        fit = replace(peak.fit, rates=np.array(rates), coef=coef)
        share = float(np.exp(peak.fit.log_evidence - total))
        if share > MIN_SHARE:
            parts.append(_Part(share, peak.features, fit))
    return NoisyChannel(rates, posterior, parts)


@dataclass(frozen=True)
class _ModelMaximum:
    """The maximum evidence of one model, on some rows."""

    fit: ChannelFit
    design: ChannelDesign
    features: ChannelFeatures


def _log_evidence(maximum: _ModelMaximum) -> float:
    return maximum.fit.log_evidence


def _clean_fit(scout: _ModelMaximum, leader: _ModelMaximum) -> ChannelFit:
    """Return the fit at zero noise; with log-evidence -inf if few rows rule it out."""
    clean = fit_channel(scout.design, (0.0, 0.0), scout.fit)
    if clean.log_evidence < _log_evidence(scout) - RULED_OUT:
        return replace(clean, log_evidence=-np.inf)
    return fit_channel(leader.design, (0.0, 0.0), leader.fit)


def _axes(box: Box, n: int) -> tuple[Floats, Floats]:
    """Return n values of each rate, or the one that is known."""
    axes = [np.linspace(low, high, n) if high > low else np.array([low]) for low, high in box]
    return axes[0], axes[1]
