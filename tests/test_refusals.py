"""What cannot be computed with is refused: what was given, what was expected, what to do."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC, LinearSVC

from unflip import (
    ImportanceReweightingClassifier,
    InverseRates,
    NoiseRates,
    TransitionMatrix,
)
from unflip.audit import LabelAudit, find_label_issues
from unflip.baselines import LabelDependentCostClassifier, UnbiasedLossClassifier
from unflip.density_ratio import KLIEP, KMM, ULSIF, BasuDivergence, BregmanRatio, RuLSIF
from unflip.inspection import noise_by_slice, posterior_histogram
from unflip.learners import KernelClassifier, LinearClassifier
from unflip.noise_rates import CrossValidatedRates, MinimumRates, ScottRates, SelectiveRates
from unflip.paper.bounds import linear_rademacher_bound
from unflip.posterior import (
    DensityRatioPosterior,
    KernelDensityPosterior,
    ProbabilisticPosterior,
    SelectedPosterior,
    fit_posterior,
)
from unflip.review import sample_estimate
from unflip.streaming import ArrayBatches, StreamingAudit, StreamingReweighting
from unflip.weights import (
    effective_sample_size,
    importance_weights,
    importance_weights_from_inverse,
    printed_lemma_2_weights,
)

RATES = NoiseRates(positive=0.1, negative=0.1)
RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 2))
Y = np.where(X[:, 0] + RNG.normal(size=60) > 0, "yes", "no")  # no rule of one column
P = np.full(60, 0.5)


def refused(call: Callable[[], Any], match: str, error: type[Exception] = ValueError) -> None:
    with pytest.raises(error, match=match):
        call()


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


@pytest.mark.filterwarnings("ignore::unflip.LabelNoiseWarning")
@pytest.mark.parametrize(
    "rates", [ScottRates(random_state=0), SelectiveRates(random_state=0)], ids=repr
)
def test_weights_that_sum_to_one_are_as_many_rows(rates: Any) -> None:
    interval = rates.fit(X, Y).interval()
    assert rates.fit(X, Y, sample_weight=np.full(60, 1 / 60)).interval() == interval


LISTS = [0.1, 0.2]
"""Stands for a parameter of another type."""


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: RuLSIF(alpha=None).fit(X, X), r"alpha must lie in \[0, 1\), got None"),
        (lambda: KLIEP(tol="a").fit(X, X), "tol must be a number > 0, got 'a'"),
        (lambda: KLIEP(max_iter=0).fit(X, X), "max_iter must be an integer >= 1, got 0"),
        (lambda: KLIEP(1e-300).fit(X, X), r"bandwidth must lie between 1e-150 and 1e\+150.*1e-300"),
        (lambda: KLIEP(1e300).fit(X, X), "bandwidth must lie between"),
        (lambda: KLIEP(bandwidths=[1e-200]).fit(X, X), "bandwidths must lie between"),
        (lambda: ULSIF(1e-200, 0.1).fit(X, X), "bandwidth must lie between"),
        (lambda: KernelDensityPosterior(1e-200).fit(X, Y), "bandwidth must lie between"),
        (lambda: BregmanRatio(regularization="a").fit(X, X), "regularization must be a finite"),
        (lambda: BasuDivergence(LISTS), r"power must lie in \(0, 1\]"),
        (lambda: KMM(epsilon="a").fit(X, X), "epsilon must be a finite number >= 0, got 'a'"),
        (lambda: LinearClassifier(alpha="a").fit(X, Y), "alpha must be a finite number > 0"),
        (lambda: LinearClassifier(fit_intercept=LISTS).fit(X, Y), "fit_intercept must be True or"),
        (lambda: LinearClassifier(LISTS).fit(X, Y), "loss="),
        (
            lambda: KernelClassifier(degree=None).fit(X, Y),
            "degree must be a finite number",
        ),
        (lambda: KernelClassifier(gamma=LISTS).fit(X, Y), "gamma must be 'scale' or a number"),
        (lambda: KernelClassifier(gamma="auto").fit(X, Y), "gamma='auto' is not one of"),
        (lambda: SelectiveRates(delta=LISTS).fit(X, Y), "delta must lie between 0 and 1"),
        (lambda: ScottRates(clean_prior="a").fit(X, Y), "clean_prior must lie between 0 and 1"),
        (lambda: MinimumRates(quantile=None).fit(X, Y), "quantile must lie in"),
        (lambda: MinimumRates(cv=LISTS).fit(X, Y), "cv must be a number of folds, a splitter"),
        (lambda: MinimumRates().fit(X, Y).interval(LISTS), "level must lie between 0 and 1"),
        (lambda: MinimumRates().fit(X, Y).interval(n_draws=None), "n_draws must be an integer"),
        (lambda: MinimumRates().fit_posterior("a", Y), "noisy_posterior must hold numbers"),
        (
            lambda: CrossValidatedRates(ImportanceReweightingClassifier(), ["a"]).fit(X, Y),
            "grid must hold numbers",
        ),
        (lambda: RATES.noisy_prior([0.1, 0.2]), "clean_prior must be one probability"),
        (lambda: RATES.inverse(noisy_prior=LISTS), "noisy_prior must be one probability"),
        (lambda: InverseRates(0.1, 0.1).to_rates(noisy_prior=LISTS), "one probability"),
        (lambda: TransitionMatrix(RATES), "transition matrix must hold numbers, got NoiseRates"),
        (lambda: find_label_issues(None, Y), "X and pred_probs"),
        (lambda: SelectedPosterior().fit(None, Y), "X is None"),
        (lambda: ULSIF(1.0, 1e-300).fit(X, X), "regularization=1e-300 is too small"),
        (lambda: linear_rademacher_bound(X, 1e300), "radius times lipschitz"),
        (
            lambda: posterior_histogram(P, Y, RATES, pos_label=np.array(LISTS)),
            "is not one of the classes",
        ),
        (lambda: MinimumRates(cv=np.array(2.5)).fit(X, Y), "cv must be a number of folds"),
        (lambda: ArrayBatches(None, Y), "X is None"),
        (lambda: ArrayBatches(None), "X is None"),
        (lambda: StreamingAudit().fit(ArrayBatches(X, None)), "these rows have no labels"),
        (
            lambda: LabelDependentCostClassifier(noise_rates=RATES, cost=LISTS).fit(X, Y),
            "cost must",
        ),
        (lambda: ProbabilisticPosterior(Lost()).fit(X, Y).predict_proba(X), "Lost returns prob"),
        (
            lambda: (
                ImportanceReweightingClassifier(posterior="kde", noise_rates=RATES)
                .fit(X, Y)
                .predict(np.full((2, 2), np.datetime64("2020-01-01")))
            ),
            "no classifier takes dates",
        ),
    ],
)
def test_parameters_of_another_kind_are_named(call: Callable[[], Any], message: str) -> None:
    refused(call, message)


@pytest.mark.filterwarnings("ignore::unflip.LabelNoiseWarning")
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: fit_posterior("kliep", X, Y), "posterior must be one of unflip.posterior"),
        (lambda: DensityRatioPosterior(LISTS).fit(X, Y), "ratio must be an estimator"),
        (lambda: BregmanRatio(LISTS).fit(X, X), "divergence must be one of"),
        (lambda: StreamingReweighting({}).fit(ArrayBatches(X, Y)), "expected an estimator"),
        (lambda: ImportanceReweightingClassifier(SVC).fit(X, Y), "expected an estimator"),
        (lambda: UnbiasedLossClassifier(learner=LISTS).fit(X, Y), "learner must be a Linear"),
        (lambda: StreamingAudit().fit(ArrayBatches(X, Y)).issues(3, n=1), "data must be batches"),
    ],
)
def test_parts_of_another_kind_are_named(call: Callable[[], Any], message: str) -> None:
    refused(call, message, TypeError)


class Lost(LogisticRegression):
    """A classifier that gives NaN."""

    def predict_proba(self, X: Any) -> Any:
        return np.full((len(X), 2), np.nan)


@pytest.mark.parametrize("container", [sparse.csr_array, sparse.coo_array, sparse.csc_matrix])
def test_batches_of_sparse_rows_are_those_of_dense_ones(container: Any) -> None:
    audit = StreamingAudit("probabilistic", RATES)
    dense = audit.fit(ArrayBatches(X, Y, batch_rows=7)).n_errors_
    found = audit.fit(ArrayBatches(container(X), Y, batch_rows=7)).n_errors_
    assert found == pytest.approx(dense, abs=0.5)  # sparse columns are scaled, not centred


def test_batches_of_a_list_are_those_of_an_array() -> None:
    audit = StreamingAudit("probabilistic", RATES)
    expected = audit.fit(ArrayBatches(X, Y, batch_rows=7)).n_errors_
    assert audit.fit(ArrayBatches(X.tolist(), Y.tolist(), batch_rows=7)).n_errors_ == expected


@pytest.mark.parametrize("container", [sparse.csr_array, sparse.csr_matrix, sparse.csc_matrix])
def test_sparse_matrices_are_sparse_arrays(container: Any) -> None:
    posterior = KernelDensityPosterior().fit(sparse.csr_array(X), Y)
    np.testing.assert_array_equal(
        KernelDensityPosterior().fit(container(X), Y).predict_proba(container(X)),
        posterior.predict_proba(sparse.csr_array(X)),
    )


def test_a_numerator_out_of_reach_is_told_rather_than_infinite() -> None:
    near, far = np.array([[0.0], [0.1]]), np.full((4, 1), 30.0)
    for solver in ("newton", "projected_gradient"):
        ratio = KLIEP(1.0, solver=solver, random_state=0)
        refused(lambda ratio=ratio: ratio.fit(near, far), "within reach of any centre")


def test_large_coefficients_are_not_cast_to_single_precision() -> None:
    rng = np.random.default_rng(0)
    X_num, X_den = (rng.normal(size=(12, 40)).astype(np.float32) for _ in range(2))
    ratio = KLIEP(0.5, n_centers=5, random_state=0).fit(X_num, X_den)
    assert ratio.coef_.max() > np.finfo(np.float32).max
    assert np.isfinite(ratio.predict(X_den)).all()
    assert np.isfinite(ratio.predict(X_num)).all()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_hinge_that_libsvm_cannot_solve_ends() -> None:
    far = X + 1e9
    clf = KernelClassifier("hinge", kernel="linear", alpha=0.1, max_iter=10).fit(far, Y)
    assert np.isfinite(clf.decision_function(far)).all()


@pytest.mark.parametrize("factor", [1e200, 1e-200])
def test_weights_whose_squares_are_no_numbers_are_refused(factor: float) -> None:
    for estimator in (ImportanceReweightingClassifier(), LinearClassifier(), KLIEP()):
        name = "weight_num" if isinstance(estimator, KLIEP) else "sample_weight"
        labels = X if isinstance(estimator, KLIEP) else Y
        refused(
            lambda fit=estimator.fit, y=labels, name=name: fit(X, y, **{name: np.full(60, factor)}),
            "the largest sample_weight is 1e.*Rescale all weights",
        )


def test_rows_whose_squares_are_zero_are_refused_in_training_only() -> None:
    refused(lambda: KernelClassifier().fit(X * 1e-200, Y), "holds no number larger than")
    fitted = KernelClassifier().fit(X, Y)
    np.testing.assert_allclose(
        fitted.decision_function(X * 1e-200), fitted.decision_function(np.zeros_like(X))
    )


@pytest.mark.parametrize("fit", [LabelAudit().fit, ImportanceReweightingClassifier().fit])
def test_two_columns_of_one_name_are_refused_by_their_name(fit):
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(40, 3)), columns=["a", "b", "a"])
    with pytest.raises(ValueError, match="two columns called 'a'"):
        fit(X, np.arange(40) % 2)
    with pytest.raises(ValueError, match="two columns called 'a'"):
        noise_by_slice(X, np.arange(40) % 2, by="b")


MANY = np.random.default_rng(0)
NOT_CLASSES = {
    "whole numbers": (MANY.integers(0, 300, 200), "regression"),
    "floats of whole numbers": (MANY.integers(0, 300, 200).astype(float), "regression"),
    "fractions": (MANY.normal(size=200), "regression"),
    "several targets": (MANY.integers(0, 2, (200, 3)), "multi-label"),
    "several targets, a frame": (pd.DataFrame(MANY.integers(0, 2, (200, 2))), "multi-label"),
    "several targets, lists": ([[0, 1]] * 200, "multi-label"),
    "a sparse indicator": (sparse.csr_array(MANY.integers(0, 2, (200, 3))), "multi-label"),
}


@pytest.mark.parametrize("kind", NOT_CLASSES)
def test_targets_that_are_not_one_class_per_sample_are_refused_with_what_to_do(kind) -> None:
    y, word = NOT_CLASSES[kind]
    x = np.random.default_rng(0).normal(size=(200, 2))
    for estimator in (ImportanceReweightingClassifier(), LabelAudit(), MinimumRates()):
        refused(lambda estimator=estimator: estimator.fit(x, y), word)
    refused(lambda: find_label_issues(x, y), word)


def test_many_numbers_with_samples_of_each_are_classes() -> None:
    from unflip._utils.validation import check_labels

    y = np.repeat(np.arange(100), 10)
    assert check_labels(y, binary=False).classes.size == 100
    names = np.repeat(np.arange(200), 3).astype(str)  # few samples of each, but no numbers
    assert check_labels(names, binary=False).classes.size == 200
