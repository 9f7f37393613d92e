"""Compare methods on one data set: train them, score them on held-out videos, and show them on one page."""

from cycleback.comparison.demo import DemoReport, run_demo
from cycleback.comparison.rows import TrainingStopped
from cycleback.comparison.run import Comparison, compare

__all__ = ["Comparison", "DemoReport", "TrainingStopped", "compare", "run_demo"]
