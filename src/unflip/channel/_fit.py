"""Fit of the noise model: from samples and labels to T and the clean posterior."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2, norm

from unflip._utils.typing import Floats
from unflip.channel._check import check_channel, held_out_statistics
from unflip.channel._choose import Candidate, ChannelSample, Choice, Features
from unflip.channel._copies import distinct_rows
from unflip.channel._design import softmax_of_rows
from unflip.channel._evidence import ChannelFit, mean_softmax
from unflip.channel._explore import (
    AtOneMatrix,
    Exploration,
    Found,
    OverStructures,
    OverTwoRates,
)
from unflip.channel._forest import ForestFeatures
from unflip.channel._maximise import maximise
from unflip.channel._outcomes import ModelCheck
from unflip.channel._rates import box_of
from unflip.channel._settings import SETTINGS
from unflip.channel._structure import structures
from unflip.channel._temperature import held_out_logits, temperature_scaling
from unflip.channel._two_classes import two_rates
from unflip.noise import Noise, RatesInterval, TransitionMatrix

Moderation = tuple[Floats, Floats, Floats]


@dataclass(frozen=True)
class FittedChannel:
    """The fitted noise model."""

    # T with its distribution.
    found: Found
    # "linear", "nystroem", "trees" or "logits".
    features_name: str
    features: Features
    coef: Floats
    # The factor of temperature scaling.
    factor: float
    # What is known of the uncertainty of w.
    moderation: Moderation | None
    # Goodness of fit, where that was asked.
    check: ModelCheck | None = None

    @property
    def rates(self) -> Noise:
        """The estimate of T."""
        return as_rates(self.found.T)

    @property
    def mean_rates(self) -> Noise:
        """The mean of the distribution of T, which never rules noise out."""
        return as_rates(self.found.mean_matrix)

    def interval(self, level: float) -> RatesInterval:
        """Return the shortest range that holds each rate with probability `level`."""
        return self.found.distribution.interval(level)

    def clean_posterior(self, rows: Floats) -> Floats:
        """Return P(true | x) of new rows."""
        F, offset = self.features.transform(rows), self.features.offset(rows)
        t = F @ self.coef
        t = self.factor * (t if offset is None else t + offset)
        return _clean(t, F, self.moderation)


def as_rates(T: Floats) -> Noise:
    """Return T as users know it: as two rates for two classes."""
    noise = TransitionMatrix(T)
    return noise.rates if len(T) == 2 else noise


def _clean(logits: Floats, F: Floats, moderation: Moderation | None) -> Floats:
    """Return P(true | x), averaged over w where its uncertainty is known."""
    if moderation is None:
        return softmax_of_rows(logits)
    root, directions, covariances = moderation
    return mean_softmax(logits, F * root, directions, covariances)


@dataclass(frozen=True)
class FittedRows:
    """The rows of a fit, whose features do not know their labels, even by a forest.

    Parameters
    ----------
    fit : ChannelFit
        The fit to distinct pairs of row and label.
    factor : float
        What its t is multiplied by.
    moderation : (root, directions, covariances) or None
        What is known of the uncertainty of w.
    position : ndarray of shape (n_samples,)
        The pair of each row.
    sample : ChannelSample
        The pairs.
    features : ChannelFeatures or ForestFeatures
        What t is linear in.
    scores : ndarray or None
        The held-out scores that a forest has for them.
    """

    fit: ChannelFit
    factor: float
    moderation: Moderation | None
    position: NDArray[np.intp]
    sample: ChannelSample
    features: Features
    scores: Floats | None

    def held_out(self) -> Floats:
        """Return P(true | x) of the rows, each without its own label; T and variances are held."""
        fit, sample = self.fit, self.sample
        F, logits = fit.design.features, held_out_logits(fit)
        if isinstance(self.features, ForestFeatures) and self.scores is not None:
            # held-out scores of a part of the trees vary more than those that predict new rows
            steadier = self.features.steadier(sample.rows, sample.codes, sample.weight, self.scores)
            before, F = F, F.copy()
            F[: len(steadier), -sample.n_classes :] = steadier
            logits += (F - before) @ fit.unscaled_coef
        return _clean(self.factor * logits, F, self.moderation)[self.position]


def fit_channel(
    sample: ChannelSample,
    known: Noise | None,
    random_state: np.random.RandomState,
    *,
    features: str = "auto",
    n_centers: int = 60,
    estimate: str = "median",
) -> tuple[FittedChannel, FittedRows]:
    """Fit P(noisy | x) = softmax(t(x)) T, and return it with the rows as it has seen them.

    With "auto", the evidence chooses between the columns and RBF features beside them. If trees
    that are grown on some samples help to predict others, the scores of a forest are compared with
    them too. The goodness of fit is tested at the end.

    Parameters
    ----------
    sample : ChannelSample
        The noisy data.
    known : NoiseRates, TransitionMatrix or None
        What is known of T: for two classes also bounds of the rates.
    random_state : RandomState instance
        Generator of the centers, of the order of the rows and of the draws.
    features : {"auto", "linear", "nystroem", "trees"}, default="auto"
        What t is linear in.
    n_centers : int, default=60
        Maximum number of RBF features.
    estimate : {"median", "mean"}, default="median"
        "mean": the mean over all structures. "median": no noise if that has a probability above
        1/2, else the mean over the others, or the medians of two rates.
    """
    found = distinct_rows(sample.rows, sample.codes, sample.weight, random_state)
    sample = replace(
        sample, rows=sample.rows[found.first], codes=sample.codes[found.first], weight=found.weight
    )
    exploration = _exploration(known, sample.n_classes, estimate)
    choice = Choice(sample, exploration, n_centers)
    columns = choice.columns()

    def finished(chosen: Candidate) -> tuple[FittedChannel, FittedRows]:
        return final_fit(sample, found.position, exploration, chosen, random_state)

    if features == "linear":
        return finished(columns)
    if features == "nystroem":
        return finished(choice.with_rbf(columns))
    if features == "trees":
        return finished(choice.trees(columns, random_state))
    smooth = choice.smooth(columns)
    fitted = finished(smooth)
    statistics = _statistics(fitted[1])
    if norm.sf(max(statistics)) < SETTINGS.forest_p_value:
        trees = choice.trees(columns, random_state)
        n_rows = min(len(sample.rows), SETTINGS.pilot_samples)
        if n_rows * (trees.height - smooth.height) > SETTINGS.forest_evidence:
            fitted = finished(trees)
            statistics = _statistics(fitted[1])
    return _checked(fitted, statistics[0])


def _statistics(rows: FittedRows) -> tuple[float, float]:
    """Return the statistics of held-out labels; with few samples, trees hardly learn anything."""
    head = rows.sample.rows[: SETTINGS.pilot_samples]
    if len(head) < SETTINGS.fewest_checked:
        return 0.0, 0.0
    return held_out_statistics(head, rows.fit, rows.factor)


def _exploration(known: Noise | None, n_classes: int, estimate: str) -> Exploration:
    """Return how T is explored, given what is known of it."""
    if n_classes == 2:
        box = box_of(known.rates if isinstance(known, TransitionMatrix) else known)
        if any(low < high for low, high in box):
            return OverTwoRates(box, estimate)
        return AtOneMatrix(two_rates([low for low, _ in box]))
    if isinstance(known, TransitionMatrix):
        return AtOneMatrix(known.matrix)
    return OverStructures(estimate)


def final_fit(
    sample: ChannelSample,
    position: NDArray[np.intp],
    exploration: Exploration,
    chosen: Candidate,
    random_state: np.random.RandomState,
) -> tuple[FittedChannel, FittedRows]:
    """Return the fit on all rows, its logits scaled by held-out labels."""
    n_rows = len(sample.rows)
    fit, found = exploration.finished(
        chosen.maxima,
        lambda n: sample.design(chosen.features, n, chosen.held_out),
        n_rows,
        random_state,
    )
    place = fit.structure, fit.theta, found.T
    factor = temperature_scaling(held_out_logits(fit), fit.design, *place).factor
    moderation = None
    if n_rows <= SETTINGS.pilot_samples and factor == 1:
        root = np.sqrt(fit.variance[fit.design.block])
        moderation = root, fit.directions, fit.covariances
    coef = fit.unscaled_coef
    channel = FittedChannel(found, chosen.name, chosen.features, coef, factor, moderation)
    rows = FittedRows(fit, factor, moderation, position, sample, chosen.features, chosen.held_out)
    return channel, rows


def _checked(
    fitted: tuple[FittedChannel, FittedRows], statistic: float
) -> tuple[FittedChannel, FittedRows]:
    """Return the same with its goodness of fit."""
    channel, rows = fitted
    check = check_channel(rows.sample.rows, rows.fit, rows.factor, statistic)
    if channel.found.distribution.is_known:
        check = replace(check, likelier_rates=_likelier(rows))
    return replace(channel, check=check), rows


def _likelier(fitted: FittedRows) -> Noise | None:
    """Return the rates at which the labels are likelier than at given ones, if much; else None.

    Twice the gain of the log-evidence is about chi-squared, with a degree of freedom per class.
    """
    sample, K = fitted.sample, fitted.sample.n_classes
    design = sample.design(fitted.features, SETTINGS.pilot_samples, fitted.scores)
    given = maximise(
        design, fitted.fit.structure, fitted.fit.theta, fitted.fit.variance, T=fitted.fit.T
    ).fit
    per_class = structures(K, free=False)[2]
    best = maximise(design, per_class, per_class.start(), given.variance, given.unscaled_coef).fit
    deviance = 2 * (best.log_likelihood - given.log_likelihood)
    apart = np.abs(np.diag(best.T) - np.diag(given.T)).max()
    if apart < SETTINGS.contradiction_difference:
        return None
    if chi2.sf(deviance, K) > norm.sf(SETTINGS.suspect_statistic):
        return None
    return as_rates(best.T)
