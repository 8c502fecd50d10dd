"""The registry of posteriors: what `unflip.posterior` exports, and under which names.

A new posterior joins the imports, `__all__`, and, where it has a name of its own, `PosteriorName`
and `ALIASES`; the reference page, the common tests and the type checker read it from here.
"""

from collections.abc import Callable
from typing import Literal

from unflip._utils.estimators import clone_seeded
from unflip._utils.typing import ProbabilisticClassifier, RandomState
from unflip._utils.validation import check_choice
from unflip.channel import EvidenceTest
from unflip.density_ratio import KLIEP, KMM, ULSIF, RuLSIF
from unflip.posterior._base import BasePosterior, fit_posterior
from unflip.posterior._channel import ChannelPosterior
from unflip.posterior._kde import KernelDensityPosterior
from unflip.posterior._probabilistic import ProbabilisticPosterior
from unflip.posterior._ratio import DensityRatioPosterior
from unflip.posterior._selected import SelectedPosterior

__all__ = [
    "BasePosterior",
    "ChannelPosterior",
    "DensityRatioPosterior",
    "EvidenceTest",
    "KernelDensityPosterior",
    "ProbabilisticPosterior",
    "SelectedPosterior",
    "fit_posterior",
    "make_posterior",
]

PosteriorName = Literal[
    "auto", "channel", "probabilistic", "kde", "kliep", "ulsif", "rulsif", "kmm", "selected"
]
"""For type checkers, which cannot read `ALIASES`."""

PosteriorLike = PosteriorName | ProbabilisticClassifier
"""What users may give for a posterior: a name, a posterior or a classifier."""

ALIASES: dict[str, Callable[[], BasePosterior]] = {
    "channel": ChannelPosterior,
    "probabilistic": ProbabilisticPosterior,
    "kde": KernelDensityPosterior,
    "kliep": lambda: DensityRatioPosterior(KLIEP()),
    "ulsif": lambda: DensityRatioPosterior(ULSIF()),
    "rulsif": lambda: DensityRatioPosterior(RuLSIF()),
    "kmm": lambda: DensityRatioPosterior(KMM()),
    "selected": SelectedPosterior,
}


def make_posterior(
    posterior: PosteriorLike | str, random_state: RandomState = None
) -> BasePosterior:
    """Return an unfitted posterior for an alias, a posterior or a classifier.

    Parameters
    ----------
    posterior : str, BasePosterior or classifier
        "channel" (:class:`ChannelPosterior`), "probabilistic", "selected", "kde", "kliep", "ulsif",
        "rulsif", "kmm"; "auto", which is "channel"; or a posterior; or any classifier with
        `predict_proba`.
    random_state : int, RandomState instance or None, default=None
        Seed for every random choice of the posterior that has no seed of its own.

    Returns
    -------
    BasePosterior
        Unfitted.

    Examples
    --------
    >>> from unflip.posterior import make_posterior
    >>> make_posterior("kliep")
    DensityRatioPosterior(ratio=KLIEP())
    """
    return clone_seeded(as_posterior(posterior), random_state)


def as_posterior(posterior: PosteriorLike | str) -> BasePosterior:
    """Return the posterior that :func:`make_posterior` clones, to read its tags."""
    if isinstance(posterior, str):
        check_choice(posterior, ("auto", *ALIASES), "posterior")
        return ALIASES["channel" if posterior == "auto" else posterior]()
    if isinstance(posterior, BasePosterior):
        return posterior
    if not hasattr(posterior, "fit"):
        raise TypeError(
            f"posterior must be one of {['auto', *ALIASES]}, a posterior of unflip.posterior "
            f"or a classifier, got {posterior!r}."
        )
    return ProbabilisticPosterior(posterior)
