"""Natarajan's noise rates: those for which a classifier predicts held-out labels best."""

from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing, indexable

from unflip._utils.docs import documented_like
from unflip._utils.estimators import clone_seeded, optional_generator
from unflip._utils.folds import check_splits, stratified_folds
from unflip._utils.row_weights import relative_weights
from unflip._utils.threads import one_blas_thread
from unflip._utils.typing import Array, Classifier, CrossValidation, Floats, RandomState, Rows
from unflip._utils.validation import (
    MIN_SAMPLES,
    check_choice,
    check_enough_rows,
    check_labels,
    check_level,
    check_numbers,
    check_table,
)
from unflip._utils.warning import silenced, warn
from unflip.noise import NoiseRates, RatesInterval
from unflip.noise_rates._base import (
    BaseRates,
    CountsRates,
    PosteriorRates,
    count_checked,
    default_posterior,
)
from unflip.noise_rates._intervals import RESAMPLES
from unflip.posterior import make_posterior

MIN_PROBABILITY = float(np.finfo(float).eps)
"""Minimum probability of a held-out label, so that no single sample dominates the score."""

FAILED, LOWEST = -1e12, -1e3
"""Score of samples to which the classifier cannot be fitted; other means are above LOWEST."""


class CrossValidatedRates(BaseRates):
    r"""(rho_pos, rho_neg) = argmax over a grid of the score on held-out noisy labels.

    The classifier is trained with each pair of rates in turn. By default a pair's score is the mean
    log-likelihood of the held-out noisy labels under

        P(observed=+1 | x) = rho_neg + (1 - rho_pos - rho_neg) P(true=+1 | x),

    the last factor being the classifier's `predict_proba`.

    Parameters
    ----------
    estimator : classifier, default=None
        Any classifier with a parameter `noise_rates` that accepts :class:`~unflip.NoiseRates`, such
        as :class:`~unflip.ImportanceReweightingClassifier`. None: the classifier that contains this
        estimator.
    grid : array-like of shape (n_pairs, 2), default=None
        Pairs (rho_pos, rho_neg) to try. None: all of {0, 0.05, ..., 0.45} x {0, 0.05, ..., 0.45}.
    scoring : {"forward_loglik", "noisy_accuracy"}, default="forward_loglik"
        "noisy_accuracy", the share of held-out labels that are predicted, is the published
        criterion. It favours the rule that predicts *noisy* labels best, which under asymmetric
        noise is not the rule of the true rates: it is inconsistent. The likelihood is consistent if
        the classifier is well specified.
    cv : int or cross-validation splitter, default=3
        Folds; an integer is the number of stratified, shuffled folds. They are the same for all
        pairs. If fewer than ten samples would be left for training, none are held out, with a
        warning.
    random_state : int, RandomState instance or None, default=None
        Seed of the folds and of every part of `estimator` that has no seed of its own.

    Attributes
    ----------
    rates_ : NoiseRates
        The pair with the best mean score over the folds. Ties go to the smallest sum, then to the
        smallest difference, then to the first in the grid.
    scores_ : ndarray of shape (n_pairs,)
        Mean score of each pair; -inf if the classifier could not be fitted.
    grid_ : ndarray of shape (n_pairs, 2)
        The pairs.
    interval_ : RatesInterval
        Bounds (low, high) of either rate: 95 % of the pairs that are best when the held-out samples
        are resampled lie within. It reflects the sampling error of the choice, not that of
        training.
    classes_ : ndarray of shape (2,)
        The labels, the positive class last.

    Notes
    -----
    The search fits the classifier (pairs x folds) times, 300 by default. P(observed y | x) does not
    depend on the rates: if the classifier has a parameter `posterior` and does not cross-fit it, it
    is fitted once per fold. Warnings of the trial fits are silenced, since most pairs of a grid
    contradict the data.

    A strongly regularised classifier on well separated classes is not well specified: it explains
    noise by uncertain predictions, and the likelihood chooses rates that are too low.

    References
    ----------
    Natarajan, Dhillon, Ravikumar, Tewari (2013), "Learning with noisy labels", NeurIPS.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from unflip import ImportanceReweightingClassifier, NoiseRates, flip_labels
    >>> from unflip.noise_rates import CrossValidatedRates
    >>> X, y = make_classification(4000, class_sep=1.5, random_state=0)
    >>> y_noisy = flip_labels(y, NoiseRates(positive=0.3, negative=0.1), random_state=0)
    >>> grid = [(a / 10, b / 10) for a in range(5) for b in range(5)]
    >>> search = CrossValidatedRates(ImportanceReweightingClassifier(), grid, random_state=0)
    >>> print(search.fit(X, y_noisy).rates_)
    NoiseRates(positive=0.3, negative=0.1)
    """

    trains_classifiers = True

    scores_: Floats
    grid_: Floats

    def __init__(
        self,
        estimator: Classifier | None = None,
        grid: ArrayLike | None = None,
        *,
        scoring: str = "forward_loglik",
        cv: CrossValidation = 3,
        random_state: RandomState = None,
    ) -> None:
        self.estimator = estimator
        self.grid = grid
        self.scoring = scoring
        self.cv = cv
        self.random_state = random_state

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
        """Train the classifier with every pair on every fold, and keep the best pair."""
        check_choice(self.scoring, ("forward_loglik", "noisy_accuracy"), "scoring")
        pairs, candidates = _check_grid(self.grid)
        random_state = optional_generator(self.random_state)
        estimator = clone_seeded(self._checked_estimator(), random_state)
        labels = check_labels(y)
        classes, codes = labels
        check_enough_rows(X, codes)
        (rows,) = indexable(X)
        weight = None if sample_weight is None else relative_weights(sample_weight, codes.size)
        splits = _splits(self.cv, rows, classes, codes, weight, random_state)

        generator = np.random.default_rng(
            None if random_state is None else random_state.randint(np.iinfo(np.int32).max)
        )
        mean_scores, resampled = np.zeros(len(pairs)), np.zeros((RESAMPLES, len(pairs)))
        first_error = None
        for train, held_out in splits:
            scores, error = self._score_pairs(
                estimator, candidates, rows, classes, codes, weight, train, held_out
            )
            share = np.ones(held_out.size) if weight is None else weight[held_out]
            share = share / share.sum()
            mean_scores += share @ scores / len(splits)
            counts = generator.multinomial(held_out.size, share, size=RESAMPLES) / held_out.size
            resampled += counts @ scores / len(splits)
            first_error = first_error or error
        if not (mean_scores > LOWEST).any():
            assert first_error is not None
            raise first_error
        best = _best(mean_scores, pairs)
        rates, counted = count_checked(checked, labels, candidates[best])

        check_table(self, X, reset=True)
        self.classes_, self.grid_ = classes, pairs
        self.scores_ = np.where(mean_scores > LOWEST, mean_scores, -np.inf)
        self.rates_, self._counted = rates, counted
        self._draws = pairs[[_best(scores, pairs) for scores in resampled]]
        return self

    def _estimated_interval(self, level: float) -> RatesInterval:
        """Return for either rate the range that holds the share `level` of the resampled pairs."""
        check_level(level)
        low, high = np.quantile(self._draws, [(1 - level) / 2, (1 + level) / 2], axis=0)
        positive, negative = zip(low, high, strict=True)
        return RatesInterval.from_pairs(positive, negative, level)

    def _checked_estimator(self) -> BaseEstimator:
        if self.estimator is None:
            raise ValueError(
                "CrossValidatedRates has no estimator to cross-validate. Pass one that has a "
                "parameter noise_rates, for example "
                "CrossValidatedRates(ImportanceReweightingClassifier())."
            )
        get_params = getattr(self.estimator, "get_params", dict)
        if "noise_rates" not in get_params():
            raise TypeError(
                f"{type(self.estimator).__name__} has no parameter noise_rates, so there is "
                "nothing to try the pairs with. Wrap it: "
                "CrossValidatedRates(ImportanceReweightingClassifier(estimator))."
            )
        if self.scoring == "forward_loglik" and not hasattr(self.estimator, "predict_proba"):
            raise TypeError(
                f"{type(self.estimator).__name__} has no predict_proba, which "
                "scoring='forward_loglik' needs. Use a probabilistic classifier in it, or "
                "scoring='noisy_accuracy'."
            )
        return self.estimator

    def _score_pairs(
        self,
        estimator: BaseEstimator,
        candidates: list[NoiseRates],
        X: Rows,
        classes: Array,
        codes: Array,
        weight: Floats | None,
        train: Array,
        held_out: Array,
    ) -> tuple[Floats, ValueError | None]:
        """Return each held-out sample's score with each pair, and the first failure if any."""
        X_train, X_held_out = _safe_indexing(X, train), _safe_indexing(X, held_out)
        y_train, y_held_out = classes[codes[train]], classes[codes[held_out]]
        fit_params = {} if weight is None else {"sample_weight": weight[train]}
        estimator = _with_fitted_posterior(estimator, X_train, y_train, **fit_params)
        scores, first_error = np.full((held_out.size, len(candidates)), FAILED), None
        for k, rates in enumerate(candidates):
            trial = clone(estimator).set_params(noise_rates=rates)
            try:
                with silenced():  # most pairs contradict the labels
                    trial.fit(X_train, y_train, **fit_params)
            except ValueError as error:
                first_error = first_error or error
                continue
            if self.scoring == "noisy_accuracy":
                scores[:, k] = trial.predict(X_held_out) == y_held_out
            else:
                clean = trial.predict_proba(X_held_out)[:, 1]
                scores[:, k] = _forward_loglik(clean, y_held_out == classes[1], rates)
        return scores, first_error


def _forward_loglik(clean_posterior: Array, positive: Array, rates: NoiseRates) -> Floats:
    """Return log P(noisy label | x) of every sample."""
    noisy = rates.noisy_posterior(np.clip(clean_posterior, 0, 1))
    given = np.where(positive, noisy, 1 - noisy)
    return np.log(np.clip(given, MIN_PROBABILITY, 1.0))


def _with_fitted_posterior(
    estimator: BaseEstimator, X: Rows, labels: Array, **fit_params: Any
) -> BaseEstimator:
    """Return the estimator with its posterior, if any, fitted and frozen: no pair changes it.

    Where the estimator cross-fits the posterior it stays as it is: a frozen one saw all labels.
    """
    parameters = estimator.get_params(deep=False)
    posterior = parameters.get("posterior")
    if posterior is None or parameters.get("cv") is not None:
        return estimator
    if isinstance(posterior, str) and posterior == "auto":
        posterior = default_posterior(2)
    fitted = make_posterior(posterior, parameters.get("random_state")).fit(X, labels, **fit_params)
    return clone(estimator).set_params(posterior=FrozenEstimator(fitted))


def _check_grid(grid: ArrayLike | None) -> tuple[Floats, list[NoiseRates]]:
    """Return the pairs as an array and as rates."""
    if grid is None:
        values = np.arange(10) / 20
        grid = [(positive, negative) for positive in values for negative in values]
    pairs = check_numbers(grid, "grid")
    if pairs.ndim != 2 or pairs.shape[1] != 2 or not pairs.size:
        raise ValueError(
            f"grid has shape {pairs.shape}, expected (n_pairs, 2): one (rho_pos, rho_neg) per row."
        )
    return pairs, [NoiseRates(*pair) for pair in pairs.tolist()]


def _splits(
    cv: CrossValidation,
    X: Rows,
    classes: Array,
    codes: Array,
    weight: Floats | None,
    random_state: np.random.RandomState | None,
) -> list[tuple[Array, Array]]:
    """Return the training and the held-out samples of every fold, without those of weight 0."""
    counts = np.arange(codes.size) if weight is None else np.flatnonzero(weight)
    if isinstance(cv, Integral):
        strata = codes[counts]
        folds = stratified_folds(int(cv), classes, strata, random_state, none_allowed=False)
        splits = [
            (counts[train], counts[held_out]) for train, held_out in folds.split(counts, strata)
        ]
    else:
        splits = [
            (_among(train, counts), _among(held_out, counts))
            for train, held_out in check_cv(check_splits(cv)).split(X, classes[codes])
        ]
    if not splits or not all(held_out.size for _, held_out in splits):
        raise ValueError(
            f"cv={cv!r} must have at least one split, and each must hold out samples of positive "
            "sample_weight."
        )
    smallest = min(train.size for train, _ in splits)
    if smallest < MIN_SAMPLES:
        warn(
            f"n_samples={counts.size} is too few to hold out samples: {smallest} would be left for "
            f"training, and at least {MIN_SAMPLES} are required. The pairs of rates are compared "
            "on the training samples.",
            UserWarning,
        )
        return [(counts, counts)]
    return splits


def _among(rows: ArrayLike, counts: Array) -> Array:
    """Return the samples of positive weight, in their order and with repeats."""
    return np.extract(np.isin(rows, counts), rows)


def _best(scores: Floats, pairs: Floats) -> int:
    """Return the position of the best score; ties are broken towards less noise."""
    total = pairs.sum(axis=1).round(12)  # 0.1 + 0.2 is 0.3 here
    difference = np.abs(pairs[:, 0] - pairs[:, 1]).round(12)
    return int(np.lexsort([difference, total, -scores.round(12)])[0])
