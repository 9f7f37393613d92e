"""See it work: rendered videos, learned and shown in one page."""

from cycleback.demo.run import DemoReport, Stages, run_demo

__all__ = ["DemoReport", "Stages", "run_demo"]
