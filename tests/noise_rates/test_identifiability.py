"""Where the data say nothing about the rates, the user is told."""

import warnings

import numpy as np
import pytest
from scipy.special import expit

from unflip import ImportanceReweightingClassifier, NoiseRates, flip_labels
from unflip._beliefs import Beliefs
from unflip.audit import LabelAudit
from unflip.inspection import summary
from unflip.noise_rates import ChannelRates
from unflip.noise_rates._identifiability import doubts

CLASSES = np.array(["ham", "spam"])


def posterior(*positive):
    p = np.array(positive)
    return np.column_stack([1 - p, p])


def test_overlap_everywhere_is_told():
    (said,) = doubts(posterior(0.3, 0.5, 0.7), None, CLASSES, NoiseRates(0.2, 0.2), object())
    assert "overlap everywhere" in said


def test_a_class_without_sure_rows_is_named_with_its_rate():
    X = np.random.default_rng(0).normal(size=(300, 1)) * 5
    channel = ChannelRates().fit(X, flip_labels(X[:, 0] > 0, NoiseRates(0.1, 0.1), random_state=0))
    (said,) = doubts(posterior(0.02, 0.5, 0.7), None, CLASSES, NoiseRates(0.2, 0.1), channel)
    assert "no plateau for class 'spam'" in said
    assert "(0.20)" in said
    # rows of weight zero are no rows: now no class has sure ones
    weight = np.array([0.0, 1.0, 1.0])
    (said,) = doubts(posterior(0.02, 0.5, 0.7), weight, CLASSES, NoiseRates(0.2, 0.1), object())
    assert "overlap everywhere" in said


def test_rates_that_are_given_or_zero_need_no_plateau():
    assert doubts(posterior(0.4, 0.6), None, CLASSES, NoiseRates(0.2, 0.2), None) == []
    assert doubts(posterior(0.4, 0.6), None, CLASSES, NoiseRates(0.0, 0.0), object()) == []


def few_rows(seed=3, n=40):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    return X, flip_labels(rng.random(n) < expit(X[:, 0]), NoiseRates(0.3, 0.2), random_state=seed)


def test_an_interval_that_leaves_the_rate_open_is_told():
    X, y = few_rows()
    channel = ChannelRates(random_state=0).fit(X, y)
    low, high = channel.interval_.positive
    assert high - low > 0.4
    sure = posterior(*np.linspace(0, 1, 40))
    said = doubts(sure, None, np.array([False, True]), channel.rates_, channel)
    assert any(f"from {low:.2f} to {high:.2f}" in sentence for sentence in said)


@pytest.mark.parametrize("estimator", [ImportanceReweightingClassifier, LabelAudit])
def test_the_fit_warns_and_the_summary_repeats_it(estimator):
    X, y = few_rows()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fitted = estimator(random_state=0).fit(X, y)
    assert [str(warning.message) for warning in caught] == fitted.diagnostics_
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
    beliefs = Beliefs(np.full((100, 2), 0.5), codes, NoiseRates(0.1, 0.1), CLASSES)
    beta, own = np.repeat([0.0, 1.0], [80, 20]), np.repeat([1.0, 0.0], [80, 20])

    def objections(beta, own):
        return beliefs.totals(own, beta).objections(CLASSES, beliefs.rates)

    (said,) = objections(beta, None)
    assert "as much as 20 of equal weight (20% of all)" in said
    assert objections(1 - beta, None) == []
    # what a user's own weights leave out is not counted
    assert objections(np.ones(100), own) == []
