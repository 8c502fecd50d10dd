r"""P(true = k | x, given label) from checked rows and noisy labels together.

Three kinds of explanation of the errors, weighted by how well each predicts checked rows that it
was not shown:

- what the noisy labels say by themselves;
- random flips, at the rates of the checked rows;
- a small model of the errors, for mistakes that depend on the row,

      log P(true = k | x, y) = b_k + W[y, k] + alpha 1{y = k} + beta log P(noisy = k | x) + v_k x,

  with beta >= 0 and Gaussian priors, of which several widths for v are tried: from none, where
  errors depend on x through P(noisy | x) only, to that of a model that learns the classes from
  checked rows alone.

The weights maximise the held-out likelihood of the mixture (stacking).
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.optimize import Bounds, minimize
from scipy.special import log_softmax, logsumexp

from unflip._label_posterior import LabelPosterior
from unflip._typing import Array, Codes, Floats, Rows
from unflip.noise import TransitionMatrix

WIDTHS = (0.0, 0.5, 5.0, 50.0)
"""Prior variances of v x, the part of the score that x has besides P(noisy | x)."""

LEAST_ROWS = 10
"""Fewer drawn rows do not speak of errors at all."""

FOLDS = 10
"""Of the checked rows, on which the explanations are compared."""

EM_STEPS = 500
"""Of the mixture's weights; each takes microseconds."""

PRIOR_VARIANCE = 1.0
"""Of alpha, beta, b and W."""

SMALLEST = 1e-4
"""Probabilities are kept from 0 and 1 by this."""


class CheckedRows(NamedTuple):
    """Checked rows whose true class is known, with how far each speaks for the others.

    Parameters
    ----------
    rows, truth : ndarray of shape (n_checked,)
        Positions of the rows, and of their true labels among the classes.
    weight : ndarray of shape (n_checked,)
        Inverse probabilities with mean 1; 0 of rows that were picked by hand.
    """

    rows: Codes
    truth: Codes
    weight: Floats

    def take(self, kept: Array) -> "CheckedRows":
        """Return some of them.

        Parameters
        ----------
        kept : ndarray
            Which: positions, or whether to keep each.
        """
        return CheckedRows(self.rows[kept], self.truth[kept], self.weight[kept])


class Explained(NamedTuple):
    """The label posterior, and which explanations it is a mixture of.

    Parameters
    ----------
    proba : ndarray of shape (n_rows, n_classes)
        P(true = k | x, given label).
    shares : dict of str to float
        The weight of each explanation.
    """

    proba: Floats
    shares: dict[str, float]


def explain_errors(
    own: Floats,
    held_out: Floats,
    x: Rows | None,
    codes: Codes,
    classes: Array,
    checked: CheckedRows,
) -> Explained:
    """Return P(true = k | x, given label) of all rows.

    Parameters
    ----------
    own : ndarray of shape (n_rows, n_classes)
        P(true = k | x, given label) by the noisy labels alone.
    held_out : ndarray of shape (n_rows, n_classes)
        P(noisy | x) by a model that did not see the row's label.
    x : {ndarray, sparse matrix} of shape (n_rows, n_features) or None
        Features of comparable scale; None where there are none.
    codes : ndarray of shape (n_rows,)
        Positions of the given labels among the classes.
    classes : ndarray of shape (n_classes,)
        The labels.
    checked : CheckedRows
        What is known.
    """
    speaking = checked.take(checked.weight > 0)
    if speaking.rows.size < LEAST_ROWS:
        return Explained(own, {"labels alone": 1.0})
    makers = _explanations(own, held_out, x, codes, classes)
    folds = _folds(speaking)
    scores = np.empty((speaking.rows.size, len(makers)))
    at = np.arange(speaking.rows.size)
    for column, make in enumerate(makers.values()):
        for train, test in folds:
            proba = make(speaking.take(train), speaking.rows[test])
            scores[test, column] = proba[at[: test.size], speaking.truth[test]]
    shares = _stacked(np.log(np.maximum(scores, SMALLEST)), speaking.weight)
    everyone = np.arange(codes.size)
    proba = np.zeros_like(own)
    for share, make in zip(shares, makers.values(), strict=True):
        if share > 0:
            proba += share * make(speaking, everyone)
    return Explained(proba, dict(zip(makers, shares.tolist(), strict=True)))


def _explanations(
    own: Floats, held_out: Floats, x: Rows | None, codes: Codes, classes: Array
) -> dict[str, Callable[[CheckedRows, Codes], Floats]]:
    """Return, by name, functions from checked rows and other rows to P(true | x, given)."""
    log_p = np.log(np.clip(held_out, SMALLEST, None))
    log_p -= log_p.mean(axis=1, keepdims=True)

    def labels_alone(_: CheckedRows, rows: Codes) -> Floats:
        return own[rows]

    def random_flips(checked: CheckedRows, rows: Codes) -> Floats:
        matrix = flip_matrix(checked, codes, classes.size)
        return LabelPosterior(held_out[rows], codes[rows], TransitionMatrix(matrix), classes).proba

    makers: dict[str, Callable[[CheckedRows, Codes], Floats]] = {
        "labels alone": labels_alone,
        "random flips": random_flips,
    }
    for width in WIDTHS if x is not None else WIDTHS[:1]:

        def by_row(checked: CheckedRows, rows: Codes, width: float = width) -> Floats:
            features = None if not width else x
            model = ErrorModel(width).fit(log_p, features, codes, checked)
            return model.predict(log_p, features, codes, rows)

        makers["errors by row" + (f", x {width:g}" if width else "")] = by_row
    return makers


def flip_matrix(checked: CheckedRows, codes: Codes, n_classes: int) -> Floats:
    """Return T[i, j] = P(given = j | true = i) from checked rows, shrunk a little to no flips.

    Parameters
    ----------
    checked : CheckedRows
        Rows that were drawn.
    codes : ndarray of shape (n_rows,)
        The given labels of all rows.
    n_classes : int
        How many classes.
    """
    counts = np.zeros((n_classes, n_classes))
    np.add.at(counts, (checked.truth, codes[checked.rows]), checked.weight)
    counts += np.eye(n_classes) + 0.5 / n_classes
    matrix = counts / counts.sum(axis=1, keepdims=True)
    return _invertible(matrix)


def _invertible(matrix: Floats) -> Floats:
    """Return T moved towards no flips as far as each class must be likelier given itself."""
    n_classes = len(matrix)
    off = matrix.max(axis=0, initial=0, where=~np.eye(n_classes, dtype=bool))
    worst = float((off - np.diagonal(matrix)).max())
    share = max(0.0, (worst + 0.1) / (worst + 1.0))
    return (1 - share) * matrix + share * np.eye(n_classes)


class ErrorModel:
    """The small model of the errors, at one prior variance of v x.

    Parameters
    ----------
    width : float
        Prior variance of v x over the rows.
    """

    def __init__(self, width: float) -> None:
        self.width = width

    def fit(
        self, log_p: Floats, x: Rows | None, codes: Codes, checked: CheckedRows
    ) -> "ErrorModel":
        """Maximise the weighted likelihood of the true labels of checked rows, with the prior."""
        n_classes = log_p.shape[1]
        given, belief = np.eye(n_classes)[codes[checked.rows]], log_p[checked.rows]
        z = None if x is None else _dense(x[checked.rows])
        n_columns = 0 if z is None else z.shape[1]
        sizes = np.cumsum([2, n_classes, n_classes**2, n_columns * n_classes])
        spread = 1.0 if z is None else max(float((z**2).sum(axis=1).mean()), 1e-12)
        penalty = np.full(sizes[-1], 1 / PRIOR_VARIANCE)
        penalty[sizes[2] :] = spread / max(self.width, 1e-12) * 2
        target = np.eye(n_classes)[checked.truth]

        def loss(parameters: Floats) -> tuple[float, Floats]:
            shared, b, w, v = np.split(parameters, sizes[:-1])
            score = shared[0] * given + shared[1] * belief + b + given @ w.reshape(n_classes, -1)
            if z is not None:
                score = score + z @ v.reshape(n_columns, n_classes)
            log_q = log_softmax(score, axis=1)
            error = checked.weight[:, None] * (np.exp(log_q) - target)
            parts = [
                [(error * given).sum(), (error * belief).sum()],
                error.sum(axis=0),
                (given.T @ error).ravel(),
                [] if z is None else (z.T @ error).ravel(),
            ]
            value = -(checked.weight[:, None] * target * log_q).sum()
            value += 0.5 * float(penalty @ parameters**2)
            return value, np.concatenate(parts) + penalty * parameters

        start, bounds = np.zeros(sizes[-1]), Bounds(np.full(sizes[-1], -np.inf), np.inf)
        # what noisy labels speak for is never less likely for it, however few rows say so
        bounds.lb[1] = 0
        options = {"maxiter": 200}
        found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options).x
        self.shared_, self.b_, w, v = np.split(found, sizes[:-1])
        self.w_ = w.reshape(n_classes, n_classes)
        self.v_ = v.reshape(n_columns, n_classes)
        return self

    def predict(self, log_p: Floats, x: Rows | None, codes: Codes, rows: Codes) -> Floats:
        """Return P(true | x, given) of rows."""
        n_classes = log_p.shape[1]
        given = np.eye(n_classes)[codes[rows]]
        score = self.shared_[0] * given + self.shared_[1] * log_p[rows] + self.b_ + given @ self.w_
        if x is not None:
            score = score + np.asarray(x[rows] @ self.v_)
        return np.exp(log_softmax(score, axis=1))


def _dense(x: Rows) -> Floats:
    return np.asarray(x.todense() if sparse.issparse(x) else x, dtype=float)


def _folds(checked: CheckedRows) -> list[tuple[Codes, Codes]]:
    """Return pairs of rows to train on and to test on, classes spread evenly over the folds."""
    # by class and position: the same folds in whatever order the rows were checked
    order = np.lexsort((checked.rows, checked.truth))
    fold = np.empty(order.size, dtype=np.intp)
    fold[order] = np.arange(order.size) % FOLDS
    return [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(FOLDS)]


def _stacked(log_scores: Floats, weight: Floats) -> Floats:
    """Return the mixture weights of greatest held-out likelihood, by EM from equal shares.

    One row more, which fits all alike, keeps each from 0.
    """
    shares = np.full(log_scores.shape[1], 1 / log_scores.shape[1])
    for _ in range(EM_STEPS):
        log_joint = log_scores + np.log(np.maximum(shares, 1e-300))
        belongs = np.exp(log_joint - logsumexp(log_joint, axis=1, keepdims=True))
        shares = weight @ belongs + 1 / shares.size
        shares /= shares.sum()
    return shares
