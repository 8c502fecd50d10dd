"""The numbers that the displays draw, as plain arrays."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.metrics import check_scoring
from sklearn.utils.validation import check_is_fitted, column_or_1d

from unflip._utils.docs import documented_like
from unflip._utils.typing import Array, Floats
from unflip._utils.validation import (
    check_choice,
    check_count,
    check_labels,
    check_numbers,
    check_probability_per_class,
    check_probability_per_row,
    check_weights,
    plain_labels,
)
from unflip._utils.warning import silenced
from unflip.noise import RatesInterval, as_transition_matrix, has_names
from unflip.weights import effective_sample_size

MIN_INFORMATION = 0.05
"""Minimum `information_left` of the rates that a sensitivity analysis tries."""


def check_has(estimator: Any, attribute: str) -> None:
    """Raise an error unless an estimator is fitted and has an attribute."""
    check_is_fitted(estimator)
    if not hasattr(estimator, attribute):
        raise TypeError(
            f"{type(estimator).__name__} has no {attribute}. Give a fitted "
            "ImportanceReweightingClassifier, or pass the numbers themselves to from_predictions."
        )


@dataclass(frozen=True)
class PosteriorHistogram:
    """Histogram of P(noisy=k | x), and its values at anchor points.

    Parameters
    ----------
    classes : ndarray of shape (n_classes,)
        All classes, sorted.
    pos_label : label
        The class k.
    edges : ndarray of shape (n_bins + 1,)
        Edges of the bins of P(noisy=k | x).
    counts : ndarray of shape (2, n_bins)
        Samples per bin: with other labels, and labelled k.
    anchor_values : ndarray of shape (n_classes,)
        T[i, k], the value of P(noisy=k | x) where x surely belongs to class i: for two classes
        (rho_neg, 1 - rho_pos).
    interval : ndarray of shape (2, n_classes) or None
        Lower and upper ends of the intervals of these values.

    Examples
    --------
    >>> from unflip import NoiseRates
    >>> from unflip.inspection import posterior_histogram
    >>> proba = [[0.8, 0.2], [0.7, 0.3], [0.3, 0.7]]
    >>> found = posterior_histogram(proba, ["no", "no", "yes"], NoiseRates(0.2, 0.1), bins=2)
    >>> found.counts
    array([[2, 0],
           [0, 1]])
    """

    classes: Array
    pos_label: Any
    edges: Floats
    counts: NDArray[np.intp]
    anchor_values: Floats
    interval: Floats | None


def posterior_histogram(
    noisy_posterior: ArrayLike,
    y: ArrayLike,
    rates: Any,
    *,
    interval: RatesInterval | None = None,
    pos_label: Any = None,
    bins: int = 30,
    classes: ArrayLike | None = None,
) -> PosteriorHistogram:
    """Return the histogram of P(noisy=k | x) by observed label; its range is that of T[:, k].

    Parameters
    ----------
    noisy_posterior : array-like of shape (n_samples,) or (n_samples, n_classes)
        P(noisy=k | x), or P(noisy | x) of all classes.
    y : array-like of shape (n_samples,)
        Noisy labels.
    rates : NoiseRates, TransitionMatrix or array-like of shape (n_classes, n_classes)
        The rates, which give the values at anchor points.
    interval : RatesInterval, default=None
        The ends of T's entries, such as `interval_` of a rate estimator.
    pos_label : label, default=None
        The class k, against all others. None: the last of two classes; required for more.
    bins : int, default=30
        Number of bins in [0, 1].
    classes : array-like of shape (n_classes,), default=None
        The classes; needed only if `y` may lack some of them.

    Returns
    -------
    PosteriorHistogram
        Counts, edges and values at anchor points.

    Examples
    --------
    >>> from unflip import NoiseRates
    >>> from unflip.inspection import posterior_histogram
    >>> histogram = posterior_histogram(
    ...     [0.1, 0.2, 0.7, 0.7], [0, 1, 0, 1], NoiseRates(positive=0.3, negative=0.1), bins=2
    ... )
    >>> histogram.counts
    array([[1, 1],
           [1, 1]])
    >>> histogram.anchor_values
    array([0.1, 0.7])
    """
    known, codes = check_labels(y, classes=classes, binary=False)
    check_count(bins, "bins", least=1)
    matrix = as_transition_matrix(rates, known.size).matrix
    k = _position(known, pos_label)
    if np.ndim(noisy_posterior) == 2:
        every = check_probability_per_class(
            noisy_posterior, codes.size, known.size, "noisy_posterior"
        )
        posterior = every[:, k]
    else:
        posterior = check_probability_per_row(noisy_posterior, codes.size, "noisy_posterior")
    edges = np.linspace(0, 1, bins + 1)
    counts = [np.histogram(posterior[codes != k], edges)[0]]
    counts.append(np.histogram(posterior[codes == k], edges)[0])
    ends = None if interval is None else _ends_of_column(interval, known.size, k)
    return PosteriorHistogram(
        known, known.item(k), edges, np.array(counts), matrix[:, k].copy(), ends
    )


@dataclass(frozen=True)
class WeightHistogram:
    """Histogram of the weights beta of each class between 0 and 1 / T[k, k].

    Parameters
    ----------
    classes : ndarray of shape (n_classes,)
        All classes, sorted.
    edges : ndarray of shape (n_classes, n_bins + 1)
        Edges of the bins of beta, for each class up to its bound.
    shares : ndarray of shape (n_classes, n_bins)
        Share of the samples labelled k in each bin.
    bounds : ndarray of shape (n_classes,)
        1 / T[k, k], for two classes 1 / (1 - rho): the maximum weight of a sample labelled k.
    label_share : ndarray of shape (n_classes,)
        Share of the samples labelled k.
    weight_share : ndarray of shape (n_classes,)
        Share of the total weight on these samples: an estimate of the true share of class k.
    n_samples : int
        Number of samples.
    effective_sample_size : float
        (sum w)^2 / sum w^2.

    Examples
    --------
    >>> from unflip import NoiseRates
    >>> from unflip.inspection import weight_histogram
    >>> labels = ["no", "no", "yes", "yes"]
    >>> found = weight_histogram([1.1, 0.9, 0.2, 1.2], labels, NoiseRates(0.2, 0.1))
    >>> round(found.effective_sample_size, 2)
    3.3
    """

    classes: Array
    edges: Floats
    shares: Floats
    bounds: Floats
    label_share: Floats
    weight_share: Floats
    n_samples: int
    effective_sample_size: float


@documented_like(posterior_histogram)
def weight_histogram(
    weights: ArrayLike,
    y: ArrayLike,
    rates: Any,
    *,
    bins: int = 40,
    sample_weight: ArrayLike | None = None,
    classes: ArrayLike | None = None,
) -> WeightHistogram:
    """Return the histogram of beta by observed label, in [0, 1 / T[k, k]].

    Parameters
    ----------
    weights : array-like of shape (n_samples,)
        beta, one per sample.
    rates : NoiseRates, TransitionMatrix or array-like of shape (n_classes, n_classes)
        The rates that the weights were computed with.
    bins : int, default=40
        Number of bins.
    sample_weight : array-like of shape (n_samples,), default=None
        Weight of each sample, as in `fit`.

    Returns
    -------
    WeightHistogram
        Counts, edges and bounds.
    """
    known, codes = check_labels(y, classes=classes, binary=False)
    check_count(bins, "bins", least=1)
    beta = check_weights(weights, codes.size)
    row_weight = check_weights(sample_weight, codes.size)
    stays = np.diag(as_transition_matrix(rates, known.size).matrix)
    bounds = np.full(known.size, np.inf)
    np.divide(1.0, stays, out=bounds, where=stays > 0)
    largest = np.array([beta[codes == k].max(initial=0.0) for k in range(known.size)])
    # the published weights of Lemma 2 may exceed their bounds
    tops = np.maximum(largest, np.where(np.isfinite(bounds), bounds, 0.0))
    edges = np.linspace(0, np.where(tops > 0, tops, 1.0), bins + 1, axis=1)
    counts = np.array(
        [
            np.histogram(beta[codes == k], edges[k], weights=row_weight[codes == k])[0]
            for k in range(known.size)
        ]
    )
    of_labels = np.bincount(codes, row_weight, minlength=known.size)
    of_weights = np.bincount(codes, row_weight * beta, minlength=known.size)
    return WeightHistogram(
        known,
        edges,
        counts / np.where(of_labels > 0, of_labels, 1)[:, None],
        bounds,
        of_labels / of_labels.sum(),
        of_weights / of_weights.sum(),
        codes.size,
        effective_sample_size(row_weight * beta),
    )


@dataclass(frozen=True)
class MislabelCalibration:
    """Observed and predicted label error rates per bin, without empty bins.

    Parameters
    ----------
    edges : ndarray of shape (n_kept, 2)
        Edges of each bin of P(mislabelled).
    predicted : ndarray of shape (n_kept,)
        Mean P(mislabelled) in the bin.
    observed : ndarray of shape (n_kept,)
        Label error rate in the bin.
    interval : ndarray of shape (2, n_kept)
        95 % Wilson interval of that share.
    counts : ndarray of shape (n_kept,)
        Number of samples in the bin.
    calibration_error : float
        Expected calibration error: the mean over samples of abs(observed - predicted) in their bin.

    Examples
    --------
    >>> from unflip.inspection import mislabel_calibration
    >>> found = mislabel_calibration([0, 0, 1, 1], [0.1, 0.1, 0.8, 1.0], n_bins=2)
    >>> found.counts
    array([2, 2])
    """

    edges: Floats
    predicted: Floats
    observed: Floats
    interval: Floats
    counts: NDArray[np.intp]
    calibration_error: float


def mislabel_calibration(
    wrong: ArrayLike, proba: ArrayLike, *, n_bins: int = 10, strategy: str = "uniform"
) -> MislabelCalibration:
    """Return ECE = sum_b n_b / n abs(mean wrong - mean proba), and its bins b.

    Parameters
    ----------
    wrong : array-like of shape (n_samples,)
        Whether each label is known to be wrong.
    proba : array-like of shape (n_samples,)
        P(the label is wrong).
    n_bins : int, default=10
        Number of bins.
    strategy : {"uniform", "quantile"}, default="uniform"
        Bins of equal width, or with equal numbers of samples.

    Returns
    -------
    MislabelCalibration
        The error and the bins.

    Examples
    --------
    >>> from unflip.inspection import mislabel_calibration
    >>> curve = mislabel_calibration([0, 0, 1, 1], [0.1, 0.1, 0.8, 1.0], n_bins=2)
    >>> curve.predicted, curve.observed
    (array([0.1, 0.9]), array([0., 1.]))
    >>> round(curve.calibration_error, 3)
    0.1
    """
    check_count(n_bins, "n_bins", least=1)
    check_choice(strategy, ("uniform", "quantile"), "strategy")
    given = np.asarray(column_or_1d(wrong))
    if given.size == 0 or not np.isin(given, (0, 1)).all():
        raise ValueError(
            "wrong must hold True or False (or 1 and 0) for each label. From labels, pass "
            "y_noisy != y_true."
        )
    truth = given.astype(float)
    probability = check_probability_per_row(proba, truth.size, "proba")
    edges = np.linspace(0, 1, n_bins + 1)
    if strategy == "quantile":
        edges = np.quantile(probability, edges)
    bins = np.searchsorted(edges[1:-1], probability)
    counts = np.bincount(bins, minlength=n_bins)
    kept = counts > 0
    n = counts[kept]
    predicted = np.bincount(bins, probability, n_bins)[kept] / n
    observed = np.bincount(bins, truth, n_bins)[kept] / n
    error = float(n @ np.abs(observed - predicted) / truth.size)
    return MislabelCalibration(
        np.column_stack([edges[:-1], edges[1:]])[kept],
        predicted,
        observed,
        _wilson(observed, n),
        n,
        error,
    )


@dataclass(frozen=True)
class RateCurve:
    """Effect of the flip rate of one class, with the other rates fixed.

    Parameters
    ----------
    label : label
        The class.
    name : str
        Name of the rate: by its class, or "rho_pos" or "rho_neg" for the labels 0 and 1.
    estimate : float
        The estimated rate: one of `rates`.
    rates : ndarray of shape (n_points,)
        The rates tried, in ascending order.
    scores : ndarray of shape (n_points,)
        Score of the classifier trained with each rate; NaN if `fit` raises an error.
    effective_sample_sizes : ndarray of shape (n_points,)
        (sum w)^2 / sum w^2 of its weights.
    mean_weights : ndarray of shape (n_points,)
        Mean of beta: 1 if posterior and rates are consistent.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from unflip import ImportanceReweightingClassifier, NoiseRates
    >>> from unflip.inspection import rate_sensitivity
    >>> X, y = make_classification(300, flip_y=0.2, random_state=0)
    >>> clf = ImportanceReweightingClassifier(noise_rates=NoiseRates(0.1, 0.1)).fit(X, y)
    >>> curves = rate_sensitivity(clf, X[:200], y[:200], X[200:], y[200:])
    >>> [(curve.name, curve.estimate) for curve in curves]
    [('rho_pos', 0.1), ('rho_neg', 0.1)]
    """

    label: Any
    name: str
    estimate: float
    rates: Floats
    scores: Floats
    effective_sample_sizes: Floats
    mean_weights: Floats


def rate_sensitivity(
    estimator: Any,
    X: Any,
    y: ArrayLike,
    X_test: Any,
    y_test: ArrayLike,
    *,
    scoring: Any = None,
    grid: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> list[RateCurve]:
    """Retrain with the rate of one class at a time set to estimate + grid.

    With more than two classes, the flips of a class keep the estimated proportions.

    Parameters
    ----------
    estimator : ImportanceReweightingClassifier
        A fitted classifier, which is not changed. If it is random, give it a `random_state`;
        otherwise the curves contain its randomness.
    X, y : array-like
        The samples and noisy labels of the fit.
    X_test, y_test : array-like
        The samples and labels to score on.
    scoring : str, callable or None, default=None
        A scikit-learn scorer; None: accuracy. If the test labels are noisy too, use
        :func:`~unflip.metrics.make_clean_scorer`.
    grid : array-like, default=None
        Values to add to each estimated rate; None: seven from -0.15 to 0.15. Rates below 0 become
        0, and rates that leave no information in the labels are left out.
    labels : array-like, default=None
        The classes whose rates to vary; None: all.
    sample_weight : array-like of shape (n_samples,), default=None
        As in `fit`.

    Returns
    -------
    curves : list of RateCurve
        One per class; for two classes, the positive class first.
    """
    check_has(estimator, "sample_weight_")
    offsets = np.linspace(-0.15, 0.15, 7) if grid is None else check_numbers(grid, "grid")
    if offsets.ndim != 1 or not np.isfinite(offsets).all():
        raise ValueError(f"grid must be a list of finite numbers, got {grid!r}.")
    classes, estimate = estimator.classes_, estimator.transition_matrix_
    given, true = plain_labels(y), plain_labels(y_test, "y_test")
    scorer = check_scoring(estimator, scoring)

    def outcome(matrix: Floats) -> tuple[float, float, float]:
        noise = as_transition_matrix(matrix)
        rates = noise.rates if noise.n_classes == 2 else noise
        trained = clone(estimator).set_params(noise_rates=rates)
        with silenced():  # a sensitivity analysis refits at rates that contradict the data
            trained.fit(X, given, sample_weight=sample_weight)
        beta = trained.sample_weight_
        return (
            float(scorer(trained, X_test, true)),
            trained.effective_sample_size_,
            float(np.average(beta, weights=check_weights(sample_weight, beta.size))),
        )

    at_estimate = outcome(estimate)
    varied = [1, 0] if classes.size == 2 else list(range(classes.size))
    if labels is not None:
        varied = [_position(classes, label) for label in plain_labels(labels, "labels").tolist()]
    return [_curve(outcome, at_estimate, estimate, classes, k, offsets) for k in varied]


def _curve(
    outcome: Any,
    at_estimate: tuple[float, float, float],
    estimate: Floats,
    classes: Array,
    k: int,
    offsets: Array,
) -> RateCurve:
    own = float(np.delete(estimate[k], k).sum())
    candidates = np.clip(own + offsets[offsets != 0], 0.0, 1.0)
    rates, values = [own], [at_estimate]
    for rate in np.unique(candidates[candidates != own]).tolist():
        matrix = _with_flip_rate(estimate, k, rate)
        if np.linalg.eigvals(matrix).real.min() < MIN_INFORMATION:
            continue
        try:
            value = outcome(matrix)
        except ValueError:  # the fit at the estimate succeeded, so this rate is invalid
            value = (np.nan, np.nan, np.nan)
        rates.append(rate)
        values.append(value)
    order = np.argsort(rates)
    scores, sizes, means = np.array(values)[order].T
    label = classes.item(k)
    name = f"flip rate of {label}"
    if classes.size == 2 and not has_names(classes):
        name = ("rho_neg", "rho_pos")[k]
    return RateCurve(label, name, own, np.array(rates)[order], scores, sizes, means)


def _with_flip_rate(matrix: Floats, k: int, rate: float) -> Floats:
    """Return T with the flip rate of row k set to `rate`, in the same proportions."""
    varied = np.array(matrix)
    away = varied[k].copy()
    away[k] = 0.0
    if not away.any():  # there are no proportions to keep
        away[:] = 1.0
        away[k] = 0.0
    varied[k] = rate * away / away.sum()
    varied[k, k] = 1 - rate
    return varied


def _position(classes: Array, label: Any) -> int:
    """Return the index of a class; None is the last of two."""
    if label is None and classes.size == 2:
        return 1
    is_label = label is not None and np.ndim(label) == 0
    found = np.flatnonzero(classes == label) if is_label else np.array([])
    if found.size != 1:
        raise ValueError(
            f"pos_label={label!r} is not one of the classes {classes.tolist()}: name the class "
            "that is compared with all others."
        )
    return int(found[0])


def _ends_of_column(interval: RatesInterval, n_classes: int, k: int) -> Floats:
    """Return the lower and the upper ends of T[:, k]."""
    try:
        ends, found = np.array([interval.low, interval.high]), interval.n_classes
    except AttributeError:
        raise TypeError(
            "interval must be a RatesInterval, such as interval_ of a rate estimator or "
            f"RatesInterval.from_pairs((low, high), (low, high)), got {interval!r}."
        ) from None
    if found != n_classes:
        raise ValueError(f"interval has {found} classes, expected {n_classes}: {interval}.")
    return ends[:, :, k]


def _wilson(share: Floats, n: Array, z: float = 1.96) -> Floats:
    """Return the Wilson interval of a share of n rows."""
    centre = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    return np.clip([centre - half, centre + half], 0.0, 1.0)
