r"""T per group of samples (a source, an annotator, a slice), and one T for all groups.

The clean posterior g of the samples is known. A group may have more of a class than g says, so its
log odds have a shift b of their own,

    P(observed | x) = softmax(log g + b) T_group,    b ~ N(0, 1),

which is integrated out as the other coefficients are (:mod:`unflip.channel._evidence`). T_group has
two free rates for two classes. For more classes, it is I + s D with one free number s: classes are
confused alike in all groups, more or less often. The log-evidence is computed on a grid of these
numbers that is narrowed to its maximum. That of one T for all groups is the sum over the groups at
the same T, as each has its own shift.

An interval is the set of all values whose log-evidence is near the maximum. T is not pooled: with a
normal prior around the common share of wrong labels, whose width is found by evidence, the error of
the share is smaller by a fifth where groups of 200 and 500 samples have the same noise, and larger
by 3 % where they differ, but intervals cover .84 to .87 instead of .90 to .94 where it is the same.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import RegularGridInterpolator
from scipy.stats import chi2

from unflip._utils.typing import Codes, Floats
from unflip.channel._design import ChannelDesign
from unflip.channel._evidence import ChannelFit, fit_coefficients
from unflip.channel._features import centred_logs
from unflip.channel._settings import SETTINGS
from unflip.channel._structure import structures
from unflip.channel._two_classes import two_rates
from unflip.diagnostics import LEVEL
from unflip.noise import MAX_TOTAL_RATE


@dataclass(frozen=True)
class GroupNoise:
    """The noise of a group, or of all groups if it is the same."""

    # The maximum of the log-evidence, P(observed | T).
    log_evidence: float
    # Where it is.
    T: Floats
    # Expected shares of the true classes there.
    class_shares: Floats
    # 95 % interval of the share of each class that is flipped, of shape (n_classes, 2).
    rates_interval: Floats
    # Expected share of wrong labels, and its 95 % interval.
    label_error_rate: float
    label_error_rate_interval: tuple[float, float]

    @property
    def rates(self) -> Floats:
        """The share of each class that is flipped."""
        return np.asarray(1 - np.diag(self.T))


@dataclass(frozen=True)
class FittedGroups:
    """The noise of every group, and of all groups if it is the same."""

    groups: list[GroupNoise]
    common: GroupNoise
    # Number of free parameters of T.
    n_parameters: int

    @property
    def statistic(self) -> float:
        """Twice the difference of the log-evidence of a T per group and of one T."""
        apart = sum(each.log_evidence for each in self.groups)
        return max(2 * (apart - self.common.log_evidence), 0.0)

    @property
    def degrees_of_freedom(self) -> int:
        """Number of parameters that one T for all groups saves."""
        return self.n_parameters * (len(self.groups) - 1)

    @property
    def p_value(self) -> float:
        """Probability of a statistic at least as large if T is the same (Wilks)."""
        return float(chi2.sf(self.statistic, self.degrees_of_freedom))


def fit_groups(
    clean_proba: Floats, codes: Codes, weight: Floats | None, group: Codes, T: Floats
) -> FittedGroups:
    """Return T of every group of samples, and one T for all groups.

    Parameters
    ----------
    clean_proba : ndarray of shape (n_samples, n_classes)
        P(true | x), held out.
    codes : ndarray of shape (n_samples,)
        Positions of the observed labels among the classes.
    weight : ndarray of shape (n_samples,) or None
        Weight of each sample; None: all are 1.
    group : ndarray of shape (n_samples,)
        Number of the group of each sample; none is left out.
    T : ndarray of shape (n_classes, n_classes)
        T of all samples. For more than two classes, it tells which classes are confused.
    """
    weight = np.ones(codes.size) if weight is None else weight
    family = _Family(direction_of(T))
    parts = []
    for k in range(int(group.max()) + 1):
        own = group == k
        parts.append(_Group(_design(clean_proba[own], codes[own], weight[own]), family))
    groups = [_fitted(family, [part]) for part in parts]
    return FittedGroups(groups, _fitted(family, parts), family.n_free)


def direction_of(T: Floats) -> Floats:
    """Return D = (T - I) / largest rate; where there is no noise, flips go anywhere."""
    size = len(T)
    flips = T - np.eye(size)
    largest = float(-np.diag(flips).min())
    if largest < SETTINGS.smallest_held_out:
        return np.full((size, size), 1 / (size - 1)) - np.eye(size) * size / (size - 1)
    return np.asarray(flips / largest)


@dataclass(frozen=True)
class _Family:
    """T as a function of the roots of its free numbers: both rates for two classes, else s.

    Near no noise, the log-evidence changes with the logarithm of a rate: in its root, it is
    smoother, and a grid is finer there.
    """

    direction: Floats

    @property
    def n_free(self) -> int:
        """How many free numbers there are."""
        return 2 if len(self.direction) == 2 else 1

    def matrix(self, point: Floats) -> Floats:
        """Return T."""
        if self.n_free == 2:
            return two_rates(point**2)
        return np.asarray(np.eye(len(self.direction)) + point[0] ** 2 * self.direction)

    def rates(self, point: Floats) -> Floats:
        """Return the share of each class that is flipped."""
        return np.asarray(1 - np.diag(self.matrix(point)))


class _Group:
    """The log-evidence of the labels of one group as a function of T."""

    def __init__(self, design: ChannelDesign, family: _Family) -> None:
        self.design, self.family = design, family
        self.near: ChannelFit | None = None
        # at every pair so far: the log-evidence, and the sum of the clean posterior
        self.found: dict[tuple[float, ...], tuple[float, Floats]] = {}

    def at(self, point: Floats) -> tuple[float, Floats]:
        """Return the log-evidence, and the expected number of samples of every true class."""
        place = tuple(point.tolist())
        if place not in self.found:
            design, near = self.design, self.near
            none = structures(design.n_classes, free=False)[0]
            # the prior of the shift has a fixed variance: nothing but b is maximised
            self.near = fit = fit_coefficients(
                design,
                none,
                none.start(),
                design.first_variance(),
                None if near is None else near.unscaled_coef,
                T=self.family.matrix(point),
                near=near,
                tol=SETTINGS.group_tolerance,
            )
            self.found[place] = fit.log_likelihood, design.weight @ fit.clean
        return self.found[place]


def _design(clean_proba: Floats, codes: Codes, weight: Floats) -> ChannelDesign:
    """Return the samples of a group, with a shift of their log odds."""
    n_classes = clean_proba.shape[1]
    clean = np.maximum(clean_proba, SETTINGS.smallest_clean_probability)
    logs = centred_logs(clean)
    if n_classes == 2:
        logs, codes, weight = _binned(logs, codes, weight)
    # the engine's prior of the coefficient of an intercept is wide: a small column makes the shift
    # have the deviation of groups
    size = SETTINGS.group_shift_deviation / np.sqrt(SETTINGS.intercept_variance)
    column, block = np.full((codes.size, 1), size), np.zeros(1, dtype=np.intp)
    return ChannelDesign(column, block, codes, weight, n_classes, logs)


def _binned(logs: Floats, codes: Codes, weight: Floats) -> tuple[Floats, Codes, Floats]:
    """Return the mean logits, labels and weights of samples of two classes with similar logits."""
    order = np.argsort(logs[:, 1], kind="stable")
    rows = []
    for some in np.array_split(order, min(SETTINGS.group_bins, codes.size)):
        middle = np.average(logs[some, 1], weights=weight[some])
        totals = np.bincount(codes[some], weight[some], minlength=2)
        rows += [(middle, k, totals[k]) for k in (0, 1) if totals[k] > 0]
    middles, labels, totals = np.array(rows).T
    return np.column_stack([-middles, middles]), labels.astype(np.intp), totals


def _fitted(family: _Family, parts: Sequence[_Group]) -> GroupNoise:
    """Return the noise of some groups that have the same T."""
    n_values = SETTINGS.group_values[family.n_free - 1]
    low, high = np.zeros(family.n_free), np.full(family.n_free, np.sqrt(MAX_TOTAL_RATE))
    for _ in range(SETTINGS.group_grids):
        axes = [np.linspace(a, b, n_values) for a, b in zip(low, high, strict=True)]
        points = _points(axes)
        found = [[part.at(point) for part in parts] for point in points]
        height = np.array([sum(value for value, _ in each) for each in found])
        allowed = _allowed(points)
        near = points[allowed & (height > height[allowed].max() - SETTINGS.explored_drop)]
        # the maximum may be between the highest point and the next one
        before, step = high - low, (high - low) / (n_values - 1)
        low = np.maximum(near.min(axis=0) - step, low)
        high = np.minimum(near.max(axis=0) + step, high)
        if ((high - low) / before > SETTINGS.wide_region).all():
            break
    total = sum(part.design.weight.sum() for part in parts)
    shares = np.array([sum(clean for _, clean in each) for each in found]) / total
    return _near_maximum(family, axes, height, shares)


def _points(axes: Sequence[Floats]) -> Floats:
    """Return all points of a grid."""
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))


def _allowed(points: Floats) -> NDArray[np.bool_]:
    """Return whether the labels carry information about the true classes."""
    return np.asarray((points**2).sum(axis=1) <= MAX_TOTAL_RATE + 1e-9)


def _near_maximum(
    family: _Family, axes: Sequence[Floats], height: Floats, shares: Floats
) -> GroupNoise:
    """Return the noise of the highest evidence, and the values whose evidence is near to it."""
    points = _points([np.linspace(axis[0], axis[-1], SETTINGS.grid_cells + 1) for axis in axes])
    points = points[_allowed(points)]

    def between(values: Floats, some: Floats) -> Floats:
        values = values.reshape([axis.size for axis in axes] + list(values.shape[1:]))
        return np.asarray(RegularGridInterpolator(axes, values, method="cubic")(some))

    surface = between(height, points)
    best, drop = int(surface.argmax()), chi2.ppf(LEVEL, 1) / 2
    lacking, centre = surface[best] - surface, points[best]
    # Points near the edge are moved onto it, along the line from the maximum, on which the
    # log-evidence falls with the square of the distance.
    edge = (lacking > 0.85 * drop) & (lacking < 1.15 * drop)
    reach = np.sqrt(drop / lacking[edge])[:, None]
    moved = (centre + reach * (points[edge] - centre)).clip(points.min(axis=0), points.max(axis=0))
    near = np.vstack([points[lacking <= drop], moved])
    wrong = (shares * [family.rates(point) for point in _points(axes)]).sum(axis=1)
    of_near = between(wrong, near).clip(0.0, 1.0)
    ends = [family.rates(each(axis=0)) for each in (near.min, near.max)]
    return GroupNoise(
        float(surface[best]),
        family.matrix(centre),
        between(shares, centre)[0],
        np.column_stack(ends),
        float(between(wrong, centre)[0].clip(0.0, 1.0)),
        (float(of_near.min()), float(of_near.max())),
    )
