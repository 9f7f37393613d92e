"""Which frames of a video to use: pure functions from a number of frames to indices.

Randomness comes from the `generator` alone (on the CPU), so the same generator state gives the same frames.
All indices are int64 on the CPU.

Letters: N = num_frames of the video, T = count of sampled frames, C context frames.
"""

import torch
from torch import Tensor

from cycleback.errors import DataError


def random_sorted(
    num_frames: int, count: int, *, generator: torch.Generator, offset: int = 0, allow_short: bool = False
) -> Tensor:
    """`count` different frames (T,) of [offset, N), each set equally likely, in order of time.

    Args:
        num_frames: N.
        count: T.
        generator: source of randomness.
        offset: the first frame that may be drawn; the reference program uses 1.
        allow_short: a video of fewer than `count` frames repeats its frames evenly, instead of an error.
    """
    _check_at_least_1(count=count)
    available = num_frames - offset
    if available < count:
        _require_short(allow_short, num_frames, count, offset)
        return offset + spread(available, count)
    return offset + torch.randperm(available, generator=generator)[:count].sort().values


def segments(
    num_frames: int, count: int, *, generator: torch.Generator | None = None, allow_short: bool = False
) -> Tensor:
    """One frame (T,) of each of `count` equal pieces: a random one, or without generator the middle one."""
    _check_at_least_1(count=count)
    if num_frames < count:
        _require_short(allow_short, num_frames, count, 0)
        return spread(num_frames, count)
    edges = torch.arange(count + 1) * num_frames // count  # (T + 1,)
    lengths = edges[1:] - edges[:-1]
    middle = torch.full((count,), 0.5, dtype=torch.float64)
    where = middle if generator is None else torch.rand(count, generator=generator, dtype=torch.float64)
    return edges[:-1] + (where * lengths).long()


def strided(
    num_frames: int, count: int, *, stride: int, generator: torch.Generator, allow_short: bool = False
) -> Tensor:
    """Every `stride`-th frame (T,) from a random start.

    With `allow_short`, a video too short for T strides repeats its last frame, as the reference program does.
    """
    _check_at_least_1(count=count, stride=stride)
    span = (count - 1) * stride + 1
    if num_frames < span and not allow_short:
        raise DataError(
            f"cannot sample {count} frames with stride {stride} ({span} frames) from a video of {num_frames}"
        )
    start = torch.randint(max(1, num_frames - span + 1), (1,), generator=generator)
    return (start + torch.arange(count) * stride).clamp_max(num_frames - 1)


def every(num_frames: int, stride: int = 1) -> Tensor:
    """Every `stride`-th frame from the first on: (ceil(N / stride),)."""
    _check_at_least_1(stride=stride)
    return torch.arange(0, num_frames, stride)


def spread(num_frames: int, count: int) -> Tensor:
    """`count` indices (T,) that go through all N frames evenly, in order, with repeats where N < T."""
    if num_frames < 1:
        raise DataError(f"cannot sample {count} frames from a video of {num_frames}")
    return torch.arange(count) * num_frames // count


def context_indices(indices: Tensor, *, context_frames: int, context_stride: int) -> Tensor:
    """The frames seen with each frame: (..., T) → (..., T, C), the oldest first and the frame itself last.

    Only the past is looked at. Before the start of the video there is frame 0.
    """
    _check_at_least_1(context_frames=context_frames, context_stride=context_stride)
    back = torch.arange(context_frames - 1, -1, -1, device=indices.device) * context_stride  # (C,)
    return (indices[..., None] - back).clamp_min(0)


def positives(
    indices: Tensor, *, window: int, num_frames: int | Tensor, generator: torch.Generator
) -> Tensor:
    """For each frame another one at most `window` away, all of them equally likely: (..., T) → (..., T).

    It is never the frame itself, unless the video has no other. `num_frames` may be a tensor that broadcasts
    against `indices`, such as (B, 1) for (B, T).
    """
    _check_at_least_1(window=window)
    first = (indices - window).clamp_min(0)
    last = torch.minimum(indices + window, torch.as_tensor(num_frames) - 1)
    others = last - first  # how many frames of first..last are not the frame itself
    draw = torch.rand(indices.shape, generator=generator, dtype=torch.float64)
    chosen = first + (draw * others).long()
    return torch.where(others > 0, chosen + (chosen >= indices).long(), indices)


def times(indices: Tensor, num_frames: int | Tensor) -> Tensor:
    """Frame indices as fractions of the video, float32 in [0, 1); same shape as `indices`."""
    return indices.to(torch.float32) / num_frames


def _require_short(allow_short: bool, num_frames: int, count: int, offset: int) -> None:
    if not allow_short:
        behind = f" after leaving out the first {offset}" if offset else ""
        raise DataError(f"cannot sample {count} different frames from a video of {num_frames}{behind}")


def _check_at_least_1(**values: int) -> None:
    for name, value in values.items():
        if value < 1:
            raise ValueError(f"{name} must be at least 1, got {value}")
