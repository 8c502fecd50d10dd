"""Findings about an estimate: codes, thresholds and sentences."""

from unflip.diagnostics.findings import Diagnostic

__all__ = ["Diagnostic"]
