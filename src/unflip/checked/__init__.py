"""Checked labels: intervals that hold whatever the noise depends on, and a model of the errors."""

from unflip.checked._counting import Estimate
from unflip.checked._labels import CheckedLabels
from unflip.checked._next_rows import NextRows

__all__ = ["CheckedLabels", "Estimate", "NextRows"]
