"""What a fitted estimator has found, as one plain dictionary and as pictures.

The numbers come without matplotlib; the displays draw them and need `pip install 'unflip[plot]'`.
"""

from unflip.inspection._compute import (
    MislabelCalibration,
    PosteriorHistogram,
    RateCurve,
    WeightHistogram,
    mislabel_calibration,
    posterior_histogram,
    rate_sensitivity,
    weight_histogram,
)
from unflip.inspection._displays import (
    MislabelCalibrationDisplay,
    NoiseRatesDisplay,
    SensitivityDisplay,
    WeightsDisplay,
)
from unflip.inspection._summary import summary

__all__ = [
    "MislabelCalibration",
    "MislabelCalibrationDisplay",
    "NoiseRatesDisplay",
    "PosteriorHistogram",
    "RateCurve",
    "SensitivityDisplay",
    "WeightHistogram",
    "WeightsDisplay",
    "mislabel_calibration",
    "posterior_histogram",
    "rate_sensitivity",
    "summary",
    "weight_histogram",
]
