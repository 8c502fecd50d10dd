"""The noisy channel for any number of classes, against independent computations."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import expit, softmax
from sklearn.ensemble import ExtraTreesClassifier

from unflip import TransitionMatrix, flip_labels
from unflip._utils.sampling import drawn_rows
from unflip.channel import SETTINGS, _determinant, shortest_ranges
from unflip.channel._compare import counted_evidence, may_be_better
from unflip.channel._copies import distinct_rows
from unflip.channel._design import ChannelDesign, likelihood
from unflip.channel._determinant import _Around
from unflip.channel._evidence import fit_coefficients
from unflip.channel._features import ChannelFeatures
from unflip.channel._forest import ForestFeatures, Trees, folds_of
from unflip.channel._maximise import maximise
from unflip.channel._structure import (
    NoiseStructure,
    _dirichlet_gap,
    structures,
)
from unflip.posterior import ChannelPosterior

STRUCTURES = [
    *structures(4, free=True),
    NoiseStructure("one target", 4, per_class=False, targets=(1, 3, 0, 2)),
    NoiseStructure("one target, by class", 4, per_class=True, targets=(1, 0, 0, 0)),
]

TWO_TARGETS = TransitionMatrix(
    [[0.7, 0.15, 0.15, 0], [0, 0.7, 0.15, 0.15], [0.15, 0, 0.7, 0.15], [0.15, 0.15, 0, 0.7]]
)


def classes(n_classes, n_rows=900, seed=0, distance=3.0, n_columns=None):
    """Return Gaussian classes around the corners of a simplex."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n_rows)
    X = distance * np.eye(n_classes, n_columns)[y]
    return X + rng.normal(size=X.shape), y


def design_of(n_classes, n_rows, seed=0, noise=0.2):
    X, y = classes(n_classes, n_rows, seed)
    noisy = flip_labels(y, TransitionMatrix.uniform(n_classes, noise), random_state=seed)
    features = np.column_stack([np.ones(n_rows), (X - X.mean(axis=0)) / np.sqrt(X.shape[1])])
    block = np.repeat([0, 1], [1, X.shape[1]])
    weight = np.random.default_rng(seed).uniform(0.5, 1.5, n_rows)
    return ChannelDesign(features, block, noisy, weight, n_classes)


def differences(function, theta, step=1e-5):
    """Return central differences of a function with array values."""
    ends = [[function(theta + sign * e) for sign in (step, -step)] for e in np.eye(theta.size)]
    return np.array([(np.asarray(a) - np.asarray(b)) / (2 * step) for a, b in ends])


@pytest.mark.parametrize("structure", STRUCTURES, ids=lambda s: s.name)
def test_derivatives_of_a_structure_are_those_of_differences(structure):
    rng = np.random.default_rng(0)
    theta = rng.normal(-1, 1, structure.n_parameters)
    counts = rng.uniform(0, 50, (4, 4))
    T = structure.matrix(theta)
    assert T.sum(axis=1) == pytest.approx(np.ones(4))
    if not theta.size:
        assert pytest.approx(np.eye(4)) == T
        return

    if structure.targets is not None:
        counts[T == 0] = 0

    def likelihood(at):
        return (counts * np.log(np.where(T == 0, 1, structure.matrix(at)))).sum()

    assert structure.gradient(counts, theta) == pytest.approx(
        differences(likelihood, theta), rel=1e-5, abs=1e-6
    )
    _, slope, curvature = structure.log_prior(theta)
    by_difference = differences(lambda at: structure.log_prior(at)[0], theta)
    assert slope == pytest.approx(by_difference, rel=1e-5, abs=1e-6)
    assert -curvature == pytest.approx(
        differences(lambda at: structure.log_prior(at)[1], theta), rel=1e-5, abs=1e-6
    )
    jacobian, place = structure.jacobian(theta), structure.gathered()
    by_parameter = np.zeros((structure.n_parameters, 4, 4))
    for k in range(4):
        for a, position in enumerate(place[k]):
            by_parameter[position, k] += jacobian[k, :, a]
    assert by_parameter == pytest.approx(differences(structure.matrix, theta), rel=1e-5, abs=1e-7)


def test_the_prior_of_a_rate_integrates_to_one():
    structure = NoiseStructure("one", 3, per_class=False)
    total, _ = quad(lambda t: np.exp(structure.log_prior(np.array([t]))[0]), -30, 30)
    assert total == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("counts", [(0.05, 0.3), (1.0, 4.0), (30.0, 8.0)])
def test_what_laplace_leaves_out_of_a_beta_integral_is_put_back(counts):
    a, b = counts
    t = np.linspace(-600, 600, 600_001)
    logs = a * np.log(np.maximum(expit(t), 1e-300)) + b * np.log(np.maximum(expit(-t), 1e-300))
    exact = np.exp(logs).sum() * (t[1] - t[0])
    share = a / (a + b)
    top = a * np.log(share) + b * np.log(1 - share)
    laplace = top + 0.5 * np.log(2 * np.pi / ((a + b) * share * (1 - share)))
    gap = _dirichlet_gap(np.array([[a, b]]))[0]
    assert laplace + gap == pytest.approx(np.log(exact), abs=1e-5)


@pytest.mark.slow
def test_the_evidence_of_two_classes_is_the_integral_over_the_coefficients():
    design = design_of(2, 400)
    one = ChannelDesign(design.features[:, :2], design.block[:2], design.codes, design.weight, 2)
    structure, theta = structures(2, free=False)[1], np.array([-1.5])
    variance = np.array([4.0, one.latent_variance])  # the likeliest before the data
    fit = fit_coefficients(one, structure, theta, variance, tol=1e-12, max_iter=500)
    # of two classes only the difference of the two functions matters: twice the variance
    side = np.linspace(-9, 9, 451)
    A, B = np.meshgrid(side, side, indexing="ij")
    t = one.features[:, 0, None] * A.ravel() + one.features[:, 1, None] * B.ravel()
    T = structure.matrix(theta)
    p = expit(t) * T[1, one.codes][:, None] + expit(-t) * T[0, one.codes][:, None]
    log_joint = one.weight @ np.log(p)
    for w, v in ((A, 2 * variance[0]), (B, 2 * variance[1])):
        log_joint = log_joint - 0.5 * w.ravel() ** 2 / v - 0.5 * np.log(2 * np.pi * v)
    top = log_joint.max()
    integral = top + np.log(np.exp(log_joint - top).sum() * (side[1] - side[0]) ** 2)
    assert fit.log_likelihood == pytest.approx(integral, abs=0.35)  # Laplace's own error


@pytest.mark.parametrize("n_classes", [2, 4])
def test_the_gradient_of_the_evidence_is_that_of_differences(n_classes, monkeypatch):
    """The directions, in which the information is taken as diagonal, are those of the first fit."""
    exact = replace(SETTINGS, conjugate_steps=200, conjugate_tolerance=1e-12)
    monkeypatch.setattr(_determinant, "SETTINGS", exact)
    design = design_of(n_classes, 300)
    variance = design.first_variance()
    for structure in structures(n_classes, free=True)[1:]:
        theta = structure.start() + np.random.default_rng(1).normal(0, 0.3, structure.n_parameters)
        first = fit_coefficients(design, structure, theta, variance, tol=1e-13, max_iter=2000)

        def evidence(at, structure=structure, first=first):
            fit = fit_coefficients(
                design, structure, at, variance, first.unscaled_coef, tol=1e-13, max_iter=2000
            )
            vars(fit)["directions"] = first.directions
            return fit.log_evidence

        by_difference = differences(evidence, theta, step=1e-3)
        assert np.abs(first.gradient() - by_difference).max() < 3e-3 * np.abs(by_difference).max()


def test_the_evidence_is_what_the_information_of_every_label_gives():
    """Of two classes nothing is left out of the determinant: by brute force over labels."""
    design = design_of(2, 200)
    structure, theta = structures(2, free=False)[1], np.array([-1.5])
    variance = np.array([4.0, 9.0])
    fit = fit_coefficients(design, structure, theta, variance, tol=1e-13, max_iter=2000)
    root = np.sqrt(variance[design.block])
    F, T = design.features * root, structure.matrix(theta)
    w = np.linalg.lstsq(F, design.features @ fit.unscaled_coef)[0]
    g = softmax(F @ w, axis=1)
    information = np.eye(2 * F.shape[1])
    for i, f in enumerate(F):
        p = g[i] @ T
        for j in range(2):
            score = np.kron(g[i] * T[:, j] / p[j] - g[i], f)
            information += design.weight[i] * p[j] * np.outer(score, score)
    likelihood = design.weight @ np.log((g @ T)[np.arange(200), design.codes])
    expected = likelihood - 0.5 * (w**2).sum() - 0.5 * np.linalg.slogdet(information)[1]
    surprise = np.log(2 * variance[1] / 9.0)  # of the log-odds, whose variance is twice that
    # sums over rows are in single precision
    assert fit.log_likelihood == pytest.approx(expected - 0.5 * surprise**2, abs=1e-4)


def test_the_information_about_rates_does_not_depend_on_how_it_is_summed():
    """With even targets the sum over labels comes first, with free ones last."""
    design, theta = design_of(4, 300), np.array([-1.2, -0.8, -1.5, -1.0])
    even, free = (structures(4, free=True)[k] for k in (2, 5))
    found = []
    for structure, at in ((even, theta), (free, np.append(theta, np.zeros(8)))):
        fit = fit_coefficients(
            design, structure, at, design.first_variance(), tol=1e-10, max_iter=500
        )
        of_labels = fit.information(10_000) - structure.log_prior(at)[2]
        found.append(of_labels[:4, :4])
    assert found[0] == pytest.approx(found[1], rel=1e-8)


def test_a_search_ends_where_the_evidence_is_flat():
    design = design_of(3, 600)
    structure = structures(3, free=True)[2]
    mode = maximise(design, structure, structure.start(), design.first_variance(), tol=1e-3)
    step = np.linalg.solve(mode.fit.information(10_000), mode.fit.gradient())
    assert 0.5 * mode.fit.gradient() @ step < 0.05
    assert np.diag(mode.fit.T) == pytest.approx(np.full(3, 0.8), abs=0.08)


@pytest.mark.parametrize("structure", STRUCTURES[1:], ids=lambda s: s.name)
def test_counted_evidence_is_that_of_drawn_matrices(structure):
    """The mean likelihood of counts over matrices from the prior (importance of a Beta aside)."""
    rng = np.random.default_rng(0)
    K, n = structure.n_classes, 200_000
    counts = np.array([[3, 1, 0, 0], [0, 2, 1, 0], [1, 0, 3, 0], [0, 0, 0, 2]])
    rates = np.repeat(rng.beta(1, 4, (n, 1)), K, axis=1)
    if structure.per_class:
        rates = rng.beta(1, 4, (n, K))
    targets = np.full((n, K, K - 1), 1 / (K - 1))
    if structure.n_ratios:
        targets = rng.dirichlet(np.full(K - 1, structure.target_count), (n, K))
    flipped = counts[~np.eye(K, dtype=bool)].reshape(K, -1)
    likelihood = ((rates[:, :, None] * targets) ** flipped).prod(axis=(1, 2))
    likelihood *= ((1 - rates) ** np.diag(counts)).prod(axis=1)
    found = np.exp(counted_evidence(structure, counts.astype(float)))
    spread = likelihood.std() / np.sqrt(n)
    assert found == pytest.approx(likelihood.mean(), abs=4 * spread)


def test_structures_that_counts_rule_out_are_not_tried():
    X, y = classes(10, 3000)
    even = flip_labels(y, TransitionMatrix.uniform(10, 0.3), random_state=0)
    pairs = flip_labels(y, TransitionMatrix.pair_flip(10, 0.3), random_state=0)
    block = np.repeat([0, 1], [1, 10])
    features = np.column_stack([np.ones(len(X)), X - X.mean(axis=0)])
    one, few = (structures(10, free=True)[k] for k in (1, 3))
    for noisy, may in ((even, []), (pairs, [few])):
        design = ChannelDesign(features, block, noisy, np.ones(len(X)), 10)
        mode = maximise(design, one, one.start(), design.first_variance())
        assert may_be_better([few], mode) == may


def test_few_targets_are_looked_for_where_noise_with_even_ones_seems_absent():
    """Columns that tell all classes apart explain flips to the next class by themselves."""
    X, y = classes(8, 600, distance=2.0)
    pairs = flip_labels(y, TransitionMatrix.pair_flip(8, 0.3), random_state=0)
    channel = ChannelPosterior("linear").fit(X, pairs)
    assert "one rate, few targets" in channel.structure_probability_
    error = np.abs(channel.rates_.matrix - TransitionMatrix.pair_flip(8, 0.3).matrix)
    assert 0.5 * error.sum(axis=1).mean() < 0.1


def test_theta_and_w_are_found_together_where_the_evidence_has_its_maximum():
    """A step of both, with the determinant's slope, ends where the evidence is flat in theta."""
    design = design_of(3, 600)
    structure = structures(3, free=True)[2]
    mode = maximise(design, structure, structure.start(), design.first_variance(), tol=1e-4)
    fit = mode.fit
    for _ in range(4):
        fit = fit_coefficients(
            design,
            structure,
            fit.theta,
            fit.variance,
            fit.unscaled_coef,
            near=fit,
            slope=fit.determinant_slope,
            tol=1e-10,
            max_iter=500,
        )
    assert fit.gain >= 0
    assert np.abs(fit.gradient()).max() < 0.05
    assert fit.theta == pytest.approx(mode.fit.theta, abs=0.05)


def test_products_with_the_observed_information_are_those_of_differences():
    design = design_of(3, 200)
    structure = structures(3, free=True)[1]
    variance = design.first_variance()
    fit = fit_coefficients(design, structure, np.array([-1.0]), variance, tol=1e-8, max_iter=300)
    around = _Around(design, fit.T, fit.unscaled_coef, fit.directions, fit.unscaled_roots, fit.root)
    path = np.random.default_rng(0).normal(size=fit.unscaled_coef.shape)

    def slope(step):
        w = fit.unscaled_coef + step * path
        _, gamma, g = likelihood(design, w, fit.T[:, design.codes])
        return w / fit.root[:, None] ** 2 - design.features.T @ (
            design.weight[:, None] * (gamma - g)
        )

    by_difference = (slope(1e-5) - slope(-1e-5)) / 2e-5
    assert around.product(path) == pytest.approx(by_difference, rel=1e-5, abs=1e-5)


def test_a_row_is_predicted_as_by_a_fit_without_it():
    X, y = classes(3, 150)
    T = TransitionMatrix.uniform(3, 0.2)
    y = flip_labels(y, T, random_state=0)
    channel = ChannelPosterior("linear", known=T)
    proba = channel.fit_predict_proba(X, y)
    assert proba.sum(axis=1) == pytest.approx(np.ones(150))
    rows, exact = np.arange(0, 150, 5), []
    for row in rows:
        others = np.arange(150) != row
        without = ChannelPosterior("linear", known=T).fit(X[others], y[others])
        exact.append(without.predict_proba(X[[row]])[0])
    error = np.abs(proba[rows] - exact).mean()  # the variances are held
    assert error < 0.5 * np.abs(channel.predict_proba(X[rows]) - exact).mean()


def test_rows_that_were_not_drawn_are_held_out_already():
    X, y = classes(3, 1600)
    y = flip_labels(y, TransitionMatrix.uniform(3, 0.2), random_state=0)
    channel = ChannelPosterior("linear", max_rows=1000)
    proba = channel.fit_predict_proba(X, y)
    left = np.setdiff1d(np.arange(1600), drawn_rows(1600, 1000, None))
    assert proba[left] == pytest.approx(channel.predict_proba(X[left]))


def test_a_row_has_as_many_held_out_trees_as_a_new_one():
    """Scores by three ways to fold the rows vary less than those by one, and tell no label."""
    rng = np.random.default_rng(0)
    X, codes, weight = rng.normal(size=(600, 5)), rng.integers(0, 2, 600), np.ones(600)
    columns = ChannelFeatures(None, 1).fit(X, weight, np.arange(600))
    forest = ForestFeatures(columns)
    once = forest.fit(X, codes, weight, 2, 0)
    thrice = forest.steadier(X, codes, weight, once)
    assert thrice[:, 1].std() < 0.9 * once[:, 1].std()
    assert abs(np.corrcoef(thrice[:, 1], codes)[0, 1]) < 0.12
    ways = folds_of(X)
    assert len({tuple(way) for way in ways}) == len(ways)


@pytest.mark.parametrize(
    ("noise", "name"),
    [
        (TransitionMatrix(np.eye(4)), "none"),
        (TransitionMatrix.uniform(4, 0.3), "one rate"),
        (TransitionMatrix.pair_flip(4, 0.3), "one rate, one target"),
        (TWO_TARGETS, "one rate, few targets"),
    ],
)
def test_the_structure_of_the_noise_is_found(noise, name):
    X, y = classes(4, 1500, distance=4)
    channel = ChannelPosterior(features="linear").fit(X, flip_labels(y, noise, random_state=0))
    probability = channel.structure_probability_
    assert max(probability, key=probability.get) == name
    assert sum(probability.values()) == pytest.approx(1)
    assert 0.5 * np.abs(channel.rates_.matrix - noise.matrix).sum(axis=1).mean() < 0.03
    assert (channel.noise_test_.probability > 0.5) == (name == "none")
    assert channel.symmetry_test_.probability > 0.5


def test_rates_that_differ_are_told_from_one_rate():
    X, y = classes(3, 2000, distance=4)
    noise = [[0.6, 0.2, 0.2], [0.0, 1.0, 0.0], [0.05, 0.05, 0.9]]
    channel = ChannelPosterior(features="linear").fit(X, flip_labels(y, noise, random_state=0))
    assert channel.symmetry_test_.p_value < 0.001
    assert channel.symmetry_test_.probability < 0.01
    assert channel.rates_.matrix == pytest.approx(np.array(noise), abs=0.05)


def test_trees_find_what_columns_do_not_tell():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (1500, 4))
    y = 2 * (X[:, 0] * X[:, 1] > 0) + (X[:, 2] * X[:, 3] > 0)
    channel = ChannelPosterior().fit(X, flip_labels(y, TransitionMatrix.uniform(4, 0.2)))
    assert channel.features_ in ("trees", "nystroem")
    held_out = ChannelPosterior().fit_predict_proba(X, y)
    assert np.mean(held_out.argmax(axis=1) == y) > 0.8


def test_columns_are_enough_where_a_forest_hardly_helps():
    X, y = classes(3, seed=5)
    y_noisy = flip_labels(y, TransitionMatrix.uniform(3, 0.2), random_state=5)
    assert ChannelPosterior().fit(X, y_noisy).features_ == "linear"


def test_a_known_matrix_is_kept_and_has_nothing_to_test():
    X, y = classes(3)
    noise = TransitionMatrix.pair_flip(3, 0.2)
    channel = ChannelPosterior(known=noise, features="linear").fit(X, y)
    assert channel.rates_ == noise
    assert channel.noise_test_ is channel.symmetry_test_ is None
    assert channel.interval_.contains(noise)
    assert channel.structure_probability_ == {}
    clean = channel.predict_clean_proba(X)
    assert channel.predict_proba(X) == pytest.approx(clean @ noise.matrix)


def test_probabilities_are_softened_by_what_is_not_known():
    X, y = classes(3, 60)
    channel = ChannelPosterior(features="linear").fit(X, y)
    inner = channel._fitted
    plain = softmax(inner.features.transform(X) @ inner.coef, axis=1)
    assert channel.predict_clean_proba(X).max(axis=1).mean() < plain.max(axis=1).mean()


def test_hard_cases_work():
    X, y = classes(26, 26 * 25 + 5, distance=6)
    names = np.array([f"class {chr(97 + k)}" for k in range(26)])
    rare = np.flatnonzero(y == 3)
    kept = np.setdiff1d(np.arange(y.size), rare[5:])
    X, y = np.column_stack([X, np.ones(len(X))])[kept].astype(np.float32), names[y[kept]]
    X, y = np.concatenate([X, X[:40]]), np.concatenate([y, y[:40]])
    channel = ChannelPosterior(features="linear").fit(X, y)
    assert np.isfinite(channel.predict_proba(X)).all()
    assert np.mean(channel.classes_[channel.predict_clean_proba(X).argmax(axis=1)] == y) > 0.95
    assert np.diag(channel.rates_.matrix).min() > 0.9
    high = channel.interval_.high
    assert channel.interval_.low.shape == high.shape == (26, 26)


@pytest.mark.slow
def test_more_classes_than_can_have_targets_have_even_ones():
    X, y = classes(52, 1600, distance=7)
    noise = TransitionMatrix.uniform(52, 0.2)
    channel = ChannelPosterior(features="linear").fit(X, flip_labels(y, noise, random_state=0))
    assert set(channel.structure_probability_) <= {
        "none",
        "one rate",
        "one rate per class",
        "one rate, one target",
        "one rate per class, one target",
    }
    assert np.diag(channel.rates_.matrix).mean() == pytest.approx(0.8, abs=0.15)


def test_copies_of_a_row_with_one_label_count_once():
    X, y = classes(3, 50)
    doubled = [np.concatenate([each, each]) for each in (X, y)]
    weight = np.ones(50)
    random = np.random.RandomState
    once = distinct_rows(X, y, weight, random(0))
    twice = distinct_rows(*doubled, np.ones(100), random(0))
    rows, labels = doubled
    assert X[once.first] == pytest.approx(rows[twice.first])
    assert once.weight == pytest.approx(twice.weight)
    assert rows[twice.first][twice.position] == pytest.approx(rows)
    assert (labels[twice.first][twice.position] == labels).all()


def test_trees_as_arrays_are_the_forest():
    X, y = classes(3, 300)
    forest = ExtraTreesClassifier(7, max_depth=SETTINGS.tree_depth, random_state=0).fit(
        X[y < 2], y[y < 2]
    )
    proba = Trees.of(forest, 3).predict_proba(X)
    assert proba[:, :2] == pytest.approx(forest.predict_proba(X), abs=1e-12)
    assert not proba[:, 2].any()


def test_the_shortest_range_holds_its_share():
    draws = np.random.default_rng(0).exponential(size=(4000, 2))
    low, high = shortest_ranges(np.sort(draws / 20, axis=0), 0.9)
    assert low == pytest.approx(np.zeros(2))
    assert high == pytest.approx(np.full(2, -np.log(0.1) / 20), rel=0.1)


@pytest.mark.slow
@pytest.mark.parametrize("n_classes", [3, 5])
def test_intervals_hold_the_truth_about_as_often_as_they_say(n_classes):
    rng = np.random.default_rng(n_classes)
    held, shares = [], []
    for seed in range(60):
        noise = np.diag(np.zeros(n_classes))
        for k in range(n_classes):
            others = np.delete(np.arange(n_classes), k)
            rate = rng.uniform(0.05, 0.4)
            noise[k, others], noise[k, k] = rate * rng.dirichlet(np.ones(n_classes - 1)), 1 - rate
        X, y = classes(n_classes, 1000, seed=seed)
        noisy = flip_labels(y, noise, random_state=seed)
        interval = ChannelPosterior(features="linear").fit(X, noisy).interval_
        held.append(((interval.low <= noise) & (noise <= interval.high)).mean())
        low, high = interval.label_error_rate
        shares.append(low <= np.mean(noisy != y) <= high)
    assert np.mean(held) > 0.85
    assert np.mean(shares) > 0.85
