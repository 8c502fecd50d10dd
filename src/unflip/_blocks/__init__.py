"""The method on blocks of rows, each of which fits in memory.

P(noisy y | x) and the rates are fitted to rows drawn from all blocks (the same rows that would be
drawn in memory), or to sums over all blocks. Everything else is a map over blocks, or a sum of its
values.
"""

from unflip._blocks._estimator import BlockwiseAudit as BlockwiseAudit
from unflip._blocks._estimator import BlockwiseReweighting as BlockwiseReweighting
from unflip._blocks._estimator import classifier_has as classifier_has
from unflip._blocks._estimator import learns_by_blocks as learns_by_blocks
from unflip._blocks._label_model import LabelModel as LabelModel
from unflip._blocks._label_model import Suspects as Suspects
from unflip._blocks._label_model import block_labels as block_labels
from unflip._blocks._label_model import block_weights as block_weights
from unflip._blocks._rows import Blocks as Blocks
from unflip._blocks._rows import check_labelled as check_labelled
from unflip._blocks._rows import first_rows as first_rows
