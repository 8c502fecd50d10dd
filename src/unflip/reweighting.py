"""All four stages in one estimator."""

import warnings
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin
from sklearn.linear_model import LogisticRegression
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from unflip._estimators import (
    clone_seeded,
    delegated,
    fit_weighted,
    optional_generator,
    weight_parameters,
)
from unflip._validation import (
    check_choice,
    check_enough_rows,
    check_labels,
    check_table,
    check_weights,
)
from unflip.density_ratio import KLIEP
from unflip.noise import NoiseRates
from unflip.noise_rates import CrossValidatedRates, estimate_rates
from unflip.posterior import DensityRatioPosterior, fit_posterior, make_posterior
from unflip.weights import (
    clipped_share,
    effective_sample_size,
    importance_weights,
    importance_weights_from_inverse,
    mislabel_probability,
    printed_lemma_2_weights,
)

Array = NDArray[Any]
Floats = NDArray[np.float64]


_estimator_has = partial(delegated, to="estimator_", unfitted="_base_estimator")


class ImportanceReweightingClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    r"""Train any classifier on noisy labels as if they were clean.

    Minimises sum_i beta_i loss(f(x_i), y_i) with beta = P(true=y|x) / P(noisy=y|x), whose
    expectation is the clean risk, in four stages: P(noisy y|x), the noise rates, the weights beta,
    and the weighted fit of `estimator`.

    Parameters
    ----------
    estimator : classifier, default=None
        What to train: anything whose `fit` takes `sample_weight`, a Pipeline too.
        None: :class:`~sklearn.linear_model.LogisticRegression`.
    posterior : str, posterior or classifier, default="auto"
        How to estimate P(noisy y | x): "probabilistic", "kde", "kliep", "ulsif", "rulsif", "kmm",
        one of :mod:`unflip.posterior`, or a classifier with `predict_proba`. "auto" is
        "probabilistic": logistic regression on standardised features.
    noise_rates : str, NoiseRates or rate estimator, default="auto"
        The rates you know, as :class:`~unflip.NoiseRates` (of which one may be None, and is then
        estimated as by "auto"), or how to estimate them: "minimum", "quantile", "scott",
        "cv", or one of :mod:`unflip.noise_rates`. "auto" is "quantile": the 5 % quantile of
        P(noisy y | x).
    weighting : {"rho", "pi", "pi_printed"}, default="rho"
        "rho": Lemma 1 with the noise rates. "pi": through the inverse rates and back, which gives
        the same weights. "pi_printed": the paper's Lemma 2 as printed, wrong under
        class-conditional noise and kept for comparison.
    cv : int or cross-validation splitter, default=None
        Cross-fitting of the posterior, so that no row's probability comes from a model that saw
        its label. None: in-sample, as in the paper.
    random_state : int, RandomState instance or None, default=None
        Seed for the folds and for every part that has no seed of its own.

    Attributes
    ----------
    noise_rates_ : NoiseRates
        The rates used.
    sample_weight_ : ndarray of shape (n_samples,)
        beta >= 0, one per training row.
    mislabel_proba_ : ndarray of shape (n_samples,)
        P(true label differs from the given one | x, given label), one per training row.
    posterior_ : posterior
        The fitted estimator of P(noisy y | x).
    estimator_ : classifier
        The fitted classifier.
    classes_ : ndarray of shape (2,)
        The labels, the positive class last.
    effective_sample_size_ : float
        (sum w)^2 / sum w^2 of the weights that the classifier was trained with.
    clipped_share_ : float
        Share of rows whose P(noisy y | x) the rates do not allow, so that beta was clipped.

    Notes
    -----
    Labels must be flipped independently of x given the true class, and the rates are identifiable
    only if some rows surely belong to each class. A user's own `sample_weight` multiplies beta.

    References
    ----------
    Liu, Tao (2016), "Classification with noisy labels by importance reweighting", IEEE TPAMI 38.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> from unflip import ImportanceReweightingClassifier, NoiseRates, flip_labels
    >>> X, y = make_classification(2000, class_sep=1.5, random_state=0)
    >>> rates = NoiseRates(positive=0.4, negative=0.1)
    >>> y_noisy = flip_labels(y, rates, random_state=0)
    >>> LogisticRegression().fit(X, y_noisy).score(X, y)
    0.89...
    >>> clf = ImportanceReweightingClassifier().fit(X, y_noisy)
    >>> clf.score(X, y)
    0.99...
    >>> print(clf.noise_rates_)
    NoiseRates(positive=0.325, negative=0.0781)
    """

    noise_rates_: NoiseRates
    sample_weight_: Floats
    mislabel_proba_: Floats
    posterior_: Any
    estimator_: Any
    classes_: Array
    effective_sample_size_: float
    clipped_share_: float

    def __init__(
        self,
        estimator: Any = None,
        *,
        posterior: Any = "auto",
        noise_rates: Any = "auto",
        weighting: str = "rho",
        cv: Any = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.estimator = estimator
        self.posterior = posterior
        self.noise_rates = noise_rates
        self.weighting = weighting
        self.cv = cv
        self.random_state = random_state

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Estimate the posterior, the rates and the weights, then train the classifier.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)
            Rows, handed to the parts as they are.
        y : array-like of shape (n_samples,)
            Noisy labels of two classes.
        sample_weight : array-like of shape (n_samples,), default=None
            Your own weights: how often each row counts. They multiply beta.
        """
        check_choice(self.weighting, ("rho", "pi", "pi_printed"), "weighting")
        classes, codes = check_labels(y)
        check_enough_rows(X, codes)
        labels = classes[codes]
        row_weight = None if sample_weight is None else check_weights(sample_weight, codes.size)
        random_state = optional_generator(self.random_state)
        estimator = clone_seeded(self._base_estimator(), random_state)
        weight_parameters(estimator)  # refused before any work is done

        posterior, noisy_posterior = fit_posterior(
            make_posterior(self.posterior, random_state),
            X,
            labels,
            row_weight,
            cv=self.cv,
            random_state=random_state,
        )
        rates = estimate_rates(
            self.noise_rates,
            X,
            labels,
            row_weight,
            random_state,
            noisy_posterior=noisy_posterior,
            method=self,
        )
        given = noisy_posterior[np.arange(codes.size), codes]
        noisy_prior = float(np.average(codes, weights=row_weight))
        beta = self._weights(given, labels, rates, noisy_prior)
        total_weight = beta if row_weight is None else beta * row_weight
        _check_weights_teach(total_weight, codes, classes, given, rates)
        _warn_if_uninformative(rates, noisy_prior)
        fit_weighted(estimator, X, labels, total_weight, row_weight=row_weight)

        check_table(self, X, reset=True)
        self.classes_ = classes
        self.posterior_ = posterior
        self.noise_rates_ = rates
        self.sample_weight_ = beta
        self.mislabel_proba_ = mislabel_probability(given, labels, rates)
        self.effective_sample_size_ = effective_sample_size(total_weight)
        self.clipped_share_ = clipped_share(given, labels, rates)
        self.estimator_ = estimator
        return self

    def predict(self, X: Any) -> Array:
        """Return the most likely true label of every row."""
        return np.asarray(self._fitted_for(X).predict(X))

    @available_if(_estimator_has("predict_proba"))
    def predict_proba(self, X: Any) -> Array:
        """Return P(true y | x), one column per class in the order of `classes_`."""
        return np.asarray(self._fitted_for(X).predict_proba(X))

    @available_if(_estimator_has("predict_log_proba"))
    def predict_log_proba(self, X: Any) -> Array:
        """Return log P(true y | x), one column per class in the order of `classes_`."""
        return np.asarray(self._fitted_for(X).predict_log_proba(X))

    @available_if(_estimator_has("decision_function"))
    def decision_function(self, X: Any) -> Array:
        """Return the classifier's score of every row: positive for the positive class."""
        return np.asarray(self._fitted_for(X).decision_function(X))

    def _base_estimator(self) -> Any:
        return LogisticRegression() if self.estimator is None else self.estimator

    def _fitted_for(self, X: Any) -> Any:
        check_is_fitted(self)
        check_table(self, X, reset=False)
        return self.estimator_

    def _weights(
        self, given: Floats, labels: Array, rates: NoiseRates, noisy_prior: float
    ) -> Floats:
        if self.weighting == "rho":
            return importance_weights(given, labels, rates)
        inverse = rates.inverse(noisy_prior=noisy_prior)
        if self.weighting == "pi":
            return importance_weights_from_inverse(given, labels, inverse, noisy_prior)
        return printed_lemma_2_weights(given, labels, inverse)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        inner = [get_tags(self._base_estimator()).input_tags]
        inner.append(get_tags(make_posterior(self.posterior)).input_tags)
        tags.input_tags.sparse = all(part.sparse for part in inner)
        tags.input_tags.allow_nan = all(part.allow_nan for part in inner)
        return tags


def eiw(
    estimator: Any = None, *, random_state: int | np.random.RandomState | None = None
) -> ImportanceReweightingClassifier:
    """Return the paper's eIW: KLIEP as published, and the rates as the smallest posteriors.

    Parameters
    ----------
    estimator : classifier, default=None
        What to train.
    random_state : int, RandomState instance or None, default=None
        Seed.
    """
    return ImportanceReweightingClassifier(
        estimator,
        posterior=_published_posterior(),
        noise_rates="minimum",
        random_state=random_state,
    )


def iw(
    estimator: Any = None, *, random_state: int | np.random.RandomState | None = None
) -> ImportanceReweightingClassifier:
    """Return the paper's IW: KLIEP as published, and the rates by threefold noisy accuracy.

    Parameters
    ----------
    estimator : classifier, default=None
        What to train.
    random_state : int, RandomState instance or None, default=None
        Seed.
    """
    return ImportanceReweightingClassifier(
        estimator,
        posterior=_published_posterior(),
        noise_rates=CrossValidatedRates(scoring="noisy_accuracy", cv=3),
        random_state=random_state,
    )


def _published_posterior() -> DensityRatioPosterior:
    return DensityRatioPosterior(KLIEP(solver="projected_gradient", search="downward"))


def _check_weights_teach(
    weight: Floats, codes: Array, classes: Array, given: Floats, rates: NoiseRates
) -> None:
    """Refuse weights from which no classifier of two classes can be learnt."""
    if not given.any():
        raise ValueError(
            "the posterior gives every row's label probability 0, so no label can be believed: "
            "it does not fit these data. Choose another posterior, or a wider bandwidth."
        )
    for k, label in enumerate(classes):
        if not weight[codes == k].any():
            raise ValueError(
                f"every row labelled {label.item()!r} would get weight 0 under {rates}: where one "
                "of them looks likely, its probability is still no more than the other class's "
                "flip rate. Lower that rate, or choose another posterior."
            )


def _warn_if_uninformative(rates: NoiseRates, noisy_prior: float) -> None:
    """Say where the result hangs on next to nothing."""
    positive, negative = rates.both()
    if rates.youden < 0.2:
        warnings.warn(
            f"the noise rates sum to {positive + negative:.2f}: the labels say very little about "
            "the true classes, and the weights amplify every error of the posterior.",
            UserWarning,
            stacklevel=3,
        )
    if not negative <= noisy_prior <= 1 - positive:
        warnings.warn(
            f"{rates} contradicts the data: under these rates the share of positive labels lies "
            f"between {negative:.3f} and {1 - positive:.3f}, and it is {noisy_prior:.3f}.",
            UserWarning,
            stacklevel=3,
        )
