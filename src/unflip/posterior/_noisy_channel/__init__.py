"""Joint estimate of the rates and g in P(noisy=+1 | x) = rho_neg + (1 - rho_pos - rho_neg) g(x).

g is integrated out: the evidence of the noisy labels is a function of the rates alone.
"""

from unflip.posterior._noisy_channel._check import (
    Scored,
    ScoredChannel,
    check_channel,
    fit_scored_channel,
)
from unflip.posterior._noisy_channel._fit import (
    ChannelSample,
    Evidence,
    NoisyChannel,
    dense,
    fit_noisy_channel,
)

__all__ = [
    "ChannelSample",
    "Evidence",
    "NoisyChannel",
    "Scored",
    "ScoredChannel",
    "check_channel",
    "dense",
    "fit_noisy_channel",
    "fit_scored_channel",
]
