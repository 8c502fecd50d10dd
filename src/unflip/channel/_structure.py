r"""Structures of T: which of its entries are alike, and what is expected of the others.

Row k of T is (1 - r_k, r_k m_k): a label of class k is flipped with probability r_k, and then it
becomes j with probability m_kj. A structure has one rate r for all classes or one for each, and
targets m_k that are even, or free with a Dirichlet prior. Its parameters are the logits of the
rates and the log-ratios log(m_kj / m_k,last), in which Laplace's method is accurate (MacKay, 1998).
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln, expit, gammaln, logit, softmax

from unflip._utils.typing import Floats
from unflip.channel._settings import SETTINGS

ONE_RATE, ONE_TARGET, FEW_TARGETS = (
    "one rate",
    "one rate, one target",
    "one rate, few targets",
)
"""Structures at whose modes the searches of other structures start."""

LOG_2_PI = float(np.log(2 * np.pi))


@dataclass(frozen=True)
class NoiseStructure:
    """T as a function of parameters, with their prior."""

    # What it is called.
    name: str
    # Number of classes.
    n_classes: int
    # Whether every class has a rate of its own; None: no noise.
    per_class: bool | None
    # Sum of the parameters of the targets' Dirichlet prior: 1 expects few targets, the number of
    # targets none in particular. None: all targets are alike.
    concentration: float | None = None
    # The one class that each class is taken for, every one of the others being as likely before the
    # data.
    targets: tuple[int, ...] | None = None

    @cached_property
    def n_rates(self) -> int:
        """How many rates there are."""
        if self.per_class is None:
            return 0
        return self.n_classes if self.per_class else 1

    @cached_property
    def n_ratios(self) -> int:
        """How many log-ratios of targets each class has."""
        return 0 if self.concentration is None else self.n_classes - 2

    @property
    def n_parameters(self) -> int:
        """How many parameters there are."""
        return self.n_rates + self.n_classes * self.n_ratios

    @property
    def target_count(self) -> float:
        """Parameter of the Dirichlet prior, the same for every target."""
        return (self.concentration or 0.0) / (self.n_classes - 1)

    @cached_property
    def _off(self) -> NDArray[np.bool_]:
        return ~np.eye(self.n_classes, dtype=bool)

    def start(self) -> Floats:
        """Return parameters to start at: a small rate, and even targets."""
        first = np.zeros(self.n_parameters)
        first[: self.n_rates] = logit(SETTINGS.starting_rate)
        return first

    def parts(self, theta: Floats) -> tuple[Floats, Floats]:
        """Return the rates r, and the targets m of shape (..., n_classes, n_classes - 1)."""
        K, several = self.n_classes, theta.shape[:-1]
        rates = np.zeros((*several, K))
        if self.n_rates:
            rates[...] = expit(theta[..., : self.n_rates])
        if self.targets is not None:
            return rates, np.eye(K)[list(self.targets)][self._off].reshape(K, K - 1)
        if not self.n_ratios:
            return rates, np.full((K, K - 1), 1 / (K - 1))
        ratios = np.zeros((*several, K, K - 1))
        ratios[..., :-1] = theta[..., self.n_rates :].reshape(*several, K, K - 2)
        return rates, softmax(ratios, axis=-1)

    def matrix(self, theta: Floats) -> Floats:
        """Return T, or as many as there are vectors of parameters."""
        rates, targets = self.parts(theta)
        K = self.n_classes
        T = np.zeros((*theta.shape[:-1], K, K))
        T[..., self._off] = (rates[..., None] * targets).reshape(*theta.shape[:-1], -1)
        T[..., np.arange(K), np.arange(K)] = 1 - rates
        return T

    def matched(self, other: "NoiseStructure", theta: Floats) -> Floats:
        """Return parameters of this structure near to those of a simpler one."""
        rates, targets = other.parts(theta)
        found = self.start()
        if other.n_rates:
            # with even targets noise may seem absent, and few targets would not be looked for
            new_targets = self.n_ratios > other.n_ratios or self.targets != other.targets
            least = SETTINGS.starting_rate if new_targets else 0.02
            rates = rates if self.per_class else rates.mean(keepdims=True)
            found[: self.n_rates] = logit(np.clip(rates[: self.n_rates], least, 0.9))
        if self.n_ratios and other.n_ratios:
            # off the edge, from where a target would not come back
            logs = np.log(targets + 0.1 * self.target_count / self.n_classes)
            found[self.n_rates :] = (logs[:, :-1] - logs[:, -1:]).ravel()
        return found

    def gradient(self, counts: Floats, theta: Floats) -> Floats:
        """Return d/dtheta of sum_kj counts_kj log T_kj."""
        rates, targets = self.parts(theta)
        flipped = counts[self._off].reshape(self.n_classes, -1)
        by_class = flipped.sum(axis=1) - rates * counts.sum(axis=1)
        slope = [self._of_rates(by_class)]
        if self.n_ratios:
            away = flipped - targets * flipped.sum(axis=1, keepdims=True)
            slope.append(away[:, :-1].ravel())
        return np.concatenate(slope)

    def _of_rates(self, by_class: Floats) -> Floats:
        if self.per_class is None:
            return np.zeros(0)
        return by_class if self.per_class else by_class.sum(keepdims=True)

    def log_prior(self, theta: Floats) -> tuple[float, Floats, Floats]:
        """Return the log-density of the parameters, its gradient and its negative curvature."""
        n = self.n_rates
        _, targets = self.parts(theta)
        own = expit(theta[:n])
        flips, stays = SETTINGS.prior_flips, SETTINGS.prior_stays
        value = np.sum(flips * np.log(own) + stays * np.log1p(-own) - betaln(flips, stays))
        slope = np.zeros(self.n_parameters)
        slope[:n] = flips - (flips + stays) * own
        if self.targets is not None:
            value -= self.n_classes * np.log(self.n_classes - 1)
        curvature = np.diag(np.zeros(self.n_parameters))
        curvature[np.arange(n), np.arange(n)] = (flips + stays) * own * (1 - own)
        if self.n_ratios:
            a, total = self.target_count, float(self.concentration or 0.0)
            value += a * np.log(targets).sum()
            value += self.n_classes * (gammaln(total) - (self.n_classes - 1) * gammaln(a))
            slope[n:] = (a - total * targets[:, :-1]).ravel()
            for k, m in enumerate(targets[:, :-1]):
                place = slice(n + k * self.n_ratios, n + (k + 1) * self.n_ratios)
                curvature[place, place] = total * (np.diag(m) - np.outer(m, m))
        return float(value), slope, curvature

    def jacobian(self, theta: Floats) -> Floats:
        """Return dT_kj / (rate and ratios of row k), of shape (n_classes, n_classes, 1 + n_ratios).

        A rate that all classes share counts for every row, see :meth:`gathered`.
        """
        rates, targets = self.parts(theta)
        K = self.n_classes
        derivative = np.zeros((K, K, 1 + self.n_ratios))
        for k in range(K):
            others, (r, m) = np.flatnonzero(self._off[k]), (rates[k], targets[k])
            derivative[k, k, 0] = -r * (1 - r)
            derivative[k, others, 0] = r * (1 - r) * m
            if self.n_ratios:
                derivative[k, others, 1:] = r * (np.diag(m) - np.outer(m, m))[:, :-1]
        return derivative

    def gathered(self) -> NDArray[np.intp]:
        """Return the position of every row's rate and ratios among the parameters."""
        K, n = self.n_classes, self.n_rates
        place = np.zeros((K, 1 + self.n_ratios), dtype=np.intp)
        place[:, 0] = np.arange(K) if self.per_class else 0
        place[:, 1:] = n + np.arange(K * self.n_ratios).reshape(K, -1)
        return place

    def laplace_correction(self, counts: Floats) -> float:
        """Return what Laplace's method leaves out of the integral over the parameters.

        It is exact for the Dirichlet distributions that labels seen without x would leave: without
        data, for the prior, and nearly nothing where there are many.
        """
        if self.per_class is None:
            return 0.0
        flipped = counts[self._off].reshape(self.n_classes, -1)
        pairs = np.column_stack([flipped.sum(axis=1), np.diag(counts)])
        if not self.per_class:
            pairs = pairs.sum(axis=0, keepdims=True)
        prior = np.array([SETTINGS.prior_flips, SETTINGS.prior_stays])
        correction = _dirichlet_gap(pairs + prior).sum()
        if self.n_ratios:
            correction += _dirichlet_gap(flipped + self.target_count).sum()
        return float(correction)


def structures(n_classes: int, *, free: bool) -> list[NoiseStructure]:
    """Return the structures that are compared, simple ones first."""
    found = [
        NoiseStructure("none", n_classes, None),
        NoiseStructure(ONE_RATE, n_classes, per_class=False),
        NoiseStructure("one rate per class", n_classes, per_class=True),
    ]
    if free and n_classes > 2:
        found += [
            NoiseStructure(FEW_TARGETS, n_classes, False, 1.0),
            NoiseStructure("one rate per class, few targets", n_classes, True, 1.0),
            NoiseStructure("free", n_classes, True, n_classes - 1.0),
        ]
    return found


def _dirichlet_gap(counts: Floats) -> Floats:
    """Return log of the exact over Laplace's integral of prod m^counts in log-ratios, by rows."""
    total, n = counts.sum(axis=1), counts.shape[1] - 1
    shares = counts / total[:, None]
    exact = gammaln(counts).sum(axis=1) - gammaln(total)
    top = (counts * np.log(shares)).sum(axis=1)
    determinant = n * np.log(total) + np.log(shares).sum(axis=1)
    return np.asarray(exact - top - 0.5 * (n * LOG_2_PI - determinant))
