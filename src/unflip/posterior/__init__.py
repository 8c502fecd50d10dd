"""Stage 1: P(noisy y | x), by any classifier, by kernel densities, or by density ratios."""

from unflip.posterior._aliases import make_posterior
from unflip.posterior._base import BasePosterior, fit_posterior
from unflip.posterior._kde import KernelDensityPosterior
from unflip.posterior._probabilistic import ProbabilisticPosterior
from unflip.posterior._ratio import DensityRatioPosterior

__all__ = [
    "BasePosterior",
    "DensityRatioPosterior",
    "KernelDensityPosterior",
    "ProbabilisticPosterior",
    "fit_posterior",
    "make_posterior",
]
