"""unflip trains classifiers on labels that have been flipped."""

from unflip.noise import InverseRates, NoiseRates, TransitionMatrix, flip_labels
from unflip.reweighting import ImportanceReweightingClassifier
from unflip.weights import importance_weights

__version__ = "0.1.0.dev0"

__all__ = [
    "ImportanceReweightingClassifier",
    "InverseRates",
    "NoiseRates",
    "TransitionMatrix",
    "__version__",
    "flip_labels",
    "importance_weights",
]
