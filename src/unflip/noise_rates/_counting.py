"""Noise rates from counts of observed against predicted labels."""

import numpy as np

from unflip._utils.docs import documented_like
from unflip._utils.typing import Array, CrossValidation, Floats, RandomState
from unflip._utils.validation import is_number
from unflip.noise import TransitionMatrix
from unflip.noise_rates._base import PosteriorRates, admissible_matrix
from unflip.posterior import PosteriorLike


@documented_like(PosteriorRates)
class DualTRates(PosteriorRates):
    r"""T[i, j] = sum_l P(predicted=l | true=i) P(observed=j | predicted=l): dual-T.

    The prediction of a sample is its most likely observed label. The second factor is counted. The
    first is the identity (`hardened`), so that rho_pos is the share of negative labels among the
    samples predicted positive; or, as published, P(observed=l | x) at an anchor point of class i.

    Parameters
    ----------
    hardened : bool, default=True
        Whether an anchor point of class i counts as predicted i. False: as published. If the
        posterior is right, that counts the noise twice (T T), because P(observed | x) at the anchor
        point is row i of T already; the published form suits overconfident posteriors.
    quantile : float, default=0.03
        The anchor point of class i is the x whose P(observed=i | x) is exceeded by this share of
        the samples, in [0, 1). A class that is never predicted has P(observed | x) at its anchor
        point as its row of T.

    Notes
    -----
    All samples are counted, including those near the boundary: overlap of the classes counts as
    noise, and so do samples on the wrong side of a misplaced boundary, such as that of logistic
    regression if the two rates differ. :class:`SelectiveRates` counts confident predictions only.

    References
    ----------
    Yao, Liu, Han, Gong, Deng, Niu, Sugiyama (2020), "Dual T: reducing estimation error for
    transition matrix in label-noise learning", NeurIPS.

    Examples
    --------
    >>> import numpy as np
    >>> from unflip import NoiseRates, flip_labels
    >>> from unflip.noise_rates import DualTRates
    >>> X = np.random.default_rng(0).uniform(size=(4000, 2))
    >>> y = flip_labels(X.sum(axis=1) > 1, NoiseRates(positive=0.3, negative=0.1), random_state=0)
    >>> print(DualTRates(random_state=0).fit(X, y).rates_)
    NoiseRates(positive=0.319, negative=0.242)
    >>> print(DualTRates(hardened=False, random_state=0).fit(X, y).rates_)
    NoiseRates(positive=0.382, negative=0.261)
    """

    def __init__(
        self,
        posterior: PosteriorLike | None = None,
        hardened: bool = True,
        *,
        quantile: float = 0.03,
        cv: CrossValidation = 5,
        random_state: RandomState = None,
    ) -> None:
        super().__init__(posterior, cv=cv, random_state=random_state)
        self.hardened = hardened
        self.quantile = quantile

    def _transition(self, noisy_posterior: Array, codes: Array, weight: Array) -> TransitionMatrix:
        if not (is_number(self.quantile) and 0 <= self.quantile < 1):
            raise ValueError(f"quantile must lie in [0, 1), got {self.quantile!r}.")
        anchors = anchor_points(noisy_posterior, weight, self.quantile)
        counts = label_counts(codes, noisy_posterior.argmax(axis=1), weight, len(anchors)).T
        predicted = counts.sum(axis=1, keepdims=True)
        labels = np.where(predicted > 0, counts / np.where(predicted > 0, predicted, 1), anchors)
        return admissible_matrix(labels if self.hardened else anchors @ labels)


@documented_like(PosteriorRates)
class ConfidentJointRates(PosteriorRates):
    r"""T[i, j] = C[j, i] / sum_l C[l, i], C[j, i] = number labelled j that are confidently i.

    A sample is confidently i where P(observed=i | x) is at least t_i, its mean over the samples
    labelled i; where that holds for several classes, it is of the likeliest class, and where for
    none, of none. Every row of C is scaled to the number of labels j. This is cleanlab's estimate,
    for comparison.

    Attributes
    ----------
    confident_joint_ : ndarray of shape (n_classes, n_classes)
        C, scaled, labels in rows: an estimate of how many samples labelled j are of class i.
    thresholds_ : ndarray of shape (n_classes,)
        t, infinity for a class without labels.

    Notes
    -----
    Overlap of the classes counts as noise. cleanlab rounds C to whole numbers, which changes the
    rates by less than one sample; here weights need not be integers, and C is not rounded.

    References
    ----------
    Northcutt, Jiang, Chuang (2021), "Confident learning: estimating uncertainty in dataset labels",
    JAIR.

    Examples
    --------
    >>> import numpy as np
    >>> from unflip import NoiseRates, flip_labels
    >>> from unflip.noise_rates import ConfidentJointRates
    >>> X = np.random.default_rng(0).uniform(size=(4000, 2))
    >>> y = flip_labels(X.sum(axis=1) > 1, NoiseRates(positive=0.3, negative=0.1), random_state=0)
    >>> joint = ConfidentJointRates(random_state=0).fit(X, y)
    >>> print(joint.rates_)
    NoiseRates(positive=0.264, negative=0.111)
    >>> joint.confident_joint_.round()
    array([[2018.,  456.],
           [ 253., 1273.]])
    """

    confident_joint_: Floats
    thresholds_: Floats

    def _transition(self, noisy_posterior: Array, codes: Array, weight: Array) -> TransitionMatrix:
        counts, thresholds = confident_counts(noisy_posterior, codes, weight)
        labels = np.bincount(codes, weight, minlength=len(counts))
        joint = counts * (labels / counts.sum(axis=1))[:, None]
        # a class without confident samples counts as clean
        matrix = np.where(joint.sum(axis=0) > 0, joint, np.eye(len(joint))).T
        noise = admissible_matrix(matrix)
        self.confident_joint_, self.thresholds_ = joint, thresholds
        return noise


def anchor_points(noisy_posterior: Array, weight: Array, quantile: float) -> Floats:
    """Return P(observed | x) at the 1 - quantile of P(observed=i | x), for each class i."""
    anchors = np.eye(noisy_posterior.shape[1])  # a class without samples counts as clean
    for k, own in enumerate(noisy_posterior.T):
        level = np.quantile(own, 1 - quantile, weights=weight, method="inverted_cdf")
        if level > 0:
            at = own == level
            anchors[k] = np.average(noisy_posterior[at], axis=0, weights=weight[at])
    return np.asarray(anchors / anchors.sum(axis=1, keepdims=True))


def confident_counts(noisy_posterior: Array, codes: Array, weight: Array) -> tuple[Floats, Floats]:
    """Return how many samples labelled j are confidently i, unscaled, and the thresholds.

    The diagonal is at least one sample, as in cleanlab.
    """
    n_classes = noisy_posterior.shape[1]
    thresholds = np.full(n_classes, np.inf)
    for k in np.unique(codes):
        thresholds[k] = np.average(noisy_posterior[codes == k, k], weights=weight[codes == k])
    confident = noisy_posterior >= thresholds - 1e-6
    several = confident.sum(axis=1) > 1
    guess = np.where(several, noisy_posterior.argmax(axis=1), confident.argmax(axis=1))
    some = confident.any(axis=1)
    counts = label_counts(codes[some], guess[some], weight[some], n_classes)
    np.fill_diagonal(counts, np.maximum(counts.diagonal(), 1.0))
    return counts, thresholds


def label_counts(codes: Array, guess: Array, weight: Array, n_classes: int) -> Floats:
    """Return how many samples have each label and each guess, labels in rows."""
    counts = np.zeros((n_classes, n_classes))
    np.add.at(counts, (codes, guess), weight)
    return counts
