"""From videos and an encoder to an EmbeddingSet, in memory that does not grow with the video."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cycleback.data import FrameCache, VideoRecord, event_frames, load_sequence
from cycleback.embeddings.features import FeatureCache
from cycleback.embeddings.passes import Pass, Video, shared_passes, single_passes
from cycleback.embeddings.store import EmbeddingSet
from cycleback.errors import DataError
from cycleback.models import Embedder, Encoder, FastEncoder, Precision, fingerprint
from cycleback.prefetch import prefetch

PASSES_AHEAD = 3  # read from the cache while a GPU works on the last ones
VIDEOS_BEHIND = 2  # whose embeddings are fetched while it works on the next ones
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
    times: dict[str, NDArray[np.float64]] = {}
    for record, embeddings in _fetched(
        (record, _embedded(embedder, maps, encoder.device))
        for record, maps in _maps_of(encoder, fast, records, frames=frames, features=features, times=times)
    ):
        arrays[record.name] = standardized(embeddings) if embedder.standardize else embeddings
        if progress is not None:
            done = sum(len(array) for array in arrays.values())
            progress(done, done * len(records) // len(arrays))
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


def embed_maps(embedder: Embedder, maps: Iterator[Tensor], *, device: torch.device) -> NDArray[np.float32]:
    """Embeddings (N, D) of one video from chunks (n, F, h, w) of its feature maps."""
    embeddings: NDArray[np.float32] = _embedded(embedder, maps, device).cpu().numpy()
    return standardized(embeddings) if embedder.standardize else embeddings


@torch.inference_mode()
def _embedded(embedder: Embedder, maps: Iterator[Tensor], device: torch.device) -> Tensor:
    """Embeddings (N, D) on their device, which may still be at work on them."""
    moved = (chunk.to(device, non_blocking=True) for chunk in maps)
    chunks = embedder.embed_stream(chunk if embedder.takes_half else chunk.float() for chunk in moved)
    return torch.cat([chunk.float() for chunk in chunks])


def _fetched(
    videos: Iterable[tuple[VideoRecord, Tensor]],
) -> Iterator[tuple[VideoRecord, NDArray[np.float32]]]:
    """Embeddings (N, D) in host memory; a GPU goes on with the next videos while they come."""
    waiting: deque[tuple[VideoRecord, Tensor, torch.cuda.Event | None]] = deque()
    for record, embeddings in videos:
        host, event = embeddings, None
        if embeddings.is_cuda:
            host = torch.empty(embeddings.shape, pin_memory=True).copy_(embeddings, non_blocking=True)
            event = torch.cuda.current_stream(embeddings.device).record_event()
        waiting.append((record, host, event))
        if event is None or len(waiting) > VIDEOS_BEHIND:
            yield _arrived(*waiting.popleft())
    while waiting:
        yield _arrived(*waiting.popleft())


def _arrived(
    record: VideoRecord, host: Tensor, event: torch.cuda.Event | None
) -> tuple[VideoRecord, NDArray[np.float32]]:
    if event is None:
        return record, host.numpy()
    event.synchronize()
    return record, host.numpy().copy()  # the memory a GPU writes to is scarce


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


def _maps_of(
    encoder: Encoder,
    fast: FastEncoder | None,
    records: Sequence[VideoRecord],
    *,
    frames: FrameCache,
    features: FeatureCache | None,
    times: dict[str, NDArray[np.float64]],
) -> Iterator[tuple[VideoRecord, Iterator[Tensor]]]:
    """Videos or sequences as they are ready, each with the chunks (n, F, h, w) that the base makes of it.

    Seconds (N,) of their frames are put into `times`.
    """
    device = encoder.device
    if fast is None:
        for record in records:
            sequence = load_sequence(record)
            times[record.name] = sequence.times
            vectors = torch.from_numpy(sequence.features).to(device)
            yield record, map(encoder.features, [encoder.base.prepare(vectors)])  # run where it is used
        return
    videos = _opened(records, frames, features, times)
    is_on_gpu = device.type == "cuda"
    passes = prefetch(shared_passes(videos), depth=PASSES_AHEAD) if is_on_gpu else single_passes(videos)
    parts = _parts(passes, fast.features if features is None else None, device)
    for record, group in groupby(parts, key=itemgetter(0)):
        yield record, map(itemgetter(1), group)


def _opened(
    records: Sequence[VideoRecord],
    frames: FrameCache,
    features: FeatureCache | None,
    times: dict[str, NDArray[np.float64]],
) -> Iterator[Video]:
    """Videos as they are decoded, with their frames, or feature maps where they are kept."""
    for record in frames.iter_filled(records):
        cached = frames.load(record)
        times[record.name] = cached.times
        yield record, cached.frames if features is None else features.load(record)


def _parts(
    passes: Iterable[Pass], base: Callable[[Tensor], Tensor] | None, device: torch.device
) -> Iterator[tuple[VideoRecord, Tensor]]:
    """Feature maps (n, F, h, w) by video, of passes of frames (n, H, W, 3), or of maps that are there."""
    for array, shares in passes:
        moved = array.to(device, non_blocking=True)
        maps = moved if base is None else base(moved.movedim(-1, 1))
        parts = torch.split(maps, [share.frames for share in shares])
        yield from zip((share.record for share in shares), parts, strict=True)
