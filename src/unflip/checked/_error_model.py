r"""P(true = k | x, observed label) from checked rows and noisy labels together.

A mixture of hypotheses on how errors arise, weighted by their held-out predictions of the checked
rows:

- the estimate from the noisy labels alone;
- random flips, at the rates of the checked rows;
- a small model of the errors, for errors that depend on the sample,

      log P(true = k | x, y) = b_k + W[y, k] + alpha 1{y = k} + beta log P(noisy = k | x) + v_k x,

  with beta >= 0 and Gaussian priors. Several prior variances of v are tried: from 0, where errors
  depend on x through P(noisy | x) only, to that of a model that learns the classes from checked
  rows alone. So are several scales of x: standardised; as given, for embeddings, whose columns of
  larger variance carry more information; and by the share of each column's variance that the noisy
  labels explain.

The weights maximise the held-out likelihood of the mixture (stacking).

Samples that were picked by their score, such as the most suspicious first, show how errors depend
on x, the label and the score, but not how many errors there are. The model of the errors is then
centred on the estimate before any answer (`PriorEstimate`),

    log P(true = k | x, y) = log P_before(true = k | x, y) + b_k + W[y, k] + alpha 1{y = k}
                             + beta log P_before(true = k | x, y) + v_k x,    beta >= -1,

and the error rate of all samples has a Gaussian prior around that estimate, with the width of its
interval if v = 0, and of its range otherwise.
"""

from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.optimize import Bounds, minimize
from scipy.special import log_softmax, logsumexp

from unflip._utils.threads import one_blas_thread
from unflip._utils.typing import Codes, Floats, Rows
from unflip.noise import TransitionMatrix
from unflip.weights import LabelPosterior

WIDTHS = (0.5, 5.0, 50.0)
"""Prior variances of v x, the part of the score that depends on x besides P(noisy | x)."""

MIN_CHECKED = 10
"""Minimum number of drawn rows for a model of the errors."""

FOLDS = 10
"""Number of folds of the checked rows, on which the hypotheses are compared."""

PRIOR_ANSWERS = 5.0
"""Number of answers that the prior estimate counts as, if rows were picked by their score. With 1,
the reported number of errors was up to 44 % off in simulated reviews, with 5 up to 19 % (`python -m
benchmarks.checked sessions`); with 10, the queue follows 40 answers too slowly if the truth depends
on a column that the labels ignore (`tests/review/test_learning.py`)."""

STACKING_STEPS = 500
"""Number of EM steps for the weights of the mixture; each takes microseconds."""

PRIOR_VARIANCE = 1.0
"""Prior variance of alpha, beta, b and W."""

MIN_PROBA = 1e-4
"""Minimum probability before a logarithm is taken."""


class Evidence(NamedTuple):
    """What is known about rows without their true labels."""

    # P(true = k | x, observed label) by the noisy labels alone.
    own: Floats
    # P(noisy | x) by a model that did not see the row's label.
    held_out: Floats
    # The rows as numbers, by the name of each scale of the columns; empty where they are not
    # numbers.
    x: dict[str, Rows]
    # Positions of the observed labels among the classes.
    codes: Codes

    def take(self, rows: Codes) -> "Evidence":
        """Return some of the rows."""
        x = {name: each[rows] for name, each in self.x.items()}
        return Evidence(self.own[rows], self.held_out[rows], x, self.codes[rows])


class PriorEstimate(NamedTuple):
    """The estimate before any answer, which samples picked by their score correct."""

    # A random subset of the samples.
    rows: Evidence
    # Standard deviation of the error rate of all samples, where errors depend on x through
    # P(noisy | x) only.
    spread: float
    # The same where they depend on x otherwise, too.
    spread_by_row: float

    @property
    def error_rate(self) -> float:
        """The label error rate before any answer."""
        return float(1 - np.take_along_axis(self.rows.own, self.rows.codes[:, None], axis=1).mean())


class HypothesisMixture(NamedTuple):
    """Hypotheses on how errors arise, fitted to checked rows, and the weight of each."""

    hypotheses: list["Hypothesis"]
    weights: Floats

    @property
    def shares(self) -> dict[str, float]:
        """The weight of each hypothesis."""
        return dict(zip((one.name for one in self.hypotheses), self.weights.tolist(), strict=True))

    def predict(self, rows: Evidence) -> Floats:
        """Return P(true = k | x, observed label)."""
        proba = np.zeros_like(rows.own)
        for weight, one in zip(self.weights, self.hypotheses, strict=True):
            if weight > 0:
                proba += weight * one.predict(rows)
        return proba


@one_blas_thread()
def fit_hypotheses(
    rows: Evidence, truth: Codes, weight: Floats, before: PriorEstimate | None = None
) -> HypothesisMixture:
    """Fit the mixture to rows of known true class; with `before`, however they were selected."""
    used = np.flatnonzero(weight > 0)
    rows, truth, weight = rows.take(used), truth[used], weight[used]
    if used.size < MIN_CHECKED:
        return HypothesisMixture([LabelsAlone()], np.ones(1))
    hypotheses: list[Hypothesis] = [LabelsAlone(), ErrorModel(before=before)]
    hypotheses += [ErrorModel(width, scale, before) for scale in rows.x for width in WIDTHS]
    if before is None:
        hypotheses.append(RandomFlips())
        # one pseudo-row that fits all equally keeps each weight above 0
        prior = np.full(len(hypotheses), 1 / len(hypotheses))
    else:
        # Picked rows do not have the rates of all rows. Pseudo-rows that only the estimate before
        # explains keep few answers from changing much.
        prior = np.r_[PRIOR_ANSWERS, np.zeros(len(hypotheses) - 1)]
    scores = np.empty((truth.size, len(hypotheses)))
    for train, test in _folds(truth):
        for column, one in enumerate(hypotheses):
            one.fit(rows.take(train), truth[train], weight[train])
            proba = one.predict(rows.take(test))
            scores[test, column] = proba[np.arange(test.size), truth[test]]
    shares = _stacked(np.log(np.maximum(scores, MIN_PROBA)), weight, prior)
    return HypothesisMixture([one.fit(rows, truth, weight) for one in hypotheses], shares)


class LabelsAlone:
    """The estimate from the noisy labels alone."""

    name = "labels alone"

    def fit(self, rows: Evidence, truth: Codes, weight: Floats) -> "LabelsAlone":
        """Return it unchanged."""
        return self

    def predict(self, rows: Evidence) -> Floats:
        """Return P(true | x, observed) of rows."""
        return rows.own


class RandomFlips:
    """Flips that depend on the true class only."""

    name = "random flips"

    def fit(self, rows: Evidence, truth: Codes, weight: Floats) -> "RandomFlips":
        """Count the flips."""
        self.matrix_ = flip_matrix(truth, rows.codes, weight, rows.own.shape[1])
        return self

    def predict(self, rows: Evidence) -> Floats:
        """Return P(true | x, observed) of rows."""
        noise, classes = TransitionMatrix(self.matrix_), np.arange(len(self.matrix_))
        return LabelPosterior(rows.held_out, rows.codes, noise, classes).proba


def flip_matrix(truth: Codes, codes: Codes, weight: Floats, n_classes: int) -> Floats:
    """Return T[i, j] = P(observed = j | true = i) from checked rows, with a small prior."""
    counts = np.zeros((n_classes, n_classes))
    np.add.at(counts, (truth, codes), weight)
    counts += np.eye(n_classes) + 0.5 / n_classes
    matrix = counts / counts.sum(axis=1, keepdims=True)
    return _invertible(matrix)


def _invertible(matrix: Floats) -> Floats:
    """Return T shrunk towards no flips until the diagonal dominates each column."""
    n_classes = len(matrix)
    off = matrix.max(axis=0, initial=0, where=~np.eye(n_classes, dtype=bool))
    worst = float((off - np.diagonal(matrix)).max())
    share = max(0.0, (worst + 0.1) / (worst + 1.0))
    return (1 - share) * matrix + share * np.eye(n_classes)


class ErrorModel:
    """The small model of the errors, for one prior variance of v x."""

    def __init__(
        self, width: float = 0.0, scale: str = "", before: PriorEstimate | None = None
    ) -> None:
        self.width, self.scale, self.before = width, scale, before
        self.name = "errors by row"
        if width:
            self.name += f", x {width:g} {scale}"

    def fit(self, rows: Evidence, truth: Codes, weight: Floats) -> "ErrorModel":
        """Maximise the weighted likelihood of the true labels of checked rows, with the prior."""
        n_classes = rows.own.shape[1]
        design, target = self._design(rows), np.eye(n_classes)[truth]
        n_columns = 0 if design.x is None else design.x.shape[1]
        self.sizes_ = np.cumsum([2, n_classes, n_classes**2, n_columns * n_classes])
        spread = 1.0
        if design.x is not None:
            values = design.x.data if sparse.issparse(design.x) else design.x
            spread = max(float((values**2).sum()) / truth.size, 1e-12)
        penalty = np.full(self.sizes_[-1], 1 / PRIOR_VARIANCE)
        penalty[self.sizes_[2] :] = spread / max(self.width, 1e-12) * 2
        everywhere = None if self.before is None else self._design(self.before.rows)

        def loss(parameters: Floats) -> tuple[float, Floats]:
            log_q = self._log_proba(design, parameters)
            error = weight[:, None] * (np.exp(log_q) - target)
            value = -(weight[:, None] * target * log_q).sum()
            value += 0.5 * float(penalty @ parameters**2)
            slope = design.transposed(error) + penalty * parameters
            if self.before is None or everywhere is None:
                return value, slope
            # the error rate of all rows, in standard deviations from what it was before
            q = np.exp(self._log_proba(everywhere, parameters))
            right = (q * everywhere.given).sum(axis=1)
            sd = self.before.spread_by_row if self.width else self.before.spread
            far = (1 - right.mean() - self.before.error_rate) / sd
            pull = right[:, None] * (q - everywhere.given) / (right.size * sd)
            return value + 0.5 * far**2, slope + everywhere.transposed(far * pull)

        start, lower = np.zeros(self.sizes_[-1]), np.full(self.sizes_[-1], -np.inf)
        # evidence of the noisy labels for a class never counts against it
        lower[1] = 0 if self.before is None else -1
        options = {"maxiter": 200}
        bounds = Bounds(lower, np.inf)
        found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
        self.parameters_ = found.x
        return self

    def predict(self, rows: Evidence) -> Floats:
        """Return P(true | x, observed) of rows."""
        return np.exp(self._log_proba(self._design(rows), self.parameters_))

    def _design(self, rows: Evidence) -> "Design":
        """Return the features of the score."""
        given = np.eye(rows.own.shape[1])[rows.codes]
        x = rows.x[self.scale] if self.width else None
        log_proba = _centred_log(rows.held_out if self.before is None else rows.own)
        offset = np.zeros_like(log_proba) if self.before is None else log_proba
        return Design(offset, given, log_proba, x)

    def _log_proba(self, design: "Design", parameters: Floats) -> Floats:
        """Return log P(true | x, observed)."""
        shared, b, w, v = np.split(parameters, self.sizes_[:-1])
        score = design.offset + shared[0] * design.given + shared[1] * design.log_proba + b
        score += design.given @ w.reshape(b.size, b.size)
        if design.x is not None:
            score += np.asarray(design.x @ v.reshape(-1, b.size))
        return np.asarray(log_softmax(score, axis=1))


class Design(NamedTuple):
    """Features of the score of the error model, besides a constant."""

    # Added as it is.
    offset: Floats
    # 1{y = k}.
    given: Floats
    # Centred logarithms of the probabilities by the noisy labels.
    log_proba: Floats
    # None if the score does not depend on x.
    x: Rows | None

    def transposed(self, error: Floats) -> Floats:
        """Return the gradient in the parameters, given that in the scores."""
        return np.concatenate(
            [
                [(error * self.given).sum(), (error * self.log_proba).sum()],
                error.sum(axis=0),
                (self.given.T @ error).ravel(),
                [] if self.x is None else np.asarray(self.x.T @ error).ravel(),
            ]
        )


Hypothesis = LabelsAlone | RandomFlips | ErrorModel
"""A hypothesis on how errors arise."""


def _centred_log(proba: Floats) -> Floats:
    """Return the logarithms of probabilities, centred over the classes."""
    log_p = np.log(np.clip(proba, MIN_PROBA, None))
    return np.asarray(log_p - log_p.mean(axis=1, keepdims=True))


def _folds(truth: Codes) -> list[tuple[Codes, Codes]]:
    """Return pairs of rows to train on and to test on, classes spread evenly over the folds."""
    order = np.argsort(truth, kind="stable")
    fold = np.empty(order.size, dtype=np.intp)
    fold[order] = np.arange(order.size) % FOLDS
    return [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(FOLDS)]


def _stacked(log_scores: Floats, weight: Floats, prior: Floats) -> Floats:
    """Return the mixture weights of maximum held-out likelihood, by EM from equal weights.

    `prior` is the number of pseudo-rows that each hypothesis alone explains.
    """
    shares = np.full(log_scores.shape[1], 1 / log_scores.shape[1])
    for _ in range(STACKING_STEPS):
        log_joint = log_scores + np.log(np.maximum(shares, 1e-300))
        belongs = np.exp(log_joint - logsumexp(log_joint, axis=1, keepdims=True))
        shares = weight @ belongs + prior
        shares /= shares.sum()
    return shares
