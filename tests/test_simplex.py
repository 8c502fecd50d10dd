"""P(true | x) from P(noisy | x) and T by maximum likelihood, and other probability vectors."""

import numpy as np
import pytest
from scipy.optimize import minimize

from unflip import TransitionMatrix
from unflip._utils.simplex import BARRIER, likeliest_mixture


def made(n_rows, n_classes, seed, noise=0.4):
    rng = np.random.default_rng(seed)
    matrix = (1 - noise) * np.eye(n_classes) + noise * rng.dirichlet(np.ones(n_classes), n_classes)
    rows = rng.dirichlet(np.full(n_classes, 0.3), n_rows)
    return rows, matrix


def mean_log_likelihood(mixture, rows, matrix):
    return np.sum(rows * np.log(np.maximum(mixture @ matrix, 1e-300)), axis=-1)


@pytest.mark.parametrize("n_classes", [2, 3, 7])
def test_no_probability_vector_does_better_by_more_than_the_gap(n_classes):
    rows, matrix = made(500, n_classes, seed=n_classes)
    mixture = likeliest_mixture(rows, matrix)
    np.testing.assert_allclose(mixture.sum(axis=1), 1)
    assert mixture.min() > 0
    gradient = (rows / (mixture @ matrix)) @ matrix.T
    assert gradient.max() < 1 + 2e-6  # Karush-Kuhn-Tucker: nowhere above one ...
    assert np.abs(mixture * (1 - gradient)).max() < 2e-4  # ... and one where q is not zero


def test_the_mixture_is_what_a_general_optimiser_finds():
    rows, matrix = made(12, 4, seed=0)
    for row, found in zip(rows, likeliest_mixture(rows, matrix), strict=True):

        def loss(logits, row=row):
            q = np.exp(logits - logits.max())
            return -mean_log_likelihood(q / q.sum(), row, matrix)

        best = min((minimize(loss, start).fun for start in np.eye(4)), default=np.inf)
        assert -mean_log_likelihood(found, row, matrix) <= best + 2e-6


def test_inside_the_simplex_the_mixture_is_the_inverse():
    rng = np.random.default_rng(0)
    _, matrix = made(1, 5, seed=0)
    clean = rng.dirichlet(np.full(5, 5.0), 200)
    clean = clean[clean.min(axis=1) > 1e-3]
    np.testing.assert_allclose(likeliest_mixture(clean @ matrix, matrix), clean, atol=1e-12)


@pytest.mark.parametrize("noisy", [0.0, 0.05, 0.3, 0.5, 0.95, 1.0])
def test_of_two_classes_the_mixture_is_the_nearest_end(noisy):
    matrix = TransitionMatrix([[0.9, 0.1], [0.3, 0.7]])
    rows = np.array([[1 - noisy, noisy]])
    expected = matrix.clean_posterior(rows)
    np.testing.assert_allclose(likeliest_mixture(rows, matrix.matrix), expected, atol=1e-5)


def test_what_is_ruled_out_more_clearly_is_smaller():
    matrix = TransitionMatrix.uniform(3, 0.3).matrix
    own = np.linspace(0.0, 0.1, 50)
    mixture = likeliest_mixture(np.c_[own, 0.2 - own, np.full(50, 0.8)], matrix)
    assert (np.diff(mixture[:, 0]) > 0).all()
    assert (mixture[:, 0] < 1e-4).all()


def test_a_matrix_with_zeros_and_rows_with_zeros_are_solved():
    matrix = TransitionMatrix.pair_flip(4, 0.3).matrix
    rows = np.r_[np.eye(4), [[0.5, 0.0, 0.5, 0.0]]]
    mixture = likeliest_mixture(rows, matrix)
    gradient = (rows / np.maximum(mixture @ matrix, 1e-300)) @ matrix.T
    assert np.isfinite(mixture).all()
    assert mixture.min() > 0
    assert gradient.max() < 1 + 1e-5


def test_no_two_different_rows_tie():
    rows, matrix = made(2000, 6, seed=1, noise=0.5)
    own = likeliest_mixture(rows, matrix)[:, 0]
    assert np.unique(own).size == own.size
    assert (own < np.sqrt(BARRIER)).any()  # many are all but ruled out


def test_many_rows_are_solved_block_by_block(monkeypatch):
    rows, matrix = made(300, 4, seed=2)
    whole = likeliest_mixture(rows, matrix)
    monkeypatch.setattr("unflip._utils.simplex.SOLVED_AT_ONCE", 64)
    np.testing.assert_allclose(likeliest_mixture(rows, matrix), whole, atol=1e-9)
