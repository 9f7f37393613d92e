"""From videos and an encoder to an EmbeddingSet, in memory that does not grow with the video."""

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cycleback.data import FrameCache, VideoRecord, event_frames, load_sequence
from cycleback.embeddings.ahead import ahead
from cycleback.embeddings.features import FeatureCache
from cycleback.embeddings.store import EmbeddingSet
from cycleback.errors import DataError
from cycleback.models import Embedder, Encoder, FastEncoder, Precision, fingerprint

CHUNK_FRAMES = 64
GPU_CHUNK_FRAMES = 256
PIECES_AHEAD = 3  # read from the cache while a GPU works on the last ones
Progress = Callable[[int, int], None]
"""Called with (frames done, frames in all, as far as is known yet)."""


def embed_records(
    encoder: Encoder,
    records: Sequence[VideoRecord],
    *,
    frames: FrameCache,
    features: FeatureCache | None = None,
    event_names: Sequence[str] = (),
    precision: Precision | None = None,
    progress: Progress | None = None,
) -> EmbeddingSet:
    """Embed every frame of every record, those that are decoded first while the others are decoded.

    Args:
        encoder: on the device to use; put into eval mode.
        records: videos or frame folders; sequences for an encoder of vectors.
        frames: where decoded frames are kept.
        features: where the feature maps of a frozen base are kept, or None to compute them on the way.
        event_names: the data set's key events, in order.
        precision: of the arithmetic; None: "bfloat16" on a GPU, "float32" elsewhere.
        progress: called after each video.
    """
    if not records:
        raise DataError("no videos to embed")
    _check_kinds(encoder, records)
    encoder = encoder.eval()
    fast = FastEncoder(encoder, precision=precision) if encoder.input_kind == "images" else None
    embedder = encoder.embedder if fast is None else fast.embedder
    arrays: dict[str, NDArray[np.float32]] = {}
    for record, maps in _maps_of(encoder, fast, records, frames=frames, features=features):
        arrays[record.name] = embed_maps(embedder, maps, device=encoder.device)
        if progress is not None:
            done = sum(len(array) for array in arrays.values())
            progress(done, done * len(records) // len(arrays))
    times = {record.name: _times(record, frames) for record in records}
    return EmbeddingSet.from_arrays(
        {record.name: arrays[record.name] for record in records},
        times=times,
        events={record.name: event_frames(record, times[record.name]) for record in records},
        actions={record.name: record.action for record in records},
        paths={record.name: str(record.path) for record in records},
        encoder=fingerprint(encoder),
        can_count_frames=encoder.embedder.can_count_frames,
        event_names=list(event_names) or None,
    )


@torch.inference_mode()
def embed_maps(embedder: Embedder, maps: Iterator[Tensor], *, device: torch.device) -> NDArray[np.float32]:
    """Embeddings (N, D) of one video from chunks (n, F, h, w) of its feature maps."""
    moved = (chunk.to(device, non_blocking=True) for chunk in maps)
    chunks = embedder.embed_stream(chunk if embedder.takes_half else chunk.float() for chunk in moved)
    embeddings = torch.cat([chunk.float() for chunk in chunks]).cpu().numpy()  # waits for a GPU only here
    return standardized(embeddings) if embedder.standardize else embeddings


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


def _maps_of(
    encoder: Encoder,
    fast: FastEncoder | None,
    records: Sequence[VideoRecord],
    *,
    frames: FrameCache,
    features: FeatureCache | None,
) -> Iterator[tuple[VideoRecord, Iterator[Tensor]]]:
    """Videos or sequences as they are ready, each with the chunks (n, F, h, w) that the base makes of it."""
    device = encoder.device
    if fast is None:
        for record in records:
            vectors = torch.from_numpy(load_sequence(record).features).to(device)
            yield record, map(encoder.features, [encoder.base.prepare(vectors)])  # run where it is used
    elif features is not None:
        for record in frames.as_filled(records):
            yield record, _pieces(features.load(record), device)
    else:
        pieces = (
            (record, piece)
            for record in frames.as_filled(records)
            for piece in _pieces(frames.load(record).frames, device)
        )
        if device.type == "cuda":
            pieces = ahead(pieces, depth=PIECES_AHEAD)
        for record, group in groupby(pieces, key=itemgetter(0)):
            moved = (piece.to(device, non_blocking=True) for _, piece in group)
            yield record, (fast.features(chunk.movedim(-1, 1)) for chunk in moved)


def _pieces(array: NDArray[Any], device: torch.device) -> Iterator[Tensor]:
    """An array (N, ...) in pieces (n, ...), for a GPU in memory from which it copies by itself."""
    is_for_gpu = device.type == "cuda"
    size = GPU_CHUNK_FRAMES if is_for_gpu else CHUNK_FRAMES
    for start in range(0, len(array), size):
        piece = array[start : start + size]
        if is_for_gpu:
            kind = torch.from_numpy(np.empty(0, piece.dtype)).dtype
            pinned = torch.empty(piece.shape, dtype=kind, pin_memory=True)
            np.copyto(pinned.numpy(), piece)
            yield pinned
        else:
            yield torch.from_numpy(np.array(piece))
