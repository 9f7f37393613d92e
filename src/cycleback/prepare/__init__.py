"""Convert published data sets, as distributed, to folders that `cycleback.data` reads."""

from cycleback.prepare.registry import PREPARERS, PrepareReport, prepare

__all__ = ["PREPARERS", "PrepareReport", "prepare"]
