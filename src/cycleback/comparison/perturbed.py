"""Embeddings of perturbed videos: cut short, at another speed, or with a still lead-in.

A perturbation only reorders frames, so cached features of a frozen base and cached poses are reused. Motion
is measured anew. The lead-in shows the background: the median of each pixel over the video.

Shapes: N frames of a video, M frames after the perturbation, H W pixels, F feature channels, h w feature map.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cycleback.data import Dataset, FrameCache, VideoRecord, event_frames, load_sequence
from cycleback.embeddings import EmbeddingSet
from cycleback.embeddings.embed import embed_maps
from cycleback.embeddings.features import CHUNK_FRAMES, FeatureCache, FusedFeatures
from cycleback.evaluation.perturbations import BACKGROUND, perturb
from cycleback.models import Encoder
from cycleback.models.streams import mirror
from cycleback.training.videos import load_times
from cycleback.video.motion import MotionMeter

MEDIAN_FRAMES = 100  # frames that the background is the median of, spread over the video


@dataclass(frozen=True)
class Library:
    """An encoder with the caches of its input."""

    encoder: Encoder | None  # in evaluation mode, on the device to use; None for time-only embeddings
    frames: FrameCache
    features: FeatureCache | FusedFeatures | None = (
        None  # None where the base is trained, or frames are vectors
    )


def perturbed_set(library: Library, videos: Dataset, *, kind: str, seed: int = 0) -> EmbeddingSet:
    """Embed the perturbed videos; their key events move along.

    Without an encoder, frame i is embedded as its place in the perturbed video, i / M.
    """
    arrays: dict[str, NDArray[np.floating[Any]]] = {}
    events, rates = {}, {}
    for record in videos:
        times = load_times(record, library.frames)
        change = perturb(record.name, len(times), event_frames(record, times), kind=kind, seed=seed)
        arrays[record.name] = embed_indices(library, record, change.indices)
        events[record.name] = dict(change.events)
        rates[record.name] = _frame_rate(times)
    return EmbeddingSet.from_arrays(
        arrays,
        events=events,
        actions={record.name: record.action for record in videos},
        fps=rates,
        event_names=list(videos.event_names) or None,
    )


def embed_indices(
    library: Library, record: VideoRecord, indices: NDArray[np.int64]
) -> NDArray[np.floating[Any]]:
    """Embed the frames `indices` (M,) of a video as if they were a video, to (M, D); -1 is the background."""
    if library.encoder is None:
        return np.arange(len(indices))[:, None] / len(indices)
    encoder = library.encoder.eval()
    if record.kind == "sequence":
        maps = iter([_vector_maps(encoder, record, indices)])
    elif isinstance(library.features, FusedFeatures):
        maps = iter([_fuse(library.features, record, indices)])
    elif library.features is not None:
        maps = _cached_maps(library.features, record, indices)
    else:
        maps = _compute_maps(encoder, library.frames.load(record).frames, indices)
    return embed_maps(encoder.embedder, maps, device=encoder.device)


def background(frames: NDArray[Any]) -> NDArray[Any]:
    """Return the median (...) over time of frames (N, ...)."""
    chosen = np.linspace(0, len(frames) - 1, min(len(frames), MEDIAN_FRAMES)).astype(int)
    middle: NDArray[Any] = np.median(frames[chosen], axis=0).astype(frames.dtype)
    return middle


def _vector_maps(encoder: Encoder, record: VideoRecord, indices: NDArray[np.int64]) -> Tensor:
    """Return features (M, F, 1, 1) of a sequence; velocities are those of the perturbed sequence."""
    vectors = _take(load_sequence(record).features, indices)
    return encoder.features(encoder.base.prepare(torch.from_numpy(vectors).to(encoder.device)))


def _cached_maps(features: FeatureCache, record: VideoRecord, indices: NDArray[np.int64]) -> Iterator[Tensor]:
    """Yield chunks (m, F, h, w) of the cached feature maps of the unperturbed video."""
    maps, blank = features.load(record), _blank_map(features, record, indices)
    for start in range(0, len(indices), CHUNK_FRAMES):
        yield torch.from_numpy(_take(maps, indices[start : start + CHUNK_FRAMES], blank))


def _blank_map(
    features: FeatureCache, record: VideoRecord, indices: NDArray[np.int64]
) -> NDArray[np.float16] | None:
    """Return the feature map (F, h, w) of the background, if it is shown."""
    if not (indices == BACKGROUND).any():
        return None
    picture = background(features.frames.load(record).frames)
    blank: NDArray[np.float16] = features.extract(picture[None])[0].half().cpu().numpy()
    return blank


def _fuse(features: FusedFeatures, record: VideoRecord, indices: NDArray[np.int64]) -> Tensor:
    """Return features (M, V, 1, 1) of the streams of a perturbed video, which keeps its frame rate."""
    cached, raw = features.frames.load(record), features.load_raw(record)
    times = np.arange(len(indices)) / _frame_rate(cached.times)
    if features.maps is not None and "appearance" in raw:
        blank = _blank_map(features.maps, record, indices)
        mean = None if blank is None else blank.astype(np.float32).mean(axis=(1, 2), keepdims=True)
        raw["appearance"] = _take(raw["appearance"], indices, mean)
    frames = _take(cached.frames, indices)
    if "motion" in raw:
        raw["motion"] = _measure_motion(frames, times)
    if "pose" in raw:
        nobody = background(raw["pose"]) * [1, 1, 0]  # the background shows no person: its score is 0
        raw["pose"] = _take(raw["pose"], indices, nobody)
    raw = mirror(raw) if record.name in features.mirrored else raw
    return torch.from_numpy(features.fuse(frames, raw, times))


def _measure_motion(frames: NDArray[np.uint8], times: NDArray[np.float64]) -> NDArray[np.float16]:
    """Return the motion (M, 4, 8, 8) of frames (M, H, W, 3)."""
    motion = MotionMeter().push(frames, times)
    motion[0] = motion[min(1, len(motion) - 1)]  # no frame is shown before the first
    return motion


def _frame_rate(times: NDArray[np.float64]) -> float:
    """Return the frames per second of a video from its times (N,)."""
    return (len(times) - 1) / float(times[-1] - times[0]) if times[-1] > times[0] else 30.0


def _compute_maps(
    encoder: Encoder, frames: NDArray[np.uint8], indices: NDArray[np.int64]
) -> Iterator[Tensor]:
    """Compute chunks (m, F, h, w) of feature maps of frames (N, H, W, 3)."""
    blank = background(frames) if (indices == BACKGROUND).any() else None
    for start in range(0, len(indices), CHUNK_FRAMES):
        chunk = torch.from_numpy(_take(frames, indices[start : start + CHUNK_FRAMES], blank))
        yield encoder.features(chunk.to(encoder.device).movedim(-1, 1))


def _take(
    frames: NDArray[Any], indices: NDArray[np.int64], blank: NDArray[Any] | None = None
) -> NDArray[Any]:
    """Return frames (M, ...) at `indices` of (N, ...), with `blank` (default: their median) for -1."""
    taken: NDArray[Any] = np.array(frames[np.maximum(indices, 0)])
    empty = indices == BACKGROUND
    if empty.any():
        taken[empty] = background(frames) if blank is None else blank
    return taken
