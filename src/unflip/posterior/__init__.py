"""Stage 1: P(noisy y | x), by a channel, any classifier, kernel densities or density ratios."""

from unflip.posterior._aliases import PosteriorLike as PosteriorLike
from unflip.posterior._aliases import as_posterior as as_posterior
from unflip.posterior._aliases import make_posterior
from unflip.posterior._base import BasePosterior, fit_posterior
from unflip.posterior._base import cross_fit as cross_fit
from unflip.posterior._channel import ChannelPosterior
from unflip.posterior._kde import KernelDensityPosterior
from unflip.posterior._multiclass_channel import MulticlassChannelPosterior
from unflip.posterior._noisy_channel import EvidenceTest
from unflip.posterior._probabilistic import ProbabilisticPosterior
from unflip.posterior._ratio import DensityRatioPosterior
from unflip.posterior._selected import SelectedPosterior

__all__ = [
    "BasePosterior",
    "ChannelPosterior",
    "DensityRatioPosterior",
    "EvidenceTest",
    "KernelDensityPosterior",
    "MulticlassChannelPosterior",
    "ProbabilisticPosterior",
    "SelectedPosterior",
    "fit_posterior",
    "make_posterior",
]
