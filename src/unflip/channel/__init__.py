"""The noise model P(observed | x) = softmax(t(x)) T, for any number of classes.

t = F(x) w is integrated out (Laplace), so that the evidence of the noisy labels is a function of T
alone; T has one of several structures, which their evidence weighs against each other.
"""

from unflip.channel._check import (
    DOUBTED,
    LEAST_CHECKED,
    LEAST_DISAGREEMENT,
    MOST_LEAVES,
    REFUTED,
    score_of_folds,
)
from unflip.channel._choose import FEATURES, SoftmaxSample
from unflip.channel._copies import distinct_rows, starts_of_equal
from unflip.channel._design import (
    LATENT_VARIANCE,
    MAX_VARIANCE,
    MIN_VARIANCE,
    TINY,
    VARIANCE_OFFSET,
    singles,
)
from unflip.channel._distribution import shortest_ranges
from unflip.channel._features import ChannelFeatures
from unflip.channel._fit import FittedRows, SoftmaxChannel, fit_softmax_channel
from unflip.channel._outcomes import EvidenceTest, ModelCheck
from unflip.channel._rates import (
    EXPLORED,
    NEGLIGIBLE,
    Box,
    CertainRates,
    GridSurface,
    RatePosterior,
    box_of,
    narrow,
)
from unflip.channel._sharpness import LEAST_GAIN, SHARPEST
from unflip.channel._structure import NO_NOISE
from unflip.channel._wide_rows import RidgeScores, fit_reducer, reducer

__all__ = [
    "DOUBTED",
    "EXPLORED",
    "FEATURES",
    "LATENT_VARIANCE",
    "LEAST_CHECKED",
    "LEAST_DISAGREEMENT",
    "LEAST_GAIN",
    "MAX_VARIANCE",
    "MIN_VARIANCE",
    "MOST_LEAVES",
    "NEGLIGIBLE",
    "NO_NOISE",
    "REFUTED",
    "SHARPEST",
    "TINY",
    "VARIANCE_OFFSET",
    "Box",
    "CertainRates",
    "ChannelFeatures",
    "EvidenceTest",
    "FittedRows",
    "GridSurface",
    "ModelCheck",
    "RatePosterior",
    "RidgeScores",
    "SoftmaxChannel",
    "SoftmaxSample",
    "box_of",
    "distinct_rows",
    "fit_reducer",
    "fit_softmax_channel",
    "narrow",
    "reducer",
    "score_of_folds",
    "shortest_ranges",
    "singles",
    "starts_of_equal",
]
