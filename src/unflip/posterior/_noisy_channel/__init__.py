"""Joint estimate of the rates and g in P(noisy=+1 | x) = rho_neg + (1 - rho_pos - rho_neg) g(x).

g is integrated out: the evidence of the noisy labels is a function of the rates alone.
"""

from unflip.posterior._noisy_channel._check import (
    DOUBTED,
    LEAST_CHECKED,
    LEAST_SURPRISE,
    MOST_LEAVES,
    REFUTED,
    ModelCheck,
    Scored,
    ScoredChannel,
    check_channel,
    fit_scored_channel,
    score_of_folds,
)
from unflip.posterior._noisy_channel._copies import distinct_rows, starts_of_equal
from unflip.posterior._noisy_channel._evidence import (
    LATENT_VARIANCE,
    MAX_VARIANCE,
    MIN_VARIANCE,
    TINY,
    VARIANCE_OFFSET,
    singles,
)
from unflip.posterior._noisy_channel._features import ChannelFeatures, shuffled_keys
from unflip.posterior._noisy_channel._fit import (
    LEAST_GAIN,
    N_GRID,
    SHARPEST,
    ChannelSample,
    Evidence,
    NoisyChannel,
    box_of,
    dense,
    fit_noisy_channel,
)
from unflip.posterior._noisy_channel._surface import NO_NOISE, EvidenceTest

__all__ = [
    "DOUBTED",
    "LATENT_VARIANCE",
    "LEAST_CHECKED",
    "LEAST_GAIN",
    "LEAST_SURPRISE",
    "MAX_VARIANCE",
    "MIN_VARIANCE",
    "MOST_LEAVES",
    "NO_NOISE",
    "N_GRID",
    "REFUTED",
    "SHARPEST",
    "TINY",
    "VARIANCE_OFFSET",
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
    "distinct_rows",
    "fit_noisy_channel",
    "fit_scored_channel",
    "score_of_folds",
    "shuffled_keys",
    "singles",
    "starts_of_equal",
]
