"""Stages 1 and 2 together: P(noisy y | x) and the rates, from what a user passes for them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.pipeline import Pipeline

from unflip._diagnostics.error_range import wrong_share_range
from unflip._diagnostics.findings import Diagnostic, judge_model, judge_rates
from unflip._diagnostics.labels import judge_classes
from unflip._label_posterior import LabelPosterior, Totals
from unflip._utils.preprocessing import fit_preprocessing
from unflip._utils.typing import Array, Floats
from unflip._utils.validation import Labels
from unflip.noise import NoiseRates, RatesInterval, as_transition_matrix
from unflip.noise_rates import (
    BaseRates,
    ChannelRates,
    CrossValidatedRates,
    default_posterior,
    fit_rates,
    given_rates,
    known_size,
    needs_rows,
)
from unflip.posterior import (
    BasePosterior,
    ChannelPosterior,
    MulticlassChannelPosterior,
    cross_fit,
    make_posterior,
)

Channel = ChannelPosterior | MulticlassChannelPosterior
CHANNELS = (ChannelPosterior, MulticlassChannelPosterior)
"""What finds P(noisy y | x) and the rates together."""

Bounds = tuple[float, float]


@dataclass(frozen=True)
class Stages:
    """Stages 1 and 2 of a fit."""

    # Fitted to all rows.
    posterior: BasePosterior
    # P(noisy y | x) of the rows.
    noisy_posterior: Floats
    # NoiseRates of two classes, a TransitionMatrix of more.
    rates: Any
    # What the rates were estimated by; None where they were given.
    estimator: BaseRates | None
    # whether the noise model estimated the posterior and the rates together
    joint: bool = False


def judge_estimate(
    totals: Totals,
    classes: Array,
    rates: Any,
    estimator: BaseRates | None,
    posterior: BasePosterior | None = None,
) -> list[Diagnostic]:
    """Return why rates may be far off, as data."""
    interval = channel_interval(estimator)
    found = judge_labels(totals, classes, estimated=estimator is not None)
    found += judge_rates(totals, classes, rates, estimated=estimator is not None, interval=interval)
    channel = estimator.posterior_ if isinstance(estimator, ChannelRates) else posterior
    if not isinstance(channel, CHANNELS) or channel.check_ is None:
        return found
    check = channel.check_
    if isinstance(estimator, ChannelRates):
        at_random = channel.interval_.wrong_share or (0.0, totals.error_share)
        found += judge_model(
            check.verdict,
            check.statistic,
            check.disagreement,
            channel.rates_,
            totals,
            at_random=at_random,
            possible=channel.wrong_share_range_,
        )
    elif estimator is None and check.likelier_rates is not None:
        positive, negative = check.likelier_rates
        numbers = {"rates": str(rates), "positive": positive, "negative": negative}
        found.append(Diagnostic("unlikely_rates", numbers=numbers))
    return found


def judge_labels(totals: Totals, classes: Array, *, estimated: bool) -> list[Diagnostic]:
    """Return which classes look like one, and which are drowned by the others."""
    counts = totals.noisy_prior * totals.n_rows
    # tiny tables are the caller's own choice
    found = judge_classes(classes, counts, least_rows=0)
    return found if estimated else [one for one in found if one.code == "classes_look_alike"]


def goodness_of_fit(posterior: BasePosterior | None, estimator: BaseRates | None) -> Any:
    """Return the test of the noise model behind an estimate; None where there is none."""
    # where the rates were given, the noise model was told them
    model = estimator.posterior_ if isinstance(estimator, ChannelRates) else posterior
    by_another = estimator is not None and not isinstance(estimator, ChannelRates)
    return None if by_another or not isinstance(model, CHANNELS) else model.check_


def possible_wrong_share(
    label_posterior: LabelPosterior, totals: Totals, posterior: BasePosterior | None
) -> Bounds:
    """Return (low, high) of the share of wrong labels, if mistakes may depend on the row.

    By a checked channel, where there is one; else by the probabilities of the rows. Of rows that
    the posterior was fitted to, not held out, these are too sure, and the high end is low.
    """
    if isinstance(posterior, CHANNELS) and posterior.check_ is not None:
        return posterior.wrong_share_range_
    said = 0.0, totals.error_share
    return wrong_share_range(label_posterior.noisy_proba, label_posterior.codes, said)


def quick_interval(estimator: BaseRates | None) -> Callable[[], RatesInterval] | None:
    """Return what computes the interval of the rates; None where that takes a long bootstrap."""
    is_quick = isinstance(estimator, ChannelRates)
    return estimator.interval if estimator is not None and is_quick else None


def channel_interval(estimator: BaseRates | None) -> RatesInterval | None:
    """Return the interval of the rates; None where that takes a long bootstrap."""
    interval = quick_interval(estimator)
    return None if interval is None else interval()


def fit_stages(
    posterior: Any,
    noise_rates: Any,
    X: Any,
    labels: Labels,
    sample_weight: ArrayLike | None = None,
    *,
    cv: Any = None,
    random_state: int | np.random.RandomState | None = None,
    classifier: Any = None,
    estimate: str = "median",
    numbers: Any = None,
) -> Stages:
    """Estimate P(noisy y | x) and the noise rates, in one go where the noisy channel does both."""
    n_classes = labels.classes.size
    numbers = X if numbers is None else numbers
    chosen = choose_posterior(
        posterior, noise_rates, n_classes, random_state=random_state, estimate=estimate
    )
    joint = isinstance(chosen, CHANNELS) and _is_for_the_channel(noise_rates)
    if joint and chosen.known is None and known_size(noise_rates) is not None:
        chosen.set_params(known=_as_known(noise_rates, n_classes))
    rows = numbers if isinstance(posterior, str) else X
    fitted, noisy_posterior = cross_fit(
        chosen, rows, labels, sample_weight, cv=cv, random_state=random_state
    )
    if joint and given_rates(noise_rates, n_classes) is None:
        estimator = ChannelRates.of(fitted)
        return Stages(fitted, noisy_posterior, estimator.rates_, estimator, joint=True)
    rates, fitted_rates = fit_rates(
        noise_rates,
        X if _trains_classifiers(noise_rates) else numbers,
        labels,
        sample_weight,
        random_state,
        noisy_posterior=noisy_posterior,
        classifier=classifier,
    )
    return Stages(fitted, noisy_posterior, rates, fitted_rates)


def choose_posterior(
    posterior: Any,
    noise_rates: Any,
    n_classes: int,
    *,
    random_state: int | np.random.RandomState | None = None,
    estimate: str = "median",
) -> BasePosterior:
    """Return the unfitted posterior that :func:`fit_stages` fits."""
    if isinstance(posterior, str) and posterior == "auto":
        by_channel = _is_for_the_channel(noise_rates)
        posterior = "channel" if by_channel else default_posterior(n_classes)
    chosen = make_posterior(posterior, random_state, n_classes=n_classes)
    if isinstance(posterior, str) and isinstance(chosen, CHANNELS):
        chosen.set_params(estimate=estimate)
    return chosen


def rows_as_numbers(
    posterior: Any,
    noise_rates: Any,
    X: Any,
    n_classes: int,
    *,
    estimator: Any = None,
) -> tuple[Any, Pipeline | None]:
    """Return the rows for :func:`fit_stages`, and what made numbers of them; None: nothing did."""
    if not _need_numbers(posterior, noise_rates, n_classes):
        return X, None
    return fit_preprocessing(X, estimator)


def _need_numbers(posterior: Any, noise_rates: Any, n_classes: int) -> bool:
    """Return whether the stages compute with the rows, and not only parts of the user's own."""
    if isinstance(posterior, str):
        return True
    by_default = isinstance(noise_rates, str) and noise_rates == "auto"
    return not (by_default or _trains_classifiers(noise_rates)) and needs_rows(
        noise_rates, n_classes
    )


def _trains_classifiers(noise_rates: Any) -> bool:
    """Return whether the rates are found by training the user's classifier, on rows as given."""
    return isinstance(noise_rates, CrossValidatedRates) or (
        isinstance(noise_rates, str) and noise_rates == "cv"
    )


def _is_for_the_channel(noise_rates: Any) -> bool:
    """Return whether the channel is to find the rates, or would be told them."""
    if isinstance(noise_rates, str):
        return noise_rates in ("auto", "channel")
    return known_size(noise_rates) is not None


def _as_known(noise_rates: Any, n_classes: int) -> Any:
    if isinstance(noise_rates, NoiseRates) and n_classes == 2:
        return noise_rates
    known = as_transition_matrix(noise_rates, n_classes)
    return known.rates if n_classes == 2 else known
