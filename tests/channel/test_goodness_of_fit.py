"""The check of the channel of many classes."""

import warnings

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.tree import DecisionTreeClassifier

from tests.channel.test_engine import classes, design_of
from unflip import (
    ImportanceReweightingClassifier,
    LabelAudit,
    TransitionMatrix,
    flip_labels,
)
from unflip.channel import SETTINGS, ChannelSample, fit_channel
from unflip.channel._check import (
    _leaf_means,
    held_out_gain,
    held_out_statistics,
    leave_one_out,
)
from unflip.channel._design import ChannelDesign
from unflip.channel._evidence import fit_coefficients
from unflip.channel._maximise import maximise
from unflip.channel._structure import structures
from unflip.diagnostics import channel_range
from unflip.inspection import summary
from unflip.posterior import ChannelPosterior


def without(design, row):
    kept = np.delete(np.arange(len(design.codes)), row)
    return ChannelDesign(
        design.features[kept], design.block, design.codes[kept], design.weight[kept], 3
    )


def test_leaving_out_a_row_in_one_step_is_about_a_fit_without_it():
    design = design_of(3, 300)
    design = ChannelDesign(design.features, design.block, design.codes, np.ones(300), 3)
    one, variance = structures(3, free=False)[1], design.first_variance()
    theta = np.array([-1.5])
    fit = fit_coefficients(design, one, theta, variance, tol=1e-12, max_iter=1000)
    quick, start, exact = leave_one_out(fit), fit.unscaled_coef, []
    for row in range(100):
        refit = fit_coefficients(
            without(design, row), one, theta, variance, start, tol=1e-12, max_iter=1000
        )
        t = design.features[row] @ refit.unscaled_coef
        clean = np.exp(t - t.max())
        exact.append(clean / clean.sum() @ fit.T)
    moved = (np.array(exact) - fit.noisy[:100]).ravel()
    by_step = (quick[:100] - fit.noisy[:100]).ravel()
    assert np.abs(moved).max() > 0.03
    assert np.corrcoef(moved, by_step)[0, 1] > 0.9
    assert np.abs(moved - by_step).mean() < 0.4 * np.abs(moved).mean()


def test_no_noise_is_found_in_classes_far_apart():
    """By Laplace's method it would be likelier, but no held-out label bears it out."""
    rng = np.random.default_rng(1)
    y = rng.integers(0, 15, 400)
    X = (4 * rng.normal(size=(15, 8)))[y] + rng.normal(size=(400, 8))
    channel = ChannelPosterior(features="nystroem").fit(X, y)
    assert channel.noise_test_.probability > 0.9
    assert channel.interval_.label_error_rate[1] < 0.01


def test_held_out_labels_bear_out_noise_that_is_there():
    gains = []
    for noise in (0.0, 0.2):
        design = design_of(3, 400, noise=noise)
        none, one = structures(3, free=False)[:2]
        plain = maximise(design, none, none.start(), design.first_variance()).fit
        noisy = maximise(design, one, np.array([np.log(0.25)]), design.first_variance()).fit
        gains.append(held_out_gain(plain, noisy))
    assert gains[0][0] < 3
    assert gains[1][0] > 10
    assert 0 < gains[1][1] < gains[1][0]


def statistics(n_draws, n_rows, n_classes, bend=0.0):
    """Return the statistics of models that are linear in the columns; with `bend`, truth is not."""
    found = []
    for seed in range(n_draws):
        rng = np.random.default_rng([seed, n_rows, n_classes])
        X = rng.normal(size=(n_rows, 4))
        t = 1.5 * X @ rng.normal(size=(4, n_classes))
        t += bend * np.outer(X[:, 0] * X[:, 1], np.linspace(-1, 1, n_classes))
        g = np.exp(t - t.max(axis=1, keepdims=True))
        edges = g.cumsum(axis=1)
        y = (rng.random((n_rows, 1)) * edges[:, -1:] > edges).sum(axis=1)
        given = flip_labels(y, TransitionMatrix.uniform(n_classes, 0.2), random_state=seed)
        sample = ChannelSample(X, given, np.ones(n_rows), n_classes)
        rows = fit_channel(sample, None, np.random.RandomState(0), features="linear")[1]
        found.append(held_out_statistics(rows.sample.rows, rows.fit, rows.factor)[0])
    return np.array(found)


@pytest.mark.parametrize("n_classes", [2, 4, 6])  # each residual by itself, or few combinations
def test_the_statistic_of_a_true_model_is_about_standard_normal(n_classes):
    found = statistics(40, 300, n_classes)
    assert abs(found.mean()) < 0.5
    assert 0.6 < found.std() < 1.3


@pytest.mark.slow
@pytest.mark.parametrize(("n_classes", "n_rows", "least"), [(2, 300, 0.03), (3, 1000, 0.01)])
def test_one_true_model_in_twenty_is_above_the_limit_of_5_per_cent(n_classes, n_rows, least):
    """Of 500 draws, a share of 5 % is between 3 % and 7.2 % with probability 0.95.

    With three classes the test is conservative: 2.4 %.
    """
    share = np.mean(statistics(500, n_rows, n_classes) > norm.isf(0.05))
    assert least <= share <= 0.072


@pytest.mark.parametrize("n_classes", [2, 4])
def test_shapes_that_the_model_cannot_follow_are_found(n_classes):
    assert np.median(statistics(5, 1500, n_classes, bend=3.0)) > 4


def test_leaves_hold_the_means_of_all_residuals():
    """So what the forest predicts of the combinations is that combination of the means."""
    rng = np.random.default_rng(0)
    X, residual = rng.normal(size=(300, 4)), rng.normal(size=(300, 3))
    label = np.eye(3)[rng.integers(0, 3, 300)]
    weight, others, left = rng.integers(1, 4, 300), np.arange(200), np.arange(200, 300)
    n_trees, leaf = SETTINGS.residual_trees, SETTINGS.residual_leaf
    forest = ExtraTreesRegressor(n_trees, min_samples_leaf=leaf, random_state=7)
    mix = np.random.RandomState(7).standard_normal((3, 2))
    forest.fit(X[others], label[others] @ mix, weight[others])
    labels, residuals = np.split(
        _leaf_means(X, label, residual, weight, others, left, 7), 2, axis=1
    )
    np.testing.assert_allclose(labels @ mix, forest.predict(X[left]), atol=1e-12)
    for tree in forest.estimators_:  # the same leaves hold the means of the residuals
        leaves = tree.apply(X.astype(np.float32))
        own = [leaves[others] == leaf for leaf in leaves[left]]
        residuals -= [
            np.average(residual[others][i], axis=0, weights=weight[others][i]) / n_trees
            for i in own
        ]
    np.testing.assert_allclose(residuals, 0.0, atol=1e-12)


def test_columns_alone_are_rejected_where_the_classes_bend():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 3))
    y = np.digitize(X[:, 0] * X[:, 1], [-0.4, 0.4])
    noisy = flip_labels(y, TransitionMatrix.uniform(3, 0.2), random_state=0)
    assert ChannelPosterior().fit(X, noisy).features_ != "linear"


def test_random_flips_of_gaussian_classes_are_not_rejected():
    X, y = classes(4, 1000, distance=4)
    channel = ChannelPosterior().fit(
        X, flip_labels(y, TransitionMatrix.uniform(4, 0.2), random_state=0)
    )
    assert channel.check_.verdict == "not_rejected"
    assert channel.check_.disagreement == pytest.approx(0.22, abs=0.05)
    low, high = channel.label_error_range_
    assert low == 0
    assert 0.25 < high < 0.45


def test_the_range_is_only_known_where_the_channel_was_checked():
    X, y = classes(3, 150)
    channel = ChannelPosterior(features="linear").fit(X, y)
    assert channel.check_ is None
    with pytest.raises(AttributeError, match="features='auto'"):
        _ = channel.label_error_range_


def said(X, y):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        clf = ImportanceReweightingClassifier().fit(X, y)
    assert len(caught) == len(clf.diagnostics_)
    return clf, {one.code: one.severity for one in clf.noise_.findings}


def test_errors_near_the_border_may_hide_and_the_range_allows_for_them():
    X, y = classes(4, 1000, distance=4)
    nearest = np.sort(X, axis=1)[:, ::-1]
    close = nearest[:, 0] - nearest[:, 1] < 1.5
    given = np.where(close, np.argsort(X, axis=1)[:, -2], y)
    clf, severity = said(X, given)
    assert severity["class_conditional"] == "assumption"
    low, high = clf.label_error_range_
    assert low <= np.mean(given != y) <= high


def test_labels_by_a_small_tree_are_noted_and_the_range_allows_for_them():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 5))
    y = np.argmax(X[:, :3] + 0.7 * X[:, 2:5], axis=1)
    given = DecisionTreeClassifier(max_leaf_nodes=6, random_state=0).fit(X, y).predict(X)
    clf, severity = said(X, given)
    assert clf.posterior_.check_.verdict == "rule"
    assert severity["small_tree"] == "note"
    assert clf.label_error_range_[1] > 0.2
    assert summary(clf)["check"]["verdict"] == "rule"


def test_errors_in_a_slice_of_curved_classes_are_within_the_range():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (1500, 4))
    y = 2 * (X[:, 0] * X[:, 1] > 0) + (X[:, 2] * X[:, 3] > 0)
    flips = np.where(X[:, 0] > 0.5, 0.6, 0.0)
    given = np.where(rng.random(1500) < flips, (y + 1) % 4, y)
    clf, severity = said(X, given)
    assert severity["tree_features"] == "note"
    low, high = clf.label_error_range_
    assert low <= np.mean(given != y) <= high


def test_an_audit_has_the_range_of_the_checked_channel():
    X, y = classes(3, 400)
    audit = LabelAudit().fit(X, flip_labels(y, TransitionMatrix.uniform(3, 0.2), random_state=0))
    low, high = audit.label_error_range_
    assert low == 0
    assert high >= 0.2


def test_a_range_of_many_classes_may_pass_one_half():
    two = channel_range(0.6, 1000, (0.0, 0.1))[1]
    ten = channel_range(0.6, 1000, (0.0, 0.1), n_classes=10)[1]
    assert two == pytest.approx(0.5 + 2 * np.sqrt(0.25 / 1000) + 0.01)
    assert ten == pytest.approx(0.75 + 2 * np.sqrt(0.1875 / 1000) + 0.01)
    rule = channel_range(0.01, 1000, (0.0, 0.0), n_classes=3, by_a_rule=True)[1]
    assert rule == pytest.approx(0.2 + 2 * np.sqrt(0.16 / 1000) + 0.01)


def test_no_flip_in_few_rows_leaves_room_for_some():
    """The end of an interval is the rate at which 1 - level of such samples show no flip."""
    X, y = classes(3, 90, distance=8)
    channel = ChannelPosterior(features="linear").fit(X, y)
    assert channel.rates_ == TransitionMatrix(np.eye(3))
    rows = np.bincount(y)
    for level in (0.8, 0.95):
        interval = channel.interval(level)
        flips = interval.flip_rates[:, 1]
        assert (1 - flips) ** (rows + 1) == pytest.approx(np.full(3, 1 - level), rel=1e-6)
        low, high = interval.label_error_rate
        assert low == pytest.approx(0, abs=1e-6)
        assert (1 - high) ** 91 <= 1 - level + 1e-9
    known = ChannelPosterior(features="linear", known=np.eye(3)).fit(X, y)
    assert known.interval_.contains(TransitionMatrix(np.eye(3)))
    assert known.interval_.high == pytest.approx(np.eye(3))
