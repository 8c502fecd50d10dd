"""Which features t is linear in: the columns, and more where it helps."""

from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from unflip._utils.typing import Codes, Floats
from unflip.channel._copies import starts_of_equal
from unflip.channel._design import ChannelDesign, affordable_rows
from unflip.channel._explore import Exploration
from unflip.channel._features import ChannelFeatures, LogitFeatures
from unflip.channel._forest import ForestFeatures
from unflip.channel._maximise import at_matrix
from unflip.channel._settings import SETTINGS

Features = ChannelFeatures | ForestFeatures


@dataclass(frozen=True)
class ChannelSample:
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
    one_scale : bool, default=False
        Whether the columns keep their proportions, as the components of an SVD should, instead of
        being standardised.
    """

    rows: Floats
    codes: Codes
    weight: Floats
    n_classes: int
    one_scale: bool = False

    def design(
        self, features: Features, n_rows: int, held_out: Floats | None = None
    ) -> ChannelDesign:
        """Return the features of the first rows; a forest has held-out scores for them."""
        some = slice(n_rows)
        rows = self.rows[some]
        if isinstance(features, ForestFeatures):
            made = features.transform(rows, held_out)
        else:
            made = features.transform(rows)
        return ChannelDesign(
            made,
            features.block,
            self.codes[some],
            self.weight[some],
            self.n_classes,
            features.offset(rows),
        )


@dataclass(frozen=True)
class Candidate:
    """Features, with the maxima of the evidence on some rows."""

    # "linear", "nystroem", "trees" or "logits".
    name: str
    features: Features
    # The scores that a forest has for the rows of its fit.
    held_out: Floats | None
    # What the exploration of T has found.
    maxima: Any
    # The log-evidence per row, as the work may allow some features fewer rows.
    height: float


@dataclass(frozen=True)
class Choice:
    """What features are chosen by: the evidence on some rows."""

    sample: ChannelSample
    exploration: Exploration
    n_centers: int

    def of_logits(self, features: LogitFeatures) -> Candidate:
        """Return rows that are logits themselves, with the columns or without."""
        return self._explored("logits", features.fit(*head_of(self.sample)))

    def columns(self) -> Candidate:
        """Return the columns."""
        return self._explored("linear", self._smooth(None))

    def with_rbf(self, columns: Candidate) -> Candidate:
        """Return the columns and RBF features."""
        return self._explored("nystroem", self._smooth(SETTINGS.rbf_width), columns)

    def smooth(self, columns: Candidate) -> Candidate:
        """Return the columns, or RBF features beside them if these have more evidence.

        RBF features are compared with the columns where these explain most, and without noise,
        before T is explored with them.
        """
        features = self._smooth(SETTINGS.rbf_width)
        if self._gain(features, columns) <= 0:
            return columns
        rbf = self._explored("nystroem", features, columns)
        return rbf if rbf.height > columns.height else columns

    def trees(self, columns: Candidate, random_state: np.random.RandomState) -> Candidate:
        """Return the scores of a forest beside the columns."""
        sample, seed = self.sample, random_state.randint(np.iinfo(np.int32).max)
        features = ForestFeatures(cast("ChannelFeatures", columns.features))
        held_out = features.fit(sample.rows, sample.codes, sample.weight, sample.n_classes, seed)
        return self._explored("trees", features, columns, held_out)

    def _smooth(self, width: float | None) -> ChannelFeatures:
        """Return the columns, and RBF features of a width."""
        features = ChannelFeatures(width, self.n_centers, one_scale=self.sample.one_scale)
        return features.fit(*head_of(self.sample))

    def _design(self, features: Features, held_out: Floats | None = None) -> ChannelDesign:
        """Return the features of as many rows as the work allows."""
        most = affordable_rows(self.sample.n_classes, features.block.size, SETTINGS.pilot_work)
        return self.sample.design(features, min(SETTINGS.pilot_samples, most), held_out)

    def _explored(
        self,
        name: str,
        features: Features,
        columns: Candidate | None = None,
        held_out: Floats | None = None,
    ) -> Candidate:
        """Return features with the maxima of the evidence."""
        design = self._design(features, held_out)
        maxima = self.exploration.explored(design, None if columns is None else columns.maxima)
        height = self.exploration.height(maxima) / len(design.codes)
        return Candidate(name, features, held_out, maxima, height)

    def _gain(self, features: Features, columns: Candidate) -> float:
        """Return how much higher than with the columns the log-evidence may be, in nats."""
        design, best = self._design(features), self.exploration.best(columns.maxima)
        before = best.log_likelihood * len(design.codes) / len(best.design.codes)
        at = partial(at_matrix, design, tol=SETTINGS.rough_tolerance)
        gains = [at(best.T).log_likelihood - before - SETTINGS.rough_tolerance]
        least = self.exploration.least_noise
        if least is not None:
            gains.append(at(least).log_likelihood - before + SETTINGS.explored_drop)
        return max(gains)


def head_of(sample: ChannelSample) -> tuple[Floats, Floats, NDArray[np.intp]]:
    """Return the rows that scales and centers come from, their weights, and the distinct ones."""
    head, weight = sample.rows[: SETTINGS.pilot_samples], sample.weight[: SETTINGS.pilot_samples]
    return head, weight, np.flatnonzero(starts_of_equal(head))
