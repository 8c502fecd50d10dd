"""The two engines behind :class:`ChannelPosterior`, and what it asks of either."""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from sklearn.decomposition import TruncatedSVD

from unflip._utils.progress import tick, work
from unflip._utils.typing import Codes, Floats
from unflip.channel import (
    FEATURES,
    EvidenceTest,
    ModelCheck,
    RidgeScores,
    SoftmaxChannel,
    SoftmaxSample,
    fit_softmax_channel,
)
from unflip.diagnostics import wrong_share_bounds
from unflip.noise import Noise, NoiseRates, RatesInterval, TransitionMatrix
from unflip.posterior._noisy_channel import (
    ChannelSample,
    NoisyChannel,
    ScoredChannel,
    check_channel,
    fit_noisy_channel,
    fit_scored_channel,
)

USUAL_STEPS = 40
"""Steps that the search for the evidence's maxima takes in all; for progress only."""


@dataclass(frozen=True)
class ChannelOptions:
    """What the engines are asked to do."""

    # "auto", "linear", "nystroem" or "trees"; None where a transformer has made the features.
    features: str | None
    n_centers: int
    estimate: str
    # What reduced the columns; None where nothing did.
    transformer: Any


class FittedChannel(Protocol):
    """A fitted noise model, for any number of classes."""

    @property
    def rates(self) -> Noise:
        """The estimate: NoiseRates for two classes, else a TransitionMatrix."""

    @property
    def mean_rates(self) -> Noise:
        """The mean of the distribution of the rates, which never rules noise out."""

    @property
    def features(self) -> str:
        """What the logits of the clean posterior are linear in."""

    @property
    def structure_probability(self) -> dict[str, float]:
        """The probability of each structure of T given the labels; empty where T is known."""

    @property
    def noise_test(self) -> EvidenceTest | None:
        """The test of no noise."""

    @property
    def symmetry_test(self) -> EvidenceTest | None:
        """The test of one rate for all classes."""

    @property
    def check(self) -> ModelCheck | None:
        """The goodness of fit."""

    def clean_proba(self, rows: Floats) -> Floats:
        """Return P(true | x) of new rows, one column per class."""

    def interval(self, level: float) -> RatesInterval:
        """Return the shortest range that holds each rate with probability `level`."""


def fit_channel_to(
    rows: Floats,
    codes: Codes,
    weight: Floats,
    n_classes: int,
    known: Any,
    options: ChannelOptions,
    random_state: np.random.RandomState,
) -> tuple[FittedChannel, Floats]:
    """Return the fitted noise model, and P(true | x) of each row without its own label."""
    if n_classes == 2:
        return _fit_two(rows, codes, weight, known, options, random_state)
    return _fit_many(rows, codes, weight, n_classes, known, options, random_state)


@dataclass(frozen=True)
class TwoClasses:
    """The evidence on a grid of two rates."""

    channel: NoisyChannel | ScoredChannel
    check: ModelCheck | None
    # The share of positive labels.
    noisy_prior: float

    @property
    def rates(self) -> NoiseRates:
        """The estimate."""
        return NoiseRates(*self.channel.rates)

    @property
    def mean_rates(self) -> NoiseRates:
        """The mean of the rates' distribution."""
        return NoiseRates(*self.channel.distribution.estimate("mean"))

    @property
    def features(self) -> str:
        """What the logits are linear in."""
        return "trees" if isinstance(self.channel, ScoredChannel) else "nystroem"

    @property
    def noise_test(self) -> EvidenceTest | None:
        """The test of no noise."""
        return self.channel.distribution.noise_test

    @property
    def symmetry_test(self) -> EvidenceTest | None:
        """The test of equal rates."""
        return self.channel.distribution.symmetry_test

    @property
    def structure_probability(self) -> dict[str, float]:
        """The probability of no noise, of equal rates, and of two rates."""
        if self.noise_test is None and self.symmetry_test is None:
            return {}
        none = 0.0 if self.noise_test is None else self.noise_test.probability
        alike = none if self.symmetry_test is None else self.symmetry_test.probability
        return {"none": none, "one rate": alike - none, "one rate per class": 1 - alike}

    def clean_proba(self, rows: Floats) -> Floats:
        """Return P(true | x) of new rows."""
        return _two_columns(self.channel.clean_posterior(rows))

    def interval(self, level: float) -> RatesInterval:
        """Return the shortest range that holds each rate with probability `level`."""
        positive, negative = self.channel.interval(level)
        wrong = wrong_share_bounds(positive, negative, self.noisy_prior)
        return RatesInterval.from_pairs(positive, negative, level, wrong)


def _two_columns(positive: Floats) -> Floats:
    return np.column_stack([1 - positive, positive])


@work((1.0, 1.0))
def _fit_two(
    rows: Floats,
    codes: Codes,
    weight: Floats,
    known: NoiseRates | None,
    options: ChannelOptions,
    random_state: np.random.RandomState,
) -> tuple[TwoClasses, Floats]:
    sample = ChannelSample(rows, codes == 1, weight)
    noisy_prior = float(np.average(sample.positive, weights=sample.weight))
    evidence = sample.merged(random_state)
    channel = fit_noisy_channel(
        evidence,
        known,
        bumps=options.features not in (None, "linear"),
        n_centers=options.n_centers,
        one_scale=options.features is not None and isinstance(options.transformer, TruncatedSVD),
        estimate=options.estimate,
    )
    tick()
    is_wide = isinstance(options.transformer, RidgeScores)
    if is_wide:  # scores are nearly all there is to see, and trees see if they are flat
        channel = channel.sharpened(evidence)
    settings = known, options.n_centers, options.estimate
    scored, check = None, None
    if options.features == "auto":
        scored, check = check_channel(channel, evidence, *settings)
    elif options.features == "trees":
        scored = fit_scored_channel(channel, evidence, *settings)
    if scored is not None:
        held_out = scored.held_out[evidence.place]
        return TwoClasses(scored.channel, check, noisy_prior), _two_columns(held_out)
    channel = channel if is_wide else channel.sharpened(evidence)
    held_out = channel.held_out(evidence)[evidence.place]
    return TwoClasses(channel, check, noisy_prior), _two_columns(held_out)


@dataclass(frozen=True)
class ManyClasses:
    """The maxima of the evidence over the structures of T."""

    channel: SoftmaxChannel

    @property
    def rates(self) -> TransitionMatrix:
        """The estimate."""
        return TransitionMatrix(self.channel.T)

    @property
    def mean_rates(self) -> TransitionMatrix:
        """The mean of T's distribution."""
        return TransitionMatrix(self.channel.mean_matrix)

    @property
    def features(self) -> str:
        """What the logits are linear in."""
        return self.channel.features_name

    @property
    def noise_test(self) -> EvidenceTest | None:
        """The test of no noise."""
        return self.channel.noise_test

    @property
    def symmetry_test(self) -> EvidenceTest | None:
        """The test of one rate for all classes."""
        return self.channel.alike_test

    @property
    def structure_probability(self) -> dict[str, float]:
        """The probability of each structure of T."""
        return self.channel.structure_probability

    @property
    def check(self) -> ModelCheck | None:
        """The goodness of fit."""
        return self.channel.check

    def clean_proba(self, rows: Floats) -> Floats:
        """Return P(true | x) of new rows."""
        return self.channel.clean_posterior(rows)

    def interval(self, level: float) -> RatesInterval:
        """Return the shortest range that holds each entry of T with probability `level`."""
        return self.channel.distribution.interval(level)


@work(USUAL_STEPS)
def _fit_many(
    rows: Floats,
    codes: Codes,
    weight: Floats,
    n_classes: int,
    known: TransitionMatrix | None,
    options: ChannelOptions,
    random_state: np.random.RandomState,
) -> tuple[ManyClasses, Floats]:
    candidates: tuple[str, ...] = ("linear",)
    if options.features is not None:
        candidates = FEATURES if options.features == "auto" else (options.features,)
    channel, fitted = fit_softmax_channel(
        SoftmaxSample(rows, codes, weight, n_classes),
        known,
        random_state,
        candidates=candidates,
        n_centers=options.n_centers,
        estimate=options.estimate,
        checked=options.features == "auto",
    )
    return ManyClasses(channel), fitted.held_out()
