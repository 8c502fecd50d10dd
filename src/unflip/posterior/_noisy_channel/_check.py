r"""Whether a channel explains the labels, and the channel behind boosted trees where it does not.

The check asks boosted trees to predict the channel's residuals, label - P(noisy=+1 | x), out of
fold. Where they can, the clean posterior has a shape that the channel cannot follow, and what it
cannot follow it calls noise. For any score s(x) of the rows,

    P(noisy=+1 | s) = rho_neg + (1 - rho_pos - rho_neg) P(true=+1 | s),

so that a channel can be fitted to held-out scores of trees instead.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit
from scipy.stats import chi2, norm
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.tree import DecisionTreeClassifier

from unflip._utils.threads import SCIKIT_LEARN, threads_for
from unflip._utils.typing import Floats
from unflip.channel import (
    DOUBTED,
    LEAST_CHECKED,
    LEAST_SURPRISE,
    MOST_LEAVES,
    REFUTED,
    Box,
    ChannelFeatures,
    ModelCheck,
    box_of,
    score_of_folds,
)
from unflip.diagnostics import LEVEL
from unflip.noise import NoiseRates
from unflip.posterior._noisy_channel._evidence import first_guess, fit_channel
from unflip.posterior._noisy_channel._fit import (
    N_GRID,
    ChannelSample,
    Evidence,
    Fold,
    NoisyChannel,
    dense,
    fit_noisy_channel,
)
from unflip.posterior._noisy_channel._surface import climb

N_CHECK_FOLDS, N_SCORE_FOLDS = 3, 5
"""Folds of the residuals' trees, and of the scores' trees."""

N_BINS = 63
"""Thresholds of a column that the residuals' trees see: more would take time and find no more."""

MOST_CHECKED = 6000
"""Of more rows, so many are enough to see what matters."""

LEAST_SCORED = 500
"""Of fewer rows, trees may refute a channel, but their own scores are too rough for rates."""

FEW_DISAGREE = 0.04
"""Labels that a channel but for so few explains, and a linear model does not, may have been made by
a rule: they were if a decision tree of MOST_LEAVES leaves gives them."""

MAX_LOGIT = 9.0
"""Scores are kept within these logits."""

LARGEST_MOVE, MOVE_SLACK = 0.05, 0.02
"""Difference of two models' rates that is worth a doubt, where one is outside of the other's
interval, too, by more than the slack."""

CONTRADICTED = 1e-3
"""Probability of labels that contradict given rates, where the rates are right."""

CLEAR_GAIN = 2.0
"""Standard errors by which one model explains the labels clearly better than another."""


@dataclass(frozen=True)
class ScoredChannel:
    """A channel on two scores of the rows: boosted trees' and the smooth channel's.

    Parameters
    ----------
    smooth : NoisyChannel
        The channel on the columns.
    trees : list of HistGradientBoostingClassifier
        One for each fold; their mean logit is the score of a new row.
    behind : NoisyChannel
        The channel on the scores.
    bounds : pair of floats
        Upper bounds of the rates: how often labels are the other one where the scores are most
        extreme.
    """

    smooth: NoisyChannel
    trees: list[HistGradientBoostingClassifier]
    behind: NoisyChannel
    bounds: tuple[float, float]

    @property
    def rates(self) -> tuple[float, float]:
        return self.behind.rates

    @property
    def distribution(self) -> Any:
        return self.behind.distribution

    def interval(self, level: float) -> Box:
        """Return the interval on the scores, up to the bounds that hold whatever the model."""
        low_high = self.behind.distribution.interval(level)
        (a, b), (c, d) = low_high
        return (a, max(b, self.bounds[0])), (c, max(d, self.bounds[1]))

    def clean_posterior(self, rows: Any) -> Floats:
        """Return P(true=+1 | x) of rows that the trees have not seen."""
        return self.behind.clean_posterior(self._scores(rows))

    def _scores(self, rows: Any) -> Floats:
        smooth = _noisy(self.smooth.rates, self.smooth.clean_posterior(rows))
        raw = np.zeros(smooth.size)
        for trees in self.trees:
            raw += trees.decision_function(dense(rows))
        return _score_columns(raw / len(self.trees), smooth)


@dataclass(frozen=True)
class Scored:
    """A channel on scores, with P(true=+1 | x) of the rows of the fit, held out from the trees."""

    channel: ScoredChannel
    held_out: Floats


def check_channel(
    channel: NoisyChannel,
    evidence: Evidence,
    known: NoiseRates | None,
    n_centers: int,
    estimate: str,
) -> tuple[Scored | None, ModelCheck]:
    """Return a channel on tree scores where that explains the labels better, and the check.

    Parameters
    ----------
    channel : NoisyChannel
        The channel on the columns.
    evidence : Evidence
        What it was fitted to.
    known : NoiseRates or None
        The known rates or bounds.
    n_centers : int
        Maximum number of bumps.
    estimate : {"median", "mean"}
        Point estimate of the rates.
    """
    units = evidence.units
    held_out = _noisy(channel.rates, channel.held_out(evidence))
    wrong = _disagreement(units, held_out)
    simple = wrong
    if wrong < FEW_DISAGREE:
        simple = _simple_disagreement(evidence, wrong)
    given = known is not None and known.known
    likelier = likelier_rates(channel, evidence) if given else None
    statistic, verdict, scored = 0.0, "believed", None
    if len(units.rows) < LEAST_CHECKED:
        pass
    elif wrong < FEW_DISAGREE < simple and follows_a_rule(units):
        verdict = "rule"
    elif wrong > LEAST_SURPRISE:
        few = units.head(MOST_CHECKED)
        fitted = _noisy(channel.rates, channel.clean_posterior(few.rows))
        statistic = residual_score(few, held_out[: len(few.rows)], fitted)
    if statistic >= DOUBTED:
        simple = _simple_disagreement(evidence, wrong)
        scored = fit_scored_channel(channel, evidence, known, n_centers, estimate)
        scored_out = _noisy(scored.channel.rates, scored.held_out)
        gain = _gain(units, held_out, scored_out)
        moved = _moved(channel, scored.channel.rates)
        if statistic >= REFUTED:
            verdict, chosen = "refuted", gain > 0 and len(units.rows) >= LEAST_SCORED
        else:
            verdict = "doubted" if moved and gain > -CLEAR_GAIN else "believed"
            chosen = moved and gain > CLEAR_GAIN
        if chosen:
            wrong = _disagreement(units, scored_out)
        else:
            scored = None
    return scored, ModelCheck(
        statistic=statistic,
        p_value=float(norm.sf(statistic)),
        verdict=verdict,
        disagreement=wrong,
        simple_disagreement=simple,
        n_rows=float(units.weight.sum()),
        likelier_rates=likelier,
    )


def follows_a_rule(units: ChannelSample) -> bool:
    """Return whether a small decision tree gives nearly all labels of rows it has not seen."""
    wrong = 0.0
    for others, fold in _folds(len(units.rows), 2):
        tree = DecisionTreeClassifier(max_leaf_nodes=MOST_LEAVES, random_state=0)
        tree.fit(units.rows[others], units.positive[others], units.weight[others])
        missed = tree.predict(units.rows[fold]) != units.positive[fold]
        wrong += float(units.weight[fold] @ missed)
    return wrong < LEAST_SURPRISE * float(units.weight.sum())


def likelier_rates(channel: NoisyChannel, evidence: Evidence) -> tuple[float, float] | None:
    """Return the rates at which the labels are likelier than at given ones, if much; else None."""
    part = max(channel.parts, key=lambda part: part.share)
    design = evidence.sample.head(N_GRID).design(part.features)
    given = fit_channel(design, channel.rates, part.fit)
    best, _ = climb(design, given, box_of(None))
    deviance = 2 * (best.log_evidence - given.log_evidence)
    apart = np.abs(best.rates - given.rates).max()
    if chi2.sf(deviance, 2) > CONTRADICTED or apart < LARGEST_MOVE:
        return None
    return float(best.rates[0]), float(best.rates[1])


def residual_score(units: ChannelSample, held_out: Floats, fitted: Floats) -> float:
    """Return by how many standard errors trees predict the residuals of rows they have not seen."""
    residual = units.positive - held_out
    columns = np.column_stack([units.rows, fitted])

    def gain(others: NDArray[np.bool_], fold: NDArray[np.bool_]) -> Floats:
        trees = HistGradientBoostingRegressor(
            learning_rate=0.15,
            max_iter=20,
            max_leaf_nodes=8,
            max_bins=N_BINS,
            early_stopping=False,
            random_state=0,
        )
        with SCIKIT_LEARN:
            trees.fit(columns[others], residual[others], _unequal(units.weight[others]))
        return np.asarray(units.weight[fold] * trees.predict(columns[fold]) * residual[fold])

    with threads_for(len(columns)):
        return score_of_folds(gain(*fold) for fold in _folds(len(columns), N_CHECK_FOLDS))


def fit_scored_channel(
    channel: NoisyChannel,
    evidence: Evidence,
    known: NoiseRates | None,
    n_centers: int,
    estimate: str,
) -> Scored:
    """Fit a channel to the held-out scores of boosted trees beside those of a channel.

    Parameters
    ----------
    channel, evidence, known, n_centers, estimate
        As for :func:`check_channel`.
    """
    units = evidence.units
    n_rows = len(units.rows)
    # not by leaving out single rows: on a plateau, that tells their labels
    smooth = _noisy(channel.rates, channel.out_of_fold(units, _folds(n_rows, N_SCORE_FOLDS)))
    raw, fitted = np.empty(n_rows), []
    with threads_for(n_rows):
        for others, fold in _folds(n_rows, N_SCORE_FOLDS):
            trees = HistGradientBoostingClassifier(
                max_leaf_nodes=15, early_stopping=False, random_state=0
            )
            with SCIKIT_LEARN:
                weight = _unequal(units.weight[others])
                trees.fit(units.rows[others], units.positive[others], weight)
            raw[fold] = trees.decision_function(units.rows[fold])
            fitted.append(trees)
    scores = _score_columns(raw, smooth)
    sample = ChannelSample(scores, units.positive, units.weight)
    behind = fit_noisy_channel(
        Evidence(sample, sample, np.arange(len(scores))),
        known,
        bumps=True,
        n_centers=n_centers,
        estimate=estimate,
    )
    scored = ScoredChannel(channel, fitted, behind, plateau_bounds(raw, units))
    return Scored(scored, behind.clean_posterior(scores))


def plateau_bounds(score: Floats, units: ChannelSample, sigmas: float = 2.5) -> tuple[float, float]:
    """Return upper bounds of the rates that hold for any clean posterior.

    Wherever one looks, labels are the other one at least as often as a class is flipped. The
    bounds are the least upper confidence limits of that share over sets of rows with the highest,
    and with the lowest scores.
    """
    order = np.argsort(score, kind="stable")
    bounds = []
    for places, other in ((order[::-1], ~units.positive), (order, units.positive)):
        weight = units.weight[places]
        total = weight.cumsum()
        share = ((weight * other[places]).cumsum() + 1) / (total + 2)
        limit = share + sigmas * np.sqrt(share * (1 - share) / total)
        enough = total >= min(100.0, total[-1] / 2)
        bounds.append(float(limit[enough].min()))
    return bounds[0], bounds[1]


def _folds(n_rows: int, n_folds: int) -> list[Fold]:
    """Return the rows to train on and those to hold out; the rows are in random order."""
    place = np.arange(n_rows) % n_folds
    return [(place != k, place == k) for k in range(n_folds)]


def _moved(channel: NoisyChannel, rates: tuple[float, float]) -> bool:
    """Return whether other rates are far from a channel's, and outside their interval."""
    return any(
        abs(other - rate) > LARGEST_MOVE and not low - MOVE_SLACK <= other <= high + MOVE_SLACK
        for other, rate, (low, high) in zip(
            rates, channel.rates, channel.interval(LEVEL), strict=True
        )
    )


def _unequal(weight: Floats) -> Floats | None:
    """Return the weights, or None where all are equal: trees bin columns faster without."""
    return weight if np.ptp(weight) > 0 else None


def _noisy(rates: tuple[float, float], clean: Floats) -> Floats:
    return np.asarray(NoiseRates(*rates).noisy_posterior(clean))


def _score_columns(raw: Floats, smooth: Floats) -> Floats:
    edge = expit(-MAX_LOGIT)
    scores = np.column_stack([raw, logit(np.clip(smooth, edge, 1 - edge))])
    return np.clip(scores, -MAX_LOGIT, MAX_LOGIT)


def _simple_disagreement(evidence: Evidence, least: float) -> float:
    """Return the disagreement of logistic regression with a prior, or `least`, if that is more."""
    few = evidence.sample.head(MOST_CHECKED)
    features = ChannelFeatures(None, 0).fit(few.rows, few.weight, np.arange(0))
    design = few.design(features)
    fit = fit_channel(design, (0.0, 0.0), first_guess(design))
    units = evidence.units
    return max(least, _disagreement(units, expit(features.latent(units.rows, fit.coef))))


def _disagreement(units: ChannelSample, probability: Floats) -> float:
    return float(np.average((probability > 0.5) != units.positive, weights=units.weight))


def _gain(units: ChannelSample, one: Floats, other: Floats) -> float:
    """Return by how many standard errors the other probabilities explain the labels better."""
    given = np.where(units.positive, [one, other], [1 - one, 1 - other])
    difference = np.diff(np.log(np.maximum(given, 1e-12)), axis=0)[0]
    spread = np.sqrt(
        (units.weight**2) @ (difference - np.average(difference, weights=units.weight)) ** 2
    )
    return float(units.weight @ difference / spread) if spread > 0 else 0.0
