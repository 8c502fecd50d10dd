"""The paper's methods, as presets."""

import numpy as np

from unflip._utils.typing import Classifier
from unflip.density_ratio import KLIEP
from unflip.noise_rates import CrossValidatedRates
from unflip.posterior import DensityRatioPosterior
from unflip.reweighting import ImportanceReweightingClassifier


def eiw(
    estimator: Classifier | None = None, *, random_state: int | np.random.RandomState | None = None
) -> ImportanceReweightingClassifier:
    """Return the paper's eIW: KLIEP as published, rates by the minimum of the posterior.

    Parameters
    ----------
    estimator : classifier, default=None
        The classifier to train.
    random_state : int, RandomState instance or None, default=None
        Random seed.

    Returns
    -------
    ImportanceReweightingClassifier
        Unfitted.
    """
    return ImportanceReweightingClassifier(
        estimator,
        posterior=_published_posterior(),
        noise_rates="minimum",
        random_state=random_state,
    )


def iw(
    estimator: Classifier | None = None, *, random_state: int | np.random.RandomState | None = None
) -> ImportanceReweightingClassifier:
    """Return the paper's IW: KLIEP as published, rates by 3-fold cross-validated noisy accuracy.

    Parameters
    ----------
    estimator : classifier, default=None
        The classifier to train.
    random_state : int, RandomState instance or None, default=None
        Random seed.

    Returns
    -------
    ImportanceReweightingClassifier
        Unfitted.
    """
    return ImportanceReweightingClassifier(
        estimator,
        posterior=_published_posterior(),
        noise_rates=CrossValidatedRates(scoring="noisy_accuracy", cv=3),
        random_state=random_state,
    )


def _published_posterior() -> DensityRatioPosterior:
    return DensityRatioPosterior(KLIEP(solver="projected_gradient", search="downward"))
