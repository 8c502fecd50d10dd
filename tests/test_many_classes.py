"""Rows and labels of many classes as people bring them: all work, or are refused clearly."""

import warnings

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import PredefinedSplit, cross_val_predict

from unflip import (
    ImportanceReweightingClassifier,
    LabelAudit,
    LabelNoiseWarning,
    TransitionMatrix,
    flip_labels,
)

pytestmark = pytest.mark.filterwarnings("ignore::unflip.LabelNoiseWarning")


def table(n_classes=4, n_rows=400, distance=4.0, seed=0):
    """Return Gaussian classes with noisy labels, and the true ones."""
    rng = np.random.default_rng(seed)
    y = np.concatenate([np.arange(n_classes), rng.integers(0, n_classes, n_rows - n_classes)])
    X = (distance * rng.normal(size=(n_classes, 5)))[y] + rng.normal(size=(n_rows, 5))
    return X, flip_labels(y, TransitionMatrix.uniform(n_classes, 0.2), random_state=seed), y


def classifier(**parameters):
    return ImportanceReweightingClassifier(LogisticRegression(max_iter=2000), **parameters)


def fitted(X, y):
    clf = classifier(random_state=0).fit(X, y)
    assert np.isfinite(clf.transition_matrix_).all()
    assert np.isfinite(clf.mislabel_proba_).all()
    low, high = clf.label_error_range_
    assert 0 <= low <= high <= 1
    return clf


@pytest.fixture(scope="module")
def plain():
    """The classifier fitted to the table as it is, once: not to be changed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LabelNoiseWarning)
        X, given, _ = table()
        return fitted(X, given)


def test_26_classes_with_one_of_five_rows():
    X, _, y = table(26, 300, distance=3.0)
    kept = np.setdiff1d(np.arange(y.size), np.flatnonzero(y == 3)[5:])
    clf = fitted(X[kept], y[kept])
    assert clf.score(X, y) > 0.9
    flips = clf.rate_estimator_.interval_.flip_rates
    assert flips[3, 1] == flips[:, 1].max()  # the class of which least is known
    assert flips[3, 1] > 0.3


def test_a_class_missing_from_a_fold():
    X, given, y = table()
    given = given.copy()
    given[:3], given[3:] = 9, np.where(given[3:] == 9, 0, given[3:])
    half = np.arange(given.size) < given.size // 2
    predicted = cross_val_predict(classifier(), X, given, cv=PredefinedSplit(half))
    assert np.mean(predicted[half] == y[half]) > 0.8
    assert 9 not in predicted[half]  # its rows are all in the other fold
    with pytest.raises(ValueError, match="9"):
        classifier(posterior="probabilistic", cv=5).fit(X, given)  # the noise model needs no folds


@pytest.mark.parametrize("kind", ["strings", "objects", "floats"])
def test_the_kind_of_labels_changes_nothing(plain, kind):
    X, given, _ = table()
    names = {
        "strings": np.array(["ant", "bee", "cat", "dog"]),
        "objects": np.array(["ant", "bee", "cat", "dog"], dtype=object),
        "floats": np.array([-1.0, 0.0, 2.0, 7.0]),
    }[kind]
    named = fitted(X, names[given])
    assert named.transition_matrix_ == pytest.approx(plain.transition_matrix_)
    assert (named.predict(X) == names[plain.predict(X)]).all()


@pytest.mark.parametrize("kind", ["sparse", "float32", "constant", "lists"])
def test_the_kind_of_rows_changes_little(plain, kind):
    X, given, y = table()
    rows = {
        "sparse": csr_array(X),
        "float32": X.astype(np.float32),
        "constant": np.column_stack([X, np.full(len(X), 7.0)]),
        "lists": X.tolist(),
    }[kind]
    other = fitted(rows, given)
    assert other.transition_matrix_ == pytest.approx(plain.transition_matrix_, abs=0.03)
    assert np.mean(other.predict(rows) == y) > 0.9


def test_copies_of_rows_are_no_evidence():
    X, given, _ = table()
    plain = fitted(X, given).rate_estimator_.interval_
    copies = fitted(np.repeat(X, 3, axis=0), np.repeat(given, 3)).rate_estimator_.interval_
    widths = [np.mean(each.high - each.low) for each in (plain, copies)]
    assert widths[1] > 0.8 * widths[0]


def test_perfectly_separated_classes():
    X, _, y = table(6, 300, distance=20.0)
    clf = fitted(X, y)
    assert clf.score(X, y) == 1
    assert np.diag(clf.transition_matrix_).min() > 0.97
    given = flip_labels(y, TransitionMatrix.pair_flip(6, 0.3), random_state=0)
    noisy = fitted(X, given)
    assert noisy.score(X, y) > 0.97
    assert np.diag(noisy.transition_matrix_).mean() == pytest.approx(0.7, abs=0.08)


def test_fewer_rows_than_can_be_checked():
    X, given, _ = table(3, 30)
    clf = fitted(X, given)
    assert clf.posterior_.check_.statistic == 0
    assert clf.label_error_range_[1] > 0.1


def test_an_audit_of_many_classes_finds_flips():
    X, given, y = table(8, 500)
    audit = LabelAudit(random_state=0).fit(X, given)
    assert roc_auc_score(given != y, audit.mislabel_proba_) > 0.95
