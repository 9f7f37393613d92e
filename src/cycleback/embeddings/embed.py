"""Embed videos with an encoder, in memory that does not grow with the video.

Shapes: N frames of a video, n frames of a batch or chunk, H W pixels, F feature channels, h w feature map, D
embedding size.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cycleback.arrays import write_array
from cycleback.data import FrameCache, VideoRecord, event_frames, load_sequence
from cycleback.data.cache import MOTION_FILE
from cycleback.embeddings.batches import Batch, Video, batch_across_videos, batch_each_video
from cycleback.embeddings.embedding_set import EmbeddingSet
from cycleback.embeddings.features import FeatureCache, FusedFeatures, standardize
from cycleback.embeddings.poses import VERSION as POSES_VERSION
from cycleback.errors import DataError
from cycleback.models import (
    Embedder,
    Encoder,
    FastEncoder,
    FusedBase,
    Precision,
    VectorBase,
    default_precision,
    fingerprint,
)
from cycleback.models.pooling_embedders import PooledEmbedder
from cycleback.prefetch import prefetch
from cycleback.progress import Counter, ignore

BATCHES_AHEAD = 3  # batches read from the cache while a GPU works on earlier ones
VIDEOS_BEHIND = 2  # videos whose embeddings are copied to the host while a GPU works on later ones


def embed_records(
    encoder: Encoder,
    records: Sequence[VideoRecord],
    *,
    frames: FrameCache,
    features: FeatureCache | FusedFeatures | None = None,
    event_names: Sequence[str] = (),
    precision: Precision | None = None,
    progress: Counter = ignore,
) -> EmbeddingSet:
    """Embed every frame of every record. Videos are embedded while others are still decoded.

    Args:
        encoder: on the device to use; put into evaluation mode.
        records: videos or frame folders; sequences for an encoder of vectors.
        frames: the cache of decoded frames.
        features: the features of a frozen base, in the same precision; None computes them anew. Streams need
            them, from `open_features`.
        event_names: the key events of the data set, in order.
        precision: None: "bfloat16" on a GPU, "float32" elsewhere.
        progress: called after each video with frames; the total is estimated until all are decoded.
    """
    if not records:
        raise DataError("no videos to embed")
    check_kinds(encoder, records)
    encoder, known = encoder.eval(), fingerprint(encoder)
    arrays: dict[str, NDArray[np.float32]] = {}
    times: dict[str, NDArray[np.float64]] = {}
    name_file = _name_kept(encoder, features, known, precision=precision)
    for record in records:
        cached = frames.find(record) if name_file is not None else None
        if cached is None or name_file is None:
            continue
        kept = cached.find(name_file(record), np.float32, (None,))
        if kept is not None:
            arrays[record.name], times[record.name] = np.array(kept), cached.times
    done = sum(map(len, arrays.values()))
    rest = [record for record in records if record.name not in arrays]
    fast = None
    if rest and encoder.input_kind == "images" and not encoder.base.needs_whole_videos:
        fast = FastEncoder(encoder, precision=precision)
        if isinstance(features, FeatureCache) and features.precision != fast.precision:
            asked = f"precision {fast.precision} is asked for"
            raise ValueError(f"features are {features.precision}, but {asked}")
    embedder = encoder.embedder if fast is None else fast.embedder
    for record, embeddings in _copy_to_host(
        (record, _embed_stream(embedder, maps, encoder.device))
        for record, maps in _iter_maps(encoder, fast, rest, frames=frames, features=features, times=times)
    ):
        arrays[record.name] = standardize(embeddings) if embedder.standardize else embeddings
        done += len(embeddings)
        if name_file is not None:
            with frames.load(record).add(name_file(record)) as draft:
                write_array(draft, arrays[record.name], with_checksum=True)
        if record.kind != "sequence":
            frames.release(record)
        progress(done, done * len(records) // len(arrays))
    if not rest:
        progress(done, done)
    return EmbeddingSet.from_arrays(
        {record.name: arrays[record.name] for record in records},
        times=times,
        events={record.name: event_frames(record, times[record.name]) for record in records},
        actions={record.name: record.action for record in records},
        paths={record.name: str(record.path) for record in records},
        encoder=known,
        can_count_frames=encoder.embedder.can_count_frames,
        streams=encoder.base.stream_weights if isinstance(encoder.base, FusedBase) else None,
        mirrored=features.mirrored if isinstance(features, FusedFeatures) else (),
        event_names=list(event_names) or None,
    )


def _name_kept(
    encoder: Encoder,
    features: FeatureCache | FusedFeatures | None,
    known: str,
    *,
    precision: Precision | None,
) -> Callable[[VideoRecord], str] | None:
    """Return a function that names the file in which the embeddings of a video are kept.

    None for sequences, and for untrained streams: their vectors are long, and depend on the other videos.
    What they are made of is kept.
    """
    is_untrained = isinstance(encoder.base, FusedBase) and isinstance(encoder.embedder, PooledEmbedder)
    if encoder.input_kind == "vectors" or is_untrained:
        return None
    kind = f"{encoder.device.type}-{precision or default_precision(encoder.device)}"
    mirrored = features.mirrored if isinstance(features, FusedFeatures) else set()
    streams = f"-{Path(MOTION_FILE).stem}-poses{POSES_VERSION}" if encoder.base.needs_whole_videos else ""

    def name_file(record: VideoRecord) -> str:
        return f"embeddings-{known}-{kind}{streams}{'-mirrored' * (record.name in mirrored)}.npy"

    return name_file


def embed_maps(embedder: Embedder, maps: Iterator[Tensor], *, device: torch.device) -> NDArray[np.float32]:
    """Embed one video from chunks (n, F, h, w) of its feature maps: (N, D)."""
    embeddings: NDArray[np.float32] = _embed_stream(embedder, maps, device).cpu().numpy()
    return standardize(embeddings) if embedder.standardize else embeddings


@torch.inference_mode()
def _embed_stream(embedder: Embedder, maps: Iterator[Tensor], device: torch.device) -> Tensor:
    """Embed one video: (N, D) on its device, which may still be computing them."""
    on_device = (chunk.to(device, non_blocking=True) for chunk in maps)
    chunks = embedder.embed_stream(chunk if embedder.takes_half else chunk.float() for chunk in on_device)
    return torch.cat([chunk.float() for chunk in chunks])


def _copy_to_host(
    videos: Iterable[tuple[VideoRecord, Tensor]],
) -> Iterator[tuple[VideoRecord, NDArray[np.float32]]]:
    """Copy embeddings (N, D) to host memory while a GPU works on the next videos."""
    pending: deque[tuple[VideoRecord, Tensor, torch.cuda.Event | None]] = deque()
    for record, embeddings in videos:
        host, event = embeddings, None
        if embeddings.is_cuda:
            host = torch.empty(embeddings.shape, pin_memory=True).copy_(embeddings, non_blocking=True)
            event = torch.cuda.current_stream(embeddings.device).record_event()
        pending.append((record, host, event))
        if event is None or len(pending) > VIDEOS_BEHIND:
            yield _wait(*pending.popleft())
    while pending:
        yield _wait(*pending.popleft())


def _wait(
    record: VideoRecord, host: Tensor, event: torch.cuda.Event | None
) -> tuple[VideoRecord, NDArray[np.float32]]:
    """Wait for the copy of one video's embeddings."""
    if event is None:
        return record, host.numpy()
    event.synchronize()
    return record, host.numpy().copy()  # pinned memory is scarce


def check_kinds(encoder: Encoder, records: Sequence[VideoRecord]) -> None:
    """Refuse videos for an encoder of vectors, and sequences of vectors for an encoder of images."""
    kinds = ("sequences (.npz)", "videos")
    expected, other = kinds if encoder.input_kind == "vectors" else kinds[::-1]
    for record in records:
        if (record.kind == "sequence") != (encoder.input_kind == "vectors"):
            raise DataError(f"{record.name}: this encoder was made for {expected}, not for {other}")


def _iter_maps(
    encoder: Encoder,
    fast: FastEncoder | None,
    records: Sequence[VideoRecord],
    *,
    frames: FrameCache,
    features: FeatureCache | FusedFeatures | None,
    times: dict[str, NDArray[np.float64]],
) -> Iterator[tuple[VideoRecord, Iterator[Tensor]]]:
    """Yield records as they become ready, each with chunks (n, F, h, w) of its feature maps.

    The seconds (N,) of their frames are stored in `times`.
    """
    device = encoder.device
    if encoder.input_kind == "vectors":
        width = encoder.base.in_features if isinstance(encoder.base, VectorBase) else None
        for record in records:
            sequence = load_sequence(record, width=width)
            times[record.name] = sequence.times
            vectors = torch.from_numpy(sequence.features).to(device)
            yield record, map(encoder.features, [encoder.base.prepare(vectors)])
        return
    videos = _iter_videos(records, frames, features, times)
    if device.type == "cuda":
        batches: Iterator[Batch] = prefetch(batch_across_videos(videos), depth=BATCHES_AHEAD)
    else:
        batches = batch_each_video(videos)
    base = encoder.base if fast is None else fast.features
    chunks = _iter_chunks(batches, base if features is None else None, device)
    for record, group in groupby(chunks, key=itemgetter(0)):
        yield record, map(itemgetter(1), group)


def _iter_videos(
    records: Sequence[VideoRecord],
    frames: FrameCache,
    features: FeatureCache | FusedFeatures | None,
    times: dict[str, NDArray[np.float64]],
) -> Iterator[Video]:
    """Yield videos as they are decoded, with their frames, or with cached feature maps."""
    for record in frames.iter_filled(
        records, with_frames=lambda cached: features is None or not features.needs_no_frames(cached)
    ):
        cached = frames.load(record)
        times[record.name] = cached.times
        yield record, cached.frames if features is None else features.load(record)


def _iter_chunks(
    batches: Iterable[Batch], base: Callable[[Tensor], Tensor] | None, device: torch.device
) -> Iterator[tuple[VideoRecord, Tensor]]:
    """Yield feature maps (n, F, h, w) by video. Without a `base`, the batches are feature maps already."""
    for array, shares in batches:
        on_device = array.to(device, non_blocking=True)
        maps = on_device if base is None else base(on_device.movedim(-1, 1))
        parts = torch.split(maps, [share.frames for share in shares])
        yield from zip((share.record for share in shares), parts, strict=True)
