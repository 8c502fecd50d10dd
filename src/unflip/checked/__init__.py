"""Labels that a person has checked: what they count, whatever the noise, and what they teach."""

from unflip.checked._counting import Estimate
from unflip.checked._draws import Draws
from unflip.checked._labels import NONE, UNSURE, CheckedLabels
from unflip.checked._picking import GOALS, Picks

__all__ = ["GOALS", "NONE", "UNSURE", "CheckedLabels", "Draws", "Estimate", "Picks"]
