"""Goodness of fit of two classes, and the scores of trees as features."""

import warnings

import numpy as np
import pytest
from scipy.special import expit

from unflip import ImportanceReweightingClassifier, LabelNoiseWarning, NoiseRates, flip_labels
from unflip.diagnostics import channel_range, error_rate_bounds
from unflip.posterior import ChannelPosterior

FLIPS = NoiseRates(positive=0.3, negative=0.1)


def linear(n, seed, steepness=2.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    return X, (rng.random(n) < expit(steepness * (2 * X[:, 0] - X[:, 1]))).astype(int)


def wave(n, seed):
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.uniform(-3, 3, n), rng.normal(size=(n, 4))])
    return X, (rng.random(n) < expit(6 * np.sin(3 * X[:, 0]))).astype(int)


def rings_and_products(n, seed):
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, 6))
    return Z, ((Z[:, 0] ** 2 + Z[:, 1] ** 2 > 1.4) ^ (Z[:, 2] * Z[:, 3] > 0)).astype(int)


@pytest.mark.parametrize("seed", range(3))
def test_two_clusters_with_random_flips_are_not_rejected(seed):
    rng = np.random.default_rng(seed)
    X = np.r_[rng.uniform(-5, -2, 200), rng.uniform(2, 5, 200)][:, None]
    y = flip_labels(X[:, 0] > 0, NoiseRates(0.2, 0.2), random_state=seed)
    check = ChannelPosterior(random_state=0).fit(X, y).check_
    assert check.verdict == "not_rejected"
    assert check.statistic < 3


def test_linear_classes_need_no_more_than_the_columns():
    X, y = linear(1500, seed=1)
    channel = ChannelPosterior(random_state=0).fit(X, flip_labels(y, FLIPS, random_state=0))
    assert channel.check_.verdict == "not_rejected"
    assert channel.features_ == "linear"


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("world", "rates"), [(wave, (0.3, 0.1)), (wave, (0.0, 0.0)), (rings_and_products, (0.0, 0.0))]
)
def test_shapes_that_bumps_cannot_follow_are_not_called_noise(world, rates, seed):
    X, y = world(3000, seed)
    noisy = flip_labels(y, NoiseRates(*rates), random_state=seed)
    channel = ChannelPosterior().fit(X, noisy)
    assert channel.features_ == "trees"
    np.testing.assert_allclose(channel.rates_.both(), rates, atol=0.06)
    for (low, high), rate in zip(channel.interval_.both(), rates, strict=True):
        assert low - 0.02 <= rate <= high + 0.02


def test_errors_that_depend_on_the_sample_are_within_the_range():
    X, y = wave(2000, seed=0)
    flip = np.random.default_rng(7).random(2000) < np.where(X[:, 4] > 0.5, 0.5, 0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LabelNoiseWarning)
        clf = ImportanceReweightingClassifier().fit(X, np.where(flip, 1 - y, y))
    low, high = clf.label_error_range_
    assert low <= np.mean(flip) <= high


def codes_of(fitted):
    return [(one.code, one.severity) for one in fitted.noise_.findings]


def test_classes_that_only_trees_follow_are_noted_without_a_warning():
    X, y = wave(4000, seed=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", LabelNoiseWarning)
        clf = ImportanceReweightingClassifier().fit(X, flip_labels(y, FLIPS, random_state=0))
    assert ("tree_features", "note") in codes_of(clf)
    low, high = clf.label_error_range_
    assert low <= 0.2 <= high


def test_errors_that_overlap_may_hide_are_an_assumption_and_no_warning():
    X, y = linear(1500, seed=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error", LabelNoiseWarning)
        clean = ImportanceReweightingClassifier().fit(X, y)
        ImportanceReweightingClassifier().fit(X, flip_labels(y, FLIPS, random_state=0))
    assert clean.noise_rates_.both() == (0.0, 0.0)
    assert clean.label_error_range_[1] == pytest.approx(0.16, abs=0.05)
    assert codes_of(clean) == [("class_conditional", "assumption")]


def test_clean_and_separated_classes_have_a_range_that_ends_at_once_and_an_interval_with_width():
    X, _ = linear(2000, seed=3)
    y = (2 * X[:, 0] - X[:, 1] > 0).astype(int)
    with warnings.catch_warnings():
        warnings.simplefilter("error", LabelNoiseWarning)
        clf = ImportanceReweightingClassifier().fit(X, y)
    assert clf.label_error_range_[1] < 0.03
    for low, high in clf.rate_estimator_.interval_.both():
        assert low == 0 < high < 0.02


# --- scores


def test_probabilities_of_the_rows_come_from_trees_that_have_not_seen_them():
    X, y = wave(1500, seed=1)
    rng = np.random.default_rng(0)
    noisy = np.where(rng.random(1500) < 0.3, 1 - y, y)
    channel = ChannelPosterior("trees", random_state=0)
    held_out = channel.fit_predict_proba(X, noisy)
    seen = channel.predict_proba(X)
    given = np.arange(1500), noisy
    assert channel.out_of_fold
    assert seen[given].mean() > held_out[given].mean() + 0.02  # trees remember their rows
    np.testing.assert_allclose(held_out.sum(axis=1), 1)


def test_copies_of_rows_change_nothing_and_are_held_out_together():
    X, y = wave(600, seed=2)
    noisy = flip_labels(y, FLIPS, random_state=2)
    one = ChannelPosterior("trees").fit_predict_proba(X, noisy)
    three = ChannelPosterior("trees").fit_predict_proba(X.repeat(3, axis=0), noisy.repeat(3))
    np.testing.assert_allclose(three[::3], one, atol=1e-9)


def test_known_rates_are_kept_on_scores_too():
    X, y = wave(1000, seed=3)
    noisy = flip_labels(y, FLIPS, random_state=3)
    told = ChannelPosterior(known=FLIPS).fit(X, noisy)
    assert told.features_ == "trees"
    assert told.rates_ == FLIPS
    blind = ChannelPosterior("nystroem", known=FLIPS).fit(X, noisy)
    likelihoods = [
        np.log(c.predict_clean_proba(X)[np.arange(1000), y]).mean() for c in (told, blind)
    ]
    assert likelihoods[0] > likelihoods[1] + 0.2


@pytest.mark.parametrize("given", [(0.02, 0.02), (0.1, 0.3), (0.0, 0.4)])
def test_given_rates_that_the_labels_contradict_are_contradicted(given):
    X, y = linear(1500, seed=4)
    noisy = flip_labels(y, FLIPS, random_state=4)
    with pytest.warns(LabelNoiseWarning, match="unlikely_rates:"):
        ImportanceReweightingClassifier(noise_rates=NoiseRates(*given)).fit(X, noisy)


@pytest.mark.parametrize("seed", range(4))
def test_given_rates_that_are_right_are_not_contradicted(seed):
    X, y = linear(800, seed=seed)
    for rates in (FLIPS, NoiseRates(0.0, 0.2)):
        noisy = flip_labels(y, rates, random_state=seed)
        told = ChannelPosterior(known=rates).fit(X, noisy)
        assert told.check_.likelier_rates is None


# --- the share of wrong labels


def test_bounds_of_the_wrong_share_are_those_of_a_grid_of_rates():
    positive, negative, prior = (0.1, 0.3), (0.05, 0.2), 0.4
    shares = []
    for a in np.linspace(*positive, 41):
        for b in np.linspace(*negative, 41):
            true = np.clip((prior - b) / (1 - a - b), 0, 1)
            shares.append(true * a + (1 - true) * b)
    assert error_rate_bounds(positive, negative, prior) == pytest.approx(
        (min(shares), max(shares)), abs=0.01
    )


def test_the_range_is_at_least_what_random_flips_say():
    assert channel_range(0.1, 1e4, (0.2, 0.3)) == (0.0, 0.3)
    assert channel_range(0.1, 1e4, (0.0, 0.01))[1] == pytest.approx(0.1416, abs=1e-3)
    assert channel_range(0.02, 1e4, (0.0, 0.01), simple_disagreement=0.2)[1] > 0.2
    assert channel_range(0.5, 1e2, (0.0, 0.01), simple_disagreement=0.5)[1] <= 0.65
