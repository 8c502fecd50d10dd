r"""The noise model with somebody's held-out probabilities p of the observed labels as features.

    P(observed | x) = softmax(log q + W log p + b) T,    q T_0 = softmax(a log p + c).

a and c calibrate p for the observed labels. T_0 is the noise that the model has learnt with the
labels and repeats, so that p is never sure of a class whose labels are flipped; it is the T of a
fit in which W is one factor of the logits. W, with a prior around zero, says what the model
confuses.

A sample may belong to no class. Its label is drawn by the shares of the labels, and it is told by
how flat softmax(a log p + b) is: a sample between two classes rules out the other classes, and a
sample of no class rules out none.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import expit, logit, logsumexp

from unflip._utils.typing import Codes, Floats
from unflip.channel._choose import ChannelSample, Choice
from unflip.channel._copies import distinct_rows
from unflip.channel._design import softmax_of_rows, softmax_over_classes
from unflip.channel._evidence import ChannelFit
from unflip.channel._explore import AtOneMatrix, Exploration, OverStructures, OverTwoRates
from unflip.channel._features import LogitFeatures, centred_logs
from unflip.channel._fit import FittedChannel, final_fit
from unflip.channel._one_rate import fit_one_rate, one_rate_matrix
from unflip.channel._rates import box_of
from unflip.channel._settings import SETTINGS


@dataclass(frozen=True)
class ScaledLogits:
    """The fit of t = a log p + b."""

    features: LogitFeatures
    shift: Floats
    T: Floats

    def proba(self, logs: Floats) -> Floats:
        """Return P(true | x) of samples that belong to some class."""
        return softmax_of_rows(self.logits(logs))

    def logits(self, logs: Floats) -> Floats:
        """Return a log p + b, centred."""
        t = self.features.offset(logs) + self.shift
        return np.asarray(t - t.mean(axis=1, keepdims=True))

    def observed(self, sample: ChannelSample) -> Floats:
        """Return P(label | x) of samples that belong to some class."""
        given = (self.proba(sample.rows).T * self.T[:, sample.codes]).sum(axis=0)
        return np.maximum(given, SETTINGS.smallest_probability)


@dataclass(frozen=True)
class NoClass:
    """P(no class | x), whose odds are c e / (1 - e): e tells how unusually flat a sample is."""

    # Softmax(a log p + b) tells how flat a sample is.
    scaled: ScaledLogits
    # Shares of the labels, by which labels of samples of no class are drawn.
    shares: Floats
    # The flatness up to which samples belong to some class.
    usual: float = 0.0
    # Log c.
    log_odds: float = -np.inf

    def flatness(self, logs: Floats) -> Floats:
        """Return the geometric mean over the classes of P(true | x) / share: 1 where equal."""
        # the logits are centred: their mean is 0
        total = logsumexp(self.scaled.logits(logs), axis=1)
        return np.asarray(np.exp(-total - np.log(self.shares).mean()))

    def excess_odds(self, logs: Floats) -> Floats:
        """Return log e / (1 - e), which is -inf where a sample is as flat as most."""
        excess = (self.flatness(logs) - self.usual) / (1 - self.usual)
        return np.asarray(logit(np.clip(excess, 0.0, SETTINGS.largest_excess)))

    def mixed(self, logs: Floats, codes: Codes, by_class: Floats) -> tuple[Floats, Floats]:
        """Return P(label | x) and P(some class | x, label), from P(label | x) of some class."""
        none = expit(self.log_odds + self.excess_odds(logs))
        some = (1 - none) * by_class
        observed = some + none * self.shares[codes]
        return observed, some / observed


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
    calibration: ScaledLogits
    # None: all samples belong to some class.
    none: NoClass | None
    # Number of samples that the model was fitted to, by weight.
    n_samples: float

    @property
    def transition(self) -> Floats:
        """T from which P(true | x, label) follows.

        If no noise is the most probable hypothesis, labels hardly tell which classes flips would go
        to: they go to all others alike, at the mean rate, and one label is flipped at least. So
        labels can always be ranked.
        """
        T, K = self.channel.found.mean_matrix, len(self.channel.found.T)
        if self.channel.found.structure_probability["none"] <= 0.5:
            return T
        rate = max(1 - float(np.diag(T).mean()), 1 / self.n_samples)
        return one_rate_matrix(rate, K)

    def predict(self, noisy_proba: Floats, codes: Codes) -> LabelProbabilities:
        """Return what the model implies for samples and their observed labels."""
        logs = self.calibration.logits(centred_logs(np.asarray(noisy_proba, dtype=np.float64)))
        clean = self.channel.clean_posterior(logs)
        label = clean * self.transition.T[codes]
        observed = label.sum(axis=1)
        label /= observed[:, None]
        some = np.ones(codes.size)
        if self.none is not None:
            observed, some = self.none.mixed(logs, codes, observed)
        return LabelProbabilities(clean, label, some, observed)


def fit_probabilities(
    noisy_proba: Floats,
    codes: NDArray[np.intp],
    weight: Floats | None,
    random_state: np.random.RandomState,
) -> FittedProbabilities:
    """Fit the noise model to held-out probabilities of the observed labels."""
    K = noisy_proba.shape[1]
    weight = np.ones(codes.size) if weight is None else weight
    most = max(SETTINGS.probability_values // K, SETTINGS.fewest_probability_samples)
    if codes.size > most:
        drawn = np.sort(random_state.choice(codes.size, most, replace=False))
        noisy_proba, codes, weight = noisy_proba[drawn], codes[drawn], weight[drawn]
    p = np.asarray(noisy_proba, dtype=np.float64)
    found = distinct_rows(p, codes, weight, random_state)
    p = p[found.first]
    sample = ChannelSample(centred_logs(p), codes[found.first], found.weight, K)
    exploration, none, removed = _exploration(K), None, None
    many = SETTINGS.most_target_classes < K
    calibration = ScaledLogits(LogitFeatures(columns=False), np.zeros(K), np.eye(K))
    if not many:  # otherwise the factor of the one fit is enough
        calibration = _scaled(sample, AtOneMatrix(np.eye(K)), random_state)
    sample = replace(sample, rows=calibration.logits(sample.rows))
    if K > 2:  # of two classes, W is a, and samples between them look like samples of no class
        scaled = _scaled(sample, exploration, random_state)
        scaled, none = _with_none(sample, scaled, exploration, random_state)
        if none is not None:
            sample = _of_some_class(sample, none)
        removed = None if many else scaled.T

    def fit_without(noise: Floats | None) -> tuple[FittedChannel, float, float]:
        """Return the fit, its log-evidence, and the share of the classes without anchor points."""
        if many:
            features = LogitFeatures(columns=False, removed=noise)
            cleared = replace(sample, rows=features.offset(sample.rows))
            features.factor, rate, height = fit_one_rate(cleared, random_state)
            channel = FittedChannel(rate, "logits", features, np.zeros((1, K)), 1.0, None)
            clean = channel.clean_posterior(sample.rows)
        else:
            chosen = Choice(sample, exploration, 0).of_logits(LogitFeatures(removed=noise))
            channel, rows = final_fit(sample, found.position, exploration, chosen, random_state)
            height, clean = rows.fit.log_likelihood, rows.fit.clean
        return channel, height, _share_without_anchors(sample, clean)

    channel, height, without = fit_without(removed)
    if without:
        # A calibrated model has learnt P(observed | x) with the noise, and explains the labels
        # without any. But then it is never sure of a class whose labels are flipped, and nearly all
        # classes have anchor points.
        other, its_height, its_without = fit_without(_anchor_matrix(sample))
        if its_height - height > SETTINGS.no_anchors * (its_without - without):
            channel = other
    n_samples = max(2.0, float(sample.weight.sum()))
    return FittedProbabilities(channel, calibration, none, n_samples)


def _exploration(n_classes: int) -> Exploration:
    """Return how T is explored if nothing is known of it."""
    # the mean of T never rules noise out, so that wrong labels can always be ranked
    return OverTwoRates(box_of(None), "mean") if n_classes == 2 else OverStructures("mean")


def _scaled(
    sample: ChannelSample,
    exploration: Exploration,
    random_state: np.random.RandomState,
    factor: float = 1.0,
) -> ScaledLogits:
    """Return the fit of t = a log p + b, with the likeliest a."""
    if sample.n_classes > SETTINGS.most_target_classes:
        return _one_rate(sample, random_state)
    for _ in range(SETTINGS.factor_rounds):
        features = LogitFeatures(factor, columns=False)
        choice = Choice(sample, exploration, 0).of_logits(features)
        change = _likeliest_factor(exploration.best(choice.maxima), factor)
        if abs(np.log(change)) < SETTINGS.settled_log_factor:
            break
        factor *= change
    n_pilot = min(len(sample.rows), SETTINGS.pilot_samples)
    fit, found = exploration.finished(
        choice.maxima, lambda n: sample.design(features, n), n_pilot, random_state
    )
    return ScaledLogits(features, fit.unscaled_coef[0], found.mean_matrix)


def _one_rate(sample: ChannelSample, random_state: np.random.RandomState) -> ScaledLogits:
    """Return the fit of t = a log p with one rate for all classes."""
    factor, found, _ = fit_one_rate(sample, random_state)
    features = LogitFeatures(factor, columns=False)
    return ScaledLogits(features, np.zeros(sample.n_classes), found.mean_matrix)


def _likeliest_factor(fit: ChannelFit, present: float) -> float:
    """Return the factor of t at which the labels are likeliest at the same T."""
    t, given = fit.design.logits(fit.unscaled_coef), fit.T[:, fit.design.codes]

    def loss(log_factor: float) -> float:
        g = softmax_over_classes(np.exp(log_factor) * t)
        p = np.maximum((g * given).sum(axis=0), SETTINGS.smallest_probability)
        prior = ((log_factor + np.log(present)) / SETTINGS.log_factor_deviation) ** 2 / 2
        return prior - float(fit.design.weight @ np.log(p))

    widest = float(np.log(SETTINGS.largest_factor))
    found = minimize_scalar(loss, bounds=(-widest, widest), method="bounded")
    return float(np.exp(found.x))


def _share_without_anchors(sample: ChannelSample, clean: Floats) -> float:
    """Return the share of the classes that next to no sample surely belongs to."""
    guess, sure = clean.argmax(axis=1), clean.max(axis=1) >= SETTINGS.sure
    samples = np.bincount(guess, sample.weight, minlength=sample.n_classes)
    anchors = np.bincount(guess[sure], sample.weight[sure], minlength=sample.n_classes)
    return float(np.mean((samples > 0) & (anchors < SETTINGS.anchor_share * samples)))


def _anchor_matrix(sample: ChannelSample) -> Floats:
    """Return T with P(observed | x) of the samples that the model is surest of, for each class."""
    p = softmax_of_rows(sample.rows)
    guess, T = p.argmax(axis=1), np.eye(sample.n_classes)
    for k in range(sample.n_classes):
        own = p[guess == k]
        if len(own):
            n_anchors = int(np.ceil(SETTINGS.anchor_share * len(own)))
            T[k] = own[np.argsort(own[:, k])[-n_anchors:]].mean(axis=0)
    if sample.n_classes > SETTINGS.most_target_classes:
        return one_rate_matrix(1 - float(np.diag(T).mean()), sample.n_classes)
    return T


def _with_none(
    sample: ChannelSample,
    plain: ScaledLogits,
    exploration: Exploration,
    random_state: np.random.RandomState,
) -> tuple[ScaledLogits, NoClass | None]:
    """Return the fit with samples that belong to no class, if labels give evidence of any."""
    before = float(sample.weight @ np.log(plain.observed(sample)))
    none, height = _likeliest_odds(sample, plain)
    for _ in range(2):  # samples of no class have spoilt the fit before
        if height <= before:
            return plain, None
        factor = none.scaled.features.factor
        scaled = _scaled(_of_some_class(sample, none), exploration, random_state, factor)
        none, height = _likeliest_odds(sample, scaled)
    total = float(sample.weight.sum())
    # BIC's price of two more parameters, the odds and the usual flatness, and what a model that is
    # not quite calibrated gains; it gains more where all samples are flat
    price = np.log(total) + SETTINGS.miscalibration * total / (1 - none.usual) ** 2
    return (scaled, none) if height - before > price else (plain, None)


def _likeliest_odds(sample: ChannelSample, scaled: ScaledLogits) -> tuple[NoClass, float]:
    """Return the likeliest odds of belonging to no class, and the log-likelihood."""
    counts = np.bincount(sample.codes, sample.weight, minlength=sample.n_classes) + 1
    blank = NoClass(scaled, counts / counts.sum())
    flat, share = blank.flatness(sample.rows), SETTINGS.usual_quantile
    usual = float(np.quantile(flat, share, weights=sample.weight, method="inverted_cdf"))
    blank = replace(blank, usual=min(usual, SETTINGS.largest_excess))
    by_class = scaled.observed(sample)

    def loss(log_odds: float) -> float:
        none = replace(blank, log_odds=log_odds)
        observed, _ = none.mixed(sample.rows, sample.codes, by_class)
        return -float(sample.weight @ np.log(observed))

    most = SETTINGS.largest_logit
    found = minimize_scalar(loss, bounds=(-most, most), method="bounded")
    return replace(blank, log_odds=float(found.x)), -float(found.fun)


def _of_some_class(sample: ChannelSample, none: NoClass) -> ChannelSample:
    """Return the sample, weighted by P(some class | x, label)."""
    by_class = none.scaled.observed(sample)
    _, some = none.mixed(sample.rows, sample.codes, by_class)
    return replace(sample, weight=sample.weight * some)
