"""The one result: what is estimated about the noise in the labels of some samples."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from unflip._utils.simplex import ROUNDING, left_over, of_another_class
from unflip._utils.typing import Array, Codes, Floats
from unflip.diagnostics import Diagnostic, sentences, verdict_of
from unflip.noise import Noise, RatesInterval, as_transition_matrix

__all__ = ["CheckedEvidence", "ErrorRate", "NoiseEstimate"]

Bounds = tuple[float, float]

MOST_CLASSES = 10
"""Classes that a summary of an estimate lists."""


class ErrorRate(NamedTuple):
    """The share of wrong labels.

    Parameters
    ----------
    value : float
        The estimate: the weighted mean of P(mislabelled).
    interval : (low, high)
        95 % interval, if errors depend on nothing but the true class. It is the value itself where
        the rates were given, or by an estimator whose interval takes a bootstrap.
    range : (low, high)
        Bounds that also allow for errors that depend on the sample, as long as most labels are
        right wherever samples look alike.

    Examples
    --------
    >>> from unflip.estimate import ErrorRate
    >>> ErrorRate(value=0.12, interval=(0.08, 0.16), range=(0.0, 0.3)).value
    0.12
    """

    value: float
    interval: Bounds
    range: Bounds


@dataclass(frozen=True, eq=False)
class CheckedEvidence:
    """What checked samples contributed to an estimate.

    Parameters
    ----------
    error_rate : Estimate or None
        The error rate counted in the samples that were drawn at random; None if too few were.
    hypotheses : dict of str to float
        The weight of each model of the errors.
    before : NoiseEstimate
        The estimate without the checked samples.

    Examples
    --------
    >>> import numpy as np
    >>> from unflip import CheckedLabels, ImportanceReweightingClassifier
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(500, 2)), rng.integers(0, 2, 500)
    >>> X[:, 0] += 4 * y
    >>> rows = rng.choice(500, 20, replace=False)
    >>> checked = CheckedLabels(rows, y[rows], probability=20 / 500)
    >>> noise = ImportanceReweightingClassifier(random_state=0).fit(X, y, checked=checked).noise_
    >>> noise.checked.error_rate.value
    0.0
    """

    error_rate: Any
    hypotheses: dict[str, float]
    before: "NoiseEstimate"


@dataclass(frozen=True, eq=False, repr=False)
class NoiseEstimate:
    """What is estimated about the noise in the labels of some samples, from any evidence.

    The classifier, the audit and everything that reports on them read this object; none of them
    asks which evidence it comes from.

    Parameters
    ----------
    classes : ndarray of shape (n_classes,)
        The classes, sorted.
    codes : ndarray of shape (n_samples,)
        Positions of the observed labels among the classes.
    noise_rates : NoiseRates or TransitionMatrix
        NoiseRates for two classes, a TransitionMatrix for more.
    noisy_proba : ndarray of shape (n_samples, n_classes)
        P(observed = k | x).
    clean_proba : ndarray of shape (n_samples, n_classes)
        P(true = k | x).
    label_proba : ndarray of shape (n_samples, n_classes)
        P(true = k | everything known about the sample). A row sums to the probability that the
        sample belongs to one of the classes.
    error_range : (low, high)
        Bounds of the error rate that also allow for errors that depend on the sample.
    findings : tuple of Diagnostic, default=()
        What the estimate assumes, how it was made, and why it may be wrong: see `severity`.
    sample_weight : ndarray of shape (n_samples,), default=None
        How much each sample counts; None: once.
    instance_dependent : float, default=0.0
        Share of the labels that are wrong by noise that depends on the sample, as far as it is part
        of the error rate; the rest of the error rate is class-conditional noise and samples that
        belong to no class.
    estimated : bool, default=True
        Whether the rates were estimated; False if they were given.
    goodness_of_fit : ModelCheck, default=None
        Whether the noise model explains the labels; None where no noise model was fitted.
    error_interval : (low, high), default=None
        Interval of the error rate; None: that of the transition matrix.
    interval : callable, default=None
        Returns the :class:`~unflip.noise.RatesInterval` of the transition matrix; called once, when
        the interval is first asked for. None: there is none.
    checked : CheckedEvidence, default=None
        What checked samples contributed; None: none were checked.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from unflip import ImportanceReweightingClassifier, NoiseRates, flip_labels
    >>> X, y = make_blobs(500, centers=2, random_state=0)
    >>> y_noisy = flip_labels(y, NoiseRates(positive=0.2, negative=0.1), random_state=0)
    >>> noise = ImportanceReweightingClassifier(random_state=0).fit(X, y_noisy).noise_
    >>> bool(noise.error_rate.value == noise.mislabel_proba.mean())
    True
    """

    classes: Array
    codes: Codes
    noise_rates: Noise
    noisy_proba: Floats
    clean_proba: Floats
    label_proba: Floats
    error_range: Bounds
    findings: tuple[Diagnostic, ...] = ()
    sample_weight: Floats | None = None
    instance_dependent: float = 0.0
    estimated: bool = True
    goodness_of_fit: Any = None
    error_interval: Bounds | None = None
    interval: Callable[[], RatesInterval] | None = None
    checked: CheckedEvidence | None = None

    def __repr__(self) -> str:
        """Return a summary: the arrays are for programs."""
        rate = self.error_rate
        low, high = rate.interval
        least, most = rate.range
        flipped = 1 - np.diagonal(self.transition)
        shown = list(zip(self.classes.tolist(), flipped.tolist(), strict=True))[:MOST_CLASSES]
        lines = [
            f"NoiseEstimate of {self.codes.size:,} labels, {self.classes.size} classes",
            f"  wrong labels: {rate.value:.1%}, about {self.n_errors:,.0f}",
            f"    interval if errors depend on the true class alone: {low:.1%} to {high:.1%}",
            f"    range if they may depend on the sample: {least:.1%} to {most:.1%}",
            "  labelled otherwise, by true class:",
            *(f"    {label!s}: {share:.1%}" for label, share in shown),
        ]
        if self.classes.size > MOST_CLASSES:
            lines.append(f"    ... {self.classes.size - MOST_CLASSES} more")
        for severity in ("warning", "note"):
            codes = [one.code for one in self.findings if one.severity == severity]
            lines += [f"  {severity}s: {', '.join(codes)}"] if codes else []
        return "\n".join(lines)

    @property
    def observed(self) -> Array:
        """The observed labels."""
        return self.classes[self.codes]

    @property
    def transition(self) -> Floats:
        """T[i, j] = P(observed = classes[j] | true = classes[i])."""
        return as_transition_matrix(self.noise_rates).matrix

    @cached_property
    def transition_interval(self) -> RatesInterval | None:
        """95 % interval of every entry of T; None where there is none."""
        return None if self.interval is None else self.interval()

    @cached_property
    def mislabel_proba(self) -> Floats:
        """P(the observed label is wrong), one per sample."""
        return of_another_class(self.label_proba, self.codes)

    @cached_property
    def none_proba(self) -> Floats:
        """P(the sample belongs to none of the classes), one per sample."""
        return left_over(self.label_proba)

    @cached_property
    def error_rate(self) -> ErrorRate:
        """The share of wrong labels, with its interval and range."""
        value = float(np.average(self.mislabel_proba, weights=self.sample_weight))
        bounds, found = self.error_interval, self.transition_interval
        if bounds is None and found is not None:
            bounds = found.label_error_rate
        return ErrorRate(value, (value, value) if bounds is None else bounds, self.error_range)

    @property
    def verdict(self) -> Diagnostic:
        """How many labels are wrong, in one sentence (`str`)."""
        value, interval, _ = self.error_rate
        if self.counted is not None:
            low, high = self.counted.interval
            numbers = {"n_rows": self.counted.n_rows, "low": low, "high": high}
            return Diagnostic("checked_range", "note", numbers)
        return verdict_of(self.findings, value, interval, self.codes.size, estimated=self.estimated)

    @property
    def warnings(self) -> list[str]:
        """Why the error rate is probably off by more than its interval, or cannot be determined."""
        return sentences(self.findings, "warning")

    @property
    def counted(self) -> Any:
        """The error rate as checked samples count it; None where too few were drawn."""
        return None if self.checked is None else self.checked.error_rate

    @property
    def weights(self) -> Floats:
        """Importance weights beta = P(true = y | ...) / T[y, y], one per sample (Lemma 1)."""
        stays = np.diagonal(self.transition)[self.codes]
        own = self.label_proba[np.arange(self.codes.size), self.codes]
        return np.divide(own, stays, out=np.zeros(stays.size), where=stays > 0)

    @property
    def soft_labels(self) -> tuple[Floats, Floats | None]:
        """P(true = k) of each sample, if it is of some class, and how much the sample counts."""
        total = self.label_proba.sum(axis=1, keepdims=True)
        even = np.full_like(self.label_proba, 1 / self.classes.size)
        proba = np.divide(self.label_proba, total, out=even, where=total > ROUNDING)
        if not self.none_proba.any():
            return proba, self.sample_weight
        weight = 1.0 if self.sample_weight is None else self.sample_weight
        return proba, weight * (1 - self.none_proba)

    @property
    def n_errors(self) -> float:
        """Expected number of wrong labels, each counted by its sample weight."""
        total = self.codes.size if self.sample_weight is None else self.sample_weight.sum()
        return float(self.error_rate.value * total)

    @property
    def errors_by_label(self) -> Floats:
        """Expected number of wrong labels among those of each class."""
        weight = 1.0 if self.sample_weight is None else self.sample_weight
        wrong = weight * self.mislabel_proba
        return np.asarray(np.bincount(self.codes, wrong, minlength=self.classes.size), dtype=float)

    @property
    def suggested_label(self) -> Array:
        """The most likely true label of every sample."""
        return self.classes[self.label_proba.argmax(axis=1)]

    @property
    def unclear(self) -> Any:
        """Whether the label is probably wrong while no other label is probably right."""
        best = self.label_proba.argmax(axis=1)
        of_best = self.label_proba[np.arange(best.size), best]
        # 1/2: more probable than not
        return (self.mislabel_proba >= 0.5) & ((best == self.codes) | (of_best < 0.5))


def not_ignored(findings: Iterable[Diagnostic], ignore: Any) -> list[Diagnostic]:
    """Return the findings to tell: all but those whose codes a user has acknowledged.

    Returns
    -------
    list of Diagnostic
        An error is among them whatever its code.

    Examples
    --------
    >>> from unflip.diagnostics import Diagnostic
    >>> from unflip.estimate import not_ignored
    >>> not_ignored([Diagnostic("poorly_identified")], ["poorly_identified"])
    []
    """
    codes = () if ignore is None else ignore
    if isinstance(codes, str) or not all(isinstance(code, str) for code in codes):
        raise TypeError(
            f"ignore must be a list of codes of findings, such as ['poorly_identified'], got "
            f"{ignore!r}: noise_.findings has them as `code`."
        )
    return [one for one in findings if one.severity == "error" or one.code not in codes]


class HasNoiseEstimate:
    """The fitted attributes that the classifier and the audit read off their `noise_`.

    Attributes
    ----------
    noise_ : NoiseEstimate
        The estimate; the attributes below are views of it.
    noise_rates_ : NoiseRates or TransitionMatrix
        The rates used: NoiseRates for two classes, a TransitionMatrix for more.
    transition_matrix_ : ndarray of shape (n_classes, n_classes)
        The same as T[i, j] = P(observed=classes_[j] | true=classes_[i]).
    label_error_rate_ : float
        Share of wrong labels: the weighted mean of `mislabel_proba_`.
    label_error_interval_ : (low, high)
        95 % interval of the label error rate, if errors depend only on the true class.
    label_error_range_ : (low, high)
        Range of the label error rate if errors may also depend on the sample: labels alone cannot
        distinguish errors at hard samples from overlapping classes.
    n_errors_ : float
        Expected number of wrong labels: the sum of `mislabel_proba_`, weighted by `sample_weight`.
    mislabel_proba_ : ndarray of shape (n_samples,)
        P(true label != observed label | x, observed label) of the training samples.
    label_proba_ : ndarray of shape (n_samples, n_classes)
        P(true y | x, observed label), the label posterior.
    clean_proba_ : ndarray of shape (n_samples, n_classes)
        P(true y | x), the clean posterior.
    noisy_proba_ : ndarray of shape (n_samples, n_classes)
        P(observed y | x), cross-fitted as `cv` specifies.
    suggested_label_ : ndarray of shape (n_samples,)
        The most likely true label given x and the observed label.
    checked_ : CheckedEvidence or None
        What checked samples contributed: `error_rate`, an :class:`~unflip.checked.Estimate`,
        `hypotheses`, the weight of each noise hypothesis, and `before`, the estimate without the
        checked samples. None without checked samples.
    diagnostics_ : list of str
        The warnings of `fit`: why the result may not be reliable.
    """

    noise_: NoiseEstimate

    @property
    def noise_rates_(self) -> Noise:
        """NoiseRates for two classes, a TransitionMatrix for more."""
        return self.noise_.noise_rates

    @property
    def transition_matrix_(self) -> Floats:
        """T[i, j] = P(observed = classes_[j] | true = classes_[i])."""
        return self.noise_.transition

    @property
    def noisy_proba_(self) -> Floats:
        """P(observed = k | x), one row per sample."""
        return self.noise_.noisy_proba

    @property
    def clean_proba_(self) -> Floats:
        """P(true = k | x), one row per sample."""
        return self.noise_.clean_proba

    @property
    def label_proba_(self) -> Floats:
        """P(true = k | everything known about the sample), one row per sample."""
        return self.noise_.label_proba

    @property
    def mislabel_proba_(self) -> Floats:
        """P(the observed label is wrong), one per sample."""
        return self.noise_.mislabel_proba

    @property
    def suggested_label_(self) -> Array:
        """The most likely true label of every sample."""
        return self.noise_.suggested_label

    @property
    def n_errors_(self) -> float:
        """Expected number of wrong labels, each counted by its sample weight."""
        return self.noise_.n_errors

    @property
    def checked_(self) -> CheckedEvidence | None:
        """What checked samples contributed; None if none were given."""
        return self.noise_.checked

    @property
    def diagnostics_(self) -> list[str]:
        """Why the estimate is probably off or cannot be determined, in words, as `fit` warned."""
        return self.noise_.warnings

    @property
    def label_error_rate_(self) -> float:
        """Share of wrong labels: the weighted mean of `mislabel_proba_`."""
        return self.noise_.error_rate.value

    @property
    def label_error_interval_(self) -> Bounds:
        """(low, high) of the error rate if errors depend on nothing but the true class."""
        return self.noise_.error_rate.interval

    @property
    def label_error_range_(self) -> Bounds:
        """(low, high) of the error rate if errors may also depend on the sample."""
        return self.noise_.error_range
