"""Stage 4 for any surrogate loss: linear and kernel classifiers that take weights."""

from unflip.learners._kernel import KernelClassifier
from unflip.learners._linear import LinearClassifier, LossClassifier

__all__ = ["KernelClassifier", "LinearClassifier", "LossClassifier"]
