"""What share of the labels may be wrong: under random flips, and if mistakes depend on the row."""

from itertools import product

import numpy as np

SIGMAS = 2.0
"""Standard errors that are added to an observed share."""

UNSEEN = 1.5
"""Where labels follow a shape that the simplest model does not, the share of them that this model
disagrees with is multiplied by this: it has bent towards them."""


def wrong_share_bounds(
    positive: tuple[float, float], negative: tuple[float, float], noisy_prior: float
) -> tuple[float, float]:
    r"""Return bounds of the share of wrong labels, pi_pos rho_pos + (1 - pi_pos) rho_neg.

    pi_pos = (P(noisy=+1) - rho_neg) / (1 - rho_pos - rho_neg) is the share of true positives. The
    share of wrong labels is monotone in either rate, so that the corners bound it.

    Parameters
    ----------
    positive, negative : (low, high)
        Bounds of the rates.
    noisy_prior : float
        Share of positive labels.
    """
    shares = []
    for rho_pos, rho_neg in product(positive, negative):
        left = max(1 - rho_pos - rho_neg, 1e-12)
        prior = min(max((noisy_prior - rho_neg) / left, 0.0), 1.0)
        shares.append(prior * rho_pos + (1 - prior) * rho_neg)
    return min(shares), max(shares)


def channel_range(
    disagreement: float,
    n_rows: float,
    at_random: tuple[float, float],
    *,
    simple_disagreement: float | None = None,
) -> tuple[float, float]:
    """Return the range of the share of wrong labels by a channel, if mistakes may depend on x.

    The lower end is 0: classes that overlap explain any labels without a mistake. The upper end
    supposes that each row has one true label and that the model knows it: all labels that differ
    from the likeliest one are wrong. Where the labels follow a shape that a simple model does not
    see, that shape may be mistakes made by a rule, and the simple model is taken instead.

    Parameters
    ----------
    disagreement : float
        Share of labels that differ from the likeliest one given x, of rows held out.
    n_rows : float
        How many rows that share rests on.
    at_random : (low, high)
        Bounds of the share of wrong labels under random flips.
    simple_disagreement : float, default=None
        The same share for a simple model, where that does not explain the labels.
    """
    share = disagreement
    if simple_disagreement is not None:
        share = UNSEEN * max(share, simple_disagreement)
    share = min(share, 0.5)
    high = share + SIGMAS * np.sqrt(share * (1 - share) / max(n_rows, 1.0))
    return 0.0, min(max(float(high), at_random[1]), 1.0)
