"""IRBL."""

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import LogisticRegression

from unflip import CheckedLabels
from unflip.baselines import IRBLClassifier


def rows_and_labels():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    true = (X[:, 0] + X[:, 1] > 0).astype(int)
    return X, (X[:, 0] > 0).astype(int), true


def test_weights_are_ratios_of_the_two_models_and_one_where_checked() -> None:
    X, y, true = rows_and_labels()
    rows = np.arange(0, 300, 5)
    clf = IRBLClassifier().fit(X, y, checked=CheckedLabels(rows, true[rows], 0.2))
    others = np.setdiff1d(np.arange(300), rows)
    trusted = LogisticRegression().fit(X[rows], true[rows]).predict_proba(X[others])
    noisy = LogisticRegression().fit(X[others], y[others]).predict_proba(X[others])
    at = np.arange(others.size), y[others]
    assert_allclose(clf.sample_weight_[others], trusted[at] / noisy[at])
    assert_array_equal(clf.sample_weight_[rows], 1)
    labels = y.copy()
    labels[rows] = true[rows]
    by_hand = LogisticRegression().fit(X, labels, sample_weight=clf.sample_weight_)
    assert_allclose(clf.predict_proba(X), by_hand.predict_proba(X))


def test_without_checked_rows_it_is_the_classifier_itself() -> None:
    X, y, _ = rows_and_labels()
    clf = IRBLClassifier().fit(X, y)
    assert_allclose(clf.decision_function(X), LogisticRegression().fit(X, y).decision_function(X))
