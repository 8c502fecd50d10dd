"""Noise rates by best bins: each noisy class as a mixture with a copy of the other in it."""

from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from unflip._utils.docs import documented_like
from unflip._utils.typing import Array, CrossValidation, Floats, RandomState
from unflip._utils.validation import check_positive, is_number
from unflip.noise import NoiseRates
from unflip.noise_rates._base import PosteriorRates, admissible_rates
from unflip.noise_rates._scott import (
    MAX_PROPORTION,
    both_proportions,
    counts_above,
    rates_from_proportions,
)
from unflip.posterior import PosteriorLike


@documented_like(PosteriorRates)
class BestBinRates(PosteriorRates):
    r"""kappa_neg = P(score >= c | y=-1) / P(score >= c | y=+1) at the best c, and mirrored.

    y is the observed label.

    The score is P(observed=+1 | x), of which only the order matters. The ratio is smallest where
    all samples above c are true positives; kappa_neg is then the share of the noisy negatives that
    is a copy of the noisy positives. The best c has the smallest ratio plus its margin of error

        (1 + gamma) (sqrt(log(4/delta) / 2 n_neg) + sqrt(log(4/delta) / 2 n_pos))
        / P(score >= c | observed=+1)

    (Dvoretzky-Kiefer-Wolfowitz, n_pos and n_neg labels), so that a handful of samples does not
    decide. kappa_pos has the roles and the score reversed. With q = P(observed=+1),

        rho_pos = (1-q) kappa_neg / (q + (1-q) kappa_neg),
        rho_neg = q kappa_pos / (q kappa_pos + 1-q).

    Parameters
    ----------
    delta : float, default=0.1
        The margin holds for all c together with probability 1 - delta.
    gamma : float, default=0.01
        Factor by which the margin is widened, as published.

    Attributes
    ----------
    mixture_proportions_ : tuple of two floats
        (kappa_pos, kappa_neg).

    Notes
    -----
    :class:`ScottRates` minimises a ratio of confidence limits and returns it; here the limits
    choose c only, and the ratio itself is returned, which is less biased upwards. The margin does
    not depend on c, so many samples stay above c: too many if the classes overlap much. Weights
    count as repetitions: multiplying them by ten narrows the margin as ten times the samples would.

    References
    ----------
    Garg, Wu, Smola, Balakrishnan, Lipton (2021), "Mixture proportion estimation and PU learning: a
    modern approach", NeurIPS.

    Examples
    --------
    >>> import numpy as np
    >>> from unflip import NoiseRates, flip_labels
    >>> from unflip.noise_rates import BestBinRates
    >>> X = np.random.default_rng(0).uniform(size=(4000, 2))
    >>> y = flip_labels(X.sum(axis=1) > 1, NoiseRates(positive=0.3, negative=0.1), random_state=0)
    >>> print(BestBinRates(random_state=0).fit(X, y).rates_)
    NoiseRates(positive=0.312, negative=0.0852)
    """

    mixture_proportions_: tuple[float, float]

    def __init__(
        self,
        posterior: PosteriorLike | None = None,
        delta: float = 0.1,
        *,
        gamma: float = 0.01,
        cv: CrossValidation = 5,
        random_state: RandomState = None,
    ) -> None:
        super().__init__(posterior, cv=cv, random_state=random_state)
        self.delta = delta
        self.gamma = gamma

    def _rates(self, noisy_posterior: Array, codes: Array, weight: Array) -> NoiseRates:
        if not (is_number(self.delta) and 0 < self.delta < 1):
            raise ValueError(f"delta must lie between 0 and 1, got {self.delta!r}.")
        check_positive(self.gamma, "gamma")
        proportion = partial(best_bin_proportion, delta=self.delta, gamma=self.gamma)
        kappa_pos, kappa_neg = both_proportions(proportion, noisy_posterior, codes, weight)
        noisy_prior = float(np.average(codes, weights=weight))
        rates = admissible_rates(*rates_from_proportions(kappa_pos, kappa_neg, noisy_prior))
        self.mixture_proportions_ = kappa_pos, kappa_neg
        return rates


def best_bin_proportion(
    component: ArrayLike,
    mixture: ArrayLike,
    *,
    component_weight: ArrayLike | None = None,
    mixture_weight: ArrayLike | None = None,
    delta: float = 0.1,
    gamma: float = 0.01,
) -> float:
    """Return the share of the mixture that is a copy of the component, in [0, 1).

    This is P(mixture >= c) / P(component >= c) at the c where :func:`bin_bounds` is smallest.
    """
    _, in_component, in_mixture = counts_above(component, mixture, component_weight, mixture_weight)
    in_component, in_mixture = in_component[in_component > 0], in_mixture[in_component > 0]
    n_component, n_mixture = float(in_component[-1]), float(in_mixture[-1])
    bounds = bin_bounds(in_component, in_mixture, n_component, n_mixture, delta, gamma)
    best = int(np.argmin(bounds))
    proportion = (in_mixture[best] / n_mixture) / (in_component[best] / n_component)
    return float(min(proportion, MAX_PROPORTION))


def bin_bounds(
    in_component: Floats,
    in_mixture: Floats,
    n_component: float,
    n_mixture: float,
    delta: float = 0.1,
    gamma: float = 0.01,
) -> Floats:
    """Return P(mixture >= c) / P(component >= c) plus its margin of error, from the counts."""
    margin = np.sqrt(np.log(4 / delta) / 2) * (1 / np.sqrt(n_mixture) + 1 / np.sqrt(n_component))
    above_component = in_component / n_component
    return np.asarray((in_mixture / n_mixture + (1 + gamma) * margin) / above_component)
