"""Posteriors by name."""

from collections.abc import Callable
from typing import Any

import numpy as np

from unflip._estimators import clone_seeded
from unflip._validation import check_choice
from unflip.density_ratio import KLIEP, KMM, ULSIF, RuLSIF
from unflip.posterior._base import BasePosterior
from unflip.posterior._kde import KernelDensityPosterior
from unflip.posterior._probabilistic import ProbabilisticPosterior
from unflip.posterior._ratio import DensityRatioPosterior

ALIASES: dict[str, Callable[[], BasePosterior]] = {
    "auto": ProbabilisticPosterior,
    "probabilistic": ProbabilisticPosterior,
    "kde": KernelDensityPosterior,
    "kliep": lambda: DensityRatioPosterior(KLIEP()),
    "ulsif": lambda: DensityRatioPosterior(ULSIF()),
    "rulsif": lambda: DensityRatioPosterior(RuLSIF()),
    "kmm": lambda: DensityRatioPosterior(KMM()),
}


def make_posterior(
    posterior: Any, random_state: int | np.random.RandomState | None = None
) -> BasePosterior:
    """Return an unfitted posterior for an alias, a posterior or a classifier.

    Parameters
    ----------
    posterior : str, BasePosterior or classifier
        "auto" (now the same as "probabilistic"), "probabilistic", "kde", "kliep", "ulsif",
        "rulsif", "kmm"; or a posterior; or any classifier with `predict_proba`.
    random_state : int, RandomState instance or None, default=None
        Seed for every random choice of the posterior that has no seed of its own.

    Examples
    --------
    >>> from unflip.posterior import make_posterior
    >>> make_posterior("kliep")
    DensityRatioPosterior(ratio=KLIEP())
    """
    if isinstance(posterior, str):
        check_choice(posterior, tuple(ALIASES), "posterior")
        posterior = ALIASES[posterior]()
    elif not isinstance(posterior, BasePosterior):
        if not hasattr(posterior, "fit"):
            raise TypeError(
                f"posterior must be one of {list(ALIASES)}, a posterior of unflip.posterior or a "
                f"classifier, got {posterior!r}."
            )
        posterior = ProbabilisticPosterior(posterior)
    return clone_seeded(posterior, random_state)
