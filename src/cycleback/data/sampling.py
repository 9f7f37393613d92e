"""Choose the videos of each batch and the frames of each video: pure functions that return indices.

Frames are drawn with the `generator` alone (on the CPU), so the same generator state gives the same frames.
All frame indices are int64 on the CPU. The order of batches depends on the actions, the seed and the epoch.

Letters: N = num_frames of the video, T = count of sampled frames, C context frames.
"""

import math
import random
from collections.abc import Iterator, Sequence
from itertools import islice

import torch
from torch import Tensor

from cycleback.errors import DataError


def sample_random(
    num_frames: int, count: int, *, generator: torch.Generator, allow_short: bool = False
) -> Tensor:
    """Draw `count` different frames (T,) uniformly, sorted by time.

    With `allow_short`, a video with fewer frames repeats them evenly; otherwise it is an error.
    """
    _check_at_least_1(count=count)
    if num_frames < count:
        return _repeat_frames(num_frames, count, allow_short)
    return torch.randperm(num_frames, generator=generator)[:count].sort().values


def sample_segments(
    num_frames: int, count: int, *, generator: torch.Generator, allow_short: bool = False
) -> Tensor:
    """Draw one frame (T,) from each of `count` equal pieces; `allow_short` as in `sample_random`."""
    _check_at_least_1(count=count)
    if num_frames < count:
        return _repeat_frames(num_frames, count, allow_short)
    edges = torch.arange(count + 1) * num_frames // count  # (T + 1,)
    places = torch.rand(count, generator=generator, dtype=torch.float64)
    return edges[:-1] + (places * edges.diff()).long()


def sample_strided(
    num_frames: int, count: int, *, stride: int, generator: torch.Generator, allow_short: bool = False
) -> Tensor:
    """Take every `stride`-th frame (T,) from a random start.

    With `allow_short`, a video too short for T strides repeats its last frame, as in the reference program.
    """
    _check_at_least_1(count=count, stride=stride)
    span = (count - 1) * stride + 1
    if num_frames < span and not allow_short:
        raise DataError(
            f"cannot sample {count} frames with stride {stride} ({span} frames) from a video of {num_frames}"
        )
    start = torch.randint(max(1, num_frames - span + 1), (1,), generator=generator)
    return (start + torch.arange(count) * stride).clamp_max(num_frames - 1)


def context_indices(indices: Tensor, *, context_frames: int, context_stride: int) -> Tensor:
    """Return the context of each frame: (..., T) → (..., T, C), oldest first, the frame itself last.

    Context frames are earlier frames; frame 0 stands in for frames before the start of the video.
    """
    _check_at_least_1(context_frames=context_frames, context_stride=context_stride)
    back = torch.arange(context_frames - 1, -1, -1, device=indices.device) * context_stride  # (C,)
    return (indices[..., None] - back).clamp_min(0)


def sample_positives(
    indices: Tensor, *, window: int, num_frames: int | Tensor, generator: torch.Generator
) -> Tensor:
    """Draw for each frame another one at most `window` away, uniformly: (..., T) → (..., T).

    A frame is its own positive only if the video has no other. `num_frames` may be a tensor that broadcasts
    against `indices`, such as (B, 1) for (B, T).
    """
    _check_at_least_1(window=window)
    first = (indices - window).clamp_min(0)
    last = torch.minimum(indices + window, torch.as_tensor(num_frames) - 1)
    others = last - first  # number of frames in first..last other than the frame itself
    draw = torch.rand(indices.shape, generator=generator, dtype=torch.float64)
    chosen = first + (draw * others).long()
    return torch.where(others > 0, chosen + (chosen >= indices).long(), indices)


def _repeat_frames(num_frames: int, count: int, allow_short: bool) -> Tensor:
    """Spread `count` indices (T,) evenly over fewer frames, in order, with repeats."""
    if num_frames < 1 or not allow_short:
        raise DataError(f"cannot sample {count} different frames from a video of {num_frames}")
    return torch.arange(count) * num_frames // count


def _check_at_least_1(**values: int) -> None:
    for name, value in values.items():
        if value < 1:
            raise ValueError(f"{name} must be at least 1, got {value}")


def order_batches(actions: Sequence[str], *, batch_size: int, seed: int, epoch: int) -> list[list[int]]:
    """Return the batches of one epoch, each a list of positions in `actions`.

    - A batch holds different videos of one action: `batch_size` of them, or all if the action has fewer.
    - Every video is in at least one batch of the epoch. A last batch that is too small is completed with
      other videos of its action.
    - All actions have the same number of batches: videos of small actions are used more than once.

    The order depends on `seed` and `epoch`. An action with fewer than two videos is a `DataError`.
    """
    if batch_size < 2:
        raise ValueError(f"batch_size must be at least 2 (one video cannot be aligned), got {batch_size}")
    groups = _group_by_action(actions)
    rounds = max(math.ceil(len(group) / min(batch_size, len(group))) for group in groups.values())
    return list(islice(_repeat_rounds(groups, batch_size, f"{seed}/{epoch}"), rounds * len(groups)))


def _group_by_action(actions: Sequence[str]) -> dict[str, list[int]]:
    """Map each action, sorted, to the positions of its videos."""
    groups: dict[str, list[int]] = {action: [] for action in sorted(set(actions))}
    for position, action in enumerate(actions):
        groups[action].append(position)
    if not groups:
        raise DataError("no videos to train on. Check the folder and the split.")
    for action, group in groups.items():
        if len(group) < 2:
            subject = f"action {action!r}" if action else "the data set"
            raise DataError(
                f"{subject} has {len(group)} video to train on, at least 2 are needed. "
                "Add another video, or remove this one."
            )
    return groups


def _repeat_rounds(groups: dict[str, list[int]], batch_size: int, seed: str) -> Iterator[list[int]]:
    """Yield endless rounds of one batch per action, the actions of each round in random order."""
    order = random.Random(f"{seed}/actions")
    streams = {name: _repeat_action(group, batch_size, f"{seed}/{name}") for name, group in groups.items()}
    while True:
        for action in order.sample(sorted(groups), len(groups)):
            yield next(streams[action])


def _repeat_action(group: Sequence[int], batch_size: int, seed: str) -> Iterator[list[int]]:
    """Yield endless batches of one action: all its videos in random order, again and again."""
    rng = random.Random(seed)
    size = min(batch_size, len(group))
    while True:
        shuffled = rng.sample(group, len(group))
        for start in range(0, len(shuffled), size):
            batch = shuffled[start : start + size]
            batch += rng.sample(shuffled[:start], size - len(batch))
            yield batch
