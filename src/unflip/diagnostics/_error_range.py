"""Bounds on the label error rate: at random, and if errors may depend on the sample."""

from itertools import product

import numpy as np
from numpy.typing import NDArray

from unflip._utils.typing import Array, Floats

SIGMAS = 2.0
"""Standard errors added to an observed share: the 97.5 % quantile of a normal distribution."""

LEARNT, LEARNT_OF_A_RULE = 1.25, 2.0
"""Errors per label that a held-out model disagrees with: a model repeats at most one error in five,
and a linear model of labels made by a rule at most half of the errors of the rule. These are the
smallest numbers with which the range holds in 97 % of the scenarios with instance-dependent errors,
on the families `CHOSEN_ON` of `benchmarks.worlds`."""

MAX_BY_A_RULE = 0.2
"""Maximum label error rate of a labelling rule that a flexible model may have learnt. With 0.2 the
range still holds in 99 % of these scenarios, with 0.12 in 93 %."""

MIN_UNSEEN = 0.01
"""Label error rate that no model would show."""


def error_rate_bounds(
    positive: tuple[float, float], negative: tuple[float, float], noisy_prior: float
) -> tuple[float, float]:
    r"""Return bounds on the label error rate, pi_pos rho_pos + (1 - pi_pos) rho_neg.

    pi_pos = (P(noisy=+1) - rho_neg) / (1 - rho_pos - rho_neg) is the share of true positives. The
    error rate is monotone in either rate, so that the corners bound it.
    """
    shares = []
    for rho_pos, rho_neg in product(positive, negative):
        left = max(1 - rho_pos - rho_neg, 1e-12)
        prior = min(max((noisy_prior - rho_neg) / left, 0.0), 1.0)
        shares.append(prior * rho_pos + (1 - prior) * rho_neg)
    return min(shares), max(shares)


def errors_by_label(matrix: Floats, label_mass: Floats) -> Floats:
    r"""Return how many labels of each class are wrong, n sum_{i != j} P(true=i) T[i, j].

    The sum over the observed labels j equals that over the true classes, n sum_i P(true=i)
    (1 - T[i, i]): counts by label and by class agree.
    """
    joint = true_shares(matrix, label_mass)[:, None] * matrix * label_mass.sum()
    return np.asarray(joint.sum(axis=0) - np.diag(joint))


def true_shares(matrix: Floats, label_mass: Floats) -> Floats:
    """Return P(true), which solves P(noisy) = P(true) T, clipped where T contradicts the labels."""
    prior = np.linalg.solve(matrix.T, label_mass).clip(0.0)
    return np.asarray(prior / prior.sum())


def channel_range(
    disagreement: float,
    n_rows: float,
    at_random: tuple[float, float],
    *,
    simple_disagreement: float | None = None,
    n_classes: int = 2,
    by_a_rule: bool = False,
) -> tuple[float, float]:
    r"""Return the range of the error rate by a noise model, if errors may depend on x.

    The low end is 0: classes that overlap explain any labels without an error. The high end rests
    on the assumption that at every x more than half of the labels of each class are right,
    T(x)[k, k] >= 1/2. Then

        P(wrong | x) = 1 - sum_k P(true=k | x) T(x)[k, k] <= 1 - max_j P(observed=j | x),

    since P(observed=j | x) = sum_k P(true=k | x) T(x)[k, j], in which T(x)[k, j] <= 1 - T(x)[k, k]
    <= T(x)[k, k]. The mean of the right-hand side is the error of the best classifier of observed
    labels, and no classifier disagrees with fewer held-out labels. Where the assumption fails in
    part, a model repeats errors, and the disagreement is scaled up for that. Where only a flexible
    model fits, what it has learnt may be a rule that somebody labelled by, and the disagreement of
    a simple model counts too.
    """
    share = LEARNT * disagreement
    if simple_disagreement is not None:
        share = max(share, min(LEARNT_OF_A_RULE * simple_disagreement, MAX_BY_A_RULE))
    if by_a_rule:
        share = max(share, MAX_BY_A_RULE)
    share = min(share, 1 - 1 / n_classes)
    high = share + SIGMAS * standard_error(share, n_rows) + MIN_UNSEEN
    return 0.0, min(max(high, at_random[1]), 1.0)


def range_by_a_rule(possible: tuple[float, float], n_classes: int) -> tuple[float, float]:
    """Return the range where a rule gives the labels: it may have made any of them wrong."""
    return 0.0, max(possible[1], 1 - 1 / n_classes)


def standard_error(share: float, n_rows: float) -> float:
    """Return the standard error of a share of `n_rows` rows."""
    return float(np.sqrt(share * (1 - share) / max(n_rows, 1.0)))


def error_rate_range(
    noisy_posterior: Floats,
    codes: Array,
    expected: tuple[float, float],
    sample_weight: Floats | None = None,
) -> tuple[float, float]:
    r"""Return the range of the error rate by P(noisy | x), if errors may depend on x.

    Low end: 0, as for :func:`channel_range`. High end: no class overlaps another, so a label is
    wrong with probability 1 - P(noisy=y | x).
    """
    own = noisy_posterior[np.arange(codes.size), codes]
    return range_of(own, noisy_posterior.argmax(axis=1) != codes, expected, sample_weight)


def range_of(
    own: Floats,
    disagrees: NDArray[np.bool_],
    expected: tuple[float, float],
    sample_weight: Floats | None = None,
) -> tuple[float, float]:
    """Return the same from P(noisy=y | x) and whether another class is more probable."""
    unlikely = float(np.average(1 - own, weights=sample_weight))
    disagree = float(np.average(disagrees, weights=sample_weight))
    return 0.0, min(1.0, max(expected[1], unlikely, LEARNT * disagree))
