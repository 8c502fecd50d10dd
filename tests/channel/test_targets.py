"""One target for every class: its likelihoods by brute force, and what it finds."""

import numpy as np
import pytest
from scipy.stats import chi2

from tests.channel.test_engine import classes, design_of
from unflip import TransitionMatrix, flip_labels
from unflip.channel._compare import tests as evidence_tests
from unflip.channel._design import ChannelDesign
from unflip.channel._evidence import fit_coefficients
from unflip.channel._maximise import Mode, maximise
from unflip.channel._structure import NoiseStructure, structures
from unflip.channel._targets import _log_likelihoods, maximise_targets
from unflip.posterior import ChannelPosterior


def pair_design(n_classes, n_rows, rate=0.3):
    _, y = classes(n_classes, n_rows)
    noisy = flip_labels(y, TransitionMatrix.pair_flip(n_classes, rate), random_state=0)
    plain = design_of(n_classes, n_rows)
    return ChannelDesign(plain.features, plain.block, noisy, np.ones(n_rows), n_classes)


def test_the_likelihood_of_another_target_is_that_of_brute_force():
    design = pair_design(4, 300)
    structure = NoiseStructure("one target", 4, per_class=True, targets=(1, 2, 3, 1))
    theta = np.array([-1.0, -0.5, -1.5, -2.0])
    fit = fit_coefficients(design, structure, theta, design.first_variance())
    rates, _ = structure.parts(theta)
    found = _log_likelihoods(Mode(fit), rates)
    for k in range(4):
        exact = []
        for j in range(4):
            T = fit.T.copy()
            T[k] = np.eye(4)[k] * (1 - rates[k]) + np.eye(4)[j] * rates[k]
            p = (fit.clean @ T)[np.arange(300), design.codes]
            exact.append(design.weight @ np.log(p))
        others = np.delete(np.arange(4), k)
        expected = np.array(exact)[others] - exact[others[0]]
        assert found[k, others] - found[k, others[0]] == pytest.approx(expected, abs=1e-8)
        assert found[k, k] == -np.inf


def test_targets_are_found_from_even_ones():
    design = pair_design(5, 800)
    one = structures(5, free=False)[1]
    start = maximise(design, one, one.start(), design.first_variance())
    mode = maximise_targets(design, False, start)
    assert mode.structure.targets == (1, 2, 3, 4, 0)
    assert mode.log_evidence > start.log_evidence + 50
    expected = TransitionMatrix.pair_flip(5, 0.3).matrix
    assert mode.mean_matrix == pytest.approx(expected, abs=0.06)


def test_draws_take_targets_by_their_chances():
    design = pair_design(3, 40, rate=0.1)
    one = structures(3, free=False)[1]
    start = maximise(design, one, one.start(), design.first_variance())
    mode = maximise_targets(design, True, start)
    chances = np.exp(mode.log_chances)
    assert chances.sum(axis=1) == pytest.approx(np.ones(3))
    assert chances.max() < 1  # few rows do not tell
    drawn = mode.draws(4000, np.random.RandomState(0))
    assert drawn.sum(axis=2) == pytest.approx(np.ones((4000, 3)))
    off = ~np.eye(3, dtype=bool)
    assert (drawn > 0).mean(axis=0)[off] == pytest.approx(chances[off], abs=0.03)


def test_other_targets_add_to_the_evidence_what_their_likelihoods_say():
    design = pair_design(3, 40, rate=0.1)
    one = structures(3, free=False)[1]
    start = maximise(design, one, one.start(), design.first_variance())
    mode = maximise_targets(design, False, start)
    alone = Mode(mode.fit).log_evidence
    best = mode.log_chances[np.arange(3), list(mode.structure.targets)]
    assert mode.log_evidence - alone == pytest.approx(-best.sum())


def overlapping(n_classes, n_rows, distance):
    rng = np.random.default_rng(1)
    means = distance * rng.normal(size=(n_classes, 8))
    y = rng.integers(0, n_classes, n_rows)
    return means[y] + rng.normal(size=(n_rows, 8)), y


def test_pairs_of_many_classes_are_seen_with_few_rows():
    X, y = overlapping(20, 800, 1.2)
    noise = TransitionMatrix.pair_flip(20, 0.3)
    given = flip_labels(y, noise, random_state=0)
    channel = ChannelPosterior(features="linear").fit(X, given)
    assert channel.noise_test_.probability < 0.01
    assert 0.5 * np.abs(channel.rates_.matrix - noise.matrix).sum(axis=1).mean() < 0.06


def test_the_test_of_no_noise_pays_for_the_choice_of_targets():
    """The best of 3^4 choices of targets has to be so much likelier (Bonferroni)."""
    design = pair_design(4, 300, rate=0.1)
    none, one = structures(4, free=False)[:2]
    plain, even = (
        maximise(design, each, each.start(), design.first_variance()) for each in (none, one)
    )
    mode = maximise_targets(design, False, even)
    noise, _ = evidence_tests([plain, mode], np.array([0.1, 0.9]))
    lost = mode.fit.log_likelihood - plain.fit.log_likelihood - np.log(3.0**4)
    assert lost > 1
    assert noise.statistic == pytest.approx(2 * lost)
    assert noise.p_value >= 3**4 * chi2.sf(2 * (lost + np.log(3.0**4)), 1)
