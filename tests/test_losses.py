"""Losses: derivatives by finite differences, flags by what they claim."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from unflip.losses import LOSSES, Cauchy, Loss, MarginLoss, Welsch, get_loss

GRID = np.linspace(-3.013, 3.017, 400)  # off the kinks at -1, 0 and 1
STEP = 1e-6
every_loss = pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
both_labels = pytest.mark.parametrize("label", [-1.0, 1.0])


@every_loss
@both_labels
def test_first_derivatives_are_finite_differences(loss, label):
    y = np.full_like(GRID, label)
    slope = (loss.value(GRID + STEP, y) - loss.value(GRID - STEP, y)) / (2 * STEP)
    np.testing.assert_allclose(loss.derivative(GRID, y), slope, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", [name for name in LOSSES if name != "hinge"])
@both_labels
def test_second_derivatives_are_finite_differences(name, label):
    loss, y = LOSSES[name], np.full_like(GRID, label)
    bend = (loss.derivative(GRID + STEP, y) - loss.derivative(GRID - STEP, y)) / (2 * STEP)
    np.testing.assert_allclose(loss.second(GRID, y), bend, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("loss", [Cauchy(0.5), Welsch(2.0)], ids=repr)
def test_scaled_losses_have_right_derivatives_too(loss):
    y = np.ones_like(GRID)
    slope = (loss.value(GRID + STEP, y) - loss.value(GRID - STEP, y)) / (2 * STEP)
    np.testing.assert_allclose(loss.derivative(GRID, y), slope, rtol=1e-5, atol=1e-6)
    bend = (loss.derivative(GRID + STEP, y) - loss.derivative(GRID - STEP, y)) / (2 * STEP)
    np.testing.assert_allclose(loss.second(GRID, y), bend, rtol=1e-4, atol=1e-5)


def test_the_hinge_gives_no_second_derivative():
    with pytest.raises(NotImplementedError, match="second derivative"):
        LOSSES["hinge"].second(GRID, np.ones_like(GRID))


@every_loss
def test_the_convex_flag_is_true(loss):
    t = np.linspace(-4, 4, 801)
    chords = [
        (value[:-2] + value[2:]) / 2 - value[1:-1]
        for value in (loss.value(t, np.full_like(t, label)) for label in (-1.0, 1.0))
    ]
    assert (min(chord.min() for chord in chords) >= -1e-12) == loss.convex


@every_loss
def test_the_smooth_flag_is_true(loss):
    kinks = np.array([-1.0, 0.0, 1.0])
    jumps = [
        np.abs(loss.derivative(kinks + 1e-9, y) - loss.derivative(kinks - 1e-9, y)).max()
        for y in (np.full(3, -1.0), np.full(3, 1.0))
    ]
    assert (max(jumps) < 1e-6) == loss.smooth


@every_loss
def test_the_symmetric_flag_is_true(loss):
    total = loss.value(GRID, np.ones_like(GRID)) + loss.value(GRID, -np.ones_like(GRID))
    assert (np.ptp(total) < 1e-9) == loss.symmetric


@pytest.mark.parametrize("name", [name for name in LOSSES if name != "hinge"])
def test_the_even_curvature_flag_is_true(name):
    loss = LOSSES[name]
    difference = loss.second(GRID, np.ones_like(GRID)) - loss.second(GRID, -np.ones_like(GRID))
    assert (np.abs(difference).max() < 1e-9) == loss.even_curvature


def conditional_risk(loss, eta, t):
    one = np.ones_like(t)
    return eta * loss.value(t, one) + (1 - eta) * loss.value(t, -one)


@every_loss
def test_the_calibrated_flag_is_true(loss):
    """Least conditional risk over decisions of the wrong sign exceeds that of the right sign."""
    t = np.linspace(-6, 6, 4801)
    calibrated = True
    for eta in (0.1, 0.3, 0.45, 0.55, 0.7, 0.9):
        risk = conditional_risk(loss, eta, t)
        right = t * (2 * eta - 1) > 0
        calibrated &= bool(risk[right].min() < risk[~right].min())
    assert calibrated == loss.calibrated


@pytest.mark.parametrize("name", [n for n, loss in LOSSES.items() if loss.probability is not None])
@pytest.mark.parametrize("eta", [0.05, 0.3, 0.5, 0.8])
def test_the_minimiser_of_the_conditional_risk_tells_the_probability(name, eta):
    loss = LOSSES[name]
    best = minimize_scalar(
        lambda t: conditional_risk(loss, eta, np.array(t)),
        bounds=(-6, 6),
        method="bounded",
        options={"xatol": 1e-10},
    )
    assert loss.probability(np.array(best.x)) == pytest.approx(eta, abs=1e-4)


@every_loss
def test_weights_multiply_everything(loss):
    rng = np.random.default_rng(0)
    t, y, weight = rng.normal(size=20), np.tile([-1.0, 1.0], 10), rng.uniform(size=20)
    np.testing.assert_allclose(loss.value(t, y, weight), weight * loss.value(t, y))
    np.testing.assert_allclose(loss.derivative(t, y, weight), weight * loss.derivative(t, y))
    expected = (weight * loss.value(t, y)).sum() / weight.sum()
    assert loss.risk(t, y, weight) == pytest.approx(expected)


def test_the_asymmetric_exponential_is_bartletts_example():
    loss = LOSSES["asymmetric_exponential"]
    t, y = np.array([-1.0, -1.0, 0.5, 0.5]), np.array([1.0, -1.0, 1.0, -1.0])
    np.testing.assert_allclose(loss.value(t, y), np.exp([2, -1, -0.5, 1]))


def test_names_and_instances():
    assert get_loss("hinge") is LOSSES["hinge"]
    mine = Cauchy(3.0)
    assert get_loss(mine) is mine
    with pytest.raises(ValueError, match="loss='zero-one'"):
        get_loss("zero-one")


def test_a_loss_of_ones_own_needs_two_methods():
    class Ramp(MarginLoss):
        convex, smooth, symmetric = False, False, True

        def of_margin(self, m):
            return np.clip(1 - m, 0, 2) / 2

        def slope(self, m):
            return -0.5 * (np.abs(m) < 1)

    assert isinstance(Ramp(), Loss)
    assert Ramp().risk(np.array([2.0, -2.0]), np.array([1.0, 1.0])) == 0.5
