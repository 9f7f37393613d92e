"""Compare methods on one data set: train them, score them on held-out videos, and show them on one page."""

from cycleback.comparison.demo import DemoReport, run_demo
from cycleback.comparison.methods import BASELINES, Method, parse_method, parse_methods
from cycleback.comparison.rows import Row, TrainingStopped
from cycleback.comparison.run import Comparison, compare

__all__ = [
    "BASELINES",
    "Comparison",
    "DemoReport",
    "Method",
    "Row",
    "TrainingStopped",
    "compare",
    "parse_method",
    "parse_methods",
    "run_demo",
]
