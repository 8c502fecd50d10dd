"""Scott's mixture proportions: golden numbers, exact distributions, invariances, simulations."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.test_noise import noise_rates
from unflip import ImportanceReweightingClassifier, NoiseRates, flip_labels
from unflip.noise_rates import ScottRates, make_rates

# Scott's means of the estimated (rho_pos, rho_neg) in the paper's table 1
TABLE_1_TWO_DIMENSIONS = {
    (0.0, 0.4): (0.000, 0.382),
    (0.1, 0.3): (0.089, 0.297),
    (0.2, 0.2): (0.176, 0.203),
}


def two_columns(positive) -> np.ndarray:
    return np.column_stack([1 - np.asarray(positive), positive])


def noisy_sample(n: int, rates: NoiseRates, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Scores that are the true P(noisy=+1 | x), and labels drawn from them."""
    rng = np.random.default_rng(seed)
    clean = rng.beta(0.3, 0.3, size=n)
    noisy = rates.noisy_posterior(clean)
    return noisy, (rng.uniform(size=n) < noisy).astype(int)


@given(noise_rates(most=0.9), st.floats(0.05, 0.95), st.integers(0, 1000))
def test_an_anchor_atom_per_class_gives_the_proportions_exactly(rates, clean_prior, seed):
    rng = np.random.default_rng(seed)
    clean = np.concatenate([[0.0, 1.0], rng.uniform(size=6)])  # P(true=+1 | atom)
    mass = rng.uniform(0.1, 1, size=8)
    mass[:2] = 20 * (1 - clean_prior), 20 * clean_prior
    noisy = rates.noisy_posterior(clean)
    # one row per atom and label, weighted by its probability
    scores, y = np.tile(noisy, 2), np.repeat([0, 1], 8)
    weight = np.concatenate([mass * (1 - noisy), mass * noisy])
    estimate = ScottRates(delta=None).fit_posterior(two_columns(scores), y, weight)
    inverse = rates.inverse(noisy_prior=float(weight[8:].sum() / weight.sum()))
    np.testing.assert_allclose(
        estimate.mixture_proportions_,
        (inverse.positive / (1 - inverse.negative), inverse.negative / (1 - inverse.positive)),
        atol=1e-9,
    )
    np.testing.assert_allclose(estimate.rates_.both(), rates.both(), atol=1e-9)
    np.testing.assert_allclose(
        (estimate.inverse_rates_.positive, estimate.inverse_rates_.negative),
        (inverse.positive, inverse.negative),
        atol=1e-9,
    )


def test_a_consistent_clean_prior_changes_nothing_and_another_one_does():
    scores, y = noisy_sample(2000, NoiseRates(positive=0.3, negative=0.1))
    without = ScottRates().fit_posterior(two_columns(scores), y)
    implied = without.rates_.clean_prior(y.mean())
    same = ScottRates(clean_prior=implied).fit_posterior(two_columns(scores), y)
    np.testing.assert_allclose(same.rates_.both(), without.rates_.both(), atol=1e-9)
    np.testing.assert_allclose(same.inverse_rates_.positive, without.inverse_rates_.positive)
    other = ScottRates(clean_prior=implied + 0.1).fit_posterior(two_columns(scores), y)
    assert other.rates_.positive < without.rates_.positive
    assert other.rates_.negative > without.rates_.negative
    assert other.mixture_proportions_ == without.mixture_proportions_


def test_an_impossible_clean_prior_is_scaled_back_with_a_warning():
    scores, y = noisy_sample(2000, NoiseRates(positive=0.3, negative=0.1))
    with pytest.warns(UserWarning, match="0.95"):
        scott = ScottRates(clean_prior=0.02).fit_posterior(two_columns(scores), y)
    np.testing.assert_allclose(sum(scott.rates_.both()), 0.95)


def test_swapping_the_labels_swaps_the_rates():
    scores, y = noisy_sample(500, NoiseRates(positive=0.3, negative=0.1))
    one = ScottRates().fit_posterior(two_columns(scores), y)
    other = ScottRates().fit_posterior(two_columns(scores)[:, ::-1], 1 - y)
    np.testing.assert_allclose(one.rates_.both(), other.rates_.swapped().both())
    np.testing.assert_allclose(one.mixture_proportions_, other.mixture_proportions_[::-1])


@pytest.mark.parametrize("delta", [None, 0.1])
def test_weights_are_repetitions(delta):
    scores, y = noisy_sample(200, NoiseRates(positive=0.3, negative=0.1))
    weight = np.random.default_rng(1).integers(0, 4, 200)
    weighted = ScottRates(delta=delta).fit_posterior(two_columns(scores), y, weight)
    repeated = ScottRates(delta=delta).fit_posterior(
        two_columns(scores.repeat(weight)), y.repeat(weight)
    )
    np.testing.assert_allclose(weighted.rates_.both(), repeated.rates_.both())


def test_clean_and_separable_classes_have_no_noise():
    scores, y = np.linspace(0, 1, 2000), np.repeat([0, 1], 1000)
    assert ScottRates(delta=None).fit_posterior(two_columns(scores), y).rates_.both() == (0, 0)
    assert max(ScottRates().fit_posterior(two_columns(scores), y).rates_.both()) < 0.01


@pytest.mark.parametrize("rates", [(0.3, 0.1), (0.0, 0.4), (0.2, 0.2)])
def test_the_rates_are_found_where_the_classes_are_apart(rates):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 20_000)
    X = rng.normal(3.5 * y[:, None], 1.0, (20_000, 1))
    y_noisy = flip_labels(y, NoiseRates(*rates), random_state=0)
    estimated = ScottRates(random_state=0).fit(X, y_noisy).rates_
    np.testing.assert_allclose(estimated.both(), rates, atol=0.03)


@pytest.mark.parametrize("delta", [None, 0.1])
def test_labels_without_information_are_warned_of_or_refused(delta):
    scores, y = np.repeat(np.linspace(0, 1, 50), 2), np.tile([0, 1], 50)
    with pytest.warns(UserWarning, match="scaled back"):
        estimate = ScottRates(delta=delta).fit_posterior(two_columns(scores), y)
    assert sum(estimate.rates_.both()) == pytest.approx(0.95)
    assert max(estimate.mixture_proportions_) < 1
    with pytest.raises(ValueError, match="information"):
        ScottRates(delta=delta, clean_prior=0.5).fit_posterior(two_columns(scores), y)


@pytest.mark.parametrize(
    ("estimator", "weight", "message"),
    [
        (ScottRates(delta=0.0), None, r"delta must lie between 0 and 1, or be None, got 0\.0"),
        (ScottRates(clean_prior=1), None, "clean_prior must lie between 0 and 1"),
        (ScottRates(), [1, 0, 1, 0], "sample_weight 0"),
    ],
)
def test_bad_input_is_named(estimator, weight, message):
    with pytest.raises(ValueError, match=message):
        estimator.fit_posterior(two_columns([0.2, 0.8, 0.4, 0.6]), [0, 1, 0, 1], weight)
    assert not any(name.endswith("_") for name in vars(estimator))


def test_folds_are_no_more_than_the_rarer_class_has_rows():
    X, y = np.linspace(0, 1, 30)[:, None], np.repeat([0, 1], [27, 3])
    few = ScottRates(random_state=0).fit(X, y)
    three = ScottRates(cv=3, random_state=0).fit(X, y)
    assert few.rates_ == three.rates_
    with pytest.raises(ValueError, match="cv=2"):
        ScottRates().fit(X, np.repeat([0, 1], [29, 1]))


def test_the_classifier_hands_in_its_own_posterior():
    assert isinstance(make_rates("scott"), ScottRates)
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(1000, 2))
    rates = NoiseRates(positive=0.3, negative=0.1)
    y = flip_labels((X.sum(axis=1) > 1).astype(int), rates, random_state=0)
    clf = ImportanceReweightingClassifier(noise_rates="scott").fit(X, y)
    in_sample = ScottRates().fit_posterior(clf.posterior_.predict_proba(X), y)
    assert clf.noise_rates_ == in_sample.rates_
    np.testing.assert_allclose(clf.noise_rates_.both(), rates.both(), atol=0.06)


def mean_rates(n_features: int, pair, posterior) -> np.ndarray:
    """Mean estimate on table 1's synthetic data: ten splits of 1000 uniform rows."""
    X = np.random.default_rng(0).uniform(size=(1000, n_features))
    total = X.sum(axis=1)
    y = np.where(total > np.median(total), 1, -1)
    estimates = []
    for seed in range(10):
        random_state = np.random.RandomState(seed)
        train = random_state.permutation(1000)[:750]
        y_noisy = flip_labels(y[train], NoiseRates(*pair), random_state)
        estimator = ScottRates(posterior, random_state=seed)
        estimates.append(estimator.fit(X[train], y_noisy).rates_.both())
    return np.mean(estimates, axis=0)


@pytest.mark.parametrize("posterior", ["kde", "probabilistic"])
@pytest.mark.parametrize(("pair", "printed"), list(TABLE_1_TWO_DIMENSIONS.items()))
def test_table_1_in_two_dimensions_is_no_worse_than_printed(pair, printed, posterior):
    error = np.abs(mean_rates(2, pair, posterior) - pair)
    assert (error <= np.maximum(np.abs(np.subtract(printed, pair)), 0.05)).all(), error


@pytest.mark.parametrize("pair", list(TABLE_1_TWO_DIMENSIONS))
def test_table_1_in_twenty_dimensions_is_within_a_tenth(pair):
    np.testing.assert_allclose(mean_rates(20, pair, "probabilistic"), pair, atol=0.1)
