"""Noise rates by selective classification: the labels of the most confident samples."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from unflip._utils.docs import documented_like
from unflip._utils.typing import Array, CrossValidation, Floats, RandomState
from unflip._utils.validation import is_number
from unflip.noise import TransitionMatrix
from unflip.noise_rates._base import PosteriorRates, admissible_matrix
from unflip.noise_rates._scott import counts_above, upper_limit
from unflip.posterior import PosteriorLike


@documented_like(PosteriorRates)
class SelectiveRates(PosteriorRates):
    r"""rho_pos = share of negative labels where P(observed=+1 | x) >= c, and its mirror image.

    Only the order of P(observed=+1 | x) matters. Among anchor points of the positive class, labels
    are negative as often as positives are flipped. The threshold c is therefore the one with the
    smallest upper confidence limit of this share, so that a handful of samples does not decide.
    rho_neg is estimated in the same way where P(observed=-1 | x) is high.

    For more than two classes, T[i, j] is the share of the label j among the samples with
    P(observed=i | x) >= c_i, where the label i is confidently the most frequent one.

    Parameters
    ----------
    delta : float, default=0.1
        Thresholds are compared by Clopper-Pearson limits that hold jointly with probability
        1 - delta. None: by the observed shares, as published, if at least one sample in 200 is
        selected; the smallest share is biased downwards, more so with fewer samples.

    Attributes
    ----------
    upper_bounds_ : ndarray of shape (n_classes,)
        The smallest upper confidence limits: with confidence 1 - delta each, at most this share of
        the class is flipped. They do not assume anchor points, only scores from models that did not
        see the labels (`cv`) and labels that are right more often than wrong. There is no lower
        bound without further assumptions. NaN without `delta`.
    n_selected_ : ndarray of shape (n_classes,)
        Number of samples selected for each class.

    Notes
    -----
    Ties are selected together. Overlap of the classes counts as noise if a class has no anchor
    points. Weights count as repetitions: multiplying them by ten narrows the confidence limits as
    ten times the samples would.

    References
    ----------
    de Juan, Mazuelas, Zhu, Scott (2026), selection of confidently classified samples for the
    estimation of transition matrices, NeurIPS. The choice by confidence limits is not theirs.

    Examples
    --------
    >>> import numpy as np
    >>> from unflip import NoiseRates, flip_labels
    >>> from unflip.noise_rates import SelectiveRates
    >>> X = np.random.default_rng(0).uniform(size=(4000, 2))
    >>> y = flip_labels(X.sum(axis=1) > 1, NoiseRates(positive=0.3, negative=0.1), random_state=0)
    >>> selective = SelectiveRates(random_state=0).fit(X, y)
    >>> print(selective.rates_)
    NoiseRates(positive=0.312, negative=0.0852)
    >>> selective.upper_bounds_.round(3)  # of negatives, of positives
    array([0.113, 0.357])
    """

    upper_bounds_: Floats
    n_selected_: Floats

    def __init__(
        self,
        posterior: PosteriorLike | None = None,
        delta: float | None = 0.1,
        *,
        cv: CrossValidation = 5,
        random_state: RandomState = None,
    ) -> None:
        super().__init__(posterior, cv=cv, random_state=random_state)
        self.delta = delta

    def _transition(self, noisy_posterior: Array, codes: Array, weight: Array) -> TransitionMatrix:
        if self.delta is not None and not (is_number(self.delta) and 0 < self.delta < 1):
            raise ValueError(f"delta must lie between 0 and 1, or be None, got {self.delta!r}.")
        n_classes = noisy_posterior.shape[1]
        matrix = np.eye(n_classes)  # a class of which no label is seen is taken as clean
        bounds, sizes = np.full(n_classes, np.nan), np.zeros(n_classes)
        for k in np.unique(codes):
            own, labelled = noisy_posterior[:, k], codes == k
            threshold, limit = best_threshold(
                own[labelled], own[~labelled], weight[labelled], weight[~labelled], self.delta
            )
            selected = own >= threshold
            matrix[k] = np.bincount(codes[selected], weight[selected], minlength=n_classes)
            bounds[k], sizes[k] = 1 - limit, matrix[k].sum()
        noise = admissible_matrix(matrix)
        self.upper_bounds_, self.n_selected_ = bounds, sizes  # after all that can fail
        return noise


def best_threshold(
    inside: ArrayLike,
    outside: ArrayLike,
    inside_weight: ArrayLike | None = None,
    outside_weight: ArrayLike | None = None,
    delta: float | None = 0.1,
) -> tuple[float, float]:
    """Return the threshold with the highest lower confidence limit of the share, and that limit."""
    scores, in_class, others = counts_above(inside, outside, inside_weight, outside_weight)
    total: Any = in_class + others
    if delta is None:
        share = np.where(total >= total[-1] / 200, in_class / total, 0.0)
        last = np.flatnonzero(share == share.max())[-1]  # ties: most samples
        return float(scores[last]), np.nan
    # a lower limit rises with more of the class and falls with more of the others, so it is
    # highest where a run of the former ends
    gains = np.diff(in_class, prepend=0.0) > 0
    ends = np.flatnonzero(gains & np.append(np.diff(others) > 0, True))
    limits = 1 - upper_limit(total[ends], others[ends], delta / scores.size)
    best = int(np.argmax(limits))
    return float(scores[ends[best]]), float(limits[best])
