"""The formulas inside the rate estimators: golden numbers, brute force, identities."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.stats import binom

from tests.noise_rates.test_counting import LABELS, POSITIVE, noisy_sample
from tests.noise_rates.test_intervals import separated, share_of_flips
from tests.noise_rates.test_selective import GOLDEN, lower_limit, two_columns
from tests.test_noise import noise_rates
from unflip import NoiseRates, TransitionMatrix
from unflip.noise_rates import (
    ConfidentJointRates,
    DualTRates,
    PosteriorRates,
    ScottRates,
    estimate_rates,
)
from unflip.noise_rates._base import admissible_matrix, admissible_rates
from unflip.noise_rates._counting import anchor_rows, confident_counts
from unflip.noise_rates._intervals import bootstrap_matrices, corrected_interval
from unflip.noise_rates._minimum import _least_of_the_highest
from unflip.noise_rates._mixture import best_bin_proportion, bin_bounds
from unflip.noise_rates._scott import (
    counts_above,
    inverse_rates_from_proportions,
    mixture_proportion,
    rates_from_proportions,
    slopes_to_the_corner,
    upper_limit,
)
from unflip.noise_rates._selective import best_threshold

COMPONENT = (0.9, 0.8, 0.7, 0.6, 0.4)
MIXTURE = (0.95, 0.75, 0.5, 0.3, 0.2, 0.1)

few_scores = st.lists(st.integers(-20, 20), min_size=1, max_size=40)


# --- counting


def test_the_anchor_is_the_highest_row_below_the_97th_percentile():
    posterior = noisy_sample(3, n=1000)[0]
    anchors = anchor_rows(posterior, np.ones(1000), 0.03)
    for k in range(3):
        own = posterior[:, k]
        below = np.where(own < np.percentile(own, 97, method="higher"), own, -1)
        np.testing.assert_allclose(anchors[k], posterior[np.argmax(below)])


def test_the_anchor_without_a_quantile_is_the_highest_row_and_sums_to_one():
    posterior = noisy_sample(3)[0]
    anchors = anchor_rows(3 * posterior, np.ones(400), 0.0)
    np.testing.assert_allclose(anchors, posterior[posterior.argmax(axis=0)])


def test_the_published_form_is_the_product_of_anchors_and_counts():
    posterior, y = noisy_sample(3)
    predicted = posterior.argmax(axis=1)
    counted = np.array(
        [[np.mean(y[predicted == guess] == label) for label in range(3)] for guess in range(3)]
    )
    anchors = anchor_rows(posterior, np.ones(400), 0.1)
    published = DualTRates(hardened=False, quantile=0.1).fit_posterior(posterior, y)
    hardened = DualTRates().fit_posterior(posterior, y)
    np.testing.assert_allclose(published.transition_matrix_, anchors @ counted)
    np.testing.assert_allclose(hardened.transition_matrix_, counted)


def test_the_confident_joint_has_its_golden_values():
    counts, thresholds = confident_counts(two_columns(POSITIVE), (LABELS > 0) * 1, np.ones(8))
    np.testing.assert_allclose(thresholds, [0.6625, 0.65])
    np.testing.assert_array_equal(counts, [[2, 1], [1, 2]])
    fitted = ConfidentJointRates().fit_posterior(two_columns(POSITIVE), LABELS)
    np.testing.assert_allclose(fitted.confident_joint_, np.array([[8, 4], [4, 8]]) / 3)
    np.testing.assert_allclose(fitted.rates_.both(), (1 / 3, 1 / 3))
    np.testing.assert_allclose(fitted.thresholds_, [0.6625, 0.65])


@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("seed", range(5))
def test_the_confident_joint_is_cleanlabs(n_classes, seed):
    count = pytest.importorskip("cleanlab.count")
    posterior, y = noisy_sample(n_classes, seed=seed)
    counts, _ = confident_counts(posterior, y, np.ones(y.size))
    np.testing.assert_array_equal(
        counts, count.compute_confident_joint(y, posterior, calibrate=False)
    )
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


def test_a_weight_of_ten_narrows_the_interval_as_ten_rows_would():
    scores, y = separated(300, seed=0)
    weighted = bootstrap_matrices(
        share_of_flips, scores, y, np.full(300, 10.0), n_draws=1000, random_state=0
    )
    repeated = bootstrap_matrices(
        share_of_flips,
        np.repeat(scores, 10, axis=0),
        np.repeat(y, 10),
        np.ones(3000),
        n_draws=1000,
        random_state=0,
    )
    assert_allclose(weighted.std(axis=0), repeated.std(axis=0), rtol=0.1)


def test_without_bias_the_interval_holds_the_central_draws():
    draws = np.arange(101.0)[:, None]
    assert_allclose(corrected_interval(draws, [50.0], 0.9), [[5.0], [95.0]])
    with pytest.raises(ValueError, match="level must lie between 0 and 1"):
        corrected_interval(draws, [50.0], 1.5)


def test_draws_below_their_estimate_move_the_interval_up():
    draws = np.random.RandomState(0).normal(size=4000)
    # were all resamples too low by 0.5, the estimate was so too: the interval is about 0.5 + 0.5
    low, high = corrected_interval(draws[:, None], [0.5], 0.95)
    assert_allclose([low[0], high[0]], [1 - 1.96, 1 + 1.96], atol=0.2)


def test_too_few_rows_for_a_bootstrap_say_so():
    def refuse(*_):
        raise ValueError("nothing to see")

    scores, y = separated(50, seed=0)
    with pytest.raises(ValueError, match=r"most resamples of these 50 rows .*nothing to see"):
        bootstrap_matrices(refuse, scores, y, np.ones(50), n_draws=10, random_state=0)


# --- minimum


@given(st.floats(0, 0.99), st.floats(0, 0.99))
@pytest.mark.filterwarnings("ignore:the estimated:UserWarning")
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
    with pytest.raises(ValueError, match=r"Only binary.*y holds 3 classes, 'a', 'b', 'c'"):
        scott.fit_posterior(three, ["a", "b", "c"] * 4)
    with pytest.raises(ValueError, match="ScottRates estimates the rates of two classes, and y ho"):
        estimate_rates("scott", np.zeros((12, 1)), [0, 1, 2] * 4)


@given(
    rows=st.lists(st.tuples(st.integers(0, 5), st.floats(0.01, 20)), min_size=1, max_size=60),
    share=st.floats(0, 1 - 1e-9),
)
def test_the_least_of_the_highest_values_is_found_without_sorting_all(rows, share):
    values, weight = np.array(rows).T
    wanted = share * weight.sum() * (1 - 1e-9)
    falling = np.argsort(-values)
    last = np.searchsorted(np.cumsum(weight[falling]), wanted)
    assert _least_of_the_highest(values, weight, wanted) == values[falling[last]]


# --- mixture


def test_the_bounds_have_their_golden_values():
    thresholds, in_component, in_mixture = counts_above(COMPONENT, MIXTURE)
    with np.errstate(divide="ignore"):
        bounds = dict(zip(thresholds, bin_bounds(in_component, in_mixture, 5, 6), strict=True))
    golden = {0.75: 3.766889, 0.5: 2.091778, 0.3: 1.840089, 0.2: 2.006755, 0.1: 2.173422}
    assert {c: bounds[c] for c in golden} == pytest.approx(golden, abs=1e-6)
    assert bounds[0.95] == np.inf  # nothing of the component is above
    # the component's own scores are thresholds too, and 0.4 is the best: 3 of 6 above, 5 of 5
    assert min(bounds, key=bounds.get) == 0.4
    assert best_bin_proportion(COMPONENT, MIXTURE) == pytest.approx(0.5)


@given(few_scores, few_scores, st.floats(0.01, 0.5), st.floats(0.01, 1))
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
    found = best_bin_proportion(component, mixture, delta=delta, gamma=gamma)
    ratios = [min(ratio, 1) for bound, ratio in by_hand if bound < smallest + 1e-9]
    assert any(found == pytest.approx(ratio, abs=1e-12) for ratio in ratios)


@given(few_scores, few_scores)
def test_only_the_ordering_of_the_scores_matters_to_the_best_bin(component, mixture):
    expected = best_bin_proportion(component, mixture)
    for transform in (np.exp, np.arctan, lambda scores: np.power(scores, 3.0) - 7):
        changed = transform(np.asarray(component, float)), transform(np.asarray(mixture, float))
        assert best_bin_proportion(*changed) == expected


def test_samples_of_one_distribution_are_all_copies():
    rng = np.random.default_rng(0)
    assert best_bin_proportion(rng.normal(size=5000), rng.normal(size=5000)) > 0.97


# --- scott


def test_limits_and_slopes_have_their_golden_values():
    assert upper_limit(6, 1, 0.1) == pytest.approx(0.510316, abs=1e-6)
    assert upper_limit(5, 2, 0.1) == pytest.approx(0.753364, abs=1e-6)
    thresholds, in_component, in_mixture = counts_above(COMPONENT, MIXTURE)
    slopes = dict(
        zip(thresholds, slopes_to_the_corner(in_component, in_mixture, 5, 6), strict=True)
    )
    assert slopes[0.75] == pytest.approx(5.941158, abs=1e-6)
    assert slopes[0.5] == pytest.approx(1.920386, abs=1e-6)
    assert slopes[0.95] == np.inf  # nothing of the component is above


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


@given(few_scores, few_scores, st.floats(0.01, 0.3))
def test_limits_never_make_the_proportion_smaller(component, mixture, delta):
    plain = mixture_proportion(component, mixture, delta=None)
    assert mixture_proportion(component, mixture, delta=delta) >= plain


@given(few_scores, few_scores, st.sampled_from([None, 0.1]))
def test_only_the_ordering_of_the_scores_matters_to_the_mixture_proportion(
    component, mixture, delta
):
    expected = mixture_proportion(component, mixture, delta=delta)
    for transform in (np.exp, np.arctan, lambda scores: np.power(scores, 3.0) - 7):
        changed = transform(np.asarray(component, float)), transform(np.asarray(mixture, float))
        assert mixture_proportion(*changed, delta=delta) == expected


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


def test_the_best_threshold_has_its_golden_value():
    scores = -np.arange(10.0)
    threshold, limit = best_threshold(scores[GOLDEN == 1], scores[GOLDEN == 0])
    assert threshold == -5  # the first six rows, of which five are of the class
    assert limit == pytest.approx(0.294314, abs=1e-6)


@given(few_scores, few_scores, st.sampled_from([0.01, 0.1, 0.4]))
def test_the_threshold_has_the_highest_of_all_lower_limits(inside, outside, delta):
    candidates = sorted(set(inside + outside), reverse=True)
    limits = []
    for c in candidates:
        successes = sum(score >= c for score in inside)
        n = successes + sum(score >= c for score in outside)
        limits.append(lower_limit(successes, n, delta / len(candidates)))
    threshold, limit = best_threshold(inside, outside, delta=delta)
    assert limit == pytest.approx(max(limits), abs=1e-9)
    assert limits[candidates.index(threshold)] == pytest.approx(max(limits), abs=1e-9)


@given(few_scores, few_scores)
def test_only_the_ordering_of_the_scores_matters_to_the_best_threshold(inside, outside):
    for delta in (None, 0.1):
        threshold, limit = best_threshold(inside, outside, delta=delta)
        for transform in (np.exp, np.arctan, lambda scores: np.power(scores, 3.0) - 7):
            moved, same = best_threshold(
                transform(np.asarray(inside, float)), transform(np.asarray(outside, float)), None,
                None, delta,
            )  # fmt: skip
            assert moved == transform(float(threshold))
            np.testing.assert_equal(same, limit)
