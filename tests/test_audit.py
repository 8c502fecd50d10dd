"""P(the label is wrong), the suggested label, and which rows to look at."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier

from unflip import NoiseRates, TransitionMatrix, flip_labels
from unflip.audit import LabelAudit, find_label_issues

RATES = NoiseRates(positive=0.3, negative=0.1)


def overlapping(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Two Gaussians two standard deviations apart, for which logistic regression is right."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    return rng.normal(np.sqrt(2) * y[:, None], 1.0, (n, 2)), y


def three_classes(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    corners = np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 4.0]])
    return rng.normal(corners[y], 1.0), np.array(["a", "b", "c"])[y]


class OraclePosterior:
    """P(noisy | x) of `overlapping` under RATES, exactly."""

    @staticmethod
    def clean(X: np.ndarray) -> np.ndarray:
        return 1 / (1 + np.exp(-np.sqrt(2) * (X.sum(axis=1) - np.sqrt(2))))


def calibration_error(probability: np.ndarray, wrong: np.ndarray, bins: int = 10) -> float:
    edges = np.quantile(probability, np.linspace(0, 1, bins + 1)[1:-1])
    group = np.searchsorted(edges, probability)
    gaps = [
        abs(probability[group == k].mean() - wrong[group == k].mean()) * np.mean(group == k)
        for k in np.unique(group)
    ]
    return float(np.sum(gaps))


def test_the_probability_is_bayes_rule_in_the_population():
    X, y = overlapping(20_000)
    y_noisy = flip_labels(y, RATES, random_state=0)
    clean = OraclePosterior.clean(X)
    noisy = RATES.noisy_posterior(clean)
    # P(true=0 | x, noisy=1) and P(true=1 | x, noisy=0), written out
    wrong = np.where(y_noisy == 1, 0.1 * (1 - clean) / noisy, 0.3 * clean / (1 - noisy))
    audit = LabelAudit(LogisticRegression(), RATES, random_state=0).fit(X, y_noisy)
    # the noisy posterior is not logistic, so the agreement is that of a good approximation
    assert np.mean(np.abs(audit.mislabel_proba_ - wrong)) < 0.06


def test_known_rates_give_calibrated_probabilities():
    X, y = overlapping(20_000)
    y_noisy = flip_labels(y, RATES, random_state=0)
    audit = LabelAudit(noise_rates=RATES, random_state=0).fit(X, y_noisy)
    assert calibration_error(audit.mislabel_proba_, y_noisy != y) < 0.05
    assert_allclose(audit.n_errors_, np.sum(y_noisy != y), rtol=0.25)


def test_suggested_labels_are_right_more_often_than_the_given_ones():
    X, y = overlapping(4000)
    y_noisy = flip_labels(y, RATES, random_state=0)
    audit = LabelAudit(noise_rates=RATES, random_state=0).fit(X, y_noisy)
    assert np.mean(audit.suggested_label_ == y) > np.mean(y_noisy == y) + 0.03


def test_a_suggestion_differs_exactly_where_the_label_is_probably_wrong():
    X, y = overlapping(2000)
    y_noisy = flip_labels(y, RATES, random_state=0)
    audit = LabelAudit(noise_rates=RATES, random_state=0).fit(X, y_noisy)
    differs = audit.suggested_label_ != y_noisy
    assert_array_equal(differs, audit.mislabel_proba_ > 0.5)


def test_three_classes_are_corrected_through_the_matrix():
    X, y = three_classes(6000)
    noise = TransitionMatrix.pair_flip(3, 0.3)
    y_noisy = flip_labels(y, noise, random_state=0)
    # neighbours see the plateaus that noise makes, which a linear model has not
    audit = LabelAudit(KNeighborsClassifier(100), noise, random_state=0).fit(X, y_noisy)
    assert np.mean(audit.suggested_label_ == y) > 0.95
    assert audit.clean_proba_.shape == (6000, 3)
    assert_allclose(audit.clean_proba_.sum(axis=1), 1)
    assert_allclose(audit.transition_matrix_, noise.matrix)
    worst = audit.issues(precision=0.9)
    assert np.mean(y_noisy[worst] != y[worst]) > 0.85


def test_no_noise_means_no_suspects():
    X, y = overlapping(1000)
    audit = LabelAudit(noise_rates=NoiseRates(0.0, 0.0), random_state=0).fit(X, y)
    assert not audit.mislabel_proba_.any()
    assert audit.issues().size == 0
    assert_array_equal(audit.suggested_label_, y)


def test_the_cut_off_has_the_expected_precision():
    X, y = overlapping(4000)
    y_noisy = flip_labels(y, RATES, random_state=0)
    audit = LabelAudit(noise_rates=RATES, random_state=0).fit(X, y_noisy)
    rows = audit.issues(precision=0.7)
    p = audit.mislabel_proba_
    assert p[rows].mean() >= 0.7
    longer = np.argsort(-p, kind="stable")[: rows.size + 1]
    assert p[longer].mean() < 0.7
    assert np.all(np.diff(p[rows]) <= 0)


def test_the_default_cut_off_is_the_expected_number_of_errors():
    X, y = overlapping(1000)
    y_noisy = flip_labels(y, RATES, random_state=0)
    audit = LabelAudit(noise_rates=RATES, random_state=0).fit(X, y_noisy)
    assert audit.issues().size == round(audit.mislabel_proba_.sum())
    assert audit.issues(n=7).size == 7
    assert_array_equal(
        find_label_issues(X, y_noisy, noise_rates=RATES, random_state=0), audit.issues()
    )


@pytest.mark.parametrize("arguments", [{"precision": 0}, {"precision": 1.2}, {"n": -1}])
def test_impossible_cut_offs_are_refused(arguments):
    X, y = overlapping(100)
    audit = LabelAudit(noise_rates=RATES, random_state=0).fit(X, flip_labels(y, RATES, 0))
    with pytest.raises(ValueError, match=next(iter(arguments))):
        audit.issues(**arguments)
    with pytest.raises(ValueError, match="not both"):
        audit.issues(precision=0.5, n=3)


def test_the_audit_repeats_itself_and_is_cloned_and_pickled():
    X, y = overlapping(300)
    y_noisy = flip_labels(y, RATES, random_state=0)
    audit = LabelAudit(noise_rates=RATES, random_state=3).fit(X, y_noisy)
    again = clone(audit).fit(X, y_noisy)
    restored = pickle.loads(pickle.dumps(audit))  # noqa: S301
    assert_array_equal(audit.mislabel_proba_, again.mislabel_proba_)
    assert_array_equal(audit.issues(), restored.issues())


def noisy_sample():
    X, y = overlapping(600)
    return X, flip_labels(y, RATES, random_state=0)


def test_probabilities_from_elsewhere_give_the_same_audit():
    X, y = noisy_sample()
    audit = LabelAudit("probabilistic", RATES, random_state=0).fit(X, y)
    again = LabelAudit(noise_rates=RATES).fit_posterior(audit.noisy_proba_, y)
    assert_array_equal(again.mislabel_proba_, audit.mislabel_proba_)
    assert_array_equal(again.issues(), audit.issues())


def test_rates_are_read_off_probabilities_where_none_are_given():
    X, y = noisy_sample()
    audit = LabelAudit("probabilistic", "selective", random_state=0).fit(X, y)
    again = LabelAudit(noise_rates="selective").fit_posterior(audit.noisy_proba_, y)
    assert again.noise_rates_ == audit.noise_rates_
    with pytest.raises(ValueError, match="only probabilities"):
        LabelAudit(noise_rates="channel").fit_posterior(audit.noisy_proba_, y)
    with pytest.raises(ValueError, match=r"has shape \(10, 2\), expected"):
        LabelAudit().fit_posterior(audit.noisy_proba_[:10], y)
