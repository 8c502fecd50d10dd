"""Bounds of the entries of T."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from unflip import NoiseRates, TransitionMatrix
from unflip.noise import RatesInterval

PAIRS = RatesInterval.from_pairs(positive=(0.25, 0.4), negative=(0.05, 0.2))
THREE = TransitionMatrix.uniform(3, 0.3).matrix
OF_THREE = RatesInterval(np.clip(THREE - 0.05, 0, 1), THREE + 0.05, level=0.9)


def pairs_below(top: float):
    ends = st.floats(0, top, exclude_max=True)
    return st.tuples(ends, ends).map(lambda pair: tuple(sorted(pair)))


@given(pairs_below(0.49), pairs_below(0.49), st.floats(0, 0.49), st.floats(0, 0.49))
def test_an_interval_of_two_classes_holds_the_rates_between_its_ends(a, b, rho_pos, rho_neg):
    interval = RatesInterval.from_pairs(a, b)
    assert interval.positive == a
    assert interval.negative == b
    assert interval.both() == (a, b)
    for corner in (NoiseRates(a[0], b[0]), NoiseRates(a[1], b[1]), NoiseRates(a[0], b[1])):
        assert interval.contains(corner)
        assert interval.contains(corner.transition_matrix)
    inside = a[0] <= rho_pos <= a[1] and b[0] <= rho_neg <= b[1]
    far = min(abs(rho - end) for rho, pair in ((rho_pos, a), (rho_neg, b)) for end in pair) > 1e-9
    if inside or far:
        assert interval.contains(NoiseRates(rho_pos, rho_neg)) == inside


def test_the_diagonal_mirrors_the_rates():
    assert_allclose(PAIRS.low, [[0.8, 0.05], [0.25, 0.6]])
    assert_allclose(PAIRS.high, [[0.95, 0.2], [0.4, 0.75]])
    assert_allclose(PAIRS.flip_rates, [[0.05, 0.2], [0.25, 0.4]])
    assert_allclose(PAIRS.width, np.full((2, 2), 0.15))


def test_more_classes_have_ends_for_every_entry():
    assert OF_THREE.n_classes == 3
    assert OF_THREE.contains(THREE)
    assert OF_THREE.contains(TransitionMatrix(THREE))
    assert not OF_THREE.contains(TransitionMatrix.uniform(3, 0.36))
    assert_allclose(OF_THREE.width, 0.1)
    assert_allclose(OF_THREE.flip_rates, np.tile([0.25, 0.35], (3, 1)))
    with pytest.raises(AttributeError, match="3 classes"):
        _ = OF_THREE.negative
    assert not hasattr(OF_THREE, "positive")


def test_it_reads_with_three_digits_and_repeats_with_all():
    interval = RatesInterval.from_pairs((0.15625, 0.3), (0, 0.1), 0.9, label_error_rate=(0.05, 0.2))
    shown = "positive=(0.156, 0.3), negative=(0, 0.1), level=0.9, label_error_rate=(0.05, 0.2)"
    assert str(interval) == f"RatesInterval({shown})"
    assert "high=[[0.75, 0.2, 0.2]" in str(OF_THREE)
    assert repr(interval) == (
        "RatesInterval(low=[[0.9, 0.0], [0.15625, 0.7]], high=[[1.0, 0.1], [0.3, 0.84375]], "
        "level=0.9, label_error_rate=(0.05, 0.2))"
    )


def test_copies_are_equal_and_read_only():
    for each in (PAIRS, OF_THREE):
        for again in (copy.deepcopy(each), pickle.loads(pickle.dumps(each))):  # noqa: S301
            assert again == each
            assert hash(again) == hash(each)
            with pytest.raises(ValueError, match="read-only"):
                again.low[0, 0] = 0.0
    assert RatesInterval(PAIRS.low, PAIRS.high, 0.9) != PAIRS
    assert RatesInterval(PAIRS.low, PAIRS.high, label_error_rate=(0, 0.1)) != PAIRS
    assert NoiseRates((0.25, 0.4), (0.05, 0.2)) != PAIRS


def test_an_interval_is_no_rate_but_its_ends_are_bounds():
    from unflip.noise_rates import make_rates

    with pytest.raises(TypeError, match=r"NoiseRates\(\*interval.both\(\)\)"):
        make_rates(PAIRS)
    assert NoiseRates(*PAIRS.both()).bounds == PAIRS.both()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: RatesInterval([[0.1, 0.2]], [[0.1, 0.2]]), "expected .n_classes, n_classes."),
        (lambda: RatesInterval(PAIRS.low, OF_THREE.high), r"and high has shape \(3, 3\)"),
        (lambda: RatesInterval(PAIRS.high, PAIRS.low), "lower end above its upper end"),
        (lambda: RatesInterval(PAIRS.low, PAIRS.high + 0.2), r"probabilities in \[0, 1\]"),
        (lambda: RatesInterval(PAIRS.low, PAIRS.high, 95), "level must lie between 0 and 1"),
        (
            lambda: RatesInterval(PAIRS.low, PAIRS.high, label_error_rate=0.1),
            "label_error_rate must be",
        ),
        (lambda: RatesInterval.from_pairs((0.3, 0.1), (0, 0)), r"positive must be \(low, high\)"),
        (lambda: RatesInterval.from_pairs((0.1, 0.3), "ab"), "negative must hold numbers"),
    ],
)
def test_ends_that_are_no_interval_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
