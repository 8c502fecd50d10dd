"""Lemma 1 and its relatives against Bayes' rule."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.test_noise import T3, many_classes, noise_rates, probability, random_noise
from unflip import InverseRates, NoiseRates, TransitionMatrix, importance_weights
from unflip.weights import (
    clipped_share,
    effective_sample_size,
    importance_weights_from_inverse,
    mislabel_probability,
    printed_lemma_2_weights,
)

CLASSES = [-1, 1]
RATES = NoiseRates(positive=0.3, negative=0.1)


def test_golden_weights_and_mislabel_probabilities():
    noisy = np.array([0.15, 0.40, 0.65])
    positive, negative = np.ones(3), -np.ones(3)
    np.testing.assert_allclose(
        importance_weights(noisy, positive, RATES, classes=CLASSES),
        [0.555556, 1.25, 1.410256],
        atol=1e-6,
    )
    np.testing.assert_allclose(
        importance_weights(1 - noisy, negative, RATES, classes=CLASSES),
        [1.078431, 0.833333, 0.238095],
        atol=1e-6,
    )
    np.testing.assert_allclose(
        mislabel_probability(noisy, positive, RATES, classes=CLASSES),
        [0.611111, 0.125, 0.012821],
        atol=1e-6,
    )
    np.testing.assert_allclose(
        mislabel_probability(1 - noisy, negative, RATES, classes=CLASSES),
        [0.029412, 0.25, 0.785714],
        atol=1e-6,
    )


def given_posterior(clean, label, rates):
    """P(noisy = label | x) and P(true = label | x) by summing over the true class."""
    true = np.array([1 - clean, clean])
    noisy = true @ rates.transition_matrix
    column = (label + 1) // 2
    return min(noisy[column], 1.0), true[column]


@given(noise_rates(most=0.95), probability, st.sampled_from(CLASSES))
def test_lemma_1_is_the_ratio_of_clean_to_noisy_posterior(rates, clean, label):
    noisy, true = given_posterior(clean, label, rates)
    assume(noisy > 1e-6)
    beta = importance_weights([noisy], [label], rates, classes=CLASSES)
    assert beta[0] == pytest.approx(true / noisy, abs=1e-6)


@given(noise_rates(most=0.95), probability, st.sampled_from(CLASSES))
def test_mislabel_probability_is_bayes_rule(rates, clean, label):
    noisy, _ = given_posterior(clean, label, rates)
    assume(noisy > 1e-6)
    joint = np.array([1 - clean, clean])[:, None] * rates.transition_matrix
    column = (label + 1) // 2
    wrong = joint[1 - column, column] / joint[:, column].sum()
    assert mislabel_probability([noisy], [label], rates, classes=CLASSES)[0] == pytest.approx(
        wrong, abs=1e-6
    )


@given(noise_rates(most=0.9), st.floats(0.02, 0.98), probability, st.sampled_from(CLASSES))
def test_inverse_rates_give_the_weights_of_the_rates_they_come_from(rates, prior, clean, label):
    noisy, _ = given_posterior(clean, label, rates)
    assume(noisy > 1e-6)
    noisy_prior = rates.noisy_prior(prior)
    inverse = rates.inverse(noisy_prior=noisy_prior)
    np.testing.assert_allclose(
        importance_weights_from_inverse([noisy], [label], inverse, noisy_prior, classes=CLASSES),
        importance_weights([noisy], [label], rates, classes=CLASSES),
        atol=1e-6,
    )


@given(noise_rates(most=0.95), st.floats(0.001, 1), st.sampled_from(CLASSES))
def test_printed_lemma_2_is_exact_when_the_true_label_is_drawn_given_the_noisy_one(
    pi, noisy, label
):
    # P(true=y|x) = sum over noisy labels of P(true=y | noisy) P(noisy | x): constant inverse rates
    inverse = InverseRates(*pi.both())
    wrong_here = inverse.positive if label == 1 else inverse.negative
    wrong_there = inverse.negative if label == 1 else inverse.positive
    true = (1 - wrong_here) * noisy + wrong_there * (1 - noisy)
    beta = printed_lemma_2_weights([noisy], [label], inverse, classes=CLASSES)
    assert beta[0] == pytest.approx(true / noisy, rel=1e-9)


def test_printed_lemma_2_falls_where_it_should_rise_under_class_conditional_noise():
    clean = np.linspace(0, 1, 6)
    noisy = RATES.noisy_posterior(clean)
    labels = np.ones(6)
    inverse = RATES.inverse(clean_prior=0.3)
    right = importance_weights(noisy, labels, RATES, classes=CLASSES)
    printed = printed_lemma_2_weights(noisy, labels, inverse, classes=CLASSES)
    np.testing.assert_allclose(right, clean / noisy)
    np.testing.assert_allclose(right, [0, 0.91, 1.18, 1.30, 1.38, 1.43], atol=0.005)
    np.testing.assert_allclose(printed, [1.875, 1.193, 0.993, 0.897, 0.841, 0.804], atol=0.001)
    assert (np.diff(right) > 0).all()
    assert (np.diff(printed) < 0).all()


@given(
    noise_rates(),
    st.lists(st.tuples(probability, st.sampled_from(CLASSES)), min_size=1, max_size=20),
)
def test_weights_are_finite_and_between_zero_and_their_bound(rates, rows):
    posterior, labels = map(np.array, zip(*rows, strict=True))
    beta = importance_weights(posterior, labels, rates, classes=CLASSES)
    positive, negative = rates.both()
    bound = 1 / (1 - np.where(labels == 1, positive, negative))
    assert np.isfinite(beta).all()
    assert (beta >= 0).all()
    assert (beta <= bound + 1e-12).all()
    assert (beta[posterior == 0] == 0).all()


@given(st.lists(st.tuples(st.floats(1e-6, 1), st.sampled_from(CLASSES)), min_size=1))
def test_without_noise_every_weight_is_one(rows):
    posterior, labels = map(np.array, zip(*rows, strict=True))
    clean = NoiseRates(positive=0.0, negative=0.0)
    beta = importance_weights(posterior, labels, clean, classes=CLASSES)
    np.testing.assert_allclose(beta, 1)
    assert clipped_share(posterior, labels, clean, classes=CLASSES) == 0


@given(noise_rates(), st.lists(st.tuples(probability, st.sampled_from(CLASSES)), min_size=1))
def test_renaming_the_classes_with_their_rates_changes_no_weight(rates, rows):
    posterior, labels = map(np.array, zip(*rows, strict=True))
    np.testing.assert_allclose(
        importance_weights(posterior, labels, rates, classes=CLASSES),
        importance_weights(posterior, -labels, rates.swapped(), classes=CLASSES),
    )


@given(noise_rates(), st.permutations(range(6)))
def test_permuting_rows_permutes_the_weights(rates, order):
    posterior = np.array([0.1, 0.3, 0.5, 0.7, 0.9, 0.0])
    labels = np.array([1, -1, 1, -1, 1, -1])
    beta = importance_weights(posterior, labels, rates)
    order = list(order)
    np.testing.assert_array_equal(
        importance_weights(posterior[order], labels[order], rates), beta[order]
    )


@given(noise_rates(most=0.9), probability)
def test_weights_average_to_one_over_the_noisy_label(rates, clean):
    noisy = np.clip(float(rates.noisy_posterior(clean)), 0, 1)
    beta = importance_weights([noisy, 1 - noisy], [1, -1], rates)
    assert noisy * beta[0] + (1 - noisy) * beta[1] == pytest.approx(1, abs=1e-6)


def test_the_clipped_share_counts_rows_outside_what_the_rates_allow():
    posterior = [0.05, 0.1, 0.5, 0.7, 0.9]
    assert clipped_share(posterior, [1] * 5, RATES, classes=CLASSES) == pytest.approx(0.4)


@given(st.lists(st.floats(1e-3, 1e3), min_size=1), st.floats(1e-3, 1e3))
def test_effective_sample_size_is_scale_free_and_at_most_the_rows(weights, scale):
    size = effective_sample_size(weights)
    assert 1 - 1e-9 <= size <= len(weights) + 1e-9
    assert effective_sample_size(scale * np.array(weights)) == pytest.approx(size)


def test_effective_sample_size_of_equal_weights_is_their_number():
    assert effective_sample_size([3.0] * 7) == pytest.approx(7)
    assert effective_sample_size([0.0, 0.0]) == 0


def test_misshapen_input_is_refused():
    with pytest.raises(ValueError, match=r"shape \(2,\), expected \(3,\)"):
        importance_weights([0.5, 0.5], [1, -1, 1], RATES)
    with pytest.raises(TypeError, match="rates must be NoiseRates"):
        importance_weights([0.5, 0.5], [1, -1], (0.3, 0.1))
    with pytest.raises(ValueError, match="must hold probabilities"):
        importance_weights([0.5, np.nan], [1, -1], RATES)


# --- any number of classes


def test_golden_weights_of_three_classes():
    beta = importance_weights([[0.43, 0.305, 0.265]] * 3, ["a", "b", "c"], T3)
    np.testing.assert_allclose(beta, [1.162791, 0.983607, 0.754717], atol=1e-6)


@given(
    noise_rates(most=0.95),
    st.lists(st.tuples(probability, st.sampled_from(CLASSES)), min_size=1, max_size=20),
)
def test_two_classes_through_the_matrix_are_lemma_1(rates, rows):
    positive, labels = map(np.array, zip(*rows, strict=True))
    posterior = np.column_stack([1 - positive, positive])
    given_label = np.where(labels == 1, positive, 1 - positive)
    for noise in (rates, rates.transition_matrix):
        for function in (importance_weights, mislabel_probability):
            # beta is steep in a posterior near 0, where rounding decides
            sure = given_label > 1e-6
            np.testing.assert_allclose(
                function(posterior, labels, noise, classes=CLASSES)[sure],
                function(given_label, labels, rates, classes=CLASSES)[sure],
                atol=1e-7,
            )


def test_the_matrix_of_two_rates_stands_for_the_rates():
    given_label, labels = [0.2, 0.4, 0.9], [1, -1, 1]
    for function in (importance_weights, mislabel_probability, clipped_share):
        expected = function(given_label, labels, RATES)
        for noise in (RATES.transition_matrix, TransitionMatrix(RATES.transition_matrix)):
            np.testing.assert_allclose(function(given_label, labels, noise), expected)


@pytest.mark.parametrize("n_classes", [3, 5])
@pytest.mark.parametrize("seed", range(3))
def test_weighted_noisy_risk_is_the_clean_risk_on_a_discrete_distribution(n_classes, seed):
    rng = np.random.default_rng(seed)
    noise = random_noise(n_classes, seed)
    p_x = rng.dirichlet(np.ones(7))
    clean = rng.dirichlet(np.ones(n_classes), size=7)  # P(true | x) of seven points
    loss = rng.normal(size=(7, n_classes))  # any loss of any f
    clean_risk = sum(p_x[x] * clean[x, k] * loss[x, k] for x in range(7) for k in range(n_classes))
    noisy_risk = 0.0
    for x in range(7):
        noisy = [
            sum(clean[x, i] * noise.matrix[i, j] for i in range(n_classes))
            for j in range(n_classes)
        ]
        beta = importance_weights([noisy] * n_classes, range(n_classes), noise)
        noisy_risk += sum(p_x[x] * noisy[k] * beta[k] * loss[x, k] for k in range(n_classes))
    assert noisy_risk == pytest.approx(clean_risk, abs=1e-10)


@given(many_classes, st.integers(0, 100))
def test_mislabel_probability_of_many_classes_is_bayes_rule(case, seed):
    noise = random_noise(*case)
    clean = np.random.default_rng(seed).dirichlet(np.ones(noise.n_classes))
    joint = clean[:, None] * noise.matrix  # P(true=i, noisy=j | x)
    right = np.diag(joint) / joint.sum(axis=0)
    labels = np.arange(noise.n_classes)
    posterior = [joint.sum(axis=0)] * noise.n_classes
    np.testing.assert_allclose(mislabel_probability(posterior, labels, noise), 1 - right, atol=1e-7)
    assert clipped_share(posterior, labels, noise) == 0


@given(many_classes, st.integers(0, 100))
def test_weights_of_many_classes_are_between_zero_and_their_bound(case, seed):
    noise = random_noise(*case)
    rng = np.random.default_rng(seed)
    posterior = rng.uniform(size=(30, noise.n_classes)) * rng.integers(0, 2, (30, 1))
    codes = rng.integers(0, noise.n_classes, 30)
    names = np.arange(noise.n_classes)
    beta = importance_weights(posterior, codes, noise, classes=names)
    wrong = mislabel_probability(posterior, codes, noise, classes=names)
    assert (beta >= 0).all()
    assert (beta <= 1 / noise.matrix[codes, codes] + 1e-12).all()
    assert ((wrong >= 0) & (wrong <= 1)).all()
    assert (beta[~posterior.any(axis=1)] == 0).all()
    # a factor common to a row's probabilities changes nothing
    halved = importance_weights(posterior / 2, codes, noise, classes=names)
    np.testing.assert_allclose(halved, beta, atol=1e-9)


def test_without_noise_every_weight_of_many_classes_is_one():
    posterior = np.random.default_rng(0).dirichlet(np.ones(4), size=50)
    labels = np.arange(50) % 4
    np.testing.assert_allclose(importance_weights(posterior, labels, np.eye(4)), 1)
    np.testing.assert_allclose(mislabel_probability(posterior, labels, np.eye(4)), 0, atol=1e-12)
    assert clipped_share(posterior, labels, np.eye(4)) == 0


def test_renaming_many_classes_with_their_noise_changes_no_weight():
    noise, order = random_noise(4, 0), np.array([2, 0, 3, 1])
    rng = np.random.default_rng(0)
    posterior, codes = rng.dirichlet(np.ones(4), size=40), np.arange(40) % 4
    renamed = TransitionMatrix(noise.matrix[np.ix_(order, order)])
    np.testing.assert_allclose(
        importance_weights(posterior[:, order], np.argsort(order)[codes], renamed),
        importance_weights(posterior, codes, noise),
    )


def test_misshapen_input_of_many_classes_is_refused():
    labels = [0, 1, 2]
    with pytest.raises(ValueError, match="two classes only"):
        importance_weights([0.5, 0.5, 0.5], labels, T3)
    with pytest.raises(ValueError, match=r"y holds 3 classes, 0, 1, 2.*TransitionMatrix"):
        importance_weights([0.5, 0.5, 0.5], labels, RATES)
    with pytest.raises(ValueError, match=r"shape \(3, 2\), expected \(3, 3\)"):
        importance_weights(np.full((3, 2), 0.5), labels, T3)
    with pytest.raises(ValueError, match="2 classes"):
        importance_weights(np.full((3, 3), 0.3), labels, RATES)
