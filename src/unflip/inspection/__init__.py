"""Summaries and displays of fitted estimators.

Only the displays need matplotlib: `pip install 'unflip[plot]'`.
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
from unflip.inspection._displays import COLOURS as COLOURS
from unflip.inspection._displays import HATCHES as HATCHES
from unflip.inspection._displays import MARKERS as MARKERS
from unflip.inspection._displays import (
    MislabelCalibrationDisplay,
    NoiseRatesDisplay,
    SensitivityDisplay,
    WeightsDisplay,
)
from unflip.inspection._slice_display import NoiseBySliceDisplay
from unflip.inspection._slices import NoiseBySlice, noise_by_slice
from unflip.inspection._summary import MIN_P as MIN_P
from unflip.inspection._summary import summary

__all__ = [
    "MislabelCalibration",
    "MislabelCalibrationDisplay",
    "NoiseBySlice",
    "NoiseBySliceDisplay",
    "NoiseRatesDisplay",
    "PosteriorHistogram",
    "RateCurve",
    "SensitivityDisplay",
    "WeightHistogram",
    "WeightsDisplay",
    "mislabel_calibration",
    "noise_by_slice",
    "posterior_histogram",
    "rate_sensitivity",
    "summary",
    "weight_histogram",
]
