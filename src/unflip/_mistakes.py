"""Which mistakes explain the labels, from held-out probabilities of any model.

P(noisy | x) alone does not tell overlap of classes from mistakes. Three explanations are fitted to
the labels, each with the model's probabilities recalibrated, and averaged by their evidence:

- *alike*: every label is wrong at one rate, and wrong labels are drawn by their shares;
- *by class*: T[i, j] = P(noisy=j | true=i), at rows as hard as the probabilities have them;
- *exact*: the same T, which is first taken out of the probabilities: class-conditional noise that
  the model has learnt. Where no row is sure of its class, T is also read off those that come
  nearest, and such a plateau taken for noise rather than for overlap.
"""

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import betaln, gammaln, softmax

from unflip._diagnostics import LabelNoiseWarning
from unflip._label_posterior import SURE
from unflip._simplex import likeliest_mixture, scaled_rows
from unflip._threads import one_blas_thread
from unflip._typing import Array, Floats
from unflip.noise_rates import SelectiveRates

FLOOR = 1e-6
"""Probabilities below are taken as this: single and half precision have zeros."""

FITTED = 250_000
"""Numbers that the explanations are fitted to: of more, rows are drawn."""

FEW_ROWS = 5000
"""So many of them decide where the fit of T starts."""

MANY_CLASSES = 100
"""Of more classes than this no full T is fitted, which has as many entries as there are pairs."""

SCALE_SPREAD, SHIFT_SPREAD = 0.5, 0.1
"""Prior standard deviations of log a and of b in softmax(a log p + b)."""

RATE_PRIOR = 0.2, 1.8
"""Beta prior of the rate of wrong labels: one in ten, as sure as two rows make it."""

LARGEST_RATE = 0.5
"""Prior rate of the rows of T; the fitted ones may be higher."""

SURE_SHARE = 0.01
"""A class has sure rows where this share of its rows surely is of it."""

NO_SURE_ROWS = 40.0
"""Nats of evidence against classes none of which has any: nearly all data have some."""

EXPLAINED_AT_ONCE = 1 << 20
"""Numbers that are computed at a time."""


@dataclass(frozen=True)
class Explanation:
    """P(true | x) = softmax(a log p + b), then y by T.

    Parameters
    ----------
    matrix : ndarray of shape (n_classes, n_classes)
        T, without zeros: its mean given the labels, as far as a Dirichlet prior goes.
    scale : float
        a: above 1 where the probabilities are too timid, or smeared by noise.
    shift : ndarray of shape (n_classes,)
        b.
    taken_out : ndarray of shape (n_classes, n_classes) or None
        The T that p = q T is solved by first, p then being q; None: p as given.
    evidence : float
        Logarithm of the probability of the labels, T integrated out (Cheeseman and Stutz).
    blame : float
        How much of the doubt that T leaves, because classes overlap, is taken for mistakes.
    """

    matrix: Floats
    scale: float
    shift: Floats
    taken_out: Floats | None = None
    evidence: float = 0.0
    blame: float = 0.0

    def beliefs(self, noisy_posterior: Floats) -> Floats:
        """P(true | x), before the label is seen."""
        if self.taken_out is not None:
            noisy_posterior = _taken_out(noisy_posterior, self.taken_out)
        return _softmax(self.scale * _logs(noisy_posterior) + self.shift)

    def label_posterior(self, beliefs: Floats, codes: Array) -> Floats:
        """P(true | x, given label)."""
        joint = beliefs * self.matrix.T[codes]
        joint *= ((1 - self.blame) / (joint @ np.ones(joint.shape[1])))[:, None]
        if self.blame:
            joint += self.blame * beliefs
        return joint


@dataclass(frozen=True)
class Applied:
    """What explanations say of rows.

    Parameters
    ----------
    clean_proba : ndarray of shape (n_samples, n_classes)
        P(true | x).
    proba : ndarray of shape (n_samples, n_classes)
        P(true | x, given label).
    mislabel_proba : ndarray of shape (n_samples,)
        P(the label is wrong | x, the label).
    given : ndarray of shape (n_samples,)
        P(noisy=given label | x), recalibrated.
    """

    clean_proba: Floats
    proba: Floats
    mislabel_proba: Floats
    given: Floats


@dataclass(frozen=True)
class Mistakes:
    """Explanations of the labels and how far each is to be believed.

    Parameters
    ----------
    explanations : tuple of Explanation
        Those that count.
    shares : ndarray of shape (n_explanations,)
        Their probabilities given the labels; they sum to one.
    expected : (low, high)
        The share of wrong labels if mistakes depend on the true class alone; low is 0 where most
        of the doubt may as well be overlap.
    """

    explanations: tuple[Explanation, ...]
    shares: Floats
    expected: tuple[float, float]

    @property
    def matrix(self) -> Floats:
        """T, averaged over the explanations."""
        return np.asarray(
            sum(s * e.matrix for s, e in zip(self.shares, self.explanations, strict=True))
        )

    def apply(self, noisy_posterior: Floats, codes: Array) -> "Applied":
        """Return what the explanations say of rows, those in single precision in the same.

        Parameters
        ----------
        noisy_posterior : ndarray of shape (n_samples, n_classes)
            P(noisy | x) of held-out rows.
        codes : ndarray of shape (n_samples,)
            Positions of the given labels among the classes.
        """
        with one_blas_thread():
            return self._applied(noisy_posterior, codes)

    def _applied(self, noisy_posterior: Floats, codes: Array) -> "Applied":
        n_rows, n_classes = noisy_posterior.shape
        kind = np.float32 if noisy_posterior.dtype == np.float32 else np.float64
        clean, given_label = (np.zeros((n_rows, n_classes), dtype=kind) for _ in range(2))
        wrong, noisy_own = np.zeros(n_rows), np.zeros(n_rows)
        step = max(1, EXPLAINED_AT_ONCE // n_classes)
        for start in range(0, n_rows, step):
            rows = slice(start, start + step)
            p = np.asarray(noisy_posterior[rows], dtype=np.float64)
            for share, one in zip(self.shares, self.explanations, strict=True):
                beliefs = one.beliefs(p)
                proba = one.label_posterior(beliefs, codes[rows])
                right = proba[np.arange(len(p)), codes[rows]]
                clean[rows] += share * beliefs
                given_label[rows] += share * proba
                wrong[rows] += share * (1 - right)
                noisy_own[rows] += share * np.einsum("ij,ij->i", beliefs, one.matrix.T[codes[rows]])
        return Applied(clean, given_label, np.clip(wrong, 0.0, 1.0), np.minimum(noisy_own, 1.0))


def fit_mistakes(
    noisy_posterior: Floats,
    codes: NDArray[np.intp],
    weight: Floats | None = None,
    random_state: Any = None,
) -> Mistakes:
    """Fit the explanations to the labels and weigh them by their evidence.

    Parameters
    ----------
    noisy_posterior : ndarray of shape (n_samples, n_classes)
        P(noisy | x) of held-out rows.
    codes : ndarray of shape (n_samples,)
        Positions of the given labels among the classes.
    weight : ndarray of shape (n_samples,), default=None
        How often each row counts; None: once.
    random_state : RandomState instance, default=None
        What draws the rows that are fitted to where there are many; None: always the same.
    """
    with one_blas_thread():
        return _fitted(noisy_posterior, codes, weight, random_state)


def _fitted(
    noisy_posterior: Floats, codes: NDArray[np.intp], weight: Floats | None, random_state: Any
) -> Mistakes:
    n_rows, n_classes = noisy_posterior.shape
    weight = np.ones(n_rows) if weight is None else weight
    most = max(FITTED // n_classes, 2000)
    if n_rows > most:
        generator = np.random.RandomState(0) if random_state is None else random_state
        drawn = np.sort(generator.choice(n_rows, most, replace=False))
        noisy_posterior, codes, weight = noisy_posterior[drawn], codes[drawn], weight[drawn]
    p = np.asarray(noisy_posterior, dtype=np.float64)
    sample = _FittedRows(_logs(p), codes, weight)
    found = [_alike(sample)]
    if n_classes <= MANY_CLASSES:
        rate = float(np.clip(1 - found[0].matrix[0, 0], 0.01, LARGEST_RATE))
        counted = Explanation(_counted(p, sample), 2.0, np.zeros(n_classes))
        few = sample.every(max(1, codes.size // FEW_ROWS))
        start = max(
            (_by_class(few, rate, start) for start in (found[0], counted)),
            key=lambda one: one.evidence,
        )
        by_class = _by_class(sample, rate, start)
        inverted = _FittedRows(_logs(_taken_out(p, by_class.matrix)), codes, weight)
        exact = _by_class(inverted, rate, by_class)
        found += [by_class, replace(exact, taken_out=by_class.matrix)]
    if _share_without_sure_rows(found[0].beliefs(p)):
        found += _plateaus(p, sample)
    return _weighed(found, p, sample)


def _weighed(found: list[Explanation], p: Floats, sample: "_FittedRows") -> Mistakes:
    """Return the explanations that count, with their shares and what doubt they leave."""
    doubts = [_share_without_sure_rows(one.beliefs(p)) for one in found]
    shares = softmax(
        [one.evidence - NO_SURE_ROWS * s for one, s in zip(found, doubts, strict=True)]
    )
    total = sample.weight.sum()
    kept, low, high = [], 0.0, 0.0
    for one, share in zip(found, shares, strict=True):
        if share < 1e-3:
            continue
        beliefs = one.beliefs(p)
        doubt = float(sample.weight @ (1 - beliefs[sample.own])) / total
        wrong = 1 - one.label_posterior(beliefs, sample.codes)[sample.own]
        expected = float(sample.weight @ wrong) / total
        explained = min(1.0, expected / max(doubt, 1e-12))
        # exact noise that explains most of the doubt leaves overlap; else what is left is shared
        is_exact = one.taken_out is not None and explained > 0.5
        blame = 0.0 if is_exact else (1 - explained) / 2
        kept.append((share, replace(one, blame=blame)))
        low += share * (expected if explained > 0.5 else 0.0)
        high += share * expected
    shares = np.array([share for share, _ in kept])
    return Mistakes(tuple(one for _, one in kept), shares / shares.sum(), (float(low), float(high)))


class _FittedRows:
    """Logarithms of probabilities, labels and weights that are fitted to."""

    def __init__(self, logs: Floats, codes: NDArray[np.intp], weight: Floats) -> None:
        self.logs, self.codes, self.weight = logs, codes, weight
        self.own = np.arange(codes.size), codes
        n_classes = logs.shape[1]
        counts = np.bincount(codes, weight, minlength=n_classes)
        self.shares = (counts + 1) / (counts.sum() + n_classes)
        self.order = np.argsort(codes, kind="stable")
        self.present, starts = np.unique(codes[self.order], return_index=True)
        self.starts = starts

    def every(self, step: int) -> "_FittedRows":
        """Return every so many rows."""
        return _FittedRows(self.logs[::step], self.codes[::step], self.weight[::step])

    def by_label(self, rows: Floats) -> Floats:
        """Return the sums of rows, by given label."""
        sums = np.zeros((self.logs.shape[1], rows.shape[1]))
        sums[self.present] = np.add.reduceat(rows[self.order], self.starts, axis=0)
        return sums

    def noise(self, rate: float) -> Floats:
        """Return T of one rate for all classes, wrong labels by their shares."""
        n_classes = self.shares.size
        others = np.tile(self.shares, (n_classes, 1))
        np.fill_diagonal(others, 0.0)
        others /= others.sum(axis=1, keepdims=True)
        return (1 - rate) * np.eye(n_classes) + rate * others


def _alike(sample: _FittedRows) -> Explanation:
    """Fit a, b and one rate."""
    others = sample.noise(1.0).T[sample.codes]
    total, n_classes = sample.weight.sum(), sample.shares.size

    def loss(at: Floats) -> tuple[float, Floats]:
        rate = 1 / (1 + np.exp(-at[1]))
        beliefs = _softmax(np.exp(at[0]) * sample.logs + at[2:])
        factors = rate * others
        factors[sample.own] = 1 - rate
        value, error, joint = _likelihood(beliefs, factors, sample)
        right = float(joint[sample.own].sum())
        a, b = RATE_PRIOR
        value -= a * np.log(rate) + b * np.log1p(-rate)
        slope = -((total - right + a) * (1 - rate) - (right + b) * rate)
        prior, at_scale, at_shift = _prior(at[0], at[2:])
        scale = np.exp(at[0]) * np.sum(error * sample.logs) + at_scale
        gradient = np.r_[scale, slope, error.sum(axis=0) + at_shift]
        return (value + prior) / total, gradient / total

    start = np.r_[0.3, -2.0, np.zeros(n_classes)]
    best = _minimum(loss, start)
    rate = float(np.clip(1 / (1 + np.exp(-best[1])), 1e-9, 1 - 1e-9))
    matrix = sample.noise(rate)
    beliefs = _softmax(np.exp(best[0]) * sample.logs + best[2:])
    value, _, joint = _likelihood(beliefs, matrix.T[sample.codes], sample)
    right = float(joint[sample.own].sum())
    wrong = total - right
    a, b = RATE_PRIOR
    integrated = betaln(a + wrong, b + right) - betaln(a, b)
    evidence = -value + integrated - wrong * np.log(rate) - right * np.log1p(-rate)
    return Explanation(matrix, float(np.exp(best[0])), best[2:], evidence=float(evidence))


def _by_class(sample: _FittedRows, rate: float, start: Explanation) -> Explanation:
    """Fit a, b and T, whose rows have a Dirichlet prior of as many rows as it has free entries."""
    n_classes, total = sample.shares.size, sample.weight.sum()
    prior_rows = (n_classes - 1) * sample.noise(rate)

    def unpacked(at: Floats) -> tuple[Floats, Floats]:
        matrix = _softmax(at[1 + n_classes :].reshape(n_classes, n_classes).copy())
        beliefs = _softmax(np.exp(at[0]) * sample.logs + at[1 : 1 + n_classes])
        return matrix, beliefs

    def loss(at: Floats) -> tuple[float, Floats]:
        matrix, beliefs = unpacked(at)
        value, error, joint = _likelihood(beliefs, matrix.T[sample.codes], sample)
        counts = sample.by_label(joint).T + prior_rows
        value -= float(np.sum(prior_rows * np.log(np.maximum(matrix, 1e-300))))
        at_rows = counts.sum(axis=1, keepdims=True) * matrix - counts
        prior, at_scale, at_shift = _prior(at[0], at[1 : 1 + n_classes])
        scale = np.exp(at[0]) * np.sum(error * sample.logs) + at_scale
        gradient = np.r_[scale, error.sum(axis=0) + at_shift, at_rows.ravel()]
        return (value + prior) / total, gradient / total

    first = np.r_[np.log(start.scale), start.shift, np.log(np.maximum(start.matrix, 1e-9)).ravel()]
    best = _minimum(loss, first)
    matrix, beliefs = unpacked(best)
    value, _, joint = _likelihood(beliefs, matrix.T[sample.codes], sample)
    counts = sample.by_label(joint).T
    integrated = np.sum(gammaln(prior_rows + counts) - gammaln(prior_rows)) - np.sum(
        gammaln((prior_rows + counts).sum(axis=1)) - gammaln(prior_rows.sum(axis=1))
    )
    evidence = -value + integrated - np.sum(counts * np.log(np.maximum(matrix, 1e-300)))
    mean = scaled_rows(counts + prior_rows)
    return Explanation(
        mean, float(np.exp(best[0])), best[1 : 1 + n_classes], evidence=float(evidence)
    )


def _plateaus(p: Floats, sample: _FittedRows) -> list[Explanation]:
    """Take out the noise that is read off the rows that come nearest to being sure."""
    selective = np.eye(sample.shares.size)
    among = np.searchsorted(sample.present, sample.codes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LabelNoiseWarning)  # evidence decides whether it counts
        rates = SelectiveRates().fit_posterior(p[:, sample.present], among, sample.weight)
    selective[np.ix_(sample.present, sample.present)] = rates.transition_matrix_
    rate = float(np.clip(sample.shares @ (1 - np.diag(selective)), 0.01, LARGEST_RATE))
    found = []
    for matrix in (sample.noise(rate), selective):
        logs = _logs(_taken_out(p, matrix))
        inverted = _FittedRows(logs, sample.codes, sample.weight)
        if matrix is not selective:
            one = _alike(inverted)
        elif sample.shares.size <= MANY_CLASSES:
            one = _by_class(inverted, rate, Explanation(matrix, 1.0, np.zeros(sample.shares.size)))
        else:
            continue
        found.append(replace(one, taken_out=matrix))
    return found


def _share_without_sure_rows(beliefs: Floats) -> float:
    """Return the share of the classes that have next to no row that surely is of them."""
    guess, sure = beliefs.argmax(axis=1), beliefs.max(axis=1) >= SURE
    rows = np.bincount(guess, minlength=beliefs.shape[1])
    sure_rows = np.bincount(guess[sure], minlength=beliefs.shape[1])
    return float(np.mean((rows > 0) & (sure_rows < SURE_SHARE * rows)))


def _likelihood(
    beliefs: Floats, factors: Floats, sample: _FittedRows
) -> tuple[float, Floats, Floats]:
    """Return minus the log-likelihood, its slope in the logits, and P(true | x, y) by weight."""
    joint = beliefs * factors
    given = np.maximum(joint @ np.ones(joint.shape[1]), 1e-300)
    joint *= (sample.weight / given)[:, None]
    error = beliefs * sample.weight[:, None] - joint
    return float(-sample.weight @ np.log(given)), error, joint


def _prior(log_scale: float, shift: Floats) -> tuple[float, float, Floats]:
    """Return minus the log-density of a and b, and its slopes."""
    value = log_scale**2 / (2 * SCALE_SPREAD**2) + float(shift @ shift) / (2 * SHIFT_SPREAD**2)
    return value, log_scale / SCALE_SPREAD**2, shift / SHIFT_SPREAD**2


def _minimum(loss: Any, start: Floats) -> Floats:
    found = minimize(
        loss, start, jac=True, method="L-BFGS-B", options={"maxiter": 150, "ftol": 1e-7}
    )
    return np.asarray(found.x)


def _counted(p: Floats, sample: _FittedRows) -> Floats:
    """Return T by counting guesses and labels."""
    n_classes = p.shape[1]
    counts = np.full((n_classes, n_classes), 1 / n_classes)
    np.add.at(counts, (p.argmax(axis=1), sample.codes), sample.weight)
    return scaled_rows(counts)


def _taken_out(p: Floats, matrix: Floats) -> Floats:
    """Return q of p = q T, nearly: what is left of the error, recalibration takes up."""
    return likeliest_mixture(scaled_rows(p), matrix, gap=1e-3, steps=5)


def _logs(p: Floats) -> Floats:
    logs = np.log(np.maximum(p, FLOOR))
    logs -= (logs @ np.full(p.shape[1], 1 / p.shape[1]))[:, None]
    return np.asarray(logs)


def _softmax(logits: Floats) -> Floats:
    """Make probabilities of logits, in their place; centred ones need no shift by the largest."""
    np.clip(logits, -600.0, 600.0, out=logits)
    np.exp(logits, out=logits)
    logits /= (logits @ np.ones(logits.shape[1]))[:, None]  # faster than a sum along rows
    return logits
