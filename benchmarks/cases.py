"""All cases by name, and the peers that take part."""

from benchmarks.models import MODEL_CASES
from benchmarks.ratios import RATIO_CASES

OURS = "unflip"
PEERS = ("densratio", "skada", "cleanlab")
"""Contenders that are left out where the package of that name is not installed."""
HEAVY_PEERS = ("adapt",)
"""Likewise, but only asked for by name: adapt brings TensorFlow with it."""

CASES = RATIO_CASES | MODEL_CASES
