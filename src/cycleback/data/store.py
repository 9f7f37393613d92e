"""Frames of many videos, ready for training: mapped from the cache, or whole in memory or on the device.

Letters: B videos of a batch, N frames of a video, T sampled frames, C context frames, H W pixels, F features.
"""

import os
import warnings
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cycleback.data.cache import FrameCache
from cycleback.data.records import VideoRecord
from cycleback.data.sequences import load_sequence
from cycleback.errors import DataError


class FrameStore:
    """Frames of videos by name, as torch tensors: uint8 (N, H, W, 3) of pixels or float32 (N, F) of features.

    `FrameStore.mapped` reads from disk what is asked for, and holds nothing. `FrameStore.resident` holds
    everything in one tensor in memory or on a device, from which a batch is gathered in one operation.

    Args:
        items: video → (frames, times in seconds (N,)), all of one type and one shape but for N.
    """

    def __init__(self, items: Mapping[str, tuple[Tensor, NDArray[np.float64]]]) -> None:
        if not items:
            raise DataError("no videos to hold. Check the folder and the split.")
        self._frames = {name: frames for name, (frames, _) in items.items()}
        self._times = {name: times for name, (_, times) in items.items()}
        self._whole: Tensor | None = None  # (sum N, ...), which the tensors of _frames are parts of
        self._starts: dict[str, int] = {}
        _check_alike(self._frames)

    @classmethod
    def mapped(cls, cache: FrameCache, records: Iterable[VideoRecord]) -> "FrameStore":
        """Frames stay on disk; videos that are not in the cache yet are decoded now."""
        return cls({record.name: _open(cache, record) for record in records})

    @classmethod
    def resident(
        cls, cache: FrameCache, records: Iterable[VideoRecord], *, device: torch.device | str = "cpu"
    ) -> "FrameStore":
        """All frames in the memory of `device`, copied video by video."""
        store = cls.mapped(cache, records)
        store._load(torch.device(device))
        return store

    def _load(self, device: torch.device) -> None:
        first = next(iter(self._frames.values()))
        total = sum(len(frames) for frames in self._frames.values())
        if device.type == "cpu" and self.nbytes > _memory_bytes():
            raise _too_large(self.nbytes, device)
        try:
            self._whole = torch.empty((total, *first.shape[1:]), dtype=first.dtype, device=device)
        except torch.cuda.OutOfMemoryError as error:
            raise _too_large(self.nbytes, device) from error
        start = 0
        for name, frames in self._frames.items():
            end = start + len(frames)
            self._whole[start:end].copy_(frames)
            self._starts[name], self._frames[name] = start, self._whole[start:end]
            start = end

    @property
    def names(self) -> tuple[str, ...]:
        """Videos of the store, in the order they were given."""
        return tuple(self._frames)

    @property
    def device(self) -> torch.device:
        """Where `frames` and `clips` are."""
        return next(iter(self._frames.values())).device

    @property
    def nbytes(self) -> int:
        """Bytes of all frames."""
        return sum(frames.numel() * frames.element_size() for frames in self._frames.values())

    def frames(self, name: str) -> Tensor:
        """All frames of a video, uint8 (N, H, W, 3) or float32 (N, F); a view, not to be written to."""
        return self._frames[name]

    def times(self, name: str) -> NDArray[np.float64]:
        """Presentation time (N,) of each frame in seconds."""
        return self._times[name]

    def num_frames(self, name: str) -> int:
        """N."""
        return len(self._times[name])

    def clips(self, names: Sequence[str], indices: Tensor) -> Tensor:
        """Chosen frames of B videos.

        Args:
            names: B videos.
            indices: int64 (B, ...) frames of each video, such as (B, T) or (B, T, C).

        Returns:
            uint8 (B, ..., 3, H, W), channels last in memory; for features float32 (B, ..., F). On `device`.
        """
        _check_indices(names, indices, [self.num_frames(name) for name in names])
        if self._whole is None:
            picked = torch.stack(
                [self._frames[name][part] for name, part in zip(names, indices, strict=True)]
            )
        else:
            starts = torch.tensor([self._starts[name] for name in names])
            shifted = indices + starts.reshape(-1, *[1] * (indices.ndim - 1))
            picked = self._whole[shifted.to(self.device)]
        return picked.movedim(-1, -3) if picked.dtype == torch.uint8 else picked


def _open(cache: FrameCache, record: VideoRecord) -> tuple[Tensor, NDArray[np.float64]]:
    if record.kind == "sequence":
        sequence = load_sequence(record)
        return torch.from_numpy(sequence.features), sequence.times
    cached = cache.load(record)
    with warnings.catch_warnings():  # torch warns that the mapped array is read-only, as it should be
        warnings.filterwarnings("ignore", message=".*not writable.*", category=UserWarning)
        return torch.from_numpy(cached.frames), cached.times


def _memory_bytes() -> float:
    """Memory of this machine; infinite where the system does not tell."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):
        return float("inf")


def _too_large(nbytes: int, device: torch.device) -> DataError:
    return DataError(
        f"{nbytes / 2**30:.1f} GiB of frames do not fit into the memory of {device}. "
        "Keep them on disk, or lower the size of the frames."
    )


def _check_alike(frames: Mapping[str, Tensor]) -> None:
    (first, expected), *others = frames.items()
    for name, tensor in others:
        if tensor.shape[1:] != expected.shape[1:] or tensor.dtype != expected.dtype:
            raise DataError(
                f"{name} has {tensor.dtype} frames of {tuple(tensor.shape[1:])}, but {first} has "
                f"{expected.dtype} of {tuple(expected.shape[1:])}. All videos of a data set must be alike."
            )


def _check_indices(names: Sequence[str], indices: Tensor, num_frames: Sequence[int]) -> None:
    if indices.ndim < 2 or len(names) != len(indices):
        raise ValueError(
            f"indices must be ({len(names)}, ...) for {len(names)} videos, got {tuple(indices.shape)}"
        )
    for name, part, length in zip(names, indices, num_frames, strict=True):
        if part.numel() and (int(part.min()) < 0 or int(part.max()) >= length):
            raise IndexError(f"{name} has {length} frames, asked for {int(part.min())} to {int(part.max())}")
