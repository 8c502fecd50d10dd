"""The methods of the tables, built from the library's parts."""

from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MinMaxScaler

from unflip.baselines import LabelDependentCostClassifier, StPMKL, UnbiasedLossClassifier
from unflip.learners import KernelClassifier, LinearClassifier
from unflip.noise import NoiseRates
from unflip.noise_rates import CrossValidatedRates, MinimumRates, ScottRates
from unflip.paper import eiw, iw
from unflip.paper.experiments._choices import (
    ALPHA,
    CROSS_VALIDATION_FOLDS,
    FEATURE_RANGE,
    FINE_RATE_GRID,
    KERNEL_WIDTH,
    RATE_GRID,
    SCOTT_CONFIDENCE,
)
from unflip.posterior import KernelDensityPosterior


def make_classifier(
    method: str, learner: str, n_rows: int, known: NoiseRates | None, seed: int
) -> BaseEstimator:
    """Return the unfitted classifier of an accuracy table or figure."""
    model, loss = make_learner(learner), learner.split("-")[1]
    match method:
        case "plain":
            return _scaled(model)
        case "ld":
            # only the difference of the rates matters: one pair per difference
            pairs = [(rate, 0.0) for rate in RATE_GRID] + [(0.0, rate) for rate in RATE_GRID[1:]]
            rates = known or cross_validated_rates(pairs)
            return _scaled(
                LabelDependentCostClassifier(loss, rates, learner=model, random_state=seed)
            )
        case "ub":
            rates = known or cross_validated_rates()
            return _scaled(UnbiasedLossClassifier(loss, rates, learner=model, random_state=seed))
        case "stpmkl":
            symmetric = cross_validated_rates([(rate, rate) for rate in RATE_GRID])
            return _scaled(StPMKL(symmetric, C=1 / (ALPHA * n_rows), random_state=seed))
        case "eiw":
            return eiw(_scaled(model), random_state=seed)
        case "iw":
            rates = known or cross_validated_rates()
            return iw(_scaled(model), random_state=seed).set_params(noise_rates=rates)
        case "cleanlab":
            return _clean_learning(_scaled(model), seed)
    raise ValueError(f"unknown method {method!r}.")


def make_rate_estimator(method: str, dataset: str, clean_prior: float, seed: int) -> BaseEstimator:
    """Return the unfitted rate estimator of table 1 or 2."""
    match method:
        case "cross-validation":
            trained = UnbiasedLossClassifier(learner=LinearClassifier(alpha=ALPHA))
            pairs = [(a, b) for a in FINE_RATE_GRID for b in FINE_RATE_GRID]
            return cross_validated_rates(pairs).set_params(estimator=trained, random_state=seed)
        case "scott":
            return ScottRates(
                delta=SCOTT_CONFIDENCE, clean_prior=clean_prior, cv=None, random_state=seed
            )
        case "liu-tao":
            posterior = KernelDensityPosterior() if dataset == "synthetic-2d" else eiw().posterior
            return MinimumRates(posterior, random_state=seed)
    raise ValueError(f"unknown rate estimator {method!r}.")


def make_learner(learner: str) -> KernelClassifier | LinearClassifier:
    """Return "kernel-hinge", "kernel-logistic", "linear-hinge" or "linear-logistic"."""
    kind, loss = learner.split("-")
    if kind == "linear":
        return LinearClassifier(loss, alpha=ALPHA)
    return KernelClassifier(loss, gamma=1 / (2 * KERNEL_WIDTH**2), alpha=ALPHA)


def cross_validated_rates(pairs: list[tuple[float, float]] | None = None) -> CrossValidatedRates:
    """Return the paper's rate estimator: highest accuracy on held-out noisy labels."""
    grid = [(a, b) for a in RATE_GRID for b in RATE_GRID] if pairs is None else pairs
    return CrossValidatedRates(grid=grid, scoring="noisy_accuracy", cv=CROSS_VALIDATION_FOLDS)


def _scaled(classifier: BaseEstimator) -> Pipeline:
    return make_pipeline(MinMaxScaler(FEATURE_RANGE), classifier)


def _clean_learning(classifier: BaseEstimator, seed: int) -> BaseEstimator:
    from cleanlab.classification import CleanLearning

    return CleanLearning(classifier, seed=seed, find_label_issues_kwargs={"n_jobs": 1})
