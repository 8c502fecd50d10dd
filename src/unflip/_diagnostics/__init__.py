"""Findings about an estimate: codes, thresholds and sentences."""
