"""One explanation of labels by held-out probabilities: how sure rows are, which mistakes, junk.

P(true | x) = softmax(a log p + b); y follows by T, but for the rows that are of *no class*, whose
labels are drawn by their shares whatever p is. How likely that is, rises with how flat P(true | x)
is: a row between two classes rules the others out, and one that is of none rules out nothing.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import betaln, gammaln

from unflip._utils.simplex import scaled_rows
from unflip._utils.typing import Array, Floats

FLOOR = 1e-9
"""Probabilities below are taken as this: single and half precision have zeros."""

SCALE_SPREAD, SHIFT_SPREAD = 0.5, 0.1
"""Prior standard deviations of log a and of b: wide beside what labels say of a, tight of b."""

RATE_PRIOR = 0.2, 1.8
"""Beta prior of the rate of wrong labels: one in ten, as sure as two rows make it."""

USUAL_SHARE = 0.75
"""Rows that are no flatter than so many of them are of some class: junk is among the rest."""

LEAST_BLAME = 0.01
"""Of the doubt, so much is blamed on labels always: rows that T rules out are still ranked."""

MODEL_ERROR = 0.007
"""Nats per row that junk is found by in labels that have none, because no model is quite right: as
many at most in `benchmarks.probability_worlds`."""

STEPS, SMALLEST_START = 3, 1e-3
"""Of EM, by which noise is taken out of probabilities, from where all are at least this."""

FEWEST_CLASSES = 3
"""With fewer, what is between the classes and what is none of them look alike."""


@dataclass(frozen=True)
class Explanation:
    """P(true | x) = softmax(a log p + b), then y by T, or by the labels' shares where x is junk."""

    # T, without zeros: its mean given the labels, as far as a Dirichlet prior goes.
    matrix: Floats
    # a: above 1 where the probabilities are too timid, or smeared by noise.
    scale: float
    shift: Floats
    # The T that p = q T is solved by first, p then being q; None: p as given.
    taken_out: Floats | None = None
    # Logarithm of the probability of the labels, T integrated out (Cheeseman and Stutz).
    evidence: float = 0.0
    # How much of the doubt that T leaves, because classes overlap, is taken for mistakes.
    blame: float = 0.0
    # Odds of being of no class, at a row half as flat as the labels' shares; see `_none`.
    junk: float = 0.0
    # The flatness up to which rows are of some class.
    usual: float = 0.0
    # Whether T has one rate for all classes.
    is_alike: bool = False

    def logs(self, noisy_posterior: Floats) -> Floats:
        """Return log p, centred."""
        if self.taken_out is not None:
            noisy_posterior = taken_out(noisy_posterior, self.taken_out)
        return centred_logs(noisy_posterior)

    def beliefs(self, logs: Floats, shares: Floats) -> tuple[Floats, Floats | None]:
        """Return P(true | x), of rows of some class, and P(of no class | x), None where it is 0."""
        beliefs, flat = _beliefs(self.scale, self.shift, logs, shares)
        return beliefs, _none(self.junk, _excess(flat, self.usual)) if self.junk else None

    def sharpened(self, beliefs: Floats) -> Floats:
        """Return softmax(2 a log p), up to its scale: what rows are if doubt is the labels' doing.

        Each row then has one true label, of which labels and model are two witnesses; the shift b
        brings in how frequent labels are, mistakes included, and is left out.
        """
        return beliefs * beliefs * np.exp(-2 * self.shift)

    def label_posterior(self, beliefs: Floats, codes: Array) -> tuple[Floats, Floats]:
        """Return P(true | x, given label) of rows of some class, and P(given label | x) there.

        What is blamed on labels is P(true | x), as if the label said nothing: where mistakes are
        rows that look like another class, or like none, to people and model alike. The surer it is
        that labels are to blame, the more of it is sharpened.
        """
        joint = beliefs * self.matrix.T[codes]
        given = row_sums(joint)
        blamed = self.blame * (1 - LEAST_BLAME)
        joint *= ((1 - LEAST_BLAME - blamed) / given)[:, None]
        if blamed:
            sharp = self.sharpened(beliefs)
            joint += (self.blame * blamed / row_sums(sharp))[:, None] * sharp
        joint += (LEAST_BLAME + (1 - self.blame) * blamed) * beliefs
        return joint, given


class FittedRows:
    """Logarithms of probabilities, labels and weights that are fitted to."""

    def __init__(self, logs: Floats, codes: NDArray[np.intp], weight: Floats) -> None:
        self.logs, self.codes, self.weight = logs, codes, weight
        self.own = np.arange(codes.size), codes
        n_classes = logs.shape[1]
        counts = np.bincount(codes, weight, minlength=n_classes)
        self.shares = (counts + 1) / (counts.sum() + n_classes)
        self.order = np.argsort(codes, kind="stable")
        self.present, self.starts = np.unique(codes[self.order], return_index=True)

    def every(self, step: int) -> "FittedRows":
        """Return every so many rows."""
        return FittedRows(self.logs[::step], self.codes[::step], self.weight[::step])

    def weighted(self, weight: Floats) -> "FittedRows":
        """Return the same rows with other weights."""
        return FittedRows(self.logs, self.codes, weight)

    def with_logs(self, logs: Floats) -> "FittedRows":
        """Return the same labels with other logarithms."""
        return FittedRows(logs, self.codes, self.weight)

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

    def flatness(self, scale: float, shift: Floats) -> Floats:
        """Return the geometric mean of P(true | x) / shares of each row: 1 where they are equal."""
        return _beliefs(scale, shift, self.logs, self.shares)[1]


def fit_alike(
    sample: FittedRows, start: Explanation | None = None, *, junk: bool = False
) -> Explanation:
    """Fit a, b, one rate of wrong labels for all classes, and junk where asked for."""
    others = sample.noise(1.0).T[sample.codes]
    total, n_classes = sample.weight.sum(), sample.shares.size
    a, b = RATE_PRIOR
    model = _Rows(sample, start if junk else None)

    def loss(at: Floats) -> tuple[float, Floats]:
        rate = _logistic(at[1])
        factors = rate * others
        factors[sample.own] = 1 - rate
        value, gradient, joint = model.loss(at[0], at[2 : 2 + n_classes], factors, at[-1])
        right, all_rows = float(joint[sample.own].sum()), float(joint.sum())
        value -= a * np.log(rate) + b * np.log1p(-rate)
        slope = -((all_rows - right + a) * (1 - rate) - (right + b) * rate)
        return value / total, np.insert(gradient, 1, slope) / total

    first = np.r_[0.3, -2.0, np.zeros(n_classes)]
    if start is not None:
        first = np.r_[np.log(start.scale), _logit(1 - start.matrix[0, 0]), start.shift]
    best = _minimum(loss, model.started(first))
    rate = float(np.clip(_logistic(best[1]), 1e-9, 1 - 1e-9))
    matrix = sample.noise(rate)
    value, _, joint = model.loss(best[0], best[2 : 2 + n_classes], matrix.T[sample.codes], best[-1])
    right = float(joint[sample.own].sum())
    wrong = float(joint.sum()) - right
    integrated = betaln(a + wrong, b + right) - betaln(a, b)
    evidence = -value + integrated - wrong * np.log(rate) - right * np.log1p(-rate)
    found = model.explanation(matrix, best[0], best[2 : 2 + n_classes], best[-1], evidence)
    return replace(found, is_alike=True)


def fit_again(
    sample: FittedRows, one: Explanation, *, junk: bool, rate: float = RATE_PRIOR[0] / 2
) -> Explanation:
    """Fit an explanation of the same kind, from where another fit ended."""
    if one.is_alike:
        found = fit_alike(sample, one, junk=junk)
    else:
        found = fit_by_class(sample, rate, one, junk=junk)
    return replace(found, taken_out=one.taken_out, blame=one.blame)


def fit_by_class(
    sample: FittedRows, rate: float, start: Explanation, *, junk: bool = False
) -> Explanation:
    """Fit a, b, T, whose rows have a Dirichlet prior of as many rows as it has free entries."""
    n_classes, total = sample.shares.size, sample.weight.sum()
    prior_rows = (n_classes - 1) * sample.noise(rate)
    model = _Rows(sample, start if junk else None)
    middle = slice(1, 1 + n_classes)
    entries = slice(1 + n_classes, 1 + n_classes + n_classes**2)

    def transition(at: Floats) -> Floats:
        return _softmax(at[entries].reshape(n_classes, n_classes).copy())[0]

    def loss(at: Floats) -> tuple[float, Floats]:
        matrix = transition(at)
        value, gradient, joint = model.loss(at[0], at[middle], matrix.T[sample.codes], at[-1])
        counts = sample.by_label(joint).T + prior_rows
        value -= float(np.sum(prior_rows * np.log(np.maximum(matrix, 1e-300))))
        at_rows = counts.sum(axis=1, keepdims=True) * matrix - counts
        whole = np.r_[gradient[: 1 + n_classes], at_rows.ravel(), gradient[1 + n_classes :]]
        return value / total, whole / total

    first = np.r_[np.log(start.scale), start.shift, np.log(np.maximum(start.matrix, 1e-9)).ravel()]
    best = _minimum(loss, model.started(first))
    matrix = transition(best)
    value, _, joint = model.loss(best[0], best[middle], matrix.T[sample.codes], best[-1])
    counts = sample.by_label(joint).T
    integrated = np.sum(gammaln(prior_rows + counts) - gammaln(prior_rows)) - np.sum(
        gammaln((prior_rows + counts).sum(axis=1)) - gammaln(prior_rows.sum(axis=1))
    )
    evidence = -value + integrated - np.sum(counts * np.log(np.maximum(matrix, 1e-300)))
    mean = scaled_rows(counts + prior_rows)
    return model.explanation(mean, best[0], best[middle], best[-1], evidence)


class _Rows:
    """The likelihood of rows, with junk where there is a fit whose flat rows may be."""

    def __init__(self, sample: FittedRows, junk_from: Explanation | None) -> None:
        self.sample, self.usual, self.excess = sample, 0.0, None
        if junk_from is not None:
            flat = sample.flatness(junk_from.scale, junk_from.shift)
            self.usual = float(
                np.quantile(flat, USUAL_SHARE, weights=sample.weight, method="inverted_cdf")
            )
            self.excess = _excess(flat, self.usual)

    def started(self, first: Floats) -> Floats:
        """Return the start with that of junk at its end, even odds."""
        return first if self.excess is None else np.r_[first, 0.0]

    def loss(
        self, log_scale: float, shift: Floats, factors: Floats, log_junk: float
    ) -> tuple[float, Floats, Floats]:
        """Return minus the log-posterior, its slopes, and P(true, of a class | x, y) by weight."""
        sample, scale = self.sample, np.exp(log_scale)
        beliefs, _ = _beliefs(scale, shift, sample.logs, sample.shares)
        joint = beliefs * factors
        by_class = np.maximum(row_sums(joint), 1e-300)
        given, junk = by_class, np.zeros(0)
        real = sample.weight
        if self.excess is not None:
            none = _none(_odds(log_junk), self.excess)
            at_random = sample.shares[sample.codes]
            given = (1 - none) * by_class + none * at_random
            real = sample.weight * (1 - none) * by_class / given
            slope = sample.weight @ (none * (1 - none) * (at_random - by_class) / given)
            junk = np.array([-slope])
        joint *= (real / by_class)[:, None]
        error = beliefs * real[:, None] - joint
        value = float(-sample.weight @ np.log(given))
        value += log_scale**2 / (2 * SCALE_SPREAD**2) + float(shift @ shift) / (2 * SHIFT_SPREAD**2)
        at_scale = scale * np.vdot(error, sample.logs) + log_scale / SCALE_SPREAD**2
        at_shift = error.sum(axis=0) + shift / SHIFT_SPREAD**2
        return value, np.r_[at_scale, at_shift, junk], joint

    def explanation(
        self, matrix: Floats, log_scale: float, shift: Floats, log_junk: float, evidence: float
    ) -> Explanation:
        scale = float(np.exp(log_scale))
        if self.excess is None:
            return Explanation(matrix, scale, shift, evidence=float(evidence))
        # Schwarz's price of two numbers more, the rate and the usual flatness, and what a model
        # that is not quite right finds, the more so where all rows are flat
        total = float(self.sample.weight.sum())
        price = np.log(total) + MODEL_ERROR * total / (1 - self.usual) ** 2
        return Explanation(
            matrix,
            scale,
            shift,
            evidence=float(evidence) - price,
            junk=_odds(log_junk),
            usual=self.usual,
        )


def _beliefs(scale: float, shift: Floats, logs: Floats, shares: Floats) -> tuple[Floats, Floats]:
    """Return softmax(a log p + b), and how flat it is."""
    beliefs, total = _softmax(scale * logs + shift)
    # log p is centred: the geometric mean over classes has no more to it
    return beliefs, np.exp(shift.mean() - np.log(shares).mean()) / total


def _none(odds: float, excess: Floats) -> Floats:
    """Return P(of no class | x), of odds c e / (1 - e), where e is how unusually flat a row is."""
    return odds * excess / (1 - excess + odds * excess)


def _excess(flat: Floats, usual: float) -> Floats:
    """Return e, from 0 where a row is as flat as most to nearly 1, where the labels' shares are."""
    return np.clip((flat - usual) / (1 - min(usual, 0.99)), 0.0, 0.99)


def _minimum(loss: Callable[[Floats], tuple[float, Floats]], start: Floats) -> Floats:
    found = minimize(
        loss, start, jac=True, method="L-BFGS-B", options={"maxiter": 150, "ftol": 1e-7}
    )
    return np.asarray(found.x)


def taken_out(p: Floats, matrix: Floats) -> Floats:
    """Return q of p = q T, nearly, by a few steps of EM for the likeliest mixture.

    What is left of the error, recalibration takes up.
    """
    q = np.maximum(p @ np.linalg.inv(matrix), SMALLEST_START)
    q /= row_sums(q)[:, None]
    for _ in range(STEPS):
        q *= (p / np.maximum(q @ matrix, FLOOR)) @ matrix.T  # T may rule a label out
    return np.asarray(q)


def centred_logs(p: Floats) -> Floats:
    """Return log p less its mean over the classes."""
    logs = np.log(np.maximum(p, FLOOR))
    logs -= (row_sums(logs) / p.shape[1])[:, None]
    return np.asarray(logs)


def row_sums(values: Floats) -> Floats:
    """Return the sums of rows; a product is faster than a sum along rows."""
    return np.asarray(values @ np.ones(values.shape[1], dtype=values.dtype))


def _softmax(logits: Floats) -> tuple[Floats, Floats]:
    """Make probabilities of logits, in their place; centred ones need no shift by the largest."""
    np.clip(logits, -600.0, 600.0, out=logits)
    np.exp(logits, out=logits)
    total = row_sums(logits)
    logits /= total[:, None]
    return logits, total


def _logistic(value: float) -> float:
    return float(1 / (1 + np.exp(-np.clip(value, -30.0, 30.0))))


def _odds(log_odds: float) -> float:
    return float(np.exp(np.clip(log_odds, -30.0, 30.0)))


def _logit(share: float) -> float:
    share = float(np.clip(share, 1e-6, 1 - 1e-6))
    return float(np.log(share / (1 - share)))
