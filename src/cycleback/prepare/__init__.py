"""Known data sets, as they are really distributed → a data set folder that `cycleback.data` reads."""

from cycleback.prepare.registry import PREPARERS, option_names, prepare
from cycleback.prepare.report import PrepareReport

__all__ = ["PREPARERS", "PrepareReport", "option_names", "prepare"]
