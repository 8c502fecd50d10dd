"""The noise model fitted to held-out probabilities, and the estimate it gives."""

import copy

import numpy as np
import pytest
from benchmarks import probability_worlds
from scipy.special import softmax
from sklearn.metrics import roc_auc_score

from unflip import LabelAudit, TransitionMatrix, find_label_issues, flip_labels
from unflip._probabilities.estimate import agreed_posterior
from unflip._utils.simplex import likeliest_mixture
from unflip.channel import _probabilities as channel
from unflip.channel._features import LogitFeatures, centred_logs, without_noise

SPARSE = TransitionMatrix(
    [[0.6, 0.4, 0.0, 0.0], [0.0, 0.9, 0.1, 0.0], [0.0, 0.0, 1.0, 0.0], [0.3, 0.0, 0.0, 0.7]]
)
VALUES = ["auto", True, False]


def drawn(n_samples, n_classes, seed, sharp=0.1):
    """Return P(true | x), true classes drawn from it, and the generator."""
    rng = np.random.default_rng(seed)
    clean = rng.dirichlet(np.full(n_classes, sharp), n_samples)
    true = (clean.cumsum(axis=1) > rng.uniform(size=n_samples)[:, None]).argmax(axis=1)
    return clean, true, rng


def flipped(n_samples, noise, seed, sharp=0.1):
    """Return exact P(observed | x), observed and true labels under class-conditional noise."""
    clean, true, _ = drawn(n_samples, len(noise.matrix), seed, sharp)
    given = np.asarray(flip_labels(true, noise, random_state=seed))
    return noise.noisy_posterior(clean), given, true


def removed(proba, matrix):
    """Return q of p = q T, as the features of the noise model have it."""
    return softmax(without_noise(centred_logs(proba), matrix), axis=1)


def audited(proba, given, determined="auto", **named):
    return LabelAudit(determined=determined).fit_posterior(proba, given, **named)


@pytest.mark.parametrize("noise", [TransitionMatrix.uniform(4, 0.2), SPARSE])
def test_random_flips_are_found_and_their_number(noise):
    clean, true, _ = drawn(4000, 4, seed=0)
    given = np.asarray(flip_labels(true, noise, random_state=0))
    noisy = noise.noisy_posterior(clean)
    audit = audited(noisy, given)
    wrong = given != true
    assert np.abs(audit.transition_matrix_ - noise.matrix).sum(axis=1).mean() / 2 < 0.08
    assert audit.n_errors_ == pytest.approx(wrong.sum(), rel=0.1)
    # nearly as well as Bayes' rule with all that is known
    rows = np.arange(4000), given
    exact = 1 - (clean * noise.matrix.T[given])[rows] / noisy[rows]
    assert roc_auc_score(wrong, audit.mislabel_proba_) > roc_auc_score(wrong, exact) - 0.01


@pytest.mark.parametrize("determined", VALUES)
@pytest.mark.parametrize("case", ["two classes", "weights", "no class", "a class without labels"])
def test_rates_error_rate_and_probabilities_never_contradict_each_other(determined, case):
    weight, named = None, {}
    if case == "no class":
        proba, given, _ = out_of_distribution(1500, 4, seed=7)
    else:
        noise = TransitionMatrix.uniform(2 if case == "two classes" else 4, 0.15)
        proba, given, _ = flipped(1500, noise, seed=3)
    if case == "weights":
        weight = named["sample_weight"] = np.random.default_rng(0).uniform(0.5, 2.0, 1500)
    if case == "a class without labels":
        proba = np.c_[0.95 * proba, np.full(1500, 0.05)]
        named["classes"] = range(5)
    audit = audited(proba, given, determined, **named)
    rate = np.average(audit.mislabel_proba_, weights=weight)
    assert audit.label_error_rate_ == pytest.approx(rate, abs=1e-12)
    shares = np.average(audit.label_proba_, axis=0, weights=weight)
    none = np.average(audit.none_proba_, weights=weight)
    implied = shares @ (1 - np.diag(audit.transition_matrix_)) + none
    assert audit.label_error_rate_ == pytest.approx(implied, abs=1e-9)
    # P(true) T is the distribution of the labels, but for those of samples of no class
    observed = np.bincount(given, weight, minlength=shares.size) / np.sum(
        np.ones(1500) if weight is None else weight
    )
    assert np.abs(shares @ audit.transition_matrix_ - observed).sum() <= none + 1e-9
    low, high = audit.label_error_interval_
    assert low <= audit.label_error_rate_ <= high <= 1
    assert audit.label_error_range_[1] >= audit.label_error_rate_


def test_the_part_that_depends_on_the_sample_is_what_determined_adds():
    proba, given, _, _ = probability_worlds.drawn(probability_worlds.WORLDS["hard rows, sharp"], 0)
    by_value = {value: audited(proba, given, value).noise_ for value in VALUES}
    assert by_value[False].instance_dependent == by_value["auto"].instance_dependent == 0
    part = by_value[True].instance_dependent
    assert part > 0.02
    class_conditional = by_value[True].error_rate.value - part
    assert class_conditional == pytest.approx(by_value[False].error_rate.value, abs=1e-9)


def test_auto_counts_as_false_does_and_notes_both_error_rates_where_they_differ():
    proba, given, _, _ = probability_worlds.drawn(probability_worlds.WORLDS["hard rows 10 %"], 1)
    auto, true, false = (audited(proba, given, value) for value in VALUES)
    np.testing.assert_array_equal(auto.mislabel_proba_, false.mislabel_proba_)
    (note,) = (one for one in auto.noise_.findings if one.code == "determined_or_not")
    assert note.severity == "note"
    assert note.numbers["by_class"] == pytest.approx(false.label_error_rate_, abs=1e-9)
    assert note.numbers["if_determined"] == pytest.approx(true.label_error_rate_, abs=1e-9)
    for audit in (true, false):
        assert not any(one.code == "determined_or_not" for one in audit.noise_.findings)
    separated, given, _ = flipped(2000, TransitionMatrix.uniform(4, 0.2), seed=15, sharp=0.01)
    assert not audited(separated, given).diagnostics_


def test_a_determined_label_is_what_two_readings_agree_on_with_the_fewest_errors():
    rng = np.random.default_rng(0)
    clean, matrix = rng.dirichlet(np.ones(3), 40), rng.dirichlet(np.ones(3), 3)
    codes = rng.integers(0, 3, 40)
    perceived = clean * matrix.T[codes]
    perceived /= perceived.sum(axis=1, keepdims=True)
    agreed, posterior = agreed_posterior(clean, perceived)
    for c, s, y, found in zip(clean, agreed, codes, posterior, strict=True):
        both = np.outer(c, c)
        np.testing.assert_allclose(s, np.diag(both) / np.trace(both))
        # joint distribution of the true label and the reading: as much on the diagonal as possible
        joint = np.diag(np.minimum(s, c))
        gain, loss = np.maximum(s - c, 0), np.maximum(c - s, 0)
        joint += np.outer(gain, loss) / gain.sum()
        np.testing.assert_allclose(joint.sum(axis=1), s)
        np.testing.assert_allclose(joint.sum(axis=0), c)
        by_bayes = joint @ matrix[:, y]
        np.testing.assert_allclose(found, by_bayes / by_bayes.sum())


def test_certain_samples_have_the_same_posterior_whether_determined_or_not():
    certain = np.eye(3)
    agreed, posterior = agreed_posterior(certain, certain)
    np.testing.assert_array_equal(agreed, certain)
    np.testing.assert_array_equal(posterior, certain)


@pytest.mark.parametrize(
    "name", ["hard rows 10 %, untaught", "hard rows, sharp", "people 17 %", "2 classes, hard rows"]
)
def test_errors_at_hard_samples_are_counted_where_samples_determine_their_label(name):
    proba, given, wrong, _ = probability_worlds.drawn(probability_worlds.WORLDS[name], 2)
    assert 0.75 < audited(proba, given, True).n_errors_ / wrong.sum() < 1.3


@pytest.mark.parametrize("distance", [2.0, 4.0])
@pytest.mark.parametrize("rates", probability_worlds.GAUSSIAN_RATES)
def test_the_error_rate_of_overlapping_classes_is_that_of_the_labels(distance, rates):
    found = []
    for seed in (0, 1):
        proba, given, truth = probability_worlds.gaussian(distance, rates, 3000, seed)
        audit = audited(proba, given)
        assert audit.label_error_rate_ <= 1.5 * truth + 0.02
        found.append(audit.label_error_rate_ - truth)
    assert abs(np.mean(found)) < 0.04


@pytest.mark.parametrize("value", ["yes", None, 2])
def test_other_values_of_determined_are_refused(value):
    proba, given, _ = flipped(50, TransitionMatrix.uniform(2, 0.2), seed=0)
    with pytest.raises(ValueError, match="determined"):
        audited(proba, given, value)


def test_find_label_issues_takes_determined():
    proba, given, _, _ = probability_worlds.drawn(probability_worlds.WORLDS["hard rows, sharp"], 0)
    for value in (True, False):
        issues = find_label_issues(pred_probs=proba, y=given, determined=value)
        np.testing.assert_array_equal(issues, audited(proba, given, value).issues())


@pytest.mark.filterwarnings("ignore::unflip.LabelNoiseWarning")
@pytest.mark.parametrize("sharp", [0.2, 0.5])
def test_clean_labels_of_overlapping_classes_are_hardly_ever_called_wrong(sharp):
    clean, true, _ = drawn(3000, 4, seed=2, sharp=sharp)
    audit = audited(clean, true)
    assert np.mean(audit.mislabel_proba_ > 0.9) < 0.005
    assert audit.label_error_rate_ < 0.05
    assert audit.label_error_interval_[0] == pytest.approx(0, abs=0.005)


def test_weights_are_repetitions():
    noisy, given, _ = flipped(500, TransitionMatrix.uniform(3, 0.2), seed=4)
    weight = np.random.default_rng(4).integers(0, 3, 500)
    repeated = np.repeat(np.arange(500), weight)
    by_weight = audited(noisy, given, sample_weight=weight + 1e-9)
    by_copies = audited(noisy[repeated], given[repeated])
    assert by_weight.label_error_rate_ == pytest.approx(by_copies.label_error_rate_, abs=1e-3)
    np.testing.assert_allclose(
        by_weight.transition_matrix_, by_copies.transition_matrix_, atol=5e-3
    )


def out_of_distribution(n_samples, n_classes, seed, share=0.15):
    """Nearly certain probabilities and right labels, but for flat samples labelled at random."""
    clean, true, rng = drawn(n_samples, n_classes, seed, sharp=0.03)
    out = rng.random(n_samples) < share
    clean[out] = rng.dirichlet(np.full(n_classes, 3.0), int(out.sum()))
    given = np.where(out, rng.integers(0, n_classes, n_samples), true)
    return clean, given, out


@pytest.mark.parametrize("n_classes", [4, 10, 20])
def test_flat_samples_labelled_at_random_belong_to_no_class(n_classes):
    clean, given, out = out_of_distribution(3000, n_classes, seed=7)
    audit = audited(clean, given)
    assert roc_auc_score(out, audit.none_proba_) > 0.97
    assert audit.none_proba_.sum() == pytest.approx(out.sum(), rel=0.4)
    assert (audit.none_proba_ <= audit.mislabel_proba_ + 1e-9).all()
    own = clean[np.arange(3000), given]
    assert roc_auc_score(out, audit.mislabel_proba_) > roc_auc_score(out, -own) + 0.005


@pytest.mark.filterwarnings("ignore::unflip.LabelNoiseWarning")
@pytest.mark.parametrize("sharp", [0.1, 0.5])
def test_samples_between_classes_do_not_belong_to_no_class(sharp):
    clean, true, _ = drawn(4000, 6, seed=8, sharp=sharp)
    for given in (true, np.asarray(flip_labels(true, TransitionMatrix.uniform(6, 0.2)))):
        assert audited(clean, given).none_proba_.max() < 0.05


@pytest.mark.slow
def test_intervals_hold_the_rates_and_narrow_with_more_samples():
    noise = TransitionMatrix.uniform(4, 0.2)
    widths = []
    for n_samples in (1000, 3000):
        noisy, given, true = flipped(n_samples, noise, seed=10)
        audit = audited(noisy, given)
        interval = audit.noise_.transition_interval
        assert np.mean((interval.low <= noise.matrix) & (noise.matrix <= interval.high)) > 0.8
        low, high = audit.label_error_interval_
        assert low <= np.mean(given != true) <= high
        widths.append((interval.high - interval.low).mean())
    assert widths[1] < widths[0]


def test_two_classes_have_rates_with_intervals():
    noise, held = TransitionMatrix([[0.9, 0.1], [0.3, 0.7]]), []
    for seed in range(6):
        noisy, given, _ = flipped(2000, noise, seed=seed)
        audit = audited(noisy, given)
        assert audit.rate_estimator_ is None
        assert not audit.none_proba_.any()
        (p_low, p_high), (n_low, n_high) = audit.noise_.transition_interval.both()
        held += [p_low <= 0.3 <= p_high, n_low <= 0.1 <= n_high]
        assert max(p_high - p_low, n_high - n_low) < 0.15
    assert sum(held) >= 10


def test_no_interval_has_zero_width_even_where_every_label_is_certain():
    codes = np.arange(300) % 3
    certain = np.full((300, 3), 0.01)
    certain[np.arange(300), codes] = 0.98
    with pytest.warns(UserWarning, match="repeats their errors"):
        audit = audited(certain, codes)
    interval = audit.noise_.transition_interval
    assert (interval.high > interval.low).all()
    low, high = audit.label_error_interval_
    assert high > low


def test_the_order_of_samples_does_not_matter_nor_does_copying():
    noisy, given, _ = flipped(1000, TransitionMatrix.uniform(4, 0.2), seed=12)
    order = np.random.default_rng(12).permutation(1000)
    one, two = audited(noisy, given), audited(noisy[order], given[order])
    np.testing.assert_allclose(one.mislabel_proba_[order], two.mislabel_proba_, atol=1e-6)
    assert copy.deepcopy(one).label_error_interval_ == one.label_error_interval_


def test_noise_is_removed_exactly_where_it_can_be_and_by_likelihood_elsewhere():
    rng = np.random.default_rng(0)
    clean, matrix = rng.dirichlet(np.full(4, 2.0), 200) * 0.9 + 0.025, SPARSE.matrix
    np.testing.assert_allclose(removed(clean @ matrix, matrix), clean, atol=1e-9)
    outside = rng.dirichlet(np.full(4, 0.3), 200)
    found = removed(outside, matrix)
    np.testing.assert_allclose(found.sum(axis=1), 1)
    best = likeliest_mixture(outside, matrix)

    def fit(q):
        return np.sum(outside * np.log(q @ matrix), axis=1)

    assert (fit(found) <= fit(best) + 1e-6).all()
    assert np.mean(fit(best) - fit(found)) < 0.02


def test_a_label_that_neither_noise_nor_model_can_give_stays_ruled_out():
    matrix = np.array([[0.9, 0.1, 0.0], [0.1, 0.9, 0.0], [0.0, 0.0, 1.0]])
    clean = np.array([[0.7, 0.3, 0.0], [0.2, 0.8, 0.0]])
    np.testing.assert_allclose(removed(clean @ matrix, matrix), clean, atol=1e-3)


def test_samples_of_no_class_have_labels_drawn_by_their_shares():
    rng = np.random.default_rng(0)
    p, shares, shift = rng.dirichlet(np.ones(4), 50), rng.dirichlet(np.full(4, 9.0)), np.arange(4)
    codes, by_class, usual = rng.integers(0, 4, 50), rng.uniform(0.1, 0.9, 50), 0.2
    logs = centred_logs(p)
    scaled = channel.ScaledLogits(LogitFeatures(1.5, columns=False), shift, np.eye(4))
    none = channel.NoClass(scaled, shares, usual, np.log(3.0))
    clean = softmax(1.5 * np.log(p) + shift, axis=1)
    flat = np.exp(np.log(clean / shares).mean(axis=1))
    excess = np.clip((flat - usual) / (1 - usual), 0, 0.99)
    proba = 3 * excess / (1 - excess + 3 * excess)
    observed = (1 - proba) * by_class + proba * shares[codes]
    found, some = none.mixed(logs, codes, by_class)
    np.testing.assert_allclose(found, observed)
    np.testing.assert_allclose(some, (1 - proba) * by_class / observed)


@pytest.mark.parametrize("temperature", [0.5, 2.0])
def test_the_temperature_of_a_model_does_not_matter(temperature):
    noisy, given, true = flipped(3000, TransitionMatrix.uniform(4, 0.15), seed=3)
    scaled = softmax(np.log(noisy) / temperature, axis=1)
    as_it_is, other = audited(noisy, given), audited(scaled, given)
    assert other.label_error_rate_ == pytest.approx(as_it_is.label_error_rate_, abs=0.01)
    assert other.label_error_rate_ == pytest.approx(np.mean(given != true), abs=0.05)


def test_the_model_predicts_the_observed_labels():
    noisy, given, _ = flipped(4000, TransitionMatrix.uniform(4, 0.1), seed=3)
    timid = noisy**0.4 / (noisy**0.4).sum(axis=1, keepdims=True)
    fitted = channel.fit_probabilities(timid, given, None, np.random.RandomState(0))
    own = np.arange(4000), given
    exact, found = np.log(noisy[own]).mean(), np.log(fitted.predict(timid, given).observed).mean()
    assert exact - 0.01 < found < exact + 0.02
    assert found > np.log(timid[own]).mean() + 0.05


def test_very_many_classes_have_one_rate():
    noise = TransitionMatrix.uniform(120, 0.2)
    clean, true, _ = drawn(3000, 120, seed=4, sharp=0.002)
    given = np.asarray(flip_labels(true, noise, random_state=4))
    audit = audited(clean, given)
    wrong = given != true
    assert audit.label_error_rate_ == pytest.approx(wrong.mean(), abs=0.04)
    low, high = audit.label_error_interval_
    assert low <= wrong.mean() <= high < low + 0.08
    assert roc_auc_score(wrong, audit.mislabel_proba_) > 0.9
