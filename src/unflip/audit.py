"""Which labels are probably wrong, and what they should be."""

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import ClassifierTags, get_tags
from sklearn.utils.validation import check_is_fitted

from unflip._diagnostics import raise_or_warn
from unflip._estimators import stage_generator
from unflip._folds import folds_within_classes
from unflip._label_posterior import LabelPosterior
from unflip._notebook import with_findings
from unflip._stages import fit_stages, judge_estimate
from unflip._typing import Array, Floats
from unflip._validation import (
    check_class_weights,
    check_enough_rows,
    check_labels,
    check_precision_or_n,
    check_probability_per_class,
    check_table,
    check_weights,
)
from unflip.noise import NoiseRates, TransitionMatrix
from unflip.noise_rates import BaseRates, RatesLike, fit_rates, needs_rows
from unflip.posterior import PosteriorLike, as_posterior


class LabelAudit(BaseEstimator):
    r"""P(true != y | x, noisy=y) = 1 - T[y, y] P(true=y | x) / P(noisy=y | x), row by row.

    T[i, j] = P(noisy=j | true=i), and P(true | x) = P(noisy | x) T^-1, brought back into the
    simplex. P(noisy | x) is cross-fitted: no row's probability comes from a model that saw its
    label, since a model that did believes it.

    Parameters
    ----------
    posterior : str, posterior or classifier, default="auto"
        How to estimate P(noisy y | x): see :func:`~unflip.posterior.make_posterior`.
    noise_rates : str, NoiseRates, TransitionMatrix, array-like or rate estimator, default="auto"
        As for :class:`~unflip.ImportanceReweightingClassifier`; of the channel's rates the means
        are taken, so that a few wrong labels among many are ranked, not ruled out.
    cv : int or cross-validation splitter, default=5
        Folds of the cross-fitting. Where a class has fewer rows than folds, as many as it has.
    random_state : int, RandomState instance or None, default=None
        Seed of the folds and of every part that has no seed of its own.

    Attributes
    ----------
    mislabel_proba_ : ndarray of shape (n_samples,)
        P(the label is wrong | x, the label).
    suggested_label_ : ndarray of shape (n_samples,)
        The likeliest true label given x and the label.
    clean_proba_ : ndarray of shape (n_samples, n_classes)
        P(true y | x), whatever the label.
    n_errors_ : float
        Expected number of wrong labels: the sum of `mislabel_proba_`, weighted by `sample_weight`.
    noisy_proba_ : ndarray of shape (n_samples, n_classes)
        P(noisy y | x), as used.
    label_proba_ : ndarray of shape (n_samples, n_classes)
        P(true y | x, given label): the label posterior.
    noise_rates_ : NoiseRates or TransitionMatrix
        The rates used.
    transition_matrix_ : ndarray of shape (n_classes, n_classes)
        T.
    rate_estimator_ : rate estimator or None
        What estimated the rates, with their `interval_`; None where they were given.
    diagnostics_ : list of str
        Why the result may not be trusted, in words, as `fit` warned.
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted.

    Notes
    -----
    The probabilities are calibrated as far as the posterior and the rates are right. Rows that
    merely look like another class are not called wrong: where the classes overlap, a label may be
    right and unlikely.

    Examples
    --------
    >>> import numpy as np
    >>> from unflip import NoiseRates, flip_labels
    >>> from unflip.audit import LabelAudit
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 2000)
    >>> X = rng.normal(3 * y[:, None], 1.0, (2000, 2))
    >>> y_noisy = flip_labels(y, NoiseRates(positive=0.3, negative=0.1), random_state=0)
    >>> audit = LabelAudit(random_state=0).fit(X, y_noisy)
    >>> suspects = audit.issues(precision=0.95)
    >>> bool(np.mean(y_noisy[suspects] != y[suspects]) > 0.9)
    True
    """

    mislabel_proba_: Floats
    suggested_label_: Array
    noisy_proba_: Floats
    label_proba_: Floats
    clean_proba_: Floats
    n_errors_: float
    noise_rates_: NoiseRates | TransitionMatrix
    rate_estimator_: BaseRates | None
    diagnostics_: list[str]
    transition_matrix_: Floats
    classes_: Array

    def __init__(
        self,
        posterior: PosteriorLike = "auto",
        noise_rates: RatesLike = "auto",
        *,
        cv: Any = 5,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.posterior = posterior
        self.noise_rates = noise_rates
        self.cv = cv
        self.random_state = random_state

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Estimate how likely each row's label is wrong.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Noisy labels.
        sample_weight : array-like of shape (n_samples,), default=None
            How often each row counts.
        """
        labels = check_labels(y, binary=False)
        classes, codes = labels
        check_enough_rows(X, codes)
        weight = None if sample_weight is None else check_weights(sample_weight, codes.size)
        if weight is not None:
            check_class_weights(weight, codes, classes)
        random_state = stage_generator(self.random_state)
        stages = fit_stages(
            self.posterior,
            self.noise_rates,
            X,
            labels,
            weight,
            cv=folds_within_classes(self.cv, codes),
            random_state=random_state,
            estimate="mean",
        )
        label_posterior = LabelPosterior(stages.noisy_posterior, codes, stages.rates, classes)
        self._take(label_posterior, stages.noisy_posterior, stages.rates, stages.estimator, weight)
        check_table(self, X, reset=True)
        return self

    def fit_posterior(
        self, noisy_posterior: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Estimate how likely each row's label is wrong from P(noisy y | x), estimated elsewhere.

        Rates that are to be estimated are read off these probabilities: "auto" is "selective".

        Parameters
        ----------
        noisy_posterior : array-like of shape (n_samples, n_classes)
            P(noisy y | x) of held-out rows, one column per class in sorted order.
        y : array-like of shape (n_samples,)
            Noisy labels.
        sample_weight : array-like of shape (n_samples,), default=None
            How often each row counts.
        """
        labels = check_labels(y, binary=False)
        classes, codes = labels
        probabilities = check_probability_per_class(
            noisy_posterior, codes.size, classes.size, "noisy_posterior"
        )
        weight = None if sample_weight is None else check_weights(sample_weight, codes.size)
        by_name = isinstance(self.noise_rates, str) and self.noise_rates == "auto"
        noise_rates = "selective" if by_name else self.noise_rates
        if needs_rows(noise_rates, classes.size):
            raise ValueError(
                f"noise_rates={noise_rates!r} estimates the rates from rows, and there are only "
                "probabilities. Use noise_rates='selective', give the rates you know, or fit(X, y)."
            )
        rates, estimator = fit_rates(
            noise_rates,
            None,
            labels,
            weight,
            stage_generator(self.random_state),
            noisy_posterior=probabilities,
        )
        label_posterior = LabelPosterior(probabilities, codes, rates, classes)
        self._take(label_posterior, probabilities, rates, estimator, weight)
        return self

    def _take(
        self,
        label_posterior: LabelPosterior,
        noisy_proba: Floats,
        rates: NoiseRates | TransitionMatrix,
        estimator: BaseRates | None,
        weight: Floats | None,
    ) -> None:
        classes, totals = label_posterior.classes, label_posterior.totals(weight)
        diagnostics = raise_or_warn(judge_estimate(totals, classes, rates, estimator), stacklevel=3)
        self.classes_, self.noise_rates_ = classes, rates
        self.noisy_proba_ = noisy_proba
        self.transition_matrix_ = label_posterior.noise.matrix
        self.mislabel_proba_ = label_posterior.mislabel_proba
        self.label_proba_, self.clean_proba_ = label_posterior.proba, label_posterior.clean_proba
        self.suggested_label_ = label_posterior.suggested_label
        self.rate_estimator_, self.diagnostics_ = estimator, diagnostics
        self.n_errors_ = totals.n_errors

    def issues(self, *, precision: float | None = None, n: int | None = None) -> NDArray[np.intp]:
        """Return the rows whose labels to look at, the most suspicious first.

        Parameters
        ----------
        precision : float, default=None
            As many rows as there can be while at least this share of them is expected to be
            mislabelled.
        n : int, default=None
            So many rows. With neither, as many as there are expected errors.
        """
        check_is_fitted(self)
        check_precision_or_n(precision, n)
        order = np.argsort(-self.mislabel_proba_, kind="stable")
        if n is not None:
            return order[:n]
        if precision is None:
            return order[: round(float(self.mislabel_proba_.sum()))]
        found = np.cumsum(self.mislabel_proba_[order]) / np.arange(1, order.size + 1)
        # falling, because the most suspicious rows come first
        return order[: int(np.sum(found >= precision - 1e-12))]

    def _html_repr(self) -> str:
        return with_findings(super()._html_repr(), self)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(as_posterior(self.posterior, n_classes=3)).input_tags
        tags.input_tags.sparse, tags.input_tags.allow_nan = inner.sparse, inner.allow_nan
        tags.target_tags.required = True
        tags.target_tags.one_d_labels = True
        tags.classifier_tags = ClassifierTags()
        return tags


def find_label_issues(
    X: Any,
    y: ArrayLike,
    *,
    posterior: PosteriorLike = "auto",
    noise_rates: RatesLike = "auto",
    precision: float | None = None,
    cv: Any = 5,
    random_state: int | np.random.RandomState | None = None,
) -> NDArray[np.intp]:
    """Return the positions of the rows whose labels are probably wrong, the surest first.

    Parameters
    ----------
    X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)
        Rows.
    y : array-like of shape (n_samples,)
        Noisy labels.
    posterior, noise_rates, cv, random_state
        As for :class:`LabelAudit`, which also has the probabilities and the suggested labels.
    precision : float, default=None
        The share of the returned rows that is expected to be mislabelled; None: as many rows as
        there are expected errors.

    Examples
    --------
    >>> import numpy as np
    >>> from unflip import NoiseRates, find_label_issues, flip_labels
    >>> X = np.r_[np.linspace(-5, -2, 200), np.linspace(2, 5, 200)][:, None]
    >>> y = np.repeat(["cat", "dog"], 200)
    >>> y_noisy = flip_labels(y, NoiseRates(positive=0.2, negative=0.2), random_state=0)
    >>> found = find_label_issues(X, y_noisy, precision=0.9, random_state=0)
    >>> bool((y_noisy[found] != y[found]).all())
    True
    """
    audit = LabelAudit(posterior, noise_rates, cv=cv, random_state=random_state)
    return audit.fit(X, y).issues(precision=precision)
