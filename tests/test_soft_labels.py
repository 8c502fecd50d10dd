"""weighting="relabel": every row trains with every class at the weight of its probability."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from unflip import ImportanceReweightingClassifier, TransitionMatrix, flip_labels


class Recorder(DecisionTreeClassifier):
    """Keeps what it is fitted to."""

    def fit(self, X, y, sample_weight=None):
        self.rows, self.labels, self.weight = X, y, sample_weight
        return super().fit(X, y, sample_weight)


def data(n_classes=3, n_rows=600):
    rng = np.random.default_rng(0)
    y = rng.integers(0, n_classes, n_rows)
    return 3 * np.eye(n_classes)[y] + rng.normal(size=(n_rows, n_classes)), y


def label_posterior(clf, noise, codes):
    """Return P(true | x, observed label) by Bayes' rule."""
    joint = noise.clean_posterior(clf.noisy_proba_) * noise.matrix[:, codes].T
    return joint / joint.sum(axis=1, keepdims=True)


def test_rows_are_repeated_with_their_probabilities_as_weights_and_copies_are_bounded():
    X, y = data(12, 1200)
    noise = TransitionMatrix.uniform(12, 0.3)
    noisy = flip_labels(y, noise, random_state=0)
    own = np.random.default_rng(1).uniform(0.5, 2, len(y))
    X[:, 0] = np.arange(len(y)) / 1e6 + X[:, 0].round(2)  # tells which row it is
    clf = ImportanceReweightingClassifier(Recorder(), noise_rates=noise, weighting="relabel")
    model = clf.fit(X, noisy, own).estimator_
    place = {value: k for k, value in enumerate(X[:, 0])}
    rows = np.array([place[value] for value in model.rows[:, 0]])
    assert np.bincount(rows, model.weight) == pytest.approx(own)
    assert 1 < np.bincount(rows).max() <= 9
    assert set(model.labels) == set(range(12))
    soft = label_posterior(clf, noise, noisy)[rows, model.labels]
    # what is left out is shared out among the copies
    assert np.corrcoef(soft, model.weight / own[rows])[0, 1] > 0.99


def test_it_is_the_same_as_to_repeat_all_rows_for_all_classes():
    X, y = data()
    noise = TransitionMatrix.pair_flip(3, 0.3)
    noisy = flip_labels(y, noise, random_state=0)
    model = LogisticRegression()
    clf = ImportanceReweightingClassifier(model, noise_rates=noise, weighting="relabel")
    soft = label_posterior(clf.fit(X, noisy), noise, noisy)
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
