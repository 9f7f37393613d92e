"""From videos and an encoder to an EmbeddingSet, in memory that does not grow with the video."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cycleback.data import CachedFrames, FrameCache, VideoRecord, event_frames, load_sequence
from cycleback.embeddings.features import FeatureCache
from cycleback.embeddings.store import EmbeddingSet
from cycleback.errors import DataError
from cycleback.models import Encoder, fingerprint

CHUNK_FRAMES = 64
Progress = Callable[[int, int], None]
"""Called with (frames done, frames in all)."""


def embed_records(
    encoder: Encoder,
    records: Sequence[VideoRecord],
    *,
    frames: FrameCache,
    features: FeatureCache | None = None,
    event_names: Sequence[str] = (),
    progress: Progress | None = None,
) -> EmbeddingSet:
    """Embed every frame of every record.

    Args:
        encoder: on the device to use; put into eval mode.
        records: videos or frame folders; sequences for an encoder of vectors.
        frames: where decoded frames are kept.
        features: where the feature maps of a frozen base are kept, or None to compute them on the way.
        event_names: the data set's key events, in order.
        progress: called after each video.
    """
    if not records:
        raise DataError("no videos to embed")
    _check_kinds(encoder, records)
    encoder = encoder.eval()
    times = {record.name: _times(record, frames) for record in records}
    total, arrays = sum(len(when) for when in times.values()), {}
    for record in records:
        arrays[record.name] = embed_maps(encoder, _maps(encoder, record, frames, features))
        if progress is not None:
            progress(sum(len(array) for array in arrays.values()), total)
    return EmbeddingSet.from_arrays(
        arrays,
        times=times,
        events={record.name: event_frames(record, times[record.name]) for record in records},
        actions={record.name: record.action for record in records},
        paths={record.name: str(record.path) for record in records},
        encoder=fingerprint(encoder),
        can_count_frames=encoder.embedder.can_count_frames,
        event_names=list(event_names) or None,
    )


@torch.inference_mode()
def embed_maps(encoder: Encoder, maps: Iterator[Tensor]) -> NDArray[np.float32]:
    """Embeddings (N, D) of one video from chunks (n, F, h, w) of its feature maps."""
    device = encoder.device
    chunks = encoder.embed_stream(chunk.to(device).float() for chunk in maps)
    embeddings = torch.cat([chunk.float().cpu() for chunk in chunks]).numpy()
    return standardized(embeddings) if encoder.embedder.standardize else embeddings


def standardized(embeddings: NDArray[np.float32]) -> NDArray[np.float32]:
    """Embeddings (N, D) of one video moved to mean 0 and spread 1; a still video becomes all zeros."""
    centred = embeddings - embeddings.mean(axis=0)
    spread = np.sqrt(np.mean(centred**2))
    return centred / spread if spread > 1e-6 else np.zeros_like(centred)


def _check_kinds(encoder: Encoder, records: Sequence[VideoRecord]) -> None:
    """Refuse videos for an encoder of vectors, and sequences of vectors for an encoder of pictures."""
    wants_vectors = encoder.input_kind == "vectors"
    for record in records:
        if (record.kind == "sequence") != wants_vectors:
            kinds = {True: "sequences (.npz)", False: "videos"}
            expected, got = kinds[wants_vectors], kinds[not wants_vectors]
            raise DataError(f"{record.name}: this encoder was made for {expected}, not for {got}")


def _times(record: VideoRecord, frames: FrameCache) -> NDArray[np.float64]:
    """Seconds (N,) of the frames of a video or sequence."""
    return load_sequence(record).times if record.kind == "sequence" else frames.load(record).times


def _maps(
    encoder: Encoder, record: VideoRecord, frames: FrameCache, features: FeatureCache | None
) -> Iterator[Tensor]:
    """Chunks (n, F, h, w) of what the base makes of a video or sequence."""
    if record.kind == "sequence":
        vectors = torch.from_numpy(load_sequence(record).features).to(encoder.device)
        yield encoder.features(encoder.base.prepare(vectors))
    elif features is not None:
        yield from _cached_maps(record, features)
    else:
        yield from _fresh_maps(encoder, frames.load(record))


def _fresh_maps(encoder: Encoder, cached: CachedFrames) -> Iterator[Tensor]:
    for start in range(0, cached.num_frames, CHUNK_FRAMES):
        chunk = torch.from_numpy(np.array(cached.frames[start : start + CHUNK_FRAMES]))
        yield encoder.features(chunk.to(encoder.device).movedim(-1, 1))


def _cached_maps(record: VideoRecord, features: FeatureCache) -> Iterator[Tensor]:
    maps = features.load(record)
    for start in range(0, len(maps), CHUNK_FRAMES):
        yield torch.from_numpy(np.array(maps[start : start + CHUNK_FRAMES]))
