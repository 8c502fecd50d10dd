"""What share of the labels may be wrong: under random flips, and if mistakes depend on the row."""

from itertools import product

import numpy as np
from numpy.typing import NDArray

from unflip._utils.typing import Array, Floats

SIGMAS = 2.0
"""Standard errors that are added to an observed share."""

BENT, BENT_BY_A_RULE = 1.5, 2.0
"""A model has bent towards mistakes that depend on the row: of those near a border it disagrees
with two thirds, or half where the labels follow a shape that the simplest model does not."""

RULES_ARE_WRONG = 0.3
"""Share of wrong labels up to which rules that people write go."""

LEAST_UNSEEN = 0.01
"""Share of wrong labels that no model would show."""

LEARNT = 1.5
"""Of mistakes that depend on x, a model from elsewhere has learnt a third, as one of ours has."""


def wrong_share_bounds(
    positive: tuple[float, float], negative: tuple[float, float], noisy_prior: float
) -> tuple[float, float]:
    r"""Return bounds of the share of wrong labels, pi_pos rho_pos + (1 - pi_pos) rho_neg.

    pi_pos = (P(noisy=+1) - rho_neg) / (1 - rho_pos - rho_neg) is the share of true positives. The
    share of wrong labels is monotone in either rate, so that the corners bound it.
    """
    shares = []
    for rho_pos, rho_neg in product(positive, negative):
        left = max(1 - rho_pos - rho_neg, 1e-12)
        prior = min(max((noisy_prior - rho_neg) / left, 0.0), 1.0)
        shares.append(prior * rho_pos + (1 - prior) * rho_neg)
    return min(shares), max(shares)


def errors_by_label(matrix: Floats, label_mass: Floats) -> Floats:
    r"""Return how many labels of each class are wrong, n sum_{i != j} P(true=i) T[i, j].

    The sum over the given labels j is that over the true classes, n sum_i P(true=i) (1 - T[i, i]):
    what is said of labels adds up to what the rates say of classes.
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
    """Return the range of the share of wrong labels by a channel, if mistakes may depend on x.

    The lower end is 0: classes that overlap explain any labels without a mistake. The upper end
    supposes that each row has one true label and that the model has learnt it, but for the part of
    the mistakes that it has learnt too: one third. Where the labels follow a shape that a simple
    model does not see, that shape may be mistakes made by a rule, and the simple model is asked.
    """
    share = BENT * disagreement
    if simple_disagreement is not None:
        share = BENT_BY_A_RULE * max(disagreement, simple_disagreement)
    if by_a_rule:
        share = max(share, RULES_ARE_WRONG)
    share = min(share, 1 - 1 / n_classes)
    high = share + SIGMAS * standard_error(share, n_rows) + LEAST_UNSEEN
    return 0.0, min(max(high, at_random[1]), 1.0)


def standard_error(share: float, n_rows: float) -> float:
    """Return the standard error of a share of `n_rows` rows."""
    return float(np.sqrt(share * (1 - share) / max(n_rows, 1.0)))


def wrong_share_range(
    noisy_posterior: Floats,
    codes: Array,
    expected: tuple[float, float],
    sample_weight: Floats | None = None,
) -> tuple[float, float]:
    r"""Return the lowest and the highest share of wrong labels that these data leave possible.

    Labels alone do not tell classes that overlap from mistakes that are made where classes are
    hard to tell apart: P(noisy | x) is the same. What they leave open is a range.

    - Low end: 0. All doubt may be overlap, or the model's own mistakes: one that is confident and
      wrong leaves the same traces as a wrong label.
    - High end: no class overlaps another, and where classes are hard to tell apart a label says no
      more than the model does: a label is wrong with probability 1 - P(noisy=y | x).

    Notes
    -----
    Mistakes that a model learns, such as those of a rule that it can repeat, leave no trace in the
    labels: neither end knows of them. Rows checked by a person do.
    """
    own = noisy_posterior[np.arange(codes.size), codes]
    return range_of(own, noisy_posterior.argmax(axis=1) != codes, expected, sample_weight)


def range_of(
    own: Floats,
    disagrees: NDArray[np.bool_],
    expected: tuple[float, float],
    sample_weight: Floats | None = None,
) -> tuple[float, float]:
    """Return the same from P(noisy=given | x) and whether another class is likelier."""
    unlikely = float(np.average(1 - own, weights=sample_weight))
    disagree = float(np.average(disagrees, weights=sample_weight))
    return 0.0, min(1.0, max(expected[1], unlikely, LEARNT * disagree))
