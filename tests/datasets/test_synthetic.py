"""The paper's synthetic data has the properties that the paper states."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unflip.datasets import make_separable


@given(st.integers(2, 300), st.integers(1, 12), st.integers(0, 1000))
def test_the_cube_is_cut_in_two_equal_halves_by_the_sum_of_the_coordinates(n, m, seed):
    X, y = make_separable(n, m, random_state=seed)
    assert X.shape == (n, m)
    assert 0 <= X.min() <= X.max() <= 1
    assert (y == 1).sum() == n // 2
    assert set(y.tolist()) == {-1, 1}
    total = X.sum(axis=1)
    assert total[y == 1].min() > total[y == -1].max()


def test_the_points_are_uniform():
    X, _ = make_separable(20_000, 3, random_state=0)
    np.testing.assert_allclose(X.mean(axis=0), 1 / 2, atol=0.01)
    np.testing.assert_allclose(np.cov(X.T), np.eye(3) / 12, atol=0.003)


def test_one_seed_gives_one_data_set():
    first, second = make_separable(random_state=3), make_separable(random_state=3)
    for one, other in zip(first, second, strict=True):
        np.testing.assert_array_equal(one, other)
    assert not np.array_equal(first[0], make_separable(random_state=4)[0])


@pytest.mark.parametrize("arguments", [{"n_samples": 1}, {"n_features": 0}, {"n_samples": 10.0}])
def test_a_count_that_is_none_is_refused(arguments):
    with pytest.raises(ValueError, match="must be an integer >="):
        make_separable(**arguments)
