"""The paper's methods, as presets."""

from unflip._utils.docs import documented_like
from unflip._utils.typing import Classifier, RandomState
from unflip.density_ratio import KLIEP
from unflip.noise_rates import CrossValidatedRates, RatesLike
from unflip.posterior import DensityRatioPosterior
from unflip.reweighting import ImportanceReweightingClassifier


def eiw(
    estimator: Classifier | None = None, *, random_state: RandomState = None
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
    return _with_published_kliep(estimator, "minimum", random_state)


@documented_like(eiw)
def iw(
    estimator: Classifier | None = None, *, random_state: RandomState = None
) -> ImportanceReweightingClassifier:
    """Return the paper's IW: KLIEP as published, rates by 3-fold cross-validated noisy accuracy."""
    rates = CrossValidatedRates(scoring="noisy_accuracy", cv=3)
    return _with_published_kliep(estimator, rates, random_state)


def _with_published_kliep(
    estimator: Classifier | None, noise_rates: RatesLike, random_state: RandomState
) -> ImportanceReweightingClassifier:
    published = DensityRatioPosterior(KLIEP(solver="projected_gradient", search="downward"))
    return ImportanceReweightingClassifier(
        estimator, posterior=published, noise_rates=noise_rates, random_state=random_state
    )
