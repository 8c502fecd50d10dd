"""Joint estimate of T and g in P(noisy | x) = g(x) T, for any number of classes.

g = softmax(t) is integrated out (Laplace), so that the evidence of the noisy labels is a function
of T alone; T has one of several structures, which their evidence weighs against each other.
"""

from unflip.posterior._softmax_channel._choose import FEATURES, SoftmaxSample
from unflip.posterior._softmax_channel._fit import (
    FittedRows,
    SoftmaxChannel,
    fit_softmax_channel,
    shortest_ranges,
)

__all__ = [
    "FEATURES",
    "FittedRows",
    "SoftmaxChannel",
    "SoftmaxSample",
    "fit_softmax_channel",
    "shortest_ranges",
]
