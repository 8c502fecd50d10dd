"""Evidence from features: P(observed | x), T, and the estimate that follows from them.

The classifier, the audit, the slices and rows in blocks all fit here, so that the same data give
the same numbers through each of them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self, cast

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from unflip._utils.folds import folds_within_classes
from unflip._utils.preprocessing import fit_preprocessing
from unflip._utils.simplex import of_another_class, scaled_rows
from unflip._utils.typing import Array, Codes, Floats
from unflip._utils.validation import Labels
from unflip.channel import FittedProbabilities, fit_probabilities
from unflip.checked import CheckedLabels
from unflip.checked.internals import correct, has_checked
from unflip.diagnostics import (
    Diagnostic,
    assumed,
    diagnose_classes,
    diagnose_features,
    diagnose_model,
    diagnose_rates,
    error_rate_range,
    range_by_a_rule,
)
from unflip.estimate import Bounds, NoiseEstimate
from unflip.noise import Noise, as_noise, as_transition_matrix, known_size, of_classes
from unflip.noise_rates import (
    BaseRates,
    ChannelRates,
    default_posterior,
    fit_rates,
    given_rates,
    needs_rows,
    trains_classifiers,
)
from unflip.posterior import BasePosterior, JointPosterior, cross_fit, make_posterior
from unflip.weights import LabelPosterior, Totals

N_FOLDS = 5
"""Number of folds where P(observed | x) must be held out: scikit-learn's default."""

SMALLEST = 1e-30
"""Probabilities below are taken as this: neither of two models rules out what the other says."""


@dataclass(frozen=True)
class UncertainNoise:
    """P(true | x, observed label) where no noise is the most probable hypothesis.

    It is not a certainty. The mean of T averages over the other hypotheses; and labels that a rule
    made, or people who err at hard samples, are a function of the sample, so that a model that is
    good enough predicts the mistakes too. A linear model cannot follow every rule: an audit of its
    held-out probabilities counts as much.

    The ranking is that of both models; P(mislabelled) is scaled down to a mean within the interval
    of the error rate, so that samples and rates do not contradict each other.
    """

    mean_rates: Noise
    linear: BasePosterior
    of_linear: FittedProbabilities
    # factor of P(mislabelled)
    scale: float = 1.0

    @classmethod
    def fit(
        cls, mean_rates: Noise, X: Any, labels: Labels, sample_weight: Floats | None
    ) -> tuple[Self, Floats]:
        """Fit the linear model, and return it with its held-out probabilities."""
        unfitted = make_posterior("probabilistic", 0)
        folds = folds_within_classes(N_FOLDS, labels.codes)
        linear, held_out = cross_fit(unfitted, X, labels, sample_weight, cv=folds, random_state=0)
        return cls(
            mean_rates,
            linear,
            fit_probabilities(held_out, labels.codes, sample_weight, np.random.RandomState(0)),
        ), held_out

    def label_proba(
        self, noisy_proba: Floats, held_out: Floats, codes: Codes, classes: Array
    ) -> Floats:
        """Return P(true | x, label) by both models: their geometric mean, scaled to sum to one."""
        # without noise P(observed | x) is P(true | x)
        noisy = noisy_proba @ as_transition_matrix(self.mean_rates).matrix
        first = LabelPosterior(noisy, codes, self.mean_rates, classes).proba
        second = self.of_linear.predict(held_out, codes).label
        both = scaled_rows(np.sqrt(np.maximum(first, SMALLEST) * np.maximum(second, SMALLEST)))
        own = np.eye(classes.size)[codes]
        return self.scale * both + (1 - self.scale) * own

    def scaled_to(self, most: float, proba: Floats, codes: Codes, weight: Floats | None) -> Self:
        """Return the same with a mean P(mislabelled) of no more than `most`."""
        mean = float(np.average(of_another_class(proba, codes), weights=weight))
        return replace(self, scale=min(1.0, most / mean)) if mean > 0 else self


class FeatureFit(NamedTuple):
    """A noise estimate from features, and the parts that it was made of."""

    noise: NoiseEstimate
    # by the labels alone, without checked samples
    label_posterior: LabelPosterior
    # fitted to all samples; None where somebody else's P(observed | x) was given
    posterior: Any
    # None where the rates were given
    rate_estimator: BaseRates | None
    # with the linear model's held-out probabilities, where no noise is the most probable hypothesis
    uncertain: tuple[UncertainNoise, Floats] | None


def estimate_from_features(
    posterior: Any,
    noise_rates: Any,
    X: Any,
    labels: Labels,
    sample_weight: Floats | None = None,
    *,
    cv: Any = None,
    random_state: int | np.random.RandomState | None = None,
    classifier: Any = None,
    numbers: Any = None,
    table: Any = None,
    checked: CheckedLabels | None = None,
) -> FeatureFit:
    """Estimate P(observed | x) and T, and what they say of every label.

    `numbers` are the samples as :func:`encode` returns them, None where they are numbers already;
    `table` holds the columns that are searched for rules and leaks, None if those of `X`.
    """
    classes, codes = labels
    noise_rates = of_classes(noise_rates, classes)
    numbers = X if numbers is None else numbers
    cv = list(cv) if isinstance(cv, Iterator) else cv
    chosen = choose_posterior(posterior, noise_rates, classes.size, random_state=random_state)
    together = chosen.estimates_rates and _is_for_the_noise_model(noise_rates)
    if together and known_size(noise_rates) is not None and chosen.get_params()["known"] is None:
        chosen.set_params(known=as_noise(noise_rates, classes.size))
    rows = numbers if isinstance(posterior, str) else X
    odd = diagnose_features(X if table is None else table, codes, classes)
    fitted, noisy_proba = cross_fit(
        chosen, rows, labels, sample_weight, cv=cv, random_state=random_state
    )
    if together and given_rates(noise_rates, classes.size) is None:
        estimator = ChannelRates.of(cast("JointPosterior", fitted))
        rates = estimator.rates_
        label_posterior = LabelPosterior(noisy_proba, codes, rates, classes)
        found = _fit_of(label_posterior, rates, sample_weight, fitted, estimator, rows, odd)
    else:
        found = estimate_from_posterior(
            fitted,
            noise_rates,
            X if trains_classifiers(noise_rates) else numbers,
            noisy_proba,
            labels,
            sample_weight,
            random_state,
            classifier,
            odd,
        )
    if has_checked(checked):
        held_out = None
        if cv is None and not fitted.out_of_fold:  # a model that saw the labels agrees with them
            folds = folds_within_classes(N_FOLDS, codes)
            _, held_out = cross_fit(
                clone(fitted), rows, labels, sample_weight, cv=folds, random_state=random_state
            )
        found = found._replace(noise=correct(found.noise, checked, numbers, held_out))
    return found


def estimate_from_posterior(
    posterior: BasePosterior | None,
    noise_rates: Any,
    X: Any,
    noisy_proba: Floats,
    labels: Labels,
    sample_weight: Floats | None = None,
    random_state: int | np.random.RandomState | None = None,
    classifier: Any = None,
    odd: Sequence[Diagnostic] = (),
) -> FeatureFit:
    """Estimate what P(observed | x) says of every label, by rates given or estimated from it.

    `odd` is what was found about the columns.
    """
    classes, codes = labels
    noise_rates = of_classes(noise_rates, classes)
    rates, estimator = fit_rates(
        noise_rates,
        X,
        labels,
        sample_weight,
        random_state,
        noisy_posterior=noisy_proba,
        classifier=classifier,
    )
    label_posterior = LabelPosterior(noisy_proba, codes, rates, classes)
    return _fit_of(label_posterior, rates, sample_weight, posterior, estimator, X, odd)


def _fit_of(
    label_posterior: LabelPosterior,
    rates: Noise,
    sample_weight: Floats | None,
    posterior: BasePosterior | None,
    estimator: BaseRates | None,
    X: Any,
    odd: Sequence[Diagnostic],
) -> FeatureFit:
    """Return what P(observed | x) and T say, with every finding about it."""
    classes, codes = label_posterior.classes, label_posterior.codes
    rates = rates.of(classes)
    model = noise_model(posterior, estimator)
    uncertain = None
    if model is not None and estimator is not None and rates.information_left == 1:
        noisy = label_posterior.noisy_proba
        without_noise, held_out = UncertainNoise.fit(
            model.mean_rates(), X, Labels(classes, codes), sample_weight
        )
        proba = without_noise.label_proba(noisy, held_out, codes, classes)
        interval = estimator.interval().label_error_rate
        if interval is not None:
            without_noise = without_noise.scaled_to(interval[1], proba, codes, sample_weight)
            proba = without_noise.label_proba(noisy, held_out, codes, classes)
        label_posterior = LabelPosterior(noisy, codes, rates, classes, proba)
        uncertain = without_noise, held_out
    totals = label_posterior.totals(sample_weight)
    possible = error_range(label_posterior, totals, model)
    if any(one.code in ("rule", "leak") for one in odd):
        possible = range_by_a_rule(possible, classes.size)
    noise = NoiseEstimate(
        classes=classes,
        codes=codes,
        noise_rates=rates,
        noisy_proba=label_posterior.noisy_proba,
        clean_proba=label_posterior.clean_proba,
        label_proba=label_posterior.proba,
        error_range=possible,
        findings=(*odd, *diagnose(totals, classes, rates, estimator, model), assumed(possible)),
        sample_weight=sample_weight,
        estimated=estimator is not None,
        goodness_of_fit=None if model is None else model.check_,
        # a bootstrap takes long, and is done where somebody asks the rate estimator for it
        interval=None if model is None or estimator is None else estimator.interval,
    )
    return FeatureFit(noise, label_posterior, posterior, estimator, uncertain)


def noise_model(posterior: BasePosterior | None, estimator: BaseRates | None) -> Any:
    """Return the noise model behind an estimate; None where rates were estimated by other means."""
    if estimator is not None:
        return estimator.noise_model_
    return posterior if posterior is not None and posterior.estimates_rates else None


def diagnose(
    totals: Totals, classes: Array, rates: Noise, estimator: BaseRates | None, model: Any
) -> list[Diagnostic]:
    """Return how an estimate was made, and why it may be far off."""
    estimated = estimator is not None
    interval = model.interval_ if estimated and model is not None else None
    found = diagnose_labels(totals, classes, estimated=estimated)
    found += diagnose_rates(totals, classes, rates, estimated=estimated, interval=interval)
    check = None if model is None else model.check_
    if check is None:
        return found
    if interval is not None:
        found += diagnose_model(check.verdict, check.statistic, model.features_, totals.error_rate)
    elif check.likelier_rates is not None:
        numbers = {"rates": str(rates), "likelier": str(check.likelier_rates)}
        found.append(Diagnostic("unlikely_rates", numbers=numbers))
    return found


def diagnose_labels(totals: Totals, classes: Array, *, estimated: bool) -> list[Diagnostic]:
    """Return which classes look like one, and which are drowned by the others."""
    counts = totals.noisy_prior * totals.n_rows
    # tiny tables are the caller's own choice
    found = diagnose_classes(classes, counts, least_rows=0)
    return found if estimated else [one for one in found if one.code == "classes_look_alike"]


def error_range(label_posterior: LabelPosterior, totals: Totals, model: Any) -> Bounds:
    """Return (low, high) of the error rate if errors may depend on the sample.

    By a noise model whose fit was tested, where there is one; else by the samples' probabilities.
    Those of samples that the posterior was fitted to are too sure, and the high end is low.
    """
    if model is not None and model.check_ is not None:
        low, high = model.label_error_range_
        return low, high
    expected = 0.0, totals.error_rate
    return error_rate_range(label_posterior.noisy_proba, label_posterior.codes, expected)


def choose_posterior(
    posterior: Any,
    noise_rates: Any,
    n_classes: int,
    *,
    random_state: int | np.random.RandomState | None = None,
) -> BasePosterior:
    """Return the unfitted posterior: "auto" is the noise model unless the rates need another."""
    if isinstance(posterior, str) and posterior == "auto":
        by_model = _is_for_the_noise_model(noise_rates)
        posterior = "channel" if by_model else default_posterior(n_classes)
    return make_posterior(posterior, random_state)


def encode(
    posterior: Any, noise_rates: Any, X: Any, n_classes: int, *, estimator: Any = None
) -> tuple[Any, Pipeline | None]:
    """Return the samples as numbers where the stages need them, and what encoded them."""
    if not _need_numbers(posterior, noise_rates, n_classes):
        return X, None
    return fit_preprocessing(X, estimator)


def _need_numbers(posterior: Any, noise_rates: Any, n_classes: int) -> bool:
    """Return whether the stages compute with the samples, and not only parts of the user's own."""
    if isinstance(posterior, str):
        return True
    by_default = isinstance(noise_rates, str) and noise_rates == "auto"
    return not (by_default or trains_classifiers(noise_rates)) and needs_rows(
        noise_rates, n_classes
    )


def _is_for_the_noise_model(noise_rates: Any) -> bool:
    """Return whether the noise model is to estimate the rates, or would be told them."""
    if isinstance(noise_rates, str):
        return noise_rates in ("auto", "channel")
    return known_size(noise_rates) is not None
