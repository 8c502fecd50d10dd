"""Stage 1: P(noisy y | x), by a channel, any classifier, kernel densities or density ratios."""

from unflip.posterior import _registry
from unflip.posterior._base import cross_fit as cross_fit
from unflip.posterior._joint import JointPosterior as JointPosterior
from unflip.posterior._registry import *  # noqa: F403  the registry says what is public
from unflip.posterior._registry import ALIASES as ALIASES
from unflip.posterior._registry import PosteriorLike as PosteriorLike
from unflip.posterior._registry import as_posterior as as_posterior

__all__: list[str] = []
__all__ += _registry.__all__
