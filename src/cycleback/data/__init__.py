"""Folders of videos: records, labels, splits, cached frames, sampling, batches and augmentation.

Names that need torch are imported on first use, so that reading a folder starts fast.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from cycleback.data.cache import CachedFrames, FrameCache, default_cache_root
from cycleback.data.check import DatasetReport, Problem, VideoRow, check_dataset
from cycleback.data.folder import read_dataset, split_dataset
from cycleback.data.labels import event_frames, phases_from_events, read_labels, write_labels
from cycleback.data.records import Dataset, Label, VideoRecord
from cycleback.data.sources import FeatureSequence, load_sequence

if TYPE_CHECKING:
    from cycleback.data.augmentation import (
        Augmentation,
        AugmentSettings,
        augment,
        augment_on_gpu,
        draw_augmentation,
    )
    from cycleback.data.sampling import (
        context_indices,
        order_batches,
        sample_positives,
        sample_random,
        sample_segments,
        sample_strided,
    )

_WITH_TORCH = {
    "augmentation": ("AugmentSettings", "Augmentation", "augment", "augment_on_gpu", "draw_augmentation"),
    "sampling": (
        "context_indices",
        "order_batches",
        "sample_positives",
        "sample_random",
        "sample_segments",
        "sample_strided",
    ),
}

__all__ = [
    "AugmentSettings",
    "Augmentation",
    "CachedFrames",
    "Dataset",
    "DatasetReport",
    "FeatureSequence",
    "FrameCache",
    "Label",
    "Problem",
    "VideoRecord",
    "VideoRow",
    "augment",
    "augment_on_gpu",
    "check_dataset",
    "context_indices",
    "default_cache_root",
    "draw_augmentation",
    "event_frames",
    "load_sequence",
    "order_batches",
    "phases_from_events",
    "read_dataset",
    "read_labels",
    "sample_positives",
    "sample_random",
    "sample_segments",
    "sample_strided",
    "split_dataset",
    "write_labels",
]


def __getattr__(name: str) -> Any:
    for module, names in _WITH_TORCH.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
