"""Stage 2: how often each class was flipped, estimated from the noisy data alone."""

from unflip.noise_rates._aliases import make_rates
from unflip.noise_rates._base import BaseRates, PosteriorRates
from unflip.noise_rates._cross_validation import CrossValidatedRates
from unflip.noise_rates._estimate import estimate_rates
from unflip.noise_rates._minimum import MinimumRates
from unflip.noise_rates._scott import ScottRates

__all__ = [
    "BaseRates",
    "CrossValidatedRates",
    "MinimumRates",
    "PosteriorRates",
    "ScottRates",
    "estimate_rates",
    "make_rates",
]
