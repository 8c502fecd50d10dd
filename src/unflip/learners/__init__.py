"""Stage 4: weighted linear and kernel classifiers for any surrogate loss."""

from unflip.learners._kernel import KernelClassifier
from unflip.learners._linear import LinearClassifier, LossClassifier

__all__ = ["KernelClassifier", "LinearClassifier", "LossClassifier"]
