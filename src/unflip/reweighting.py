"""All four stages in one estimator."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from unflip._features import FeatureFit, encode, estimate_from_features
from unflip._notebook import with_findings
from unflip._utils.compat import DiagramMixin
from unflip._utils.docs import documented_like
from unflip._utils.estimators import (
    PredictsByEstimator,
    check_is_estimator,
    clone_seeded,
    fit_soft_labels,
    fit_weighted,
    optional_generator,
    weight_parameters,
)
from unflip._utils.frames import native_frame, row_index
from unflip._utils.preprocessing import default_classifier
from unflip._utils.threads import one_blas_thread
from unflip._utils.typing import Array, Classifier, Floats, RandomState
from unflip._utils.validation import (
    check_choice,
    check_class_weights,
    check_enough_rows,
    check_labels,
    check_table,
    check_weights,
)
from unflip.checked import CheckedLabels
from unflip.checked.internals import has_checked
from unflip.diagnostics import diagnose_weights, raise_or_warn
from unflip.estimate import HasNoiseEstimate, not_ignored
from unflip.noise import of_classes, positive_position
from unflip.noise_rates import BaseRates, RatesLike, for_two_classes
from unflip.posterior import BasePosterior, PosteriorLike, as_posterior
from unflip.weights import importance_weights_from_inverse, printed_lemma_2_weights


@documented_like(HasNoiseEstimate)
class ImportanceReweightingClassifier(
    HasNoiseEstimate,
    DiagramMixin,
    PredictsByEstimator,
    ClassifierMixin,
    MetaEstimatorMixin,
    BaseEstimator,
):
    r"""Train any classifier on noisy labels as if they were clean.

    Minimises sum_i beta_i loss(f(x_i), y_i) with beta = P(true=y|x) / P(observed=y|x), whose
    expectation is the clean risk, in four stages: P(observed y|x), the noise rates, the weights
    beta, and the weighted fit of `estimator`.

    Parameters
    ----------
    estimator : classifier, default=None
        Any classifier whose `fit` accepts `sample_weight`, including a Pipeline. None:
        :class:`~sklearn.linear_model.LogisticRegression` on standardised features; text,
        categories, dates and missing values are encoded first.
    posterior : str, posterior or classifier, default="auto"
        Estimator of P(observed y | x): "channel", "probabilistic", "selected", "kde", "kliep",
        "ulsif", "rulsif", "kmm", one of :mod:`unflip.posterior`, or a classifier with
        `predict_proba`. "auto" is "channel", the noise model, if the rates are known or estimated
        by it; with another rate estimator it is "probabilistic" (logistic regression) for two
        classes and "selected" (logistic regression or boosted trees, by held-out likelihood) for
        more.
    noise_rates : str, NoiseRates, TransitionMatrix, array-like or rate estimator, default="auto"
        Known rates, as :class:`~unflip.NoiseRates` (None or bounds are estimated) or, for any
        number of classes, as a :class:`~unflip.TransitionMatrix` or an array of its shape; or how
        to estimate them: "channel", "selective", "minimum", "quantile", "scott", "cv" and others
        (:func:`~unflip.noise_rates.make_rates`), or one of :mod:`unflip.noise_rates`. "auto" is
        "channel", or "selective" if the samples have missing values or categories that only the
        `posterior` supports.
    weighting : {"auto", "rho", "pi", "pi_printed", "relabel"}, default="auto"
        "rho": Lemma 1 with the noise rates, every sample with its observed label at weight beta.
        "relabel": soft labels, every sample with each class k at weight P(true=k | x, observed
        label); samples are repeated for their likeliest classes, four at most. Both have the clean
        risk as their expectation, and soft labels lose no sample. "auto": "rho" for two classes, as
        in the paper, and "relabel" for more. "pi": through the inverse rates and back, which gives
        the same weights as "rho". "pi_printed": the paper's Lemma 2 as printed, wrong under
        class-conditional noise and kept for comparison. The last two are for two classes.
    cv : int or cross-validation splitter, default=None
        Cross-fitting of the posterior, so that no sample's probability comes from a model that saw
        its label. None: in-sample, as in the paper.
    random_state : int, RandomState instance or None, default=None
        Seed for the folds and for every part that has no seed of its own.
    pos_label : label, default=None
        The positive class of two, which `NoiseRates(positive=...)` in `noise_rates` refers to.
        None: the greater label. The order of `classes_`, and so the columns of
        `predict_proba`, does not depend on it.
    ignore : list of str, default=None
        Codes of findings that `fit` does not warn about. `noise_.findings` still contains them.

    Attributes
    ----------
    sample_weight_ : ndarray of shape (n_samples,)
        beta >= 0, one per training sample; not used with soft labels.
    posterior_ : posterior
        The fitted estimator of P(observed y | x).
    preprocessing_ : Pipeline or None
        The encoder of the features for the posterior; None if they were numeric, or the
        posterior is your own.
    rate_estimator_ : rate estimator or None
        The fitted rate estimator, with their `interval_`; None if the rates were given.
    estimator_ : classifier
        The fitted classifier.
    classes_ : ndarray of shape (n_classes,)
        The labels in sorted order; the positive class of two is the last.
    effective_sample_size_ : float
        (sum w)^2 / sum w^2 of the weights that the classifier was trained with.
    clipped_share_ : float
        Share of samples whose P(observed y | x) contradicts the rates, so that beta was clipped.

    Notes
    -----
    Labels must be flipped independently of x given the true class, and the rates are identifiable
    only if each class has anchor points. The `sample_weight` of `fit` multiplies beta.

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
    0.98...
    >>> print(clf.noise_rates_)
    NoiseRates(positive=0.414, negative=0.0831)
    """

    sample_weight_: Floats
    posterior_: BasePosterior
    preprocessing_: Any
    rate_estimator_: BaseRates | None
    estimator_: Any
    classes_: Array
    effective_sample_size_: float
    clipped_share_: float

    def __init__(
        self,
        estimator: Classifier | None = None,
        *,
        posterior: PosteriorLike = "auto",
        noise_rates: RatesLike = "auto",
        weighting: Literal["auto", "rho", "pi", "pi_printed", "relabel"] = "auto",
        cv: Any = None,
        random_state: RandomState = None,
        pos_label: Any = None,
        ignore: Sequence[str] | None = None,
    ) -> None:
        self.estimator = estimator
        self.posterior = posterior
        self.noise_rates = noise_rates
        self.weighting = weighting
        self.cv = cv
        self.random_state = random_state
        self.pos_label = pos_label
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
        """Estimate the posterior, the rates and the weights, then train the classifier.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)
            Samples, handed to the classifier as they are. A posterior that is given by name sees
            text, categories, dates and missing values as encoded by the first steps of a Pipeline
            (those that do not learn from labels), or else as by the command line.
        y : array-like of shape (n_samples,)
            Observed labels of two or more classes.
        sample_weight : array-like of shape (n_samples,), default=None
            Sample weights: how often each sample counts. They multiply beta.
        checked : CheckedLabels, default=None
            True labels of some samples. A model of the errors is fitted to those that were drawn
            with known probabilities, whatever the noise; all samples then train by soft labels.

        Returns
        -------
        self
            The fitted estimator.
        """
        return self._fit(X, y, sample_weight, checked)

    def _fit(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        checked: CheckedLabels | None = None,
        table: Any = None,
    ) -> Self:
        """Fit; `table` holds the columns that `X` was made of, to be searched for rules."""
        check_choice(self.weighting, ("auto", "rho", "pi", "pi_printed", "relabel"), "weighting")
        check_is_estimator(self._base_estimator())
        for_two = self._parts_for_two_classes()
        labels = check_labels(
            y, binary=bool(for_two), because=f" For two classes only: {', '.join(for_two)}."
        )
        classes, codes = labels
        check_enough_rows(X, codes)
        if has_checked(checked) and self.weighting not in ("auto", "relabel"):
            raise ValueError(
                f"weighting={self.weighting!r} keeps the observed labels, and checked samples "
                "train by soft labels: use weighting='auto' or 'relabel' with checked=."
            )
        weight = None if sample_weight is None else check_weights(sample_weight, codes.size)
        if weight is not None:
            check_class_weights(weight, codes, classes)
        positive_position(classes, self.pos_label)  # refused before any work is done
        noise_rates = of_classes(self.noise_rates, classes, self.pos_label)
        random_state = optional_generator(self.random_state)
        base = default_classifier(X) if self.estimator is None else self.estimator
        estimator: Any = clone_seeded(base, random_state)
        weight_parameters(estimator)  # refused before any work is done

        numbers, preprocessing = encode(
            self.posterior, noise_rates, X, classes.size, estimator=estimator
        )
        found = estimate_from_features(
            self.posterior,
            noise_rates,
            X,
            labels,
            weight,
            cv=self.cv,
            random_state=random_state,
            classifier=clone(self),
            numbers=numbers,
            table=table,
            checked=checked,
        )
        noise, beta = found.noise, self._weights(found, weight)
        totals = found.label_posterior.totals(weight, beta)
        if noise.counted is None:
            about_weights = diagnose_weights(totals, classes, noise.noise_rates)
            noise = replace(noise, findings=(*about_weights, *noise.findings))
        if self.pos_label is not None:  # shown by class, as `positive` might be either
            named = replace(noise.noise_rates, classes=tuple(classes.tolist()))
            noise = replace(noise, noise_rates=named)
        raise_or_warn(not_ignored(noise.findings, self.ignore))
        proba, own_weight = None, weight
        by_copies = self.weighting == "relabel" or (self.weighting == "auto" and classes.size > 2)
        if by_copies or noise.checked is not None:
            proba, own_weight = noise.soft_labels
        training = _Training(classes, labels.observed, beta, proba, own_weight)
        if self.estimator is None and preprocessing is not None:
            # by the steps of the default classifier, which has its last one left to train
            classifier = estimator.steps[-1][1]
            training.fit(classifier, numbers)
            estimator = Pipeline([("table", preprocessing), ("classifier", classifier)])
        else:
            training.fit(estimator, X)

        check_table(self, X, reset=True)
        self.classes_, self.noise_, self.estimator_ = classes, noise, estimator
        self.posterior_, self.preprocessing_ = found.posterior, preprocessing
        self.rate_estimator_ = found.rate_estimator if noise.counted is None else None
        self.sample_weight_, self._training = beta, training
        self.effective_sample_size_ = totals.effective_sample_size
        self.clipped_share_ = totals.clipped_share
        self._index = row_index(y, X)
        return self

    def to_frame(self) -> Any:
        """Return a dataframe with one row per training sample: label, P(mislabelled) and weight.

        It is a pandas dataframe with the index of `y` (or `X`), or a polars one if `y` is of
        polars, with the columns `given_label`, `mislabel_proba` and `sample_weight`.

        Returns
        -------
        dataframe
            In the order of the samples.
        """
        check_is_fitted(self)
        columns = {
            "given_label": self.noise_.observed,
            "mislabel_proba": self.mislabel_proba_,
            "sample_weight": self.sample_weight_,
        }
        return native_frame(columns, self._index)

    def _base_estimator(self) -> Any:
        return LogisticRegression() if self.estimator is None else self.estimator

    def _weights(self, found: FeatureFit, sample_weight: Floats | None) -> Floats:
        """Return beta as specified by `weighting`."""
        label_posterior = found.label_posterior
        if self.weighting in ("auto", "rho", "relabel"):
            return found.noise.weights
        noisy_prior = float(np.average(label_posterior.codes == 1, weights=sample_weight))
        inverse = label_posterior.noise.rates.inverse(noisy_prior=noisy_prior)
        observed, labels = label_posterior.observed_proba, label_posterior.labels
        if self.weighting == "pi":
            return importance_weights_from_inverse(observed, labels, inverse, noisy_prior)
        return printed_lemma_2_weights(observed, labels, inverse)

    def _parts_for_two_classes(self) -> list[str]:
        """Return the parameters, as they are set, that do not allow more than two classes."""
        parts = {
            "estimator": get_tags(self._base_estimator()).classifier_tags,
            "posterior": get_tags(as_posterior(self.posterior)).classifier_tags,
        }
        for_two = [name for name, tags in parts.items() if tags and not tags.multi_class]
        if for_two_classes(self.noise_rates):
            for_two.append("noise_rates")
        if self.weighting in ("pi", "pi_printed"):
            for_two.append("weighting")
        parameters = self.get_params(deep=False)
        return [f"{name}={parameters[name]}" for name in for_two]

    def _html_repr(self) -> str:
        return with_findings(super()._html_repr(), self)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = not self._parts_for_two_classes()
        inner = [get_tags(self._base_estimator()).input_tags]
        inner.append(get_tags(as_posterior(self.posterior)).input_tags)
        tags.input_tags.sparse = all(part.sparse for part in inner)
        by_name = isinstance(self.posterior, str)  # it sees encoded features without missing values
        takes_missing = self.estimator is None or inner[0].allow_nan
        tags.input_tags.allow_nan = takes_missing and (by_name or inner[1].allow_nan)
        return tags


class _Training(NamedTuple):
    """What the classifier is trained with: soft labels, or observed labels at weights beta."""

    classes: Array
    observed: Array
    beta: Floats
    # P(true = k | x, observed label); None where the observed labels are kept
    proba: Floats | None
    # how often each sample counts, whatever its label
    sample_weight: Floats | None

    def fit(self, estimator: Any, X: Any, rows: Any = slice(None)) -> Any:
        """Train in place on `X`, which holds the samples at these positions."""
        own = None if self.sample_weight is None else self.sample_weight[rows]
        if self.proba is not None:
            return fit_soft_labels(estimator, X, self.proba[rows], self.classes, row_weight=own)
        total = self.beta[rows] if own is None else self.beta[rows] * own
        return fit_weighted(estimator, X, self.observed[rows], total, row_weight=own)
