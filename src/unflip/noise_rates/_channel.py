"""Noise rates by the noisy channel."""

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from unflip._diagnostics import LEVEL
from unflip._estimators import clone_seeded
from unflip._validation import check_enough_rows, check_table, plain_labels
from unflip.noise import NoiseRates, RatesInterval
from unflip.noise_rates._base import BaseRates
from unflip.posterior import ChannelPosterior, EvidenceTest


class ChannelRates(BaseRates):
    r"""The rates of P(noisy=+1 | x) = rho_neg + (1 - rho_pos - rho_neg) g(x), g and rates at once.

    How, and under which prior: see :class:`~unflip.posterior.ChannelPosterior`, of which these are
    the rates.

    Parameters
    ----------
    posterior : ChannelPosterior, default=None
        The channel, in which `known` rates or bounds of them can be given. None: with its defaults.
    random_state : int, RandomState instance or None, default=None
        Seed, where the channel has none of its own.

    Attributes
    ----------
    rates_ : NoiseRates
        The estimate: by default (0, 0) where no noise is more likely than any, else the medians.
    interval_ : RatesInterval
        Bounds (low, high) of either: the shortest range that holds the rate with probability 0.95.
    noise_test_ : EvidenceTest or None
        The hypothesis that no label is flipped: `statistic`, `p_value`, and `probability` given the
        labels. None where what is known rules it out.
    symmetry_test_ : EvidenceTest or None
        The same of the hypothesis that both classes are flipped equally often.
    posterior_ : ChannelPosterior
        The fitted channel, with P(noisy y | x) and P(true y | x).
    classes_ : ndarray of shape (2,)
        The labels, the positive class last.

    Examples
    --------
    >>> import numpy as np
    >>> from unflip import NoiseRates, flip_labels
    >>> from unflip.noise_rates import ChannelRates
    >>> X = np.random.default_rng(0).uniform(size=(2000, 2))
    >>> y = flip_labels(X.sum(axis=1) > 1, NoiseRates(positive=0.3, negative=0.1), random_state=0)
    >>> channel = ChannelRates(random_state=0).fit(X, y)
    >>> print(channel.rates_)
    NoiseRates(positive=0.314, negative=0.0798)
    >>> print(channel.interval_)
    RatesInterval(positive=(0.285, 0.342), negative=(0.0655, 0.0951), level=0.95)
    >>> channel.noise_test_.p_value < 0.001, channel.symmetry_test_.p_value < 0.001
    (True, True)
    """

    rates_: NoiseRates
    posterior_: ChannelPosterior

    def __init__(
        self,
        posterior: ChannelPosterior | None = None,
        *,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.posterior = posterior
        self.random_state = random_state

    @classmethod
    def of(cls, posterior: ChannelPosterior) -> Self:
        """Return the rates of a channel that is fitted already.

        Parameters
        ----------
        posterior : ChannelPosterior
            A fitted one.
        """
        rates = cls(posterior)
        rates._take(posterior)
        return rates

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Estimate the rates, and the clean posterior with them.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Noisy labels, of two classes.
        sample_weight : array-like of shape (n_samples,), default=None
            How often each row counts.
        """
        posterior = ChannelPosterior() if self.posterior is None else self.posterior
        if not isinstance(posterior, ChannelPosterior):
            raise TypeError(f"posterior must be a ChannelPosterior or None, got {posterior!r}.")
        labels = plain_labels(y)  # checked by the channel
        check_enough_rows(X, labels)
        fitted = clone_seeded(posterior, self.random_state)
        fitted.fit(X, labels, sample_weight)
        check_table(self, X, reset=True)
        self._take(fitted)
        return self

    def interval(self, level: float = LEVEL) -> RatesInterval:
        """Return for either rate the shortest range that holds it with probability `level`."""
        check_is_fitted(self, "rates_")
        return self.posterior_.interval(level)

    @property
    def noise_test_(self) -> EvidenceTest | None:
        """The hypothesis that no label is flipped, tested."""
        return self.posterior_.noise_test_

    @property
    def symmetry_test_(self) -> EvidenceTest | None:
        """The hypothesis that both classes are flipped equally often, tested."""
        return self.posterior_.symmetry_test_

    def _take(self, fitted: ChannelPosterior) -> None:
        self.classes_, self.rates_, self.posterior_ = fitted.classes_, fitted.rates_, fitted
