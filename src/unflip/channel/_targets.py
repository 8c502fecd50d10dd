r"""Noise that takes every class for one other: which one, and how sure that is.

With the rates and g at a maximum, the likelihood that class k is flipped to j instead of to its
present target changes by rows labelled j or the present target alone,

    log L(k, j) = const + sum_{i: y_i = j} log(1 + g_ik r_k / b_ik),

b_ik being P(noisy=y_i | x_i) without the flips of class k. It gives every class's best target, the
chances of the others, and what they add to the evidence.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from unflip._utils.typing import Codes, Floats
from unflip.channel._design import ChannelDesign
from unflip.channel._maximise import Mode, maximise
from unflip.channel._settings import SETTINGS
from unflip.channel._structure import (
    FEW_TARGETS,
    ONE_RATE,
    ONE_TARGET,
    NoiseStructure,
)


@dataclass(frozen=True)
class TargetMode(Mode):
    """The maximum of the evidence with one target for every class."""

    # Logarithms of the probability of each target given those of the other classes.
    log_chances: Floats
    # What targets other than the best add to the log-evidence.
    gain: float

    @property
    def log_evidence(self) -> float:
        """Log P(noisy labels | structure): the parameters and the targets summed out."""
        return super().log_evidence + self.gain

    @property
    def mean_matrix(self) -> Floats:
        """T with every target by its probability."""
        rates, _ = self.structure.parts(self.fit.theta)
        mean = np.exp(self.log_chances) * rates[:, None]
        mean[np.diag_indices_from(mean)] = 1 - rates
        return np.asarray(mean)

    def draws(self, size: int, random: np.random.RandomState) -> Floats:
        """Return matrices from the distribution of T, of shape (size, n_classes, n_classes)."""
        drawn = super().draws(size, random)
        K = self.fit.design.n_classes
        edges = np.exp(self.log_chances).cumsum(axis=1)
        for k in range(K):
            flips = 1 - drawn[:, k, k]
            targets = np.searchsorted(edges[k], random.uniform(size=size) * edges[k, -1])
            drawn[:, k] = np.where(np.arange(K) == k, 1 - flips[:, None], 0.0)
            drawn[np.arange(size), k, np.minimum(targets, K - 1)] += flips
        return drawn


def maximise_targets(
    design: ChannelDesign,
    per_class: bool,
    start: Mode,
    targets: Codes | None = None,
    variance: Floats | None = None,
    tol: float = SETTINGS.tolerance,
) -> TargetMode:
    """Return the maximum over rates and targets, from the maximum of another structure."""
    if targets is None:
        targets = _likeliest_targets(start)
    best: TargetMode | None = None
    for _ in range(SETTINGS.target_rounds):
        mode = _maximised(design, per_class, best or start, targets, variance, tol)
        if best is not None and mode.log_evidence <= best.log_evidence:
            break
        best = mode
        chosen = mode.log_chances.argmax(axis=1)
        if (chosen == targets).all():
            break
        targets = chosen
    assert best is not None
    return best


def one_target_modes(
    found: dict[str, Mode], design: ChannelDesign, known: Mode | None = None
) -> list[Mode]:
    """Return the maxima with one target for each class, with one rate and with one per class."""
    if design.n_classes < 3:
        return []
    modes = [] if known is None else [known]
    sought = (ONE_RATE, FEW_TARGETS) if known is None else (FEW_TARGETS,)
    starts = [found[name] for name in sought if name in found]
    top = max(mode.log_evidence for mode in found.values())
    by_targets = {tuple(_likeliest_targets(start)): start for start in starts}
    modes += [
        maximise_targets(design, False, start, np.array(targets))
        for targets, start in by_targets.items()
    ]
    best = max(modes, key=lambda mode: mode.log_evidence)
    if best.log_evidence < top - SETTINGS.structure_gap:
        return [best]
    return [best, maximise_targets(design, True, best, variance=best.fit.variance)]


def _likeliest_targets(mode: Mode) -> Codes:
    rates, _ = mode.structure.parts(mode.fit.theta)
    rates = np.maximum(rates, SETTINGS.starting_rate)
    return np.asarray(_log_likelihoods(mode, rates).argmax(axis=1))


def _maximised(
    design: ChannelDesign,
    per_class: bool,
    start: Mode,
    targets: Codes,
    variance: Floats | None,
    tol: float,
) -> TargetMode:
    structure = NoiseStructure(
        "one rate per class, one target" if per_class else ONE_TARGET,
        design.n_classes,
        per_class,
        targets=tuple(targets.tolist()),
    )
    theta = structure.matched(start.structure, start.fit.theta)
    held = variance is not None
    place = theta, start.fit.variance if variance is None else variance, start.fit.unscaled_coef
    fit = maximise(design, structure, *place, held=held, tol=tol).fit
    logs = _log_likelihoods(Mode(fit), structure.parts(fit.theta)[0])
    total = logsumexp(logs, axis=1, keepdims=True)
    now = logs[np.arange(len(logs)), targets]
    return TargetMode(fit, logs - total, float((total[:, 0] - now).sum()))


def _log_likelihoods(mode: Mode, rates: Floats) -> Floats:
    """Return log L(k, j) but for what does not depend on j; -inf where j is k."""
    design, g, T = mode.fit.design, mode.fit.clean, mode.fit.T
    own = np.arange(len(g)), design.codes
    logs = np.empty((design.n_classes, design.n_classes))
    for k in range(design.n_classes):
        flips = np.where(design.codes == k, 0.0, T[k, design.codes])
        without = np.maximum(mode.fit.noisy[own] - g[:, k] * flips, SETTINGS.smallest_divisor)
        gained = design.weight * np.log1p(g[:, k] * rates[k] / without)
        logs[k] = np.bincount(design.codes, gained, minlength=design.n_classes)
    np.fill_diagonal(logs, -np.inf)
    return logs
