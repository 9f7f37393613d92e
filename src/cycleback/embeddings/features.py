"""Features of a frozen base, computed once per frame and kept on disk.

With a frozen base the features never change, so training touches only the embedder: minutes become seconds.

Shapes: N frames of a video, F feature channels, h w feature map, V size of a vector.
"""

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import cached_property
from itertools import count, islice
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cycleback.alignment.distances import spread_items
from cycleback.arrays import Rows, write_rows
from cycleback.data import FrameCache, VideoRecord
from cycleback.data.cache import CachedFrames
from cycleback.embeddings.choices import describe_arrays, recall
from cycleback.embeddings.embedding_set import EmbeddingSet
from cycleback.embeddings.poses import PoseCache
from cycleback.embeddings.stream_choice import MAX_REFERENCES, find_mirrored, weigh_streams
from cycleback.errors import DataError
from cycleback.models.streams import SCALES, STREAMS, StreamFusion, mirror, stream_vectors
from cycleback.progress import Counter, ignore

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from cycleback.models import Base, FusedBase, Precision

CHUNK_FRAMES = 64  # that a base sees at a time on a CPU
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
        base: "Base",
        *,
        device: "torch.device | None" = None,
        precision: "Precision | None" = None,
    ) -> None:
        import torch

        from cycleback.models import base_fingerprint, default_precision

        self.frames = frames
        self.device = device or torch.device("cpu")
        self.precision: Precision = precision or default_precision(self.device)
        kind = (self.device.type, self.precision)
        self._key = base_fingerprint(base) + KEYS.get(kind, f"-{'-'.join(kind)}")
        self._given = base

    @cached_property
    def _base(self) -> "Callable[[Tensor], Tensor]":
        from cycleback.models import fast_inference

        return fast_inference(copy.deepcopy(self._given).to(self.device), precision=self.precision)

    def load(self, record: VideoRecord, *, progress: Counter = ignore) -> NDArray[np.float16]:
        """Open the maps of one video, memory-mapped; they are computed on first use.

        Args:
            progress: called with (frames done, frames of the video).
        """
        cached = self.frames.load(record)
        if self.find(cached) is None:
            self._write(cached, f"features-{self._key}.npy", self._extract_maps(cached.frames), progress)
        progress(cached.num_frames, cached.num_frames)
        return _require(self.find(cached), cached)

    def find(self, cached: CachedFrames) -> NDArray[np.float16] | None:
        """Map the maps of a video from disk, if they are kept."""
        return cached.find(f"features-{self._key}.npy", np.float16, (None, None, None))

    def load_means(self, record: VideoRecord, *, progress: Counter = ignore) -> NDArray[np.float32]:
        """Open the means (N, F, 1, 1) of the maps of one video, which are all that a stream needs of them."""
        cached = self.frames.load(record)
        if self.find_means(cached) is None:
            maps = self.find(cached)
            chunks = self._extract_maps(cached.frames) if maps is None else _cut(maps)
            means = (_average_map(chunk) for chunk in chunks)
            self._write(cached, f"means-{self._key}.npy", means, progress)
        progress(cached.num_frames, cached.num_frames)
        return _require(self.find_means(cached), cached)

    def find_means(self, cached: CachedFrames) -> NDArray[np.float32] | None:
        """Map the means of a video from disk, if they are kept."""
        return cached.find(f"means-{self._key}.npy", np.float32, (None, 1, 1))

    def fill(self, records: Sequence[VideoRecord], *, progress: Counter = ignore) -> None:
        """Compute the maps of all records that have none. `progress` counts the frames of all records."""
        _count_frames(self.frames, records, self.load, progress, are_found=self.needs_no_frames)

    def needs_no_frames(self, cached: CachedFrames) -> bool:
        """Whether the maps of a video are kept."""
        return self.find(cached) is not None

    def extract(self, frames: NDArray[np.uint8]) -> "Tensor":
        """Compute the maps (n, F, h, w) of frames (n, H, W, 3)."""
        import torch

        images = torch.from_numpy(np.array(frames)).to(self.device).movedim(-1, 1)
        features: Tensor = self._base(images)
        return features

    def _extract_maps(self, frames: NDArray[np.uint8]) -> Iterator[NDArray[np.float16]]:
        for chunk in _cut(frames):
            yield self.extract(chunk).half().cpu().numpy()

    def _write(
        self, cached: CachedFrames, name: str, chunks: Iterable[NDArray[Any]], progress: Counter
    ) -> None:
        """Write the arrays (n, ...) of a video, chunk by chunk."""
        done = 0
        append: Rows | None = None
        with cached.add(name) as draft, ExitStack() as file:
            for array in chunks:
                if append is None:
                    rows = write_rows(draft, array.dtype, array.shape[1:], with_checksum=True)
                    append = file.enter_context(rows)
                append(array)
                done += len(array)
                progress(done, cached.num_frames)
            file.close()


def _cut(array: NDArray[Any]) -> Iterator[NDArray[Any]]:
    """Yield parts (n, ...) of an array (N, ...)."""
    for start in range(0, len(array), CHUNK_FRAMES):
        yield array[start : start + CHUNK_FRAMES]


def _average_map(maps: NDArray[np.float16]) -> NDArray[np.float32]:
    """Return the means (n, F, 1, 1) of maps (n, F, h, w)."""
    means: NDArray[np.float32] = np.asarray(maps, dtype=np.float32).mean(axis=(2, 3), keepdims=True)
    return means


def _require(array: NDArray[Any] | None, cached: CachedFrames) -> NDArray[Any]:
    if array is None:
        raise DataError(
            f"what was computed of a video cannot be stored in {cached.folder}. Delete that folder."
        )
    return array


class FusedFeatures:
    """Features (N, V, 1, 1) float32 of streams side by side, joined anew at each call.

    What takes long is kept on disk: feature maps of a frozen network, motion, and poses. Videos named in
    `mirrored` are turned round first, so that all show the action from the same side.

    Args:
        frames: the cache of decoded frames.
        base: used as it is, so that a change of the weights of streams has an effect; a network is copied.
        device, precision: of the network, as in `FeatureCache`.
        maps, poses: of the networks of an exported model.
    """

    def __init__(
        self,
        frames: FrameCache,
        base: "FusedBase | StreamFusion",
        *,
        device: "torch.device | None" = None,
        precision: "Precision | None" = None,
        maps: FeatureCache | None = None,
        poses: PoseCache | None = None,
    ) -> None:
        self.frames, self.base = frames, base
        self.mirrored: set[str] = set()  # names of videos
        self.maps = maps  # of the network
        if base.appearance is not None:
            self.maps = FeatureCache(frames, base.appearance, device=device, precision=precision)
        self._poses = (poses or PoseCache(frames, device)) if "pose" in base.streams else None

    def load(self, record: VideoRecord, *, is_turned: bool = False) -> NDArray[np.float32]:
        """Return the features (N, V, 1, 1) of one video; `is_turned` asks for those of the other side."""
        cached = self.frames.load(record)
        frames = None if self.base.is_frozen else cached.frames
        return self.fuse(frames, self._load_oriented(record, is_turned), cached.times)

    def load_side(self, record: VideoRecord, *, is_turned: bool = False) -> NDArray[np.float32]:
        """Return what a network does not see while it is trained: the other streams (N, V') of one video."""
        return self.base.fuse(self._load_oriented(record, is_turned), self.frames.load(record).times)

    def _load_oriented(self, record: VideoRecord, is_turned: bool) -> dict[str, NDArray[Any]]:
        raw = self.load_raw(record, self._used)
        return mirror(raw) if (record.name in self.mirrored) != is_turned else raw

    @property
    def _used(self) -> list[str]:
        return [stream for stream, weight in self.base.stream_weights.items() if weight > 0]

    def fuse(
        self, frames: NDArray[np.uint8] | None, raw: Mapping[str, NDArray[Any]], times: NDArray[np.float64]
    ) -> NDArray[np.float32]:
        """Join the streams of a video: (N, V, 1, 1).

        Takes its frames (N, H, W, 3), which only a trained network sees, its raw measurements, and the
        seconds (N,) of the frames.
        """
        side = self.base.fuse(raw, times)
        is_frozen = isinstance(self.base, StreamFusion) or self.base.is_frozen
        if frames is None or is_frozen or self.maps is None:
            return side[:, :, None, None]
        return self._join(self.maps, frames, side)

    def _join(
        self, maps: FeatureCache, frames: NDArray[np.uint8], side: NDArray[np.float32]
    ) -> NDArray[np.float32]:
        """Join what a trained network sees in `frames` (N, H, W, 3) and the other streams (N, V')."""
        import torch

        assert not isinstance(self.base, StreamFusion)
        chunks = []
        with torch.inference_mode():
            for start in range(0, len(frames), CHUNK_FRAMES):
                part = slice(start, start + CHUNK_FRAMES)
                seen = maps.extract(frames[part])
                chunks.append(self.base.join(seen, torch.from_numpy(side[part]).to(seen.device)).cpu())
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
            counter = progress if self._poses is None else ignore
            raw["appearance"] = self.maps.load_means(record, progress=counter)
        if "motion" in self.base.streams and "motion" in streams:
            raw["motion"] = self.frames.load(record).motion
        if self._poses is not None and "pose" in streams:
            raw["pose"] = self._poses.load(record, progress=progress)
        return raw

    def fill(self, records: Sequence[VideoRecord], *, progress: Counter = ignore) -> None:
        """Compute everything that is kept on disk. `progress` counts the frames of all records."""
        _count_frames(self.frames, records, self.load_raw, progress, are_found=self.needs_no_frames)

    def needs_no_frames(self, cached: CachedFrames) -> bool:
        """Whether all that frames tell about a video is kept."""
        return self.maps is None or (self.base.is_frozen and self.maps.find_means(cached) is not None)

    def weigh(self, records: Sequence[VideoRecord], *, progress: Counter = ignore) -> dict[str, float]:
        """Choose the weight of each stream for these videos; see `weigh_streams`."""
        self.fill(records, progress=progress)
        compared = spread_items(records, MAX_WEIGHED)
        chosen: dict[str, float] = recall(
            self.frames.root,
            ["weigh", self.base.streams, [self._describe(record) for record in compared]],
            lambda: weigh_streams(
                [stream_vectors(self.load_raw(each), self.frames.load(each).times) for each in compared]
            ),
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
        known = None if references is None else list(islice(references, MAX_REFERENCES))
        videos = [self._describe(record) for record in records]
        sides = None if known is None else describe_arrays(dict(zip(map(str, count()), known, strict=False)))
        are_mirrored = recall(
            self.frames.root,
            ["orient", self.base.stream_weights, sorted(self.mirrored), videos, sides],
            lambda: find_mirrored(
                _Sides(self, records),
                references=known,
            ),
        )
        self.mirrored = {
            record.name for record, is_mirrored in zip(records, are_mirrored, strict=True) if is_mirrored
        }

    def _describe(self, record: VideoRecord) -> dict[str, list[object]]:
        """Describe all that was measured of a video."""
        return describe_arrays({**self.load_raw(record), "times": self.frames.load(record).times})


class _Sides(Sequence[tuple[NDArray[np.float32], NDArray[np.float32]]]):
    """The vectors (N, V') of videos as they are and turned round, joined anew whenever they are asked for."""

    def __init__(self, features: FusedFeatures, records: Sequence[VideoRecord]) -> None:
        self._features, self._records = features, records

    def __len__(self) -> int:
        return len(self._records)

    def __getitem__(self, place: Any) -> Any:
        record = self._records[place]
        return self._features.load_side(record), self._features.load_side(record, is_turned=True)


def open_features(
    frames: FrameCache,
    base: "Base",
    *,
    device: "torch.device | None" = None,
    precision: "Precision | None" = None,
) -> FeatureCache | FusedFeatures:
    """Open the features of a frozen base; the arguments are those of `FeatureCache`."""
    from cycleback.models import FusedBase

    if isinstance(base, FusedBase):
        return FusedFeatures(frames, base, device=device, precision=precision)
    return FeatureCache(frames, base, device=device, precision=precision)


def prepare_streams(
    features: FusedFeatures,
    records: Sequence[VideoRecord],
    *,
    is_weighed: bool,
    streams: Mapping[str, float] | None,
    alike: EmbeddingSet | None,
    one_event: bool = False,
    progress: Counter = ignore,
) -> None:
    """Compute the streams of some videos, choose their weights, and turn mirrored videos round.

    Args:
        is_weighed: whether the encoder is untrained; a trained one keeps its weights.
        streams, alike, one_event: as in `cycleback.runs.embed_videos`.
    """
    features.fill(records, progress=progress)
    known = alike.streams if alike is not None else streams
    if is_weighed and known is None and one_event:
        known = {stream: SCALES[stream] for stream in features.base.streams}
    if is_weighed:
        features.base.set_weights(known or features.weigh(records, progress=progress))
    if streams is None:
        oriented = None if alike is None else (alike[name] for name in alike.names)
        features.orient(records, references=oriented if is_weighed else None)


def standardize(embeddings: NDArray[np.float32]) -> NDArray[np.float32]:
    """Scale the embeddings (N, D) of one video to mean 0 and standard deviation 1; all zeros if constant."""
    centred = embeddings - embeddings.mean(axis=0)
    deviation = np.sqrt(np.mean(centred**2))
    return centred / deviation if deviation > 1e-6 else np.zeros_like(centred)


def _count_frames(
    frames: FrameCache,
    records: Sequence[VideoRecord],
    load: Callable[..., object],
    progress: Counter,
    *,
    are_found: Callable[[CachedFrames], bool],
) -> None:
    """Call `load(record, progress=...)` for each record as it is decoded, and release its frames.

    The frames of all records are counted together; their total is estimated until all are decoded.
    """
    before = 0
    filled = frames.iter_filled(records, with_frames=lambda cached: not are_found(cached))
    for number, record in enumerate(filled, start=1):

        def count(done: int, own: int, before: int = before, number: int = number) -> None:
            progress(before + done, (before + own) * len(records) // number)

        load(record, progress=count)
        before += frames.load(record).num_frames
        frames.release(record)
