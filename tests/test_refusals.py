"""What cannot be computed with is refused: what was given, what was expected, what to do."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC, LinearSVC

from unflip import ImportanceReweightingClassifier, InverseRates, NoiseRates
from unflip._validation import check_choice, check_count, check_positives
from unflip.audit import LabelAudit
from unflip.baselines import LabelDependentCostClassifier, UnbiasedLossClassifier
from unflip.learners import KernelClassifier, LinearClassifier
from unflip.noise_rates import ScottRates, SelectiveRates
from unflip.posterior import DensityRatioPosterior, SelectedPosterior
from unflip.review import clopper_pearson, sample_estimate
from unflip.weights import (
    effective_sample_size,
    importance_weights,
    importance_weights_from_inverse,
    likeliest_class,
    printed_lemma_2_weights,
)

RATES = NoiseRates(positive=0.1, negative=0.1)
RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 2))
Y = np.where(X[:, 0] > 0, "yes", "no")
P = np.full(60, 0.5)


def refused(call: Callable[[], Any], match: str, error: type[Exception] = ValueError) -> None:
    with pytest.raises(error, match=match):
        call()


@pytest.mark.parametrize(
    ("found", "n", "level", "message"),
    [
        (5, 3, 0.95, "found must not exceed n, got 5 of 3"),
        ([1, 4], 3, 0.95, "got 4 of 3"),
        (-1, 3, 0.95, r"found must hold counts from 0 to 2\^53, got -1"),
        (np.nan, 3, 0.95, r"found must hold counts from 0 to 2\^53, got nan"),
        (1, np.inf, 0.95, r"n must hold counts from 0 to 2\^53, got inf"),
        (1, 3, 2.0, "level must lie between 0 and 1, got 2.0"),
        ([1, 2], [1, 2, 3], 0.95, r"found has shape \(2,\) and n \(3,\)"),
        ("a", 3, 0.95, "found must hold numbers, got 'a'"),
    ],
)
def test_no_interval_of_impossible_counts(found, n, level, message) -> None:
    refused(lambda: clopper_pearson(found, n, level), message)


@pytest.mark.parametrize(
    ("counts", "unsure", "labels", "message"),
    [
        ([[1, -2], [3, 4]], [0, 0], [5, 5], r"counts must hold counts from 0 to 2\^53, got -2"),
        ([[1, 2, 3], [3, 4, 5]], [0, 0], [5, 5], r"counts has shape \(2, 3\), expected \(2, 2\)"),
        ([[1, 2], [3, 4]], [0], [5, 5], r"unsure has shape \(1,\), expected \(2,\)"),
        ([[1, 2], [3, 4]], [0, 0], [[5, 5]], r"label_counts has shape \(1, 2\), expected"),
        ([[1, 2], [3, 4]], [0, 0], [0, 0], "label_counts is zero for every class"),
    ],
)
def test_no_estimate_from_an_impossible_sample(counts, unsure, labels, message) -> None:
    refused(lambda: sample_estimate(counts, unsure, labels), message)


def test_noise_rates_are_not_taken_for_inverse_ones() -> None:
    message = r"must be InverseRates.*got NoiseRates\(positive=0.1.*inverse\(noisy_prior="
    refused(lambda: importance_weights_from_inverse(P, Y, RATES, 0.5), message, TypeError)
    refused(lambda: printed_lemma_2_weights(P, Y, RATES), message, TypeError)
    refused(
        lambda: importance_weights(P, Y, InverseRates(0.1, 0.1)), "must be NoiseRates", TypeError
    )


@pytest.mark.parametrize("weights", [[-1.0, 2.0], [np.nan, 1.0], [np.inf, 1.0], ["a"]])
def test_no_effective_size_of_what_are_no_weights(weights: Any) -> None:
    refused(lambda: effective_sample_size(weights), "weights must")


def test_positions_beyond_the_classes_are_refused() -> None:
    clean = np.full((2, 2), 0.5)
    refused(lambda: likeliest_class(clean, np.array([0, 2]), RATES), "positions among the 2")
    refused(lambda: likeliest_class(clean, np.array([0.0, 1.0]), RATES), "positions among the 2")
    refused(lambda: likeliest_class(clean[:1], np.array([0, 1]), RATES), r"expected \(2, 2\)")


class TestSelectedPosterior:
    @pytest.mark.parametrize(
        ("candidates", "message"),
        [
            ("logistic", "candidates must be a list of classifiers, or None, got 'logistic'"),
            (LogisticRegression(), "candidates must be a list of classifiers"),
            ([LogisticRegression], r"candidates\[0\] must be a classifier"),
            ([LogisticRegression(), 3], r"candidates\[1\] must be a classifier .*got 3"),
            ([None, LinearSVC()], r"candidates\[1\] has no predict_proba"),
        ],
    )
    def test_candidates_are_classifiers(self, candidates: Any, message: str) -> None:
        refused(lambda: SelectedPosterior(candidates).fit(X, Y), message, TypeError)

    def test_there_is_at_least_one(self) -> None:
        refused(lambda: SelectedPosterior([]).fit(X, Y), "candidates is empty")

    @pytest.mark.parametrize("cv", [1, -3, "three", 2.5, []])
    def test_folds_are_folds(self, cv: Any) -> None:
        refused(lambda: SelectedPosterior(cv=cv).fit(X, Y), "cv|fold")

    def test_none_stands_for_the_default_among_others(self) -> None:
        chosen = SelectedPosterior([None, RandomForestClassifier(5)], random_state=0).fit(X, Y)
        assert chosen.scores_.size == 2


@pytest.mark.parametrize(
    "estimator",
    [
        ImportanceReweightingClassifier(SVC(), posterior="probabilistic", noise_rates=RATES),
        ImportanceReweightingClassifier(
            SVC(), posterior=RandomForestClassifier(5), noise_rates=RATES
        ),
        ImportanceReweightingClassifier(),
        LabelAudit(),
        KernelClassifier("hinge"),
        LinearClassifier(),
        UnbiasedLossClassifier(noise_rates=RATES),
        LabelDependentCostClassifier(noise_rates=RATES),
        DensityRatioPosterior(),
    ],
    ids=repr,
)
def test_a_class_without_weight_is_named(estimator: Any) -> None:
    refused(
        lambda: estimator.fit(X, Y, sample_weight=(Y == "yes").astype(float)),
        "all rows of class 'no' have sample_weight zero",
    )


@pytest.mark.filterwarnings("ignore:the estimated noise rates")
@pytest.mark.parametrize("rates", [ScottRates(), SelectiveRates()], ids=repr)
def test_weights_that_sum_to_one_are_told_to_be_few_rows(rates: Any) -> None:
    fitted = rates.fit(X, Y, sample_weight=np.full(60, 1 / 60))
    refused(
        lambda: fitted.interval(), r"resample of 1 rows lacks a class.*weights sum to 1\b.*multiply"
    )


def test_parameters_of_another_type_are_refused() -> None:
    refused(lambda: check_count(True, "n", least=1), "n must be an integer >= 1, got True")
    refused(lambda: check_choice(np.array(["a", "b"]), ("a",), "which"), "which=")
    refused(lambda: check_choice(["a"], ("a",), "which"), "which=")
    refused(lambda: check_positives(["a"], "widths"), r"widths must hold numbers, got \['a'\]")
    refused(lambda: importance_weights(["a"] * 60, Y, RATES), "noisy_posterior must hold numbers")
