"""The paper again: its methods as presets, its bounds as functions, its experiments."""

from unflip.paper.presets import eiw, iw

__all__ = ["eiw", "iw"]
