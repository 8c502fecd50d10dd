"""The data of the paper: its synthetic set and its six benchmark tables."""

from unflip.datasets._benchmarks import BENCHMARKS, load_benchmark
from unflip.datasets._synthetic import make_separable

__all__ = ["BENCHMARKS", "load_benchmark", "make_separable"]
