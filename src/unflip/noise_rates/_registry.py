"""The registry of rate estimators: what `unflip.noise_rates` exports, and under which names.

A new estimator joins the imports, `__all__`, and, where it has a name of its own, `RatesName` and
`ALIASES`; the reference page, the common tests and the type checker read it from here.
"""

from collections.abc import Callable
from typing import Literal

from unflip._utils.estimators import clone_seeded
from unflip._utils.typing import RandomState, RateEstimator
from unflip._utils.validation import check_choice
from unflip.noise import KnownRates, hint_on_rates
from unflip.noise_rates._base import BaseRates, PosteriorRates
from unflip.noise_rates._channel import ChannelRates
from unflip.noise_rates._counting import ConfidentJointRates, DualTRates
from unflip.noise_rates._cross_validation import CrossValidatedRates
from unflip.noise_rates._minimum import MinimumRates
from unflip.noise_rates._mixture import BestBinRates
from unflip.noise_rates._scott import ScottRates
from unflip.noise_rates._selective import SelectiveRates

__all__ = [
    "BaseRates",
    "BestBinRates",
    "ChannelRates",
    "ConfidentJointRates",
    "CrossValidatedRates",
    "DualTRates",
    "MinimumRates",
    "PosteriorRates",
    "ScottRates",
    "SelectiveRates",
    "make_rates",
]

RatesName = Literal[
    "auto",
    "best_bin",
    "channel",
    "confident_joint",
    "cv",
    "dual_t",
    "minimum",
    "quantile",
    "scott",
    "selective",
]
"""For type checkers, which cannot read `ALIASES`."""

RatesLike = RatesName | KnownRates | RateEstimator
"""What users may give for rates: what they know, a name, or an estimator."""

ALIASES: dict[str, Callable[[], BaseRates]] = {
    "best_bin": BestBinRates,
    "channel": ChannelRates,
    "confident_joint": ConfidentJointRates,
    "cv": CrossValidatedRates,
    "dual_t": DualTRates,
    "minimum": MinimumRates,
    "quantile": lambda: MinimumRates(quantile=0.05),
    "scott": ScottRates,
    "selective": SelectiveRates,
}


def make_rates(noise_rates: RatesLike | str, random_state: RandomState = None) -> BaseRates:
    """Return an unfitted rate estimator for an alias or an estimator.

    Parameters
    ----------
    noise_rates : str or BaseRates
        "channel" (rates and clean posterior fitted together), "selective" (labels of the surest
        samples), "minimum", "quantile" (the 5 % quantile of the posterior), "scott" and "best_bin"
        (mixture proportions), "dual_t" and "confident_joint" (counts), "cv" (cross-validation of
        a classifier); "auto", which is "channel"; or a rate estimator. "scott", "best_bin" and
        "cv" are for two classes.
    random_state : int, RandomState instance or None, default=None
        Seed for every random choice of the estimator that has no seed of its own.

    Returns
    -------
    BaseRates
        Unfitted.

    Examples
    --------
    >>> from unflip.noise_rates import make_rates
    >>> make_rates("quantile")
    MinimumRates(quantile=0.05)
    """
    if isinstance(noise_rates, str):
        check_choice(noise_rates, ("auto", *ALIASES), "noise_rates")
        noise_rates = ALIASES["channel" if noise_rates == "auto" else noise_rates]()
    elif not isinstance(noise_rates, BaseRates):
        raise TypeError(
            f"noise_rates must be one of {['auto', *ALIASES]}, NoiseRates(positive=..., "
            "negative=...), a TransitionMatrix, a K x K array or an estimator of "
            f"unflip.noise_rates, got {noise_rates!r}.{hint_on_rates(noise_rates)}"
        )
    return clone_seeded(noise_rates, random_state)
