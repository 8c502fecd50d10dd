"""The formulas inside the rate estimators: golden numbers, brute force, identities."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.stats import binom

from tests.noise_rates.test_counting import LABELS, POSITIVE, noisy_sample
from tests.noise_rates.test_intervals import separated, share_of_flips
from tests.noise_rates.test_selective import lower_limit, two_columns
from tests.test_noise import noise_rates
from unflip import NoiseRates, TransitionMatrix
from unflip.noise_rates import (
    BestBinRates,
    ConfidentJointRates,
    DualTRates,
    PosteriorRates,
    ScottRates,
    SelectiveRates,
    admissible_matrix,
    admissible_rates,
    estimate_rates,
)
from unflip.noise_rates._intervals import bootstrap_matrices, corrected_interval
from unflip.noise_rates._scott import (
    inverse_rates_from_proportions,
    mixture_proportion,
    rates_from_proportions,
    upper_limit,
)

few_scores = st.lists(st.integers(-20, 20), min_size=1, max_size=40)


def with_scores(positive, negative):
    """Return P(noisy y | x), which rises with the scores, and the labels."""
    scores = (np.array(positive + negative) + 21) / 42
    return two_columns(scores), [1] * len(positive) + [0] * len(negative)


# --- counting


def anchors_of(posterior, quantile):
    """Return the rows of P(noisy y | x) at the highest value below a quantile, class by class."""
    found = []
    for own in posterior.T:
        cut = np.percentile(own, 100 * (1 - quantile), method="higher") if quantile else np.inf
        found.append(posterior[np.argmax(np.where(own < cut, own, -1))])
    return np.array(found)


@pytest.mark.parametrize("quantile", [0.0, 0.03, 0.1])
def test_the_published_form_is_the_product_of_anchors_and_counts(quantile):
    posterior, y = noisy_sample(3, n=1000)
    predicted = posterior.argmax(axis=1)
    counted = np.array(
        [[np.mean(y[predicted == guess] == label) for label in range(3)] for guess in range(3)]
    )
    published = DualTRates(hardened=False, quantile=quantile).fit_posterior(posterior, y)
    hardened = DualTRates().fit_posterior(posterior, y)
    expected = anchors_of(posterior, quantile) @ counted
    np.testing.assert_allclose(published.transition_matrix_, expected)
    np.testing.assert_allclose(hardened.transition_matrix_, counted)


def test_the_confident_joint_has_its_golden_values():
    # the mean of each class's own probabilities is the threshold: [[2, 1], [1, 2]] are above
    fitted = ConfidentJointRates().fit_posterior(two_columns(POSITIVE), LABELS)
    np.testing.assert_allclose(fitted.thresholds_, [0.6625, 0.65])
    np.testing.assert_allclose(fitted.confident_joint_, np.array([[8, 4], [4, 8]]) / 3)
    np.testing.assert_allclose(fitted.rates_.both(), (1 / 3, 1 / 3))


@pytest.mark.parametrize(("n_classes", "seed"), [(2, 0), (3, 1), (5, 2)])
def test_the_confident_joint_is_cleanlabs(n_classes, seed):
    count = pytest.importorskip("cleanlab.count")
    posterior, y = noisy_sample(n_classes, seed=seed)
    rounded = count.compute_confident_joint(y, posterior)
    fitted = ConfidentJointRates().fit_posterior(posterior, y)
    assert np.abs(fitted.confident_joint_ - rounded).max() <= 1  # whole rows, in cleanlab
    _, noise_matrix, _ = count.estimate_latent(rounded, y)
    a_row = 1 / rounded.sum(axis=0)[:, None]
    moved = np.abs(fitted.transition_matrix_ - noise_matrix.T)
    assert (moved <= n_classes * a_row).all()  # each entry of a column by less than a row


# --- intervals


def test_the_bootstrap_of_a_share_spreads_as_the_binomial():
    scores, y = separated(2000, seed=0)
    draws = bootstrap_matrices(
        share_of_flips, scores, y, np.ones(2000), n_draws=2000, random_state=0
    )
    for true, other, rate in ((1, 0, 0.3), (0, 1, 0.1)):
        n_rows = np.sum(scores[:, 1] == true)
        expected = np.sqrt(rate * (1 - rate) / n_rows)
        assert_allclose(draws[:, true, other].std(), expected, rtol=0.1)


def test_draws_below_their_estimate_move_the_interval_up():
    draws = np.random.RandomState(0).normal(size=4000)
    # were all resamples too low by 0.5, the estimate was so too: the interval is about 0.5 + 0.5
    low, high = corrected_interval(draws[:, None], [0.5], 0.95)
    assert_allclose([low[0], high[0]], [1 - 1.96, 1 + 1.96], atol=0.2)


# --- minimum


@given(st.floats(0, 0.99), st.floats(0, 0.99))
@pytest.mark.filterwarnings("ignore::unflip.LabelNoiseWarning")
def test_two_classes_are_scaled_back_alike_by_rates_and_by_matrix(positive, negative):
    matrix = admissible_matrix([[1 - negative, negative], [positive, 1 - positive]])
    rates = admissible_rates(positive, negative)
    np.testing.assert_allclose(matrix.matrix, rates.transition_matrix, atol=1e-9)


class AnyMatrix(PosteriorRates):
    """Implements the general form only."""

    def __init__(self, posterior=None, *, cv=None, random_state=None):
        self.posterior = posterior
        self.cv = cv
        self.random_state = random_state

    def _transition(self, noisy_posterior, codes, weight):
        return TransitionMatrix.uniform(noisy_posterior.shape[1], 0.2)


def test_an_estimator_may_implement_the_matrix_only_or_the_two_rates_only():
    two, three = np.full((12, 2), 0.5), np.full((12, 3), 1 / 3)
    assert AnyMatrix().fit_posterior(two, [0, 1] * 6).rates_ == NoiseRates(0.2, 0.2)
    assert AnyMatrix().fit_posterior(three, [0, 1, 2] * 4).rates_.n_classes == 3
    assert AnyMatrix().__sklearn_tags__().classifier_tags.multi_class
    scott = ScottRates()
    assert not scott.__sklearn_tags__().classifier_tags.multi_class
    with pytest.raises(ValueError, match="Only binary"):
        scott.fit_posterior(three, ["a", "b", "c"] * 4)
    with pytest.raises(ValueError, match="ScottRates"):
        estimate_rates("scott", np.zeros((12, 1)), [0, 1, 2] * 4)


# --- mixture


@given(few_scores, few_scores, st.floats(0.01, 0.5), st.floats(0.01, 1))
@pytest.mark.filterwarnings("ignore::unflip.LabelNoiseWarning")
def test_the_proportion_is_the_ratio_at_the_smallest_bound(component, mixture, delta, gamma):
    def share(scores, c):
        return np.mean([score >= c for score in scores])

    margin = np.sqrt(np.log(4 / delta) / (2 * len(mixture)))
    margin += np.sqrt(np.log(4 / delta) / (2 * len(component)))
    by_hand = []
    for c in component + mixture:
        if share(component, c):
            ratio = share(mixture, c) / share(component, c)
            by_hand.append((ratio + (1 + gamma) * margin / share(component, c), ratio))
    smallest = min(by_hand)[0]
    fitted = BestBinRates(delta=delta, gamma=gamma).fit_posterior(*with_scores(component, mixture))
    _, found = fitted.mixture_proportions_
    ratios = [min(ratio, 1) for bound, ratio in by_hand if bound < smallest + 1e-9]
    assert any(found == pytest.approx(ratio, abs=1e-12) for ratio in ratios)


# --- scott


@given(st.integers(1, 200), st.data(), st.floats(0.01, 0.5))
def test_the_limit_leaves_probability_delta_to_so_few_successes(n, data, delta):
    successes = data.draw(st.integers(0, n))
    limit = float(upper_limit(n, successes, delta))
    if successes == n:
        assert limit == 1
    else:
        assert binom.cdf(successes, n, limit) == pytest.approx(delta, rel=1e-6)


@given(few_scores, few_scores, st.sampled_from([None, 0.05, 0.1, 0.3]))
def test_the_proportion_is_the_smallest_of_the_slopes_at_all_scores(component, mixture, delta):
    def share(scores, c):
        return np.mean([score >= c for score in scores])

    if delta is None:
        by_hand = min(share(mixture, c) / share(component, c) for c in component)
    else:
        by_hand = min(
            float(upper_limit(len(mixture), sum(score >= c for score in mixture), delta))
            / max(
                1 - float(upper_limit(len(component), sum(s < c for s in component), delta)), 1e-300
            )
            for c in component + mixture
        )
    assert mixture_proportion(component, mixture, delta=delta) == pytest.approx(
        min(by_hand, 1), abs=1e-12
    )


@given(noise_rates(most=0.9), st.floats(0.05, 0.95))
def test_proportions_lead_to_the_inverse_rates_and_back_to_the_rates(rates, clean_prior):
    inverse = rates.inverse(clean_prior=clean_prior)
    q = rates.noisy_prior(clean_prior)
    kappa_pos = inverse.positive / (1 - inverse.negative)
    kappa_neg = inverse.negative / (1 - inverse.positive)
    found = inverse_rates_from_proportions(kappa_pos, kappa_neg)
    np.testing.assert_allclose(
        (found.positive, found.negative), (inverse.positive, inverse.negative), atol=1e-9
    )
    direct = rates_from_proportions(kappa_pos, kappa_neg, q)
    np.testing.assert_allclose(direct, rates.both(), atol=1e-9)
    known_prior = found.to_rates(noisy_prior=q, clean_prior=clean_prior)
    np.testing.assert_allclose(known_prior.both(), rates.both(), atol=1e-9)


# --- selective


@given(few_scores, few_scores, st.sampled_from([0.01, 0.1, 0.4]))
@pytest.mark.filterwarnings("ignore::unflip.LabelNoiseWarning")
def test_the_threshold_has_the_highest_of_all_lower_limits(inside, outside, delta):
    candidates = sorted(set(inside + outside), reverse=True)
    limits, sizes = [], []
    for c in candidates:
        successes = sum(score >= c for score in inside)
        n = successes + sum(score >= c for score in outside)
        limits.append(lower_limit(successes, n, delta / len(candidates)))
        sizes.append(n)
    fitted = SelectiveRates(delta=delta).fit_posterior(*with_scores(inside, outside))
    assert 1 - fitted.upper_bounds_[1] == pytest.approx(max(limits), abs=1e-9)
    assert limits[sizes.index(fitted.n_selected_[1])] == pytest.approx(max(limits), abs=1e-9)
