"""Rows of many columns, brought to few."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.linear_model import Ridge

from unflip import NoiseRates, TransitionMatrix, flip_labels
from unflip.posterior import ChannelPosterior, MulticlassChannelPosterior
from unflip.posterior._wide_rows import MOST_COLUMNS, RidgeScores, reducer


def wide(n_rows, n_columns, n_classes, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n_rows)
    centers = rng.normal(size=(n_classes, n_columns)) * 4 / np.sqrt(n_columns)
    return centers[y] + rng.normal(size=(n_rows, n_columns)), y


@pytest.mark.parametrize("n_rows", [90, 25])
def test_scores_of_the_fit_are_those_of_ridge_regression_without_the_row(n_rows):
    X, y = wide(n_rows, 40, 3)
    scores = RidgeScores(n_components=2)
    reduced = scores.fit_transform(X, y)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    target = (y == 0) - np.mean(y == 0)
    for row in (0, 7, n_rows - 1):
        others = np.arange(n_rows) != row
        ridge = Ridge(scores.penalty_, fit_intercept=True).fit(Z[others], target[others])
        assert reduced[row, 0] == pytest.approx(ridge.predict(Z[row : row + 1])[0], abs=1e-6)


def test_new_rows_have_the_scores_of_all_rows_and_their_components():
    X, y = wide(300, 40, 3)
    scores = RidgeScores(n_components=5).fit(X, y)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    target = (y == 1) - np.mean(y == 1)
    ridge = Ridge(scores.penalty_, fit_intercept=False).fit(Z, target)
    reduced = scores.transform(X)
    assert reduced[:, 1] == pytest.approx(ridge.predict(Z))
    assert reduced[:, 2:].var(axis=0) == pytest.approx(
        np.linalg.eigvalsh(Z.T @ Z / len(Z))[::-1][:5]
    )


def test_few_columns_stay_and_sparse_ones_have_an_svd():
    random = np.random.RandomState(0)
    assert reducer(np.zeros((5, MOST_COLUMNS)), random) is None
    assert isinstance(reducer(np.zeros((5, MOST_COLUMNS + 1)), random), RidgeScores)
    assert reducer(csr_array((5, 500)), random) is None
    assert reducer(csr_array((5, 501)), random).n_components == 4


def test_two_classes_in_many_columns_are_told_from_noise():
    X, y = wide(1500, 150, 2)
    noise = NoiseRates(positive=0.3, negative=0.1)
    channel = ChannelPosterior(features="linear").fit(X, flip_labels(y, noise, random_state=0))
    assert channel.rates_.both() == pytest.approx((0.3, 0.1), abs=0.05)


def test_many_classes_in_many_columns_are_told_from_noise():
    X, y = wide(1500, 150, 4)
    noise = TransitionMatrix.pair_flip(4, 0.2)
    channel = MulticlassChannelPosterior(features="linear")
    proba = channel.fit_predict_proba(X, flip_labels(y, noise, random_state=0))
    assert 0.5 * np.abs(channel.rates_.matrix - noise.matrix).sum(axis=1).mean() < 0.05
    assert np.mean(noise.clean_posterior(proba).argmax(axis=1) == y) > 0.9
