r"""The noise model with somebody's held-out probabilities p of the observed labels as features.

Their centred logarithms are logits: t = a log p + b is what a model says that is over- or
underconfident, and W log p beside it, with a prior around zero, what it confuses,

    P(observed | x) = softmax(a log p + W log p + b) T.

A model that was trained on noisy labels has learnt the noise with them: p = q T is then flat where
T is. So the noise is found twice: by one factor a, and with q, from which the first T is removed.

A sample may belong to no class. Its label is drawn by the shares of the labels, and it is told by
how flat softmax(a log p + b) is: a sample between two classes rules out the other classes, and a
sample of no class rules out none.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import expit, logit, logsumexp

from unflip._utils.simplex import scaled_rows
from unflip._utils.typing import Codes, Floats
from unflip.channel._choose import ChannelSample, Choice
from unflip.channel._copies import distinct_rows
from unflip.channel._design import softmax_over_classes
from unflip.channel._evidence import ChannelFit
from unflip.channel._explore import AtOneMatrix, Exploration, OverStructures, OverTwoRates
from unflip.channel._features import LogitFeatures
from unflip.channel._fit import FittedChannel, final_fit
from unflip.channel._rates import box_of
from unflip.channel._settings import SETTINGS


@dataclass(frozen=True)
class NoClass:
    """P(no class | x), whose odds are c e / (1 - e): e tells how unusually flat a sample is."""

    # Softmax(a log p + b) tells how flat a sample is.
    tied: "_Tied"
    # Mean logarithm of the shares of the labels.
    log_share: float
    # The flatness up to which samples belong to some class.
    usual: float
    log_odds: float = -np.inf

    def flatness(self, logs: Floats) -> Floats:
        """Return the geometric mean over the classes of P(true | x) / share: 1 if they are equal."""
        # the logits are centred: their mean is 0
        return np.asarray(np.exp(-logsumexp(self.tied.logits(logs), axis=1) - self.log_share))

    def log_odds_of(self, logs: Floats) -> Floats:
        """Return the logarithm of e / (1 - e) of samples; without an end where e is 0."""
        excess = (self.flatness(logs) - self.usual) / (1 - self.usual)
        return logit(np.clip(excess, 0.0, SETTINGS.largest_excess))

    def proba(self, logs: Floats) -> Floats:
        """Return P(no class | x)."""
        return expit(self.log_odds + self.log_odds_of(logs))


@dataclass(frozen=True)
class LabelProbabilities:
    """What the model implies for samples and their observed labels."""

    # P(true | x), if x belongs to some class.
    clean: Floats
    # P(true | x, label), if x belongs to some class.
    label: Floats
    # P(x belongs to some class | x, label).
    some_class: Floats
    # P(label | x).
    observed: Floats


@dataclass(frozen=True)
class FittedProbabilities:
    """The noise model fitted to held-out probabilities and labels."""

    channel: FittedChannel
    # What calibrates the probabilities for the observed labels.
    calibration: "_Tied"
    # The T that is removed from the probabilities first; None: they are used as they are.
    removed: Floats | None
    none: NoClass | None
    shares: Floats

    def predict(self, noisy_proba: Floats, codes: Codes) -> LabelProbabilities:
        """Return what the model implies for samples and their observed labels."""
        logs = self.calibration.logits(centred_logs(np.asarray(noisy_proba, dtype=np.float64)))
        clean = self.channel.clean_posterior(_without_noise(logs, self.removed))
        label = clean * self.channel.found.mean_matrix.T[codes]
        observed = label.sum(axis=1)
        label /= observed[:, None]
        some = np.ones(codes.size)
        if self.none is not None:
            none = self.none.proba(logs)
            of_some = (1 - none) * observed
            observed = of_some + none * self.shares[codes]
            some = of_some / observed
        return LabelProbabilities(clean, label, some, observed)


def fit_probabilities(
    noisy_proba: Floats,
    codes: NDArray[np.intp],
    weight: Floats,
    random_state: np.random.RandomState,
) -> FittedProbabilities:
    """Fit the noise model to held-out probabilities of the observed labels."""
    K = noisy_proba.shape[1]
    most = max(SETTINGS.probability_values // K, SETTINGS.fewest_probability_samples)
    if codes.size > most:
        drawn = np.sort(random_state.choice(codes.size, most, replace=False))
        noisy_proba, codes, weight = noisy_proba[drawn], codes[drawn], weight[drawn]
    p = np.asarray(noisy_proba, dtype=np.float64)
    found = distinct_rows(p, codes, weight, random_state)
    p = p[found.first]
    sample = ChannelSample(centred_logs(p), codes[found.first], found.weight, K)
    seen = _tied(sample, AtOneMatrix(np.eye(K)), 1.0, random_state)
    sample = replace(sample, rows=seen.logits(sample.rows))
    counts = np.bincount(sample.codes, sample.weight, minlength=K) + 1
    shares = counts / counts.sum()
    exploration = _exploration(K)
    removed = none = None
    features = LogitFeatures()
    if K > 2:
        tied = _tied(sample, exploration, 1.0, random_state)
        found_none = _with_none(sample, tied, shares, exploration, random_state)
        if found_none is not None:
            tied, none = found_none
            sample = replace(sample, weight=sample.weight * _some_class(sample, tied, none, shares))
        features = tied.features
        if K <= SETTINGS.most_target_classes:
            removed, features = tied.T, LogitFeatures()
            sample = replace(sample, rows=_without_noise(sample.rows, removed))
    chosen = Choice(sample, exploration, 0).of_logits(features)
    channel, _ = final_fit(sample, found.position, exploration, chosen, random_state)
    return FittedProbabilities(channel, seen, removed, none, shares)


def _exploration(n_classes: int) -> Exploration:
    """Return how T is explored if nothing is known of it."""
    # the mean of T never rules noise out, so that wrong labels can always be ranked
    return OverTwoRates(box_of(None), "mean") if n_classes == 2 else OverStructures("mean")


@dataclass(frozen=True)
class _Tied:
    """The fit of t = a log p + b."""

    features: LogitFeatures
    shift: Floats
    T: Floats

    def logits(self, logs: Floats) -> Floats:
        """Return a log p + b, centred."""
        t = self.features.factor * logs + self.shift
        return np.asarray(t - t.mean(axis=1, keepdims=True))

    def observed(self, sample: ChannelSample) -> Floats:
        """Return P(label | x) of samples that belong to some class."""
        g = softmax_over_classes(np.ascontiguousarray(self.logits(sample.rows).T))
        given = (g * self.T[:, sample.codes]).sum(axis=0)
        return np.maximum(given, SETTINGS.smallest_probability)


def _tied(
    sample: ChannelSample,
    exploration: Exploration,
    factor: float,
    random_state: np.random.RandomState,
) -> _Tied:
    """Return the fit of t = a log p + b, with the likeliest a."""
    for _ in range(SETTINGS.factor_rounds):
        features = LogitFeatures(factor, columns=False)
        choice = Choice(sample, exploration, 0).of_logits(features)
        change = _likeliest_factor(exploration.best(choice.maxima))
        if abs(np.log(change)) < SETTINGS.settled_log_factor:
            break
        factor *= change
    n_pilot = min(len(sample.rows), SETTINGS.pilot_samples)
    fit, found = exploration.finished(
        choice.maxima, lambda n: sample.design(features, n), n_pilot, random_state
    )
    return _Tied(features, fit.unscaled_coef[0], found.mean_matrix)


def _likeliest_factor(fit: ChannelFit) -> float:
    """Return the factor of t at which the labels are likeliest at the same T."""
    t, given = fit.design.logits(fit.unscaled_coef), fit.T[:, fit.design.codes]

    def loss(log_factor: float) -> float:
        g = softmax_over_classes(np.exp(log_factor) * t)
        p = np.maximum((g * given).sum(axis=0), SETTINGS.smallest_probability)
        prior = (log_factor / SETTINGS.log_factor_deviation) ** 2 / 2
        return prior - float(fit.design.weight @ np.log(p))

    widest = float(np.log(SETTINGS.largest_factor))
    found = minimize_scalar(loss, bounds=(-widest, widest), method="bounded")
    return float(np.exp(found.x))


def _with_none(
    sample: ChannelSample,
    tied: _Tied,
    shares: Floats,
    exploration: Exploration,
    random_state: np.random.RandomState,
) -> tuple[_Tied, NoClass] | None:
    """Return the fit with samples that belong to no class; None without evidence of any."""
    plain = float(sample.weight @ np.log(tied.observed(sample)))
    none, height = _no_class(sample, tied, shares)
    for _ in range(2):  # flatness is that of the fit before
        if height <= plain:
            return None
        weight = sample.weight * _some_class(sample, tied, none, shares)
        tied = _tied(replace(sample, weight=weight), exploration, tied.features.factor, random_state)
        none, height = _no_class(sample, tied, shares)
    total = float(sample.weight.sum())
    # BIC's price of two more parameters, the odds and the usual flatness, and what a model that is
    # not quite calibrated gains; it gains more where all samples are flat
    price = np.log(total) + SETTINGS.miscalibration * total / (1 - none.usual) ** 2
    return (tied, none) if height - plain > price else None


def _no_class(sample: ChannelSample, tied: _Tied, shares: Floats) -> tuple[NoClass, float]:
    """Return the likeliest odds of belonging to no class, and the log-likelihood."""
    blank = NoClass(tied, float(np.log(shares).mean()), 0.0)
    flat = blank.flatness(sample.rows)
    usual = float(
        np.quantile(flat, SETTINGS.usual_quantile, weights=sample.weight, method="inverted_cdf")
    )
    blank = replace(blank, usual=min(usual, SETTINGS.largest_excess))
    by_class, odds = tied.observed(sample), blank.log_odds_of(sample.rows)
    at_random = shares[sample.codes]

    def loss(log_odds: float) -> float:
        none = expit(log_odds + odds)
        return -float(sample.weight @ np.log((1 - none) * by_class + none * at_random))

    found = minimize_scalar(loss, bounds=(-10.0, 10.0), method="bounded")
    return replace(blank, log_odds=float(found.x)), -float(found.fun)


def _some_class(sample: ChannelSample, tied: _Tied, none: NoClass, shares: Floats) -> Floats:
    """Return P(some class | x, label)."""
    proba = none.proba(sample.rows)
    some = (1 - proba) * tied.observed(sample)
    return np.asarray(some / (some + proba * shares[sample.codes]))


def centred_logs(p: Floats) -> Floats:
    """Return log p less its mean over the classes."""
    logs = np.log(np.maximum(p, SETTINGS.smallest_held_out))
    logs -= logs.mean(axis=1, keepdims=True)
    return np.asarray(logs)


def _without_noise(logs: Floats, T: Floats | None) -> Floats:
    """Return log q of p = q T, approximately, by a few EM steps towards the likeliest mixture.

    W absorbs the error that they leave.
    """
    if T is None:
        return logs
    p = softmax_over_classes(np.ascontiguousarray(logs.T)).T
    q = scaled_rows(np.maximum(p @ np.linalg.inv(T), SETTINGS.inversion_start))
    for _ in range(SETTINGS.inversion_steps):
        # T may rule a label out
        q *= (p / np.maximum(q @ T, SETTINGS.smallest_held_out)) @ T.T
    return centred_logs(q)
