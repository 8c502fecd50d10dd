"""Which mistakes explain the labels, by evidence."""

import copy
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import check_grad
from scipy.special import softmax
from sklearn.metrics import roc_auc_score

from unflip import LabelAudit, TransitionMatrix, flip_labels
from unflip._probabilities import hypotheses, label_errors
from unflip._probabilities.hypotheses import (
    Explanation,
    FittedRows,
    centred_logs,
    fit_alike,
    fit_by_class,
)
from unflip._probabilities.label_errors import fit_mistakes
from unflip._utils.simplex import likeliest_mixture

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


def test_explanations_count_as_a_hundred_rows_would_have_it_and_junk_by_its_own_odds():
    found = label_errors._weights(
        np.array([-500.0, -530.0, -499.0]),
        np.array([0.5, 0.0, 0.0]),
        np.array([False, False, True]),
        1000.0,
    )
    junk = 1 / (1 + np.exp(-1.0))
    first = 1 / (1 + np.exp(-(30 / 10 - label_errors.NO_SURE_ROWS / 2)))
    np.testing.assert_allclose(found, [(1 - junk) * first, (1 - junk) * (1 - first), junk])


def test_mistakes_everywhere_are_told_from_overlap_everywhere():
    # a third of the labels is wrong, or normal classes are so near that as many look it
    rng = np.random.default_rng(3)
    true = rng.integers(0, 2, 4000)
    near = rng.normal(0.42 * (2 * true - 1), 1.0)
    overlap = 1 / (1 + np.exp(-0.84 * near))
    said = LabelAudit().fit_posterior(np.c_[1 - overlap, overlap], true).n_errors_ / 4000
    assert said < 0.5 * np.mean((overlap > 0.5) != true)
    clear = rng.normal(6.0, 2.0, 4000) * (2 * true - 1)
    given = np.where(rng.random(4000) < 0.35, 1 - true, true)
    noisy = 0.35 + 0.3 / (1 + np.exp(-clear))
    found = LabelAudit().fit_posterior(np.c_[1 - noisy, noisy], given)
    assert found.n_errors_ / 4000 == pytest.approx(0.35, rel=0.2)


def test_blame_says_the_share_that_is_likely():
    clean, true, rng = beliefs(2000, 4, seed=13, sharp=0.2)
    sample = FittedRows(centred_logs(clean), true, np.ones(2000))
    one = Explanation(sample.noise(0.02), 1.0, np.zeros(4))
    believed, _ = one.beliefs(sample.logs, sample.shares)
    sharp = believed**2 / np.sum(believed**2, axis=1, keepdims=True)
    doubt, sharp_doubt = (np.mean(1 - rows[sample.own]) for rows in (believed, sharp))
    least = hypotheses.LEAST_BLAME
    by_noise = np.mean(1 - one.label_posterior(believed, true)[0][sample.own])
    by_noise = (by_noise - least * doubt) / (1 - least)
    for likely in rng.uniform(by_noise, sharp_doubt, 5):
        blame = label_errors._blame_for(likely, by_noise, doubt, sharp_doubt)
        found, _ = replace(one, blame=blame).label_posterior(believed, true)
        said = (np.mean(1 - found[sample.own]) - least * doubt) / (1 - least)
        assert said == pytest.approx(likely)
    assert label_errors._blame_for(by_noise / 2, by_noise, doubt, sharp_doubt) == 0


def test_noise_of_one_rate_is_told_from_noise_by_class():
    clean, true, _ = beliefs(3000, 4, seed=1)
    for noise, n_rates in ((TransitionMatrix.uniform(4, 0.2), 1), (SPARSE, 12)):
        given = np.asarray(flip_labels(true, noise, random_state=1))
        found = fit_mistakes(noise.noisy_posterior(clean), given)
        best = found.explanations[int(np.argmax(found.weights))]
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
    assert by_weight.weights[0] == pytest.approx(by_rows.weights[0], abs=0.01)


def test_of_many_rows_some_are_drawn_and_of_many_classes_no_full_matrix_is_fitted(monkeypatch):
    clean, true, _ = beliefs(3000, 4, seed=5)
    noise = TransitionMatrix.uniform(4, 0.2)
    given = np.asarray(flip_labels(true, noise, random_state=0))
    noisy = noise.noisy_posterior(clean)
    whole = fit_mistakes(noisy, given).apply(noisy, given).mislabel_proba
    monkeypatch.setattr(label_errors, "FITTED", 4000)
    drawn = fit_mistakes(noisy, given).apply(noisy, given).mislabel_proba
    assert np.corrcoef(whole, drawn)[0, 1] > 0.95
    monkeypatch.setattr(label_errors, "MANY_CLASSES", 3)
    assert len(fit_mistakes(noisy, given).explanations) == 1


def test_the_label_posterior_is_bayes_rule_but_for_what_is_blamed_on_labels():
    rng = np.random.default_rng(0)
    p, matrix = rng.dirichlet(np.ones(3), 50), rng.dirichlet(np.ones(3), 3)
    codes, shift = rng.integers(0, 3, 50), np.array([0.4, 0.0, -0.4])
    least = hypotheses.LEAST_BLAME
    for blame in (0.0, 0.3):
        one = Explanation(matrix, 1.5, shift, blame=blame)
        r, _ = one.beliefs(one.logs(p), np.full(3, 1 / 3))
        np.testing.assert_allclose(r, softmax(1.5 * np.log(p) + shift, axis=1))
        found, given = one.label_posterior(r, codes)
        for i, y in enumerate(codes):
            # the model's own word; as far as blame is sure, that of two such witnesses, without
            # the frequencies of labels that are doubted
            joint, sharp = r[i] * matrix[:, y], p[i] ** 3 / np.sum(p[i] ** 3)
            of_labels = (1 - blame) * joint / joint.sum()
            of_labels += blame * ((1 - blame) * r[i] + blame * sharp)
            np.testing.assert_allclose(found[i], (1 - least) * of_labels + least * r[i])
            assert given[i] == pytest.approx(joint.sum())


@pytest.mark.parametrize("junk", [False, True])
@pytest.mark.parametrize("fit", ["alike", "by_class"])
def test_slopes_are_those_of_the_likelihood(monkeypatch, fit, junk):
    clean, true, rng = beliefs(60, 3, seed=6, sharp=0.7)
    sample = FittedRows(centred_logs(clean), true, rng.uniform(0.5, 2, 60))
    seen = []

    def check(loss, start):
        at = start + rng.normal(0, 0.3, start.size)
        seen.append(check_grad(lambda x: loss(x)[0], lambda x: loss(x)[1], at))
        return start

    monkeypatch.setattr(hypotheses, "_minimum", check)
    start = Explanation(sample.noise(0.2), 1.5, np.zeros(3))
    if fit == "alike":
        fit_alike(sample, start, junk=junk)
    else:
        fit_by_class(sample, 0.1, start, junk=junk)
    assert max(seen) < 1e-5


def test_evidence_of_sure_rows_is_that_of_counts(monkeypatch):
    # where beliefs are sure, labels are draws from rows of T, whose evidence is a closed form
    rng = np.random.default_rng(0)
    true = rng.integers(0, 3, 600)
    given = np.asarray(flip_labels(true, TransitionMatrix.uniform(3, 0.3), random_state=0))
    sure = np.full((600, 3), 1e-12)
    sure[np.arange(600), true] = 1.0
    monkeypatch.setattr(hypotheses, "FLOOR", 1e-12)
    sample = FittedRows(centred_logs(sure), given, np.ones(600))
    found = fit_by_class(sample, 0.3, Explanation(sample.noise(0.3), 1.0, np.zeros(3)))
    prior = 2 * sample.noise(0.3)
    expected = 0.0
    for k in range(3):
        seen = np.zeros(3)  # Polya's urn, label by label
        for label in given[true == k]:
            expected += np.log((prior[k, label] + seen[label]) / (prior[k].sum() + seen.sum()))
            seen[label] += 1
    assert found.evidence == pytest.approx(expected, abs=0.5)


def with_junk(n_rows, n_classes, seed, share=0.15):
    """Nearly sure probabilities and right labels, but for flat rows that are labelled at random."""
    clean, true, rng = beliefs(n_rows, n_classes, seed, sharp=0.03)
    junk = rng.random(n_rows) < share
    clean[junk] = rng.dirichlet(np.full(n_classes, 3.0), int(junk.sum()))
    given = np.where(junk, rng.integers(0, n_classes, n_rows), true)
    return clean, given, junk


@pytest.mark.parametrize("n_classes", [4, 10, 20])
def test_flat_rows_labelled_at_random_are_of_no_class(n_classes):
    clean, given, junk = with_junk(3000, n_classes, seed=7)
    applied = fit_mistakes(clean, given).apply(clean, given)
    assert roc_auc_score(junk, applied.none_proba) > 0.97
    assert applied.none_proba.sum() == pytest.approx(junk.sum(), rel=0.4)
    assert (applied.none_proba <= applied.mislabel_proba + 1e-12).all()
    own = clean[np.arange(3000), given]
    assert roc_auc_score(junk, applied.mislabel_proba) > roc_auc_score(junk, -own) + 0.005
    np.testing.assert_allclose(applied.proba.sum(axis=1), 1)
    right = (1 - applied.none_proba) * applied.proba[np.arange(3000), given]
    np.testing.assert_allclose(applied.mislabel_proba, 1 - right, atol=1e-9)


@pytest.mark.parametrize("sharp", [0.1, 0.5])
def test_rows_between_classes_are_not_of_no_class(sharp):
    clean, true, _ = beliefs(4000, 6, seed=8, sharp=sharp)
    for given in (true, np.asarray(flip_labels(true, TransitionMatrix.uniform(6, 0.2)))):
        assert fit_mistakes(clean, given).apply(clean, given).none_proba.max() < 0.05


def test_the_surest_rows_tell_mistakes_from_overlap():
    # the same overlap, without mistakes and with some that are likelier where rows are hard
    clean, true, rng = beliefs(6000, 5, seed=9, sharp=0.1)
    doubt = 1 - clean.max(axis=1)
    struck = rng.random(6000) < 0.04 + 0.3 * doubt
    mistaken = np.where(struck, rng.integers(0, 5, 6000), true)
    by_labels = {
        name: LabelAudit().fit_posterior(clean, given).n_errors_ / 6000
        for name, given in (("right", true), ("mistaken", mistaken))
    }
    assert by_labels["right"] < 0.03
    assert by_labels["mistaken"] == pytest.approx(np.mean(mistaken != true), rel=0.6)


def test_right_labels_of_a_weak_model_are_mostly_believed():
    for sharp in (0.2, 0.3):  # where the model disagrees with a quarter and a third of the labels
        clean, true, _ = beliefs(4000, 5, seed=9, sharp=sharp)
        audit = LabelAudit().fit_posterior(clean, true)
        assert audit.n_errors_ / 4000 < 0.4 * np.mean(clean.argmax(axis=1) != true)
        assert audit.rate_estimator_.interval_.wrong_share[0] == 0


def test_a_share_that_rests_on_blame_is_called_a_guess():
    clean, true, _ = beliefs(2000, 4, seed=14, sharp=0.3)
    weak = LabelAudit().fit_posterior(clean, true)
    assert any("is a guess" in doubt for doubt in weak.diagnostics_)
    sure, true, _ = beliefs(2000, 4, seed=15, sharp=0.01)
    noise = TransitionMatrix.uniform(4, 0.2)
    given = np.asarray(flip_labels(true, noise, random_state=0))
    assert not LabelAudit().fit_posterior(noise.noisy_posterior(sure), given).diagnostics_


@pytest.mark.slow
def test_intervals_hold_the_rates_and_narrow_with_rows():
    noise = TransitionMatrix.uniform(4, 0.2)
    widths = []
    for n_rows in (1000, 3000):
        clean, true, _ = beliefs(n_rows, 4, seed=10)
        given = np.asarray(flip_labels(true, noise, random_state=0))
        found = LabelAudit().fit_posterior(noise.noisy_posterior(clean), given)
        interval = found.rate_estimator_.interval_
        assert np.mean((interval.low <= noise.matrix) & (noise.matrix <= interval.high)) > 0.8
        low, high = interval.wrong_share
        assert low <= np.mean(given != true) <= high
        assert found.rate_estimator_.interval(0.5).wrong_share[0] >= low
        widths.append((interval.high - interval.low).mean())
    assert widths[1] < widths[0]


def test_two_classes_have_rates_with_intervals():
    noise = TransitionMatrix([[0.9, 0.1], [0.3, 0.7]])
    clean, true, _ = beliefs(4000, 2, seed=11)
    given = np.asarray(flip_labels(true, noise, random_state=0))
    audit = LabelAudit().fit_posterior(noise.noisy_posterior(clean), given)
    interval = audit.rate_estimator_.interval_
    (p_low, p_high), (n_low, n_high) = interval.both()
    assert p_low <= 0.3 <= p_high
    assert n_low <= 0.1 <= n_high
    assert not audit.none_proba_.any()
    with pytest.raises(ValueError, match="fit_posterior"):
        audit.rate_estimator_.fit(clean, given)


def test_no_interval_has_zero_width_even_where_every_label_is_sure():
    codes = np.arange(300) % 3
    sure = np.full((300, 3), 0.01)
    sure[np.arange(300), codes] = 0.98
    with pytest.warns(UserWarning, match="repeats their mistakes"):
        interval = LabelAudit().fit_posterior(sure, codes).rate_estimator_.interval_
    assert (interval.high > interval.low).all()
    low, high = interval.wrong_share
    assert high > low


def test_the_order_of_rows_does_not_matter_nor_does_copying():
    clean, true, rng = beliefs(1000, 4, seed=12)
    noise = TransitionMatrix.uniform(4, 0.2)
    given = np.asarray(flip_labels(true, noise, random_state=0))
    noisy, order = noise.noisy_posterior(clean), rng.permutation(1000)
    one = LabelAudit().fit_posterior(noisy, given)
    two = LabelAudit().fit_posterior(noisy[order], given[order])
    np.testing.assert_allclose(one.mislabel_proba_[order], two.mislabel_proba_, atol=1e-6)
    again = copy.deepcopy(one)
    assert again.rate_estimator_.interval_.wrong_share == one.rate_estimator_.interval_.wrong_share


def test_noise_is_taken_out_exactly_where_it_can_be_and_by_likelihood_elsewhere():
    rng = np.random.default_rng(0)
    clean, matrix = rng.dirichlet(np.full(4, 2.0), 200) * 0.9 + 0.025, SPARSE.matrix
    np.testing.assert_allclose(hypotheses.taken_out(clean @ matrix, matrix), clean, atol=1e-9)
    outside = rng.dirichlet(np.full(4, 0.3), 200)
    found = hypotheses.taken_out(outside, matrix)
    np.testing.assert_allclose(found.sum(axis=1), 1)
    best = likeliest_mixture(outside, matrix)

    def fit(q):
        return np.sum(outside * np.log(q @ matrix), axis=1)

    assert (fit(found) <= fit(best) + 1e-6).all()
    assert np.mean(fit(best) - fit(found)) < 0.02


def test_a_label_that_neither_noise_nor_model_can_give_stays_ruled_out():
    matrix = np.array([[0.9, 0.1, 0.0], [0.1, 0.9, 0.0], [0.0, 0.0, 1.0]])
    clean = np.array([[0.7, 0.3, 0.0], [0.2, 0.8, 0.0]])
    np.testing.assert_allclose(hypotheses.taken_out(clean @ matrix, matrix), clean, atol=1e-3)


def test_odds_of_no_class_rise_with_how_unusually_flat_a_row_is():
    shares, usual = np.full(4, 0.25), 0.2
    p = np.array([[0.97, 0.01, 0.01, 0.01], [0.7, 0.1, 0.1, 0.1], [0.4, 0.2, 0.2, 0.2]])
    one = Explanation(np.eye(4), 1.0, np.zeros(4), junk=3.0, usual=usual)
    _, none = one.beliefs(one.logs(p), shares)
    flat = np.exp(np.log(p / shares).mean(axis=1))
    unusual = (flat - usual) / (1 - usual)
    assert none[0] == 0
    np.testing.assert_allclose((none / (1 - none))[1:], (3 * unusual / (1 - unusual))[1:])
