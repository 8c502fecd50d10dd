"""Labels that a person has checked: what they count, whatever the noise, and what they teach."""

from unflip.checked._counting import Estimate
from unflip.checked._draws import Draws
from unflip.checked._exact import check_counts, clopper_pearson
from unflip.checked._labels import NONE, UNSURE, CheckedLabels
from unflip.checked._picking import GOALS, Picks
from unflip.checked._teaching import Taught, teach

__all__ = [
    "GOALS",
    "NONE",
    "UNSURE",
    "CheckedLabels",
    "Draws",
    "Estimate",
    "Picks",
    "Taught",
    "check_counts",
    "clopper_pearson",
    "teach",
]
