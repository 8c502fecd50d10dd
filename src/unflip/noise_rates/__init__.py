"""Stage 2: how often each class was flipped, estimated from the noisy data alone."""

from unflip.noise_rates._aliases import ALIASES as ALIASES
from unflip.noise_rates._aliases import RatesLike as RatesLike
from unflip.noise_rates._aliases import make_rates
from unflip.noise_rates._base import BaseRates, PosteriorRates
from unflip.noise_rates._base import admissible_matrix as admissible_matrix
from unflip.noise_rates._base import default_posterior as default_posterior
from unflip.noise_rates._channel import ChannelRates
from unflip.noise_rates._counting import ConfidentJointRates, DualTRates
from unflip.noise_rates._cross_validation import CrossValidatedRates
from unflip.noise_rates._estimate import estimate_rates
from unflip.noise_rates._estimate import fit_rates as fit_rates
from unflip.noise_rates._estimate import given_rates as given_rates
from unflip.noise_rates._estimate import known_size as known_size
from unflip.noise_rates._estimate import needs_rows as needs_rows
from unflip.noise_rates._minimum import MinimumRates
from unflip.noise_rates._mixture import BestBinRates
from unflip.noise_rates._scott import ScottRates
from unflip.noise_rates._selective import SelectiveRates

__all__ = [
    "BaseRates",
    "BestBinRates",
    "ChannelRates",
    "ConfidentJointRates",
    "CrossValidatedRates",
    "DualTRates",
    "MinimumRates",
    "PosteriorRates",
    "ScottRates",
    "SelectiveRates",
    "estimate_rates",
    "make_rates",
]
