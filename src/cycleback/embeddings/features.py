"""Features of a frozen base, computed once per frame and kept on disk.

With a frozen base the features never change, so training touches only the embedder: minutes become seconds.

Shapes: N frames of a video, F feature channels, h w feature map, V size of a vector.
"""

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cycleback.alignment.distances import spread_items
from cycleback.data import FrameCache, VideoRecord
from cycleback.data.arrays import Rows, write_rows
from cycleback.embeddings.batches import CHUNK_FRAMES
from cycleback.embeddings.poses import PoseCache
from cycleback.embeddings.stream_choice import find_mirrored, weigh_streams
from cycleback.files import atomic_file
from cycleback.models import (
    STREAMS,
    Base,
    FusedBase,
    Precision,
    base_fingerprint,
    default_precision,
    fast_inference,
)
from cycleback.models.streams import SCALES, mirror, stream_vectors
from cycleback.progress import Counter, ignore

MAX_WEIGHED = 24  # videos by which streams are weighed
KEYS = {("cpu", "float32"): "", ("cuda", "bfloat16"): "-bfloat16"}  # the two usual kinds of maps


class FeatureCache:
    """Feature maps (N, F, h, w) float16 by video, written atomically. The files are safe to delete.

    Args:
        frames: the cache of decoded frames; maps are kept beside them.
        base: copied.
        device: where the base runs; the CPU by default.
        precision: of the base; None: see `default_precision`. The maps are rounded to 16 bits in any case.
    """

    def __init__(
        self,
        frames: FrameCache,
        base: Base,
        *,
        device: torch.device | None = None,
        precision: Precision | None = None,
    ) -> None:
        self.frames = frames
        self.device = device or torch.device("cpu")
        self.precision: Precision = precision or default_precision(self.device)
        kind = (self.device.type, self.precision)
        self._key = base_fingerprint(base) + KEYS.get(kind, f"-{'-'.join(kind)}")
        self._base = fast_inference(copy.deepcopy(base).to(self.device), precision=self.precision)

    def load(self, record: VideoRecord, *, progress: Counter = ignore) -> NDArray[np.float16]:
        """Open the maps of one video, memory-mapped; they are computed on first use.

        Args:
            progress: called with (frames done, frames of the video).
        """
        cached = self.frames.load(record)
        path = self.frames.folder(record) / f"features-{self._key}.npy"
        if path.exists():
            progress(cached.num_frames, cached.num_frames)
        else:
            self._write(path, cached.frames, progress)
        return np.load(path, mmap_mode="r")  # type: ignore[no-any-return]

    def fill(self, records: Sequence[VideoRecord], *, progress: Counter = ignore) -> None:
        """Compute the maps of all records that have none. `progress` counts the frames of all records."""
        _count_frames(self.frames, records, self.load, progress)

    def extract(self, frames: NDArray[np.uint8]) -> Tensor:
        """Compute the maps (n, F, h, w) of frames (n, H, W, 3)."""
        images = torch.from_numpy(np.array(frames)).to(self.device).movedim(-1, 1)
        features: Tensor = self._base(images)
        return features

    def _write(self, path: Path, frames: NDArray[np.uint8], progress: Counter) -> None:
        with atomic_file(path, overwrite=True) as draft, ExitStack() as file:
            append: Rows | None = None
            for start in range(0, len(frames), CHUNK_FRAMES):
                maps = self.extract(frames[start : start + CHUNK_FRAMES]).half().cpu().numpy()
                append = append or file.enter_context(write_rows(draft, np.float16, maps.shape[1:]))
                append(maps)
                progress(start + len(maps), len(frames))


class FusedFeatures:
    """Features (N, V, 1, 1) float32 of streams side by side, joined anew at each call.

    What takes long is kept on disk: feature maps of a frozen network, motion, and poses. Videos named in
    `mirrored` are turned round first, so that all show the action from the same side.

    Args:
        frames: the cache of decoded frames.
        base: used as it is, so that a change of the weights of streams has an effect; a network is copied.
        device, precision: of the network, as in `FeatureCache`.
    """

    def __init__(
        self,
        frames: FrameCache,
        base: FusedBase,
        *,
        device: torch.device | None = None,
        precision: Precision | None = None,
    ) -> None:
        self.frames, self.base = frames, base
        self.mirrored: set[str] = set()  # names of videos
        self.maps = None  # of the network
        if base.appearance is not None:
            self.maps = FeatureCache(frames, base.appearance, device=device, precision=precision)
        self._poses = PoseCache(frames, device) if "pose" in base.streams else None

    def load(self, record: VideoRecord, *, is_turned: bool = False) -> NDArray[np.float32]:
        """Return the features (N, V, 1, 1) of one video; `is_turned` asks for those of the other side."""
        cached = self.frames.load(record)
        return self.fuse(cached.frames, self._load_oriented(record, is_turned), cached.times)

    def load_side(self, record: VideoRecord, *, is_turned: bool = False) -> NDArray[np.float32]:
        """Return what a network does not see while it is trained: the other streams (N, V') of one video."""
        return self.base.fuse(self._load_oriented(record, is_turned), self.frames.load(record).times)

    def _load_oriented(self, record: VideoRecord, is_turned: bool) -> dict[str, NDArray[Any]]:
        raw = self.load_raw(record, self._used)
        return mirror(raw) if (record.name in self.mirrored) != is_turned else raw

    @property
    def _used(self) -> list[str]:
        return [stream for stream, weight in self.base.stream_weights.items() if weight > 0]

    @torch.inference_mode()
    def fuse(
        self, frames: NDArray[np.uint8], raw: Mapping[str, NDArray[Any]], times: NDArray[np.float64]
    ) -> NDArray[np.float32]:
        """Join the streams of a video: (N, V, 1, 1).

        Takes its frames (N, H, W, 3), its raw measurements, and the seconds (N,) of the frames.
        """
        side = self.base.fuse(raw, times)
        if self.base.is_frozen or self.maps is None:
            return side[:, :, None, None]
        chunks = []
        for start in range(0, len(frames), CHUNK_FRAMES):
            part = slice(start, start + CHUNK_FRAMES)
            maps = self.maps.extract(frames[part])
            chunks.append(self.base.join(maps, torch.from_numpy(side[part]).to(maps.device)).cpu())
        return torch.cat(chunks).numpy()

    def load_raw(
        self, record: VideoRecord, streams: Sequence[str] = STREAMS, *, progress: Counter = ignore
    ) -> dict[str, NDArray[Any]]:
        """Return the raw measurements of one video by stream; they are computed on first use.

        Args:
            streams: only these, of the streams of the base.
            progress: called with (frames done, frames of the video) by the slowest stream.
        """
        raw: dict[str, NDArray[Any]] = {}
        if self.maps is not None and self.base.is_frozen and "appearance" in streams:
            raw["appearance"] = self.maps.load(record, progress=progress if self._poses is None else ignore)
        if "motion" in self.base.streams and "motion" in streams:
            raw["motion"] = self.frames.load(record).motion
        if self._poses is not None and "pose" in streams:
            raw["pose"] = self._poses.load(record, progress=progress)
        return raw

    def fill(self, records: Sequence[VideoRecord], *, progress: Counter = ignore) -> None:
        """Compute everything that is kept on disk. `progress` counts the frames of all records."""
        _count_frames(self.frames, records, self.load_raw, progress)

    def weigh(self, records: Sequence[VideoRecord], *, progress: Counter = ignore) -> dict[str, float]:
        """Choose the weight of each stream for these videos; see `weigh_streams`."""
        self.fill(records, progress=progress)
        chosen = weigh_streams(
            [
                stream_vectors(self.load_raw(record), self.frames.load(record).times)
                for record in spread_items(records, MAX_WEIGHED)
            ]
        )
        return {stream: chosen.get(stream, SCALES[stream]) for stream in self.base.streams}

    def orient(
        self, records: Sequence[VideoRecord], *, references: Iterable[NDArray[np.float32]] | None = None
    ) -> None:
        """Find the `mirrored` videos among these, alone or by `references` (N, V); see `find_mirrored`."""
        if "motion" not in self._used and "pose" not in self._used:
            return
        if len(records) < 2 and references is None:
            return
        videos = [(self.load_side(record), self.load_side(record, is_turned=True)) for record in records]
        are_mirrored = find_mirrored(videos, references=references)
        self.mirrored = {
            record.name for record, is_mirrored in zip(records, are_mirrored, strict=True) if is_mirrored
        }


def open_features(
    frames: FrameCache,
    base: Base,
    *,
    device: torch.device | None = None,
    precision: Precision | None = None,
) -> FeatureCache | FusedFeatures:
    """Open the features of a frozen base; the arguments are those of `FeatureCache`."""
    if isinstance(base, FusedBase):
        return FusedFeatures(frames, base, device=device, precision=precision)
    return FeatureCache(frames, base, device=device, precision=precision)


def _count_frames(
    frames: FrameCache, records: Sequence[VideoRecord], load: Callable[..., object], progress: Counter
) -> None:
    """Call `load(record, progress=...)` for each record, and count the frames of all records together."""
    counts = [frames.load(record).num_frames for record in records]
    for number, record in enumerate(records):
        before = sum(counts[:number])
        load(record, progress=lambda done, _, before=before: progress(before + done, sum(counts)))
