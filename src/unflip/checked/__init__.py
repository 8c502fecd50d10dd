"""Labels that a person has checked: what they count, whatever the noise, and what they teach."""

from unflip.checked._counting import Estimate
from unflip.checked._labels import CheckedLabels
from unflip.checked._picking import Picks

__all__ = ["CheckedLabels", "Estimate", "Picks"]
