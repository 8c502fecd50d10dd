"""Evidence from features: the samples' P(true | x, observed label), by the noise model.

The classifier, the audit and the commands have it from here, so that the same data give the same
probabilities through each of them.
"""

from typing import Any, NamedTuple

import numpy as np

from unflip._label_posterior import LabelPosterior
from unflip._stages import Stages, fit_stages
from unflip._utils.typing import Floats
from unflip._utils.validation import Labels
from unflip.noise import Noise, as_transition_matrix


class FeatureEvidence(NamedTuple):
    """What features and labels say together."""

    stages: Stages
    # P(true | x, observed label) at the estimated rates, and the weights beta
    label_posterior: LabelPosterior
    # the same averaged over what else the labels allow, for every number that is reported
    label_proba: Floats


def evidence_from_features(
    posterior: Any,
    noise_rates: Any,
    X: Any,
    labels: Labels,
    sample_weight: Floats | None,
    *,
    cv: Any,
    random_state: np.random.RandomState | None,
    classifier: Any = None,
    numbers: Any = None,
) -> FeatureEvidence:
    """Fit the posterior and the rates, and return P(true | x, observed label) of the samples."""
    classes, codes = labels
    stages = fit_stages(
        posterior,
        noise_rates,
        X,
        labels,
        sample_weight,
        cv=cv,
        random_state=random_state,
        classifier=classifier,
        numbers=numbers,
    )
    label_posterior = LabelPosterior(stages.noisy_posterior, codes, stages.rates, classes)
    label_proba = label_posterior.proba
    if stages.joint and stages.estimator is not None and stages.rates.information_left == 1:
        label_proba = averaged_over_noise(label_posterior, stages.posterior.mean_rates())
    return FeatureEvidence(stages, label_posterior, label_proba)


def averaged_over_noise(label_posterior: LabelPosterior, mean_rates: Noise) -> Floats:
    """Return P(true | x, observed label) where no noise is the most probable hypothesis.

    It is not a certainty: the mean of T averages over the others, so that samples can be ranked.
    """
    # without noise P(observed | x) is P(true | x)
    noisy = label_posterior.noisy_proba @ as_transition_matrix(mean_rates).matrix
    return LabelPosterior(noisy, label_posterior.codes, mean_rates, label_posterior.classes).proba
