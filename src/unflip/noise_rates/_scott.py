"""Scott's noise rates: how much of each noisy class is a copy of the other."""

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaincinv

from unflip._utils.docs import documented_like
from unflip._utils.typing import Array, CrossValidation, Floats, RandomState
from unflip._utils.validation import is_number
from unflip.noise import InverseRates, NoiseRates
from unflip.noise_rates._base import PosteriorRates, admissible_rates
from unflip.posterior import PosteriorLike

MAX_PROPORTION = float(np.nextafter(1.0, 0.0))
"""Maximum mixture proportion; at 1 the two classes cannot be told apart."""


@documented_like(PosteriorRates)
class ScottRates(PosteriorRates):
    r"""kappa_neg = min_c P(score >= c | y=-1) / P(score >= c | y=+1), and its mirror image.

    y is the observed label.

    The score is P(observed=+1 | x), of which only the order matters. kappa_neg is the largest
    share of the noisy negatives that could be a copy of the noisy positives: the smallest slope
    from a point of the ROC curve to its corner (1, 1). kappa_pos has the roles and the score
    reversed. With q = P(observed=+1), the share of positive labels,

        rho_pos = (1-q) kappa_neg / (q + (1-q) kappa_neg),
        rho_neg = q kappa_pos / (q kappa_pos + 1-q).

    Parameters
    ----------
    delta : float, default=0.1
        Both shares in the slope are replaced by Clopper-Pearson limits of level 1 - delta that
        increase it, so that a few samples at the end of the curve do not decide. None: the observed
        shares, whose smallest ratio is biased downwards.
    clean_prior : float, default=None
        P(true=+1), if known: the rates then follow from it and the inverse rates, as in the paper,
        and are scaled back with a warning if they sum to more than 0.95. None: they follow from the
        share of positive labels.

    Attributes
    ----------
    inverse_rates_ : InverseRates
        The share of wrong labels among the positive and among the negative ones.
    mixture_proportions_ : tuple of two floats
        (kappa_pos, kappa_neg).

    Notes
    -----
    Liu and Tao remark that Scott's inverse rates give noise rates only if P(true=+1) is known. That
    is mistaken: the inverse rates and the observed share of positive labels determine it,
    P(true=+1) = (1-pi_pos) q + pi_neg (1-q).

    As for all estimators of this kind, overlap of the classes counts as noise, more so with fewer
    samples. Weights count as repetitions: multiplying them by ten narrows the confidence limits as
    ten times the samples would.

    References
    ----------
    Scott (2015), "A rate of convergence for mixture proportion estimation, with application to
    learning from noisy labels", AISTATS.

    Examples
    --------
    >>> import numpy as np
    >>> from unflip import NoiseRates, flip_labels
    >>> from unflip.noise_rates import ScottRates
    >>> X = np.random.default_rng(0).uniform(size=(4000, 2))
    >>> y = flip_labels(X.sum(axis=1) > 1, NoiseRates(positive=0.3, negative=0.1), random_state=0)
    >>> scott = ScottRates(random_state=0).fit(X, y)
    >>> print(scott.rates_)
    NoiseRates(positive=0.282, negative=0.0943)
    >>> print(scott.inverse_rates_)
    InverseRates(positive=0.133, negative=0.21)
    """

    inverse_rates_: InverseRates
    mixture_proportions_: tuple[float, float]

    def __init__(
        self,
        posterior: PosteriorLike | None = None,
        delta: float | None = 0.1,
        *,
        clean_prior: float | None = None,
        cv: CrossValidation = 5,
        random_state: RandomState = None,
    ) -> None:
        super().__init__(posterior, cv=cv, random_state=random_state)
        self.delta = delta
        self.clean_prior = clean_prior

    def _rates(self, noisy_posterior: Array, codes: Array, weight: Array) -> NoiseRates:
        for name, value in (("delta", self.delta), ("clean_prior", self.clean_prior)):
            if value is not None and not (is_number(value) and 0 < value < 1):
                raise ValueError(f"{name} must lie between 0 and 1, or be None, got {value!r}.")
        kappa_pos, kappa_neg = both_proportions(
            partial(mixture_proportion, delta=self.delta), noisy_posterior, codes, weight
        )
        noisy_prior = float(np.average(codes, weights=weight))
        if self.clean_prior is None:
            rates = admissible_rates(*rates_from_proportions(kappa_pos, kappa_neg, noisy_prior))
            inverse = rates.inverse(noisy_prior=noisy_prior)
        else:
            inverse = inverse_rates_from_proportions(kappa_pos, kappa_neg)
            # the three need not agree, so the formulas may give any numbers >= 0
            rates = admissible_rates(
                inverse.negative * (1 - noisy_prior) / self.clean_prior,
                inverse.positive * noisy_prior / (1 - self.clean_prior),
            )
        # after all that can fail
        self.mixture_proportions_, self.inverse_rates_ = (kappa_pos, kappa_neg), inverse
        return rates


def both_proportions(
    proportion: Callable[..., float], noisy_posterior: Array, codes: Array, weight: Array
) -> tuple[float, float]:
    """Return kappa_pos and kappa_neg, each sought where its own probability is highest."""
    if not 0 < codes.mean() < 1:
        raise ValueError(
            "all samples of one class have sample_weight 0, but the rates come from comparing both "
            "classes. Give some samples of each class a positive weight."
        )
    kappa_pos, kappa_neg = (
        proportion(
            noisy_posterior[codes == component, component],
            noisy_posterior[codes != component, component],
            component_weight=weight[codes == component],
            mixture_weight=weight[codes != component],
        )
        for component in (0, 1)
    )
    return kappa_pos, kappa_neg


def mixture_proportion(
    component: ArrayLike,
    mixture: ArrayLike,
    *,
    component_weight: ArrayLike | None = None,
    mixture_weight: ArrayLike | None = None,
    delta: float | None = 0.1,
) -> float:
    """Return the largest share of the mixture that is a copy of the component, in [0, 1).

    This is the smallest slope from a point of the ROC curve to (1, 1).
    """
    _, in_component, in_mixture = counts_above(component, mixture, component_weight, mixture_weight)
    # the slope falls with more of the component and rises with more of the mixture, so it is
    # smallest where a run of the former ends
    gains_component = np.diff(in_component, prepend=0.0) > 0
    mixture_next = np.append(np.diff(in_mixture) > 0, True)
    ends = gains_component & mixture_next
    totals = in_component[-1], in_mixture[-1]
    slopes = slopes_to_the_corner(in_component[ends], in_mixture[ends], *totals, delta)
    return float(np.clip(slopes.min(), 0.0, MAX_PROPORTION))


def counts_above(
    component: ArrayLike,
    mixture: ArrayLike,
    component_weight: ArrayLike | None = None,
    mixture_weight: ArrayLike | None = None,
) -> tuple[Array, Floats, Floats]:
    """Return each distinct score c, falling, and how many of either sample are >= c."""
    component, mixture = np.asarray(component), np.asarray(mixture)
    scores, positions = np.unique(np.concatenate([component, mixture]), return_inverse=True)
    counts = []
    for rows, weight in (
        (positions[: component.size], component_weight),
        (positions[component.size :], mixture_weight),
    ):
        at = np.bincount(rows, weight, minlength=scores.size)
        counts.append(np.cumsum(at[::-1], dtype=float))
    return scores[::-1], counts[0], counts[1]


def slopes_to_the_corner(
    in_component: ArrayLike,
    in_mixture: ArrayLike,
    n_component: float,
    n_mixture: float,
    delta: float | None = 0.1,
) -> Floats:
    """Return P(mixture >= c) / P(component >= c) from the counts: the slope of the ROC to (1, 1).

    With `delta` the numerator is its upper and the denominator its lower confidence limit.
    """
    in_component, in_mixture = np.asarray(in_component, float), np.asarray(in_mixture, float)
    if delta is None:
        above_mixture, above_component = in_mixture / n_mixture, in_component / n_component
    else:
        above_mixture = upper_limit(n_mixture, in_mixture, delta)
        above_component = 1 - upper_limit(n_component, n_component - in_component, delta)
    with np.errstate(divide="ignore"):  # none of the component above c: no bound on the slope
        return above_mixture / above_component


def upper_limit(n: float, successes: ArrayLike, delta: float) -> Floats:
    """Return the p at which so few successes in n trials, or fewer, have probability delta.

    This is the upper confidence limit of Clopper and Pearson; counts may be sums of weights.
    """
    successes = np.asarray(successes, dtype=float)
    failures = np.maximum(n - successes, 0.0)
    limit = betaincinv(successes + 1, np.where(failures > 0, failures, 1.0), 1 - delta)
    return np.where(failures > 0, limit, 1.0)


def rates_from_proportions(
    kappa_pos: float, kappa_neg: float, noisy_prior: float
) -> tuple[float, float]:
    """Return rho_pos = (1-q) kappa_neg / (q + (1-q) kappa_neg) and its mirror image, rho_neg."""
    q = noisy_prior
    positive = (1 - q) * kappa_neg / (q + (1 - q) * kappa_neg)
    negative = q * kappa_pos / (q * kappa_pos + 1 - q)
    return positive, negative


def inverse_rates_from_proportions(kappa_pos: float, kappa_neg: float) -> InverseRates:
    """Return pi_pos = kappa_pos (1-kappa_neg) / (1 - kappa_pos kappa_neg) and its mirror image."""
    remainder = 1 - kappa_pos * kappa_neg
    positive = kappa_pos * (1 - kappa_neg) / remainder
    negative = kappa_neg * (1 - kappa_pos) / remainder
    if positive + negative > 1 - 1e-9:
        raise ValueError(
            f"the labels carry no information: the mixture proportions are {kappa_pos:.3g} and "
            f"{kappa_neg:.3g}, so samples labelled positive look like those labelled negative, and "
            "the inverse rates are not defined. Use another posterior or other features."
        )
    return InverseRates(positive=positive, negative=negative)
