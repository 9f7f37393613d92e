"""Cut the frames of many videos into batches for the base.

On a GPU all batches have one size, so a batch may hold the end of one video and the start of the next: cuDNN
plans every layer again for a new batch size, and a short batch costs the processor as much as a long one.

Shapes: N frames of a video, n frames of a batch.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cycleback.data import VideoRecord
from cycleback.embeddings.features import CHUNK_FRAMES

GPU_CHUNK_FRAMES = 256


class Share(NamedTuple):
    """How many frames of a batch belong to a video."""

    record: VideoRecord
    frames: int


Video = tuple[VideoRecord, NDArray[Any]]
"""A record with its frames or feature maps (N, ...)."""
Batch = tuple[Tensor, Sequence[Share]]
"""Frames or feature maps (n, ...), and the videos they belong to, in order."""


def batch_each_video(videos: Iterable[Video], *, size: int = CHUNK_FRAMES) -> Iterator[Batch]:
    """Yield batches of at most `size` frames, each from one video."""
    for record, array in videos:
        for start in range(0, len(array), size):
            chunk = np.array(array[start : start + size])
            yield torch.from_numpy(chunk), [Share(record, len(chunk))]


def batch_across_videos(videos: Iterable[Video], *, size: int = GPU_CHUNK_FRAMES) -> Iterator[Batch]:
    """Yield batches of exactly `size` frames, except the last, in pinned memory for a GPU."""
    batch: Tensor | None = None
    shares: list[Share] = []
    for record, array in videos:
        start = 0
        while start < len(array):
            batch = _empty_batch((size, *array.shape[1:]), array.dtype) if batch is None else batch
            used = sum(share.frames for share in shares)
            chunk = array[start : start + size - used]
            np.copyto(batch.numpy()[used : used + len(chunk)], chunk)
            shares.append(Share(record, len(chunk)))
            start += len(chunk)
            if used + len(chunk) == size:
                yield batch, shares
                batch, shares = None, []
    if batch is not None:
        yield batch[: sum(share.frames for share in shares)], shares


def _empty_batch(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Tensor:
    """Allocate memory, pinned where there is a GPU."""
    kind = torch.from_numpy(np.empty(0, dtype)).dtype
    return torch.empty(shape, dtype=kind, pin_memory=torch.cuda.is_available())
