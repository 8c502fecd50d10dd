"""Rates that are counted in checked rows, by every rate estimator."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import LogisticRegression

from unflip import CheckedLabels, ImportanceReweightingClassifier, NoiseRates, TransitionMatrix
from unflip.noise_rates import (
    ChannelRates,
    CrossValidatedRates,
    MinimumRates,
    SelectiveRates,
)
from unflip.weights import LabelPosterior

N = 1000
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 2))
TRUE = (X.sum(axis=1) + 0.3 * RNG.normal(size=N) > 0).astype(int)
Y = (X[:, 0] > 0.5).astype(int)  # a rule, of whose mistakes the labels tell nothing
TRUTH = NoiseRates(
    positive=np.mean(Y[TRUE == 1] == 0).item(), negative=np.mean(Y[TRUE == 0] == 1).item()
)
ROWS = RNG.choice(N, 200, replace=False)
CHECKED = CheckedLabels(ROWS, TRUE[ROWS], 200 / N)

ESTIMATORS = {
    "posterior": MinimumRates(LogisticRegression(), random_state=0),
    "channel": ChannelRates(random_state=0),
    "cv": CrossValidatedRates(
        ImportanceReweightingClassifier(posterior="probabilistic"),
        [(0.0, 0.0), (0.2, 0.1)],
        random_state=0,
    ),
}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_checked_rows_count_the_rates_whatever_the_labels_say(name) -> None:
    estimator = ESTIMATORS[name]
    alone = estimator.fit(X, Y).rates_
    assert abs(alone.positive - TRUTH.positive) > 0.1  # no noise is seen in the labels
    found = estimator.fit(X, Y, checked=CHECKED)
    assert found.interval_.contains(TRUTH)
    assert abs(found.rates_.positive - TRUTH.positive) < 0.07
    low, high = found.interval_.label_error_rate
    assert low < (Y != TRUE).mean() < high
    wide, narrow = found.interval(0.99), found.interval(0.8)
    assert (wide.low <= narrow.low).all()
    assert (wide.high >= narrow.high).all()
    again = pickle.loads(pickle.dumps(found))  # noqa: S301
    assert_allclose(again.interval_.low, found.interval_.low)
    # a later fit does not remember them
    assert estimator.fit(X, Y).rates_ == alone
    assert not estimator.interval_.contains(TRUTH)


def test_the_count_is_prediction_powered_by_the_estimators_own_posterior() -> None:
    proba = LogisticRegression().fit(X, Y).predict_proba(X)
    alone = MinimumRates().fit_posterior(proba, Y).rates_
    label_proba = LabelPosterior(proba, Y, alone, np.array([0, 1])).proba
    found = MinimumRates().fit_posterior(proba, Y, checked=CHECKED)
    counted = CHECKED.noise_rates(Y, label_proba)
    assert found.rates_.positive == pytest.approx(counted[1].value)
    assert found.rates_.negative == pytest.approx(counted[0].value)
    positive, negative = found.interval_.both()
    assert positive == pytest.approx(counted[1].interval)
    assert negative == pytest.approx(counted[0].interval)


def test_few_rows_and_rows_picked_by_hand_leave_the_estimate_as_it_is() -> None:
    proba = LogisticRegression().fit(X, Y).predict_proba(X)
    alone = MinimumRates().fit_posterior(proba, Y)
    for checked in (
        CheckedLabels(ROWS[:9], TRUE[ROWS[:9]], 0.1),
        CheckedLabels(ROWS, TRUE[ROWS]),
    ):
        found = MinimumRates().fit_posterior(proba, Y, checked=checked)
        assert found.rates_ == alone.rates_
        assert_allclose(found.interval_.low, alone.interval_.low)


def test_more_classes_and_a_class_that_nobody_saw() -> None:
    rng = np.random.default_rng(1)
    true = rng.integers(0, 3, N)
    y = np.where(rng.random(N) < 0.2, (true + 1) % 3, true)
    proba = np.full((N, 3), 0.05) + 0.85 * np.eye(3)[y]
    rows = np.flatnonzero(true != 2)[:150]
    checked = CheckedLabels(rows, true[rows], 0.1)
    alone = SelectiveRates().fit_posterior(proba, y).transition_matrix_
    found = SelectiveRates().fit_posterior(proba, y, checked=checked)
    assert isinstance(found.rates_, TransitionMatrix)
    label_proba = LabelPosterior(proba, y, TransitionMatrix(alone), np.arange(3)).proba
    counted = checked.transition(y, label_proba)
    for k in (0, 1):
        row = np.array([each.value for each in counted[k]])
        assert_allclose(found.transition_matrix_[k], row / row.sum())
        assert_allclose(found.interval_.high[k], [each.interval[1] for each in counted[k]])
    assert_allclose(found.transition_matrix_[2], alone[2])


def test_what_is_no_checked_labels_is_refused() -> None:
    with pytest.raises(TypeError, match="CheckedLabels"):
        MinimumRates(LogisticRegression()).fit(X, Y, checked={0: 1})
    unfitted = MinimumRates(LogisticRegression())
    with pytest.raises(ValueError, match="row 5000"):
        unfitted.fit(X, Y, checked=CheckedLabels([*range(10), 5000], [0] * 11, 0.1))
    assert not hasattr(unfitted, "rates_")
