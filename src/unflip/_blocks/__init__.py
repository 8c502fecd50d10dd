"""The method on blocks of rows, each of which fits in memory.

P(noisy y | x) and the rates are fitted to rows drawn from all blocks (the same rows that would be
drawn in memory), or to sums over all blocks. Everything else is a map over blocks, or a sum of its
values.
"""

from unflip._blocks._estimator import BlockwiseEstimator, learns_by_blocks, seeded_classifier
from unflip._blocks._fit import MAX_ROWS
from unflip._blocks._label_model import (
    LabelModel,
    Suspects,
    block_mislabel_histogram,
    block_mislabel_proba,
    block_suggested_label,
    block_suspects,
    block_weights,
    most_suspect,
)
from unflip._blocks._rows import BlockFunction, Blocks, first_rows

__all__ = [
    "MAX_ROWS",
    "BlockFunction",
    "Blocks",
    "BlockwiseEstimator",
    "LabelModel",
    "Suspects",
    "block_mislabel_histogram",
    "block_mislabel_proba",
    "block_suggested_label",
    "block_suspects",
    "block_weights",
    "first_rows",
    "learns_by_blocks",
    "most_suspect",
    "seeded_classifier",
]
