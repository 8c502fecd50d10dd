"""The method on rows that come in blocks, each of which fits in memory.

P(noisy y | x) and the rates are fitted to rows drawn from all blocks, the very rows that would be
drawn from the same table in memory, or to sums over all blocks. All else is a map over blocks, and
sums of what it gives.
"""

from unflip._blocks._estimator import BlockwiseEstimator, learns_by_blocks, seeded_classifier
from unflip._blocks._fit import MAX_ROWS
from unflip._blocks._judged import (
    LabelModel,
    Suspects,
    block_mislabel_proba,
    block_suggested_label,
    block_suspects,
    block_weights,
    most_suspect,
)
from unflip._blocks._rows import Blocks, first_rows

__all__ = [
    "MAX_ROWS",
    "Blocks",
    "BlockwiseEstimator",
    "LabelModel",
    "Suspects",
    "block_mislabel_proba",
    "block_suggested_label",
    "block_suspects",
    "block_weights",
    "first_rows",
    "learns_by_blocks",
    "most_suspect",
    "seeded_classifier",
]
