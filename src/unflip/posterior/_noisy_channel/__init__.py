"""The noisy channel, P(noisy=+1 | x) = rho_neg + (1 - rho_pos - rho_neg) g(x), rates and g at once.

g is integrated out, which leaves the evidence of the noisy labels as a function of the rates alone.
"""

from unflip.posterior._noisy_channel._fit import (
    N_GRID,
    NoisyChannel,
    Sample,
    box_of,
    dense,
    fit_noisy_channel,
)
from unflip.posterior._noisy_channel._surface import EvidenceTest

__all__ = [
    "N_GRID",
    "EvidenceTest",
    "NoisyChannel",
    "Sample",
    "box_of",
    "dense",
    "fit_noisy_channel",
]
