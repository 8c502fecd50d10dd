"""Methods to compare importance reweighting with, behind the same API."""

from unflip.baselines._irbl import IRBLClassifier
from unflip.baselines._natarajan import (
    LabelDependentCostClassifier,
    UnbiasedLoss,
    UnbiasedLossClassifier,
)
from unflip.baselines._stpmkl import StPMKL

__all__ = [
    "IRBLClassifier",
    "LabelDependentCostClassifier",
    "StPMKL",
    "UnbiasedLoss",
    "UnbiasedLossClassifier",
]
