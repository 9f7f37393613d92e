"""Which frames an update sees: a pure function of (seed, step, rank), so a resumed run misses nothing.

Shapes: B videos, T sampled frames per video, C context frames; `...` is (H, W, 3) for frames, (F, h, w) for
features.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from cycleback.data import batch_order, context_indices, positives, times

IndexSampler = Callable[[int, torch.Generator], Tensor]
"""Number of frames of a video and a generator -> sorted indices (T,)."""


@dataclass(frozen=True)
class Batch:
    """Clips of B videos of one action.

    Attributes:
        inputs: (B, T, C, ...), each frame with its context; (B, 2T, C, ...) with positives after anchors.
        times: (B, T) frame index / number of frames, in [0, 1).
        videos: B positions in the training set.
        has_positives: whether `inputs` holds T positives after the T anchors.
    """

    inputs: Tensor
    times: Tensor
    videos: tuple[int, ...]
    has_positives: bool


@dataclass
class BatchMaker:
    """Draws the batch of any step.

    Attributes:
        videos: one tensor (N, ...) a video: all its frames, or the feature maps of all its frames.
        actions: the action of each video; a batch holds videos of one action.
        positive_window: farthest positive in frames, or None to draw no positives.
    """

    videos: Sequence[Tensor]
    actions: Sequence[str]
    sample: IndexSampler
    batch_size: int
    context_frames: int
    context_stride: int
    positive_window: int | None
    seed: int
    rank: int = 0
    world_size: int = 1
    _orders: dict[int, list[list[int]]] = field(default_factory=dict, repr=False)

    @property
    def batches_per_epoch(self) -> int:
        """Updates in which every video is seen at least once."""
        return len(self._order(0))

    def __call__(self, step: int) -> Batch:
        """The batch of update `step`."""
        epoch, position = divmod(step, self.batches_per_epoch)
        videos = self._order(epoch)[position]
        clips = [self._clip(video, self._generator(step, slot)) for slot, video in enumerate(videos)]
        return Batch(
            inputs=torch.stack([inputs for inputs, _ in clips]),
            times=torch.stack([when for _, when in clips]),
            videos=tuple(videos),
            has_positives=self.positive_window is not None,
        )

    def _clip(self, video: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        frames = self.videos[video]  # (N, ...)
        indices = self.sample(len(frames), generator)  # (T,)
        chosen = indices
        if self.positive_window is not None:
            near = positives(
                indices, window=self.positive_window, num_frames=len(frames), generator=generator
            )
            chosen = torch.cat([indices, near])  # (2T,)
        rows = context_indices(chosen, context_frames=self.context_frames, context_stride=self.context_stride)
        return frames[rows.to(frames.device)], times(indices, len(frames))

    def _generator(self, step: int, slot: int) -> torch.Generator:
        return torch.Generator().manual_seed(mixed_seed(self.seed, step, self.rank, slot))

    def _order(self, epoch: int) -> list[list[int]]:
        if epoch not in self._orders:
            self._orders = {
                epoch: batch_order(
                    self.actions,
                    batch_size=self.batch_size,
                    seed=self.seed,
                    epoch=epoch,
                    rank=self.rank,
                    world_size=self.world_size,
                )
            }
        return self._orders[epoch]


def mixed_seed(*parts: int) -> int:
    """One 63-bit seed from several numbers; near-by inputs give unrelated seeds (splitmix64 finaliser)."""
    state = 0
    for part in parts:
        state = (state + part + 0x9E3779B97F4A7C15) & 0xFFFFFFFFFFFFFFFF
        state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & 0xFFFFFFFFFFFFFFFF
        state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & 0xFFFFFFFFFFFFFFFF
        state ^= state >> 31
    return state >> 1
