"""Joint estimate of the rates and g in P(noisy=+1 | x) = rho_neg + (1 - rho_pos - rho_neg) g(x).

g is integrated out: the evidence of the noisy labels is a function of the rates alone.
"""

from unflip.posterior._noisy_channel._copies import distinct_rows
from unflip.posterior._noisy_channel._features import ChannelFeatures
from unflip.posterior._noisy_channel._fit import (
    N_GRID,
    ChannelSample,
    NoisyChannel,
    box_of,
    dense,
    fit_noisy_channel,
)
from unflip.posterior._noisy_channel._surface import EvidenceTest

__all__ = [
    "N_GRID",
    "ChannelFeatures",
    "ChannelSample",
    "EvidenceTest",
    "NoisyChannel",
    "box_of",
    "dense",
    "distinct_rows",
    "fit_noisy_channel",
]
