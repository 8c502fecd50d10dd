"""The range of the share of wrong labels: mistakes that may depend on x."""

import numpy as np
import pytest

from unflip.diagnostics import error_rate_range, errors_by_label


def overlapping(n_rows, n_classes, seed):
    """Clean probabilities of rows of all kinds, and true classes drawn from them."""
    rng = np.random.default_rng(seed)
    clean = rng.dirichlet(np.full(n_classes, 0.2), n_rows)
    true = np.array([rng.choice(n_classes, p=row) for row in clean])
    return clean, true, rng


@pytest.mark.parametrize("n_classes", [2, 5])
def test_the_range_holds_random_flips_mistakes_by_sample_and_clean_labels(n_classes):
    clean, true, rng = overlapping(4000, n_classes, 0)
    flipped = rng.uniform(size=4000) < 0.2
    given = np.where(flipped, (true + rng.integers(1, n_classes, 4000)) % n_classes, true)
    noisy = 0.8 * clean + 0.2 * (1 - clean) / (n_classes - 1)
    low, high = error_rate_range(noisy, given, (0.19, 0.21))
    assert low < 0.2 < high
    assert error_rate_range(clean, true, (0.0, 0.01))[0] == 0
    # labels that say no more than the model: the high end
    clean, true, rng = overlapping(4000, n_classes, 1)
    given = np.array([rng.choice(n_classes, p=row) for row in clean])
    low, high = error_rate_range(clean, given, (0.0, 0.02))
    assert low == 0
    assert high == pytest.approx(np.mean(given != true), abs=0.03)
    # weights are repetitions
    weight = rng.integers(0, 4, 4000)
    repeated = np.repeat(np.arange(4000), weight)
    by_weight = error_rate_range(clean, true, (0.1, 0.2), weight.astype(float))
    by_rows = error_rate_range(clean[repeated], true[repeated], (0.1, 0.2))
    np.testing.assert_allclose(by_weight, by_rows)


def test_errors_of_each_label_are_those_that_flips_make():
    rng = np.random.default_rng(3)
    matrix = rng.dirichlet([8, 1, 1], 3)[:, [0, 1, 2]]
    matrix = np.array([np.roll(row, k) for k, row in enumerate(matrix)])
    true = rng.choice(3, 200_000, p=[0.5, 0.3, 0.2])
    given = (rng.random(true.size)[:, None] > matrix.cumsum(axis=1)[true]).sum(axis=1)
    expected = errors_by_label(matrix, np.bincount(given).astype(float))
    counted = np.bincount(given[given != true], minlength=3)
    np.testing.assert_allclose(expected, counted, rtol=0.03)
    # where rates and labels contradict each other, they add up still
    matrix = np.array([[0.6, 0.4], [0.0, 1.0]])
    # no more than 60 % of labels could be the first class; 90 % are
    np.testing.assert_allclose(errors_by_label(matrix, np.array([90.0, 10.0])), [0, 40])
