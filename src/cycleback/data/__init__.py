"""Folders of videos: records, labels, pins, splits and cached frames.

The modules that need torch, `cycleback.data.sampling` and `cycleback.data.augmentation`, are imported by
themselves, so that reading a folder starts fast.
"""

from cycleback.data.cache import FrameCache, default_cache_root
from cycleback.data.check import DatasetReport, check_dataset
from cycleback.data.folder import read_dataset, split_dataset
from cycleback.data.labels import event_frames, phases_from_events, read_labels, write_labels
from cycleback.data.pins import Pin, read_pins, select_pairs, write_pins
from cycleback.data.records import Dataset, Label, VideoRecord
from cycleback.data.sources import load_sequence

__all__ = [
    "Dataset",
    "DatasetReport",
    "FrameCache",
    "Label",
    "Pin",
    "VideoRecord",
    "check_dataset",
    "default_cache_root",
    "event_frames",
    "load_sequence",
    "phases_from_events",
    "read_dataset",
    "read_labels",
    "read_pins",
    "select_pairs",
    "split_dataset",
    "write_labels",
    "write_pins",
]
