"""Intervals of the rates, and rates of which bounds are known."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from unflip import ImportanceReweightingClassifier, NoiseRates, TransitionMatrix, flip_labels
from unflip.noise_rates import (
    ALIASES,
    MinimumRates,
    SelectiveRates,
    estimate_rates,
    make_rates,
)

RATES = NoiseRates(positive=0.3, negative=0.1)


def separated(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Scores with a plateau of true positives and one of true negatives."""
    rng = np.random.RandomState(seed)
    y = rng.randint(0, 2, n)
    return np.column_stack([1.0 - y, y * 1.0]), flip_labels(y, RATES, random_state=rng)


def share_of_flips(noisy_posterior, codes, weight):
    """T by counting, where the scores tell the true classes."""
    true = noisy_posterior.argmax(axis=1)
    counts = np.zeros((2, 2))
    np.add.at(counts, (true, codes), weight)
    return counts / counts.sum(axis=1, keepdims=True)


@pytest.mark.slow
def test_intervals_of_selected_shares_cover_the_truth_where_some_rows_are_sure():
    covered = []
    for seed in range(300):
        scores, y = separated(1000, seed)
        noise = np.random.RandomState(seed).normal(scale=1e-3, size=1000)
        ranked = np.clip(scores[:, 1] + noise, 0, 1)
        selective = SelectiveRates(random_state=seed)
        selective.fit_posterior(np.column_stack([1 - ranked, ranked]), y)
        (low, high), (low_neg, high_neg) = selective.interval_.both()
        covered.append((low <= 0.3 <= high, low_neg <= 0.1 <= high_neg))
    coverage = np.mean(covered, axis=0)
    # below 0.95: the smallest of many shares stays a little too low
    assert np.all((coverage > 0.85) & (coverage < 0.98))


def test_an_interval_can_be_given_back_as_bounds():
    X = np.random.default_rng(0).uniform(size=(2000, 2))
    y = flip_labels(X.sum(axis=1) > 1, RATES, random_state=0)
    fitted = SelectiveRates(random_state=0).fit(X, y)
    low, high = fitted.interval_.positive
    assert low < fitted.rates_.positive < high
    bounds = NoiseRates(*fitted.interval_.both())
    clf = ImportanceReweightingClassifier(noise_rates=bounds, random_state=0).fit(X, y)
    assert low <= clf.noise_rates_.positive <= high


def test_the_interval_repeats_itself_and_follows_a_refit():
    scores, y = separated(400, seed=0)
    minimum = MinimumRates(quantile=0.05)
    first = minimum.fit_posterior(np.clip(scores, 0.1, 0.9), y).interval_
    assert minimum.interval_ is first  # computed once
    again = minimum.fit_posterior(np.clip(scores, 0.2, 0.8), y).interval_
    assert again != first
    assert (
        MinimumRates(quantile=0.05).fit_posterior(np.clip(scores, 0.1, 0.9), y).interval_ == first
    )


@pytest.mark.parametrize("name", sorted(ALIASES))
def test_an_unfitted_estimator_has_no_interval(name):
    assert not hasattr(make_rates(name), "interval_")


@pytest.mark.parametrize("name", sorted(ALIASES))
def test_every_estimator_has_an_interval_at_its_own_and_at_other_levels(name):
    X = np.random.default_rng(0).uniform(size=(300, 2))
    y = flip_labels(X.sum(axis=1) > 1, RATES, random_state=0)
    estimator = make_rates(name, random_state=0)
    if name == "cv":
        grid = [(0.1, 0.1), (0.3, 0.1), (0.2, 0.2)]
        estimator.set_params(estimator=ImportanceReweightingClassifier(), grid=grid)
    fitted = estimator.fit(X, y)
    assert fitted.interval_ == fitted.interval() == fitted.interval(level=0.95)
    assert fitted.interval_.level == 0.95
    narrower = fitted.interval(level=0.5)
    assert narrower.level == 0.5
    assert np.all(narrower.width <= fitted.interval_.width + 1e-12)


def test_what_takes_long_is_done_when_called_not_when_read(monkeypatch):
    scores, y = separated(400, seed=0)
    quick = MinimumRates(quantile=0.05).fit_posterior(np.clip(scores, 0.1, 0.9), y)
    expected = quick.interval_
    monkeypatch.setattr("unflip.noise_rates._base.MAX_QUICK_SAMPLES", 399)
    slow = MinimumRates(quantile=0.05).fit_posterior(np.clip(scores, 0.1, 0.9), y)
    with pytest.raises(AttributeError, match="above 399 samples"):
        _ = slow.interval_
    slow.interval(level=0.5)
    slow.interval(n_draws=7)
    assert not hasattr(slow, "interval_")  # neither was what it is
    assert slow.interval() == expected
    assert slow.interval_ == expected
    assert not hasattr(slow.fit_posterior(np.clip(scores, 0.1, 0.9), y), "interval_")


def test_taking_an_interval_changes_nothing_on_the_estimator():
    X = np.random.default_rng(0).uniform(size=(500, 2))
    y = flip_labels(X.sum(axis=1) > 1, RATES, random_state=0)
    selective = SelectiveRates(random_state=0).fit(X, y)
    before = selective.rates_, selective.n_selected_.copy()
    selective.interval(level=0.8, n_draws=20)
    assert selective.rates_ == before[0]
    assert_array_equal(selective.n_selected_, before[1])


def test_more_than_two_classes_have_an_interval_per_entry():
    rng = np.random.RandomState(0)
    y = rng.randint(0, 3, 3000)
    X = np.eye(3)[y] * 6 + rng.normal(size=(3000, 3))
    noise = TransitionMatrix.pair_flip(3, 0.3)
    fitted = SelectiveRates(random_state=0).fit(X, flip_labels(y, noise, random_state=rng))
    assert fitted.interval_.n_classes == 3
    assert fitted.interval_.contains(fitted.rates_)


@pytest.mark.parametrize(
    "known",
    [
        NoiseRates(positive=(0.0, 0.1), negative=None),
        NoiseRates(positive=(0.4, 0.45), negative=0.1),
        NoiseRates(positive=None, negative=(0.2, 0.3)),
        NoiseRates(positive=None, negative=0.0),
    ],
)
def test_estimates_stay_within_known_bounds(known):
    X = np.random.default_rng(0).uniform(size=(2000, 2))
    y = flip_labels(X.sum(axis=1) > 1, RATES, random_state=0)
    found = estimate_rates(known, X, y, random_state=0)
    for rate, (low, high) in zip(found.both(), known.bounds, strict=True):
        assert low <= rate <= high


@pytest.mark.parametrize("bad", [(0.3, 0.1), (0.1,), (0.1, 1.0), (-0.1, 0.2)])
def test_bounds_that_are_no_bounds_are_refused(bad):
    with pytest.raises(ValueError, match="positive"):
        NoiseRates(positive=bad, negative=None)


def test_bounds_that_leave_no_information_are_refused():
    with pytest.raises(ValueError, match="must sum to less than 1"):
        NoiseRates(positive=(0.6, 0.8), negative=(0.5, 0.7))
    assert NoiseRates(positive=(0.2, 0.8), negative=(0.1, 0.7)).bounds == ((0.2, 0.8), (0.1, 0.7))
