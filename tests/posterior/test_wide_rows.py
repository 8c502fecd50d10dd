"""Rows of many columns, brought to few."""

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.linear_model import Ridge

from unflip import NoiseRates, TransitionMatrix, flip_labels
from unflip.channel._wide_rows import RidgeScores, _out_of_fold
from unflip.noise import as_transition_matrix
from unflip.posterior import ChannelPosterior


def wide(n_rows, n_columns, n_classes, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n_rows)
    centers = rng.normal(size=(n_classes, n_columns)) * 4 / np.sqrt(n_columns)
    return centers[y] + rng.normal(size=(n_rows, n_columns)), y


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


def test_two_classes_in_many_columns_are_told_from_noise():
    X, y = wide(1500, 150, 2)
    noise = NoiseRates(positive=0.3, negative=0.1)
    channel = ChannelPosterior(features="linear").fit(X, flip_labels(y, noise, random_state=0))
    assert channel.rates_.both() == pytest.approx((0.3, 0.1), abs=0.05)


def test_many_classes_in_many_columns_are_told_from_noise():
    X, y = wide(1500, 150, 4)
    noise = TransitionMatrix.pair_flip(4, 0.2)
    channel = ChannelPosterior(features="linear")
    proba = channel.fit_predict_proba(X, flip_labels(y, noise, random_state=0))
    assert 0.5 * np.abs(channel.rates_.matrix - noise.matrix).sum(axis=1).mean() < 0.05
    assert np.mean(noise.clean_posterior(proba).argmax(axis=1) == y) > 0.9


def test_scores_out_of_fold_are_those_of_a_weighted_regression_on_the_other_rows():
    rng = np.random.default_rng(0)
    weight = rng.uniform(0.5, 2.0, 50)
    rows = rng.normal(size=(50, 8)) * np.sqrt(weight)[:, None]
    left, values, _ = np.linalg.svd(rows, full_matrices=False)
    Z, targets = left * values / np.sqrt(weight)[:, None], rng.normal(size=(50, 2))
    fold = np.arange(50) % 5
    targets -= np.average(targets, axis=0, weights=weight)
    found = _out_of_fold(Z, targets, weight, 3.0, fold)
    for k in range(5):
        train, out = fold != k, fold == k
        mean = np.average(targets[train], axis=0, weights=weight[train])
        ridge = Ridge(3.0, fit_intercept=False)
        ridge.fit(Z[train], targets[train] - mean, weight[train])
        assert found[out] == pytest.approx(ridge.predict(Z[out]))


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("features", ["linear", PCA(3, random_state=0)])
def test_rows_of_weight_0_have_no_influence(n_classes, features):
    make = ChannelPosterior
    X, y = wide(500, 120, n_classes)
    y = flip_labels(y, TransitionMatrix.uniform(n_classes, 0.2), random_state=0)
    extra = np.random.default_rng(1).normal(5, 9, (300, 120))
    both, labels = np.concatenate([extra, X]), np.concatenate([np.arange(300) % 2, y])
    weight = np.repeat([0.0, 1.0], [300, 500])
    alone = make(features=features).fit(X, y)
    among = make(features=features).fit(both, labels, weight)
    assert among.predict_proba(X) == pytest.approx(alone.predict_proba(X), abs=1e-9)
    assert np.allclose(
        as_transition_matrix(among.rates_).matrix, as_transition_matrix(alone.rates_).matrix
    )
    own = make(features=features).fit_predict_proba(both, labels, weight)[300:]
    assert own == pytest.approx(make(features=features).fit_predict_proba(X, y), abs=1e-9)
