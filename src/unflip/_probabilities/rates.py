"""How sure the rates are that explain the labels of held-out probabilities: rows drawn again."""

from dataclasses import replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from unflip._diagnostics.findings import LEVEL
from unflip._probabilities.hypotheses import FittedRows, fit_again
from unflip._probabilities.label_errors import Mistakes
from unflip._utils.simplex import scaled_rows
from unflip._utils.threads import one_blas_thread
from unflip._utils.typing import Array, Floats
from unflip._utils.validation import check_level
from unflip.noise import NoiseRates, RatesInterval, TransitionMatrix, as_transition_matrix
from unflip.noise_rates import BaseRates

DRAWS = 20
"""Times that the rows are drawn again: the half-width is then known to a sixth."""

DRAWN = 30_000
"""Numbers that each fit is of: the spread is that of so many, scaled to those that there are."""


NETWORK_ERROR = 0.1
"""Standard error that a model's own errors add to a rate, as a share of it: two numbers do not
recalibrate any model exactly (`python -m benchmarks.probability_worlds`)."""


class MistakeRates(BaseRates):
    """The rates of the explanations of labels, with intervals by the bootstrap.

    Notes
    -----
    Rows are drawn with replacement, explanations are fitted again from where the first fit ended,
    and the spread of the rates is taken as normal. Intervals go from what T says alone, or from no
    noise where T leaves most of the doubt open, to what is said with the doubt that is blamed on
    labels, over all explanations that may be right, and beyond either end by that spread.
    `label_error_range_` says what else may be.
    """

    def __init__(
        self,
        mistakes: Mistakes,
        classes: Array,
        rates: NoiseRates | TransitionMatrix,
        n_rows: float,
        said: float,
    ) -> None:
        self.mistakes, self.classes, self.rates = mistakes, classes, rates
        self.n_rows, self.said = n_rows, said
        self.classes_, self.rates_ = classes, rates

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Refuse: these rates come from an audit of held-out probabilities."""
        raise ValueError("these rates come from probabilities: use LabelAudit().fit_posterior.")

    def interval(self, level: float = LEVEL) -> RatesInterval:
        """Return bounds of each rate and of the share of wrong labels."""
        width = float(ndtri((1 + check_level(level)) / 2))
        spread, share_spread = self._spreads
        lowest, highest = self._hull
        low, high = np.maximum(lowest - width * spread, 0), np.minimum(highest + width * spread, 1)
        by_class = self.mistakes.expected
        share = (
            max(min(by_class[0], self.said) - width * share_spread, 0.0),
            min(max(by_class[1], self.said) + width * share_spread, 1.0),
        )
        if self.classes.size > 2:
            return RatesInterval(low, high, level, share)
        return RatesInterval.from_pairs(
            (low[1, 0], high[1, 0]), (low[0, 1], high[0, 1]), level, share
        )

    @cached_property
    def _hull(self) -> tuple[Floats, Floats]:
        """The smallest and the largest entries of T: with the doubt blamed on labels, and without.

        Of each explanation that may be right: their mean is between those that have noise and those
        that have none.

        Where T leaves most of the doubt open, that may all be overlap, and no label be wrong.
        """
        matrix, sample = as_transition_matrix(self.rates).matrix, self.mistakes.sample
        proba = self.mistakes.apply(scaled_rows(np.exp(sample.logs)), sample.codes).proba
        counts = sample.by_label(proba * sample.weight[:, None]).T
        blamed = scaled_rows(counts + matrix)
        counting = zip(self.mistakes.weights, self.mistakes.explanations, strict=True)
        found = [matrix, blamed, *(one.matrix for weight, one in counting if weight > 1 - LEVEL)]
        if self.mistakes.expected[0] == 0:
            found.append(np.eye(len(matrix)))
        return np.min(found, axis=0), np.max(found, axis=0)

    @cached_property
    def _spreads(self) -> tuple[Floats, float]:
        """Standard errors of T's entries and of the share of wrong labels."""
        sample = self.mistakes.sample
        few = sample.every(max(1, sample.codes.size * self.classes.size // DRAWN))
        generator = np.random.default_rng(0)
        p = scaled_rows(np.exp(few.logs))
        with one_blas_thread():
            found = [self._again(few, p, generator) for _ in range(DRAWS)]
        scale = np.sqrt(few.weight.sum() / max(self.n_rows, 1.0))
        matrices, shares = np.array([one[0] for one in found]), np.array([one[1] for one in found])
        spread = scale * matrices.std(axis=0, ddof=1)
        # at least what T's rows, seen themselves, would leave open
        mean = self.mistakes.matrix
        rows = np.maximum(self.n_rows * sample.shares, 1.0)[:, None]
        spread = np.maximum(spread, np.sqrt(mean * (1 - mean) / rows))
        share = (self.said * self.n_rows + 0.5) / (self.n_rows + 1)  # none seen is not none
        at_least = np.sqrt(share * (1 - share) / max(self.n_rows, 1.0))
        share_spread = float(max(scale * shares.std(ddof=1), at_least))
        return (
            np.hypot(spread, NETWORK_ERROR * np.minimum(mean, 1 - mean)),
            float(np.hypot(share_spread, NETWORK_ERROR * self.said)),
        )

    def _again(
        self, few: FittedRows, p: Floats, generator: np.random.Generator
    ) -> tuple[Floats, float]:
        """Return T and the share of wrong labels of one resample."""
        counts = generator.multinomial(few.codes.size, few.weight / few.weight.sum())
        kept = np.flatnonzero(counts)
        weight = counts[kept].astype(float)
        fitted = []
        for one in self.mistakes.explanations:
            rows = FittedRows(one.logs(p[kept]), few.codes[kept], weight)
            fitted.append(fit_again(rows, one, junk=one.junk > 0))
        again = replace(
            self.mistakes,
            explanations=tuple(fitted),
            sample=FittedRows(few.logs[kept], few.codes[kept], weight),
        )
        wrong = again.apply(p[kept], few.codes[kept]).mislabel_proba
        return again.matrix, float(np.average(wrong, weights=weight))
