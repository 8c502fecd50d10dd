"""How many labels are wrong, in one sentence."""

from collections.abc import Sequence
from math import ceil

from unflip.diagnostics._catalogue import MIN_SHOWN, Diagnostic, percent
from unflip.diagnostics._table import MEANINGLESS

UNKNOWN_WIDTH = 0.25
"""Maximum width of the error rate's 95 % interval for an estimate to be reported. On the families
`CHOSEN_ON` of `benchmarks.worlds`, every estimate with a wider one is off by more than 0.05."""

CERTAIN_WIDTH = 0.1
"""Maximum width of an interval for the amount to be called known, unless the estimate is larger."""

FEW_SAMPLES = 200
"""Number of samples below which the sample size is given as the reason for a wide interval."""

MIN_NOISE = 0.01
"""Minimum estimate that is a sign of label errors although its interval starts at 0."""

UNDETERMINED = ("overlap", "little_information", "unexplained_labels", "not_held_out")
"""Codes of warnings that the number of wrong labels may be far off."""


def verdict_of(
    findings: Sequence[Diagnostic],
    value: float,
    interval: tuple[float, float],
    n_samples: int,
    *,
    estimated: bool,
) -> Diagnostic:
    """Return the verdict on the number of wrong labels, as a note."""
    meaningless = [one for one in findings if one.code in MEANINGLESS]
    if meaningless:
        return meaningless[0]
    # a mean over samples may be at the very end of its interval
    low, high = min(interval[0], value), max(interval[1], value)
    count = round(value * n_samples)
    numbers = {
        "value": percent(value),
        "low": percent(low),
        "high": percent(high),
        "count": count,
        "n_samples": n_samples,
    }
    if not estimated:
        return Diagnostic("given_amount" if count else "given_none", "note", numbers)
    unknown = [one for one in findings if one.code in UNDETERMINED and one.severity == "warning"]
    if high - low > UNKNOWN_WIDTH or unknown:
        if n_samples < FEW_SAMPLES:
            return Diagnostic("few_samples", "note", numbers)
        return Diagnostic("unknown_amount", "note", numbers)
    if not count or (low < MIN_SHOWN and value < MIN_NOISE):
        bound = f"At most {percent(high)}" if high >= MIN_SHOWN else "Less than 0.1%"
        return Diagnostic("clean", "note", {"bound": bound})
    if low < MIN_SHOWN:
        return Diagnostic("uncertain_small_amount", "note", numbers)
    known = high - low <= max(CERTAIN_WIDTH, value)
    return Diagnostic("known_amount" if known else "uncertain_amount", "note", numbers)


def labels_to_verify(possible: tuple[float, float], value: float, n_samples: int) -> int | None:
    """Return how many random labels to verify to halve the range; None if that takes most of them.

    A 95 % interval from n labels is about 4 sqrt(p (1 - p) / n) wide.
    """
    width = possible[1] - possible[0]
    share = min(max(value, width / 4), 0.5)
    n = ceil(share * (1 - share) * (8 / width) ** 2 / 10) * 10 if width > 0 else n_samples
    return n if n < n_samples / 2 else None
