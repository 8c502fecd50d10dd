"""Which labels are probably wrong, and what they should be."""

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import ClassifierTags, get_tags
from sklearn.utils.validation import check_is_fitted

from unflip._beliefs import warn_all
from unflip._estimators import optional_generator
from unflip._notebook import with_findings
from unflip._validation import (
    check_class_weights,
    check_count,
    check_enough_rows,
    check_labels,
    check_table,
    check_weights,
    is_number,
)
from unflip.noise import as_transition_matrix
from unflip.noise_rates import fit_stages
from unflip.noise_rates._identifiability import doubts
from unflip.posterior import make_posterior
from unflip.posterior._base import folds_within_classes
from unflip.weights import likeliest_class, mislabel_probability

Array = NDArray[Any]
Floats = NDArray[np.float64]


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
    noise_rates_ : NoiseRates or TransitionMatrix
        The rates used.
    transition_matrix_ : ndarray of shape (n_classes, n_classes)
        T.
    rate_estimator_ : rate estimator or None
        What estimated the rates, with their `interval_`; None where they were given.
    diagnostics_ : list of str
        Why the rates may not be trusted, in words, as `fit` warned.
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
    clean_proba_: Floats
    n_errors_: float
    noise_rates_: Any
    rate_estimator_: Any
    diagnostics_: list[str]
    transition_matrix_: Floats
    classes_: Array

    def __init__(
        self,
        posterior: Any = "auto",
        noise_rates: Any = "auto",
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
        classes, codes = check_labels(y, binary=False)
        check_enough_rows(X, codes)
        labels = classes[codes]
        row_weight = None if sample_weight is None else check_weights(sample_weight, codes.size)
        if row_weight is not None:
            check_class_weights(row_weight, codes, classes)
        random_state = optional_generator(self.random_state)
        stages = fit_stages(
            self.posterior,
            self.noise_rates,
            X,
            labels,
            row_weight,
            cv=folds_within_classes(self.cv, codes),
            random_state=random_state,
            estimate="mean",
        )
        rates, noisy_posterior = stages.rates, stages.noisy_posterior
        noise = as_transition_matrix(rates, classes.size)
        clean = noise.clean_posterior(noisy_posterior)
        wrong = mislabel_probability(noisy_posterior, labels, noise, classes=classes)
        likeliest = likeliest_class(clean, codes, noise)
        diagnostics = doubts(clean, row_weight, classes, rates, stages.estimator)
        warn_all(diagnostics)

        check_table(self, X, reset=True)
        self.classes_, self.noise_rates_, self.transition_matrix_ = classes, rates, noise.matrix
        self.mislabel_proba_, self.clean_proba_ = wrong, clean
        self.suggested_label_ = classes[likeliest]
        self.rate_estimator_, self.diagnostics_ = stages.estimator, diagnostics
        self.n_errors_ = float(np.sum(wrong if row_weight is None else row_weight * wrong))
        return self

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
        if precision is not None and n is not None:
            raise ValueError("give precision or n, not both.")
        order = np.argsort(-self.mislabel_proba_, kind="stable")
        if n is not None:
            check_count(n, "n", least=0)
            return order[:n]
        if precision is None:
            return order[: round(float(self.mislabel_proba_.sum()))]
        if not (is_number(precision) and 0 < precision <= 1):
            raise ValueError(f"precision must lie in (0, 1], got {precision!r}.")
        found = np.cumsum(self.mislabel_proba_[order]) / np.arange(1, order.size + 1)
        # falling, because the most suspicious rows come first
        return order[: int(np.sum(found >= precision - 1e-12))]

    def _html_repr(self) -> str:
        return with_findings(super()._html_repr(), self)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(make_posterior(self.posterior, n_classes=3)).input_tags
        tags.input_tags.sparse, tags.input_tags.allow_nan = inner.sparse, inner.allow_nan
        tags.target_tags.required = True
        tags.target_tags.one_d_labels = True
        tags.classifier_tags = ClassifierTags()
        return tags


def find_label_issues(
    X: Any,
    y: ArrayLike,
    *,
    posterior: Any = "auto",
    noise_rates: Any = "auto",
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
    >>> from unflip.audit import find_label_issues
    >>> X = np.r_[np.linspace(-5, -2, 50), np.linspace(2, 5, 50)][:, None]
    >>> y = np.repeat(["cat", "dog"], 50)
    >>> y[3::10] = np.where(y[3::10] == "cat", "dog", "cat")
    >>> sorted(find_label_issues(X, y, random_state=0).tolist())
    [3, 13, 23, 73, 83, 93]
    """
    audit = LabelAudit(posterior, noise_rates, cv=cv, random_state=random_state)
    return audit.fit(X, y).issues(precision=precision)
