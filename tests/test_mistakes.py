"""Which mistakes explain the labels, by evidence."""

import numpy as np
import pytest
from scipy.optimize import check_grad
from sklearn.metrics import roc_auc_score

from unflip import TransitionMatrix, flip_labels
from unflip import _mistakes as module
from unflip._mistakes import Explanation, fit_mistakes

SPARSE = TransitionMatrix(
    [[0.6, 0.4, 0.0, 0.0], [0.0, 0.9, 0.1, 0.0], [0.0, 0.0, 1.0, 0.0], [0.3, 0.0, 0.0, 0.7]]
)


def beliefs(n_rows, n_classes, seed, sharp=0.1):
    rng = np.random.default_rng(seed)
    clean = rng.dirichlet(np.full(n_classes, sharp), n_rows)
    true = (clean.cumsum(axis=1) > rng.uniform(size=n_rows)[:, None]).argmax(axis=1)
    return clean, true, rng


@pytest.mark.parametrize("noise", [TransitionMatrix.uniform(4, 0.2), SPARSE])
def test_random_flips_are_found_and_their_number(noise):
    clean, true, _ = beliefs(4000, 4, seed=0)
    given = np.asarray(flip_labels(true, noise, random_state=0))
    noisy = noise.noisy_posterior(clean)
    found = fit_mistakes(noisy, given)
    applied = found.apply(noisy, given)
    wrong = given != true
    assert np.abs(found.matrix - noise.matrix).sum(axis=1).mean() / 2 < 0.08
    assert applied.mislabel_proba.sum() == pytest.approx(wrong.sum(), rel=0.25)
    # nearly as well as Bayes's rule with all that is known
    rows = np.arange(4000), given
    exact = 1 - (clean * noise.matrix.T[given])[rows] / noise.noisy_posterior(clean)[rows]
    assert roc_auc_score(wrong, applied.mislabel_proba) > roc_auc_score(wrong, exact) - 0.02


def test_noise_of_one_rate_is_told_from_noise_by_class():
    clean, true, _ = beliefs(3000, 4, seed=1)
    for noise, n_rates in ((TransitionMatrix.uniform(4, 0.2), 1), (SPARSE, 12)):
        given = np.asarray(flip_labels(true, noise, random_state=1))
        found = fit_mistakes(noise.noisy_posterior(clean), given)
        best = found.explanations[int(np.argmax(found.shares))]
        off = best.matrix[~np.eye(4, dtype=bool)].reshape(4, 3).sum(axis=1)
        assert (np.ptp(off) < 1e-9) == (n_rates == 1)


def test_clean_labels_of_overlapping_classes_are_never_called_surely_wrong():
    clean, true, _ = beliefs(3000, 4, seed=2, sharp=0.5)
    applied = fit_mistakes(clean, true).apply(clean, true)
    assert np.mean(applied.mislabel_proba > 0.9) < 0.005
    low, _ = fit_mistakes(clean, true).expected
    assert low == 0


def test_probabilities_are_recalibrated():
    clean, true, _ = beliefs(4000, 4, seed=3)
    noise = TransitionMatrix.uniform(4, 0.1)
    given = np.asarray(flip_labels(true, noise, random_state=0))
    timid = noise.noisy_posterior(clean) ** 0.4
    timid /= timid.sum(axis=1, keepdims=True)
    rows = np.arange(4000)
    before = np.log(timid[rows, given]).mean()
    after = np.log(fit_mistakes(timid, given).apply(timid, given).given).mean()
    assert after > before + 0.05


def test_weights_are_repetitions():
    clean, true, rng = beliefs(500, 3, seed=4)
    noise = TransitionMatrix.uniform(3, 0.2)
    given = np.asarray(flip_labels(true, noise, random_state=0))
    noisy = noise.noisy_posterior(clean)
    weight = rng.integers(0, 3, 500)
    repeated = np.repeat(np.arange(500), weight)
    by_weight = fit_mistakes(noisy, given, weight.astype(float))
    by_rows = fit_mistakes(noisy[repeated], given[repeated])
    np.testing.assert_allclose(by_weight.matrix, by_rows.matrix, atol=1e-3)
    assert by_weight.shares[0] == pytest.approx(by_rows.shares[0], abs=0.01)


def test_of_many_rows_some_are_drawn_and_of_many_classes_no_full_matrix_is_fitted(monkeypatch):
    clean, true, _ = beliefs(3000, 4, seed=5)
    noise = TransitionMatrix.uniform(4, 0.2)
    given = np.asarray(flip_labels(true, noise, random_state=0))
    noisy = noise.noisy_posterior(clean)
    whole = fit_mistakes(noisy, given).apply(noisy, given).mislabel_proba
    monkeypatch.setattr(module, "FITTED", 4000)
    drawn = fit_mistakes(noisy, given).apply(noisy, given).mislabel_proba
    assert np.corrcoef(whole, drawn)[0, 1] > 0.95
    monkeypatch.setattr(module, "MANY_CLASSES", 3)
    assert len(fit_mistakes(noisy, given).explanations) == 1


def test_the_label_posterior_is_bayes_rule():
    rng = np.random.default_rng(0)
    r, matrix = rng.dirichlet(np.ones(3), 50), rng.dirichlet(np.ones(3), 3)
    codes = rng.integers(0, 3, 50)
    for blame in (0.0, 0.3):
        found = Explanation(matrix, 1.0, np.zeros(3), blame=blame).label_posterior(r, codes)
        for i, y in enumerate(codes):
            joint = r[i] * matrix[:, y]
            np.testing.assert_allclose(found[i], (1 - blame) * joint / joint.sum() + blame * r[i])


@pytest.mark.parametrize("fit", ["alike", "by_class"])
def test_slopes_are_those_of_the_likelihood(monkeypatch, fit):
    clean, true, rng = beliefs(60, 3, seed=6)
    sample = module._FittedRows(module._logs(clean), true, rng.uniform(0.5, 2, 60))
    seen = []

    def check(loss, start):
        at = start + rng.normal(0, 0.3, start.size)
        seen.append(check_grad(lambda x: loss(x)[0], lambda x: loss(x)[1], at))
        return start

    monkeypatch.setattr(module, "_minimum", check)
    if fit == "alike":
        module._alike(sample)
    else:
        module._by_class(sample, 0.1, Explanation(sample.noise(0.2), 1.5, np.zeros(3)))
    assert max(seen) < 1e-5


def test_evidence_of_sure_rows_is_that_of_counts(monkeypatch):
    # where beliefs are sure, labels are draws from rows of T, whose evidence is a closed form
    rng = np.random.default_rng(0)
    true = rng.integers(0, 3, 600)
    given = np.asarray(flip_labels(true, TransitionMatrix.uniform(3, 0.3), random_state=0))
    sure = np.full((600, 3), 1e-12)
    sure[np.arange(600), true] = 1.0
    monkeypatch.setattr(module, "FLOOR", 1e-12)
    sample = module._FittedRows(module._logs(sure), given, np.ones(600))
    found = module._by_class(sample, 0.3, Explanation(sample.noise(0.3), 1.0, np.zeros(3)))
    prior = 2 * sample.noise(0.3)
    expected = 0.0
    for k in range(3):
        seen = np.zeros(3)  # Polya's urn, label by label
        for label in given[true == k]:
            expected += np.log((prior[k, label] + seen[label]) / (prior[k].sum() + seen.sum()))
            seen[label] += 1
    assert found.evidence == pytest.approx(expected, abs=0.5)
