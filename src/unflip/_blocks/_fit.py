"""Stages 1 and 2 on rows that lie in blocks, and the sums over all rows."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unflip._blocks._judged import LabelModel, block_totals
from unflip._blocks._rows import Blocks, Counts, Fetched, Wanted, check_same_rows, counted, fetched
from unflip._blocks._samples import ClassSamples, numbers
from unflip._diagnostics import Diagnostic
from unflip._label_posterior import Totals
from unflip._sampling import drawn_rows
from unflip._stages import choose_posterior, fit_stages, judge_estimate
from unflip._validation import MINIMUM_ROWS, check_count
from unflip.noise_rates import fit_rates, needs_rows
from unflip.posterior import ChannelPosterior, DensityRatioPosterior

Array = NDArray[Any]

MAX_ROWS = 20_000
"""Rows that P(noisy y | x) and the rates are fitted to, where nothing else is said."""

RATE_ROWS = 500_000
"""Rows whose P(noisy y | x) the rates are estimated from, where they need nothing else of them."""


@dataclass(frozen=True)
class BlockFit:
    """What was found of all blocks.

    Parameters
    ----------
    model : LabelModel
        What the labels of any block are judged by.
    rate_estimator : BaseRates or None
        What the rates were estimated by; None where they were given.
    totals : Totals
        The sums over all rows.
    diagnostics : list of Diagnostic
        Why the rates may not be trusted.
    """

    model: LabelModel
    rate_estimator: Any
    totals: Totals
    diagnostics: list[Diagnostic]


def fit_blocks(
    blocks: Blocks,
    posterior: Any,
    noise_rates: Any,
    *,
    max_rows: int = MAX_ROWS,
    random_state: np.random.RandomState | None = None,
    estimate: str = "median",
) -> BlockFit:
    """Fit stages 1 and 2, and sum up what they say of all rows.

    The first pass is over the labels, to know how many rows there are and of which classes; the
    last one over all rows, for the sums. In between, a density ratio that is a sum over rows passes
    over all of them a few times for each class; of other posteriors one pass takes the rows that
    are drawn to fit them to.

    Parameters
    ----------
    blocks : Blocks
        The noisy data.
    posterior, noise_rates, random_state, estimate
        As for :func:`~unflip._stages.fit_stages`.
    max_rows : int, default=20_000
        How many rows are drawn; a channel has a `max_rows` of its own, which holds for it.
    """
    check_count(max_rows, "max_rows", least=MINIMUM_ROWS)
    counts = counted(blocks)
    classes = counts.classes
    chosen = choose_posterior(
        posterior, noise_rates, classes.size, random_state=random_state, estimate=estimate
    )
    if isinstance(chosen, DensityRatioPosterior) and chosen._by_sums:
        model, estimator = _fit_sums(
            blocks, counts, chosen, noise_rates, max_rows=max_rows, random_state=random_state
        )
    else:
        # a channel would draw from rows in memory itself: these are the rows that it would take
        drawing: Any = chosen if isinstance(chosen, ChannelPosterior) else None
        few = _drawn(
            blocks,
            counts,
            max_rows if drawing is None else drawing.max_rows,
            random_state if drawing is None else drawing.random_state,
        )
        stages = fit_stages(
            chosen, noise_rates, few.X, few.y, few.weight, random_state=random_state
        )
        model, estimator = LabelModel(stages.posterior, stages.rates, classes), stages.estimator
    totals = blocks.sum(block_totals, model)
    check_same_rows(totals.n_rows, counts.n_all)
    diagnostics = judge_estimate(totals, classes, model.rates, estimator)
    return BlockFit(model, estimator, totals, diagnostics)


def _fit_sums(
    blocks: Blocks,
    counts: Counts,
    posterior: DensityRatioPosterior,
    noise_rates: Any,
    *,
    max_rows: int,
    random_state: np.random.RandomState | None,
) -> tuple[LabelModel, Any]:
    """Return density ratios of all rows, and rates from what they say of many."""
    classes = counts.classes
    samples = [ClassSamples(blocks, counts, k) for k in range(classes.size)]
    head = blocks.head(int(np.argmax(counts.n_rows.sum(axis=1) > 0)))
    fitted = posterior._fit_samples(samples, classes, head, numbers(head))
    if needs_rows(noise_rates, classes.size):
        few = _drawn(blocks, counts, max_rows, random_state)
        probabilities = fitted.predict_proba(few.X)
    else:
        few = _drawn(blocks, counts, RATE_ROWS, random_state, read=fitted)
        probabilities = few.X
    rates, estimator = fit_rates(
        noise_rates, few.X, few.y, few.weight, random_state, noisy_posterior=probabilities
    )
    return LabelModel(fitted, rates, classes), estimator


def _drawn(
    blocks: Blocks, counts: Counts, size: int, random_state: Any, read: Any = None
) -> Fetched:
    """Return `size` of the rows that count, drawn at random, in their order."""
    n_rows = counts.n_rows.sum(axis=1)
    positions = drawn_rows(int(n_rows.sum()), size, random_state)
    few = fetched(blocks, [Wanted(positions, n_rows)], read)[0]
    y = few.y.astype(counts.classes.dtype, copy=False)
    missing = counts.classes[~np.isin(counts.classes, y)]
    if missing.size:
        raise ValueError(
            f"no row of class {missing[0].item()!r} is among the {len(y)} that were drawn to "
            "estimate P(noisy y | x) from: it is too rare. Raise max_rows; or leave out that "
            "class, or merge it with another."
        )
    return Fetched(few.X, y, few.weight)
