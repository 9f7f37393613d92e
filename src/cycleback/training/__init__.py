"""Training: batches, the loop, its state and its log."""

from cycleback.training.batches import Batch, BatchMaker, IndexSampler, mix_seed
from cycleback.training.distributed import Processes, join_processes
from cycleback.training.held_out import SELECTED_FILE, Selected
from cycleback.training.log import StepReport, read_log
from cycleback.training.settings import OptimizerSettings, RunSettings
from cycleback.training.state import STATE_FILE, TrainState, WeightAverage
from cycleback.training.trainer import Trainer

__all__ = [
    "SELECTED_FILE",
    "STATE_FILE",
    "Batch",
    "BatchMaker",
    "IndexSampler",
    "OptimizerSettings",
    "Processes",
    "RunSettings",
    "Selected",
    "StepReport",
    "TrainState",
    "Trainer",
    "WeightAverage",
    "join_processes",
    "mix_seed",
    "read_log",
]
