"""From what a user passes as `noise_rates` to rates."""

import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils import get_tags

from unflip._validation import check_labels
from unflip.noise import NoiseRates, TransitionMatrix, as_transition_matrix, is_matrix
from unflip.noise_rates._aliases import make_rates
from unflip.noise_rates._base import LARGEST_TOTAL, PosteriorRates, admissible_rates


def estimate_rates(
    noise_rates: Any,
    X: Any,
    y: ArrayLike,
    sample_weight: ArrayLike | None = None,
    random_state: int | np.random.RandomState | None = None,
    *,
    noisy_posterior: ArrayLike | None = None,
    method: Any = None,
) -> Any:
    """Return the rates that are known, and estimate those that are not.

    They come as :class:`~unflip.NoiseRates` for two classes and as a
    :class:`~unflip.TransitionMatrix` for more.

    Parameters
    ----------
    noise_rates : str, NoiseRates, TransitionMatrix, array-like or rate estimator
        Rates, of which one or both may be None and are then estimated as by "auto"; or T, of shape
        (n_classes, n_classes); or how to estimate them: see :func:`make_rates`.
    X, y, sample_weight : array-like
        The noisy data.
    random_state : int, RandomState instance or None, default=None
        Seed of an estimator that has none of its own.
    noisy_posterior : array-like of shape (n_samples, n_classes), default=None
        P(noisy y | x) at the rows, for the estimators that use it and have no posterior of
        their own.
    method : classifier, default=None
        The method whose rates "cv" chooses.
    """
    n_classes = check_labels(y, binary=False)[0].size
    known = noise_rates if isinstance(noise_rates, NoiseRates) and n_classes == 2 else None
    if known is not None and known.known:
        return known
    if known is None and known_size(noise_rates) is not None:
        noise = as_transition_matrix(noise_rates, n_classes)
        return noise.rates if n_classes == 2 else noise
    estimator = make_rates("auto" if known is not None else noise_rates, random_state)
    if n_classes > 2 and not get_tags(estimator).classifier_tags.multi_class:
        raise ValueError(
            f"{type(estimator).__name__} estimates the rates of two classes, and y holds "
            f"{n_classes}. Use noise_rates='quantile', or give the TransitionMatrix you know."
        )
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
    estimated: Any = estimator.rates_
    return estimated if known is None else _completed(known, estimated)


def known_size(noise_rates: Any) -> int | None:
    """Return of how many classes a user's rates are; None where they are a way to estimate them."""
    if isinstance(noise_rates, NoiseRates):
        return 2
    if isinstance(noise_rates, TransitionMatrix):
        return noise_rates.n_classes
    return len(noise_rates) if is_matrix(noise_rates) else None


def _completed(known: NoiseRates, estimated: NoiseRates) -> NoiseRates:
    """Return the estimates within what is known, as far as that leaves room for them."""
    least = [low for low, _ in known.bounds]
    rooms = [max(0.0, LARGEST_TOTAL - other) for other in reversed(least)]
    rates = list(estimated.both())
    for k, name in enumerate(("positive", "negative")):
        if rates[k] > rooms[k] and not isinstance(getattr(known, name), float):
            warnings.warn(
                f"{known} leaves a {name} rate of at most {rooms[k]:.3g}, and {rates[k]:.3g} is "
                f"estimated: {rooms[k]:.3g} is used. Check the rate that is given.",
                UserWarning,
                stacklevel=4,
            )
            rates[k] = rooms[k]
        low, high = known.bounds[k]
        rates[k] = min(max(rates[k], low), high)
    return admissible_rates(*rates) if sum(rates) >= 1 else NoiseRates(*rates)
