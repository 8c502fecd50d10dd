"""Which features t is linear in: the columns, and more where it helps."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from unflip._utils.typing import Codes, Floats
from unflip.channel._check import leave_one_out
from unflip.channel._climb import Peak, climb
from unflip.channel._compare import ROUGH_STRUCTURE_TOL, first_peaks
from unflip.channel._copies import starts_of_equal
from unflip.channel._design import TINY, SoftmaxDesign
from unflip.channel._evidence import SoftmaxFit
from unflip.channel._features import ChannelFeatures
from unflip.channel._forest import ForestFeatures, scouted_gain
from unflip.channel._structure import ONE_RATE, structures

Features = ChannelFeatures | ForestFeatures

WIDTH, MOST_BUMP_ROWS = 0.5, 3000
"""Width of the bumps, in median distances of two rows, and up to how many rows they are compared
with a forest, which gains more from more rows."""

FEATURES = ("linear", "nystroem", "trees")
"""What t may be linear in: the columns; beside them, Gaussian bumps; or a forest's scores."""

MINIMUM_GAIN_PER_ROW = 0.003
"""Gain of the evidence per row from which on more than the columns is taken: less is not worth what
a forest costs on many rows."""

PILOT_WORK, CHOICE_PILOT_ROWS = 2.5e8, 3000
"""Work, and rows at most, of one evaluation of the evidence where many things are tried."""

LEAST_SCOUTED, SCOUTED_ROWS, SCOUTED_HELP = 500, 1500, 0.001
"""Rows, at least and at most, on which few trees tell whether more than the columns is tried, and
what they must gain per row."""


@dataclass(frozen=True)
class SoftmaxSample:
    """Rows, noisy labels and weights.

    Parameters
    ----------
    rows : ndarray of shape (n_samples, n_columns)
        The rows.
    codes : ndarray of shape (n_samples,)
        Positions of the noisy labels among the classes.
    weight : ndarray of shape (n_samples,)
        How often each row counts.
    n_classes : int
        Number of classes.
    """

    rows: Floats
    codes: Codes
    weight: Floats
    n_classes: int

    def design(
        self, features: Features, n_rows: int, held_out: Floats | None = None
    ) -> SoftmaxDesign:
        """Return the features of the first rows; a forest has held-out scores for them."""
        some = slice(n_rows)
        rows = self.rows[some]
        if isinstance(features, ForestFeatures):
            made = features.transform(rows, held_out)
        else:
            made = features.transform(rows)
        return SoftmaxDesign(
            made,
            features.block,
            self.codes[some],
            self.weight[some],
            self.n_classes,
        )

    def affordable(self, n_features: int, work: float) -> int:
        """Return how many rows an evaluation of the evidence may have."""
        K = self.n_classes
        each = 2 * (K - 1) * n_features**2 + 6 * K**3
        return int(max(work / each, 1000, 40 * K))


@dataclass(frozen=True)
class Candidate:
    """Features with the maxima of the structures that were tried, on some rows."""

    # What they are called.
    name: str
    features: Features
    # The scores that a forest has for the rows of its fit.
    held_out: Floats | None
    # Maxima, by the names of their structures.
    found: dict[str, Peak]

    @property
    def best(self) -> Peak:
        """The highest maximum, but for that of one target, which is the best of many."""
        peaks = [peak for peak in self.found.values() if peak.structure.targets is None]
        return max(peaks, key=lambda peak: peak.log_evidence)

    @property
    def heights(self) -> Floats:
        """The evidence per row at the best T, and with T integrated out if that was sought."""
        integrated = [peak for peak in self.found.values() if peak.structure.n_parameters]
        best = max(integrated or [self.best], key=lambda peak: peak.log_evidence)
        # per row, as the work may allow some features fewer rows
        n_rows = len(best.fit.design.codes)
        return np.array([self.best.fit.log_likelihood, best.log_evidence]) / n_rows


def with_columns(sample: SoftmaxSample, n_centers: int, known: Floats | None) -> Candidate:
    """Return the columns as features, with maxima on some rows."""
    features = ChannelFeatures(None, n_centers).fit(*head_of(sample))
    design = sample.design(features, _pilot_rows(sample, features))
    if known is None:
        found = first_peaks(design, {}, design.first_variance())
    else:
        found = _at(design, known)
    return Candidate("linear", features, None, found)


def may_bend(sample: SoftmaxSample, fit: SoftmaxFit, sharpness: float) -> bool:
    """Return whether the classes may be told apart by more than the columns.

    Few trees are asked whether they see more. Where there are too few rows to ask, or where targets
    may stand for what the columns cannot follow, it is always possible.
    """
    some, structure = slice(SCOUTED_ROWS), fit.structure
    if len(sample.rows) < LEAST_SCOUTED or structure.n_ratios or structure.targets is not None:
        return True
    noisy = np.maximum(leave_one_out(fit, SCOUTED_ROWS, sharpness), TINY)
    gain = scouted_gain(sample.rows[some], sample.codes[some], sample.weight[some], noisy)
    return gain > SCOUTED_HELP


def best_features(
    sample: SoftmaxSample,
    candidates: Sequence[str],
    columns: Candidate,
    n_centers: int,
    known: Floats | None,
    random_state: np.random.RandomState,
) -> Candidate:
    """Return the features of the highest evidence, simple ones first, with maxima on some rows.

    Few targets are first looked for with the columns alone, which cannot explain by themselves what
    noise does, and from there with other features, which might. So features are compared with one
    rate, or at the T of few targets where that is best with the columns; and by the evidence with T
    integrated out, as a T that was found with the columns suits them best.
    """
    if len(candidates) > 1 and len(sample.rows) > MOST_BUMP_ROWS:
        candidates = [name for name in candidates if name != "nystroem"]
    one, leader = structures(sample.n_classes, free=False)[1], columns.best
    T = None if leader.structure.name == ONE_RATE else leader.fit.T
    best = columns if candidates[0] == "linear" else None
    for name in candidates:
        features: Features
        held_out = None
        if name == "linear":
            continue
        if name == "nystroem":
            features = ChannelFeatures(WIDTH, n_centers).fit(*head_of(sample))
        else:
            seed = random_state.randint(np.iinfo(np.int32).max)
            assert isinstance(columns.features, ChannelFeatures)
            features = ForestFeatures(columns.features)
            held_out = features.fit(
                sample.rows, sample.codes, sample.weight, sample.n_classes, seed
            )
        design = sample.design(features, _pilot_rows(sample, features), held_out)
        found = {} if T is None else _at(design, T)
        if known is None:
            variance = design.first_variance()
            found[one.name] = climb(design, one, one.start(), variance, tol=ROUGH_STRUCTURE_TOL)
        candidate = Candidate(name, features, held_out, found)
        if best is None or (candidate.heights - best.heights).max() > MINIMUM_GAIN_PER_ROW:
            best = candidate
    assert best is not None
    if known is not None or best is columns:
        return best
    own = best.found[one.name]
    again = first_peaks(own.fit.design, columns.found, own.fit.variance, own)
    return replace(best, found=again)


def _at(design: SoftmaxDesign, T: Floats) -> dict[str, Peak]:
    """Return the maximum over the variances at one T."""
    none, variance = structures(design.n_classes, free=False)[0], design.first_variance()
    return {none.name: climb(design, none, none.start(), variance, T=T, tol=ROUGH_STRUCTURE_TOL)}


def head_of(sample: SoftmaxSample) -> tuple[Floats, Floats, NDArray[np.intp]]:
    """Return the rows that scales and centers come from, their weights, and the distinct ones."""
    head, weight = sample.rows[:CHOICE_PILOT_ROWS], sample.weight[:CHOICE_PILOT_ROWS]
    return head, weight, np.flatnonzero(starts_of_equal(head))


def _pilot_rows(sample: SoftmaxSample, features: Features) -> int:
    return min(CHOICE_PILOT_ROWS, sample.affordable(features.block.size, PILOT_WORK))
