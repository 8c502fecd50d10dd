"""P(true | x) from P(noisy | x) and T by maximum likelihood, and other probability vectors."""

import numpy as np
import pytest
from scipy.optimize import minimize

from unflip import TransitionMatrix


def made(n_rows, n_classes, seed, noise=0.4):
    rng = np.random.default_rng(seed)
    matrix = (1 - noise) * np.eye(n_classes) + noise * rng.dirichlet(np.ones(n_classes), n_classes)
    rows = rng.dirichlet(np.full(n_classes, 0.3), n_rows)
    return rows, matrix


def mean_log_likelihood(mixture, rows, matrix):
    return np.sum(rows * np.log(np.maximum(mixture @ matrix, 1e-300)), axis=-1)


@pytest.mark.parametrize("n_classes", [3, 5, 7])
def test_no_probability_vector_does_better_by_more_than_the_gap(n_classes):
    rows, matrix = made(500, n_classes, seed=n_classes)
    mixture = TransitionMatrix(matrix).clean_posterior(rows)
    np.testing.assert_allclose(mixture.sum(axis=1), 1)
    assert mixture.min() > 0
    gradient = (rows / (mixture @ matrix)) @ matrix.T
    assert gradient.max() < 1 + 2e-6  # Karush-Kuhn-Tucker: nowhere above one ...
    assert np.abs(mixture * (1 - gradient)).max() < 2e-4  # ... and one where q is not zero


def test_the_mixture_is_what_a_general_optimiser_finds():
    rows, matrix = made(12, 4, seed=0)
    for row, found in zip(rows, TransitionMatrix(matrix).clean_posterior(rows), strict=True):

        def loss(logits, row=row):
            q = np.exp(logits - logits.max())
            return -mean_log_likelihood(q / q.sum(), row, matrix)

        best = min((minimize(loss, start).fun for start in np.eye(4)), default=np.inf)
        assert -mean_log_likelihood(found, row, matrix) <= best + 2e-6


def test_a_matrix_with_zeros_and_rows_with_zeros_are_solved():
    matrix = TransitionMatrix.pair_flip(4, 0.3).matrix
    rows = np.r_[np.eye(4), [[0.5, 0.0, 0.5, 0.0]]]
    mixture = TransitionMatrix(matrix).clean_posterior(rows)
    gradient = (rows / np.maximum(mixture @ matrix, 1e-300)) @ matrix.T
    assert np.isfinite(mixture).all()
    assert mixture.min() > 0
    assert gradient.max() < 1 + 1e-5
