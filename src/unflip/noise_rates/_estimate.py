"""From what a user passes as `noise_rates` to rates."""

import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from unflip.noise import NoiseRates
from unflip.noise_rates._aliases import make_rates
from unflip.noise_rates._base import LARGEST_TOTAL, PosteriorRates


def estimate_rates(
    noise_rates: Any,
    X: Any,
    y: ArrayLike,
    sample_weight: ArrayLike | None = None,
    random_state: int | np.random.RandomState | None = None,
    *,
    noisy_posterior: ArrayLike | None = None,
    method: Any = None,
) -> NoiseRates:
    """Return the rates that are known, and estimate those that are not.

    Parameters
    ----------
    noise_rates : str, NoiseRates or rate estimator
        Rates, of which one or both may be None and are then estimated as by "auto"; or how to
        estimate them: see :func:`make_rates`.
    X, y, sample_weight : array-like
        The noisy data.
    random_state : int, RandomState instance or None, default=None
        Seed of an estimator that has none of its own.
    noisy_posterior : array-like of shape (n_samples, 2), default=None
        P(noisy y | x) at the rows, for the estimators that use it and have no posterior of
        their own.
    method : classifier, default=None
        The method whose rates "cv" chooses.
    """
    known = noise_rates if isinstance(noise_rates, NoiseRates) else None
    if known is not None and known.known:
        return known
    estimator = make_rates("auto" if known is not None else noise_rates, random_state)
    if method is not None and getattr(estimator, "estimator", method) is None:  # "cv" as it is
        estimator.set_params(estimator=clone(method))
    if (
        noisy_posterior is not None
        and isinstance(estimator, PosteriorRates)
        and estimator.posterior is None
    ):
        estimator.fit_posterior(noisy_posterior, y, sample_weight)
    else:
        estimator.fit(X, y, sample_weight)
    return estimator.rates_ if known is None else _completed(known, estimator.rates_)


def _completed(known: NoiseRates, estimated: NoiseRates) -> NoiseRates:
    """Return the known rates with the others estimated, as far as they leave room for those."""
    fixed = known.positive if known.positive is not None else known.negative
    if fixed is None:
        return estimated
    free = "negative" if known.negative is None else "positive"
    room, estimate = max(0.0, LARGEST_TOTAL - fixed), getattr(estimated, free)
    if estimate > room:
        warnings.warn(
            f"{known} leaves a {free} rate of at most {room:.3g}, and {estimate:.3g} is estimated: "
            f"{room:.3g} is used. Check the rate that is given.",
            UserWarning,
            stacklevel=4,
        )
    positive, negative = (min(rate, room) for rate in estimated.both())
    return known.completed_by(NoiseRates(positive=positive, negative=negative))
