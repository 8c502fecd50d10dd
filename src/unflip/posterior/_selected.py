"""P(observed y | x) by whichever of several classifiers predicts held-out noisy labels best."""

from collections.abc import Sequence
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import check_cv
from sklearn.utils import Tags, _safe_indexing, check_random_state, get_tags, indexable
from sklearn.utils.validation import check_is_fitted

from unflip._utils.docs import documented_like
from unflip._utils.estimators import clone_seeded
from unflip._utils.folds import check_splits, folds_within_classes, stratified_folds
from unflip._utils.row_weights import relative_weights
from unflip._utils.threads import SCIKIT_LEARN, threads_for
from unflip._utils.typing import (
    Array,
    CrossValidation,
    Floats,
    ProbabilisticClassifier,
    RandomState,
    Rows,
)
from unflip._utils.validation import (
    check_count,
    check_labels,
    check_rows_of,
    check_table,
)
from unflip.posterior._base import BasePosterior, cross_fit, held_out_proba
from unflip.posterior._probabilistic import ProbabilisticPosterior

MIN_PROBABILITY = 1e-12
"""Minimum probability in the log-likelihood."""


class SelectedPosterior(BasePosterior):
    r"""P(observed y | x) by the classifier with the highest held-out mean log-likelihood.

    Held-out noisy labels suffice for this choice: among all functions of x, P(observed y | x)
    itself has the highest expected log-likelihood.

    Parameters
    ----------
    candidates : sequence of classifiers, default=None
        Classifiers with `predict_proba`. None: logistic regression on standardised features, and
        boosted trees (only if X is not sparse).
    cv : int, cross-validation splitter or iterable of splits, default=3
        Folds; an integer is lowered to the number of samples of the rarest class.
    max_rows : int, default=10_000
        If there are more samples than this, a random subset of this size is used for the choice (if
        `cv` is a number).
    random_state : int, RandomState instance or None, default=None
        Seed of the folds, the subset and the candidates. None is a fixed seed, so that the same
        samples always give the same probabilities.

    Attributes
    ----------
    posterior_ : ProbabilisticPosterior
        The chosen classifier, fitted to all samples.
    scores_ : ndarray of shape (n_candidates,)
        Held-out means of log P(observed y | x). NaN if a class has a single sample, which cannot
        be held out: the first candidate is used.
    classes_ : ndarray of shape (n_classes,)
        The labels.

    Examples
    --------
    >>> import numpy as np
    >>> from unflip.posterior import SelectedPosterior
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(600, 2))
    >>> ring = np.digitize((X**2).sum(axis=1), [0.3, 0.8])
    >>> type(SelectedPosterior(random_state=0).fit(X, ring).posterior_.estimator).__name__
    'HistGradientBoostingClassifier'
    """

    posterior_: ProbabilisticPosterior
    scores_: Floats

    def __init__(
        self,
        candidates: Sequence[ProbabilisticClassifier | None] | None = None,
        *,
        cv: CrossValidation = 3,
        max_rows: int = 10_000,
        random_state: RandomState = None,
    ) -> None:
        self.candidates = candidates
        self.cv = cv
        self.max_rows = max_rows
        self.random_state = random_state

    @property
    def out_of_fold(self) -> bool:
        """True: the folds that choose give every sample's probability, too."""
        return True

    @documented_like(BasePosterior.fit)
    def fit(self, X: Rows, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Choose the classifier, and fit it to the noisy labels."""
        self.fit_predict_proba(X, y, sample_weight)
        return self

    def fit_predict_proba(
        self, X: Rows, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Floats:
        """Fit, and return P(observed y | x) of every sample, without its own label.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`.
        """
        check_count(self.max_rows, "max_rows", least=1)
        labels = check_labels(y, binary=False)
        classes, codes = labels
        check_rows_of(X, codes)
        random = check_random_state(0 if self.random_state is None else self.random_state)
        candidates = [
            clone_seeded(ProbabilisticPosterior(candidate), random)
            for candidate in self._candidates(X)
        ]
        scores = np.full(len(candidates), np.nan)
        (X,) = indexable(X)
        folds: CrossValidation = folds_within_classes(self.cv, codes)
        if not isinstance(folds, int):
            # an iterator of splits can be used only once
            splits = folds if folds is None else check_splits(folds)
            folds = list(check_cv(splits).split(X, codes))
        with threads_for(codes.size), SCIKIT_LEARN:
            if np.bincount(codes).min() > 1:
                scores = self._scores(candidates, X, codes, sample_weight, folds, random)
            elif isinstance(folds, int):
                folds = None  # a class of one sample leaves nothing to hold out
            fitted, held_out = cross_fit(
                candidates[0 if np.isnan(scores).all() else int(np.argmax(scores))],
                X,
                labels,
                sample_weight,
                cv=folds,
                random_state=random,
            )
        check_table(self, X, reset=True)
        self.classes_, self.scores_, self.posterior_ = classes, scores, fitted
        return held_out

    def predict_proba(self, X: Rows) -> Array:
        """Return P(observed y | x), one column per class in the order of `classes_`."""
        check_is_fitted(self)
        check_table(self, X, reset=False)
        return self.posterior_.predict_proba(X)

    def for_folds(self) -> BasePosterior:
        """Return the classifier chosen on all samples."""
        return clone(self.posterior_)

    def _candidates(self, X: Rows) -> Sequence[ProbabilisticClassifier | None]:
        if self.candidates is not None:
            self._check_candidates()
            return self.candidates
        if issparse(X):
            return [None]
        boosting = HistGradientBoostingClassifier(
            max_iter=60, max_leaf_nodes=15, l2_regularization=1.0, early_stopping=False
        )
        return [None, boosting]

    def _check_candidates(self) -> None:
        candidates = self.candidates
        if not isinstance(candidates, Sequence) or isinstance(candidates, str):
            raise TypeError(
                f"candidates must be a list of classifiers, or None, got {candidates!r}."
            )
        if not candidates:
            raise ValueError("candidates is empty: give at least one classifier, or None.")
        for k, candidate in enumerate(candidates):
            if candidate is None:
                continue
            if isinstance(candidate, type) or not hasattr(candidate, "get_params"):
                raise TypeError(
                    f"candidates[{k}] must be a classifier with predict_proba, or None for "
                    f"logistic regression, got {candidate!r}."
                )
            if not hasattr(candidate, "predict_proba"):
                raise TypeError(
                    f"candidates[{k}] has no predict_proba, so it gives no P(observed y | x): "
                    f"{candidate!r}. Use a probabilistic classifier, or wrap it: "
                    "CalibratedClassifierCV(...)."
                )

    def _scores(
        self,
        candidates: list[BasePosterior],
        X: Rows,
        codes: Array,
        sample_weight: ArrayLike | None,
        folds: CrossValidation,
        random: np.random.RandomState,
    ) -> Floats:
        """Return the mean log-likelihood of held-out labels."""
        if len(candidates) == 1:
            return np.zeros(1)
        rows, labels, weight = X, codes, relative_weights(sample_weight, codes.size)
        if isinstance(folds, int):
            some = random.permutation(codes.size)[: self.max_rows]
            frequent = np.bincount(codes[some], minlength=codes.max() + 1) >= folds
            some = some[frequent[codes[some]]]  # a class that a fold would lack has no part in it
            names, labels = np.unique(codes[some], return_inverse=True)
            if names.size < 2:
                return np.zeros(len(candidates))
            rows, weight = _safe_indexing(X, some), weight[some]
            folds = stratified_folds(folds, names, labels, random, none_allowed=False)
        scores = []
        for candidate in candidates:
            counted = None if sample_weight is None else weight
            held_out = held_out_proba(candidate, rows, labels, counted, folds)
            own = held_out[np.arange(labels.size), labels]
            scores.append(np.average(np.log(np.maximum(own, MIN_PROBABILITY)), weights=weight))
        return np.array(scores)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        if self.candidates is not None:
            self._check_candidates()
            inner = [get_tags(ProbabilisticPosterior(each)) for each in self.candidates]
            tags.input_tags.sparse = all(part.input_tags.sparse for part in inner)
            tags.input_tags.allow_nan = all(part.input_tags.allow_nan for part in inner)
        return tags
