"""From batches to a run folder: the loop, its state, its log."""

from cycleback.training.batches import Batch, BatchMaker, IndexSampler, mixed_seed
from cycleback.training.log import read_log
from cycleback.training.state import STATE_FILE, TrainState
from cycleback.training.trainer import StepReport, Trainer

__all__ = [
    "STATE_FILE",
    "Batch",
    "BatchMaker",
    "IndexSampler",
    "StepReport",
    "TrainState",
    "Trainer",
    "mixed_seed",
    "read_log",
]
