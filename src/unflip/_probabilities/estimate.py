"""Evidence from held-out probabilities: the noise estimate."""

from functools import partial
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unflip._probabilities.inputs import judge_held_out
from unflip._utils.simplex import of_another_class, scaled_rows
from unflip._utils.threads import one_blas_thread
from unflip._utils.typing import Array, Floats
from unflip.channel import FittedProbabilities, fit_probabilities
from unflip.diagnostics import (
    LEVEL,
    assumed,
    diagnose_classes,
    diagnose_rates,
    diagnose_readings,
    range_of,
)
from unflip.estimate import NoiseEstimate
from unflip.noise import RatesInterval
from unflip.noise_rates import admissible_matrix
from unflip.weights import totals_of

Determined = Literal["auto"] | bool

BLOCK_VALUES = 1 << 20
"""Number of probabilities that are computed at a time, which takes 8 MB for each array."""


def check_determined(determined: Determined) -> Determined:
    """Return `determined`, or raise a ValueError if it is none of its values."""
    if isinstance(determined, bool | np.bool_) or determined == "auto":
        return determined
    raise ValueError(f"determined must be 'auto', True or False, got {determined!r}.")


def estimate_from_probabilities(
    noisy_proba: Floats,
    codes: NDArray[np.intp],
    classes: Array,
    sample_weight: Floats | None = None,
    *,
    determined: Determined = "auto",
    random_state: np.random.RandomState | None = None,
) -> NoiseEstimate:
    """Return the noise estimate by the noise model, fitted to labels and held-out probabilities.

    With `determined=False`, only T makes labels wrong, and what the model doubts beyond T is
    overlap of the classes. With True, each sample has one true label, and that doubt is shared by
    label errors and model errors; see :func:`agreed_posterior`. Both imply the same
    P(observed | x), so that no labels can tell them apart: "auto" estimates as False does and
    reports both error rates where they differ.
    """
    check_determined(determined)
    findings = judge_held_out(noisy_proba, codes, classes)
    generator = np.random.RandomState(0) if random_state is None else random_state
    is_determined = determined != "auto" and bool(determined)
    with one_blas_thread():
        fitted = fit_probabilities(noisy_proba, codes, sample_weight, generator)
        found = predicted(fitted, noisy_proba, codes, determined=is_determined)
    label_proba = without_unseen_classes(found.label, codes)
    wrong = of_another_class(label_proba, codes)
    by_class, if_determined = (
        float(np.average(one, weights=sample_weight))
        for one in (found.wrong_by_class, found.wrong_if_determined)
    )
    noise = admissible_matrix(average_transition(label_proba, codes, sample_weight))
    rates = noise.rates if classes.size == 2 else noise
    totals = totals_of(
        codes,
        found.clean,
        wrong,
        (1 - wrong) / np.maximum(noise.matrix[codes, codes], np.finfo(float).tiny),
        sample_weight,
        n_possible=codes.size,
        n_clipped=0,
    )
    disagrees = noisy_proba.argmax(axis=1) != codes
    largest = max(by_class, if_determined)
    error_range = range_of(found.observed, disagrees, (0.0, largest), sample_weight)
    # tiny tables are the caller's own choice
    findings += diagnose_classes(classes, totals.noisy_prior * totals.n_rows, least_rows=0)
    findings += diagnose_rates(totals, classes, rates, estimated=True)
    if determined == "auto":
        findings += diagnose_readings(by_class, if_determined, totals)
    findings.append(assumed(error_range))
    true_shares = np.average(label_proba, axis=0, weights=sample_weight)
    true_shares = true_shares / true_shares.sum()
    return NoiseEstimate(
        classes=classes,
        codes=codes,
        noise_rates=rates,
        noisy_proba=noisy_proba,
        clean_proba=found.clean,
        label_proba=label_proba,
        error_range=error_range,
        findings=tuple(findings),
        sample_weight=sample_weight,
        instance_dependent=max(if_determined - by_class, 0.0) if is_determined else 0.0,
        interval=partial(_interval, fitted, noise.matrix, true_shares, totals.error_rate),
    )


class Predicted(NamedTuple):
    """What the noise model implies for samples and their observed labels."""

    # P(true | x), if x belongs to some class.
    clean: Floats
    # P(true | x, label); a row sums to the probability that x belongs to some class.
    label: Floats
    # P(label | x).
    observed: Floats
    # P(label is wrong), if only T makes labels wrong, and if each sample determines its true label.
    wrong_by_class: Floats
    wrong_if_determined: Floats


def predicted(
    fitted: FittedProbabilities, noisy_proba: Floats, codes: Array, *, determined: bool
) -> Predicted:
    """Return what the noise model implies; single precision stays single."""
    n_samples, n_classes = noisy_proba.shape
    kind = np.float32 if noisy_proba.dtype == np.float32 else np.float64
    clean, label = (np.empty((n_samples, n_classes), dtype=kind) for _ in range(2))
    found = Predicted(clean, label, *(np.empty(n_samples) for _ in range(3)))
    step = max(1, BLOCK_VALUES // n_classes)
    for start in range(0, n_samples, step):
        block = slice(start, start + step)
        one = fitted.predict(noisy_proba[block], codes[block])
        own = np.arange(one.observed.size), codes[block]
        agreed, true = agreed_posterior(one.clean, one.label)
        parts = (
            agreed if determined else one.clean,
            (true if determined else one.label) * one.some_class[:, None],
            np.minimum(one.observed, 1.0),
            1 - one.some_class * one.label[own],
            1 - one.some_class * true[own],
        )
        for whole, part in zip(found, parts, strict=True):
            whole[block] = part
    return found


def agreed_posterior(clean: Floats, perceived: Floats) -> tuple[Floats, Floats]:
    r"""Return P(true | x) and P(true | x, label) if each sample determines its true label.

    What the label reads before flips by T, z', is then one reading of the sample, drawn from
    c = P(z' | x), and the model's doubt is that of readings. The true label z is the one on which
    two independent readings agree,

        s_k = P(z = k | x) = c_k^2 / sum_l c_l^2,

    and of all joint distributions of z and z' with these margins, the one with the fewest errors is
    taken: P(z = z' = k | x) = min(s_k, c_k). It keeps z' with probability min(1, s / c) and moves
    the rest to classes in proportion to max(s - c, 0).

    Parameters
    ----------
    clean : P(z' | x)
    perceived : P(z' | x, label)
    """
    agreed = clean * clean
    agreed /= agreed.sum(axis=1, keepdims=True)
    gain = np.maximum(agreed - clean, 0.0)
    kept = perceived * np.minimum(1.0, agreed / np.maximum(clean, np.finfo(float).tiny))
    moved = np.maximum(1 - kept.sum(axis=1, keepdims=True), 0.0)
    gain *= moved / np.maximum(gain.sum(axis=1, keepdims=True), np.finfo(float).tiny)
    return agreed, kept + gain


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


def without_unseen_classes(label_proba: Floats, codes: NDArray[np.intp]) -> Floats:
    """Return P(true | x, label) with 0 for the classes that no label names.

    T leaves every class some of its labels; without any, the class has no samples either.
    """
    unseen = np.bincount(codes, minlength=label_proba.shape[1]) == 0
    if not unseen.any():
        return label_proba
    total = label_proba.sum(axis=1, keepdims=True)
    return scaled_rows(np.where(unseen, 0, label_proba)) * total


def _interval(
    fitted: FittedProbabilities, T: Floats, true_shares: Floats, error_rate: float
) -> RatesInterval:
    """Return 95 % bounds of T and of the error rate, if the noise model holds.

    They are those of class-conditional noise, moved by what else makes labels wrong: samples of no
    class, and errors that depend on the sample if each determines its true label.
    """
    found, by_class = fitted.channel.interval(LEVEL), fitted.channel.found.mean_matrix
    low, high = (ends + T - by_class for ends in (found.low, found.high))
    ends = np.array(found.label_error_rate or (0.0, 1.0))
    least, most = ends + error_rate - true_shares @ (1 - np.diag(by_class))
    return RatesInterval(
        np.clip(low, 0.0, T),
        np.clip(high, T, 1.0),
        found.level,
        (float(np.clip(least, 0.0, error_rate)), float(np.clip(most, error_rate, 1.0))),
    )
