"""Folders of videos → records, labels, splits, cached frames, sampled indices, batches and augmentation.

Names that need torch are loaded when they are first used, so that looking at a folder starts fast.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from cycleback.data.batches import batch_order
from cycleback.data.cache import FrameCache, default_cache_root
from cycleback.data.cache_entry import CachedFrames
from cycleback.data.check import check_dataset
from cycleback.data.folder import read_dataset
from cycleback.data.labels import event_frames, phases_from_events, read_labels, write_labels
from cycleback.data.records import Dataset, Label, VideoRecord
from cycleback.data.report import DatasetReport, Problem, VideoRow
from cycleback.data.sequences import FeatureSequence, load_sequence
from cycleback.data.split import read_splits, split_dataset

if TYPE_CHECKING:
    from cycleback.data.augmentation import Augmentation, AugmentSettings, augment, draw_augmentation
    from cycleback.data.fused_augment import augmented_on_gpu
    from cycleback.data.sampling import (
        context_indices,
        every,
        positives,
        random_sorted,
        segments,
        strided,
        times,
    )
    from cycleback.data.store import FrameStore

_WITH_TORCH = {
    **dict.fromkeys(("AugmentSettings", "Augmentation", "augment", "draw_augmentation"), "augmentation"),
    **dict.fromkeys(
        ("context_indices", "every", "positives", "random_sorted", "segments", "strided", "times"), "sampling"
    ),
    "FrameStore": "store",
    "augmented_on_gpu": "fused_augment",
}

__all__ = [
    "AugmentSettings",
    "Augmentation",
    "CachedFrames",
    "Dataset",
    "DatasetReport",
    "FeatureSequence",
    "FrameCache",
    "FrameStore",
    "Label",
    "Problem",
    "VideoRecord",
    "VideoRow",
    "augment",
    "augmented_on_gpu",
    "batch_order",
    "check_dataset",
    "context_indices",
    "default_cache_root",
    "draw_augmentation",
    "event_frames",
    "every",
    "load_sequence",
    "phases_from_events",
    "positives",
    "random_sorted",
    "read_dataset",
    "read_labels",
    "read_splits",
    "segments",
    "split_dataset",
    "strided",
    "times",
    "write_labels",
]


def __getattr__(name: str) -> Any:
    if name not in _WITH_TORCH:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_WITH_TORCH[name]}"), name)
