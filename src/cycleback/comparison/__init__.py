"""Methods side by side on one data set: learned, measured on held-out videos, shown in one page."""

from cycleback.comparison.methods import Method, parse_methods
from cycleback.comparison.rows import Row, Stages
from cycleback.comparison.run import Comparison, compare

__all__ = ["Comparison", "Method", "Row", "Stages", "compare", "parse_methods"]
