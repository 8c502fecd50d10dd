"""What users expect beside the estimate: selections, tables, summaries, acknowledgements."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import confusion_matrix, f1_score, precision_score, roc_auc_score

from unflip import (
    CheckedLabels,
    ImportanceReweightingClassifier,
    LabelAudit,
    LabelNoiseWarning,
    NoiseRates,
    TransitionMatrix,
    find_label_issues,
    flip_labels,
)
from unflip.metrics import (
    clean_confusion_matrix,
    clean_f1_score,
    clean_precision_score,
    clean_roc_auc_score,
)
from unflip.noise_rates import MinimumRates

RNG = np.random.default_rng(0)
TRUE = RNG.integers(0, 2, 600)
X = RNG.normal(3.0 * TRUE[:, None], 1.0, (600, 2))
Y = flip_labels(TRUE, NoiseRates(0.2, 0.1), random_state=0)
AUDIT = LabelAudit(random_state=0).fit(X, Y)


class TestIssues:
    def test_a_threshold_gives_the_samples_that_reach_it(self) -> None:
        found = AUDIT.issues(threshold=0.5)
        wrong = AUDIT.mislabel_proba_
        assert set(found) == set(np.flatnonzero(wrong >= 0.5))
        assert (np.diff(wrong[found]) <= 0).all()

    @pytest.mark.parametrize("threshold", [0, 1.5, "half", True])
    def test_a_threshold_is_a_probability(self, threshold) -> None:
        with pytest.raises(ValueError, match="threshold"):
            AUDIT.issues(threshold=threshold)

    def test_only_one_selection_is_taken(self) -> None:
        with pytest.raises(ValueError, match="not both"):
            AUDIT.issues(threshold=0.5, n=3)

    def test_more_samples_than_there_are_are_refused(self) -> None:
        assert AUDIT.issues(n=600).size == 600
        with pytest.raises(ValueError, match="600"):
            AUDIT.issues(n=10**6)


class TestFindLabelIssues:
    def test_labels_before_probabilities_are_recognised(self) -> None:
        proba = LogisticRegression().fit(X, Y).predict_proba(X)
        for labels in (Y, Y.tolist(), np.where(Y, "yes", "no")):
            with pytest.raises(ValueError, match="pred_probs=pred_probs, y=labels"):
                find_label_issues(labels, proba)

    @pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
    def test_a_frame_gives_a_frame(self, kind) -> None:
        frame = kind({"a": X[:, 0], "b": X[:, 1], "label": Y})
        found = find_label_issues(frame, "label", random_state=0)
        positions = find_label_issues(frame, "label", random_state=0, return_frame=False)
        assert isinstance(found, kind)
        assert list(found["row"]) == positions.tolist()
        assert list(found["mislabel_proba"]) == sorted(found["mislabel_proba"], reverse=True)
        assert list(found["given_label"]) == Y[positions].tolist()

    def test_arrays_give_positions_unless_a_frame_is_asked_for(self) -> None:
        positions = find_label_issues(X, Y, threshold=0.5, random_state=0)
        assert positions.tolist() == AUDIT.issues(threshold=0.5).tolist()
        frame = find_label_issues(X, Y, threshold=0.5, random_state=0, return_frame=True)
        assert frame["row"].tolist() == positions.tolist()


def test_the_estimate_is_printed_as_a_summary() -> None:
    shown = repr(AUDIT.noise_)
    assert "600 labels, 2 classes" in shown
    assert f"{AUDIT.label_error_rate_:.1%}" in shown
    assert len(shown.splitlines()) < 12
    many = flip_labels(load_digits().target, TransitionMatrix.uniform(10, 0.1), random_state=0)
    assert "9: " in repr(LabelAudit(random_state=0).fit(load_digits().data, many).noise_)


@pytest.mark.parametrize("make", [ImportanceReweightingClassifier, LabelAudit])
def test_findings_that_are_known_are_not_warned_of(make) -> None:
    estimator = make(noise_rates=NoiseRates(0.0, 0.55), random_state=0)
    with pytest.warns(LabelNoiseWarning):
        estimator.fit(X, Y)
    codes = [one.code for one in estimator.noise_.findings]
    estimator.set_params(ignore=codes)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        estimator.fit(X, Y)
    assert [one.code for one in estimator.noise_.findings] == codes
    with pytest.raises(TypeError, match="ignore"):
        estimator.set_params(ignore="few_rows").fit(X, Y)


class TestPositiveClass:
    def test_the_classifier_takes_rates_of_the_class_that_is_named(self) -> None:
        names = np.where(Y == 1, "a_churned", "stayed")  # the positive class sorts first
        rates = NoiseRates(positive=0.2, negative=0.1)
        plain = ImportanceReweightingClassifier(noise_rates=rates, random_state=0).fit(X, Y)
        named = ImportanceReweightingClassifier(
            noise_rates=rates, random_state=0, pos_label="a_churned"
        ).fit(X, names)
        assert str(named.noise_rates_) == "NoiseRates.by_class({'a_churned': 0.2, 'stayed': 0.1})"
        np.testing.assert_allclose(named.mislabel_proba_, plain.mislabel_proba_, atol=0.02)

    @pytest.mark.parametrize("label", ["churned", 2])
    def test_a_class_that_is_not_there_is_refused(self, label) -> None:
        with pytest.raises(ValueError, match="pos_label"):
            ImportanceReweightingClassifier(pos_label=label).fit(X, Y)
        with pytest.raises(ValueError, match="pos_label"):
            clean_f1_score(Y, TRUE, NoiseRates(0.2, 0.1), pos_label=label)

    def test_scores_are_those_of_scikit_learn_without_noise(self) -> None:
        none, score = NoiseRates(0.0, 0.0), RNG.normal(size=600) - TRUE
        for ours, theirs in ((clean_f1_score, f1_score), (clean_precision_score, precision_score)):
            expected = theirs(TRUE, Y, pos_label=0)
            assert ours(TRUE, Y, none, pos_label=0) == pytest.approx(expected)
        expected = roc_auc_score(TRUE == 0, score)
        assert clean_roc_auc_score(TRUE, score, none, pos_label=0) == pytest.approx(expected)

    def test_rates_of_the_metrics_are_of_the_class_that_is_named(self) -> None:
        swapped = clean_f1_score(Y, TRUE, NoiseRates(0.1, 0.2), pos_label=0)
        assert swapped == clean_f1_score(1 - Y, 1 - TRUE, NoiseRates(0.1, 0.2))


class TestConfusion:
    def test_it_is_scikit_learns_without_noise_and_unbiased_with_it(self) -> None:
        predicted, rates = (X[:, 0] > 1.5).astype(int), NoiseRates(0.3, 0.1)
        for normalize in (None, "true", "pred", "all"):
            ours = clean_confusion_matrix(
                TRUE, predicted, NoiseRates(0.0, 0.0), normalize=normalize
            )
            theirs = confusion_matrix(TRUE, predicted, normalize=normalize)
            np.testing.assert_allclose(ours, theirs)
        found = [
            clean_confusion_matrix(flip_labels(TRUE, rates, random_state=k), predicted, rates)
            for k in range(300)
        ]
        error = np.std(found, axis=0) / np.sqrt(300)
        assert (abs(np.mean(found, axis=0) - confusion_matrix(TRUE, predicted)) < 4 * error).all()

    def test_its_trace_is_the_accuracy(self) -> None:
        T = TransitionMatrix.uniform(3, 0.2)
        y, predicted = RNG.integers(0, 3, 200), RNG.integers(0, 3, 200)
        weight = RNG.uniform(0.5, 2, 200)
        found = clean_confusion_matrix(y, predicted, T, sample_weight=weight, normalize="all")
        from unflip.metrics import clean_accuracy_score

        expected = clean_accuracy_score(y, predicted, T, sample_weight=weight)
        assert np.trace(found) == pytest.approx(expected)
        with pytest.raises(ValueError, match="normalize"):
            clean_confusion_matrix(y, predicted, T, normalize="rows")


@pytest.mark.parametrize(
    ("rates", "hint"),
    [
        (0.1, r"positive=0\.1, negative=0\.1"),
        ((0.1, 0.2), r"positive=0\.1, negative=0\.2"),
        ([0.1, 0.2], "by_class"),
        (np.array([0.1, 0.2]), "by_class"),
        ({"a": 0.1, "b": 0.2}, r"by_class\({'a'"),
    ],
    ids=str,
)
def test_rates_as_plain_numbers_are_refused_with_what_was_meant(rates, hint) -> None:
    for estimator in (
        ImportanceReweightingClassifier(noise_rates=rates),
        LabelAudit(noise_rates=rates),
    ):
        with pytest.raises(TypeError, match=hint):
            estimator.fit(X, Y)


def test_rows_picked_by_hand_count_nothing() -> None:
    by_hand = CheckedLabels([0, 1, 2], TRUE[:3])
    for call in (
        lambda: by_hand.label_error_rate(Y),
        lambda: by_hand.noise_rates(Y),
        lambda: by_hand.score(Y, TRUE),
        lambda: MinimumRates().fit(X, Y, checked=by_hand) and by_hand.transition(Y),
    ):
        with pytest.raises(ValueError, match="probability=3 / 600"):
            call()


@pytest.mark.parametrize(("flipped", "noted"), [(0.012, True), (0.1, False)])
def test_probabilities_that_agree_with_nearly_all_labels_are_noted(flipped, noted) -> None:
    digits, true = load_digits(return_X_y=True)
    y = flip_labels(true, TransitionMatrix.uniform(10, flipped), random_state=0)
    proba = (
        LogisticRegression(C=100, max_iter=1000).fit(digits / 16, true).predict_proba(digits / 16)
    )
    audit = LabelAudit().fit_posterior(proba, y)
    found = [one for one in audit.noise_.findings if one.code == "not_held_out"]
    assert [one.severity for one in found] == (["note"] if noted else [])
