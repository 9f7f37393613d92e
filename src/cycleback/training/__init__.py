"""Training: batches, the loop, its state and its log."""

from cycleback.training.batches import BatchMaker, mix_seed
from cycleback.training.distributed import Processes, join_processes
from cycleback.training.log import StepReport, read_log
from cycleback.training.settings import OptimizerSettings, RunSettings
from cycleback.training.state import TrainState
from cycleback.training.trainer import Trainer

__all__ = [
    "BatchMaker",
    "OptimizerSettings",
    "Processes",
    "RunSettings",
    "StepReport",
    "TrainState",
    "Trainer",
    "join_processes",
    "mix_seed",
    "read_log",
]
