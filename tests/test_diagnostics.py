"""Where the data say nothing about the rates, the user is told."""

import warnings

import numpy as np
import pytest
from scipy.special import expit

from unflip import (
    ImportanceReweightingClassifier,
    LabelNoiseWarning,
    NoiseRates,
    TransitionMatrix,
    flip_labels,
)
from unflip._features import diagnose
from unflip.audit import LabelAudit
from unflip.diagnostics import (
    judge_rates,
    judge_usefulness,
    judge_weights,
    range_sentence,
)
from unflip.inspection import summary
from unflip.noise import RatesInterval
from unflip.noise_rates import ChannelRates
from unflip.weights import LabelPosterior

CLASSES = np.array(["ham", "spam"])


def doubts(clean, weight, rates, estimator, classes=CLASSES):
    """What is said of rates, where the clean posterior of some rows is known."""
    noisy = rates.noisy_posterior(np.array(clean))
    codes = np.arange(noisy.size) % 2
    label_posterior = LabelPosterior(np.column_stack([1 - noisy, noisy]), codes, rates, classes)
    totals, model = label_posterior.totals(weight), getattr(estimator, "noise_model_", None)
    return [*map(str, diagnose(totals, classes, rates, estimator, model))]


def test_overlap_everywhere_is_told():
    (said,) = doubts([0.3, 0.5, 0.7], None, NoiseRates(0.2, 0.2), object())
    assert "overlap everywhere" in said


def test_a_class_without_sure_rows_is_named_with_its_rate():
    X = np.random.default_rng(0).normal(size=(300, 1)) * 5
    channel = ChannelRates().fit(X, flip_labels(X[:, 0] > 0, NoiseRates(0.1, 0.1), random_state=0))
    (said,) = doubts([0.02, 0.5, 0.7], None, NoiseRates(0.2, 0.1), channel)
    assert "no plateau for class 'spam'" in said
    assert "(0.20)" in said
    # rows of weight zero are no rows: now no class has sure ones
    weight = np.array([0.0, 1.0, 1.0])
    (said,) = doubts([0.02, 0.5, 0.7], weight, NoiseRates(0.2, 0.1), object())
    assert "overlap everywhere" in said


def test_doubts_of_one_kind_are_one_sentence_that_names_every_class():
    classes = np.array([f"c{k}" for k in range(5)])
    codes = np.arange(500) % 5
    noise = TransitionMatrix.uniform(5, 0.2)
    # of three classes no row is sure
    clean = np.eye(5)[codes]
    clean[codes > 1] = 0.7 * clean[codes > 1] + 0.3 * np.eye(5)[(codes[codes > 1] + 1) % 5]
    totals = LabelPosterior(noise.noisy_posterior(clean), codes, noise, classes).totals()
    low = np.full((5, 5), 0.0)
    high = np.where(np.eye(5) > 0, 1.0, 0.4)
    low[np.diag_indices(5)] = [0.7, 0.7, 0.3, 0.4, 0.5]
    high[np.diag_indices(5)] = [0.9, 0.9, 0.9, 0.9, 0.95]
    interval = RatesInterval(low, high)
    found = judge_rates(totals, classes, noise, estimated=True, interval=interval)
    plateaus, wide = map(str, found)
    assert "'c2' (0.20), 'c3' (0.20) and 'c4' (0.20)" in plateaus
    assert wide.startswith("The flip rates of 3 classes are poorly identified")
    assert "'c4' 0.05 to 0.50, 'c3' 0.10 to 0.60 and 'c2' 0.10 to 0.70" in wide


def test_rates_that_are_given_or_zero_need_no_plateau():
    assert doubts([0.4, 0.6], None, NoiseRates(0.2, 0.2), None) == []
    assert doubts([0.4, 0.6], None, NoiseRates(0.0, 0.0), object()) == []


def few_rows(seed=3, n=40):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    return X, flip_labels(rng.random(n) < expit(X[:, 0]), NoiseRates(0.3, 0.2), random_state=seed)


def test_an_interval_that_leaves_the_rate_open_is_told():
    X, y = few_rows()
    channel = ChannelRates(random_state=0).fit(X, y)
    low, high = channel.interval_.positive
    assert high - low > 0.4
    said = doubts(np.linspace(0, 1, 40), None, channel.rates_, channel)
    assert any(f"'spam' {low:.2f} to {high:.2f}" in sentence for sentence in said)


@pytest.mark.parametrize("estimator", [ImportanceReweightingClassifier, LabelAudit])
def test_the_fit_warns_and_the_summary_repeats_it(estimator):
    X, y = few_rows()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fitted = estimator(random_state=0).fit(X, y)
    assert [str(warning.message) for warning in caught] == fitted.diagnostics_
    assert {warning.category for warning in caught} == {LabelNoiseWarning}
    told = [sentence.lower() for sentence in summary(fitted)["warnings"]]
    assert fitted.diagnostics_
    assert all(sentence.lower() in told for sentence in fitted.diagnostics_)


def test_plateaus_on_both_sides_leave_nothing_to_say():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 2)) * 3
    y = flip_labels(X[:, 0] > 0, NoiseRates(0.3, 0.1), random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted = ImportanceReweightingClassifier(random_state=0).fit(X, y)
    assert fitted.diagnostics_ == []


def test_weights_that_leave_few_rows_are_told():
    codes = np.arange(100) % 2
    rates = NoiseRates(0.1, 0.1)
    label_posterior = LabelPosterior(np.full((100, 2), 0.5), codes, rates, CLASSES)
    beta, own = np.repeat([0.0, 1.0], [80, 20]), np.repeat([1.0, 0.0], [80, 20])

    def objections(beta, own):
        return [*map(str, judge_weights(label_posterior.totals(own, beta), CLASSES, rates))]

    (said,) = objections(beta, None)
    assert "as much as 20 of equal weight (20% of all)" in said
    assert objections(1 - beta, None) == []
    # what a user's own weights leave out is not counted
    assert objections(np.ones(100), own) == []


@pytest.mark.parametrize(
    ("at_random", "possible", "words"),
    [
        ((0.0, 0.003), (0.0, 0.002), ["less than 1% are wrong", "up to 1% may be"]),
        ((0.0, 0.01), (0.0, 0.14), ["0 to 1% are wrong", "up to 14% may be"]),
        ((0.165, 0.2008), (0.0, 0.2012), ["16 to 21% are wrong", "up to 21% may be"]),
        ((0.16, 0.16), (0.0, 0.2), ["about 16% are wrong", "up to 20% may be"]),
    ],
)
def test_the_range_is_rounded_outwards_to_whole_per_cent(at_random, possible, words):
    said = range_sentence(at_random, possible)
    assert all(word in said for word in words), said
    assert "100 rows" in said
    # no more are to be checked than there are
    assert "all rows" in range_sentence(at_random, possible, 12)


def test_estimates_that_say_nothing_are_refused_and_others_used():
    interval = RatesInterval.from_pairs((0.2, 0.4), (0, 0.2))
    assert judge_usefulness(CLASSES, NoiseRates(0.3, 0.1)) is None
    assert judge_usefulness(CLASSES, NoiseRates(0.3, 0.1), interval=interval) is None
    assert "hardly anything is left" in str(judge_usefulness(CLASSES, NoiseRates(0.5, 0.45)))
    interval = RatesInterval.from_pairs((0.0, 0.7), (0, 0.2))
    useless = judge_usefulness(CLASSES, NoiseRates(0.3, 0.1), interval=interval)
    assert "'spam' may be anything between 0% and 70%" in str(useless)
