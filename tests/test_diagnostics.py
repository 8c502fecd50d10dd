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
from unflip._diagnostics.findings import (
    SENTENCES,
    Diagnostic,
    judge_model,
    judge_rates,
    judge_usefulness,
    judge_weight_summary,
    judge_weights,
    named,
    raise_or_warn,
    range_sentence,
    strength,
)
from unflip._stages import judge_estimate
from unflip.audit import LabelAudit
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
    return [*map(str, judge_estimate(label_posterior.totals(weight), classes, rates, estimator))]


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


def test_many_names_are_cut_and_counted():
    assert named(["a"]) == "a"
    assert named(map(str, range(10))).endswith("8 and 9")
    assert named(map(str, range(26))) == "0, 1, 2, 3, 4, 5, 6, 7, 8 and 17 more"


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


def test_warnings_are_a_class_of_their_own_and_errors_are_raised_first():
    doubt, error = Diagnostic("overlap"), Diagnostic("impossible_labels", "error")
    with pytest.warns(LabelNoiseWarning, match="overlap everywhere"):
        assert raise_or_warn([doubt]) == [SENTENCES["overlap"]]
    with pytest.raises(ValueError, match="probability 0, so no label can be believed"):
        raise_or_warn([doubt, error])
    assert raise_or_warn([Diagnostic("mean_weight", "note", {"mean": 1.3})]) == [
        "The mean weight is 1.30, and with the right posterior and rates it is 1."
    ]


@pytest.mark.parametrize(
    ("p_value", "probability", "expected"),
    [
        (1e-5, 1e-5, "clear"),
        (1e-5, 0.1, "open"),  # the probability of no noise is 10 %: no word of sureness
        (1e-5, 0.03, "likely"),
        (0.03, 1e-5, "likely"),
        (0.2, 1e-5, "open"),
    ],
)
def test_what_is_said_to_be_sure_is_so_by_both_measures(p_value, probability, expected):
    assert strength(p_value, probability) == expected


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
    assert "Checking about 100 rows would tell." in said


def test_no_more_rows_are_to_be_checked_than_there_are():
    for possible in (None, (0.0, 0.4)):
        assert "Checking all rows would tell." in range_sentence((0.1, 0.2), possible, 12)
        assert "Checking about 100 rows" in range_sentence((0.1, 0.2), possible, 1000)


def test_a_tiny_table_is_called_that_and_its_weights_are_not_blamed():
    (said,) = judge_weight_summary(12.0, 1.0, 0.0, 1.0)
    assert str(said).startswith("There are 12 rows only")
    (said,) = judge_weight_summary(40.0, 0.1, 0.0, 1.0)
    assert str(said).startswith("The weights leave few rows: as much as 40")


def test_without_a_range_the_assumption_is_said():
    said = range_sentence((0.1, 0.1), None)
    assert "if labels were flipped at random within each class" in said
    assert "Checking about 100 rows would tell." in said


@pytest.mark.parametrize("verdict", ["rule", "refuted", "doubted", "believed"])
def test_every_doubt_of_the_model_ends_with_the_range(verdict):
    at_random, possible = (0.1, 0.2), (0.0, 0.5)
    codes, rates = np.arange(100) % 2, NoiseRates(0.1, 0.1)
    totals = LabelPosterior(np.full((100, 2), 0.5), codes, rates, CLASSES).totals()
    said = totals.n_errors / 100
    (doubt,) = judge_model(
        verdict, 7.0, 2 * said + 0.1, rates, totals, at_random=at_random, possible=possible
    )
    reason = str(doubt).removesuffix(range_sentence(at_random, possible))
    assert reason != str(doubt)
    assert reason


def test_estimates_that_say_something_are_used():
    rates = NoiseRates(0.3, 0.1)
    assert judge_usefulness(CLASSES, rates) is None
    assert (
        judge_usefulness(CLASSES, rates, interval=RatesInterval.from_pairs((0.2, 0.4), (0, 0.2)))
        is None
    )


def test_estimates_that_say_nothing_are_refused():
    assert "hardly anything is left" in str(judge_usefulness(CLASSES, NoiseRates(0.5, 0.45)))
    interval = RatesInterval.from_pairs((0.0, 0.7), (0, 0.2))
    useless = judge_usefulness(CLASSES, NoiseRates(0.3, 0.1), interval=interval)
    assert "'spam' may be anything between 0% and 70%" in str(useless)
