"""The check of the channel by boosted trees, and the channel on their scores."""

import warnings

import numpy as np
import pytest
from scipy.special import expit

from unflip import ImportanceReweightingClassifier, LabelNoiseWarning, NoiseRates, flip_labels
from unflip.channel import score_of_folds
from unflip.diagnostics import channel_range, wrong_share_bounds
from unflip.posterior import ChannelPosterior
from unflip.posterior._noisy_channel import ChannelSample, fit_noisy_channel
from unflip.posterior._noisy_channel._check import (
    plateau_bounds,
    residual_score,
)
from unflip.posterior._noisy_channel._evidence import (
    information_factor,
    mean_sigmoid,
    refit_coef,
)

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


def evidence_of(X, y, weight=None):
    weight = np.ones(len(X)) if weight is None else weight
    return ChannelSample(X, y == 1, weight).merged(np.random.RandomState(0))


# --- rows without their own labels


@pytest.mark.parametrize("known", [NoiseRates(0.0, 0.0), FLIPS])
def test_leaving_out_a_row_by_one_step_is_as_good_as_fitting_without_it(known):
    X, y = linear(120, seed=0)
    evidence = evidence_of(X, flip_labels(y, FLIPS, random_state=0))
    channel = fit_noisy_channel(evidence, known, bumps=False, n_centers=10)
    held_out = channel.held_out(evidence)
    (part,) = channel.parts
    design = evidence.sample.design(part.features)
    own = expit(design.features @ part.fit.coef)
    moves, errors = [], []
    for i in range(0, 120, 4):
        others = np.arange(120) != i
        without = type(design)(
            design.features[others], design.block, design.positive[others], design.weight[others]
        )
        fit = refit_coef(without, known.both(), part.fit)
        factor = information_factor(without, fit)
        exact = mean_sigmoid(design.features[[i]], fit.coef, factor)[0]
        errors.append(abs(held_out[i] - exact))
        moves.append(abs(own[i] - exact))
    assert np.mean(errors) < 0.2 * np.mean(moves)


def test_each_of_several_equal_rows_is_left_out_alone():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, size=(300, 2)).astype(float)
    y = (rng.random(300) < expit(X[:, 0] - X[:, 1])).astype(int)
    evidence = evidence_of(X, y)
    assert len(evidence.sample.rows) < 20
    assert len(evidence.units.rows) == 300
    np.testing.assert_array_equal(evidence.units.rows[evidence.place], X)
    np.testing.assert_array_equal(evidence.units.positive[evidence.place], y == 1)
    channel = fit_noisy_channel(evidence, NoiseRates(0, 0), bumps=False, n_centers=10)
    assert channel.held_out(evidence).shape == (300,)


# --- the check


def test_the_statistic_is_about_standard_normal_where_only_chance_is_left():
    found = []
    for seed in range(24):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(400, 3))
        p = expit(2 * X[:, 0])
        found.append(residual_score(ChannelSample(X, rng.random(400) < p, np.ones(400)), p, p))
    assert np.mean(np.abs(found) > 3) < 0.05
    assert -1.5 < np.mean(found) < 0.5
    assert np.std(found) < 1.6


def test_the_statistic_sees_what_the_probabilities_do_not():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 3))
    labels = rng.random(1000) < expit(3 * X[:, 0] * X[:, 1])
    half = np.full(1000, 0.5)
    assert residual_score(ChannelSample(X, labels, np.ones(1000)), half, half) > 8


def test_folds_are_asked_in_turn_until_there_is_no_hope():
    rng = np.random.default_rng(0)
    gains = list(rng.normal(0.2, 1.0, size=(3, 50)))
    whole = np.concatenate(gains)
    assert score_of_folds(gains) == pytest.approx(whole.sum() / np.sqrt((whole**2).sum()))
    left = iter([-np.ones(9), np.ones(9)])
    assert score_of_folds(left) == pytest.approx(-3.0)
    assert next(left).sum() == 9
    assert score_of_folds([]) == 0


@pytest.mark.parametrize("seed", range(3))
def test_two_clusters_with_random_flips_are_believed(seed):
    rng = np.random.default_rng(seed)
    X = np.r_[rng.uniform(-5, -2, 200), rng.uniform(2, 5, 200)][:, None]
    y = flip_labels(X[:, 0] > 0, NoiseRates(0.2, 0.2), random_state=seed)
    check = ChannelPosterior(random_state=0).fit(X, y).check_
    assert check.verdict == "believed"
    assert check.statistic < 3


def test_linear_classes_are_believed_and_the_trees_are_not_asked():
    X, y = linear(1500, seed=1)
    channel = ChannelPosterior(random_state=0).fit(X, flip_labels(y, FLIPS, random_state=0))
    assert channel.check_.verdict == "believed"
    plain = ChannelPosterior("nystroem", random_state=0).fit(
        X, flip_labels(y, FLIPS, random_state=0)
    )
    assert channel.rates_ == plain.rates_
    assert channel.interval_.both() == plain.interval_.both()


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("world", "rates"), [(wave, (0.3, 0.1)), (wave, (0.0, 0.0)), (rings_and_products, (0.0, 0.0))]
)
def test_shapes_that_bumps_cannot_follow_are_not_called_noise(world, rates, seed):
    X, y = world(3000, seed)
    noisy = flip_labels(y, NoiseRates(*rates), random_state=seed)
    channel = ChannelPosterior().fit(X, noisy)
    assert channel.check_.verdict == "refuted"
    np.testing.assert_allclose(channel.rates_.both(), rates, atol=0.06)
    for (low, high), rate in zip(channel.interval_.both(), rates, strict=True):
        assert low - 0.02 <= rate <= high + 0.02


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
    assert told.check_.verdict == "refuted"
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
    with pytest.warns(LabelNoiseWarning, match="is contradicted by the labels"):
        ImportanceReweightingClassifier(noise_rates=NoiseRates(*given)).fit(X, noisy)


@pytest.mark.parametrize("seed", range(4))
def test_given_rates_that_are_right_are_not_contradicted(seed):
    X, y = linear(800, seed=seed)
    for rates in (FLIPS, NoiseRates(0.0, 0.2)):
        noisy = flip_labels(y, rates, random_state=seed)
        told = ChannelPosterior(known=rates).fit(X, noisy)
        assert told.check_.likelier_rates is None


def test_upper_bounds_by_extreme_scores_hold_for_any_classes():
    covered = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        t = 2 * rng.normal(size=800)
        y = (rng.random(800) < expit(t)).astype(int)
        noisy = flip_labels(y, FLIPS, random_state=seed)
        units = ChannelSample(t[:, None], noisy == 1, np.ones(800))
        bounds = plateau_bounds(t + rng.normal(size=800), units)
        covered.append([bound >= rate for bound, rate in zip(bounds, FLIPS.both(), strict=True)])
    assert np.mean(covered) > 0.95


# --- the share of wrong labels


def test_bounds_of_the_wrong_share_are_those_of_a_grid_of_rates():
    positive, negative, prior = (0.1, 0.3), (0.05, 0.2), 0.4
    shares = []
    for a in np.linspace(*positive, 41):
        for b in np.linspace(*negative, 41):
            true = np.clip((prior - b) / (1 - a - b), 0, 1)
            shares.append(true * a + (1 - true) * b)
    assert wrong_share_bounds(positive, negative, prior) == pytest.approx(
        (min(shares), max(shares)), abs=0.01
    )


def test_the_range_is_at_least_what_random_flips_say():
    assert channel_range(0.1, 1e4, (0.2, 0.3)) == (0.0, 0.3)
    assert channel_range(0.1, 1e4, (0.0, 0.01))[1] == pytest.approx(0.1416, abs=1e-3)
    assert channel_range(0.02, 1e4, (0.0, 0.01), simple_disagreement=0.2)[1] > 0.25
    assert channel_range(0.5, 1e2, (0.0, 0.01), simple_disagreement=0.5)[1] <= 0.65
