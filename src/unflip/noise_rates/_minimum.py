"""The paper's noise rates: the smallest P(noisy y | x)."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from unflip.noise import NoiseRates
from unflip.noise_rates._base import PosteriorRates, admissible_rates

Array = NDArray[Any]


class MinimumRates(PosteriorRates):
    r"""rho_neg = min_x P(noisy=+1 | x), rho_pos = min_x P(noisy=-1 | x) (Theorem 4).

    P(noisy y | x) is never below the rate at which the other class is flipped into y, and reaches
    it wherever x cannot be of class y. The minimum is over the training rows.

    Parameters
    ----------
    posterior : str, posterior or classifier, default=None
        How to estimate P(noisy y | x): see :func:`~unflip.posterior.make_posterior`. None: as
        :class:`~unflip.ImportanceReweightingClassifier` estimates it, where this is its
        `noise_rates`, else "auto".
    quantile : float, default=0.0
        Quantile in place of the minimum, in [0, 0.5). The minimum of a noisy estimate is too low;
        a small quantile is less so, but takes class overlap for noise.
    cv : int or cross-validation splitter, default=None
        Folds of cross-fitting; None: in-sample, as in the paper.
    random_state : int, RandomState instance or None, default=None
        Seed of the posterior and the folds.

    Attributes
    ----------
    rates_ : NoiseRates
        The estimate.
    classes_ : ndarray of shape (2,)
        The labels, the positive class last.

    Notes
    -----
    A posterior without a plateau, such as logistic regression's, runs to 0 far from the decision
    boundary, and its plain minimum with it: take a `quantile` of it, or a posterior that levels
    off (KDE, KLIEP).

    Examples
    --------
    >>> import numpy as np
    >>> from unflip import NoiseRates, flip_labels
    >>> from unflip.noise_rates import MinimumRates
    >>> X = np.random.default_rng(0).uniform(size=(4000, 2))
    >>> y = flip_labels(X.sum(axis=1) > 1, NoiseRates(positive=0.3, negative=0.1), random_state=0)
    >>> print(MinimumRates(posterior="kde").fit(X, y).rates_)
    NoiseRates(positive=0.331, negative=0.108)
    """

    def __init__(
        self,
        posterior: Any = None,
        quantile: float = 0.0,
        *,
        cv: Any = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.posterior = posterior
        self.quantile = quantile
        self.cv = cv
        self.random_state = random_state

    def _rates(self, noisy_posterior: Array, codes: Array, weight: Array) -> NoiseRates:
        if not 0 <= self.quantile < 0.5:
            raise ValueError(f"quantile must lie in [0, 0.5), got {self.quantile!r}.")
        positive, negative = np.quantile(
            noisy_posterior, self.quantile, axis=0, weights=weight, method="inverted_cdf"
        )
        return admissible_rates(positive=float(positive), negative=float(negative))
