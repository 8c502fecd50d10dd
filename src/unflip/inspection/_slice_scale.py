"""How much noise one slice has, of more than two classes: T = I + s D, with D of all rows."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import softmax
from scipy.stats import chi2

from unflip._utils.typing import Codes, Floats
from unflip.diagnostics import LEVEL
from unflip.inspection._slice_likelihood import Interval, Profile, wider
from unflip.inspection._slice_settings import SETTINGS
from unflip.noise import MAX_TOTAL_RATE


def direction_of(T: Floats) -> Floats:
    """Return D = (T - I) / s with s the greatest rate; where there is none, flips go anywhere."""
    size = len(T)
    flips = T - np.eye(size)
    largest = float(-np.diag(flips).min())
    if largest < 1e-9:
        return np.full((size, size), 1 / (size - 1)) - np.eye(size) * size / (size - 1)
    return np.asarray(flips / largest)


@dataclass(frozen=True)
class SliceRows:
    """The rows of a slice: the logarithm of P(true | x), and the labels."""

    log_clean: Floats
    codes: Codes
    direction: Floats

    @classmethod
    def of(cls, clean: Floats, codes: Codes, direction: Floats) -> "SliceRows":
        """Take the rows."""
        clean = np.clip(clean, SETTINGS.smallest_clean_probability, None)
        return cls(np.log(clean), codes, direction)

    def profile(self, scales: Floats) -> Profile:
        r"""Return for every s the log-likelihood with the best shifts, and the share of flips.

        P(noisy=y | x) = sum_k c_k (I + s D)[k, y] with c = softmax(log P(true | x) + b). The shifts
        b climb by the information that true labels would give, which is more than there is: steps
        are too short, and go uphill. `prior` is the mean of -D[k, k] over true classes, by which s
        becomes the share of wrong labels.
        """
        size = len(self.direction)
        shift, found, flips = np.zeros(size), [], []
        deviation, least = SETTINGS.shift_deviation, SETTINGS.smallest_label_probability
        for s in scales.tolist():
            # beyond some s a class would have less than no label of its own
            chance = np.maximum(np.eye(size) + s * self.direction, least)[:, self.codes].T
            for _ in range(SETTINGS.shift_steps_of_more):
                clean = softmax(self.log_clean + shift, axis=1)
                joint = clean * chance
                noisy = joint.sum(axis=1)
                score = (joint / noisy[:, None] - clean).sum(axis=0) - shift / deviation**2
                information = np.diag(clean.sum(axis=0) + deviation**-2) - clean.T @ clean
                step = np.linalg.solve(information, score)
                shift = shift + step
                if np.abs(step).max() < SETTINGS.settled_shift:
                    break
            clean = softmax(self.log_clean + shift, axis=1)
            noisy = (clean * chance).sum(axis=1)
            penalty = shift @ shift / (2 * deviation**2)
            found.append(float(np.log(noisy).sum() - penalty))
            flips.append(float(-np.diag(self.direction) @ clean.mean(axis=0)))
        return Profile(np.array(found), np.array(flips))


def scale_of_all(slices: Sequence[SliceRows], scales: Floats) -> Profile:
    """Return the log-likelihood of one s for all slices, each with its own shifts."""
    profiles = [rows.profile(scales) for rows in slices]
    size = np.array([rows.codes.size for rows in slices])
    flips = np.average([each.prior for each in profiles], axis=0, weights=size)
    return Profile(np.sum([each.likelihood for each in profiles], axis=0), flips)


@dataclass(frozen=True)
class ScaleRegion:
    """Where the likelihood of s is near its maximum."""

    # The greatest log-likelihood.
    likelihood: float
    scale: float
    # The share of wrong labels there.
    share: float
    # 95 % intervals of both.
    scales: Interval
    shares: Interval

    def widened(self, spread: Floats) -> "ScaleRegion":
        """Return the region with more spread about the share, down and up, added in squares."""
        flips = self.share / self.scale if self.scale > 0 else 1.0
        return replace(
            self,
            scales=wider(self.scale, self.scales, spread / flips),
            shares=wider(self.share, self.shares, spread),
        )


def scale_region(profile: Callable[[Floats], Profile]) -> ScaleRegion:
    """Return where the likelihood is near its maximum, on a grid that is narrowed to there."""
    low, high = 0.0, MAX_TOTAL_RATE
    drop, n_values = chi2.ppf(LEVEL, 1) / 2, SETTINGS.scale_values
    for _ in range(SETTINGS.scale_grids):
        scales = np.linspace(low, high, n_values)
        found = profile(scales)
        lacking = found.likelihood.max() - found.likelihood
        near, step = scales[lacking <= 1.5 * drop], (high - low) / (n_values - 1)
        low, high = max(near.min() - step, 0.0), min(near.max() + step, MAX_TOTAL_RATE)
    best = int(lacking.argmin())
    ends = _end(scales, lacking, best, -1, drop), _end(scales, lacking, best, 1, drop)
    # the share of flips changes slowly with s
    shares = tuple(float(end * np.interp(end, scales, found.prior)) for end in ends)
    share = float(scales[best] * found.prior[best])
    likelihood, scale = float(found.likelihood[best]), float(scales[best])
    return ScaleRegion(likelihood, scale, share, ends, (shares[0], shares[1]))


def _end(scales: Floats, lacking: Floats, best: int, side: int, drop: float) -> float:
    """Return where the likelihood has fallen by `drop` on one side of its maximum."""
    outside = np.flatnonzero(lacking[best::side] > drop)
    if not outside.size:
        return float(scales[::side][-1])
    k = best + side * int(outside[0])
    # between neighbours the root of what is lacking is nearly straight
    inner, outer = np.sqrt(lacking[k - side]), np.sqrt(lacking[k])
    part = (np.sqrt(drop) - inner) / (outer - inner)
    return float(scales[k - side] + part * (scales[k] - scales[k - side]))


def spread_of_share(interval: Interval | None, together: ScaleRegion) -> Floats:
    """Return by how much the share is uncertain because P(true | x) is, down and up.

    So much that one share for all rows has the channel's interval, which knows of both
    uncertainties; where the channel's share is another one, that too is P(true | x)'s doing.
    """
    if interval is None:
        return np.zeros(2)
    low, high = interval
    of_both = np.maximum([together.share - low, high - together.share], 0.0)
    of_one = np.abs(np.array(together.shares) - together.share)
    return np.sqrt(np.maximum(of_both**2 - of_one**2, 0.0))
