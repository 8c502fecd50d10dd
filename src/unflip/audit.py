"""Which labels are probably wrong, and what they should be."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import ClassifierTags, get_tags
from sklearn.utils.validation import check_is_fitted

from unflip._features import encode, estimate_from_features, estimate_from_posterior
from unflip._notebook import with_findings
from unflip._probabilities.estimate import Determined, estimate_from_probabilities
from unflip._probabilities.inputs import held_out_labels, pooled
from unflip._utils.compat import DiagramMixin
from unflip._utils.docs import documented_like
from unflip._utils.estimators import stage_generator
from unflip._utils.folds import folds_within_classes
from unflip._utils.frames import (
    audit_frame,
    is_frame,
    row_index,
    some_rows,
    split_label_column,
)
from unflip._utils.threads import one_blas_thread
from unflip._utils.typing import Array, Floats, RandomState
from unflip._utils.validation import (
    Labels,
    check_class_weights,
    check_enough_rows,
    check_flag,
    check_labels,
    check_selection,
    check_table,
    check_weights,
)
from unflip.checked import CheckedLabels
from unflip.checked.internals import correct
from unflip.diagnostics import raise_or_warn
from unflip.estimate import HasNoiseEstimate, NoiseEstimate, not_ignored
from unflip.noise_rates import (
    BaseRates,
    RatesLike,
    needs_rows,
)
from unflip.posterior import PosteriorLike, as_posterior


@documented_like(HasNoiseEstimate)
class LabelAudit(HasNoiseEstimate, DiagramMixin, BaseEstimator):
    r"""P(true != y | x, observed=y) = 1 - T[y, y] P(true=y | x) / P(observed=y | x), row by row.

    T[i, j] = P(observed=j | true=i), and P(true | x) = P(observed | x) T^-1, brought back into the
    simplex. P(observed | x) is cross-fitted: no sample's probability comes from a model that saw
    its label, because such a model would follow it.

    Parameters
    ----------
    posterior : str, posterior or classifier, default="auto"
        How to estimate P(observed y | x): see :func:`~unflip.posterior.make_posterior`.
    noise_rates : str, NoiseRates, TransitionMatrix, array-like or rate estimator, default="auto"
        As for :class:`~unflip.ImportanceReweightingClassifier`.
    determined : "auto", True or False, default="auto"
        Used by :meth:`fit_posterior` with noise_rates="auto": whether the sample determines its
        true label. True: it does, as a picture of a cat does; uncertainty of the model beyond T is
        shared by label errors, which then depend on the sample, and the model's own errors. False:
        the true label is uncertain given the features (will this customer churn?); that uncertainty
        is overlap of the classes, and only T makes labels wrong. Labels cannot distinguish the two:
        "auto" estimates as False does, and a note gives both error rates if they differ.
    cv : int or cross-validation splitter, default=5
        Folds of the cross-fitting. At most the number of samples of the rarest class.
    random_state : int, RandomState instance or None, default=None
        Seed of the folds and of every part that has no seed of its own.
    ignore : list of str, default=None
        Codes of findings that `fit` does not warn about. `noise_.findings` still contains them.

    Attributes
    ----------
    none_proba_ : ndarray of shape (n_samples,)
        P(the sample is of no class | x, the label), out of distribution. Part of
        `mislabel_proba_`; 0 except by :meth:`fit_posterior`, where held-out probabilities of three
        classes or more show such samples.
    unclear_ : ndarray of shape (n_samples,)
        Whether the label is probably wrong and no other one probably right: no suggestion.
    rate_estimator_ : rate estimator or None
        The fitted rate estimator, with the `interval_` of the rates and of the error rate; None if
        the rates were given, and after :meth:`fit_posterior` with noise_rates="auto".
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted.

    Notes
    -----
    The probabilities are calibrated as far as the posterior and the rates are right. Samples that
    merely look like another class are not reported: where the classes overlap, a label may be
    correct and unlikely.

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

    rate_estimator_: BaseRates | None
    classes_: Array

    def __init__(
        self,
        posterior: PosteriorLike = "auto",
        noise_rates: RatesLike = "auto",
        *,
        determined: Determined = "auto",
        cv: Any = 5,
        random_state: RandomState = None,
        ignore: Sequence[str] | None = None,
    ) -> None:
        self.posterior = posterior
        self.noise_rates = noise_rates
        self.determined = determined
        self.cv = cv
        self.random_state = random_state
        self.ignore = ignore

    @one_blas_thread()
    def fit(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        checked: CheckedLabels | None = None,
    ) -> Self:
        """Estimate how likely each sample's label is wrong.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)
            Samples. For a posterior that is given by name, text, categories, dates and
            missing values are encoded first, as by the command line.
        y : array-like of shape (n_samples,)
            Observed labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Sample weights: how often each sample counts.
        checked : CheckedLabels, default=None
            True labels of some samples, from which the error model is fitted, whatever the noise.

        Returns
        -------
        self
            The fitted estimator.
        """
        labels = check_labels(y, binary=False)
        classes, codes = labels
        check_enough_rows(X, codes)
        weight = None if sample_weight is None else check_weights(sample_weight, codes.size)
        if weight is not None:
            check_class_weights(weight, codes, classes)
        numbers, _ = encode(self.posterior, self.noise_rates, X, classes.size)
        found = estimate_from_features(
            self.posterior,
            self.noise_rates,
            X,
            labels,
            weight,
            cv=folds_within_classes(self.cv, codes),
            random_state=stage_generator(self.random_state),
            numbers=numbers,
            checked=checked,
        )
        self._keep(found.noise, found.rate_estimator)
        self._index = row_index(y, X)
        check_table(self, X, reset=True)
        return self

    @one_blas_thread()
    def fit_posterior(
        self,
        pred_probs: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        classes: ArrayLike | None = None,
        checked: CheckedLabels | None = None,
    ) -> Self:
        """Estimate how likely each sample's label is wrong from any model's P(observed y | x).

        The probabilities must be held out: from models that did not see the sample's label. With
        noise_rates="auto" the noise model is fitted with their logarithms as features: they are
        calibrated for the observed labels, the noise that the model has learnt is removed, and
        samples may belong to no class. `determined` decides how the remaining uncertainty is
        interpreted.

        Parameters
        ----------
        pred_probs : array-like of shape (n_samples, n_classes), or list of them
            P(observed y | x) of held-out samples, one column per class in sorted order, or a table
            whose columns are named after the classes. Several models are pooled (one of them,
            their product or their mean) so that held-out labels are most likely.
        y : array-like of shape (n_samples,)
            Observed labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Sample weights: how often each sample counts.
        classes : array-like of shape (n_classes,), default=None
            The class of each column of `pred_probs`, if they are not the sorted labels.
        checked : CheckedLabels, default=None
            As for :meth:`fit`.

        Returns
        -------
        self
            The fitted estimator.

        Examples
        --------
        >>> from sklearn.datasets import load_digits
        >>> from sklearn.linear_model import LogisticRegression
        >>> from sklearn.model_selection import cross_val_predict
        >>> from unflip import LabelAudit, TransitionMatrix, flip_labels
        >>> X, y = load_digits(return_X_y=True)
        >>> y_noisy = flip_labels(y, TransitionMatrix.uniform(10, 0.1), random_state=0)
        >>> model = LogisticRegression(C=0.01, max_iter=200)
        >>> pred_probs = cross_val_predict(model, X / 16, y_noisy, cv=3, method="predict_proba")
        >>> audit = LabelAudit().fit_posterior(pred_probs, y_noisy)
        >>> worst = audit.issues(n=100)
        >>> bool((y_noisy[worst] != y[worst]).mean() > 0.95)
        True
        """
        by_evidence = isinstance(self.noise_rates, str) and self.noise_rates == "auto"
        classes_, codes, models = held_out_labels(pred_probs, y, classes, normalized=by_evidence)
        weight = None if sample_weight is None else check_weights(sample_weight, codes.size)
        random_state, labels = stage_generator(self.random_state), Labels(classes_, codes)
        noisy_proba, estimator = pooled(models, codes), None
        if by_evidence:
            noise = estimate_from_probabilities(
                noisy_proba,
                codes,
                classes_,
                weight,
                determined=self.determined,
                random_state=random_state,
            )
        else:
            self._check_needs_no_samples(classes_.size)
            found = estimate_from_posterior(
                None, self.noise_rates, None, noisy_proba, labels, weight, random_state
            )
            noise, estimator = found.noise, found.rate_estimator
        self._keep(correct(noise, checked), estimator)
        self._index = row_index(y)
        return self

    def _check_needs_no_samples(self, n_classes: int) -> None:
        """Raise an error if the rates cannot be estimated from probabilities alone."""
        if needs_rows(self.noise_rates, n_classes):
            raise ValueError(
                f"noise_rates={self.noise_rates!r} estimates the rates from samples, and there are "
                "only probabilities. Use noise_rates='auto' or 'selective', give the rates you "
                "know, or fit(X, y)."
            )

    def _view(self, fitted: Any, noise: NoiseEstimate) -> Self:
        """Show an estimate that a fitted estimator made, or a correction of it."""
        self._keep(noise, fitted.rate_estimator_)
        self._index = fitted._index
        return self

    def _keep(self, noise: NoiseEstimate, estimator: BaseRates | None) -> None:
        """Store the estimate, and warn about its findings."""
        raise_or_warn(not_ignored(noise.findings, self.ignore))
        self.classes_, self.noise_ = noise.classes, noise
        self.rate_estimator_ = estimator if noise.counted is None else None

    @property
    def none_proba_(self) -> Floats:
        """P(the sample belongs to none of the classes), one per sample."""
        return self.noise_.none_proba

    @property
    def unclear_(self) -> NDArray[np.bool_]:
        """Whether the label is probably wrong while no other label is probably right."""
        return self.noise_.unclear

    def to_frame(self) -> Any:
        """Return a dataframe with one row per label: observed, suggested, P(mislabelled), and why.

        It is a pandas dataframe with the index of `y` (or `X`), or a polars one if `y` is of
        polars. The columns are `given_label`, `suggested_label` (missing if `unclear`),
        `mislabel_proba`, `none_proba`, `unclear`, and the two most likely classes of the model
        alone, `model_first` and `model_second`, with their probabilities.

        Returns
        -------
        dataframe
            In the order of the samples.
        """
        check_is_fitted(self)
        return audit_frame(self, self.noise_.codes, self._index)

    def issues(
        self,
        *,
        precision: float | None = None,
        n: int | None = None,
        threshold: float | None = None,
    ) -> NDArray[np.intp]:
        """Return the samples whose labels are worth verifying, most likely errors first.

        Parameters
        ----------
        precision : float, default=None
            Return as many samples as possible of which at least this share is expected to be
            mislabelled.
        n : int, default=None
            Number of samples to return.
        threshold : float, default=None
            Minimum P(mislabelled) of the samples to return. With none of the three, as many samples
            as there are expected errors.

        Returns
        -------
        ndarray of int
            Positions of samples.
        """
        check_is_fitted(self)
        check_selection(self.mislabel_proba_.size, precision=precision, n=n, threshold=threshold)
        order = np.argsort(-self.mislabel_proba_, kind="stable")
        if n is not None:
            return order[:n]
        if threshold is not None:
            return order[: int(np.sum(self.mislabel_proba_ >= threshold))]
        if precision is None:
            return order[: round(float(self.mislabel_proba_.sum()))]
        found = np.cumsum(self.mislabel_proba_[order]) / np.arange(1, order.size + 1)
        # decreasing, because the most suspicious samples come first
        return order[: int(np.sum(found >= precision - 1e-12))]

    def _html_repr(self) -> str:
        return with_findings(super()._html_repr(), self)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(as_posterior(self.posterior)).input_tags
        tags.input_tags.sparse = inner.sparse
        tags.input_tags.allow_nan = isinstance(self.posterior, str) or inner.allow_nan
        tags.target_tags.required = True
        tags.target_tags.one_d_labels = True
        tags.classifier_tags = ClassifierTags()
        return tags


@documented_like(LabelAudit, LabelAudit.fit_posterior)
def find_label_issues(
    X: Any = None,
    y: ArrayLike | str | None = None,
    *,
    pred_probs: Any = None,
    classes: ArrayLike | None = None,
    posterior: PosteriorLike = "auto",
    noise_rates: RatesLike = "auto",
    determined: Determined = "auto",
    precision: float | None = None,
    threshold: float | None = None,
    return_frame: bool | None = None,
    cv: Any = 5,
    random_state: RandomState = None,
) -> Any:
    """Return the samples whose labels are probably wrong, most likely errors first.

    :class:`LabelAudit` also has the probabilities and the suggested labels.

    Parameters
    ----------
    X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features), default=None
        Samples; None with `pred_probs`.
    y : array-like of shape (n_samples,), or str
        Observed labels, or the column of the dataframe `X` that holds them.
    pred_probs : array-like of shape (n_samples, n_classes), or list of them, default=None
        Held-out probabilities of any model, or of several, instead of `X`: see
        :meth:`LabelAudit.fit_posterior`.
    precision : float, default=None
        The share of the returned samples that is expected to be mislabelled.
    threshold : float, default=None
        Minimum P(mislabelled) of the returned samples. With neither, as many samples are returned
        as there are expected errors.
    return_frame : bool, default=None
        Whether to return a dataframe, with the position `row` and the columns of
        :meth:`LabelAudit.to_frame`, or positions alone. None: a dataframe if `X` is one.

    Returns
    -------
    dataframe or ndarray of int
        The samples, or their positions.

    Examples
    --------
    >>> import numpy as np
    >>> from unflip import NoiseRates, find_label_issues, flip_labels
    >>> X = np.r_[np.linspace(-5, -2, 200), np.linspace(2, 5, 200)][:, None]
    >>> y = np.repeat(["cat", "dog"], 200)
    >>> y_noisy = flip_labels(y, NoiseRates(positive=0.2, negative=0.2), random_state=0)
    >>> found = find_label_issues(X, y_noisy, precision=0.9, random_state=0)
    >>> bool((y_noisy[found] != y[found]).mean() > 0.85)
    True
    """
    if _in_the_order_of_cleanlab(X, y):
        raise ValueError(
            "X holds one value per sample and y holds probabilities, but the labels come second. "
            "Write find_label_issues(pred_probs=pred_probs, y=labels)."
        )
    if X is None and pred_probs is None:
        raise ValueError("X and pred_probs are both None: pass samples or held-out probabilities.")
    if X is not None and pred_probs is not None:
        raise ValueError("X and pred_probs are both given: pass samples or held-out probabilities.")
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None.")
    audit = LabelAudit(
        posterior, noise_rates, determined=determined, cv=cv, random_state=random_state
    )
    if pred_probs is not None:
        audit.fit_posterior(pred_probs, y, classes=classes)
    elif classes is not None:
        raise ValueError("classes names the columns of pred_probs, and there are none.")
    else:
        if isinstance(y, str):
            X, y = split_label_column(X, y)
        audit.fit(X, y)
    found = audit.issues(precision=precision, threshold=threshold)
    if return_frame is None:
        return_frame = is_frame(X)
    check_flag(return_frame, "return_frame")
    return some_rows(audit.to_frame(), found) if return_frame else found


def _in_the_order_of_cleanlab(X: Any, y: Any) -> bool:
    """Return whether labels were given first and probabilities second."""
    if X is None or y is None or isinstance(y, str) or np.ndim(X) != 1 or np.ndim(y) != 2:
        return False
    values = np.asarray(y)
    return values.dtype.kind == "f" and bool(np.allclose(values.sum(axis=1), 1))
