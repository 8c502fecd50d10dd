"""Stage 2: how often each class was flipped, estimated from the noisy data alone."""

from unflip.noise_rates import _registry
from unflip.noise_rates._base import admissible_matrix as admissible_matrix
from unflip.noise_rates._base import admissible_rates as admissible_rates
from unflip.noise_rates._base import default_posterior as default_posterior
from unflip.noise_rates._estimate import estimate_rates
from unflip.noise_rates._estimate import fit_rates as fit_rates
from unflip.noise_rates._estimate import for_two_classes as for_two_classes
from unflip.noise_rates._estimate import given_rates as given_rates
from unflip.noise_rates._estimate import needs_rows as needs_rows
from unflip.noise_rates._estimate import trains_classifiers as trains_classifiers
from unflip.noise_rates._registry import *  # noqa: F403  the registry says what is public
from unflip.noise_rates._registry import ALIASES as ALIASES
from unflip.noise_rates._registry import RatesLike as RatesLike

__all__ = ["estimate_rates"]
__all__ += _registry.__all__
