"""Joint estimate of the rates and g in P(noisy=+1 | x) = rho_neg + (1 - rho_pos - rho_neg) g(x).

g is integrated out: the evidence of the noisy labels is a function of the rates alone.
"""

from unflip.posterior._noisy_channel._check import (
    ModelCheck,
    Scored,
    ScoredChannel,
    check_channel,
    fit_scored_channel,
)
from unflip.posterior._noisy_channel._features import ChannelFeatures, row_keys, shuffled_keys
from unflip.posterior._noisy_channel._fit import (
    MIN_MIXED_SHARE,
    N_GRID,
    ChannelSample,
    Evidence,
    NoisyChannel,
    box_of,
    dense,
    fit_noisy_channel,
)
from unflip.posterior._noisy_channel._surface import EvidenceTest

__all__ = [
    "MIN_MIXED_SHARE",
    "N_GRID",
    "ChannelFeatures",
    "ChannelSample",
    "Evidence",
    "EvidenceTest",
    "ModelCheck",
    "NoisyChannel",
    "Scored",
    "ScoredChannel",
    "box_of",
    "check_channel",
    "dense",
    "fit_noisy_channel",
    "fit_scored_channel",
    "row_keys",
    "shuffled_keys",
]
