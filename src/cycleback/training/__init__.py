"""From batches to a run folder: the loop, its state, its log."""

from cycleback.training.batches import Batch, BatchMaker, IndexSampler, mixed_seed
from cycleback.training.distributed import Processes, joined_processes
from cycleback.training.ema import WeightAverage
from cycleback.training.log import read_log
from cycleback.training.precision import Arithmetic
from cycleback.training.report import StepReport
from cycleback.training.selection import SELECTED_FILE, Selected, Selector
from cycleback.training.settings import OptimizerSettings, RunSettings
from cycleback.training.state import STATE_FILE, TrainState
from cycleback.training.trainer import Trainer

__all__ = [
    "SELECTED_FILE",
    "STATE_FILE",
    "Arithmetic",
    "Batch",
    "BatchMaker",
    "IndexSampler",
    "OptimizerSettings",
    "Processes",
    "RunSettings",
    "Selected",
    "Selector",
    "StepReport",
    "TrainState",
    "Trainer",
    "WeightAverage",
    "joined_processes",
    "mixed_seed",
    "read_log",
]
