r"""Metrics on the true labels, estimated from noisy labels.

Let T[i, j] = P(observed=j | true=i). The row of T^-1 that belongs to a noisy label stands in for
the indicator of the true one,

    v = T^-1[noisy, :],    E[v_k | true, x] = 1 if k is the true class, else 0,

so that sum_k v_k loss(x, k) has the true label's loss as its expectation, whatever the loss. Every
score here is scikit-learn's, with v in the place of the true label. Means (accuracy, log-loss,
Brier) are unbiased; ratios of means (the others) are consistent, with a bias of order 1/n.

The prediction is fixed before the noisy labels are seen, and the rates are known from elsewhere.
A score may leave [0, 1]: clipping it would bias it.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, Literal, NamedTuple, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import t as student
from sklearn.base import BaseEstimator
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.metrics import make_scorer
from sklearn.utils import check_array
from sklearn.utils.metadata_routing import MetadataRequest

from unflip._utils.docs import documented_like
from unflip._utils.typing import Array, Floats, Rows
from unflip._utils.validation import (
    FLOATS,
    check_choice,
    check_classes,
    check_labels,
    check_probabilities,
    check_weights,
    plain_labels,
)
from unflip._utils.warning import warn
from unflip.checked import CheckedLabels
from unflip.noise import KnownRates, as_transition_matrix, of_classes, positive_position

__all__ = [
    "CleanScore",
    "CleanScorer",
    "clean_accuracy_score",
    "clean_balanced_accuracy_score",
    "clean_brier_score_loss",
    "clean_confusion_matrix",
    "clean_f1_score",
    "clean_log_loss",
    "clean_precision_score",
    "clean_recall_score",
    "clean_roc_auc_score",
    "make_clean_scorer",
]

MAX_CONDITION = 1e3
"""Maximum condition number of T; above it, the variance of the corrected scores is too large."""

F = TypeVar("F", bound=Callable[..., Any])


def _takes_noise_rates(function: F) -> F:
    """Accept `noise_rates` as another name of `rates`."""

    @wraps(function)
    def renamed(*args: Any, **options: Any) -> Any:
        if "noise_rates" in options:
            if "rates" in options:
                raise TypeError("rates and noise_rates are the same parameter: give one of them.")
            options["rates"] = options.pop("noise_rates")
        return function(*args, **options)

    return cast("F", renamed)


class CleanScore(float):
    """A score, which is a float, and its standard error.

    The standard error says how the score varies from one noisy test set to another: over samples
    and flips, the prediction and the rates being fixed (delta method).

    Parameters
    ----------
    value : float
        The score.
    standard_error : float
        Its standard error; nan for a single sample.

    Examples
    --------
    >>> from unflip import NoiseRates
    >>> from unflip.metrics import clean_accuracy_score
    >>> rates = NoiseRates(positive=0.3, negative=0.1)
    >>> score = clean_accuracy_score([1, 1, 0, 0, 1, 0], [1, 1, 1, 0, 0, 0], rates)
    >>> print(f"{score:.2f}, standard error {score.standard_error:.2f}")
    0.78, standard error 0.36
    """

    standard_error: float

    def __new__(cls, value: float, standard_error: float) -> "CleanScore":
        """Return `value` with its error."""
        score = super().__new__(cls, value)
        score.standard_error = float(standard_error)
        return score

    def __getnewargs__(self) -> Any:
        return float(self), self.standard_error


@_takes_noise_rates
def clean_accuracy_score(
    y_noisy: ArrayLike,
    y_pred: ArrayLike,
    rates: KnownRates | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    classes: ArrayLike | None = None,
    pos_label: Any = None,
    checked: CheckedLabels | None = None,
) -> CleanScore:
    """Return the mean of T^-1[noisy, predicted], unbiased for P(predicted = true).

    Parameters
    ----------
    y_noisy : array-like of shape (n_samples,)
        Observed labels.
    y_pred : array-like of shape (n_samples,)
        Predicted labels.
    rates : NoiseRates, TransitionMatrix or array-like of shape (n_classes, n_classes)
        The noise; T[i, j] = P(observed=j | true=i), classes sorted. `noise_rates` is an alias.
    sample_weight : array-like of shape (n_samples,), default=None
        Sample weights.
    classes : array-like of shape (n_classes,), default=None
        The classes, needed only if `y_noisy` may lack one of them.
    pos_label : label, default=None
        The positive class of two, which `rates.positive`, precision, recall, F1 and scores are
        about. None: the greater one.
    checked : CheckedLabels, default=None
        True labels of samples drawn at random, instead of `rates`: the score is estimated from
        these samples, whatever the noise.

    Returns
    -------
    CleanScore
        A float, with its standard error.

    Examples
    --------
    >>> from unflip import NoiseRates
    >>> from unflip.metrics import clean_accuracy_score
    >>> rates = NoiseRates(positive=0.3, negative=0.1)
    >>> print(f"{clean_accuracy_score([1, 1, 0, 0, 1, 0], [1, 1, 1, 0, 0, 0], rates):.3f}")
    0.778
    """
    if checked is not None:
        left_out = sample_weight, classes, pos_label
        return _checked_score(checked, y_noisy, y_pred, "accuracy", left_out)
    sample = _sample(y_noisy, rates, sample_weight, classes, pos_label)
    return _mean((sample.stand_in * _predicted(y_pred, sample)).sum(axis=1), sample)


@documented_like(clean_accuracy_score)
@_takes_noise_rates
def clean_balanced_accuracy_score(
    y_noisy: ArrayLike,
    y_pred: ArrayLike,
    rates: KnownRates | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    classes: ArrayLike | None = None,
    pos_label: Any = None,
    checked: CheckedLabels | None = None,
) -> CleanScore:
    """Return the mean over the classes of the clean recall, sum v_k h_k / sum v_k.

    v_k is the stand-in for "the true class is k", h_k is 1 where class k is predicted.
    """
    if checked is not None:
        left_out = sample_weight, classes, pos_label
        return _checked_score(checked, y_noisy, y_pred, "balanced_accuracy", left_out)
    sample = _sample(y_noisy, rates, sample_weight, classes, pos_label)
    predicted = _predicted(y_pred, sample)
    every_class = np.arange(sample.classes.size)
    return _mean_of_ratios(sample.stand_in * predicted, sample.stand_in, sample, every_class)


@documented_like(clean_accuracy_score)
@_takes_noise_rates
def clean_confusion_matrix(
    y_noisy: ArrayLike,
    y_pred: ArrayLike,
    rates: KnownRates,
    *,
    sample_weight: ArrayLike | None = None,
    classes: ArrayLike | None = None,
    pos_label: Any = None,
    normalize: Literal["true", "pred", "all"] | None = None,
) -> Floats:
    """Return C[i, j] = sum v_i h_j, unbiased for the number of samples of class i predicted as j.

    v_i is the stand-in for "the true class is i", h_j is 1 where class j is predicted; as a matrix,
    C = T^-T N with N the confusion matrix of the noisy labels. Entries may be negative where few
    samples were predicted so.

    Parameters
    ----------
    normalize : {"true", "pred", "all"}, default=None
        Divide by the sums over the true classes (rows), the predicted ones (columns), or by the
        total, as in scikit-learn.

    Returns
    -------
    ndarray of shape (n_classes, n_classes)
        Classes in sorted order.

    Examples
    --------
    >>> from unflip import NoiseRates
    >>> from unflip.metrics import clean_confusion_matrix
    >>> rates = NoiseRates(positive=0.3, negative=0.1)
    >>> clean_confusion_matrix([1, 1, 0, 0, 1, 0], [1, 1, 1, 0, 0, 0], rates).round(2)
    array([[1.83, 0.17],
           [1.17, 2.83]])
    """
    sample = _sample(y_noisy, rates, sample_weight, classes, pos_label)
    counts = sample.stand_in.T @ (sample.weight[:, None] * _predicted(y_pred, sample))
    if normalize is None:
        return counts
    check_choice(normalize, ("true", "pred", "all"), "normalize")
    axis = {"true": 1, "pred": 0, "all": None}[normalize]
    totals = counts.sum(axis=axis, keepdims=True)
    return np.divide(counts, totals, out=np.zeros_like(counts), where=totals > 0)


@documented_like(clean_accuracy_score)
@_takes_noise_rates
def clean_precision_score(
    y_noisy: ArrayLike,
    y_pred: ArrayLike,
    rates: KnownRates,
    *,
    sample_weight: ArrayLike | None = None,
    classes: ArrayLike | None = None,
    pos_label: Any = None,
) -> CleanScore:
    """Return sum v_k h_k / sum h_k: for the positive class of two, or the macro average.

    v_k is the stand-in for "the true class is k", h_k is 1 where class k is predicted. It is 0,
    with a warning, where class k is never predicted.
    """
    sample = _sample(y_noisy, rates, sample_weight, classes, pos_label)
    predicted = _predicted(y_pred, sample)
    averaged = _averaged_classes(sample)
    never = averaged[sample.weight @ predicted[:, averaged] == 0]
    if never.size:
        warn(
            f"y_pred never predicts {sample.classes[never].tolist()}, where precision is undefined "
            "and counts as 0.",
            UndefinedMetricWarning,
        )
    hits = sample.stand_in * predicted
    # 0 over a positive number is 0, as it is without noise
    predicted[:, never] = 1.0
    return _mean_of_ratios(hits, predicted, sample, averaged)


@documented_like(clean_accuracy_score)
@_takes_noise_rates
def clean_recall_score(
    y_noisy: ArrayLike,
    y_pred: ArrayLike,
    rates: KnownRates,
    *,
    sample_weight: ArrayLike | None = None,
    classes: ArrayLike | None = None,
    pos_label: Any = None,
) -> CleanScore:
    """Return sum v_k h_k / sum v_k: for the positive class of two, or the macro average.

    v_k is the stand-in for "the true class is k", h_k is 1 where class k is predicted.
    """
    sample = _sample(y_noisy, rates, sample_weight, classes, pos_label)
    hits = sample.stand_in * _predicted(y_pred, sample)
    return _mean_of_ratios(hits, sample.stand_in, sample, _averaged_classes(sample))


@documented_like(clean_accuracy_score)
@_takes_noise_rates
def clean_f1_score(
    y_noisy: ArrayLike,
    y_pred: ArrayLike,
    rates: KnownRates | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    classes: ArrayLike | None = None,
    pos_label: Any = None,
    checked: CheckedLabels | None = None,
) -> CleanScore:
    """Return 2 sum v_k h_k / sum (v_k + h_k): for the positive class of two, or the macro average.

    v_k is the stand-in for "the true class is k", h_k is 1 where class k is predicted.
    """
    if checked is not None:
        left_out = sample_weight, classes, pos_label
        return _checked_score(checked, y_noisy, y_pred, "f1", left_out)
    sample = _sample(y_noisy, rates, sample_weight, classes, pos_label)
    predicted = _predicted(y_pred, sample)
    return _mean_of_ratios(
        2 * sample.stand_in * predicted,
        sample.stand_in + predicted,
        sample,
        _averaged_classes(sample),
    )


@documented_like(clean_accuracy_score)
@_takes_noise_rates
def clean_roc_auc_score(
    y_noisy: ArrayLike,
    y_score: ArrayLike,
    rates: KnownRates,
    *,
    sample_weight: ArrayLike | None = None,
    classes: ArrayLike | None = None,
    pos_label: Any = None,
) -> CleanScore:
    r"""Return (AUC_noisy - (pi_pos + pi_neg) / 2) / (1 - pi_pos - pi_neg), for two classes.

    The slope is 1 - pi_pos - pi_neg = (1 - rho_pos - rho_neg) p (1-p) / (q (1-q)), with p and q
    the clean and the noisy share of positives. The same value is the share of well ordered pairs,

        sum_{i != j} v_i (1 - v_j) [s_i > s_j] / sum_{i != j} v_i (1 - v_j),

    v standing in for "the true class is positive" and ties counting one half. Only pairs of
    different samples estimate p (1-p) without bias, so that is how it is computed; putting the
    share p into p (1-p) instead differs by a term of order 1/n, and overshoots.

    Parameters
    ----------
    y_score : array-like of shape (n_samples,)
        Scores that rise with the probability of the positive class.
    """
    sample = _sample(y_noisy, rates, sample_weight, classes, pos_label)
    if sample.classes.size != 2:
        raise ValueError(
            f"The area under the ROC curve is for two classes, got {sample.classes.size}: "
            f"{sample.classes.tolist()}. Score one class against the others, or use "
            "clean_log_loss or clean_balanced_accuracy_score."
        )
    scores = _column(y_score, sample, "y_score")
    share = sample.weight / sample.weight.sum()
    at = sample.positive
    negative, positive = sample.stand_in[:, 1 - at], sample.stand_in[:, at]
    shares = _positive_means(sample.stand_in, sample, np.array([1 - at, at]))
    # mass of the other class that is ordered well with each sample
    negatives_below = _mass_below(scores, share * negative)
    positives_above = shares[1] - _mass_below(scores, share * positive)
    with_itself = share**2 @ (positive * negative)
    ordered = (share * positive) @ negatives_below - with_itself / 2
    pairs = shares[0] * shares[1] - with_itself
    value = ordered / pairs
    influence = positive * (negatives_below - value * shares[0])
    influence += negative * (positives_above - value * shares[1])
    return _score(value, influence / pairs, sample)


@documented_like(clean_accuracy_score)
@_takes_noise_rates
def clean_log_loss(
    y_noisy: ArrayLike,
    y_proba: ArrayLike,
    rates: KnownRates,
    *,
    sample_weight: ArrayLike | None = None,
    classes: ArrayLike | None = None,
    pos_label: Any = None,
) -> CleanScore:
    """Return the mean of -sum_k v_k log P(k | x), unbiased for the log-loss on true labels.

    v_k is the stand-in for "the true class is k". As in scikit-learn, a probability of 0 counts as
    the smallest relative step of its float type.

    Parameters
    ----------
    y_proba : array-like of shape (n_samples, n_classes) or (n_samples,)
        Predicted probabilities, one column per class in sorted order; for two classes those of the
        positive class are enough.
    """
    sample = _sample(y_noisy, rates, sample_weight, classes, pos_label)
    proba = _probabilities(y_proba, sample)
    step = np.finfo(proba.dtype).eps
    return _mean(-(sample.stand_in * np.log(proba.clip(step, 1 - step))).sum(axis=1), sample)


@documented_like(clean_log_loss, clean_accuracy_score)
@_takes_noise_rates
def clean_brier_score_loss(
    y_noisy: ArrayLike,
    y_proba: ArrayLike,
    rates: KnownRates,
    *,
    sample_weight: ArrayLike | None = None,
    classes: ArrayLike | None = None,
    pos_label: Any = None,
) -> CleanScore:
    """Return the mean of sum_k v_k sum_j (P(j | x) - [j = k])^2, half of it for two classes.

    v_k is the stand-in for "the true class is k". Unbiased for the Brier score on true labels,
    scaled as in scikit-learn: for two classes it is the mean of (P(positive | x) - [true])^2.
    """
    sample = _sample(y_noisy, rates, sample_weight, classes, pos_label)
    proba = _probabilities(y_proba, sample)
    # sum_j (p_j - [j = k])^2 = 1 - 2 p_k + sum_j p_j^2
    loss = 1 - 2 * proba + (proba**2).sum(axis=1, keepdims=True)
    return _mean((sample.stand_in * loss).sum(axis=1) / (2 if proba.shape[1] == 2 else 1), sample)


@documented_like(clean_accuracy_score)
@_takes_noise_rates
def make_clean_scorer(
    metric: str | Callable[..., CleanScore],
    rates: KnownRates,
    *,
    classes: ArrayLike | None = None,
    pos_label: Any = None,
) -> "CleanScorer":
    """Return a scorer on the true labels for `GridSearchCV`, `cross_val_score` and the like.

    score(estimator, X, y_noisy) is the estimator's clean score. Higher is better: losses have their
    sign changed.

    Parameters
    ----------
    metric : str or function
        "accuracy", "balanced_accuracy", "precision", "recall", "f1", "roc_auc", "neg_log_loss",
        "neg_brier_score", or one of this module's functions.
    classes : array-like of shape (n_classes,), default=None
        The classes. None: the estimator's own, which lack a class that its training samples lack.

    Returns
    -------
    scorer : CleanScorer

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import cross_val_score
    >>> from unflip import NoiseRates, flip_labels
    >>> from unflip.metrics import make_clean_scorer
    >>> X, y = make_classification(2000, class_sep=2.0, random_state=0)
    >>> rates = NoiseRates(positive=0.2, negative=0.2)
    >>> y_noisy = flip_labels(y, rates, random_state=0)
    >>> scorer = make_clean_scorer("accuracy", rates)
    >>> model = LogisticRegression()
    >>> print(f"{cross_val_score(model, X, y_noisy).mean():.2f} noisy accuracy")
    0.79 noisy accuracy
    >>> print(f"{cross_val_score(model, X, y_noisy, scoring=scorer).mean():.2f} clean accuracy")
    0.98 clean accuracy
    """
    name = metric
    if callable(metric):
        by_function = {entry.function: known for known, entry in _METRICS.items()}
        name = by_function.get(metric, metric)
    if not isinstance(name, str) or name not in _METRICS:
        raise ValueError(
            f"metric={metric!r} is not known. Give one of {sorted(_METRICS)}, or one of the "
            "clean_* functions of unflip.metrics."
        )
    known = None if classes is None else check_classes(classes)
    _inverse_transition(rates, None if known is None else known.size)
    return CleanScorer(name, rates, known, pos_label)


@dataclass(eq=False)
class CleanScorer:
    """A scorer made by :func:`make_clean_scorer`: scorer(estimator, X, y_noisy).

    Parameters
    ----------
    metric : str
        The score's name.
    rates : NoiseRates, TransitionMatrix or array-like of shape (n_classes, n_classes)
        The noise.
    classes : ndarray of shape (n_classes,) or None
        The classes; None: the estimator's own.
    pos_label : label or None
        The positive class of two; None: the greater one.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> from unflip import NoiseRates, flip_labels
    >>> from unflip.metrics import make_clean_scorer
    >>> X, y = make_classification(2000, class_sep=2.0, random_state=0)
    >>> rates = NoiseRates(positive=0.3, negative=0.1)
    >>> y_noisy = flip_labels(y, rates, random_state=0)
    >>> scorer = make_clean_scorer("accuracy", rates)
    >>> print(f"{scorer(LogisticRegression().fit(X, y), X, y_noisy):.2f}")
    1.00
    """

    metric: str
    rates: KnownRates
    classes: Array | None = None
    pos_label: Any = None
    _weight_request: Any = field(default=None, repr=False)

    def __call__(
        self,
        estimator: BaseEstimator,
        X: Rows,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """Return the clean score of `estimator` on samples `X` with observed labels `y`."""
        entry = _METRICS[self.metric]
        classes = self.classes
        if classes is None:
            classes = getattr(estimator, "classes_", None)
        if classes is not None:
            _inverse_transition(self.rates, len(classes))  # its error is clearer than the labels'
        # scikit-learn reads pos_label to choose the column of the probabilities
        named = {} if self.pos_label is None else {"pos_label": self.pos_label}
        scorer = make_scorer(
            entry.function,
            response_method=entry.response_method,
            greater_is_better=not self.metric.startswith("neg_"),
            rates=self.rates,
            classes=classes,
            **named,
        )
        weight = {} if sample_weight is None else {"sample_weight": sample_weight}
        return float(scorer(estimator, X, y, **weight))

    def set_score_request(self, *, sample_weight: bool | str | None) -> "CleanScorer":
        """Request `sample_weight` or not, if metadata routing is enabled.

        Returns
        -------
        self
            The scorer.
        """
        self._weight_request = sample_weight
        return self

    def get_metadata_routing(self) -> MetadataRequest:
        """Return the metadata that the scorer requests.

        Returns
        -------
        MetadataRequest
            In the form of scikit-learn.
        """
        request = MetadataRequest(owner=self)
        request.score.add_request(param="sample_weight", alias=self._weight_request)
        return request

    def _accept_sample_weight(self) -> bool:
        # scikit-learn calls this for multimetric scoring without metadata routing
        return True


class _Metric(NamedTuple):
    """A score's function and the estimator's methods that it may be computed from."""

    function: Callable[..., CleanScore]
    response_method: str | tuple[str, ...]


_METRICS = {
    "accuracy": _Metric(clean_accuracy_score, "predict"),
    "balanced_accuracy": _Metric(clean_balanced_accuracy_score, "predict"),
    "precision": _Metric(clean_precision_score, "predict"),
    "recall": _Metric(clean_recall_score, "predict"),
    "f1": _Metric(clean_f1_score, "predict"),
    "roc_auc": _Metric(clean_roc_auc_score, ("decision_function", "predict_proba")),
    "neg_log_loss": _Metric(clean_log_loss, "predict_proba"),
    "neg_brier_score": _Metric(clean_brier_score_loss, "predict_proba"),
}


class _Sample(NamedTuple):
    """Observed labels: `stand_in[i, k]` estimates "the true class of sample i is k"."""

    classes: Array
    stand_in: Floats
    weight: Floats
    # position of the positive class
    positive: int


def _sample(
    y_noisy: ArrayLike,
    rates: KnownRates | None,
    sample_weight: ArrayLike | None,
    classes: ArrayLike | None,
    pos_label: Any,
) -> _Sample:
    if rates is None:
        raise TypeError(
            "rates must be NoiseRates, a TransitionMatrix or an array, got None. Accuracy, "
            "balanced accuracy and F1 accept checked samples instead: checked=."
        )
    known, codes = check_labels(y_noisy, classes=classes, binary=False)
    positive = positive_position(known, pos_label)
    stand_in = _inverse_transition(of_classes(rates, known, pos_label), known.size)[codes]
    return _Sample(known, stand_in, check_weights(sample_weight, codes.size), positive)


def _checked_score(
    checked: CheckedLabels,
    y_noisy: ArrayLike,
    y_pred: ArrayLike,
    metric: str,
    left_out: tuple[Any, Any, Any],
) -> CleanScore:
    """Return a score estimated from checked samples."""
    if any(option is not None for option in left_out):
        raise ValueError(
            "the score of checked samples takes no sample_weight, classes or pos_label: leave "
            "them out."
        )
    found = checked.score(y_noisy, y_pred, metric)
    return CleanScore(found.value, found.half_width / student.ppf(0.975, max(found.n_rows - 1, 1)))


def _inverse_transition(rates: KnownRates, n_classes: int | None) -> Floats:
    """Return T^-1; raise an error if T is too ill-conditioned."""
    transition = as_transition_matrix(rates, n_classes).matrix
    condition = np.linalg.cond(transition)
    if condition > MAX_CONDITION:
        raise ValueError(
            f"with rates {rates} the observed labels carry too little information: "
            f"the condition number of the transition matrix is {condition:.3g}, and up to "
            f"{MAX_CONDITION:g} is usable. Estimate the rates again, or get better labels."
        )
    return np.linalg.inv(transition).astype(np.float64)


def _predicted(y_pred: ArrayLike, sample: _Sample) -> Floats:
    """Return the predictions as one column of zeros and ones per class."""
    labels = plain_labels(y_pred, "y_pred")
    _check_length(labels.size, sample, "y_pred")
    position = {label: k for k, label in enumerate(sample.classes.tolist())}
    distinct, inverse = np.unique(labels, return_inverse=True)
    strangers = [label for label in distinct.tolist() if label not in position]
    if strangers:
        raise ValueError(
            f"y_pred holds {strangers[0]!r}, which is not one of the classes {list(position)}. "
            "Predict labels of the classes of y_noisy, or name all in classes=."
        )
    codes = np.array([position[label] for label in distinct.tolist()])[inverse]
    return np.eye(len(position))[codes]


def _probabilities(y_proba: ArrayLike, sample: _Sample) -> NDArray[np.floating[Any]]:
    """Return the predicted probabilities, one column per class."""
    proba = check_array(y_proba, ensure_2d=False, dtype=FLOATS, input_name="y_proba")
    check_probabilities(proba, "y_proba")
    _check_length(proba.shape[0], sample, "y_proba")
    n_classes = sample.classes.size
    if n_classes == 2 and (proba.ndim == 1 or proba.shape[1:] == (1,)):
        positive = proba.reshape(-1)
        proba = np.column_stack([1 - positive, positive])
        if sample.positive == 0:
            proba = proba[:, ::-1]
    if proba.shape[1:] != (n_classes,):
        raise ValueError(
            f"y_proba has shape {proba.shape}, expected {(proba.shape[0], n_classes)}: a column "
            f"for each of the classes {sample.classes.tolist()}."
        )
    sums = proba.sum(axis=1)
    wrong = ~np.isclose(sums, 1, rtol=np.sqrt(np.finfo(proba.dtype).eps))
    if wrong.any():
        raise ValueError(
            f"y_proba sums to {sums[wrong][0]:.6g} in row {np.flatnonzero(wrong)[0]}, and "
            "probabilities sum to 1. Normalise each row, or use clean_roc_auc_score on scores."
        )
    return proba


def _column(values: ArrayLike, sample: _Sample, name: str) -> Floats:
    """Return one finite number per sample."""
    column = check_array(values, ensure_2d=False, dtype=np.float64, input_name=name)
    if column.ndim != 1:
        raise ValueError(
            f"{name} has shape {column.shape}, expected ({len(sample.stand_in)},): one score per "
            "sample, such as predict_proba(X)[:, 1]."
        )
    _check_length(column.size, sample, name)
    return column


def _check_length(length: int, sample: _Sample, name: str) -> None:
    if length != len(sample.stand_in):
        raise ValueError(
            f"{name} has {length} values and y_noisy {len(sample.stand_in)}: give one per label."
        )


def _averaged_classes(sample: _Sample) -> NDArray[np.intp]:
    """Return the classes that precision, recall and F1 are about: all, or the positive of two."""
    n_classes = sample.classes.size
    return np.arange(n_classes) if n_classes > 2 else np.array([sample.positive])


def _mean(values: Floats, sample: _Sample) -> CleanScore:
    value = np.average(values, weights=sample.weight)
    return _score(value, values - value, sample)


def _mean_of_ratios(
    numerators: Floats, denominators: Floats, sample: _Sample, averaged: NDArray[np.intp]
) -> CleanScore:
    """Return the mean over classes of sum a_k / sum b_k; it varies as (a_k - ratio b_k) / E b_k."""
    a, b = numerators[:, averaged], denominators[:, averaged]
    expected = _positive_means(denominators, sample, averaged)
    ratios = np.average(a, axis=0, weights=sample.weight) / expected
    return _score(ratios.mean(), ((a - ratios * b) / expected).mean(axis=1), sample)


def _positive_means(values: Floats, sample: _Sample, averaged: NDArray[np.intp]) -> Floats:
    """Return the means of the classes' columns, which are to be divided by."""
    means = np.average(values[:, averaged], axis=0, weights=sample.weight)
    if (means < 1e-12).any():
        worst = averaged[np.argmin(means)]
        share = np.average(sample.stand_in[:, worst], weights=sample.weight)
        raise ValueError(
            "the score is undefined: by these rates and labels the share of true "
            f"{sample.classes.tolist()[worst]!r} is {share:.3g}, which is not above 0. Use more "
            "samples (larger folds), lower rates, or a score that does not divide by it, such as "
            "accuracy."
        )
    return means


def _score(value: float, influence: Floats, sample: _Sample) -> CleanScore:
    """Return the score with the error of a weighted mean of `influence`, which averages to 0."""
    share = sample.weight / sample.weight.sum()
    n_rows = np.count_nonzero(share)
    correction = n_rows / (n_rows - 1) if n_rows > 1 else np.nan
    return CleanScore(value, np.sqrt(correction * (share**2 @ influence**2)))


def _mass_below(scores: Floats, mass: Floats) -> Floats:
    """Return for each sample the mass of lower scores, and half the mass of equal ones."""
    _, rank = np.unique(scores, return_inverse=True)
    tied = np.bincount(rank, weights=mass)
    return (np.cumsum(tied) - tied / 2)[rank]
