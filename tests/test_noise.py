"""The noisy <-> clean algebra against closed forms, brute force and golden numbers."""

import copy
import dataclasses
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unflip import InverseRates, NoiseRates, TransitionMatrix, flip_labels
from unflip.noise import as_transition_matrix

probability = st.floats(0, 1)


@st.composite
def noise_rates(draw, most=0.98):
    """Rates whose sum stays below `most`."""
    total = draw(st.floats(0, most))
    share = draw(probability)
    return NoiseRates(positive=total * share, negative=total * (1 - share))


# p, rho_pos, rho_neg, q, pi_pos, pi_neg
GOLDEN = [
    (0.5, 0.2, 0.2, 0.5, 0.2, 0.2),
    (0.3, 0.3, 0.1, 0.28, 0.25, 0.125),
    (0.3, 0.2, 0.2, 0.38, 0.368421, 0.096774),
    (0.7, 0.0, 0.4, 0.82, 0.146341, 0.0),
    (0.1, 0.4, 0.05, 0.105, 0.428571, 0.044693),
]


@pytest.mark.parametrize(("p", "positive", "negative", "q", "pi_pos", "pi_neg"), GOLDEN)
def test_priors_and_inverse_rates_have_their_golden_values(
    p, positive, negative, q, pi_pos, pi_neg
):
    rates = NoiseRates(positive=positive, negative=negative)
    assert rates.noisy_prior(p) == pytest.approx(q)
    assert rates.clean_prior(q) == pytest.approx(p)
    for inverse in (rates.inverse(clean_prior=p), rates.inverse(noisy_prior=q)):
        assert inverse.positive == pytest.approx(pi_pos, abs=1e-6)
        assert inverse.negative == pytest.approx(pi_neg, abs=1e-6)


def test_transition_matrix_is_row_stochastic_and_its_determinant_is_the_information_left():
    rates = NoiseRates(positive=0.3, negative=0.1)
    np.testing.assert_allclose(rates.transition_matrix, [[0.9, 0.1], [0.3, 0.7]])
    np.testing.assert_allclose(rates.transition_matrix.sum(axis=1), 1)
    assert np.linalg.det(rates.transition_matrix) == pytest.approx(rates.information_left)


@given(noise_rates(), probability)
def test_noisy_posterior_is_the_transition_matrix_applied_to_the_clean_one(rates, clean):
    by_matrix = np.array([1 - clean, clean]) @ rates.transition_matrix
    assert float(rates.noisy_posterior(clean)) == pytest.approx(by_matrix[1], abs=1e-12)


@given(noise_rates(), st.lists(probability, min_size=1))
def test_clean_to_noisy_to_clean_is_the_identity(rates, clean):
    noisy = np.clip(rates.noisy_posterior(clean), 0, 1)
    np.testing.assert_allclose(rates.clean_posterior(noisy), clean, atol=1e-12)


@given(noise_rates(), probability)
def test_noisy_to_clean_to_noisy_is_the_identity_on_the_range_the_rates_allow(rates, share):
    positive, negative = rates.both()
    noisy = negative + share * rates.information_left
    back = rates.noisy_posterior(rates.clean_posterior(min(noisy, 1 - positive)))
    assert float(back) == pytest.approx(noisy, abs=1e-12)


@given(noise_rates(most=0.9), st.floats(0.01, 0.99))
def test_rho_to_pi_to_rho_is_the_identity_given_the_noisy_prior(rates, clean_prior):
    noisy_prior = rates.noisy_prior(clean_prior)
    inverse = rates.inverse(noisy_prior=noisy_prior)
    back = inverse.to_rates(noisy_prior=noisy_prior)
    np.testing.assert_allclose(back.both(), rates.both(), atol=1e-9)
    again = back.inverse(noisy_prior=noisy_prior)
    np.testing.assert_allclose(dataclasses.astuple(again), dataclasses.astuple(inverse), atol=1e-9)


@given(noise_rates(most=0.9), st.floats(0.01, 0.99))
def test_inverse_rates_are_bayes_rule_on_the_joint_table(rates, clean_prior):
    joint = np.array([1 - clean_prior, clean_prior])[:, None] * rates.transition_matrix
    inverse = rates.inverse(clean_prior=clean_prior)
    assert inverse.positive == pytest.approx(joint[0, 1] / joint[:, 1].sum(), abs=1e-9)
    assert inverse.negative == pytest.approx(joint[1, 0] / joint[:, 0].sum(), abs=1e-9)


@given(noise_rates(most=0.9), st.floats(0.01, 0.99))
def test_a_known_clean_prior_gives_the_same_rates(rates, clean_prior):
    inverse = rates.inverse(clean_prior=clean_prior)
    back = inverse.to_rates(noisy_prior=rates.noisy_prior(clean_prior), clean_prior=clean_prior)
    np.testing.assert_allclose(back.both(), rates.both(), atol=1e-9)


@given(noise_rates(), probability)
def test_swapping_the_classes_swaps_the_rates(rates, clean):
    swapped = rates.swapped()
    assert swapped.both() == rates.both()[::-1]
    assert float(swapped.noisy_posterior(1 - clean)) == pytest.approx(
        1 - float(rates.noisy_posterior(clean)), abs=1e-12
    )


def test_rates_are_frozen_and_print_short():
    rates = NoiseRates(positive=1 / 3, negative=None)
    with pytest.raises(dataclasses.FrozenInstanceError):
        rates.positive = 0.2
    assert str(rates) == "NoiseRates(positive=0.333, negative=None)"
    assert repr(rates) == "NoiseRates(positive=0.3333333333333333, negative=None)"


@pytest.mark.parametrize(
    ("positive", "negative", "message"),
    [
        (0.5, 0.5, "sum to less than 1"),
        (0.7, 0.6, "sum to less than 1"),
        (-0.1, 0.2, r"positive must lie in \[0, 1\)"),
        (0.1, 1.0, r"negative must lie in \[0, 1\)"),
        (float("nan"), 0.1, r"positive must lie in \[0, 1\)"),
    ],
)
@pytest.mark.parametrize("kind", [NoiseRates, InverseRates])
def test_impossible_rates_are_refused(kind, positive, negative, message):
    with pytest.raises(ValueError, match=message):
        kind(positive=positive, negative=negative)


def test_rates_that_are_not_numbers_are_refused():
    with pytest.raises(TypeError, match="must be a number"):
        NoiseRates(positive="a lot", negative=0.1)
    with pytest.raises(TypeError, match="must be a number"):
        InverseRates(positive=None, negative=0.1)


def test_unknown_rates_are_allowed_until_they_are_needed():
    rates = NoiseRates(positive=None, negative=0.1)
    assert not rates.known
    with pytest.raises(ValueError, match="unknown rate"):
        rates.noisy_posterior(0.5)


def test_rates_that_contradict_the_share_of_positive_labels_are_refused():
    with pytest.raises(ValueError, match=r"lies between 0\.4 and 0\.8"):
        NoiseRates(positive=0.2, negative=0.4).clean_prior(0.3)
    with pytest.raises(ValueError, match="exactly one of"):
        NoiseRates(positive=0.2, negative=0.4).inverse()


def test_probabilities_outside_the_unit_interval_are_refused():
    with pytest.raises(ValueError, match="noisy_posterior"):
        NoiseRates(0.1, 0.1).clean_posterior([0.2, 1.2])


LABELS = {
    "strings": (["ham", "spam"] * 5000, "ham", "spam"),
    "bools": ([False, True] * 5000, False, True),
    "zero-one": ([0, 1] * 5000, 0, 1),
    "signs": (np.array([-1, 1] * 5000), -1, 1),
    "pandas": (pd.Series(["ham", "spam"] * 5000), "ham", "spam"),
    "categories": (pd.Series(["ham", "spam"] * 5000, dtype="category"), "ham", "spam"),
    "nullable": (pd.Series([False, True] * 5000, dtype="boolean"), False, True),
    "polars": (pl.Series(["ham", "spam"] * 5000), "ham", "spam"),
}


@pytest.mark.parametrize(("y", "negative", "positive"), LABELS.values(), ids=LABELS.keys())
def test_flips_have_the_rates_asked_for_whatever_the_labels(y, negative, positive):
    noisy = flip_labels(y, NoiseRates(positive=0.3, negative=0.1), random_state=0)
    y, noisy = np.asarray(y), np.asarray(noisy)
    # 5000 flips: four standard errors
    assert np.mean(noisy[y == positive] == negative) == pytest.approx(0.3, abs=0.026)
    assert np.mean(noisy[y == negative] == positive) == pytest.approx(0.1, abs=0.017)


def test_flipping_leaves_the_input_alone_and_keeps_its_type_name_and_index():
    y = pd.Series(["a", "b"] * 50, index=range(100, 200), name="label")
    before = y.copy()
    noisy = flip_labels(y, NoiseRates(0.5, 0.4), random_state=0)
    pd.testing.assert_series_equal(y, before)
    assert noisy.name == "label"
    assert noisy.index.equals(y.index)
    assert not noisy.equals(y)
    polars = flip_labels(pl.Series("label", ["a", "b"] * 50), NoiseRates(0.5, 0.4), random_state=0)
    assert isinstance(polars, pl.Series)
    assert polars.to_list() == noisy.to_list()


def test_the_same_seed_flips_the_same_labels():
    y = np.repeat([0, 1], 50)
    rates = NoiseRates(0.3, 0.3)
    np.testing.assert_array_equal(flip_labels(y, rates, 7), flip_labels(y, rates, 7))
    assert (flip_labels(y, rates, 7) != flip_labels(y, rates, 8)).any()


def test_a_sample_of_one_class_is_flipped_when_the_classes_are_named():
    with pytest.raises(ValueError, match="one class only"):
        flip_labels([1, 1, 1], NoiseRates(0.5, 0.0), random_state=0)
    noisy = flip_labels([1] * 100, NoiseRates(0.5, 0.0), random_state=0, classes=[-1, 1])
    assert set(noisy) == {-1, 1}
    with pytest.raises(ValueError, match="label 2, which is not one of the classes"):
        flip_labels([1, 2], NoiseRates(0.5, 0.0), classes=[-1, 1])


def test_two_rates_for_three_classes_are_refused():
    with pytest.raises(ValueError, match="2 classes"):
        flip_labels([0, 1, 2], NoiseRates(0.1, 0.1))


# --- any number of classes


def random_noise(n_classes, seed, least=0.5):
    """A transition matrix whose diagonal is above `least`: strictly dominant, so invertible."""
    rng = np.random.default_rng(seed)
    flips = rng.dirichlet(np.ones(n_classes), size=n_classes)
    stay = rng.uniform(least, 1, n_classes)[:, None]
    return TransitionMatrix(stay * np.eye(n_classes) + (1 - stay) * flips)


many_classes = st.tuples(st.integers(2, 7), st.integers(0, 10_000))

T3 = [[0.8, 0.15, 0.05], [0.1, 0.7, 0.2], [0.0, 0.1, 0.9]]


def test_the_matrix_has_its_golden_values():
    noise = TransitionMatrix(T3)
    np.testing.assert_allclose(noise.noisy_posterior([0.5, 0.3, 0.2]), [0.43, 0.305, 0.265])
    np.testing.assert_allclose(noise.clean_posterior([0.43, 0.305, 0.265]), [0.5, 0.3, 0.2])
    first_row = noise.clean_posterior([1.0, 0.0, 0.0], clip=False)
    np.testing.assert_allclose(first_row, [1.284211, -0.273684, -0.010526], atol=1e-6)


@given(many_classes, st.integers(0, 100))
def test_noisy_posteriors_are_sums_over_the_true_class(case, seed):
    noise = random_noise(*case)
    clean = np.random.default_rng(seed).dirichlet(np.ones(noise.n_classes), size=4)
    noisy = noise.noisy_posterior(clean)
    for row in range(4):
        for label in range(noise.n_classes):
            by_sum = sum(
                clean[row, true] * noise.matrix[true, label] for true in range(noise.n_classes)
            )
            assert noisy[row, label] == pytest.approx(by_sum, abs=1e-12)
    np.testing.assert_allclose(noise.clean_posterior(noisy), clean, atol=1e-10)
    np.testing.assert_allclose(noise.clean_posterior(noisy[0]), clean[0], atol=1e-10)


@given(many_classes, st.integers(0, 100))
def test_any_posterior_is_brought_back_into_the_simplex(case, seed):
    noise = random_noise(*case)
    noisy = np.random.default_rng(seed).uniform(size=(5, noise.n_classes))
    clean = noise.clean_posterior(noisy)
    assert (clean >= 0).all()
    np.testing.assert_allclose(clean.sum(axis=1), 1)
    free = noise.clean_posterior(noisy, clip=False)
    np.testing.assert_allclose(free @ noise.matrix, noisy, atol=1e-9)
    inside = free.min(axis=1) > 0
    np.testing.assert_allclose(
        clean[inside], free[inside] / free[inside].sum(axis=1)[:, None], atol=1e-9
    )
    if noise.n_classes == 2:
        np.testing.assert_array_equal(clean == 0, free <= 0)
    else:
        assert (clean > 0).all()  # by maximum likelihood: tests/test_simplex.py


@given(noise_rates(most=0.95), probability, st.floats(0.01, 0.99))
def test_two_classes_are_a_case_of_the_matrix(rates, noisy, prior):
    noise = as_transition_matrix(rates)
    assert noise.rates.both() == pytest.approx(rates.both())
    assert noise.information_left == pytest.approx(rates.information_left, abs=1e-9)
    assert noise.clean_posterior([1 - noisy, noisy])[1] == pytest.approx(
        float(rates.clean_posterior(noisy)), abs=1e-9
    )
    inverse = noise.inverse(clean_prior=[1 - prior, prior])
    expected = rates.inverse(clean_prior=prior)
    assert inverse[1, 0] == pytest.approx(expected.positive, abs=1e-9)
    assert inverse[0, 1] == pytest.approx(expected.negative, abs=1e-9)


@given(many_classes, st.integers(0, 100))
def test_the_inverse_matrix_is_bayes_rule_from_either_prior(case, seed):
    noise = random_noise(*case)
    prior = np.random.default_rng(seed).dirichlet(np.ones(noise.n_classes))
    inverse = noise.inverse(clean_prior=prior)
    noisy_prior = noise.noisy_prior(prior)
    for label in range(noise.n_classes):
        for true in range(noise.n_classes):
            bayes = prior[true] * noise.matrix[true, label] / noisy_prior[label]
            assert inverse[label, true] == pytest.approx(bayes, abs=1e-9)
    np.testing.assert_allclose(noise.clean_prior(noisy_prior), prior, atol=1e-10)
    np.testing.assert_allclose(noise.inverse(noisy_prior=noisy_prior), inverse, atol=1e-6)


def test_a_label_that_never_occurs_is_taken_as_right():
    inverse = TransitionMatrix(np.eye(3)).inverse(clean_prior=[0.5, 0.5, 0.0])
    np.testing.assert_array_equal(inverse, np.eye(3))


def test_uniform_and_pair_flip_noise_are_what_their_names_say():
    np.testing.assert_allclose(
        TransitionMatrix.uniform(3, 0.3).matrix,
        [[0.7, 0.15, 0.15], [0.15, 0.7, 0.15], [0.15, 0.15, 0.7]],
    )
    np.testing.assert_allclose(
        TransitionMatrix.pair_flip(3, 0.3).matrix, [[0.7, 0.3, 0], [0, 0.7, 0.3], [0.3, 0, 0.7]]
    )
    assert TransitionMatrix.uniform(2, 0.2).rates == NoiseRates(0.2, 0.2)
    # eigenvalues of a circulant matrix: 0.7 + 0.3 w, w a root of unity
    assert TransitionMatrix.pair_flip(10, 0.3).information_left == pytest.approx(0.4)
    assert TransitionMatrix.pair_flip(3, 0.3).information_left == pytest.approx(0.7 - 0.15)


def test_a_matrix_is_read_only_and_so_are_its_copies():
    noise = TransitionMatrix(T3)
    for same in (noise, copy.deepcopy(noise), pickle.loads(pickle.dumps(noise))):  # noqa: S301
        assert same == noise
        assert hash(same) == hash(noise)
        with pytest.raises(ValueError, match="read-only"):
            same.matrix[0, 0] = 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        noise.matrix = np.eye(3)
    assert noise != TransitionMatrix(np.eye(3))
    assert eval(repr(noise)) == noise  # noqa: S307
    values = np.eye(3)
    kept = TransitionMatrix(values)
    values[0, 0] = 0.5
    assert kept.matrix[0, 0] == 1


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        ([[0.9, 0.1]], r"shape \(1, 2\), expected \(n_classes, n_classes\)"),
        ([[1.0]], "at least two classes"),
        ([[0.9, 0.2], [0.1, 0.9]], r"row 0 of the transition matrix sums to 1\.1"),
        ([[1.1, -0.1], [0.1, 0.9]], r"must hold probabilities in \[0, 1\], got 1\.1"),
        ([[np.nan, 0.1], [0.1, 0.9]], "must hold probabilities"),
        (np.full((3, 3), 1 / 3), "has no inverse"),
        ([[0.5, 0.5, 0], [0, 0, 1], [0.25, 0.25, 0.5]], "has no inverse"),
    ],
)
def test_impossible_matrices_are_refused(matrix, message):
    with pytest.raises(ValueError, match=message):
        TransitionMatrix(matrix)


def test_what_is_no_noise_of_these_classes_is_refused():
    with pytest.raises(ValueError, match="3 classes"):
        as_transition_matrix(T3, 4)
    with pytest.raises(ValueError, match="2 classes"):
        as_transition_matrix(NoiseRates(None, 0.1), 3)
    with pytest.raises(TypeError, match="rates must be NoiseRates"):
        as_transition_matrix(0.3)
    with pytest.raises(ValueError, match="3 classes"):
        _ = TransitionMatrix(T3).rates
    with pytest.raises(ValueError, match=r"shape \(2,\), expected \(\.\.\., 3\)"):
        TransitionMatrix(T3).noisy_posterior([0.5, 0.5])
    with pytest.raises(ValueError, match="contradicts"):
        TransitionMatrix(T3).clean_prior([0.98, 0.01, 0.01])
    with pytest.raises(ValueError, match="exactly one of"):
        TransitionMatrix(T3).inverse()
    with pytest.raises(ValueError, match="n_classes"):
        TransitionMatrix.uniform(1, 0.1)


@pytest.mark.parametrize(
    "rates", [T3, np.array(T3), TransitionMatrix(T3)], ids=lambda r: str(type(r))
)
@pytest.mark.parametrize("container", [np.asarray, list, pd.Series, pl.Series])
def test_flips_of_three_classes_have_the_rates_asked_for(rates, container):
    y = np.repeat(["ape", "bee", "cat"], 5000)
    noisy = flip_labels(container(y), rates, random_state=0)
    assert isinstance(noisy, type(container(y)) if container is not list else np.ndarray)
    noisy = np.asarray(noisy)
    seen = [[np.mean(noisy[y == i] == j) for j in np.unique(y)] for i in np.unique(y)]
    # 5000 draws: four standard errors
    np.testing.assert_allclose(seen, T3, atol=4 * np.sqrt(0.25 / 5000))
    assert seen[2][0] == 0


def test_the_matrix_of_two_rates_flips_the_labels_that_the_rates_flip():
    y = np.repeat([0, 1], 200)
    rates = NoiseRates(0.3, 0.1)
    expected = flip_labels(y, rates, 7)
    np.testing.assert_array_equal(flip_labels(y, rates.transition_matrix, 7), expected)
    uniform = np.random.RandomState(7).uniform(size=400)
    np.testing.assert_array_equal(
        expected, np.where(uniform < np.where(y == 1, 0.3, 0.1), 1 - y, y)
    )


def test_a_sample_that_lacks_a_class_is_flipped_when_the_classes_are_named():
    with pytest.raises(ValueError, match="3 classes"):
        flip_labels(["a", "b"], T3, 0)
    noisy = flip_labels(["a", "b"] * 100, T3, 0, classes=["a", "b", "c"])
    assert set(noisy) == {"a", "b", "c"}
