"""How certain the error rate and T are: the hypotheses are fitted to resamples again."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import ndtri

from unflip._diagnostics.findings import LEVEL
from unflip._probabilities.hypotheses import FittedSamples, fit_again
from unflip._probabilities.mixture import HypothesisMixture
from unflip._probabilities.settings import SETTINGS
from unflip._utils.simplex import scaled_rows
from unflip._utils.threads import one_blas_thread
from unflip._utils.typing import Array, Floats
from unflip.noise import RatesInterval


def average_transition(
    label_proba: Floats, codes: Array, sample_weight: Floats | None = None
) -> Floats:
    """Return T[i, j] = P(observed = j | true = i), averaged over the samples.

    P(true) T is then the joint distribution of true and observed labels that the probabilities
    imply, so that T, the error rate and the probabilities never contradict each other.
    """
    n_classes = label_proba.shape[1]
    weighted = label_proba if sample_weight is None else label_proba * sample_weight[:, None]
    columns = (np.bincount(codes, column, minlength=n_classes) for column in weighted.T)
    joint = np.array(list(columns), dtype=np.float64)
    unseen = joint.sum(axis=1) <= 0
    joint[unseen, unseen] = 1.0  # a class that no sample may belong to is never mislabelled
    return scaled_rows(joint)


def rates_interval(
    mixture: HypothesisMixture,
    transition: Floats,
    error_rate: float,
    n_samples: float,
    determined: bool,
) -> RatesInterval:
    """Return 95 % bounds of T and of the error rate, if the noise model holds.

    The variance has three parts: that within the hypotheses, by the bootstrap; that between them;
    and the model's own miscalibration. The sum is taken as normal.
    """
    n_classes = transition.shape[0]
    sample = mixture.sample
    step = max(1, sample.codes.size * n_classes // SETTINGS.replicated_values)
    few = sample.every(step)
    p = scaled_rows(np.exp(few.logs))
    generator = np.random.default_rng(0)  # the same data have the same interval
    with one_blas_thread():
        replicates = [
            _rates(again, p[kept], determined)
            for kept, again in (
                _refitted(mixture, few, p, generator) for _ in range(SETTINGS.replicates)
            )
        ]
        single = [
            _rates(
                replace(mixture, hypotheses=(one,), weights=np.ones(1), sample=few), p, determined
            )
            for one in mixture.hypotheses
        ]
    scale = float(few.weight.sum()) / max(n_samples, 1.0)
    width = float(ndtri((1 + LEVEL) / 2))
    of_class = n_samples * sample.shares[:, None]
    matrices, rates = zip(*replicates, strict=True)
    single_matrices, single_rates = zip(*single, strict=True)
    spread = width * np.sqrt(
        _variance(transition, matrices, single_matrices, mixture.weights, scale, of_class)
    )
    all_samples = np.asarray(n_samples)
    rate = np.asarray(error_rate)
    rate_spread = width * float(
        np.sqrt(_variance(rate, rates, single_rates, mixture.weights, scale, all_samples))
    )
    return RatesInterval(
        np.maximum(transition - spread, 0.0),
        np.minimum(transition + spread, 1.0),
        LEVEL,
        (max(error_rate - rate_spread, 0.0), min(error_rate + rate_spread, 1.0)),
    )


def _variance(
    estimate: Floats,
    replicates: Sequence[Any],
    by_hypothesis: Sequence[Any],
    weights: Floats,
    scale: float,
    counted: Floats,
) -> Floats:
    """Return the variance within hypotheses, between them, and by the model's miscalibration."""
    # at least that of counting `counted` labels whose errors are known: none seen is not none
    share = (estimate * counted + 0.5) / (counted + 1)
    least = share * (1 - share) / (counted + 1)
    within = np.maximum(scale * np.var(replicates, axis=0, ddof=1), least)
    mean = np.average(by_hypothesis, axis=0, weights=weights)
    between = np.average((np.asarray(by_hypothesis) - mean) ** 2, axis=0, weights=weights)
    own = SETTINGS.relative_model_error * np.minimum(estimate, 1 - estimate)
    return np.asarray(within + between + own**2)


def _refitted(
    mixture: HypothesisMixture, few: FittedSamples, p: Floats, generator: np.random.Generator
) -> tuple[Array, HypothesisMixture]:
    """Return the samples of a resample, and the hypotheses fitted to it."""
    counts = generator.multinomial(few.codes.size, few.weight / few.weight.sum())
    kept = np.flatnonzero(counts)
    resample = FittedSamples(few.logs[kept], few.codes[kept], counts[kept].astype(float))
    hypotheses = tuple(
        fit_again(resample.with_logs(one.logs(p[kept])), one, with_none=one.none_odds > 0)
        for one in mixture.hypotheses
    )
    return kept, replace(mixture, hypotheses=hypotheses, sample=resample)


def _rates(mixture: HypothesisMixture, p: Floats, determined: bool) -> tuple[Floats, float]:
    """Return T and the error rate of the mixture's own samples."""
    codes, weight = mixture.sample.codes, mixture.sample.weight
    found = mixture.predict(p, codes, determined)
    wrong = found.wrong_if_determined if determined else found.wrong_by_class
    return average_transition(found.label, codes, weight), float(np.average(wrong, weights=weight))
