"""Selection of the rows to check next."""

from typing import Literal, NamedTuple

import numpy as np
from scipy.stats import norm
from sklearn.utils import check_random_state

from unflip._utils.typing import Codes, Floats, RandomState
from unflip._utils.validation import check_choice, check_count
from unflip.checked._counting import Estimate
from unflip.checked._draws import MIN_RANDOM_SHARE, Draws

Goal = Literal["count", "find", "train"]

GOALS = {
    "find": "find errors: the most suspicious rows first",
    "count": "count errors: drawn at random, so that the interval narrows fastest",
    "train": "train the model: drawn at random, favouring rows that change most weights",
}
"""Purpose of each goal, in one line."""

MIN_VARIANCE = 0.02
"""Minimum variance of an answer, on average over the rows, even if the model is certain."""

PRIOR_RANDOM_ROWS = 30.0
"""Number of prior rows in favour of simple random draws."""


class NextRows(NamedTuple):
    """Rows to check, in this order.

    Parameters
    ----------
    rows : ndarray of shape (n,)
        Positions.
    probability : ndarray of shape (n,)
        The probability with which each was drawn at its turn; NaN where the goal was to find.

    Examples
    --------
    >>> import numpy as np
    >>> from unflip import CheckedLabels
    >>> given = np.repeat(["no", "yes"], 500)
    >>> checked = CheckedLabels([3, 510], ["no", "no"], probability=2 / 1000)
    >>> suspicion = np.linspace(0.01, 0.6, 1000)
    >>> picks = checked.next_rows(given, suspicion, goal="find", n=3)
    >>> picks.rows
    array([999, 998, 997])
    """

    rows: Codes
    probability: Floats


def choose_rows(
    goal: str,
    n: int,
    draws: Draws,
    checked_rows: Codes,
    given: Codes,
    label_proba: Floats,
    random_state: RandomState,
) -> NextRows:
    """Return the rows to check next."""
    check_choice(goal, ("count", "find", "train"), "goal")
    check_count(n, "n", least=1)
    suspicion = 1 - label_proba[np.arange(given.size), given]
    if goal == "find":
        order = np.argsort(-suspicion, kind="stable")
        rows = order[~np.isin(order, checked_rows)][:n]
        return NextRows(rows, np.full(rows.size, np.nan))
    if draws.rows.size and not draws.in_turn:
        raise ValueError(
            "the rows so far were drawn independently of each other, and successive draws cannot "
            "be added to them: start with CheckedLabels([], []), or draw more in the same way."
        )
    is_left = np.ones(given.size, dtype=bool)
    is_left[draws.rows] = False
    left = np.flatnonzero(is_left)
    spread = _influence(suspicion, given) if goal == "train" else _spread(suspicion)
    temper = _temper(draws, spread, suspicion, given) if goal == "count" else 1.0
    value = spread[left] ** temper
    value = MIN_RANDOM_SHARE + (1 - MIN_RANDOM_SHARE) * value / value.mean()
    # sampling without replacement: the smallest of exponential variables with these rates first
    generator = check_random_state(random_state)
    arrival = generator.exponential(size=left.size) / value
    first = np.argpartition(arrival, n - 1)[:n] if n < left.size else np.arange(left.size)
    order = first[np.argsort(arrival[first])]
    before = np.cumsum(value[order]) - value[order]
    # the last row of all is certain, and not more than that by rounding
    return NextRows(left[order], np.minimum(value[order] / (value.sum() - before), 1))


def rows_needed(found: Estimate, n_rows: int, half_width: float) -> int:
    """Return about how many more rows to check; the width falls as sqrt(1/n - 1/N)."""
    if found.n_rows < 2:
        # as many as a plain random sample of a share of a tenth
        variance = 0.09 * norm.ppf((1 + found.level) / 2) ** 2
    else:
        open_share = 1 / found.n_rows - 1 / n_rows
        variance = found.half_width**2 / open_share if open_share > 0 else 0.0
    total = variance / (half_width**2 + variance / n_rows)
    return max(int(np.ceil(total)) - found.n_rows, 0)


def _spread(suspicion: Floats) -> Floats:
    """Return the standard deviation of each answer, allowing for an overconfident model.

    The model may be wrong both about labels it calls right and about labels it calls wrong. Both
    count equally: rows that make up a share p of the table have a variance of MIN_VARIANCE / (2 p).
    """
    share = np.clip(suspicion.mean(), 1e-6, 1 - 1e-6)
    surprise = (suspicion / share + (1 - suspicion) / (1 - share)) / 2
    return np.sqrt(suspicion * (1 - suspicion) + MIN_VARIANCE * surprise)


def _temper(draws: Draws, spread: Floats, suspicion: Floats, given: Codes) -> float:
    """Return the exponent in [0, 1] of `spread` that minimises the variance so far.

    The variance of a draw is sum r^2 / q, and r^2 is known for the rows drawn so far. The prior in
    favour of simple draws limits the harm of an uninformative model.
    """
    sure = draws.truth >= 0
    rows, tempers = draws.rows[sure], np.linspace(0, 1, 5)
    if rows.size < 2:
        return 0.5
    w = (1 / draws.relative)[sure]
    wrong = (draws.truth[sure] != given[rows]).astype(float)
    power = np.clip(
        np.cov(wrong, suspicion[rows])[0, 1] / max(np.var(suspicion[rows]), 1e-12), 0, 1
    )
    residual = wrong - power * suspicion[rows]
    square = (residual - residual.mean()) ** 2
    variances = []
    for temper in tempers:
        value = spread**temper
        q = MIN_RANDOM_SHARE + (1 - MIN_RANDOM_SHARE) * value / value.mean()
        own = float(w @ (square / q[rows]))
        plain = float((w @ square) / w.sum() * (1 / q).mean())
        variances.append(own + PRIOR_RANDOM_ROWS * plain)
    return float(tempers[int(np.argmin(variances))])


def _influence(suspicion: Floats, given: Codes) -> Floats:
    """Return how much the answer of each row would change P(wrong) of the others.

    In a logistic model of the errors with features f, the observed label and the logit of the
    suspicion s, one more answer changes the coefficients by C f (answer - s), and P(wrong) of the
    others by s (1 - s) f' of that: the root of s (1 - s) f' C M C f, with
    M = sum (s (1 - s))^2 f f'.
    """
    s = np.clip(suspicion, 1e-3, 1 - 1e-3)
    features = np.column_stack([np.eye(given.max() + 1)[given], np.log(s / (1 - s))])
    spread = s * (1 - s)
    # as if about a hundred rows like these had been checked
    scale = 100 / given.size
    precision = scale * (features * spread[:, None]).T @ features + np.eye(features.shape[1])
    effect = (features * spread[:, None] ** 2).T @ features / given.size
    middle = np.linalg.solve(precision, effect) @ np.linalg.inv(precision)
    moved = np.einsum("ij,jk,ik->i", features, middle, features)
    return np.sqrt(np.maximum(spread * moved, 1e-300))
