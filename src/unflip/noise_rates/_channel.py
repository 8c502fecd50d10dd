"""Noise rates of the noise model."""

from typing import Self

from numpy.typing import ArrayLike
from sklearn.utils import Tags

from unflip._utils.docs import documented_like
from unflip._utils.estimators import clone_seeded
from unflip._utils.threads import one_blas_thread
from unflip._utils.typing import RandomState, Rows
from unflip._utils.validation import check_enough_rows, check_labels, check_table
from unflip.noise import RatesInterval
from unflip.noise_rates._base import BaseRates, CountsRates, PosteriorRates, count_checked
from unflip.posterior import ChannelPosterior, EvidenceTest, JointPosterior


class ChannelRates(BaseRates):
    r"""T of P(observed | x) = P(true | x) T, estimated together with P(true | x).

    These are the rates of the noise model :class:`~unflip.posterior.ChannelPosterior`, which
    describes the method and its prior.

    Parameters
    ----------
    posterior : ChannelPosterior, default=None
        The noise model, whose parameter `known` takes known rates or bounds. None: the defaults.
    random_state : int, RandomState instance or None, default=None
        Seed, if the noise model has none of its own.

    Attributes
    ----------
    rates_ : NoiseRates or TransitionMatrix
        The estimate: by default no noise if that is more likely than noise, else the posterior
        medians. NoiseRates for two classes, a TransitionMatrix for more.
    interval_ : RatesInterval
        Bounds of every rate: the shortest range that holds it with probability 0.95.
    noise_test_ : EvidenceTest or None
        Test of the hypothesis that no label is flipped: `statistic`, `p_value`, and `probability`
        given the labels. None if known rates rule it out.
    symmetry_test_ : EvidenceTest or None
        Test of the hypothesis that all classes are flipped equally often.
    posterior_ : ChannelPosterior
        The fitted noise model, with P(observed y | x) and P(true y | x).
    classes_ : ndarray of shape (n_classes,)
        The labels in sorted order; of two, the positive class last.

    Examples
    --------
    >>> import numpy as np
    >>> from unflip import NoiseRates, flip_labels
    >>> from unflip.noise_rates import ChannelRates
    >>> X = np.random.default_rng(0).uniform(size=(2000, 2))
    >>> y = flip_labels(X.sum(axis=1) > 1, NoiseRates(positive=0.3, negative=0.1), random_state=0)
    >>> channel = ChannelRates(random_state=0).fit(X, y)
    >>> print(channel.rates_)
    NoiseRates(positive=0.313, negative=0.0736)
    >>> print(channel.interval_)
    RatesInterval(positive=(0.28..., 0.34...), negative=(0.05..., 0.08...), level=0.95...)
    >>> channel.noise_test_.p_value < 0.001, channel.symmetry_test_.p_value < 0.001
    (True, True)
    """

    posterior_: JointPosterior

    def __init__(
        self, posterior: JointPosterior | None = None, *, random_state: RandomState = None
    ) -> None:
        self.posterior = posterior
        self.random_state = random_state

    @classmethod
    def of(cls, posterior: JointPosterior) -> Self:
        """Return the rates of a channel that is fitted already.

        Parameters
        ----------
        posterior : ChannelPosterior
            A fitted one.

        Returns
        -------
        ChannelRates
            Fitted.
        """
        rates = cls(posterior)
        rates._take(posterior)
        return rates

    @documented_like(PosteriorRates.fit, BaseRates.fit)
    @one_blas_thread()
    def fit(
        self,
        X: Rows,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        checked: CountsRates | None = None,
    ) -> Self:
        """Estimate the rates, and the clean posterior with them."""
        labels = check_labels(y, binary=False)
        posterior = self._channel()
        check_enough_rows(X, labels.codes)
        fitted = clone_seeded(posterior, self.random_state)
        fitted.fit(X, labels.observed, sample_weight)
        noisy = None if checked is None else fitted.predict_proba(X)
        rates, counted = count_checked(checked, labels, fitted.rates_, noisy)
        check_table(self, X, reset=True)
        self._take(fitted)
        self.rates_, self._counted = rates, counted
        return self

    def _estimated_interval(self, level: float) -> RatesInterval:
        """Return for every rate the shortest range that holds it with probability `level`."""
        return self.posterior_.interval(level)

    @property
    def noise_model_(self) -> JointPosterior:
        """The fitted noise model."""
        return self.posterior_

    @property
    def noise_test_(self) -> EvidenceTest | None:
        """The hypothesis that no label is flipped, tested."""
        return self.posterior_.noise_test_

    @property
    def symmetry_test_(self) -> EvidenceTest | None:
        """The hypothesis that all classes are flipped equally often, tested."""
        return self.posterior_.symmetry_test_

    def _take(self, fitted: JointPosterior) -> None:
        self.classes_, self.rates_, self.posterior_ = fitted.classes_, fitted.rates_, fitted

    def _channel(self) -> JointPosterior:
        if self.posterior is None:
            return ChannelPosterior()
        if not getattr(self.posterior, "estimates_rates", False):
            raise TypeError(
                f"posterior must be a ChannelPosterior or None, got {self.posterior!r}."
            )
        return self.posterior

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = True
        return tags
