"""A second witness of labels in which the noisy channel sees no noise at random.

Labels that a rule made, or people who err at hard rows, are a function of the row: a model that is
good enough predicts the mistakes too, and T says that no label is wrong. A linear model cannot
follow every rule, and what it doubts is then worth as much.
"""

from typing import Any

import numpy as np

from unflip._probabilities.label_errors import fit_mistakes
from unflip._utils.simplex import scaled_rows
from unflip._utils.typing import Floats
from unflip._utils.validation import Labels
from unflip.posterior import cross_fit, make_posterior

LEAST_WEIGHT = 0.01
"""A witness that counts for less is not asked."""

SMALLEST = 1e-12
"""Probabilities below are taken as this: no witness rules out what the other sees."""


def pooled_with_linear(
    label_proba: Floats,
    no_noise: float,
    X: Any,
    labels: Labels,
    sample_weight: Floats | None = None,
    *,
    cv: Any,
    random_state: np.random.RandomState | None = None,
) -> Floats:
    """Return u^(1 - w) v^w, scaled, with w = P(no noise at random) / 2.

    u = P(true | x, given label) by the noisy channel, v by an audit of a linear model's held-out
    probabilities. Where labels surely are flipped at random, the channel knows better; where it
    sees nothing of the kind, both are asked alike.
    """
    share = no_noise / 2
    if share < LEAST_WEIGHT:
        return label_proba
    linear = make_posterior("probabilistic", random_state)
    _, held_out = cross_fit(linear, X, labels, sample_weight, cv=cv, random_state=random_state)
    said = fit_mistakes(held_out, labels.codes, sample_weight, random_state)
    second = said.apply(held_out, labels.codes).proba
    first, second = (np.maximum(proba, SMALLEST) for proba in (label_proba, second))
    return scaled_rows(first ** (1 - share) * second**share)
