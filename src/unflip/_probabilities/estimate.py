"""Evidence from held-out probabilities: the noise estimate."""

from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from unflip._probabilities.inputs import judge_held_out
from unflip._probabilities.intervals import average_transition, rates_interval
from unflip._probabilities.mixture import fit_hypotheses
from unflip._utils.simplex import of_another_class, scaled_rows
from unflip._utils.typing import Array, Floats
from unflip.diagnostics import (
    assumed,
    diagnose_classes,
    diagnose_rates,
    diagnose_readings,
    range_of,
)
from unflip.estimate import NoiseEstimate
from unflip.noise_rates import admissible_matrix
from unflip.weights import totals_of

Determined = Literal["auto"] | bool


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
    """Return the noise estimate by hypotheses that are fitted to labels and held-out probabilities.

    With `determined=False`, only T makes labels wrong, and what the model doubts beyond T is
    overlap of the classes. With True, each sample has one true label, and that doubt is shared by
    label errors and model errors; see :func:`agreed_posterior`. Both imply the same
    P(observed | x), so that no labels can tell them apart: "auto" estimates as False does and
    reports both error rates where they differ.
    """
    check_determined(determined)
    findings = judge_held_out(noisy_proba, codes, classes)
    mixture = fit_hypotheses(noisy_proba, codes, sample_weight, random_state)
    is_determined = determined != "auto" and bool(determined)
    found = mixture.predict(noisy_proba, codes, is_determined)
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
        interval=partial(
            rates_interval,
            mixture,
            noise.matrix,
            totals.error_rate,
            float(totals.label_mass.sum()),
            is_determined,
        ),
    )


def without_unseen_classes(label_proba: Floats, codes: NDArray[np.intp]) -> Floats:
    """Return P(true | x, label) with 0 for the classes that no label names.

    T leaves every class some of its labels; without any, the class has no samples either.
    """
    unseen = np.bincount(codes, minlength=label_proba.shape[1]) == 0
    if not unseen.any():
        return label_proba
    total = label_proba.sum(axis=1, keepdims=True)
    return scaled_rows(np.where(unseen, 0, label_proba)) * total
