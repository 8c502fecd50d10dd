"""unflip trains classifiers on labels that have been flipped."""

from unflip._diagnostics.findings import LabelNoiseWarning
from unflip.audit import LabelAudit, find_label_issues
from unflip.checked import CheckedLabels
from unflip.inspection import noise_by_slice
from unflip.noise import InverseRates, NoiseRates, TransitionMatrix, flip_labels
from unflip.reweighting import ImportanceReweightingClassifier
from unflip.weights import importance_weights

__version__ = "0.2.0.dev0"

__all__ = [
    "CheckedLabels",
    "ImportanceReweightingClassifier",
    "InverseRates",
    "LabelAudit",
    "LabelNoiseWarning",
    "NoiseRates",
    "TransitionMatrix",
    "__version__",
    "find_label_issues",
    "flip_labels",
    "importance_weights",
    "noise_by_slice",
]
