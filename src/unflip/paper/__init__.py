"""The paper's methods as presets, its bounds as functions, and its experiments."""

from unflip.paper.presets import eiw, iw

__all__ = ["eiw", "iw"]
