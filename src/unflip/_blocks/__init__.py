"""The method on blocks of rows, each of which fits in memory.

P(noisy y | x) and the rates are fitted to rows drawn from all blocks (the same rows that would be
drawn in memory), or to sums over all blocks. Everything else is a map over blocks, or a sum of its
values.
"""

from unflip._blocks._estimator import (
    BlockwiseAudit,
    BlockwiseReweighting,
    classifier_has,
    learns_by_blocks,
)
from unflip._blocks._label_model import (
    LabelModel,
    Suspects,
    block_mislabel_proba,
    block_suggested_label,
    block_weights,
)
from unflip._blocks._rows import Blocks, check_labelled, first_rows

__all__ = [
    "Blocks",
    "BlockwiseAudit",
    "BlockwiseReweighting",
    "LabelModel",
    "Suspects",
    "block_mislabel_proba",
    "block_suggested_label",
    "block_weights",
    "check_labelled",
    "classifier_has",
    "first_rows",
    "learns_by_blocks",
]
