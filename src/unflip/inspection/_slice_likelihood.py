"""The rates of one slice by maximum likelihood, given the clean posterior of its rows."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, logit
from scipy.stats import chi2

from unflip._utils.typing import Array, Floats
from unflip.diagnostics import LEVEL
from unflip.inspection._slice_settings import SETTINGS
from unflip.noise import MAX_TOTAL_RATE, NoiseRates


class Profile(NamedTuple):
    """At every pair of rates: the greatest log-likelihood, and the share of positives with it."""

    likelihood: Floats
    prior: Floats


@dataclass(frozen=True)
class SliceCounts:
    """How many rows of a slice are labelled positive and negative, by the log odds of g."""

    log_odds: Floats
    positive: Floats
    negative: Floats

    @classmethod
    def of(cls, clean: Floats, positive: Array) -> "SliceCounts":
        """Count the rows."""
        least, n_bins = SETTINGS.smallest_clean_probability, SETTINGS.posterior_bins
        log_odds = logit(np.clip(clean, least, 1 - least))
        bins = np.array_split(np.argsort(log_odds, kind="stable"), min(n_bins, clean.size))
        counts = [(log_odds[b].mean(), positive[b].sum(), (~positive[b]).sum()) for b in bins]
        return cls(*np.array(counts, dtype=float).T)

    @property
    def n_rows(self) -> float:
        """All of them."""
        return float(self.positive.sum() + self.negative.sum())

    def profile(self, rho_pos: Floats, rho_neg: Floats) -> Profile:
        """Return the log-likelihood at pairs of rates, with the best shift of the log odds.

        By Fisher scoring, whose steps go uphill; the prior of the shift penalises large ones.
        """
        left, floor = (1 - rho_pos - rho_neg)[:, None], rho_neg[:, None]
        shift, n = np.zeros(rho_pos.size), self.positive + self.negative
        deviation = SETTINGS.shift_deviation
        for _ in range(SETTINGS.shift_steps_of_two):
            clean, noisy = self._posteriors(shift, left, floor)
            rise = left * clean * (1 - clean)
            residual = self.positive / noisy - self.negative / (1 - noisy)
            score = (rise * residual).sum(axis=1) - shift / deviation**2
            information = (rise**2 * n / (noisy * (1 - noisy))).sum(axis=1) + deviation**-2
            shift = shift + np.clip(score / information, -1, 1)
        clean, noisy = self._posteriors(shift, left, floor)
        likelihood = np.log(noisy) @ self.positive + np.log1p(-noisy) @ self.negative
        return Profile(likelihood - (shift / deviation) ** 2 / 2, clean @ n / n.sum())

    def _posteriors(self, shift: Floats, left: Floats, floor: Floats) -> tuple[Floats, Floats]:
        clean = expit(self.log_odds + shift[:, None])
        least = SETTINGS.smallest_label_probability
        return clean, np.clip(floor + left * clean, least, 1 - least)


def profile_of_all(slices: Sequence[SliceCounts], rho_pos: Floats, rho_neg: Floats) -> Profile:
    """Return the log-likelihood of one pair of rates for all slices, each with its own shift."""
    profiles = [counts.profile(rho_pos, rho_neg) for counts in slices]
    size = np.array([counts.n_rows for counts in slices])
    prior = np.average([each.prior for each in profiles], axis=0, weights=size)
    return Profile(np.sum([each.likelihood for each in profiles], axis=0), prior)


Interval = tuple[float, float]


@dataclass(frozen=True)
class Region:
    """Where the likelihood of the rates is near its maximum."""

    # The greatest log-likelihood.
    likelihood: float
    # rho_pos and rho_neg there.
    rates: tuple[float, float]
    # The shares of true positives, and of wrong labels, there.
    prior: float
    share: float
    # 95 % intervals of either rate and of the share of wrong labels: all values that some pair of
    # rates has whose likelihood is less than the greatest by no more than chi2's quantile.
    positive: Interval
    negative: Interval
    shares: Interval

    def widened(self, spread: Floats) -> "Region":
        """Return the region with more spread about the estimate, added in squares."""
        scale = np.array([self.prior, 1 - self.prior])
        of_share = np.sqrt(((scale[:, None] * spread) ** 2).sum(axis=0))
        return replace(
            self,
            positive=wider(self.rates[0], self.positive, spread[0]),
            negative=wider(self.rates[1], self.negative, spread[1]),
            shares=wider(self.share, self.shares, of_share),
        )


def wider(centre: float, interval: Interval, spread: Floats) -> Interval:
    """Return an interval about `centre` with more spread, down and up, added in squares."""
    down = np.hypot(centre - interval[0], spread[0])
    up = np.hypot(interval[1] - centre, spread[1])
    return float(max(centre - down, 0.0)), float(min(centre + up, 1.0))


def likelihood_region(profile: Callable[[Floats, Floats], Profile]) -> Region:
    """Return where the likelihood is near its maximum, on a grid that is narrowed to there."""
    low, high = np.zeros(2), np.full(2, MAX_TOTAL_RATE)
    drop = chi2.ppf(LEVEL, 1) / 2
    for n_points in SETTINGS.rate_grids:
        axes = [np.linspace(a, b, n_points) for a, b in zip(low, high, strict=True)]
        pairs = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)
        pairs = pairs[pairs.sum(axis=1) <= MAX_TOTAL_RATE + 1e-9]
        found = profile(pairs[:, 0], pairs[:, 1])
        lacking = found.likelihood.max() - found.likelihood
        near = pairs[lacking <= 1.5 * drop]
        step = (high - low) / (n_points - 1)
        low = np.maximum(near.min(axis=0) - step, 0.0)
        high = np.minimum(near.max(axis=0) + step, MAX_TOTAL_RATE)
    best = int(lacking.argmin())
    share = found.prior * pairs[:, 0] + (1 - found.prior) * pairs[:, 1]
    # Points near the edge are moved onto it, along the line from the maximum, on which the
    # likelihood falls with the square of the distance.
    edge = (lacking > 0.5 * drop) & (lacking <= 1.5 * drop)
    reach = np.sqrt(drop / lacking[edge])

    def interval(values: Floats) -> Interval:
        ends = values[best] + reach * (values[edge] - values[best])
        inside = np.append(ends, values[lacking <= drop]).clip(0.0, 1.0)
        return float(inside.min()), float(inside.max())

    return Region(
        float(found.likelihood[best]),
        (float(pairs[best, 0]), float(pairs[best, 1])),
        float(found.prior[best]),
        float(share[best]),
        interval(pairs[:, 0]),
        interval(pairs[:, 1]),
        interval(share),
    )


def spread_of_posterior(rates: NoiseRates, interval: Any, together: Region) -> Floats:
    """Return by how much the rates are uncertain because g is, down and up, of shape (2, 2).

    The channel's interval knows of both uncertainties, the likelihood given g of one.
    """
    if interval is None:
        return np.zeros((2, 2))
    of_both = np.abs(np.array(interval.both()) - np.array(rates.both())[:, None])
    given = np.array([together.positive, together.negative])
    of_one = np.abs(given - np.array(together.rates)[:, None])
    return np.sqrt(np.maximum(of_both**2 - of_one**2, 0.0))
