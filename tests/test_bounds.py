"""The paper's bounds against brute force over all signs, and against simulated truth."""

from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tests.test_noise import noise_rates, probability
from unflip import NoiseRates, flip_labels, importance_weights
from unflip.paper.bounds import (
    RademacherEstimate,
    density_ratio_rate,
    generalization_bound,
    joint_estimation_rate,
    kernel_rademacher,
    kernel_rademacher_bound,
    linear_rademacher,
    linear_rademacher_bound,
    smallest_noise_ratio,
    weight_bound,
)

CLASSES = [-1, 1]
RATES = NoiseRates(positive=0.3, negative=0.1)

scale = st.floats(0.01, 100)
hundredths = st.integers(-500, 500).map(lambda k: k / 100)  # no squares that underflow
rows = arrays(float, st.tuples(st.integers(1, 7), st.integers(1, 3)), elements=hundredths)


def all_signs(n):
    return np.array(list(product([-1.0, 1.0], repeat=n)))


def empirical_complexity(values):
    """E sup_g (2/n) sum_i sigma_i g_i over all signs, for a finite class: one row per function."""
    n = values.shape[1]
    return 2 / n * (all_signs(n) @ values.T).max(axis=1).mean()


def linear_functions(X, radius, n_directions=720):
    """The values on X of w.x for many w on the circle of that radius; the supremum is on it."""
    angle = np.linspace(0, 2 * np.pi, n_directions, endpoint=False)
    return radius * np.column_stack([np.cos(angle), np.sin(angle)]) @ X.T


# the bound of the weights


@given(noise_rates(most=0.9), st.lists(probability, min_size=1, max_size=10))
def test_the_weight_bound_with_u_is_the_largest_weight(rates, clean):
    noisy = np.clip(rates.noisy_posterior(clean), 0, 1)
    both = np.concatenate([noisy, 1 - noisy])
    labels = np.repeat([1, -1], noisy.size)
    beta = importance_weights(both, labels, rates, classes=CLASSES)
    u = smallest_noise_ratio(noisy, rates)
    assert weight_bound(rates, u) == pytest.approx(beta.max(), rel=1e-6)


@given(noise_rates(most=0.95), st.lists(probability, min_size=1, max_size=10))
def test_no_posterior_gives_a_weight_above_the_bound_from_the_rates_alone(rates, noisy):
    u = smallest_noise_ratio(noisy, rates)
    assert weight_bound(rates, u) <= weight_bound(rates) * (1 + 1e-9)


@given(noise_rates(most=0.95))
def test_the_bound_from_the_rates_alone_is_reached_where_a_row_is_surely_of_its_class(rates):
    u = smallest_noise_ratio(rates.noisy_posterior([0, 1]).clip(0, 1), rates)
    assert weight_bound(rates, u) == pytest.approx(weight_bound(rates), rel=1e-6)


@given(noise_rates(most=0.95))
def test_the_supplements_weight_bound_is_never_the_smaller_one(rates):
    supplement = (1 - min(rates.both())) / rates.information_left
    assert weight_bound(rates) <= supplement * (1 + 1e-9)


def test_the_weight_bound_has_its_golden_values():
    assert weight_bound(RATES) == pytest.approx(1 / 0.7)
    assert weight_bound(RATES, u=0.0) == pytest.approx(1 / 0.6)
    assert weight_bound(RATES, u=0.4) == pytest.approx(1)
    assert weight_bound(NoiseRates(0.0, 0.0)) == 1
    assert smallest_noise_ratio([0.2, 0.5], RATES) == pytest.approx(0.1 / 0.5)


def test_a_label_that_never_occurs_does_not_count_in_u():
    assert smallest_noise_ratio([0.0, 0.0], NoiseRates(positive=0.3, negative=0.0)) == 0.3


# Rademacher complexities


def test_linear_monte_carlo_agrees_with_all_signs_and_a_searched_supremum():
    X = np.random.default_rng(0).normal(size=(8, 2))
    estimate = linear_rademacher(X, 1.5, n_draws=20_000, random_state=0)
    exact = empirical_complexity(linear_functions(X, 1.5))
    assert abs(estimate.value - exact) < 4 * estimate.standard_error + 1e-4
    assert estimate.standard_error < 0.01 * exact


def test_kernel_monte_carlo_agrees_with_all_signs_and_the_functions_of_the_norm_ball():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(7, 1))
    K = np.exp(-((x - x.T) ** 2))
    signs = all_signs(7)
    # f = sum_j a_j k(x_j, .) of norm 2; by Cauchy-Schwarz the best a is along the signs
    best = signs * (2 / np.sqrt(np.einsum("ij,jk,ik->i", signs, K, signs)))[:, None]
    np.testing.assert_allclose(np.einsum("ij,jk,ik->i", best, K, best), 4)
    supremum = np.einsum("ij,jk,ik->i", signs, K, best)
    others = rng.normal(size=(2000, 7))
    others *= (2 / np.sqrt(np.einsum("ij,jk,ik->i", others, K, others)))[:, None]
    assert (signs @ K @ others.T <= supremum[:, None] + 1e-9).all()
    estimate = kernel_rademacher(K, 2.0, n_draws=20_000, random_state=0)
    exact = 2 / 7 * supremum.mean()
    assert abs(estimate.value - exact) < 4 * estimate.standard_error


@given(rows, scale)
def test_the_closed_form_is_between_the_exact_complexity_and_sqrt_2_times_it(X, radius):
    n = X.shape[0]
    exact = 2 * radius / n * np.linalg.norm(all_signs(n) @ X, axis=1).mean()
    closed = linear_rademacher_bound(X, radius)
    assert exact <= closed * (1 + 1e-9)
    assert closed <= np.sqrt(2) * exact * (1 + 1e-9)


def test_the_closed_form_is_above_monte_carlo_on_a_large_sample():
    X = np.random.default_rng(2).normal(size=(5000, 4))
    estimate = linear_rademacher(X, 2.0, n_draws=500, random_state=0)
    closed = linear_rademacher_bound(X, 2.0)
    assert 0.9 * closed < estimate.value < closed
    assert closed == pytest.approx(2 * 2.0 * np.sqrt(4 / 5000), rel=0.05)


@given(rows, st.integers(0, 10))
def test_the_linear_kernel_has_the_complexity_of_the_linear_class(X, seed):
    linear = linear_rademacher(X, 1.0, n_draws=20, random_state=seed)
    kernel = kernel_rademacher(X @ X.T, 1.0, n_draws=20, random_state=seed)
    np.testing.assert_allclose(kernel, linear, rtol=1e-6, atol=1e-6)
    assert kernel_rademacher_bound((X @ X.T).diagonal(), 1.0) == pytest.approx(
        linear_rademacher_bound(X, 1.0), abs=1e-12
    )


@given(rows, scale, scale, scale)
def test_complexities_scale_with_the_radius_the_loss_and_the_rows(X, radius, lipschitz, stretch):
    whole = radius * lipschitz * stretch
    assert linear_rademacher_bound(stretch * X, radius, lipschitz=lipschitz) == pytest.approx(
        whole * linear_rademacher_bound(X, 1.0), rel=1e-9
    )
    np.testing.assert_allclose(
        linear_rademacher(stretch * X, radius, lipschitz=lipschitz, n_draws=9, random_state=0),
        whole * np.array(linear_rademacher(X, 1.0, n_draws=9, random_state=0)),
        rtol=1e-6,
        atol=1e-9,
    )


@given(rows, st.integers(2, 5))
def test_the_closed_form_falls_as_one_over_the_root_of_n_for_repeated_rows(X, times):
    many = linear_rademacher_bound(np.tile(X, (times, 1)), 1.0)
    assert many == pytest.approx(linear_rademacher_bound(X, 1.0) / np.sqrt(times))


def test_a_seed_repeats_the_draws_however_they_are_batched():
    X = np.random.default_rng(3).normal(size=(2**19, 1))  # two sign vectors at a time
    first = linear_rademacher(X, 1.0, n_draws=5, random_state=7)
    assert first == linear_rademacher(X, 1.0, n_draws=5, random_state=7)
    assert first != linear_rademacher(X, 1.0, n_draws=5, random_state=8)
    assert first.standard_error > 0


@given(
    arrays(float, (5, 2), elements=st.floats(-3, 3)),
    arrays(float, 5, elements=st.floats(0, 4)),
    st.lists(st.sampled_from(CLASSES), min_size=5, max_size=5),
)
def test_contraction_takes_the_loss_and_the_weights_out_of_the_complexity(X, beta, labels):
    functions = linear_functions(X, 1.0, n_directions=60)
    loss = np.logaddexp(0, -np.array(labels) * functions)  # 1-Lipschitz
    weighted = empirical_complexity(beta * loss)
    slack = 1e-9
    assert weighted <= beta.max() * empirical_complexity(loss) + slack
    assert empirical_complexity(loss) <= empirical_complexity(functions) + slack
    # row by row, as the notes of linear_rademacher_bound say
    assert weighted <= linear_rademacher_bound(X * beta[:, None], 1.0) + slack
    assert empirical_complexity(3 * loss) <= (
        linear_rademacher_bound(X, 1.0, lipschitz=3.0) + slack
    )


# Proposition 1


def test_proposition_1_is_its_formula():
    b, largest = 3.0 / 0.7, 1 / 0.7
    expected = generalization_bound(0.2, RATES, 500, loss_bound=3.0, delta=0.1, empirical=False)
    assert expected == pytest.approx(0.2 * largest + b * np.sqrt(np.log(20) / 1000))
    empirical = generalization_bound(0.2, RATES, 500, loss_bound=3.0, delta=0.1)
    assert empirical == pytest.approx(0.2 * largest + 3 * b * np.sqrt(np.log(30) / 1000))
    with_u = generalization_bound(
        0.2, RATES, 500, loss_bound=3.0, u=0.4, delta=0.1, empirical=False
    )
    assert with_u == pytest.approx(0.2 + 3 * np.sqrt(np.log(20) / 1000))


def test_the_printed_proposition_1_fails_where_this_one_holds():
    # one f, zero-one loss, P(true=+1|x) = 1/2, no noise, one row: the loss is 0 or 1, its mean 1/2
    clean, delta = NoiseRates(0.0, 0.0), 0.7
    complexity = empirical_complexity(np.array([[1.0]]))
    assert complexity == 0
    gap = 0.5
    printed = complexity + 1.0 * np.sqrt(np.log(1 / delta) / 2)
    assert printed < gap  # always, where it is said to happen with probability 0.7 at most
    assert gap < generalization_bound(
        complexity, clean, 1, loss_bound=1.0, delta=delta, empirical=False
    )


@given(noise_rates(most=0.9), st.floats(0, 10), scale, st.integers(1, 10**6), st.floats(1e-6, 0.99))
def test_proposition_1_grows_with_all_that_makes_learning_harder(
    rates, complexity, loss_bound, n, delta
):
    def bound(complexity=complexity, rates=rates, n=n, delta=delta, empirical=False):
        return generalization_bound(
            complexity, rates, n, loss_bound=loss_bound, delta=delta, empirical=empirical
        )

    assert 0 < bound() < bound(empirical=True)
    assert bound() < bound(delta=delta / 2)
    assert bound(n=4 * n) < bound()
    assert bound(rates=NoiseRates(0.0, 0.0)) <= bound()
    assert bound(complexity=complexity + 1) > bound()
    assert bound(rates=rates.swapped()) == pytest.approx(bound())
    # halved by four times the rows, where the complexity is
    assert bound(complexity / 2, n=4 * n) == pytest.approx(bound() / 2)


@given(noise_rates(most=0.9), probability, probability)
def test_an_error_of_the_posterior_costs_the_weights_no_more_than_its_mean_over_what_is_left(
    rates, clean, estimated
):
    """The step of Proposition 2 that makes a mean error of the ratio enough."""
    noisy = rates.noisy_posterior([clean, estimated]).clip(0, 1)
    assume((noisy > 1e-6).all() and (noisy < 1 - 1e-6).all())
    truth, guess = np.array([noisy[0], 1 - noisy[0]]), np.array([noisy[1], 1 - noisy[1]])
    difference = importance_weights(truth, [1, -1], rates) - importance_weights(
        guess, [1, -1], rates
    )
    assert truth @ np.abs(difference) <= np.abs(truth - guess).sum() / rates.information_left + 1e-9


# Propositions 2 and 3, up to their constants


def slope(n, values):
    return np.polyfit(np.log(n), np.log(values), 1)[0]


def test_proposition_2_is_its_formula_and_goes_as_the_fourth_root():
    s, s_ratio = np.sqrt(np.log(40) / 1000), np.sqrt(np.log(40) / 200)
    assert density_ratio_rate(0.1, 0.3, 1000, n_ratio=200) == pytest.approx(
        0.1 + s + np.sqrt(0.3 + s_ratio)
    )
    assert density_ratio_rate(0.1, 0.3, 1000) == pytest.approx(0.1 + s + np.sqrt(0.3 + s))
    n = 10 ** np.arange(10, 14)
    rate = [density_ratio_rate(m**-0.5, m**-0.5, int(m)) for m in n.astype(float)]
    assert slope(n, rate) == pytest.approx(-0.25, abs=0.005)


def test_proposition_3_is_its_formula():
    s = np.sqrt(np.log(40) / 10**6)
    error = 2 * (s + np.sqrt(0.001 + s) + 0.01)
    rate = joint_estimation_rate(
        0.1, 0.001, RATES, 10**6, minimum_gap=0.01, constant=2.0, delta=0.05
    )
    assert rate == pytest.approx(error / (0.6 - error) ** 2 + 0.1 + s)


@given(noise_rates(most=0.9), st.floats(0, 0.1), st.floats(0, 0.1), st.integers(1, 10**8))
def test_estimating_the_rates_too_never_has_the_better_rate(rates, complexity, ratio, n):
    joint = joint_estimation_rate(complexity, ratio, rates, n)
    known = density_ratio_rate(complexity, ratio, n)
    assert joint >= known
    assert joint <= joint_estimation_rate(complexity, ratio, rates, n, minimum_gap=0.05)


def test_proposition_3_says_nothing_where_the_error_reaches_the_information_left():
    assert joint_estimation_rate(0.1, 0.1, RATES, 100) == np.inf
    assert joint_estimation_rate(0.1, 0.0, RATES, 10**6) < np.inf


# errors


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: weight_bound(RATES, u=0.5), ValueError, "at most rho_pos \\+ rho_neg = 0.4"),
        (lambda: weight_bound(RATES, u=-0.1), ValueError, "u must be a finite number >= 0"),
        (lambda: weight_bound((0.3, 0.1)), TypeError, "NoiseRates\\(positive"),
        (lambda: weight_bound(NoiseRates(None, 0.1)), ValueError, "unknown rate"),
        (lambda: smallest_noise_ratio([1.2], RATES), ValueError, "probabilities in"),
        (lambda: smallest_noise_ratio([], RATES), ValueError, "empty"),
        (lambda: bound(delta=0.0), ValueError, "delta must lie in"),
        (lambda: bound(delta=1.0), ValueError, "delta must lie in"),
        (lambda: bound(n_samples=0), ValueError, "n_samples"),
        (lambda: bound(n_samples=10.5), ValueError, "n_samples must be an integer"),
        (lambda: bound(rademacher=-0.1), ValueError, "rademacher must be a finite number"),
        (lambda: bound(rademacher=float("nan")), ValueError, "rademacher must be a finite"),
        (lambda: bound(rademacher="0.1"), ValueError, "rademacher must be a finite"),
        (lambda: bound(rademacher=RademacherEstimate(0.1, 0.01)), TypeError, "Pass its .value"),
        (lambda: bound(loss_bound=float("inf")), ValueError, "loss_bound must be a finite"),
        (lambda: density_ratio_rate(0.1, -1, 10), ValueError, "rademacher_ratio"),
        (lambda: density_ratio_rate(0.1, 0.1, 10, n_ratio=0), ValueError, "n_ratio"),
        (
            lambda: joint_estimation_rate(0.1, 0.1, RATES, 10, minimum_gap=-1),
            ValueError,
            "minimum_gap",
        ),
        (lambda: joint_estimation_rate(0.1, 0.1, None, 10), TypeError, "rates must be"),
        (lambda: linear_rademacher_bound([1.0, 2.0], 1.0), ValueError, "2D array"),
        (lambda: linear_rademacher_bound([[1.0]], -1.0), ValueError, "radius"),
        (lambda: linear_rademacher_bound([[1.0]], 1.0, lipschitz=-1), ValueError, "lipschitz"),
        (lambda: linear_rademacher([[1.0]], 1.0, n_draws=1), ValueError, "n_draws"),
        (lambda: linear_rademacher([[np.nan]], 1.0), ValueError, "NaN"),
        (lambda: kernel_rademacher_bound(np.eye(3), 1.0), ValueError, "K.diagonal()"),
        (lambda: kernel_rademacher_bound([1.0, -1.0], 1.0), ValueError, "K_diagonal must be >= 0"),
        (lambda: kernel_rademacher(np.ones((3, 2)), 1.0), ValueError, "linear_rademacher"),
        (lambda: kernel_rademacher([[1.0, 2.0], [0.0, 1.0]], 1.0), ValueError, "symmetric"),
        (lambda: kernel_rademacher(-np.eye(3), 1.0), ValueError, "positive semi-definite"),
    ],
)
def test_an_error_says_what_was_given_and_what_is_expected(call, error, message):
    with pytest.raises(error, match=message):
        call()


def bound(**changed):
    """Proposition 1 with one argument that is wrong."""
    arguments = {"rademacher": 0.1, "rates": RATES, "n_samples": 100, "loss_bound": 1.0}
    return generalization_bound(**(arguments | changed))


# the bound on simulated data with known truth

SIZES = 250 * 2 ** np.arange(7)  # 250 .. 16000
RADIUS = 3.0


class KnownTruth:
    """Equally likely points of the unit disc whose P(true=+1|x) is known.

    Both risks are then finite sums over (point, label), and their difference is linear in the
    masses of those: the supremum over |w| <= RADIUS takes one product with a fixed table.
    """

    n_points = 300

    def __init__(self, loss):
        rng = np.random.default_rng(0)
        turn, reach = rng.uniform(0, 2 * np.pi, self.n_points), rng.uniform(size=self.n_points)
        self.X = np.sqrt(reach)[:, None] * np.column_stack([np.cos(turn), np.sin(turn)])
        self.norms = np.linalg.norm(self.X, axis=1)
        self.clean = 1 / (1 + np.exp(-6 * self.X @ [1.0, 0.5] - 0.5))
        self.mass = np.concatenate([1 - self.clean, self.clean]) / self.n_points  # y = -1, then +1
        angle, length = np.linspace(0, 2 * np.pi, 181)[:-1], np.linspace(0, RADIUS, 31)
        w = np.multiply.outer([np.cos(angle), np.sin(angle)], length).reshape(2, -1)
        self.table = np.concatenate([loss(-self.X @ w), loss(self.X @ w)])
        # no w of the disc is farther from the grid than half the diagonal of its largest cell
        self.half_diagonal = np.hypot(length[1], RADIUS * angle[1]) / 2

    def sample(self, n, rates, rng):
        """The points and the noisy labels of n rows."""
        point = rng.integers(self.n_points, size=n)
        true = np.where(rng.uniform(size=n) < self.clean[point], 1, -1)
        seed = int(rng.integers(2**31))
        return point, flip_labels(true, rates, random_state=seed, classes=CLASSES)

    def weights(self, point, noisy, rates):
        positive = rates.noisy_posterior(self.clean)[point].clip(0, 1)
        given = np.where(noisy == 1, positive, 1 - positive)
        return importance_weights(given, noisy, rates, classes=CLASSES)

    def gap(self, point, noisy, weights):
        """sup_w |clean risk - weighted risk| over the grid, and the most that the disc adds."""
        cell = point + self.n_points * (noisy == 1)
        weighted = np.bincount(cell, weights, minlength=2 * self.n_points) / point.size
        difference = self.mass - weighted
        steepest = np.abs(difference) @ np.tile(self.norms, 2)  # for a 1-Lipschitz loss
        return np.abs(difference @ self.table).max(), steepest * self.half_diagonal


@pytest.mark.slow
@pytest.mark.parametrize("pair", [(0.3, 0.1), (0.0, 0.4), (0.4, 0.4)])
@pytest.mark.parametrize("name", ["logistic", "hinge"])
def test_proposition_1_holds_and_the_gap_shrinks_as_one_over_the_root_of_n(name, pair):
    loss, loss_bound = {
        "logistic": (lambda margin: np.logaddexp(0, -margin), np.logaddexp(0, RADIUS)),
        "hinge": (lambda margin: np.maximum(0, 1 - margin), 1 + RADIUS),
    }[name]
    rates, truth, rng = NoiseRates(*pair), KnownTruth(loss), np.random.default_rng(1)
    gaps, unweighted = np.empty((2, SIZES.size, 100))
    for size, n in enumerate(SIZES.tolist()):
        # by Jensen's inequality the mean complexity is at most 2 r sqrt(E|x|^2 / n)
        expected = generalization_bound(
            2 * RADIUS * np.sqrt(np.mean(truth.norms**2) / n),
            rates,
            n,
            loss_bound=loss_bound,
            empirical=False,
        )
        for repetition in range(100):
            point, noisy = truth.sample(n, rates, rng)
            gap, rest = truth.gap(point, noisy, truth.weights(point, noisy, rates))
            complexity = linear_rademacher_bound(truth.X[point], RADIUS)
            empirical = generalization_bound(complexity, rates, n, loss_bound=loss_bound)
            assert gap + rest < expected < empirical
            gaps[size, repetition] = gap
            unweighted[size, repetition], _ = truth.gap(point, noisy, np.ones(n))
    assert -0.65 < slope(SIZES, gaps.mean(axis=1)) < -0.35
    # the test has power: without the weights the gap stays, and leaves the bound behind
    assert slope(SIZES, unweighted.mean(axis=1)) > -0.1
    assert unweighted[-1].min() > expected
