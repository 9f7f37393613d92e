"""Which videos go into which batch: a pure function of the data, the seed, the epoch and the rank."""

import math
import random
from collections.abc import Iterator, Sequence
from itertools import islice

from cycleback.errors import DataError


def batch_order(
    actions: Sequence[str], *, batch_size: int, seed: int, epoch: int, rank: int = 0, world_size: int = 1
) -> list[list[int]]:
    """The batches of one epoch for one rank, each a list of positions in `actions`.

    - A batch holds different videos of one action: `batch_size` of them, or all where the action has fewer.
    - Every video is in at least one batch of the epoch. A last batch that is too small is filled up with
      other videos of its action.
    - Actions come equally often, however many videos they have: small actions go round more than once.
    - Batches are dealt to the ranks in turn, no batch to two of them, and every rank gets equally many.
      Where the number does not divide, batches are added, not dropped.

    Args:
        actions: action of each video.
        batch_size: videos in a batch, at least 2.
        seed: with `epoch`, decides the order.
        epoch: counted from 0; each has another order.
        rank: which of the processes that train together.
        world_size: how many processes train together.

    Raises:
        DataError: an action has fewer than two videos.
    """
    _check(batch_size, rank, world_size)
    groups = _groups(actions)
    rounds = max(math.ceil(len(group) / min(batch_size, len(group))) for group in groups.values())
    total = math.ceil(rounds * len(groups) / world_size) * world_size
    return list(islice(_endless(groups, batch_size, f"{seed}/{epoch}"), rank, total, world_size))


def _check(batch_size: int, rank: int, world_size: int) -> None:
    if batch_size < 2:
        raise ValueError(f"batch_size must be at least 2 (one video cannot be aligned), got {batch_size}")
    if not 0 <= rank < world_size:
        raise ValueError(f"rank must be in 0..{world_size - 1}, got {rank}")


def _groups(actions: Sequence[str]) -> dict[str, list[int]]:
    """Action → positions of its videos, actions sorted."""
    groups: dict[str, list[int]] = {action: [] for action in sorted(set(actions))}
    for position, action in enumerate(actions):
        groups[action].append(position)
    if not groups:
        raise DataError("no videos to make batches of. Check the folder and the split.")
    for action, group in groups.items():
        if len(group) < 2:
            of = f"action {action!r}" if action else "the data set"
            raise DataError(
                f"{of} has {len(group)} video to train on, at least 2 are needed. Add one, or leave it out."
            )
    return groups


def _endless(groups: dict[str, list[int]], batch_size: int, seed: str) -> Iterator[list[int]]:
    """Rounds of one batch of each action, the actions of a round in random order, without end."""
    order = random.Random(f"{seed}/actions")
    streams = {
        action: _endless_batches(group, batch_size, f"{seed}/{action}") for action, group in groups.items()
    }
    while True:
        for action in order.sample(sorted(groups), len(groups)):
            yield next(streams[action])


def _endless_batches(group: Sequence[int], batch_size: int, seed: str) -> Iterator[list[int]]:
    """Batches of one action: all its videos in random order, again and again."""
    chance = random.Random(seed)
    size = min(batch_size, len(group))
    while True:
        shuffled = chance.sample(group, len(group))
        for start in range(0, len(shuffled), size):
            batch = shuffled[start : start + size]
            batch += chance.sample(shuffled[:start], size - len(batch))
            yield batch
