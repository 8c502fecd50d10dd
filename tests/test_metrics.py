"""Clean scores against scikit-learn, brute force over all flips, and simulated truth."""

import itertools
import json
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import config_context, metrics
from sklearn.exceptions import UndefinedMetricWarning, UnsetMetadataPassedError
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tests.test_noise import noise_rates
from unflip import NoiseRates, TransitionMatrix, flip_labels
from unflip.metrics import (
    CleanScore,
    clean_accuracy_score,
    clean_balanced_accuracy_score,
    clean_brier_score_loss,
    clean_f1_score,
    clean_log_loss,
    clean_precision_score,
    clean_recall_score,
    clean_roc_auc_score,
    make_clean_scorer,
)

RATES = NoiseRates(positive=0.3, negative=0.1)
THREE = np.array([[0.8, 0.15, 0.05], [0.1, 0.7, 0.2], [0.0, 0.1, 0.9]])

# ours, scikit-learn's for two classes and for more, and what they are computed from
SCORES = {
    "accuracy": (clean_accuracy_score, metrics.accuracy_score, {}, "label"),
    "balanced_accuracy": (
        clean_balanced_accuracy_score,
        metrics.balanced_accuracy_score,
        {},
        "label",
    ),
    "precision": (clean_precision_score, metrics.precision_score, {"average": "macro"}, "label"),
    "recall": (clean_recall_score, metrics.recall_score, {"average": "macro"}, "label"),
    "f1": (clean_f1_score, metrics.f1_score, {"average": "macro"}, "label"),
    "roc_auc": (clean_roc_auc_score, metrics.roc_auc_score, None, "score"),
    "neg_log_loss": (clean_log_loss, metrics.log_loss, {}, "proba"),
    "neg_brier_score": (clean_brier_score_loss, metrics.brier_score_loss, {}, "proba"),
}
LABEL_SCORES = [name for name, entry in SCORES.items() if entry[3] == "label"]


def scores_of(n_classes):
    return [name for name, entry in SCORES.items() if n_classes == 2 or entry[2] is not None]


CASES = [(name, n_classes) for n_classes in (2, 3) for name in scores_of(n_classes)]


def reference(name, y_true, prediction, weight=None):
    """scikit-learn's score on true labels, averaged as ours is."""
    _, function, averaged, kind = SCORES[name]
    options = dict(averaged) if np.unique(y_true).size > 2 else {}
    if kind == "proba" and prediction[kind].shape[1] == 2:
        # scikit-learn's form for two classes
        return function(y_true, prediction[kind][:, 1], sample_weight=weight)
    if name == "neg_brier_score":  # scikit-learn before 1.7 has it of two classes only
        hits = y_true[:, None] == np.unique(y_true)
        return np.average(np.sum((prediction[kind] - hits) ** 2, axis=1), weights=weight)
    return function(y_true, prediction[kind], sample_weight=weight, **options)


class World:
    """A finite population: x among 60 points, a posterior, and a model that is not the best."""

    def __init__(self, transition, seed=0):
        rng = np.random.default_rng(seed)
        self.transition = np.asarray(transition)
        n_classes = len(self.transition)
        logits = rng.normal(scale=1.5, size=(60, n_classes))
        self.posterior = self.softmax(logits)
        self.proba = self.softmax(0.7 * logits + rng.normal(scale=0.7, size=logits.shape))
        # scores with ties
        self.prediction = {
            "label": self.proba.argmax(axis=1),
            "proba": self.proba,
            "score": self.proba[:, -1].round(1),
        }

    @staticmethod
    def softmax(logits):
        weights = np.exp(logits)
        return weights / weights.sum(axis=1, keepdims=True)

    def truth(self, name):
        """The score of the whole population, each (x, class) weighted by its probability."""
        points, n_classes = self.posterior.shape
        x = np.repeat(np.arange(points), n_classes)
        y = np.tile(np.arange(n_classes), points)
        prediction = {kind: values[x] for kind, values in self.prediction.items()}
        return reference(name, y, prediction, self.posterior.ravel())

    def draw(self, rng, n):
        """Noisy labels of n random rows, and what the model says of them."""
        x = rng.integers(len(self.posterior), size=n)
        y = (rng.uniform(size=(n, 1)) > self.posterior[x].cumsum(axis=1)).sum(axis=1)
        noisy = (rng.uniform(size=(n, 1)) > self.transition[y].cumsum(axis=1)).sum(axis=1)
        return noisy, {kind: values[x] for kind, values in self.prediction.items()}


def random_case(n_classes, n=200, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(n_classes, size=n)
    proba = rng.dirichlet(np.ones(n_classes), size=n)
    prediction = {"label": proba.argmax(axis=1), "proba": proba, "score": proba[:, -1].round(1)}
    return y, prediction, rng.uniform(0.1, 3, size=n)


@pytest.mark.parametrize(("name", "n_classes"), CASES)
@pytest.mark.parametrize("weighted", [False, True])
def test_without_noise_every_score_is_scikit_learns(name, n_classes, weighted):
    y, prediction, weight = random_case(n_classes)
    weight = weight if weighted else None
    function, kind = SCORES[name][0], SCORES[name][3]
    score = function(y, prediction[kind], np.eye(n_classes), sample_weight=weight)
    assert score == pytest.approx(reference(name, y, prediction, weight), rel=1e-12)
    assert score.standard_error > 0


def test_golden_scores():
    y = np.array([1, 1, 0, 0, 1, 0])
    label, score = [1, 1, 1, 0, 0, 0], [0.9, 0.8, 0.7, 0.3, 0.4, 0.2]
    accuracy = clean_accuracy_score(y, label, RATES)
    assert accuracy == pytest.approx(0.777778, abs=1e-6)
    assert accuracy.standard_error == pytest.approx(0.359183, abs=1e-6)
    assert clean_precision_score(y, label, RATES) == pytest.approx(0.944444, abs=1e-6)
    assert clean_recall_score(y, label, RATES) == pytest.approx(0.708333, abs=1e-6)
    assert clean_f1_score(y, label, RATES) == pytest.approx(0.809524, abs=1e-6)
    assert clean_balanced_accuracy_score(y, label, RATES) == pytest.approx(0.8125, abs=1e-6)
    assert clean_brier_score_loss(y, score, RATES) == pytest.approx(0.055, abs=1e-9)
    assert clean_log_loss(y, score, RATES) == pytest.approx(0.201418354, abs=1e-9)
    assert clean_roc_auc_score(y, score, RATES) == pytest.approx(1.038462, abs=1e-6)


# precision's denominator does not depend on the labels, so it is a mean too
@pytest.mark.parametrize("name", ["accuracy", "neg_log_loss", "neg_brier_score", "precision"])
@pytest.mark.parametrize("transition", [RATES.transition_matrix, THREE])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_mean_over_all_flips_is_the_clean_score(name, transition, weighted):
    n_classes = len(transition)
    y = np.arange(6) % n_classes
    _, prediction, weight = random_case(n_classes, n=6, seed=3)
    prediction["label"] = np.array([0, 1, n_classes - 1, 1, 1, 0])
    weight = weight if weighted else None
    function, kind = SCORES[name][0], SCORES[name][3]
    expected = 0.0
    for noisy in itertools.product(range(n_classes), repeat=y.size):
        chance = transition[y, noisy].prod()
        if chance > 0:
            expected += chance * function(
                noisy,
                prediction[kind],
                transition,
                sample_weight=weight,
                classes=range(n_classes),
            )
    assert expected == pytest.approx(reference(name, y, prediction, weight), rel=1e-10)


@st.composite
def transitions(draw):
    """Transition matrices of two to four classes, most labels right."""
    n_classes = draw(st.integers(2, 4))
    rows = draw(
        st.lists(
            st.lists(st.floats(0.01, 1), min_size=n_classes, max_size=n_classes),
            min_size=n_classes,
            max_size=n_classes,
        )
    )
    spread = np.array(rows) / np.sum(rows, axis=1, keepdims=True)
    level = draw(st.floats(0, 0.45))
    return (1 - level) * np.eye(n_classes) + level * spread


@given(transitions(), st.data())
def test_averaged_over_its_noisy_label_a_row_has_the_loss_of_its_true_label(transition, data):
    classes = np.arange(len(transition))
    true = data.draw(st.sampled_from(classes.tolist()))
    weights = data.draw(
        st.lists(st.floats(0.01, 1), min_size=classes.size, max_size=classes.size).map(np.array)
    )
    proba = weights[None, :] / weights.sum()
    label = data.draw(st.sampled_from(classes.tolist()))

    def mean(function, prediction):
        scores = [function([k], prediction, transition, classes=classes) for k in classes]
        return transition[true] @ scores

    assert mean(clean_accuracy_score, [label]) == pytest.approx(float(label == true), abs=1e-9)
    assert mean(clean_log_loss, proba) == pytest.approx(-np.log(proba[0, true]), abs=1e-9)
    brier = ((proba[0] - (classes == true)) ** 2).sum() / (2 if classes.size == 2 else 1)
    assert mean(clean_brier_score_loss, proba) == pytest.approx(brier, abs=1e-9)


@given(noise_rates(most=0.9), st.integers(0, 2**32 - 1))
def test_accuracy_and_precision_have_their_closed_forms(rates, seed):
    rng = np.random.default_rng(seed)
    noisy, label = rng.integers(2, size=(2, 40))
    positive, negative = rates.both()
    stand_in = (noisy - negative) / (1 - positive - negative)
    accuracy = np.mean(np.where(label == 1, stand_in, 1 - stand_in))
    score = clean_accuracy_score(noisy, label, rates, classes=[0, 1])
    assert score == pytest.approx(accuracy, abs=1e-9)
    if label.any():
        precision = (noisy[label == 1].mean() - negative) / rates.information_left
        score = clean_precision_score(noisy, label, rates, classes=[0, 1])
        assert score == pytest.approx(precision, abs=1e-9)


def test_confusion_counts_solved_through_the_transition_matrix_give_the_same_ratios():
    noisy, prediction = World(THREE).draw(np.random.default_rng(0), 500)
    counts = np.linalg.solve(THREE.T, metrics.confusion_matrix(noisy, prediction["label"]))
    hits, true, predicted = np.diag(counts), counts.sum(axis=1), counts.sum(axis=0)
    label = prediction["label"]
    assert clean_recall_score(noisy, label, THREE) == pytest.approx((hits / true).mean())
    assert clean_balanced_accuracy_score(noisy, label, THREE) == pytest.approx((hits / true).mean())
    assert clean_precision_score(noisy, label, THREE) == pytest.approx((hits / predicted).mean())
    assert clean_f1_score(noisy, label, THREE) == pytest.approx(
        (2 * hits / (true + predicted)).mean()
    )


@pytest.mark.parametrize("weighted", [False, True])
def test_auc_is_the_share_of_well_ordered_pairs_of_different_rows(weighted):
    noisy, prediction, weight = random_case(2, n=60, seed=5)
    score = prediction["score"]
    assert np.unique(score).size < score.size  # ties
    weight = weight if weighted else np.ones(60)
    stand_in = (noisy - 0.1) / 0.6
    pair = np.outer(weight * stand_in, weight * (1 - stand_in))
    np.fill_diagonal(pair, 0)
    order = (score[:, None] > score) + 0.5 * (score[:, None] == score)
    assert clean_roc_auc_score(noisy, score, RATES, sample_weight=weight) == pytest.approx(
        (pair * order).sum() / pair.sum()
    )


@pytest.mark.parametrize("rates", [RATES, NoiseRates(0.0, 0.4), NoiseRates(0.2, 0.2)])
def test_auc_is_the_affine_map_through_the_inverse_rates_up_to_one_in_n(rates):
    gaps = []
    for n in (1000, 16_000):
        noisy, prediction = World(rates.transition_matrix).draw(np.random.default_rng(1), n)
        score = prediction["score"]
        inverse = rates.inverse(noisy_prior=noisy.mean())
        total = inverse.positive + inverse.negative
        mapped = (metrics.roc_auc_score(noisy, score) - total / 2) / (1 - total)
        gaps.append(n * abs(clean_roc_auc_score(noisy, score, rates) - mapped))
    assert max(gaps) < 5


def test_the_error_of_accuracy_is_its_closed_form():
    # Acc (1 - Acc) and the price of the noise, for rows whose classes are known
    n = 200_000
    y, prediction, _ = random_case(2, n=n)
    noisy = flip_labels(y, RATES, random_state=0)
    accuracy, prior = np.mean(y == prediction["label"]), y.mean()
    price = (prior * 0.3 * 0.7 + (1 - prior) * 0.1 * 0.9) / 0.6**2
    score = clean_accuracy_score(noisy, prediction["label"], RATES)
    closed = np.sqrt((accuracy * (1 - accuracy) + price) / n)
    assert score.standard_error == pytest.approx(closed, rel=0.01)


@pytest.mark.parametrize(("name", "n_classes"), CASES)
def test_scale_of_weights_and_order_of_rows_change_nothing(name, n_classes):
    transition = THREE if n_classes == 3 else RATES.transition_matrix
    function, kind = SCORES[name][0], SCORES[name][3]
    noisy, prediction, weight = random_case(n_classes)
    order = np.random.default_rng(0).permutation(noisy.size)
    score = function(noisy, prediction[kind], transition, sample_weight=weight)
    other = function(
        noisy[order], prediction[kind][order], transition, sample_weight=7 * weight[order]
    )
    assert other == pytest.approx(score)
    assert other.standard_error == pytest.approx(score.standard_error)


@pytest.mark.parametrize(("name", "n_classes"), CASES)
def test_a_row_of_weight_zero_is_no_row(name, n_classes):
    transition = THREE if n_classes == 3 else RATES.transition_matrix
    function, kind = SCORES[name][0], SCORES[name][3]
    noisy, prediction, _ = random_case(n_classes)
    kept = np.arange(noisy.size) % 3 > 0
    score = function(noisy, prediction[kind], transition, sample_weight=kept.astype(float))
    other = function(noisy[kept], prediction[kind][kept], transition)
    assert other == pytest.approx(score)
    assert other.standard_error == pytest.approx(score.standard_error)


@pytest.mark.parametrize("name", scores_of(2))
def test_strings_and_series_score_as_numbers_do(name):
    function, kind = SCORES[name][0], SCORES[name][3]
    noisy, prediction, _ = random_case(2)
    expected = function(noisy, prediction[kind], RATES)
    names = np.array(["no", "yes"])
    values = prediction[kind]
    for container in (np.asarray, list, pd.Series, pl.Series):
        given_values = container(names[values]) if kind == "label" else values
        score = function(container(names[noisy]), given_values, RATES)
        assert score == expected
        assert score.standard_error == expected.standard_error
    if kind == "score":
        assert function(noisy, pl.Series(values), RATES) == expected
    if kind == "proba":
        assert function(noisy, pd.DataFrame(values), RATES) == expected
        assert function(noisy, pl.DataFrame(values), RATES) == expected
        assert function(noisy, values[:, 1], RATES) == pytest.approx(expected)


def test_rates_come_as_noise_rates_or_as_a_matrix():
    noisy, prediction, _ = random_case(2)
    matrix = RATES.transition_matrix
    for rates in (matrix, matrix.tolist(), TransitionMatrix(matrix)):
        assert clean_f1_score(noisy, prediction["label"], rates) == clean_f1_score(
            noisy, prediction["label"], RATES
        )


def test_a_score_is_a_float_that_keeps_its_error():
    score = CleanScore(0.8, 0.02)
    assert isinstance(score, float)
    assert score == 0.8
    assert json.dumps(score) == "0.8"
    copy = pickle.loads(pickle.dumps(score))  # noqa: S301
    assert (copy, copy.standard_error) == (0.8, 0.02)
    single = clean_accuracy_score([1], [1], RATES, classes=[0, 1])
    assert np.isnan(single.standard_error)


def test_scores_may_leave_the_unit_interval():
    # every noisy positive is predicted: more than perfect
    assert clean_accuracy_score([1, 1, 0, 0], [1, 1, 0, 0], RATES) > 1
    assert clean_brier_score_loss([1, 1, 0, 0], [1.0, 1, 0, 0], RATES) < 0


def test_the_class_a_fold_lacks_is_named_by_classes():
    score = clean_accuracy_score(["no", "no"], ["no", "yes"], RATES, classes=["no", "yes"])
    # T^-1 = [[0.7, -0.1], [-0.3, 0.9]] / 0.6
    assert score == pytest.approx((0.7 - 0.1) / 0.6 / 2)
    with pytest.raises(ValueError, match="holds one class only"):
        clean_accuracy_score(["no", "no"], ["no", "yes"], RATES)
    with pytest.raises(ValueError, match="3 classes"):
        clean_accuracy_score([0, 1], [0, 2], THREE)


def test_a_class_that_is_never_predicted_has_precision_zero():
    with pytest.warns(UndefinedMetricWarning, match=r"never predicts \[1\]"):
        score = clean_precision_score([0, 1, 1], [0, 0, 0], RATES)
    assert score == 0
    with pytest.warns(UndefinedMetricWarning, match=r"never predicts \[2\]"):
        score = clean_precision_score([0, 1, 2, 0], [0, 1, 1, 0], np.eye(3))
    assert score == pytest.approx((1 + 0.5 + 0) / 3)


@pytest.mark.parametrize(
    "function", [clean_recall_score, clean_balanced_accuracy_score, clean_roc_auc_score]
)
def test_fewer_positive_labels_than_the_flips_alone_make_is_refused(function):
    noisy = np.zeros(20, dtype=int)
    noisy[0] = 1  # 5 % where the rates alone make 10 %
    with pytest.raises(ValueError, match="share of true 1"):
        function(noisy, np.arange(20) % 2, RATES)


@pytest.mark.parametrize("name", scores_of(2))
def test_unusable_input_is_refused(name):
    function, kind = SCORES[name][0], SCORES[name][3]
    noisy, prediction, _ = random_case(2, n=20)
    values = prediction[kind]

    def refused(match, error=ValueError, y=noisy, values=values, rates=RATES, **options):
        with pytest.raises(error, match=match):
            function(y, values, rates, **options)

    refused("has an unknown rate", rates=NoiseRates(positive=None, negative=0.1))
    refused("condition number", rates=NoiseRates(positive=0.5, negative=0.4999))
    refused("no inverse", rates=[[0.5, 0.5], [0.5, 0.5]])
    for unusable in (None, (0.3, 0.1), "auto"):
        refused("rates must be NoiseRates", error=TypeError, rates=unusable)
    refused("must hold probabilities", rates=[[1.2, -0.2], [0.3, 0.7]])
    refused("every row must sum to 1", rates=RATES.transition_matrix.T)
    refused("3 classes, and there are 2", rates=THREE)
    refused("2 classes, and there are 3", classes=[0, 1, 2])
    refused("label 1, which is not one of the classes", classes=[0, 7])
    refused(r"has 19 values", values=values[:-1])
    refused("sample_weight", sample_weight=np.ones(19))
    refused("sample_weight must be >= 0", sample_weight=-np.ones(20))
    refused("NaN", y=np.where(noisy == 0, np.nan, 1.0))
    if kind == "label":
        refused("y_pred holds 2, which is not one of the classes", values=values + 1)
        refused("y_pred holds 'a', which is not", values=np.array(["a"] * 20))
        refused(
            "y_pred contains no label .* in 1 of 20 rows: 0",
            values=np.array([None, *values[1:]], dtype=object),
        )
        refused("y_pred contains no label .* in 20 of 20 rows", values=np.full(20, np.nan))
    else:
        refused("NaN", values=np.full(values.shape, np.nan))
    if kind == "score":
        refused("one score per", values=prediction["proba"])
    if kind == "proba":
        refused(r"in \[0, 1\], got", values=values - 0.5)
        refused(r"sums to .* in row 0", values=values / 2)
        refused(r"expected \(20, 2\)", values=np.full((20, 3), 1 / 3))


def test_auc_is_for_two_classes():
    noisy, prediction, _ = random_case(3)
    with pytest.raises(ValueError, match="for two classes, got 3"):
        clean_roc_auc_score(noisy, prediction["score"], THREE)


# make_clean_scorer


def noisy_table(n_classes=2, n=600):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    logits = np.column_stack([X[:, 0], -X[:, 0], X[:, 1]])[:, :n_classes]
    y = (2 * logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    transition = THREE if n_classes == 3 else RATES.transition_matrix
    noisy = (rng.uniform(size=(n, 1)) > transition[y].cumsum(axis=1)).sum(axis=1)
    return X, np.array(["a", "b", "c"])[noisy], transition


@pytest.mark.parametrize(("name", "n_classes"), CASES)
def test_a_scorer_scores_what_the_estimator_says_the_greater_the_better(name, n_classes):
    X, y, transition = noisy_table(n_classes)
    model = LogisticRegression().fit(X, y)
    function, _, _, kind = SCORES[name]
    says = {"label": model.predict(X), "proba": model.predict_proba(X)}
    if n_classes == 2:
        says["score"] = model.decision_function(X)
    sign = -1 if name.startswith("neg_") else 1
    weight = np.random.default_rng(1).uniform(size=y.size)
    for metric in (name, function):
        scorer = make_clean_scorer(metric, transition)
        assert scorer(model, X, y) == sign * function(y, says[kind], transition)
        assert scorer(model, X, y, sample_weight=weight) == sign * function(
            y, says[kind], transition, sample_weight=weight
        )


@pytest.mark.parametrize("name", scores_of(2))
def test_scorers_serve_searches_and_cross_validation_and_pickle(name):
    X, y, _ = noisy_table()
    scorer = pickle.loads(pickle.dumps(make_clean_scorer(name, RATES)))  # noqa: S301
    model = make_pipeline(StandardScaler(), LogisticRegression())
    folds = StratifiedKFold(3)
    scores = cross_val_score(model, X, y, scoring=scorer, cv=folds, error_score="raise")
    by_hand = []
    for train, test in folds.split(X, y):
        by_hand.append(scorer(model.fit(X[train], y[train]), X[test], y[test]))
    np.testing.assert_allclose(scores, by_hand)
    search = GridSearchCV(
        model, {"logisticregression__C": [0.01, 1.0]}, scoring=scorer, cv=3, error_score="raise"
    )
    search.fit(X, y)
    means = search.cv_results_["mean_test_score"]
    assert means[1] == pytest.approx(np.mean(scores))
    assert search.best_score_ == means.max()


@pytest.mark.parametrize("name", scores_of(2))
def test_pos_label_names_the_class_that_scores_and_rates_are_about(name):
    X, y, _ = noisy_table()
    model = LogisticRegression().fit(X, y)
    # the same table with the two labels exchanged has "a" for its positive class
    exchanged = np.where(y == "a", "b", "a")
    mirrored = LogisticRegression().fit(X, exchanged)
    score = make_clean_scorer(name, RATES, pos_label="a")(model, X, y)
    assert score == pytest.approx(make_clean_scorer(name, RATES)(mirrored, X, exchanged), abs=1e-6)
    by_class = NoiseRates.by_class({"a": RATES.positive, "b": RATES.negative})
    assert score == make_clean_scorer(name, by_class, pos_label="a")(model, X, y)


@pytest.mark.parametrize("name", SCORES)
def test_rates_may_be_called_noise_rates_as_in_the_classifiers(name):
    y, prediction, _ = random_case(2)
    function, kind = SCORES[name][0], SCORES[name][3]
    score = function(y, prediction[kind], noise_rates=RATES)
    assert score == function(y, prediction[kind], RATES)
    with pytest.raises(TypeError, match="rates"):
        function(y, prediction[kind], rates=RATES, noise_rates=RATES)
    scorer = make_clean_scorer(name, noise_rates=RATES)
    assert scorer.rates == RATES
    parameters = ["rates : NoiseRates", "sample_weight :", "CleanScore"]
    assert all(text in function.__doc__ for text in parameters)


def test_auc_of_an_estimator_without_one_of_the_two_methods():
    X, y, _ = noisy_table()
    scorer = make_clean_scorer("roc_auc", RATES)
    ridge = RidgeClassifier().fit(X, y)
    assert scorer(ridge, X, y) == clean_roc_auc_score(y, ridge.decision_function(X), RATES)
    with pytest.raises(AttributeError, match="predict_proba"):
        make_clean_scorer("neg_log_loss", RATES)(ridge, X, y)


def test_a_fold_that_lacks_a_class_is_scored_by_the_estimators_classes():
    X, y, _ = noisy_table()
    model = LogisticRegression().fit(X, y)
    only = y == "a"
    for name in ("accuracy", "precision", "neg_log_loss", "neg_brier_score"):
        assert np.isfinite(make_clean_scorer(name, RATES)(model, X[only], y[only]))


def test_classes_may_be_named_where_the_training_rows_lack_one():
    X, y, transition = noisy_table(3)
    model = LogisticRegression().fit(X[y != "b"], y[y != "b"])
    with pytest.raises(ValueError, match="3 classes"):
        make_clean_scorer("accuracy", transition)(model, X, y)
    scorer = make_clean_scorer("accuracy", transition, classes=["a", "b", "c"])
    assert scorer(model, X, y) == clean_accuracy_score(y, model.predict(X), transition)


def test_several_scorers_take_the_weights_of_a_search():
    X, y, _ = noisy_table()
    weight = np.random.default_rng(0).uniform(size=y.size)
    scorers = {name: make_clean_scorer(name, RATES) for name in ("accuracy", "roc_auc")}
    grid = {"C": [0.1, 1.0]}
    several = GridSearchCV(LogisticRegression(), grid, scoring=scorers, refit="accuracy")
    several.fit(X, y, sample_weight=weight)
    one = GridSearchCV(LogisticRegression(), grid, scoring=scorers["roc_auc"])
    one.fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(
        several.cv_results_["mean_test_roc_auc"], one.cv_results_["mean_test_score"]
    )
    unweighted = GridSearchCV(LogisticRegression(), grid, scoring=scorers["roc_auc"]).fit(X, y)
    assert not np.allclose(
        unweighted.cv_results_["mean_test_score"], one.cv_results_["mean_test_score"]
    )


def test_weights_are_routed_to_the_scorer_on_request():
    X, y, _ = noisy_table()
    weight = np.random.default_rng(0).uniform(size=y.size)
    scorer = make_clean_scorer("accuracy", RATES)
    by_hand = []
    for train, test in StratifiedKFold(5).split(X, y):
        model = LogisticRegression().fit(X[train], y[train])
        by_hand.append(scorer(model, X[test], y[test], sample_weight=weight[test]))
    with config_context(enable_metadata_routing=True):
        model = LogisticRegression().set_fit_request(sample_weight=False)
        options = {"params": {"sample_weight": weight}, "error_score": "raise"}
        with pytest.raises(UnsetMetadataPassedError):
            cross_val_score(model, X, y, scoring=scorer, **options)
        scorer.set_score_request(sample_weight=True)
        np.testing.assert_allclose(cross_val_score(model, X, y, scoring=scorer, **options), by_hand)


def test_an_unknown_metric_or_rate_is_refused_when_the_scorer_is_made():
    for metric in ("log_loss", metrics.accuracy_score, None):
        with pytest.raises(ValueError, match="is not known"):
            make_clean_scorer(metric, RATES)
    with pytest.raises(ValueError, match="has an unknown rate"):
        make_clean_scorer("f1", NoiseRates(positive=0.3, negative=None))
    with pytest.raises(ValueError, match="2 classes"):
        make_clean_scorer("f1", RATES, classes=["a", "b", "c"])


# simulations

N_DRAWS = 1000
WORLDS = {
    "(0.3, 0.1)": RATES.transition_matrix,
    "(0, 0.4)": NoiseRates(0.0, 0.4).transition_matrix,
    "three classes": THREE,
}


@pytest.mark.slow
@pytest.mark.parametrize("world", WORLDS)
def test_over_many_test_sets_scores_are_unbiased_and_vary_as_their_errors_say(world):
    # means are unbiased at any n; ratios have a bias of order 1/n, far below their spread at 2000
    population = World(WORLDS[world])
    names = scores_of(len(population.transition))
    rng = np.random.default_rng(0)
    values, errors = np.empty((2, N_DRAWS, len(names)))
    for draw in range(N_DRAWS):
        noisy, prediction = population.draw(rng, 2000)
        for column, name in enumerate(names):
            function, kind = SCORES[name][0], SCORES[name][3]
            score = function(noisy, prediction[kind], population.transition)
            values[draw, column], errors[draw, column] = score, score.standard_error
    truth = np.array([population.truth(name) for name in names])
    spread = values.std(axis=0, ddof=1)
    in_errors = (values.mean(axis=0) - truth) / (spread / np.sqrt(N_DRAWS))
    assert (np.abs(in_errors) < 3).all(), dict(zip(names, in_errors, strict=True))
    ratio = errors.mean(axis=0) / spread
    assert (np.abs(ratio - 1) < 0.15).all(), dict(zip(names, ratio, strict=True))
    covered = (np.abs(values - truth) < 1.96 * errors).mean(axis=0)
    assert ((covered > 0.92) & (covered < 0.98)).all(), dict(zip(names, covered, strict=True))


@pytest.mark.parametrize(
    "name",
    [
        "accuracy",
        "precision",
        *(
            pytest.param(name, marks=pytest.mark.slow)
            for name in ("neg_log_loss", "neg_brier_score")
        ),
    ],
)
def test_means_are_unbiased_on_small_test_sets(name):
    population = World(RATES.transition_matrix)
    function, kind = SCORES[name][0], SCORES[name][3]
    rng = np.random.default_rng(1)
    scores = []
    for _ in range(N_DRAWS):
        noisy, prediction = population.draw(rng, 60)
        scores.append(function(noisy, prediction[kind], RATES, classes=[0, 1]))
    standard_error = np.std(scores) / np.sqrt(N_DRAWS)
    assert abs(np.mean(scores) - population.truth(name)) < 3 * standard_error
    # the same labels taken as they are: far off
    as_they_are = [
        function(*population_draw(population, rng, kind), np.eye(2), classes=[0, 1])
        for _ in range(200)
    ]
    assert abs(np.mean(as_they_are) - population.truth(name)) > 10 * standard_error


def population_draw(population, rng, kind):
    noisy, prediction = population.draw(rng, 60)
    return noisy, prediction[kind]


@pytest.mark.slow
def test_pairs_of_different_rows_overshoot_less_than_the_plain_map():
    # heavy noise on few rows is where the two forms of the AUC differ
    rates = NoiseRates(0.4, 0.4)
    population = World(rates.transition_matrix)
    truth = population.truth("roc_auc")
    rng = np.random.default_rng(0)
    pairs, mapped = [], []
    for _ in range(2000):
        noisy, prediction = population.draw(rng, 400)
        score = prediction["score"]
        inverse = rates.inverse(noisy_prior=noisy.mean())
        total = inverse.positive + inverse.negative
        pairs.append(clean_roc_auc_score(noisy, score, rates))
        mapped.append((metrics.roc_auc_score(noisy, score) - total / 2) / (1 - total))
    assert abs(np.mean(pairs) - truth) < 0.5 * abs(np.mean(mapped) - truth)
    assert np.std(pairs) < np.std(mapped)
