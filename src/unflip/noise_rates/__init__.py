"""Stage 2: how often each class was flipped, estimated from the noisy data alone."""

from unflip.noise_rates._aliases import make_rates
from unflip.noise_rates._base import BaseRates, PosteriorRates
from unflip.noise_rates._minimum import MinimumRates

__all__ = ["BaseRates", "MinimumRates", "PosteriorRates", "make_rates"]
