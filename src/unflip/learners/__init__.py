"""Stage 4: weighted linear and kernel classifiers for any surrogate loss."""

from unflip.learners._kernel import KernelClassifier
from unflip.learners._linear import LinearClassifier, LossClassifier
from unflip.learners._linear import as_learner as as_learner

__all__ = ["KernelClassifier", "LinearClassifier", "LossClassifier"]
