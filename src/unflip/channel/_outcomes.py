"""What a fit reports: tests of hypotheses, and the goodness of fit."""

from dataclasses import dataclass

from unflip.noise import Noise


@dataclass(frozen=True)
class EvidenceTest:
    """Test of a hypothesis about the rates.

    Parameters
    ----------
    statistic : float
        Twice the difference of the maximum log-evidence without and with the hypothesis.
    p_value : float
        Asymptotic probability of a statistic at least as large under the hypothesis.
    probability : float
        Probability of the hypothesis given the labels, under the prior of the rates.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from unflip.posterior import ChannelPosterior
    >>> X, y = make_classification(500, flip_y=0.4, class_sep=2.0, random_state=0)
    >>> channel = ChannelPosterior(random_state=0).fit(X, y)
    >>> channel.noise_test_.p_value < 0.01
    True
    """

    statistic: float
    p_value: float
    probability: float


@dataclass(frozen=True)
class ModelCheck:
    """How well a channel explains the labels of rows that it has not seen.

    Parameters
    ----------
    statistic : float
        By how many standard errors trees predict its residuals out of fold.
    p_value : float
        Probability of a statistic at least as large where only chance is left in them.
    verdict : {"not_rejected", "suspect", "rejected", "rule"}
        "rejected": trees see what the channel does not. "suspect": they may, and the rates that
        follow from their scores are others. "rule": a small decision tree gives nearly all labels.
    disagreement : float
        Share of labels that differ from the likeliest one given x, of rows held out.
    simple_disagreement : float
        The same for the model that is linear in the columns, if others were chosen or the fit is
        rejected or suspect.
    n_rows : float
        How many rows that share rests on.
    likelier_rates : NoiseRates, TransitionMatrix or None, default=None
        Where T was given: the rates of the classes under which the labels are likelier, if much.
    """

    statistic: float
    p_value: float
    verdict: str
    disagreement: float
    simple_disagreement: float
    n_rows: float
    likelier_rates: Noise | None = None
