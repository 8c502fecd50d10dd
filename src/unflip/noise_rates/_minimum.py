"""The paper's noise rates: the smallest P(observed y | x)."""

from typing import Any

import numpy as np

from unflip._utils.docs import documented_like
from unflip._utils.typing import Array, CrossValidation, RandomState
from unflip._utils.validation import is_number
from unflip.noise import NoiseRates, TransitionMatrix
from unflip.noise_rates._base import PosteriorRates, admissible_matrix, admissible_rates
from unflip.posterior import PosteriorLike


@documented_like(PosteriorRates)
class MinimumRates(PosteriorRates):
    r"""rho_neg = min_x P(observed=+1 | x), rho_pos = min_x P(observed=-1 | x) (Theorem 4).

    P(observed y | x) is never below the rate at which the other class is flipped into y, and
    reaches it wherever x cannot be of class y. The minimum is over the training samples.

    For more than two classes, T[i, j] = P(observed=j | x) at the x of largest P(observed=i | x), an
    anchor point of class i.

    Parameters
    ----------
    quantile : float, default=0.0
        Quantile in place of the minimum, in [0, 0.5). The minimum of a noisy estimate is too low; a
        small quantile is less so, but counts class overlap as noise. For more than two classes, row
        i of T is the mean of P(observed | x) over the samples of highest P(observed=i | x), as many
        as 2 * `quantile` of those labelled i, so that the quantile is in their middle and a rare
        class needs no more anchor points than it has.
    cv : int or cross-validation splitter, default=None
        Folds of cross-fitting; None: in-sample, as in the paper.

    Notes
    -----
    The posterior of logistic regression tends to 0 far from the decision boundary, and so does its
    minimum: use a `quantile`, or a posterior that is flat at anchor points (KDE, KLIEP).

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
        posterior: PosteriorLike | None = None,
        quantile: float = 0.0,
        *,
        cv: CrossValidation = None,
        random_state: RandomState = None,
    ) -> None:
        super().__init__(posterior, cv=cv, random_state=random_state)
        self.quantile = quantile

    def _rates(self, noisy_posterior: Array, codes: Array, weight: Array) -> NoiseRates:
        self._check_quantile()
        positive, negative = np.quantile(
            noisy_posterior, self.quantile, axis=0, weights=weight, method="inverted_cdf"
        )
        return admissible_rates(positive=float(positive), negative=float(negative))

    def _transition(self, noisy_posterior: Array, codes: Array, weight: Array) -> TransitionMatrix:
        self._check_quantile()
        n_classes = noisy_posterior.shape[1]
        label_mass = np.bincount(codes, weight, minlength=n_classes)
        matrix = np.eye(n_classes)  # a class without samples counts as clean
        for k in range(n_classes):
            own = noisy_posterior[:, k]
            wanted = 2 * self.quantile * label_mass[k] * (1 - 1e-9)  # rounding adds no sample
            anchors = own >= _least_of_the_highest(own, weight, wanted)  # with ties
            if own[anchors].any():
                matrix[k] = np.average(noisy_posterior[anchors], axis=0, weights=weight[anchors])
        return admissible_matrix(matrix)

    def _check_quantile(self) -> None:
        if not (is_number(self.quantile) and 0 <= self.quantile < 0.5):
            raise ValueError(f"quantile must lie in [0, 0.5), got {self.quantile!r}.")


def _least_of_the_highest(values: Array, weight: Array, wanted: float) -> Any:
    """Return the least of the highest values whose samples together weigh `wanted`."""
    falling = np.argsort(-values)
    return values[falling[np.searchsorted(np.cumsum(weight[falling]), wanted)]]
