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
    Diagnostic,
    diagnose_rates,
    diagnose_usefulness,
    diagnose_weights,
    labels_to_verify,
    raise_or_warn,
    verdict_of,
)
from unflip.inspection import summary
from unflip.noise import RatesInterval
from unflip.noise_rates import ChannelRates
from unflip.weights import LabelPosterior

CLASSES = np.array(["ham", "spam"])


def codes_of(found):
    return [(one.code, one.severity) for one in found]


def findings(clean, weight, rates, estimator, classes=CLASSES):
    """What is found about rates, where the clean posterior of some samples is known."""
    noisy = rates.noisy_posterior(np.array(clean))
    codes = np.arange(noisy.size) % 2
    label_posterior = LabelPosterior(np.column_stack([1 - noisy, noisy]), codes, rates, classes)
    totals, model = label_posterior.totals(weight), getattr(estimator, "noise_model_", None)
    return diagnose(totals, classes, rates, estimator, model)


def test_overlap_everywhere_is_a_warning():
    found = findings([0.3, 0.5, 0.7], None, NoiseRates(0.2, 0.2), object())
    assert codes_of(found) == [("overlap", "warning")]


def test_a_class_without_sure_samples_is_noted_with_its_rate():
    X = np.random.default_rng(0).normal(size=(300, 1)) * 5
    channel = ChannelRates().fit(X, flip_labels(X[:, 0] > 0, NoiseRates(0.1, 0.1), random_state=0))
    noted = findings([0.02, 0.5, 0.7], None, NoiseRates(0.2, 0.1), channel)
    (found,) = (one for one in noted if one.code == "no_anchor_points")
    assert found.severity == "note"
    assert found.numbers["labels"] == "'spam' (0.20)"
    # samples of weight zero do not count: now no class has sure ones
    weight = np.array([0.0, 1.0, 1.0])
    found = findings([0.02, 0.5, 0.7], weight, NoiseRates(0.2, 0.1), object())
    assert codes_of(found) == [("overlap", "warning")]


def test_findings_of_one_kind_are_one_sentence_that_names_every_class():
    classes = np.array([f"c{k}" for k in range(5)])
    codes = np.arange(500) % 5
    noise = TransitionMatrix.uniform(5, 0.2)
    # of three classes no sample is sure
    clean = np.eye(5)[codes]
    clean[codes > 1] = 0.7 * clean[codes > 1] + 0.3 * np.eye(5)[(codes[codes > 1] + 1) % 5]
    totals = LabelPosterior(noise.noisy_posterior(clean), codes, noise, classes).totals()
    low = np.full((5, 5), 0.0)
    high = np.where(np.eye(5) > 0, 1.0, 0.4)
    low[np.diag_indices(5)] = [0.7, 0.7, 0.1, 0.1, 0.05]
    high[np.diag_indices(5)] = [0.9, 0.9, 0.9, 0.9, 0.95]
    interval = RatesInterval(low, high)
    found = diagnose_rates(totals, classes, noise, estimated=True, interval=interval)
    lacking, wide = map(str, found)
    assert "'c2' (0.20), 'c3' (0.20) and 'c4' (0.20)" in lacking
    assert codes_of(found) == [("no_anchor_points", "note"), ("poorly_identified", "warning")]
    assert "'c4' 0.05 to 0.95, 'c3' 0.10 to 0.90 and 'c2' 0.10 to 0.90" in wide


def test_single_uncertain_classes_of_many_are_no_warning():
    """Ten classes of 100 samples: the error rate is known, though two classes' rates are not."""
    classes, noise = np.arange(10), TransitionMatrix.uniform(10, 0.2)
    codes = np.arange(1000) % 10
    clean = np.eye(10)[codes]
    totals = LabelPosterior(noise.noisy_posterior(clean), codes, noise, classes).totals()
    low, high = np.zeros((10, 10)), np.ones((10, 10))
    low[np.diag_indices(10)] = [0.5, 0.5, *[0.75] * 8]
    high[np.diag_indices(10)] = [0.9, 0.9, *[0.85] * 8]
    for ends, n_found in (((0.17, 0.23), 0), ((0.1, 0.35), 1)):
        interval = RatesInterval(low, high, label_error_rate=ends)
        found = diagnose_rates(totals, classes, noise, estimated=True, interval=interval)
        assert codes_of(found) == [("poorly_identified", "warning")] * n_found


def test_rates_that_are_given_or_zero_need_no_sure_samples():
    assert findings([0.4, 0.6], None, NoiseRates(0.2, 0.2), None) == []
    assert findings([0.4, 0.6], None, NoiseRates(0.0, 0.0), object()) == []


def few_rows(seed=3, n=40):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    return X, flip_labels(rng.random(n) < expit(X[:, 0]), NoiseRates(0.3, 0.2), random_state=seed)


def test_an_interval_that_leaves_the_rate_open_is_a_warning():
    X, y = few_rows()
    channel = ChannelRates(random_state=0).fit(X, y)
    low, high = channel.interval_.positive
    assert high - low > 0.25
    found = findings(np.linspace(0, 1, 40), None, channel.rates_, channel)
    assert "poorly_identified" in {one.code for one in found}


@pytest.mark.parametrize("estimator", [ImportanceReweightingClassifier, LabelAudit])
def test_the_fit_warns_of_warnings_only_and_the_summary_repeats_them(estimator):
    X, y = few_rows()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fitted = estimator(random_state=0).fit(X, y)
    assert [warning.message.sentence for warning in caught] == fitted.diagnostics_
    assert {warning.category for warning in caught} == {LabelNoiseWarning}
    assert fitted.diagnostics_
    assert summary(fitted)["warnings"] == fitted.diagnostics_
    said = {str(one): one.severity for one in fitted.noise_.findings}
    assert {said[sentence] for sentence in fitted.diagnostics_} == {"warning"}
    assert list(said.values()).count("assumption") == 1


@pytest.mark.parametrize(
    ("message", "n_caught"), [("poorly_identified:", 0), ("overlap:", 1), ("", 0)]
)
def test_a_filter_of_the_standard_library_selects_warnings_by_code(message, n_caught):
    findings = [Diagnostic("poorly_identified", numbers={"labels": "'a' 0.00 to 0.60"})]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.filterwarnings("ignore", message=message, category=LabelNoiseWarning)
        assert raise_or_warn(findings) == [str(findings[0])]
    assert len(caught) == n_caught


def blobs(spread, n=2000):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, n)
    return rng.normal(size=(n, 3)) * spread + 2 * y[:, None], y


@pytest.mark.parametrize("spread", [0.5, 1.0, 1.5], ids=["apart", "near", "overlapping"])
def test_clean_labels_are_no_reason_for_a_warning_however_the_classes_overlap(spread):
    fitted = LabelAudit(random_state=0).fit(*blobs(spread))
    assert fitted.diagnostics_ == []
    assert fitted.noise_.verdict.code in ("clean", "uncertain_small_amount")


def test_curved_classes_are_noted_and_no_reason_for_a_warning():
    rng = np.random.default_rng(0)
    X = np.c_[rng.uniform(0, 4, (3000, 2)), rng.normal(size=(3000, 2))]
    board = np.sin(np.pi * X[:, 0]) * np.sin(np.pi * X[:, 1]) > 0
    y = flip_labels(board, NoiseRates(0.1, 0.05), random_state=0)
    fitted = LabelAudit(random_state=0).fit(X, y)
    assert fitted.diagnostics_ == []
    assert ("tree_features", "note") in codes_of(fitted.noise_.findings)


def test_anchor_points_of_both_classes_leave_nothing_to_warn_of():
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
        return codes_of(diagnose_weights(label_posterior.totals(own, beta), CLASSES, rates))

    assert objections(beta, None) == [("few_effective_rows", "note")]
    assert objections(1 - beta, None) == []
    # what a user's own weights leave out is not counted
    assert objections(np.ones(100), own) == []


OVERLAP = Diagnostic("overlap")
LEAK = Diagnostic("leak", numbers={"column": "paid", "share": 1.0})


@pytest.mark.parametrize(
    ("found", "value", "interval", "n", "estimated", "code"),
    [
        ([], 0.0, (0.0, 0.014), 1000, True, "clean"),
        ([], 0.2, (0.18, 0.22), 1000, True, "known_amount"),
        ([], 0.06, (0.02, 0.15), 1000, True, "uncertain_amount"),
        ([], 0.02, (0.0, 0.08), 1000, True, "uncertain_small_amount"),
        ([], 0.002, (0.0, 0.01), 1000, True, "clean"),
        ([], 0.2, (0.05, 0.35), 1000, True, "unknown_amount"),
        ([OVERLAP], 0.2, (0.18, 0.22), 1000, True, "unknown_amount"),
        ([OVERLAP], 0.2, (0.1, 0.3), 40, True, "few_samples"),
        ([OVERLAP, LEAK], 0.0, (0.0, 0.01), 1000, True, "leak"),
        ([], 0.2, (0.2, 0.2), 1000, False, "given_amount"),
        ([], 0.0, (0.0, 0.0), 1000, False, "given_none"),
    ],
)
def test_each_situation_has_a_verdict_of_its_own(found, value, interval, n, estimated, code):
    verdict = verdict_of(found, value, interval, n, estimated=estimated)
    assert verdict.code == code
    assert str(verdict).endswith(".")


def test_the_labels_to_verify_halve_the_range():
    n = labels_to_verify((0.0, 0.28), 0.14, 10_000)
    assert 4 * np.sqrt(0.14 * 0.86 / n) == pytest.approx(0.14, rel=0.05)
    # as many as there are to verify would be needed, or nothing is left to narrow
    assert labels_to_verify((0.0, 0.28), 0.14, 150) is None
    assert labels_to_verify((0.1, 0.1), 0.1, 1000) is None


def test_estimates_that_say_nothing_are_refused_and_others_used():
    interval = RatesInterval.from_pairs((0.2, 0.4), (0, 0.2))
    assert diagnose_usefulness(CLASSES, NoiseRates(0.3, 0.1)) is None
    assert diagnose_usefulness(CLASSES, NoiseRates(0.3, 0.1), interval=interval) is None
    assert diagnose_usefulness(CLASSES, NoiseRates(0.5, 0.45)).code == "no_information"
    interval = RatesInterval.from_pairs((0.0, 0.7), (0, 0.2))
    useless = diagnose_usefulness(CLASSES, NoiseRates(0.3, 0.1), interval=interval)
    assert "'spam' may be anything between 0% and 70%" in str(useless)
