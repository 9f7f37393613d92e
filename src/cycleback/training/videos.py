"""Whole videos in the form an encoder trains on.

Shapes: N frames of a video, H W pixels, V numbers of a vector, F feature channels, h w grid.
"""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cycleback.data import FrameCache, VideoRecord, load_sequence
from cycleback.embeddings.features import FeatureCache
from cycleback.errors import DataError
from cycleback.models import Encoder
from cycleback.progress import Counter, ignore


def load_videos(
    encoder: Encoder,
    records: Sequence[VideoRecord],
    *,
    frames: FrameCache,
    device: torch.device,
    on_frames: Counter = ignore,
    on_features: Counter = ignore,
) -> list[Tensor]:
    """Each video whole, on `device`.

    Frames (N, H, W, 3) uint8; feature maps (N, F, h, w) float16 where the base is frozen, computed once;
    vectors (N, V) float32 of sequences.
    """
    if encoder.input_kind == "vectors":
        return [encoder.base.prepare(vectors(record)).to(device) for record in records]
    _require_pictures(records)
    frames.fill(records, progress=on_frames)
    if encoder.train_base == "frozen":
        return _load_features(encoder, records, frames=frames, device=device, on_features=on_features)
    return frames.load_tensors(records, device=device)


def vectors(record: VideoRecord) -> Tensor:
    """Vectors (N, S) float32 of a sequence, as given."""
    if record.kind != "sequence":
        raise DataError(f"{record.path} is no sequence (.npz): encoder.base 'vector' takes nothing else")
    return torch.from_numpy(load_sequence(record).features)


def presentation_times(record: VideoRecord, frames: FrameCache) -> NDArray[np.float64]:
    """Seconds (N,) at which each frame of a video or sequence is shown."""
    return load_sequence(record).times if record.kind == "sequence" else frames.load(record).times


def _require_pictures(records: Sequence[VideoRecord]) -> None:
    for record in records:
        if record.kind == "sequence":
            raise DataError(f"{record.path} is a sequence of vectors: set encoder.base='vector'")


def _load_features(
    encoder: Encoder,
    records: Sequence[VideoRecord],
    *,
    frames: FrameCache,
    device: torch.device,
    on_features: Counter,
) -> list[Tensor]:
    features = FeatureCache(frames, encoder.base, device=device)
    features.fill(records, progress=on_features)
    return [torch.from_numpy(np.array(features.load(record))).to(device) for record in records]
