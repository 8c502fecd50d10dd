"""Noise hypotheses about the labels of held-out probabilities, and how each is fitted.

Under a hypothesis P(true | x) = softmax(a log p + b), and the observed label follows from it by T,
except at samples that belong to no class, whose labels are drawn by their shares. The probability
of belonging to no class rises with how flat P(true | x) is: a sample between two classes rules out
the other classes, and a sample of no class rules out none.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import betaln, gammaln

from unflip._probabilities.settings import SETTINGS
from unflip._utils.simplex import scaled_rows
from unflip._utils.typing import Array, Floats


@dataclass(frozen=True)
class NoiseHypothesis:
    """P(true | x) = softmax(a log p + b), T, and the odds of belonging to no class."""

    # T, without zeros: the posterior mean under a Dirichlet prior.
    matrix: Floats
    # a: above 1 where the probabilities are underconfident, or smoothed by noise.
    scale: float
    shift: Floats
    # The T that is removed from p first, by solving p = q T; None: p is used as it is.
    inverted: Floats | None = None
    # Logarithm of the probability of the labels, T integrated out (Cheeseman and Stutz).
    evidence: float = 0.0
    # Odds of belonging to no class at a sample half as flat as the labels' shares; see `_none`.
    none_odds: float = 0.0
    # The flatness up to which samples belong to some class.
    usual_flatness: float = 0.0
    # Whether T has one rate for all classes.
    is_alike: bool = False

    def logs(self, noisy_posterior: Floats) -> Floats:
        """Return log p, centred."""
        if self.inverted is not None:
            noisy_posterior = inverted(noisy_posterior, self.inverted)
        return centred_logs(noisy_posterior)

    def clean_posterior(self, logs: Floats, shares: Floats) -> tuple[Floats, Floats | None]:
        """Return P(true | x) of samples of some class, and P(no class | x), None where it is 0."""
        clean, flat = _clean_posterior(self.scale, self.shift, logs, shares)
        return clean, _none(
            self.none_odds, _excess(flat, self.usual_flatness)
        ) if self.none_odds else None

    def label_posterior(self, clean: Floats, codes: Array) -> tuple[Floats, Floats]:
        """Return P(true | x, label) of samples of some class by Bayes' rule, and P(label | x)."""
        joint = clean * self.matrix.T[codes]
        observed = row_sums(joint)
        joint /= observed[:, None]
        return joint, observed


class FittedSamples:
    """Logarithms of the probabilities, labels and weights that hypotheses are fitted to."""

    def __init__(self, logs: Floats, codes: NDArray[np.intp], weight: Floats) -> None:
        self.logs, self.codes, self.weight = logs, codes, weight
        self.own = np.arange(codes.size), codes
        n_classes = logs.shape[1]
        counts = np.bincount(codes, weight, minlength=n_classes)
        self.shares = (counts + 1) / (counts.sum() + n_classes)
        self.order = np.argsort(codes, kind="stable")
        self.present, self.starts = np.unique(codes[self.order], return_index=True)

    def every(self, step: int) -> "FittedSamples":
        """Return every `step`-th sample."""
        return FittedSamples(self.logs[::step], self.codes[::step], self.weight[::step])

    def with_logs(self, logs: Floats) -> "FittedSamples":
        """Return the same labels with other logarithms."""
        return FittedSamples(logs, self.codes, self.weight)

    def by_label(self, rows: Floats) -> Floats:
        """Return the sums of rows, by observed label."""
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
        """Return the geometric mean of P(true | x) / shares: 1 where the two are equal."""
        return _clean_posterior(scale, shift, self.logs, self.shares)[1]


def fit_alike(
    sample: FittedSamples, start: NoiseHypothesis | None = None, *, with_none: bool = False
) -> NoiseHypothesis:
    """Fit a, b and one error rate for all classes, and the odds of no class where asked for."""
    others = sample.noise(1.0).T[sample.codes]
    total, n_classes = sample.weight.sum(), sample.shares.size
    a, b = SETTINGS.rate_prior
    model = _Likelihood(sample, start if with_none else None)

    def loss(at: Floats) -> tuple[float, Floats]:
        rate = _logistic(at[1])
        factors = rate * others
        factors[sample.own] = 1 - rate
        value, gradient, joint = model.loss(at[0], at[2 : 2 + n_classes], factors, at[-1])
        right, everything = float(joint[sample.own].sum()), float(joint.sum())
        value -= a * np.log(rate) + b * np.log1p(-rate)
        slope = -((everything - right + a) * (1 - rate) - (right + b) * rate)
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
    found = model.hypothesis(matrix, best[0], best[2 : 2 + n_classes], best[-1], evidence)
    return replace(found, is_alike=True)


def fit_again(
    sample: FittedSamples,
    one: NoiseHypothesis,
    *,
    with_none: bool,
    rate: float = SETTINGS.rate_prior[0] / 2,
) -> NoiseHypothesis:
    """Fit a hypothesis of the same kind, starting from another fit."""
    if one.is_alike:
        found = fit_alike(sample, one, with_none=with_none)
    else:
        found = fit_by_class(sample, rate, one, with_none=with_none)
    return replace(found, inverted=one.inverted)


def fit_by_class(
    sample: FittedSamples, rate: float, start: NoiseHypothesis, *, with_none: bool = False
) -> NoiseHypothesis:
    """Fit a, b and T, whose rows have a Dirichlet prior worth one sample per free entry."""
    n_classes, total = sample.shares.size, sample.weight.sum()
    prior_counts = (n_classes - 1) * sample.noise(rate)
    model = _Likelihood(sample, start if with_none else None)
    middle = slice(1, 1 + n_classes)
    entries = slice(1 + n_classes, 1 + n_classes + n_classes**2)

    def transition(at: Floats) -> Floats:
        return _softmax(at[entries].reshape(n_classes, n_classes).copy())[0]

    def loss(at: Floats) -> tuple[float, Floats]:
        matrix = transition(at)
        value, gradient, joint = model.loss(at[0], at[middle], matrix.T[sample.codes], at[-1])
        counts = sample.by_label(joint).T + prior_counts
        value -= float(np.sum(prior_counts * np.log(np.maximum(matrix, 1e-300))))
        at_rows = counts.sum(axis=1, keepdims=True) * matrix - counts
        whole = np.r_[gradient[: 1 + n_classes], at_rows.ravel(), gradient[1 + n_classes :]]
        return value / total, whole / total

    first = np.r_[np.log(start.scale), start.shift, np.log(np.maximum(start.matrix, 1e-9)).ravel()]
    best = _minimum(loss, model.started(first))
    matrix = transition(best)
    value, _, joint = model.loss(best[0], best[middle], matrix.T[sample.codes], best[-1])
    counts = sample.by_label(joint).T
    integrated = np.sum(gammaln(prior_counts + counts) - gammaln(prior_counts)) - np.sum(
        gammaln((prior_counts + counts).sum(axis=1)) - gammaln(prior_counts.sum(axis=1))
    )
    evidence = -value + integrated - np.sum(counts * np.log(np.maximum(matrix, 1e-300)))
    mean = scaled_rows(counts + prior_counts)
    return model.hypothesis(mean, best[0], best[middle], best[-1], evidence)


class _Likelihood:
    """The likelihood of the labels; with `none_from`, flat samples may belong to no class."""

    def __init__(self, sample: FittedSamples, none_from: NoiseHypothesis | None) -> None:
        self.sample, self.usual, self.excess = sample, 0.0, None
        if none_from is not None:
            flat = sample.flatness(none_from.scale, none_from.shift)
            self.usual = float(
                np.quantile(
                    flat, SETTINGS.usual_quantile, weights=sample.weight, method="inverted_cdf"
                )
            )
            self.excess = _excess(flat, self.usual)

    def started(self, first: Floats) -> Floats:
        """Append the starting value of the odds of no class: even."""
        return first if self.excess is None else np.r_[first, 0.0]

    def loss(
        self, log_scale: float, shift: Floats, factors: Floats, log_none: float
    ) -> tuple[float, Floats, Floats]:
        """Return minus the log-posterior, its gradient, and P(true, some class | x, y)."""
        sample, scale = self.sample, np.exp(log_scale)
        spread = SETTINGS.shift_spread(sample.shares.size)
        clean, _ = _clean_posterior(scale, shift, sample.logs, sample.shares)
        joint = clean * factors
        by_class = np.maximum(row_sums(joint), 1e-300)
        observed, at_none = by_class, np.zeros(0)
        real = sample.weight
        if self.excess is not None:
            none = _none(_odds(log_none), self.excess)
            at_random = sample.shares[sample.codes]
            observed = (1 - none) * by_class + none * at_random
            real = sample.weight * (1 - none) * by_class / observed
            slope = sample.weight @ (none * (1 - none) * (at_random - by_class) / observed)
            at_none = np.array([-slope])
        joint *= (real / by_class)[:, None]
        error = clean * real[:, None] - joint
        value = float(-sample.weight @ np.log(observed))
        value += (log_scale / SETTINGS.scale_spread) ** 2 / 2
        value += float(shift @ shift) / (2 * spread**2)
        at_scale = scale * np.vdot(error, sample.logs) + log_scale / SETTINGS.scale_spread**2
        at_shift = error.sum(axis=0) + shift / spread**2
        return value, np.r_[at_scale, at_shift, at_none], joint

    def hypothesis(
        self, matrix: Floats, log_scale: float, shift: Floats, log_none: float, evidence: float
    ) -> NoiseHypothesis:
        """Return the fitted hypothesis."""
        scale = float(np.exp(log_scale))
        if self.excess is None:
            return NoiseHypothesis(matrix, scale, shift, evidence=float(evidence))
        # BIC's price of two more parameters, the odds and the usual flatness, and what a model that
        # is not quite calibrated gains; it gains more where all samples are flat
        total = float(self.sample.weight.sum())
        price = np.log(total) + SETTINGS.miscalibration * total / (1 - self.usual) ** 2
        return NoiseHypothesis(
            matrix,
            scale,
            shift,
            evidence=float(evidence) - price,
            none_odds=_odds(log_none),
            usual_flatness=self.usual,
        )


def _clean_posterior(
    scale: float, shift: Floats, logs: Floats, shares: Floats
) -> tuple[Floats, Floats]:
    """Return softmax(a log p + b), and how flat it is."""
    clean, total = _softmax(scale * logs + shift)
    # log p is centred, so the geometric mean over classes consists of the shift alone
    return clean, np.exp(shift.mean() - np.log(shares).mean()) / total


def _none(odds: float, excess: Floats) -> Floats:
    """Return P(no class | x), of odds c e / (1 - e), where e is how unusually flat a sample is."""
    return odds * excess / (1 - excess + odds * excess)


def _excess(flat: Floats, usual: float) -> Floats:
    """Return e, from 0 at samples as flat as most to nearly 1 at those as flat as the shares."""
    return np.clip((flat - usual) / (1 - min(usual, 0.99)), 0.0, 0.99)


def _minimum(loss: Callable[[Floats], tuple[float, Floats]], start: Floats) -> Floats:
    found = minimize(
        loss, start, jac=True, method="L-BFGS-B", options={"maxiter": 150, "ftol": 1e-7}
    )
    return np.asarray(found.x)


def inverted(p: Floats, matrix: Floats) -> Floats:
    """Return q of p = q T, approximately, by a few EM steps towards the likeliest mixture.

    Recalibration absorbs the error that they leave.
    """
    q = np.maximum(p @ np.linalg.inv(matrix), SETTINGS.inversion_start)
    q /= row_sums(q)[:, None]
    for _ in range(SETTINGS.inversion_steps):
        q *= (p / np.maximum(q @ matrix, SETTINGS.floor)) @ matrix.T  # T may rule a label out
    return np.asarray(q)


def centred_logs(p: Floats) -> Floats:
    """Return log p less its mean over the classes."""
    logs = np.log(np.maximum(p, SETTINGS.floor))
    logs -= (row_sums(logs) / p.shape[1])[:, None]
    return np.asarray(logs)


def row_sums(values: Floats) -> Floats:
    """Return the sums of rows; a product is faster than a sum along rows."""
    return np.asarray(values @ np.ones(values.shape[1], dtype=values.dtype))


def _softmax(logits: Floats) -> tuple[Floats, Floats]:
    """Return the softmax, in place, and its normalisation; centred logits need no shift."""
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
