"""Stages 1 and 2 on blocks of rows, and the sums over all rows."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from unflip._blocks._error_model import BlockErrorModel, fit_error_model
from unflip._blocks._held_out import HeldOut
from unflip._blocks._label_model import LabelModel, block_joint_counts, block_totals
from unflip._blocks._rows import (
    Blocks,
    Fetched,
    LabelCounts,
    RowRequest,
    check_same_rows,
    count_labels,
    fetch_rows,
)
from unflip._blocks._samples import ClassSamples, numbers
from unflip._features import (
    FeatureFit,
    choose_posterior,
    diagnose,
    estimate_from_features,
    estimate_from_posterior,
    noise_model,
)
from unflip._utils.sampling import drawn_rows
from unflip._utils.typing import RandomState
from unflip._utils.validation import MIN_SAMPLES, check_count, check_labels
from unflip.checked import CheckedLabels
from unflip.checked.internals import has_checked, rates_of
from unflip.diagnostics import MEANINGLESS, Diagnostic
from unflip.estimate import NoiseEstimate
from unflip.noise_rates import BaseRates, RatesLike, needs_rows
from unflip.posterior import BasePosterior, PosteriorLike
from unflip.weights import Totals

MAX_ROWS = 20_000
"""Default number of samples to fit P(noisy y | x) and the rates to."""

RATE_ROWS = 500_000
"""Number of samples for rate estimators that need P(noisy y | x) only."""


@dataclass(frozen=True)
class BlockFit:
    """The stages fitted to all blocks."""

    # The fitted posterior and rates.
    model: LabelModel
    # The fitted rate estimator; None if the rates were given.
    rate_estimator: BaseRates | None
    # The sums over all rows.
    totals: Totals
    # Findings about the rates.
    diagnostics: list[Diagnostic]
    # The estimate from the samples that were drawn for the fit.
    drawn: NoiseEstimate
    # The error model that was fitted to checked samples.
    error_model: BlockErrorModel | None = None


def fit_blocks(
    blocks: Blocks,
    posterior: PosteriorLike,
    noise_rates: RatesLike,
    *,
    max_rows: int = MAX_ROWS,
    random_state: np.random.RandomState | None = None,
    checked: CheckedLabels | None = None,
) -> BlockFit:
    """Fit stages 1 and 2, then sum over all rows.

    The first pass counts the labels, and the last one sums over all rows. In between, a density
    ratio that is a sum over rows makes a few passes per class; any other posterior needs one pass,
    which fetches the drawn rows.
    """
    some_checked = has_checked(checked)
    check_count(max_rows, "max_rows", least=MIN_SAMPLES)
    counts = count_labels(blocks)
    classes = counts.classes
    chosen = choose_posterior(posterior, noise_rates, classes.size, random_state=random_state)
    if chosen.by_sums:
        found = _fit_sums(
            blocks, counts, chosen, noise_rates, max_rows=max_rows, random_state=random_state
        )
        held_out = uncertain = None
    else:
        # draw the samples that a noise model would draw in memory
        drawing = chosen.get_params() if chosen.estimates_rates else {}
        few = _draw(
            blocks,
            counts,
            drawing.get("max_rows", max_rows),
            drawing.get("random_state", random_state),
        )
        labels = check_labels(few.y, binary=False)
        found = estimate_from_features(
            chosen, noise_rates, few.X, labels, few.weight, random_state=random_state
        )
        held_out = uncertain = None
        if found.posterior.out_of_fold:
            held_out = HeldOut.of(few.X, labels.codes, found.noise.noisy_proba)
        if found.uncertain is not None:
            linear, proba = found.uncertain
            uncertain = linear, HeldOut.of(few.X, labels.codes, proba)
    model = LabelModel(
        found.posterior, found.noise.noise_rates, classes, held_out=held_out, uncertain=uncertain
    )
    totals = blocks.sum(block_totals, model)
    check_same_rows(totals.n_rows, counts.n_all)
    estimator = found.rate_estimator
    diagnostics = diagnose(
        totals, classes, model.rates, estimator, noise_model(found.posterior, estimator)
    )
    diagnostics += [one for one in found.noise.findings if one.code in MEANINGLESS]
    if checked is None or not some_checked:
        return BlockFit(model, estimator, totals, diagnostics, found.noise)
    errors = fit_error_model(blocks, counts, model.noisy_proba, model.rates, totals, checked)
    diagnostics += errors.findings
    if errors.error_rate is not None:
        diagnostics, estimator = errors.findings, None
        model = replace(model, error_model=errors)
        model = replace(model, rates=rates_of(blocks.sum(block_joint_counts, model)))
        totals = blocks.sum(block_totals, model)
    return BlockFit(model, estimator, totals, diagnostics, found.noise, errors)


def _fit_sums(
    blocks: Blocks,
    counts: LabelCounts,
    posterior: Any,
    noise_rates: RatesLike,
    *,
    max_rows: int,
    random_state: np.random.RandomState | None,
) -> FeatureFit:
    """Fit density ratios to all rows, and the rates to drawn rows."""
    classes = counts.classes
    samples = [ClassSamples(blocks, counts, k) for k in range(classes.size)]
    head = blocks.head(int(np.argmax(counts.n_rows.sum(axis=1) > 0)))
    fitted = posterior._fit_samples(samples, classes, head, numbers(head))
    if needs_rows(noise_rates, classes.size):
        few = _draw(blocks, counts, max_rows, random_state)
        probabilities = fitted.predict_proba(few.X)
    else:
        few = _draw(blocks, counts, RATE_ROWS, random_state, predictor=fitted)
        probabilities = few.X
    labels = check_labels(few.y, binary=False)
    return estimate_from_posterior(
        fitted, noise_rates, few.X, probabilities, labels, few.weight, random_state
    )


def _draw(
    blocks: Blocks,
    counts: LabelCounts,
    size: int,
    random_state: RandomState,
    predictor: BasePosterior | None = None,
) -> Fetched:
    """Return `size` rows of positive weight, drawn at random, in their order."""
    n_rows = counts.n_rows.sum(axis=1)
    positions = drawn_rows(int(n_rows.sum()), size, random_state)
    few = fetch_rows(blocks, [RowRequest(positions, n_rows)], predictor)[0]
    y = few.y.astype(counts.classes.dtype, copy=False)
    missing = counts.classes[~np.isin(counts.classes, y)]
    if missing.size:
        raise ValueError(
            f"None of the {len(y)} rows drawn to estimate P(noisy y | x) has the class "
            f"{missing.item(0)!r}: it is too rare. Raise max_rows, drop that class, or merge it "
            "with another."
        )
    return Fetched(few.X, y, few.weight)
