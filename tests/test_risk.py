"""Theorem 1 by simulation: the weighted noisy risk is the clean risk, for any loss."""

import numpy as np
import pytest

from unflip import NoiseRates, flip_labels, importance_weights

LOSSES = {
    "hinge": lambda margin: np.maximum(0, 1 - margin),
    "logistic": lambda margin: np.logaddexp(0, -margin),
    "squared": lambda margin: (1 - margin) ** 2,
    "exponential": lambda margin: np.exp(-margin),
    "zero-one": lambda margin: (margin <= 0).astype(float),
    "sigmoid": lambda margin: 1 / (1 + np.exp(margin)),
    "welsch": lambda margin: 1 - np.exp(-((1 - margin) ** 2)),
}


@pytest.mark.parametrize("pair", [(0.2, 0.2), (0.3, 0.1), (0.0, 0.4), (0.4, 0.4)])
def test_known_rates_recover_the_clean_risk(pair):
    """Over 400 000 draws the two risks agree within five standard errors of their difference."""
    rates = NoiseRates(*pair)
    rng = np.random.default_rng(0)
    x = rng.normal(size=400_000)
    clean_posterior = 1 / (1 + np.exp(-(2 * x - 0.5)))
    y = np.where(rng.uniform(size=x.size) < clean_posterior, 1, -1)
    y_noisy = flip_labels(y, rates, random_state=0)
    noisy_posterior = rates.noisy_posterior(clean_posterior)
    given = np.where(y_noisy == 1, noisy_posterior, 1 - noisy_posterior)
    beta = importance_weights(given, y_noisy, rates)
    score = 1.3 * x - 0.2  # some classifier, not the best
    for name, loss in LOSSES.items():
        difference = beta * loss(score * y_noisy) - loss(score * y)
        standard_error = difference.std() / np.sqrt(x.size)
        assert abs(difference.mean()) < 5 * standard_error, name
        # the test has power: labels as they are miss the clean risk by far more
        plain = loss(score * y_noisy) - loss(score * y)
        assert abs(plain.mean()) > 20 * plain.std() / np.sqrt(x.size), name
