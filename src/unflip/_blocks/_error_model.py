"""The error model that is fitted to checked samples, for samples that come in blocks."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from unflip._blocks._rows import Blocks, LabelCounts, RowRequest, fetch_rows, label_codes
from unflip._utils.simplex import scaled_rows
from unflip._utils.typing import Array, Codes, Floats, Rows
from unflip._utils.validation import Labels
from unflip.checked import CheckedLabels, Estimate
from unflip.checked.internals import (
    MIN_CHECKED,
    Evidence,
    Features,
    HypothesisMixture,
    Predicted,
    diagnose_checked,
    estimate_predicted,
    fit_checked,
)
from unflip.checked.internals import label_error_rate as error_ratio
from unflip.diagnostics import LEVEL, Diagnostic
from unflip.noise import Noise
from unflip.weights import LabelPosterior, Totals


@dataclass(frozen=True)
class BlockErrorModel:
    """P(true | x, observed label) from checked samples and noisy labels, block by block."""

    # How errors arise.
    mixture: HypothesisMixture
    # Turns rows into numbers.
    features: Features
    # The rates by the labels alone.
    own_rates: Noise
    # The error rate counted in the samples that were drawn; None where too few were.
    error_rate: Estimate | None
    # Findings about the checked samples.
    findings: list[Diagnostic]

    @property
    def hypotheses(self) -> dict[str, float]:
        """The weight of each hypothesis on how errors arise."""
        return self.mixture.shares

    def label_proba(self, X: Rows, noisy: Floats, codes: Codes, classes: Array) -> Floats:
        """Return P(true = k | x, observed label) of a block."""
        own = LabelPosterior(noisy, codes, self.own_rates, classes).proba
        x = self.features.transform(X)
        return self.mixture.predict(Evidence(own, scaled_rows(noisy), x, codes))


def fit_error_model(
    blocks: Blocks,
    counts: LabelCounts,
    predict: Callable[[Rows, Codes], Floats],
    rates: Noise,
    totals: Totals,
    checked: CheckedLabels,
) -> BlockErrorModel:
    """Fit the error model to the checked samples, which are fetched in one pass."""
    n_rows = counts.n_rows.sum(axis=1)
    if n_rows.sum() != counts.n_all:
        raise ValueError(
            f"{counts.n_all - n_rows.sum()} rows have the weight 0, and checked rows are counted "
            "by their positions among all rows: leave out such rows before, or checked=."
        )
    classes = counts.classes
    # only the number of labels and the classes are used
    labels = Labels(classes, np.broadcast_to(np.intp(0), counts.n_all))
    truth, draws = checked.truth(labels), checked.draws(labels)
    few = fetch_rows(blocks, [RowRequest(checked.rows, n_rows)])[0]
    codes = label_codes(few.y, classes)
    noisy = predict(few.X, codes)
    own = LabelPosterior(noisy, codes, rates, classes).proba
    held_out = scaled_rows(noisy)
    features = Features.of(few.X, np.arange(codes.size), held_out)
    seen = Evidence(own, held_out, features.transform(few.X), codes)
    mixture = fit_checked(checked, truth, draws, seen)
    alone = totals.error_rate
    share = None
    if draws.rows.size >= MIN_CHECKED:
        drawn = np.flatnonzero(checked.is_representative(counts.n_all))
        wrong = 1 - own[drawn, codes[drawn]]
        share = estimate_predicted(
            [error_ratio(codes[drawn])],
            draws._replace(rows=np.arange(drawn.size)),
            [Predicted(wrong, np.ones(drawn.size), alone, 1.0)],
            LEVEL,
            with_model=True,
        )
    return BlockErrorModel(
        mixture, features, rates, share, diagnose_checked(checked, draws, share, alone)
    )
