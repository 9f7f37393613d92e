"""Frames of many videos cut into passes of the base: on a GPU all of one size, whichever videos they are of.

For a new number of images cuDNN plans every layer anew, and a short pass costs the processor as much as a
long one. So a GPU gets the end of a video and the beginning of the next in one pass.

Shapes: N frames of a video, n of a pass, H W pixels.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cycleback.data import VideoRecord

CHUNK_FRAMES = 64
GPU_CHUNK_FRAMES = 256


class Share(NamedTuple):
    """How many frames of a pass are of a video."""

    record: VideoRecord
    frames: int


Video = tuple[VideoRecord, NDArray[Any]]
"""A record with its frames or feature maps (N, ...)."""
Pass = tuple[Tensor, Sequence[Share]]
"""Frames or maps (n, ...) that go through together, and whose they are."""


def single_passes(videos: Iterable[Video], *, size: int = CHUNK_FRAMES) -> Iterator[Pass]:
    """Passes of at most `size` frames, each of one video."""
    for record, array in videos:
        for start in range(0, len(array), size):
            piece = np.array(array[start : start + size])
            yield torch.from_numpy(piece), [Share(record, len(piece))]


def shared_passes(videos: Iterable[Video], *, size: int = GPU_CHUNK_FRAMES) -> Iterator[Pass]:
    """Passes of `size` frames, the last one of fewer, in memory from which a GPU copies by itself."""
    room: Tensor | None = None
    shares: list[Share] = []
    for record, array in videos:
        start = 0
        while start < len(array):
            room = _room((size, *array.shape[1:]), array.dtype) if room is None else room
            used = sum(share.frames for share in shares)
            piece = array[start : start + size - used]
            np.copyto(room.numpy()[used : used + len(piece)], piece)
            shares.append(Share(record, len(piece)))
            start += len(piece)
            if used + len(piece) == size:
                yield room, shares
                room, shares = None, []
    if room is not None:
        yield room[: sum(share.frames for share in shares)], shares


def _room(shape: Sequence[int], dtype: np.dtype[Any]) -> Tensor:
    """Memory from which a GPU copies by itself; common memory where there is none."""
    kind = torch.from_numpy(np.empty(0, dtype)).dtype
    return torch.empty(tuple(shape), dtype=kind, pin_memory=torch.cuda.is_available())
