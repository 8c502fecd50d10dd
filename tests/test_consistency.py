"""The paper's first claim by simulation: any surrogate loss learns from reweighted noisy labels."""

import numpy as np
import pytest

from unflip import NoiseRates, flip_labels, importance_weights
from unflip.learners import LinearClassifier
from unflip.losses import LOSSES

COEF, INTERCEPT = np.array([2.0, -1.0, 0.5, 0.0, 1.0]), 0.3
PAIRS = [(0.3, 0.1), (0.0, 0.4)]


def sample(n, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    posterior = 1 / (1 + np.exp(-(X @ COEF + INTERCEPT)))
    return X, posterior, (rng.uniform(size=n) < posterior).astype(int)


@pytest.fixture(scope="module")
def train():
    return sample(20_000, seed=0)


@pytest.fixture(scope="module")
def test():
    X, _, y = sample(100_000, seed=1)
    return X, y


@pytest.mark.parametrize("name", LOSSES)
def test_reweighted_labels_teach_what_clean_labels_teach(train, test, name):
    X, posterior, y = train
    clean = LinearClassifier(name).fit(X, y).score(*test)
    shortfalls = []
    for pair in PAIRS:
        rates = NoiseRates(*pair)
        y_noisy = flip_labels(y, rates, random_state=0)
        noisy_posterior = rates.noisy_posterior(posterior)
        given = np.where(y_noisy == 1, noisy_posterior, 1 - noisy_posterior)
        beta = importance_weights(given, y_noisy, rates)
        reweighted = LinearClassifier(name).fit(X, y_noisy, sample_weight=beta).score(*test)
        assert reweighted > clean - 0.01
        shortfalls.append(clean - LinearClassifier(name).fit(X, y_noisy).score(*test))
    assert max(shortfalls) > 0.01
