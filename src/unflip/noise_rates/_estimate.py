"""Rates from any value of the parameter `noise_rates`."""

from typing import cast

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, clone
from sklearn.utils import check_array, get_tags

from unflip._utils.typing import Classifier, RandomState, Rows
from unflip._utils.validation import Labels, check_labels
from unflip.noise import KnownRates, Noise, NoiseRates, as_noise, known_size
from unflip.noise_rates._base import BaseRates, PosteriorRates
from unflip.noise_rates._channel import ChannelRates
from unflip.noise_rates._registry import ALIASES, RatesLike, make_rates
from unflip.noise_rates._selective import SelectiveRates
from unflip.posterior import ChannelPosterior


def estimate_rates(
    noise_rates: RatesLike,
    X: Rows,
    y: ArrayLike,
    sample_weight: ArrayLike | None = None,
    random_state: RandomState = None,
    *,
    noisy_posterior: ArrayLike | None = None,
    classifier: Classifier | None = None,
) -> Noise:
    """Return the rates that are known, and estimate those that are not.

    They come as :class:`~unflip.NoiseRates` for two classes and as a
    :class:`~unflip.TransitionMatrix` for more.

    Parameters
    ----------
    noise_rates : str, NoiseRates, TransitionMatrix, array-like or rate estimator
        Known rates (None or bounds are estimated by the noise model), or T of shape (n_classes,
        n_classes), or how to estimate them: see :func:`make_rates`. "auto" is "selective" if there
        is a `noisy_posterior` and the samples are not all finite numbers.
    X, y, sample_weight : array-like
        The noisy data.
    random_state : int, RandomState instance or None, default=None
        Seed of an estimator that has none of its own.
    noisy_posterior : array-like of shape (n_samples, n_classes), default=None
        P(observed y | x) at the samples, for estimators that use it and have no posterior of their
        own.
    classifier : classifier, default=None
        The unfitted classifier that "cv" trains for every pair of rates.

    Returns
    -------
    NoiseRates or TransitionMatrix
        A TransitionMatrix for more than two classes.
    """
    return fit_rates(
        noise_rates,
        X,
        check_labels(y, binary=False),
        sample_weight,
        random_state,
        noisy_posterior=noisy_posterior,
        classifier=classifier,
    )[0]


def fit_rates(
    noise_rates: RatesLike,
    X: Rows,
    labels: Labels,
    sample_weight: ArrayLike | None = None,
    random_state: RandomState = None,
    *,
    noisy_posterior: ArrayLike | None = None,
    classifier: Classifier | None = None,
) -> tuple[Noise, BaseRates | None]:
    """Return the rates and the fitted rate estimator, which is None if the rates were given."""
    n_classes = labels.classes.size
    given = given_rates(noise_rates, n_classes)
    if given is not None:
        return given, None
    if noisy_posterior is not None and not _takes_rows(noise_rates, X):
        noise_rates = SelectiveRates()  # as for more classes: the probabilities are all it needs
    estimator = _unfitted_estimator(noise_rates, random_state, n_classes)
    parameters = estimator.get_params(deep=False)
    if classifier is not None and parameters.get("estimator", classifier) is None:
        estimator.set_params(estimator=clone(classifier))
    if noisy_posterior is not None and _takes_probabilities(estimator):
        estimator._fit_posterior(noisy_posterior, labels, sample_weight)
    else:
        estimator.fit(X, labels.observed, sample_weight)
    return estimator.rates_, estimator


def needs_rows(noise_rates: RatesLike, n_classes: int) -> bool:
    """Return whether the estimator needs the samples, and not only P(observed y | x)."""
    if given_rates(noise_rates, n_classes) is not None:
        return False
    return not _takes_probabilities(_unfitted_estimator(noise_rates, None, n_classes))


def given_rates(noise_rates: RatesLike, n_classes: int) -> Noise | None:
    """Return the rates if all are known, checked against the number of classes; else None."""
    if known_size(noise_rates) is None:
        return None
    noise = as_noise(cast("KnownRates", noise_rates), n_classes)
    return noise if noise.known else None


def trains_classifiers(noise_rates: RatesLike) -> bool:
    """Return whether the rates are found by training the user's classifier, on samples as given."""
    by_default = isinstance(noise_rates, str) and noise_rates == "auto"
    if known_size(noise_rates) is not None or by_default:
        return False
    return make_rates(noise_rates).trains_classifiers


def for_two_classes(noise_rates: RatesLike) -> bool:
    """Return whether rates, or what estimates them, are for two classes only."""
    if isinstance(noise_rates, str):
        noise_rates = ALIASES.get(noise_rates, ChannelRates)()
    if isinstance(noise_rates, BaseRates):
        tags = get_tags(noise_rates).classifier_tags
        return tags is not None and not tags.multi_class
    return known_size(noise_rates) == 2


def _takes_rows(noise_rates: RatesLike, X: Rows) -> bool:
    """Return whether "auto" can use the samples: the noise model needs finite numbers."""
    if not (isinstance(noise_rates, str) and noise_rates == "auto"):
        return True
    try:
        check_array(X, accept_sparse=True, dtype=np.float64)
    except (TypeError, ValueError):
        return False
    return True


def _unfitted_estimator(
    noise_rates: RatesLike, random_state: RandomState, n_classes: int
) -> BaseRates:
    """Return the estimator that `noise_rates` asks for."""
    if known_size(noise_rates) is not None:  # in part: a bound, or one of two rates
        noise_rates = ChannelRates(ChannelPosterior(known=cast("NoiseRates", noise_rates)))
    estimator = make_rates(noise_rates, random_state)
    if n_classes > 2 and not get_tags(estimator).classifier_tags.multi_class:
        raise ValueError(
            f"{type(estimator).__name__} estimates the rates of two classes, and y holds "
            f"{n_classes}. Use noise_rates='auto', or give the TransitionMatrix you know."
        )
    return estimator


def _takes_probabilities(estimator: BaseEstimator) -> bool:
    """Return whether the estimator needs P(observed y | x) only, and no posterior of its own."""
    return isinstance(estimator, PosteriorRates) and estimator.posterior is None
