"""How certain the error rate and T are: draws from the Laplace approximation of each hypothesis."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import ndtri

from unflip._probabilities.hypotheses import FittedSamples, NoiseHypothesis
from unflip._probabilities.mixture import HypothesisMixture
from unflip._probabilities.settings import SETTINGS
from unflip._utils.simplex import scaled_rows
from unflip._utils.threads import one_blas_thread
from unflip._utils.typing import Array, Floats
from unflip.diagnostics import LEVEL
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

    The variance has four parts: that within the hypotheses, between them, of the number of errors
    given their probabilities, and by the model's own miscalibration. The sum is taken as normal.
    """
    sample = mixture.sample
    few = sample.every(max(1, sample.codes.size * len(transition) // SETTINGS.drawn_values))
    p = scaled_rows(np.exp(few.logs))
    generator = np.random.default_rng(0)  # the same data have the same interval
    at_mode, drawn = [], []
    with one_blas_thread():
        for one in mixture.hypotheses:
            alone = replace(mixture, hypotheses=(one,), weights=np.ones(1), sample=few)
            at_mode.append(_rates(alone, p, determined))
            found = laplace_draws(one, few.with_logs(one.logs(p)), n_samples, generator)
            drawn.append(
                [_rates(replace(alone, hypotheses=(again,)), p, determined) for again in found]
            )
    width = float(ndtri((1 + LEVEL) / 2))
    of_class = n_samples * sample.shares[:, None]
    bounds = []
    for part, (estimate, counted) in enumerate(
        ((transition, of_class), (np.asarray(error_rate), np.asarray(n_samples)))
    ):
        modes = np.array([one[part] for one in at_mode])
        draws = [[one[part] for one in some] for some in drawn]
        spread = width * np.sqrt(_variance(estimate, modes, draws, mixture.weights, counted))
        bounds.append((np.maximum(estimate - spread, 0.0), np.minimum(estimate + spread, 1.0)))
    (low, high), (lowest, highest) = bounds
    return RatesInterval(low, high, LEVEL, (float(lowest), float(highest)))


def _variance(
    estimate: Floats, modes: Floats, draws: Sequence[Any], weights: Floats, counted: Floats
) -> Floats:
    """Return the sum of the four variances of an estimate."""
    within = np.average([np.var(one, axis=0, ddof=1) for one in draws], axis=0, weights=weights)
    mean = np.average(modes, axis=0, weights=weights)
    between = np.average((modes - mean) ** 2, axis=0, weights=weights)
    share = (estimate * counted + 0.5) / (counted + 1)  # none seen is not none
    counting = share * (1 - share) / (counted + 1)
    own = SETTINGS.relative_model_error * np.minimum(estimate, 1 - estimate)
    return np.asarray(within + between + counting + own**2)


def laplace_draws(
    one: NoiseHypothesis, sample: FittedSamples, n_samples: float, generator: np.random.Generator
) -> list[NoiseHypothesis]:
    """Return draws of a, b and the error rates e of the classes from N(mode, inverse information).

    The coordinates are log a, b and arcsin sqrt(e), in which a rate that is nearly 0 has a normal
    posterior too. Which classes wrong labels go to is known better than how many labels are wrong,
    and is kept.
    """
    n_classes = sample.shares.size
    rates = np.clip(1 - np.diag(one.matrix), 1e-9, 1 - 1e-9)
    information = n_samples * _information(one, sample, rates)
    information[0, 0] += SETTINGS.scale_spread**-2
    shifts = np.arange(1, 1 + n_classes)
    information[shifts, shifts] += SETTINGS.shift_spread(n_classes) ** -2
    angles = np.arange(1 + n_classes, len(information))
    information[angles, angles] += 4 * sum(SETTINGS.rate_prior)  # a label is worth 4, whatever e
    values, vectors = np.linalg.eigh(information)
    steps = generator.normal(size=(SETTINGS.draws, values.size)) / np.sqrt(values) @ vectors.T
    off_diagonal = scaled_rows(one.matrix * (1 - np.eye(n_classes)))
    found = []
    for step in steps:
        moved = np.sin(np.arcsin(np.sqrt(rates)) + step[1 + n_classes :]) ** 2
        matrix = moved[:, None] * off_diagonal + np.diag(1 - moved)
        scale, shift = one.scale * float(np.exp(step[0])), one.shift + step[shifts]
        found.append(replace(one, scale=scale, shift=shift, matrix=matrix))
    return found


def _information(one: NoiseHypothesis, sample: FittedSamples, rates: Floats) -> Floats:
    """Return the Fisher information per sample: the mean over x of that expected over its label."""
    clean, none = one.clean_posterior(sample.logs, sample.shares)
    none = np.zeros(len(clean)) if none is None else none
    n_classes = rates.size
    information = np.zeros((1 + 2 * n_classes, 1 + 2 * n_classes))
    for label in range(n_classes):
        codes = np.full(len(clean), label)
        true, observed = one.label_posterior(clean, codes)
        some = (1 - none) * observed
        chance = some + none * sample.shares[label]
        # the labels of samples of no class are informative of none of these parameters
        of_class = (some / chance)[:, None]
        error = of_class * (true - clean)
        is_wrong = np.arange(n_classes) != label
        by_rate = of_class * true * (is_wrong - rates) * 2 / np.sqrt(rates * (1 - rates))
        scores = np.column_stack([one.scale * np.sum(error * sample.logs, axis=1), error, by_rate])
        information += (scores * (sample.weight * chance)[:, None]).T @ scores
    if one.is_alike:  # one rate for all classes
        tied = np.zeros((1 + 2 * n_classes, 2 + n_classes))
        tied[: 1 + n_classes, : 1 + n_classes] = np.eye(1 + n_classes)
        tied[1 + n_classes :, 1 + n_classes] = 1.0
        information = tied.T @ information @ tied
    return np.asarray(information / sample.weight.sum())


def _rates(mixture: HypothesisMixture, p: Floats, determined: bool) -> tuple[Floats, float]:
    """Return T and the error rate of the mixture's own samples."""
    codes, weight = mixture.sample.codes, mixture.sample.weight
    found = mixture.predict(p, codes, determined)
    wrong = found.wrong_if_determined if determined else found.wrong_by_class
    return average_transition(found.label, codes, weight), float(np.average(wrong, weights=weight))
