"""Density ratios r(x) = p_num(x) / p_den(x) from two samples, without estimating a density.

Every estimator has `fit(X_num, X_den)`, `predict(X)` and `score(X_num, X_den)`, and works on blocks
of samples: at most one block of kernel values is held in memory.
"""

from unflip.density_ratio._base import BaseDensityRatio
from unflip.density_ratio._bregman import (
    BasuDivergence,
    BregmanDivergence,
    BregmanRatio,
    KullbackLeiblerDivergence,
    SquaredDivergence,
)
from unflip.density_ratio._kliep import KLIEP
from unflip.density_ratio._kliep import as_density_ratio as as_density_ratio
from unflip.density_ratio._kmm import KMM
from unflip.density_ratio._lsif import ULSIF, RuLSIF

__all__ = [
    "KLIEP",
    "KMM",
    "ULSIF",
    "BaseDensityRatio",
    "BasuDivergence",
    "BregmanDivergence",
    "BregmanRatio",
    "KullbackLeiblerDivergence",
    "RuLSIF",
    "SquaredDivergence",
]
