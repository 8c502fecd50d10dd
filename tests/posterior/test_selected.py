"""The posterior that held-out noisy labels choose."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

from unflip.posterior import SelectedPosterior, fit_posterior, make_posterior


@pytest.fixture(scope="module")
def line():
    """Three classes along a line, where neighbours know more than one linear score."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, size=(300, 2))
    blurred = np.abs(X[:, 0]) + rng.normal(0, 0.5, 300)
    return X, np.array(["a", "b", "c"])[np.digitize(blurred, [1, 2])]


def test_the_candidate_of_the_highest_held_out_likelihood_is_taken(line):
    X, y = line
    candidates = [DummyClassifier(), KNeighborsClassifier(15), DecisionTreeClassifier()]
    fitted = SelectedPosterior(candidates, random_state=0).fit(X, y)
    assert isinstance(fitted.posterior_.estimator, KNeighborsClassifier)
    assert np.argmax(fitted.scores_) == 1
    shares = np.unique(y, return_counts=True)[1] / y.size
    assert fitted.scores_[0] == pytest.approx((shares * np.log(shares)).sum(), abs=0.02)


def test_no_row_meets_its_own_label(line):
    X, y = line
    memory = SelectedPosterior([DecisionTreeClassifier(random_state=0)], random_state=0)
    noisy = np.random.default_rng(1).permutation(y)
    posterior, held_out = fit_posterior(memory, X, noisy, cv=5)
    codes = np.searchsorted(posterior.classes_, noisy)
    in_sample = posterior.predict_proba(X)[np.arange(300), codes]
    assert in_sample.mean() == 1
    assert held_out[np.arange(300), codes].mean() < 0.5


def test_many_rows_choose_on_a_sample(line):
    X, y = np.repeat(line[0], 4, axis=0), np.repeat(line[1], 4)
    choice = SelectedPosterior(max_rows=200, random_state=0).fit(X, y)
    assert choice.predict_proba(X).shape == (1200, 3)


def test_a_class_of_one_row_is_kept(line):
    X, y = line
    y = np.append(y[:-1], "rare")
    fitted = SelectedPosterior(random_state=0).fit(X, y)
    assert np.isnan(fitted.scores_).all()
    assert fitted.predict_proba(X).shape == (300, 4)


def test_sparse_rows_and_weights_are_taken(line):
    X, y = line
    weight = np.random.default_rng(0).integers(0, 3, 300)
    sparse = SelectedPosterior(random_state=0).fit(csr_matrix(X), y, weight)
    assert sparse.predict_proba(csr_matrix(X)).shape == (300, 3)


def test_auto_is_the_channel_and_this_is_made_by_its_name():
    assert type(make_posterior("auto")).__name__ == "ChannelPosterior"
    assert isinstance(make_posterior("selected"), SelectedPosterior)
    with pytest.raises(ValueError, match="candidates is empty"):
        SelectedPosterior([]).fit(np.zeros((12, 1)), [0, 1] * 6)
    kept = make_posterior(SelectedPosterior([LogisticRegression()]))
    assert len(kept.candidates) == 1


def test_folds_of_ones_own_fit_the_classifier_that_all_rows_chose(line):
    X, y = line
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    chosen = SelectedPosterior([DummyClassifier(), KNeighborsClassifier(15)], random_state=0)
    fitted, held_out = fit_posterior(chosen, X, y, cv=folds)
    by_hand = cross_val_predict(
        KNeighborsClassifier(15), X, y, cv=folds.split(X, y), method="predict_proba"
    )
    np.testing.assert_allclose(held_out, by_hand)
    assert type(fitted.for_folds()).__name__ == "ProbabilisticPosterior"
