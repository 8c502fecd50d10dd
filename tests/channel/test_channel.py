"""The noisy channel: derivatives, optimality, rates, clean posterior, intervals."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from scipy.special import expit
from sklearn.decomposition import TruncatedSVD
from sklearn.preprocessing import PolynomialFeatures

from unflip import NoiseRates, flip_labels
from unflip.channel._copies import distinct_rows
from unflip.channel._features import ChannelFeatures, row_keys, shuffled_keys
from unflip.channel._rates import GridSurface, RatePosterior, _noise_test
from unflip.noise_rates import ChannelRates, make_rates
from unflip.posterior import ChannelPosterior


def separated(n, rates, seed):
    """Rows on both sides of a line, some near it."""
    X = np.random.default_rng(seed).uniform(size=(n, 2))
    return X, flip_labels(X.sum(axis=1) > 1, rates, random_state=seed).astype(int)


def test_more_than_the_columns_is_used_only_where_it_helps():
    X, y = separated(600, NoiseRates(0.2, 0.2), seed=0)
    X = X - 0.5
    inside = flip_labels((X**2).sum(axis=1) < 0.08, NoiseRates(0.2, 0.2), random_state=0)
    line, circle = (
        ChannelPosterior(random_state=0).fit(X, labels).features_ for labels in (y, inside)
    )
    assert line == "linear"
    assert circle != "linear"


@pytest.mark.parametrize("free", [[0], [1], [0, 1]])
def test_outside_the_explored_pairs_the_evidence_is_negligible(free):
    axes = [np.linspace(0.1, 0.3, 4) if k in free else np.array([0.2]) for k in range(2)]
    pairs = np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, 2)
    surface = GridSurface(pairs, pairs.sum(axis=1) * 10)
    inside, outside = np.array([[0.2, 0.2]]), np.full((1, 2), 0.2)
    outside[:, free] = 0.4
    assert surface(inside) == pytest.approx(4.0, abs=0.05)
    assert surface(outside) < -900


def test_the_distribution_is_that_of_a_known_surface():
    mean, sd = np.array([0.3, 0.2]), np.array([0.02, 0.03])

    def surface(points):
        return -0.5 * (((points - mean) / sd) ** 2).sum(axis=1)

    box = ((0.0, 0.5), (0.0, 0.5))
    posterior = RatePosterior(surface, box, box, None)
    rng = np.random.default_rng(0)
    # the same prior by rejection: a quarter on the diagonal, the rest over the box
    draws = rng.uniform(0, 0.5, size=(400_000, 2))
    diagonal = rng.random(400_000) < 0.25
    draws[diagonal] = rng.uniform(0, 0.475, size=400_000)[diagonal, None]
    kept = draws[rng.random(400_000) < np.exp(surface(draws))]
    np.testing.assert_allclose(posterior.estimate("median"), np.median(kept, axis=0), atol=0.005)
    np.testing.assert_allclose(posterior.estimate("mean"), kept.mean(axis=0), atol=0.005)
    for k, (low, high) in enumerate(posterior.interval(0.9)):
        share = np.mean((kept[:, k] >= low) & (kept[:, k] <= high))
        assert share == pytest.approx(0.9, abs=0.03)


def test_no_noise_is_reported_where_it_is_the_likelier():
    box = ((0.0, 0.5), (0.0, 0.5))

    def falls(points):
        return -100 * points.sum(axis=1)

    def rises(points):
        return 100 * points.sum(axis=1)

    clean = RatePosterior(falls, box, box, 0.0)
    assert clean.estimate("median") == (0.0, 0.0)
    assert 0 < max(clean.estimate("mean")) < 0.005
    assert clean.p_origin > 0.9
    assert all(low == 0 and high < 0.05 for low, high in clean.interval(0.95))
    noisy = RatePosterior(rises, box, box, 0.0)
    assert noisy.p_origin < 1e-6
    assert all(low > 0.3 for low, _ in noisy.interval(0.95))


# --- features


def test_a_gaussian_prior_on_the_bumps_has_the_kernel_as_covariance_at_the_centers():
    X = np.random.default_rng(0).normal(size=(30, 3))
    features = ChannelFeatures(1.0, 30).fit(X, np.ones(30), np.arange(30))
    bumps = features.transform(X)[:, 4:] + features.shift @ features.root
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    squared = ((Z[:, None] - Z[None]) ** 2).sum(axis=2)
    median = np.median(squared[squared > 0])
    np.testing.assert_allclose(bumps @ bumps.T, np.exp(-squared / (2 * median)), atol=1e-5)


def test_scores_of_an_svd_on_one_scale_have_the_prior_of_the_columns():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 5)) @ rng.normal(size=(5, 5))
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    scores = Z @ np.linalg.svd(Z)[2].T
    everyone = np.ones(60), np.arange(60)
    columns = ChannelFeatures(None, 10).fit(X, *everyone).transform(X)
    reduced = ChannelFeatures(None, 10, one_scale=True).fit(scores, *everyone).transform(scores)
    np.testing.assert_allclose(reduced @ reduced.T, columns @ columns.T, atol=1e-12)


def merged(X, positive, weight=None, seed=1):
    weight = np.ones(len(X)) if weight is None else weight
    found = distinct_rows(X, positive, weight, np.random.RandomState(seed))
    return X[found.first], positive[found.first], found.weight


def test_rows_are_shuffled_alike_in_other_units_with_columns_reversed_and_in_single_precision():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=500), rng.exponential(size=500), rng.uniform(size=500)])

    def order(X):
        return np.argsort(shuffled_keys(X, np.ones(500), np.random.RandomState(3)))

    np.testing.assert_array_equal(order(X), order(X * [1e-6, 1.0, 1e6]))
    np.testing.assert_array_equal(order(X), order(X[:, ::-1]))
    assert np.mean(order(X) == order(X.astype(np.float32).astype(float))) > 0.9
    assert np.abs(np.corrcoef(order(X), np.arange(500))[0, 1]) < 0.15
    for column in X.T:
        assert np.abs(np.corrcoef(order(X).argsort(), column)[0, 1]) < 0.15


def test_rows_that_differ_in_the_last_digit_are_two_rows():
    X = np.array([[1.0, 2.0], [1.0, np.nextafter(2.0, 3.0)], [1.0, 2.0], [-0.0, 1.0], [0.0, 1.0]])
    assert len(np.unique(row_keys(X))) == 3


def test_neither_copies_nor_the_order_of_rows_change_the_sample():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, size=(50, 3)).astype(float)
    y = rng.random(50) < 0.5
    one = merged(X, y)
    labelled = np.column_stack([X, y])
    assert len(one[0]) == len(np.unique(labelled, axis=0))
    copied = rng.permutation(np.vstack([labelled] * 3))
    other = merged(copied[:, :3], copied[:, 3] == 1)
    for before, after in zip(one, other, strict=True):
        np.testing.assert_array_equal(before, after)
    assert not np.array_equal(one[0], merged(X, y, seed=2)[0])


def test_copies_of_rows_are_not_evidence_and_repeated_rows_of_both_labels_are():
    rng = np.random.default_rng(0)
    X, copies = rng.normal(size=(200, 2)), rng.integers(1, 9, 200)
    y = rng.random(200) < 0.5
    _, _, weight = merged(X.repeat(copies, axis=0), y.repeat(copies))
    assert weight.sum() == pytest.approx(copies.sum() ** 2 / (copies**2).sum())
    np.testing.assert_allclose(weight, merged(X, y, copies.astype(float))[2])
    few = rng.integers(0, 2, size=(500, 3)).astype(float)
    assert merged(few, rng.random(500) < 0.5)[2].sum() == 500


# --- the estimator


@pytest.mark.parametrize("rates", [(0.3, 0.1), (0.0, 0.4), (0.2, 0.2)])
def test_the_rates_are_found(rates):
    X, y = separated(1500, NoiseRates(*rates), seed=0)
    channel = ChannelPosterior(random_state=0).fit(X, y)
    np.testing.assert_allclose(channel.rates_.both(), rates, atol=0.05)


def test_clean_labels_that_overlap_are_not_called_noisy():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 3))
    y = (rng.random(1500) < expit(2 * X[:, 0] - X[:, 1])).astype(int)
    channel = ChannelPosterior(random_state=0).fit(X, y)
    assert channel.rates_.both() == (0.0, 0.0)
    assert channel.noise_test_.probability > 0.5


def test_many_rows_take_the_short_way_to_the_same_rates():
    X, y = separated(8000, NoiseRates(0.3, 0.1), seed=1)
    channel = ChannelPosterior(random_state=0).fit(X, y)
    np.testing.assert_allclose(channel.rates_.both(), (0.3, 0.1), atol=0.03)
    for name, rate in (("positive", 0.3), ("negative", 0.1)):
        low, high = getattr(channel.interval_, name)
        assert high - low < 0.08
        assert low - 0.02 < rate < high + 0.02
    none = ChannelPosterior(random_state=0).fit(X, (X.sum(axis=1) > 1).astype(int))
    np.testing.assert_allclose(none.rates_.both(), 0, atol=0.005)


def test_the_clean_posterior_is_that_of_the_clean_labels():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 2))
    clean = expit(3 * X[:, 0])
    y = flip_labels(rng.random(3000) < clean, NoiseRates(0.3, 0.1), random_state=0)
    channel = ChannelPosterior(random_state=0).fit(X, y)
    assert np.abs(channel.predict_clean_proba(X)[:, 1] - clean).mean() < 0.06
    noisy = channel.predict_proba(X)
    np.testing.assert_allclose(noisy.sum(axis=1), 1)
    np.testing.assert_allclose(
        noisy[:, 1], channel.rates_.noisy_posterior(channel.predict_clean_proba(X)[:, 1])
    )


def test_known_and_bounded_rates_are_honoured():
    X, y = separated(600, NoiseRates(0.3, 0.0), seed=2)
    channel = ChannelPosterior(known=NoiseRates(None, 0.0), random_state=0).fit(X, y)
    assert channel.rates_.negative == 0
    assert channel.interval_.negative == (0, 0)
    assert channel.rates_.positive == pytest.approx(0.3, abs=0.07)
    both = ChannelPosterior(known=NoiseRates(0.3, 0.0), random_state=0).fit(X, y)
    assert both.rates_ == NoiseRates(0.3, 0.0)
    bounds = NoiseRates(positive=(0.0, 0.2), negative=(0.05, 0.1))
    bounded = ChannelPosterior(known=bounds, random_state=0).fit(X, y)
    assert 0.1 < bounded.rates_.positive <= 0.2
    assert 0.05 <= bounded.rates_.negative <= 0.1
    many = ChannelPosterior(known=NoiseRates(None, 0.0), random_state=0).fit(
        *separated(5000, NoiseRates(0.3, 0.0), seed=2)
    )
    assert many.rates_.negative == 0
    assert many.rates_.positive == pytest.approx(0.3, abs=0.03)


def test_swapping_the_labels_swaps_the_rates():
    X, y = separated(400, NoiseRates(0.3, 0.1), seed=3)
    one = ChannelPosterior(random_state=0).fit(X, y)
    other = ChannelPosterior(random_state=0).fit(X, 1 - y)
    np.testing.assert_allclose(one.rates_.both(), other.rates_.swapped().both(), atol=0.01)
    np.testing.assert_allclose(
        one.predict_clean_proba(X), other.predict_clean_proba(X)[:, ::-1], atol=0.03
    )


@pytest.mark.parametrize("n", [300, 4000])
def test_weights_are_repetitions(n):
    X, y = separated(n, NoiseRates(0.3, 0.1), seed=4)
    weight = np.random.default_rng(0).integers(0, 4, n)
    weighted = ChannelPosterior(random_state=0).fit(X, y, weight)
    repeated = ChannelPosterior(random_state=0).fit(X.repeat(weight, axis=0), y.repeat(weight))
    np.testing.assert_allclose(weighted.rates_.both(), repeated.rates_.both(), atol=1e-6)
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-6)


def test_copies_and_the_order_of_rows_change_nothing():
    X, y = separated(600, NoiseRates(0.3, 0.1), seed=6)
    one = ChannelPosterior(random_state=0).fit(X, y)
    order = np.random.default_rng(0).permutation(np.repeat(np.arange(600), 5))
    other = ChannelPosterior(random_state=0).fit(X[order], y[order])
    assert one.rates_ == other.rates_
    assert one.interval_ == other.interval_


def test_integer_weights_that_are_no_repetitions_do_not_hide_noise():
    X, y = separated(600, NoiseRates(0.3, 0.1), seed=0)
    weight = np.random.default_rng(0).integers(1, 5, 600)
    channel = ChannelPosterior(random_state=0).fit(X, y, weight)
    np.testing.assert_allclose(channel.rates_.both(), (0.3, 0.1), atol=0.06)


@pytest.mark.parametrize("seed", range(2))
def test_heavy_tailed_columns_are_no_obstacle(seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_t(1.5, size=(3000, 8))
    y = flip_labels(X[:, 0] + X[:, 1] > 0, NoiseRates(0.3, 0.1), random_state=seed)
    channel = ChannelPosterior(random_state=0).fit(X, y)
    np.testing.assert_allclose(channel.rates_.both(), (0.3, 0.1), atol=0.06)
    assert np.isfinite(channel.predict_proba(X)).all()


def test_dense_rows_of_many_columns_are_reduced_as_sparse_ones_are():
    rng = np.random.default_rng(0)
    latent = rng.normal(size=(600, 5))
    X = latent @ rng.normal(size=(5, 600)) + 0.1 * rng.normal(size=(600, 600))
    y = flip_labels(latent[:, 0] > 0, NoiseRates(0.3, 0.1), random_state=0)
    channel = ChannelPosterior(random_state=0).fit(1e3 * X + 7, y)
    np.testing.assert_allclose(channel.rates_.both(), (0.3, 0.1), atol=0.08)


def test_a_seed_makes_it_repeatable():
    X, y = separated(300, NoiseRates(0.3, 0.1), seed=5)
    one, two = (ChannelPosterior(random_state=7).fit(X, y) for _ in range(2))
    assert one.rates_ == two.rates_
    assert one.interval_ == two.interval_


def test_the_linear_form_takes_sparse_rows_and_a_transformer_brings_its_own_features():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(800, 3)) * (rng.random((800, 3)) < 0.7)
    y = flip_labels(rng.random(800) < expit(4 * X[:, 0]), NoiseRates(0.2, 0.2), random_state=0)
    dense = ChannelPosterior("linear", random_state=0).fit(X, y)
    sparse = ChannelPosterior("linear", random_state=0).fit(csr_matrix(X), y)
    assert dense.rates_ == sparse.rates_
    np.testing.assert_allclose(
        dense.predict_clean_proba(X), sparse.predict_clean_proba(csr_matrix(X))
    )
    mine = ChannelPosterior(PolynomialFeatures(include_bias=False), random_state=0).fit(X, y)
    np.testing.assert_allclose(mine.rates_.both(), dense.rates_.both(), atol=0.1)
    wide = csr_matrix(rng.normal(size=(50, 501)))
    labels = rng.integers(0, 2, 50)
    reduced = ChannelPosterior("linear", random_state=0).fit(wide, labels)
    assert reduced.predict_proba(wide).shape == (50, 2)
    ChannelPosterior(TruncatedSVD(3, random_state=0), random_state=0).fit(wide, labels)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"features": "forest"}, "features='forest' is not one of"),
        ({"n_centers": 0}, "n_centers must be an integer"),
        ({"known": NoiseRates((0.5, 0.6), (0.48, 0.6))}, "sum to at least 0.98"),
    ],
)
def test_bad_parameters_are_named(params, message):
    X, y = separated(50, NoiseRates(0.1, 0.1), seed=0)
    channel = ChannelPosterior(**params)
    with pytest.raises(ValueError, match=message):
        channel.fit(X, y)
    assert not hasattr(channel, "rates_")


def test_the_alias_is_known():
    assert isinstance(make_rates("channel"), ChannelRates)


@pytest.mark.slow
@pytest.mark.parametrize("n", [300, 6000])
def test_intervals_hold_the_rates_as_often_as_they_say(n):
    rates, held = (0.3, 0.1), []
    for seed in range(100):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(n, 2))
        clean = rng.random(n) < expit(4 * X[:, 0])
        y = flip_labels(clean, NoiseRates(*rates), random_state=seed)
        interval = ChannelPosterior("linear", random_state=seed).fit(X, y).interval_
        pairs = zip(interval.both(), rates, strict=True)
        held += [low <= rate <= high for (low, high), rate in pairs]
    assert 0.88 < np.mean(held) <= 1.0


# --- tests of hypotheses


def bowl(mean, sd):
    return lambda points: -0.5 * (((points - mean) / sd) ** 2).sum(axis=1)


BOX = ((0.0, 0.5), (0.0, 0.5))


def test_the_statistics_are_twice_the_differences_of_the_log_evidence():
    mean, sd = np.array([0.2, 0.1]), np.array([0.05, 0.05])
    surface = bowl(mean, sd)
    posterior = RatePosterior(surface, BOX, BOX, float(surface(np.zeros((1, 2)))[0]))
    assert posterior.noise_test.statistic == pytest.approx(((mean / sd) ** 2).sum(), rel=0.01)
    # on the diagonal the nearest point is the mean of both, at equal spreads
    gap = 2 * ((0.05 / 0.05) ** 2)
    assert posterior.symmetry_test.statistic == pytest.approx(gap, rel=0.02)
    assert 0 < posterior.symmetry_test.probability < 1
    excluded = RatePosterior(surface, ((0.1, 0.2), (0.3, 0.4)), ((0.1, 0.2), (0.3, 0.4)), None)
    assert excluded.noise_test is None
    assert excluded.symmetry_test is None


def test_p_values_are_those_of_two_rates_that_cannot_be_negative():
    z = np.random.default_rng(0).normal(size=(400_000, 2))
    statistics = (np.maximum(z, 0) ** 2).sum(axis=1)
    for threshold in (0.5, 2.0, 5.0):
        simulated = np.mean(statistics > threshold)
        assert _noise_test(threshold, 0.5).p_value == pytest.approx(simulated, abs=0.003)
    assert _noise_test(0.0, 0.5).p_value == 1


@pytest.mark.parametrize("n", [1000, 5000])
def test_noise_and_asymmetry_are_found_where_they_are(n):
    X, y = separated(n, NoiseRates(0.3, 0.1), seed=0)
    noisy = ChannelPosterior(random_state=0).fit(X, y)
    assert noisy.noise_test_.p_value < 1e-4
    assert noisy.symmetry_test_.p_value < 1e-3
    X, y = separated(n, NoiseRates(0.2, 0.2), seed=1)
    alike = ChannelPosterior(random_state=0).fit(X, y)
    assert alike.noise_test_.p_value < 1e-4
    assert alike.symmetry_test_.p_value > 0.01
    assert alike.symmetry_test_.probability > 0.3


def test_what_is_known_is_not_tested():
    X, y = separated(300, NoiseRates(0.3, 0.1), seed=0)
    told = ChannelPosterior(known=NoiseRates(0.3, 0.1)).fit(X, y)
    assert told.noise_test_ is None
    assert told.symmetry_test_ is None
    assert told.interval(0.5).both() == ((0.3, 0.3), (0.1, 0.1))
    assert told.interval(0.5).level == 0.5
    with pytest.raises(ValueError, match="level must lie between 0 and 1"):
        told.interval(1.0)


def test_many_rows_with_known_rates_take_the_short_way_too():
    X, y = separated(6000, NoiseRates(0.3, 0.1), seed=0)
    known = ChannelPosterior(known=NoiseRates(0.3, 0.1)).fit(X, y)
    far = np.abs(X.sum(axis=1) - 1) > 0.3
    clean = known.predict_clean_proba(X)[:, 1]
    assert np.mean((clean > 0.5)[far] == (X.sum(axis=1) > 1)[far]) > 0.99


@pytest.mark.parametrize("known", [[0.1, 0.2], "auto"])
def test_what_is_no_pair_of_rates_is_refused(known):
    X, y = separated(50, NoiseRates(0.1, 0.1), seed=0)
    with pytest.raises(TypeError, match="known must be NoiseRates"):
        ChannelPosterior(known=known).fit(X, y)


def test_a_level_that_is_no_number_is_refused():
    X, y = separated(100, NoiseRates(0.1, 0.1), seed=0)
    with pytest.raises(ValueError, match="level must lie between 0 and 1, got 'a'"):
        ChannelRates().fit(X, y).interval("a")


def test_numbers_whose_squares_overflow_are_refused():
    X, y = separated(100, NoiseRates(0.1, 0.1), seed=0)
    with pytest.raises(ValueError, match="their squares overflow"):
        ChannelPosterior().fit(X * [1e200, 1], y)
