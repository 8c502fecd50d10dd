"""weighting="relabel": every row trains with every class at the weight of its probability."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from unflip import ImportanceReweightingClassifier, TransitionMatrix, flip_labels
from unflip._utils.estimators import MOST_COPIES, fit_soft_labels
from unflip.weights import LabelPosterior


class Recorder(DecisionTreeClassifier):
    """Keeps what it is fitted to."""

    def fit(self, X, y, sample_weight=None):
        self.rows, self.labels, self.weight = X, y, sample_weight
        return super().fit(X, y, sample_weight)


def data(n_classes=3, n_rows=600):
    rng = np.random.default_rng(0)
    y = rng.integers(0, n_classes, n_rows)
    return 3 * np.eye(n_classes)[y] + rng.normal(size=(n_rows, n_classes)), y


def test_a_row_is_repeated_with_its_probabilities_as_weights():
    X = np.arange(3.0)[:, None]
    proba = np.array([[0.7, 0.3, 0.0], [0.0, 1.0, 0.0], [0.2, 0.2, 0.6]])
    model = fit_soft_labels(Recorder(), X, proba, np.array(["a", "b", "c"]))
    assert model.rows.ravel().tolist() == [0, 0, 1, 2, 2, 2]
    assert model.labels.tolist() == ["a", "b", "b", "a", "b", "c"]
    assert model.weight == pytest.approx([0.7, 0.3, 1.0, 0.2, 0.2, 0.6])


def test_weights_of_rows_are_shared_out_and_copies_are_bounded():
    proba = np.random.default_rng(0).dirichlet(np.ones(12), 200)
    weight = np.random.default_rng(1).uniform(0.5, 2, 200)
    X = np.arange(200.0)[:, None]
    model = fit_soft_labels(Recorder(), X, proba, np.arange(12), row_weight=weight)
    rows = model.rows.ravel().astype(int)
    assert np.bincount(rows, model.weight) == pytest.approx(weight)
    assert np.bincount(rows).max() <= MOST_COPIES + 1  # and one where a class would have no row
    assert set(model.labels) == set(range(12))


def test_it_is_the_same_as_to_repeat_all_rows_for_all_classes():
    X, y = data()
    noise = TransitionMatrix.pair_flip(3, 0.3)
    noisy = flip_labels(y, noise, random_state=0)
    clf = ImportanceReweightingClassifier(noise_rates=noise, weighting="relabel").fit(X, noisy)
    soft = LabelPosterior(clf.noisy_proba_, noisy, noise, np.arange(3)).proba
    by_hand = LogisticRegression().fit(
        np.repeat(X, 3, axis=0), np.tile(np.arange(3), len(X)), sample_weight=soft.ravel()
    )
    assert clf.predict_proba(X) == pytest.approx(by_hand.predict_proba(X), abs=0.02)


def test_more_than_two_classes_are_relabelled_and_two_are_reweighted_by_default():
    for n_classes, weighting in ((2, "rho"), (3, "relabel")):
        X, y = data(n_classes)
        noise = TransitionMatrix.uniform(n_classes, 0.2)
        noisy = flip_labels(y, noise, random_state=0)
        by_default = ImportanceReweightingClassifier(noise_rates=noise).fit(X, noisy)
        by_name = ImportanceReweightingClassifier(noise_rates=noise, weighting=weighting)
        assert by_default.predict_proba(X) == pytest.approx(by_name.fit(X, noisy).predict_proba(X))


def test_soft_labels_bring_accuracy_back():
    X, y = data(4, 2000)
    noisy = flip_labels(y, TransitionMatrix.pair_flip(4, 0.3), random_state=0)
    tree = DecisionTreeClassifier(min_samples_leaf=20, random_state=0)
    plain = tree.fit(X, noisy).score(X, y)
    clf = ImportanceReweightingClassifier(tree, weighting="relabel").fit(X, noisy)
    assert clf.score(X, y) > plain + 0.03
