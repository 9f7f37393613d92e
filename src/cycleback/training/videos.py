"""The training videos: whole, in the form an encoder trains on, and their phase labels.

Shapes: N frames of a video, H W pixels, S numbers per frame of a sequence, V of a vector (S, or 2 S with
velocities), F feature channels, h w feature map.
"""

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cycleback.data import FrameCache, VideoRecord, event_frames, load_sequence, phases_from_events
from cycleback.data.cache import memory_bytes
from cycleback.embeddings.features import FusedFeatures, open_features
from cycleback.errors import DataError
from cycleback.models import Base, Encoder, FusedBase, VectorBase
from cycleback.progress import Counter, ignore
from cycleback.training.distributed import Processes

UNLABELLED = -1
Storage = Literal["auto", "memory", "mapped"]
MEMORY_SHARE = 0.5  # of the memory that videos may take before they are mapped from disk
KEPT_MAPS = 128  # videos that are mapped at a time: each takes a file handle


class MappedVideos(Sequence[Tensor]):
    """Videos that stay on disk: of each, only the frames of a batch are read.

    Args:
        records: the videos.
        load: maps one of them from disk.
        lengths: frames of each video.
    """

    def __init__(
        self,
        records: Sequence[VideoRecord],
        load: Callable[[VideoRecord], NDArray[Any]],
        lengths: Sequence[int],
    ) -> None:
        self.records, self.lengths = list(records), list(lengths)
        self._open = lru_cache(maxsize=KEPT_MAPS)(lambda number: _map_tensor(load(self.records[number])))

    def __len__(self) -> int:
        return len(self.records)

    def __getitem__(self, number: Any) -> Any:
        """Return all frames (N, ...) of a video; those that are not used are not read."""
        if not -len(self) <= number < len(self):
            raise IndexError(number)
        return self._open(number % len(self))


def _map_tensor(array: NDArray[Any]) -> Tensor:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch warns of arrays that must not be written; nobody does
        return torch.from_numpy(array)


def count_frames(videos: Sequence[Tensor]) -> list[int]:
    """Return the frames of each video, without opening any that is mapped."""
    return videos.lengths if isinstance(videos, MappedVideos) else [len(video) for video in videos]


def load_videos(
    encoder: Encoder,
    records: Sequence[VideoRecord],
    *,
    frames: FrameCache,
    device: torch.device,
    on_frames: Counter = ignore,
    on_features: Counter = ignore,
    streams: FusedFeatures | None = None,
    storage: Storage = "memory",
    sharers: int = 1,
) -> Sequence[Tensor]:
    """Load each video whole onto `device`, or map its frames from the cache.

    A video is frames (N, H, W, 3) uint8; with a frozen base, feature maps (N, F, h, w) float16, or float32 of
    streams, computed once; for sequences, vectors (N, V) float32. `streams` are those of `fit_base`.

    Args:
        storage: "memory"; "mapped": frames stay on disk, and videos may be larger than memory; "auto" maps
            frames that would take more than half of the memory.
        sharers: processes of this machine that each load the videos.
    """
    if encoder.input_kind == "vectors":
        return [encoder.base.prepare(load_vectors(record, encoder.base)).to(device) for record in records]
    _require_videos(records)
    frames.fill(records, progress=on_frames, with_frames=encoder.train_base != "frozen")
    if encoder.train_base != "frozen":
        counts = [frames.load(record).num_frames for record in records]
        if _is_mapped(storage, sum(counts) * 3 * math.prod(frames.size), device=device, sharers=sharers):
            for record in records:
                frames.keep(record)
            return MappedVideos(records, lambda record: frames.load(record).frames, counts)
        return frames.load_tensors(records, device=device)
    features = streams or open_features(frames, encoder.base, device=device)
    features.fill(records, progress=on_features)
    if isinstance(features, FusedFeatures) and streams is None:
        features.orient(records)
    return [torch.from_numpy(np.array(features.load(record))).to(device) for record in records]


def _is_mapped(storage: Storage, nbytes: int, *, device: torch.device, sharers: int) -> bool:
    """Decide whether frames of `nbytes` stay on disk."""
    if storage != "auto":
        return storage == "mapped"
    if device.type == "cuda":
        return nbytes > MEMORY_SHARE * torch.cuda.mem_get_info(device)[0]
    return nbytes * sharers > MEMORY_SHARE * memory_bytes()


def fill_share(
    encoder: Encoder,
    records: Sequence[VideoRecord],
    *,
    frames: FrameCache,
    processes: Processes,
    on_frames: Counter = ignore,
    on_features: Counter = ignore,
) -> None:
    """Decode this process's share of the videos into the cache, and compute what a frozen base sees of them.

    If the processes share the cache, each video is decoded once by all of them together.
    """
    if encoder.input_kind == "vectors" or processes.world_size == 1:
        return
    _require_videos(records)
    own = processes.deal(records)
    is_frozen = encoder.train_base == "frozen"
    with processes.together():
        frames.fill(own, progress=on_frames, with_frames=not is_frozen)
        if is_frozen or isinstance(encoder.base, FusedBase):
            features = open_features(frames, encoder.base, device=encoder.device)
            features.fill(own, progress=on_features)


def load_sides(
    encoder: Encoder,
    records: Sequence[VideoRecord],
    *,
    frames: FrameCache,
    device: torch.device,
    streams: FusedFeatures | None = None,
) -> list[Tensor] | None:
    """Load for each video the streams (N, V') that a trained base does not see; None if there are none."""
    base = encoder.base
    if not isinstance(base, FusedBase) or base.is_frozen:
        return None
    features = streams or FusedFeatures(frames, base, device=device)
    return [torch.from_numpy(features.load_side(record)).to(device) for record in records]


def load_mirrored(
    encoder: Encoder, records: Sequence[VideoRecord], *, streams: FusedFeatures | None
) -> list[Tensor] | None:
    """Load each video mirrored, as `load_videos` does, if streams alone are the input."""
    if streams is None or encoder.train_base != "frozen":
        return None
    return [torch.from_numpy(streams.load(record, is_turned=True)).to(encoder.device) for record in records]


def fit_base(
    encoder: Encoder,
    records: Sequence[VideoRecord],
    *,
    frames: FrameCache,
    on_frames: Counter = ignore,
    on_features: Counter = ignore,
) -> FusedFeatures | None:
    """Set what a base takes from the training videos: statistics of vectors, or weights of streams.

    Returns the streams of the videos, all turned to the same side, if the base has streams.
    """
    base, device = encoder.base, encoder.device
    if isinstance(base, VectorBase):
        base.fit(load_vectors(record, base).to(device) for record in records)
    elif isinstance(base, FusedBase):
        _require_videos(records)
        frames.fill(records, progress=on_frames, with_frames=not base.is_frozen)
        streams = FusedFeatures(frames, base, device=device)
        base.set_weights(streams.weigh(records, progress=on_features))
        if base.is_frozen:
            streams.orient(records)
        return streams
    return None


def _require_videos(records: Sequence[VideoRecord]) -> None:
    for record in records:
        if record.kind == "sequence":
            advice = "set encoder.base='vector', or use --recipe poses"
            raise DataError(f"{record.path} is a sequence of vectors: {advice}")


def load_vectors(record: VideoRecord, base: Base | None = None) -> Tensor:
    """Load the vectors (N, S) float32 of a sequence, without velocities; S is that of `base`, if given."""
    if record.kind != "sequence":
        raise DataError(f"{record.path} is not a sequence (.npz), which encoder.base='vector' needs")
    width = base.in_features if isinstance(base, VectorBase) else None
    return torch.from_numpy(load_sequence(record, width=width).features)


def load_times(record: VideoRecord, frames: FrameCache) -> NDArray[np.float64]:
    """Load the presentation times (N,) of a video or sequence in seconds."""
    return load_sequence(record).times if record.kind == "sequence" else frames.load(record).times


@dataclass(frozen=True)
class PhaseLabels:
    """The phases of the training videos; phase numbers of different actions differ."""

    videos: list[Tensor]  # (N,) int64 per video; all -1 if it lacks an event that others of its action have
    num_phases: int  # of all actions together


def label_phases(
    records: Sequence[VideoRecord], times: Mapping[str, NDArray[np.float64]], *, batch_size: int
) -> PhaseLabels:
    """Compute the phases of each training video from its key events.

    `times` maps names to presentation times (N,) in seconds. Each batch of `batch_size` videos must hold one
    with labels.
    """
    num_phases = 0
    events: dict[str, set[str]] = {}
    first_phase: dict[str, int] = {}
    for action in sorted({record.action for record in records}):
        group = [record for record in records if record.action == action]
        events[action] = {event for record in group for event in record.events}
        _require_labels(action, group, events[action], batch_size)
        first_phase[action] = num_phases
        num_phases += len(events[action]) + 1

    def phases_of(record: VideoRecord) -> Tensor:
        num_frames = len(times[record.name])
        if not events[record.action] <= record.events.keys():
            return torch.full((num_frames,), UNLABELLED)
        frames = list(event_frames(record, times[record.name]).values())
        return torch.from_numpy(phases_from_events(frames, num_frames) + first_phase[record.action])

    return PhaseLabels([phases_of(record) for record in records], num_phases)


def _require_labels(action: str, records: Sequence[VideoRecord], events: set[str], batch_size: int) -> None:
    """Refuse an action of which a batch could hold no labelled video."""
    lacking = [record.name for record in records if not events or not events <= record.events.keys()]
    if len(lacking) >= min(batch_size, len(records)):
        of = f"action {action!r}" if action else "the data set"
        raise DataError(
            f"the supervised loss needs labels: {len(lacking)} of {len(records)} training videos of {of} "
            f"lack key events (the first: {lacking[0]}). Label them in labels.csv, "
            "or set loss.weights.supervised=0."
        )
