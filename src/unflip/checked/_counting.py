r"""Intervals of theta = sum a / sum b that hold whatever the noise and whatever the model.

Rows are drawn with known probabilities, and a person checks their labels. A model's predictions
(a^, b^) for all rows narrow the interval if they are accurate, and never bias it:

    sum_i lambda y^_i + sum_drawn w_i (y_i - lambda y^_i) = 0,    y = a - theta b,

with w the inverse probabilities (prediction-powered inference), and lambda in [0, 1] of minimum
variance (power tuning).

References
----------
Angelopoulos, Bates, Fannjiang, Jordan, Zrnic (2023), "Prediction-powered inference", Science 382.
Angelopoulos, Duchi, Zrnic (2023), "PPI++: efficient prediction-powered inference", arXiv.
Zrnic, Candes (2024), "Active statistical inference", ICML.
Johnson (1978), "Modified t tests and confidence intervals for asymmetrical populations", JASA 73.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.stats import t as student

from unflip._utils.typing import Floats, Record
from unflip.checked._betting import confidence_sequence
from unflip.checked._draws import Draws
from unflip.checked._exact import finite_interval
from unflip.checked._ratios import Predicted, Ratio

Interval = tuple[float, float]

UNSEEN = 1.0
"""Squared residual of one additional row, so that no model gets an interval of width 0."""

EXACT = "Clopper-Pearson: exact for a simple random sample of this size"
POWERED = "prediction-powered, power-tuned: approximate at a number of rows fixed in advance"
WEIGHTED = "inverse probabilities: approximate at a number of rows fixed in advance"


@dataclass(frozen=True)
class Estimate:
    """An error rate, noise rate or score, estimated from checked rows.

    Parameters
    ----------
    value : float
        The estimate; NaN if no checked row carries information.
    interval : (low, high)
        The fixed-n interval: for a number of rows that was fixed in advance.
    anytime : (low, high)
        The confidence sequence: valid at any time, also if checking stops depending on the result.
    method : str
        How `interval` was computed.
    n_rows : int
        Number of rows that were drawn and checked.
    n_unsure : int
        Number of those marked unsure; the ends of the intervals allow for either answer.
    power : float
        lambda, the weight of the model's predictions: 0 not used, 1 used in full.
    level : float
        Confidence level of each of the two.

    Examples
    --------
    >>> import numpy as np
    >>> from unflip import CheckedLabels
    >>> given = np.repeat(["no", "yes"], 500)
    >>> checked = CheckedLabels([3, 200, 510, 700], ["no", "no", "no", "yes"], probability=4 / 1000)
    >>> share = checked.label_error_rate(given)
    >>> print(share)
    0.2500 (0.0070 to 0.8050)
    >>> round(share.value, 4)
    0.25
    >>> share.n_rows
    4
    """

    value: float
    interval: Interval
    anytime: Interval
    method: str
    n_rows: int
    n_unsure: int
    power: float
    level: float

    @property
    def half_width(self) -> float:
        """Half the width of `interval`."""
        return (self.interval[1] - self.interval[0]) / 2

    def as_record(self) -> Record:
        """Return it ready for JSON; `value` is None if no checked row carries information.

        Returns
        -------
        dict
            `value`, `fixed_n`, `at_any_time`, `method` and `n_unsure`.
        """
        return {
            "value": None if np.isnan(self.value) else self.value,
            "fixed_n": list(self.interval),
            "at_any_time": list(self.anytime),
            "method": self.method,
            "n_unsure": self.n_unsure,
        }

    def __str__(self) -> str:
        low, high = self.interval
        return f"{self.value:.4f} ({low:.4f} to {high:.4f})"


def estimate(
    ratios: list[Ratio],
    draws: Draws,
    label_proba: Floats | None,
    level: float,
    *,
    sequence: bool = True,
) -> Estimate:
    """Return the mean of ratios, such as recalls, with its two intervals."""
    predicted = [ratio.predicted(label_proba, draws.n_rows, draws.rows) for ratio in ratios]
    with_model = label_proba is not None
    return estimate_predicted(ratios, draws, predicted, level, with_model, sequence=sequence)


def estimate_predicted(
    ratios: list[Ratio],
    draws: Draws,
    predicted: list[Predicted],
    level: float,
    with_model: bool,
    *,
    sequence: bool = True,
) -> Estimate:
    """Return the mean of several ratios, given their expectations under a model."""
    ends = _completions(ratios, draws, predicted)
    sure = draws.truth >= 0
    kept = draws._replace(
        rows=draws.rows[sure], truth=draws.truth[sure], relative=draws.relative[sure]
    )
    known = [
        _Sums(*r.values(kept.rows, kept.truth), p.a[sure], p.b[sure], p.a_all, p.b_all)
        for r, p in zip(ratios, predicted, strict=True)
    ]
    value, power, *_ = _solved(known, kept)
    n_unsure = int(np.count_nonzero(~sure))
    exact = len(ratios) == 1 and not with_model and draws.is_plain and ratios[0].largest == 1
    possible = [_possible(ratios, sums, draws.n_open) for sums in ends]
    least, most = possible[0][0], possible[1][1]
    sides = anytime = [(least, most)]
    if draws.n_open:
        sides = [_fixed(sums, draws, level, exact=exact) for sums in ends[: 1 + (n_unsure > 0)]]
    if draws.n_open and sequence:
        anytime = [_always(ratios, sums, draws, level) for sums in ends[: 1 + (n_unsure > 0)]]
    method = EXACT if exact else POWERED if with_model else WEIGHTED
    low, high, first, last = np.clip(
        [sides[0][0], sides[-1][1], anytime[0][0], anytime[-1][1]], least, most
    ).tolist()
    return Estimate(
        value=float(np.clip(value, least, most)),
        interval=(low, high),
        anytime=(first, last),
        method=method,
        n_rows=draws.rows.size,
        n_unsure=n_unsure,
        power=power,
        level=level,
    )


@dataclass(frozen=True)
class _Sums:
    """a and b of the drawn rows, and their expectations there and over all rows."""

    a: Floats
    b: Floats
    a_model: Floats
    b_model: Floats
    a_all: float
    b_all: float


def _completions(
    ratios: list[Ratio], draws: Draws, predicted: list[Predicted]
) -> list[list[_Sums]]:
    """Return the sums with unsure rows answered so that the ratio is smallest, and largest."""
    unsure = np.flatnonzero(draws.truth < 0)
    lists: list[list[_Sums]] = [[], []]
    for ratio, model in zip(ratios, predicted, strict=True):
        a, b = ratio.values(draws.rows, draws.truth)
        if not unsure.size:
            for each in lists:
                each.append(_Sums(a, b, *model))
            continue
        sure = draws.truth >= 0
        total = (draws.weight[sure] @ b[sure]) or 1.0
        theta = (draws.weight[sure] @ a[sure]) / total
        rows = draws.rows[unsure]
        possible = [ratio.values(rows, np.full(rows.size, k)) for k in range(draws.n_classes + 1)]
        scores = np.stack([each[0] - theta * each[1] for each in possible])
        for end, best in enumerate((scores.argmin(axis=0), scores.argmax(axis=0))):
            filled = a.copy(), b.copy()
            for part in (0, 1):
                stacked = np.stack([each[part] for each in possible])
                filled[part][unsure] = stacked[best, np.arange(rows.size)]
            lists[end].append(_Sums(filled[0], filled[1], *model))
    return lists


def _possible(ratios: list[Ratio], sums: list[_Sums], n_open: int) -> Interval:
    """Return the range that the rows not drawn allow: one value if all were drawn."""
    ends = []
    for ratio, each in zip(ratios, sums, strict=True):
        a, b, more = each.a.sum(), each.b.sum(), n_open * ratio.largest
        if b + n_open == 0:  # no row is counted at all
            return 0.0, 1.0
        ends.append((a / (b + n_open), (a + more) / (b + more)))
    low, high = np.mean(ends, axis=0).tolist()
    return low, high


class _Solved(NamedTuple):
    """A ratio, its lambda, and the influence of each drawn row.

    `up` and `down`, of shape (n_ratios, n_drawn), are the influence of such a row with the opposite
    answer.
    """

    value: float
    power: float
    influence: Floats
    up: Floats
    down: Floats


def _solved(sums: list[_Sums], draws: Draws) -> _Solved:
    """Return the mean of the ratios."""
    w = draws.weight / draws.n_rows
    values, powers, influences, ups, downs = zip(*(_solved_one(s, w) for s in sums), strict=True)
    return _Solved(
        float(np.mean(values)),
        float(np.mean(powers)),
        np.mean(influences, axis=0),
        np.concatenate(ups) / len(sums),
        np.concatenate(downs) / len(sums),
    )


def _solved_one(sums: _Sums, w: Floats) -> _Solved:
    power = 0.0
    for _ in range(3):  # theta and lambda depend on each other, weakly
        top = power * sums.a_all + w @ (sums.a - power * sums.a_model)
        bottom = power * sums.b_all + w @ (sums.b - power * sums.b_model)
        if not bottom > 0:
            unknown = np.full(w.size, np.nan)
            return _Solved(np.nan, power, unknown, unknown[None], unknown[None])
        theta = float(np.clip(top / bottom, 0, 1))
        y, model = sums.a - theta * sums.b, sums.a_model - theta * sums.b_model
        y, centred = y - w @ y, model - w @ model
        spread = (w**2) @ centred**2
        power = float(np.clip((w**2) @ (y * centred) / spread, 0, 1)) if spread > 0 else 0.0
    residual = sums.a - power * sums.a_model - theta * (sums.b - power * sums.b_model)
    up, down = (np.clip(way, 0, None) for way in (1 - theta - power * model, theta + power * model))
    influence = (residual - w @ residual) / bottom
    return _Solved(theta, power, influence, up[None] / bottom, down[None] / bottom)


def _fixed(sums: list[_Sums], draws: Draws, level: float, *, exact: bool) -> Interval:
    """Return the interval for a number of rows that was fixed in advance."""
    n = draws.rows.size
    if exact:
        found, among = int(sums[0].a.sum()), int(sums[0].b.sum())
        # of the rows that were not drawn, all may be among those that are counted
        return finite_interval(found, among, among + draws.n_open, level)
    value, _, influence, up, down = _solved(sums, draws)
    if n < 2 or not np.isfinite(value):
        return 0.0, 1.0
    w = draws.weight / draws.n_rows
    apart = np.clip(1 - 1 / draws.weight, 0, 1)  # rows that are all drawn leave nothing open
    scale = max(1 / max(float(w @ each.b), 1 / n) for each in sums)
    one_row = np.sqrt((w**2 * apart).mean() / len(sums)) * scale  # what a residual of 1 would move
    variance = (w**2 * apart) @ influence**2 * n / (n - 1) + UNSEEN * one_row**2
    if variance <= 0:
        return value, value
    quantile = student.ppf((1 + level) / 2, n - 1)
    third = (w**3 * apart * np.maximum(1 - 2 / draws.weight, 0)) @ influence**3
    skew = third / (6 * variance) * (1 + 2 * quantile**2)
    reach = quantile * np.sqrt(variance)
    # with probability 1 - level, no row was drawn of a kind that makes up 3 in n (rule of three)
    unseen_up, unseen_down = (
        -np.log(1 - level) * _most_moved(w * way, apart) for way in (up, down)
    )
    rounding = scale / (2 * draws.n_rows)  # half a row more: sums over all rows are whole numbers
    low = value - max(reach - skew, unseen_down) - rounding
    high = value + max(reach + skew, unseen_up) + rounding
    return float(np.clip(low, 0, value)), float(np.clip(high, value, 1))


def _most_moved(moved: Floats, apart: Floats) -> float:
    """Return the influence of one additional row, for the rows with the largest influence."""
    squares = (moved**2).sum(axis=1)
    each = (moved**3 @ np.sqrt(apart)) / np.where(squares > 0, squares, 1.0)
    return float(np.sqrt((each**2).sum()))


def _always(ratios: list[Ratio], sums: list[_Sums], draws: Draws, level: float) -> Interval:
    """Return the confidence sequence, or the mean of several at a Bonferroni-corrected level."""
    if not draws.in_turn:
        return 0.0, 1.0
    each_level = 1 - (1 - level) / len(sums)
    ends = [
        confidence_sequence(
            np.column_stack([each.a, each.b]),
            np.column_stack([each.a_model, each.b_model]),
            np.array([each.a_all, each.b_all]),
            draws,
            largest=ratio.largest,
            level=each_level,
        )
        for ratio, each in zip(ratios, sums, strict=True)
    ]
    low, high = np.mean(ends, axis=0)
    return float(low), float(high)
