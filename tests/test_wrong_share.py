"""The range of the share of wrong labels: mistakes that may depend on x."""

import numpy as np
import pytest

from unflip._diagnostics.error_range import errors_by_label, wrong_share_range


def overlapping(n_rows, n_classes, seed):
    """Clean probabilities of rows of all kinds, and true classes drawn from them."""
    rng = np.random.default_rng(seed)
    clean = rng.dirichlet(np.full(n_classes, 0.2), n_rows)
    true = np.array([rng.choice(n_classes, p=row) for row in clean])
    return clean, true, rng


@pytest.mark.parametrize("n_classes", [2, 5])
def test_random_flips_lie_inside(n_classes):
    clean, true, rng = overlapping(4000, n_classes, 0)
    flipped = rng.uniform(size=4000) < 0.2
    given = np.where(flipped, (true + rng.integers(1, n_classes, 4000)) % n_classes, true)
    noisy = 0.8 * clean + 0.2 * (1 - clean) / (n_classes - 1)
    low, high = wrong_share_range(noisy, given, (0.19, 0.21))
    assert low < 0.2 < high


@pytest.mark.parametrize("n_classes", [2, 5])
def test_labels_that_say_no_more_than_the_model_lie_inside(n_classes):
    clean, true, rng = overlapping(4000, n_classes, 1)
    given = np.array([rng.choice(n_classes, p=row) for row in clean])
    low, high = wrong_share_range(clean, given, (0.0, 0.02))
    share = np.mean(given != true)
    assert low == 0
    assert high == pytest.approx(share, abs=0.03)  # this world is the high end


def test_clean_labels_lie_inside():
    clean, true, _ = overlapping(2000, 3, 2)
    assert wrong_share_range(clean, true, (0.0, 0.01))[0] == 0


def test_weights_are_repetitions():
    clean, true, rng = overlapping(300, 4, 3)
    weight = rng.integers(0, 4, 300)
    repeated = np.repeat(np.arange(300), weight)
    by_weight = wrong_share_range(clean, true, (0.1, 0.2), weight.astype(float))
    by_rows = wrong_share_range(clean[repeated], true[repeated], (0.1, 0.2))
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


def test_errors_of_labels_add_up_where_rates_and_labels_contradict_each_other():
    matrix = np.array([[0.6, 0.4], [0.0, 1.0]])
    # no more than 60 % of labels could be the first class; 90 % are
    np.testing.assert_allclose(errors_by_label(matrix, np.array([90.0, 10.0])), [0, 40])
