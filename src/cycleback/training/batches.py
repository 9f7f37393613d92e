"""The frames of each batch: a pure function of (seed, number), so a resumed run draws the same batches.

Several processes share each batch: process r of W embeds its videos r, r + W, r + 2 W and so on. The batch is
the same for any number of processes.

Shapes: B videos, b of them embedded by this process, T sampled frames per video, C context frames; `...` is
(H, W, 3) for frames, (V,) for vectors, (F, h, w) for features.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from cycleback.data.sampling import context_indices, order_batches, sample_positives

IndexSampler = Callable[[int, torch.Generator], Tensor]
"""(number of frames of a video, generator) -> sorted indices (T,)."""
Videos = Mapping[int, Tensor] | Sequence[Tensor]
"""Position in the training set -> all frames of the video (N, ...)."""


@dataclass(frozen=True)
class Batch:
    """Clips of B videos of one action. With one process b = B; with several, b is this process's share."""

    inputs: Tensor  # (b, T, C, ...), each frame with its context; (b, 2T, C, ...) with positives
    times: Tensor  # (B, T) frame index / number of frames, in [0, 1)
    frames: Tensor  # (B, T) int64, the frame numbers of the anchors
    videos: tuple[int, ...]  # B positions in the training set
    has_positives: bool  # whether `inputs` holds T positives after the T anchors
    phases: Tensor | None = None  # (B, T) int64, -1 for a frame without label; None if labels are not used
    positive_frames: Tensor | None = (
        None  # (B, T) int64, the frame numbers of the positives, if there are any
    )
    has_views: bool = False  # whether the positives are another view, with an augmentation of their own
    rows: tuple[int, ...] | None = None  # which of the B videos `inputs` holds; None: all
    matches: Tensor | None = None  # (B, B, T), the frame of the second video for each anchor of the first
    side: Tensor | None = None  # (b, T or 2T, C, V'), the streams besides the appearance in `inputs`, if any


@dataclass
class BatchMaker:
    """Draws the batch of any number."""

    videos: Sequence[Tensor]  # (N, ...) per video: all its frames, or the feature maps of all its frames
    actions: Sequence[str]  # one per video; a batch holds videos of one action
    sample: IndexSampler
    batch_size: int
    context_frames: int
    context_stride: int
    positive_window: int | None  # largest distance of a positive in frames, or None to draw no positives
    seed: int
    ahead: int | None = None  # positives are this many frames later instead; at the end, the last frame
    second_view: bool = False  # positives are another view of the video; without a window, any other sample
    rank: int = 0  # the number of this process among the `world_size` that share each batch
    world_size: int = 1
    phases: Sequence[Tensor] | None = None  # (N,) int64 per video, -1 for a frame without label
    sides: Sequence[Tensor] | None = None  # (N, V') per video: streams besides its frames
    mirrored: Sequence[Tensor] | None = None  # the mirrored videos: each clip is drawn from either
    matches: Callable[[int, int], Tensor] | None = None  # (u, v) -> frame of v for each of u (N,)
    context_scale: tuple[float, float] = (1.0, 1.0)  # of the factor on `context_stride`, drawn per clip
    lengths: Sequence[int] | None = None  # frames of each video; None: those of `videos`, which are opened
    _orders: dict[int, list[list[int]]] = field(default_factory=dict, repr=False)

    @property
    def batches_per_epoch(self) -> int:
        """Batches after which every video was drawn at least once."""
        return len(self._order(0))

    def __call__(self, number: int) -> Batch:
        """Draw the batch of this number; only the frames of this process's share are read."""
        epoch, position = divmod(number, self.batches_per_epoch)
        videos = self._order(epoch)[position]
        drawn = [self._draw(video, self._generator(number, slot)) for slot, video in enumerate(videos)]
        anchors, positives = [pair[0] for pair in drawn], [pair[1] for pair in drawn if pair[1] is not None]
        shown = [anchors, positives] if positives else [anchors]
        rows = assign_rows(len(videos), rank=self.rank, world_size=self.world_size)
        looks = [view if self.second_view else 0 for view in range(len(shown))]

        def clips(videos_of: Sequence[Videos]) -> Tensor:
            parts = []
            for view, frames, source in zip(looks, shown, videos_of, strict=True):
                strides = self._strides(number, len(videos), view=view)
                parts.append(
                    torch.stack([self._clip(source[videos[r]], frames[r], strides[r]) for r in rows])
                )
            return torch.cat(parts, dim=1)

        return Batch(
            inputs=clips([self._choose_sides(number, videos, view=view) for view in looks]),
            times=torch.stack(
                [frames.float() / self._count(v) for v, frames in zip(videos, anchors, strict=True)]
            ),
            frames=torch.stack(anchors),
            videos=tuple(videos),
            has_positives=bool(positives),
            phases=None
            if self.phases is None
            else torch.stack([self.phases[v][frames] for v, frames in zip(videos, anchors, strict=True)]),
            positive_frames=torch.stack(positives) if positives else None,
            has_views=self.second_view and bool(positives),
            rows=rows,
            matches=self._match(videos, anchors),
            side=None if self.sides is None else clips([self.sides] * len(shown)),
        )

    def _choose_sides(self, number: int, videos: Sequence[int], *, view: int = 0) -> Videos:
        """Return the videos of a batch by position, each as it is or mirrored."""
        if self.mirrored is None:
            return self.videos
        slot = len(videos) + 1 + 2 * view
        draws = torch.rand(len(videos), generator=self._generator(number, slot)).tolist()
        return {
            v: (self.videos if draw < 0.5 else self.mirrored)[v]
            for v, draw in zip(videos, draws, strict=True)
        }

    def _match(self, videos: Sequence[int], anchors: Sequence[Tensor]) -> Tensor | None:
        """Return the matches (B, B, T) of the anchors, if they are used."""
        if self.matches is None:
            return None
        rows = [
            torch.stack([self.matches(u, v)[frames] for v in videos])
            for u, frames in zip(videos, anchors, strict=True)
        ]
        return torch.stack(rows)

    def _draw(self, video: int, generator: torch.Generator) -> tuple[Tensor, Tensor | None]:
        """Draw the indices (T,) of the anchors, and of their positives if a loss needs them."""
        num_frames = self._count(video)
        anchors = self.sample(num_frames, generator)
        if self.ahead is not None:
            return anchors, (anchors + self.ahead).clamp_max(num_frames - 1)
        if self.positive_window is not None:
            window = self.positive_window
            return anchors, sample_positives(
                anchors, window=window, num_frames=num_frames, generator=generator
            )
        return anchors, self.sample(num_frames, generator) if self.second_view else None

    def _count(self, video: int) -> int:
        return len(self.videos[video]) if self.lengths is None else self.lengths[video]

    def _strides(self, number: int, count: int, *, view: int = 0) -> list[int]:
        """Draw the context stride of each of `count` clips."""
        low, high = self.context_scale
        draws = torch.rand(count, generator=self._generator(number, count + 2 * view)).tolist()
        return [max(1, round(self.context_stride * (low + (high - low) * draw))) for draw in draws]

    def _clip(self, frames: Tensor, indices: Tensor, stride: int) -> Tensor:
        """Return frames (T or 2T, C, ...) of a video (N, ...)."""
        rows = context_indices(indices, context_frames=self.context_frames, context_stride=stride)
        return frames[rows.to(frames.device, non_blocking=True)]  # waiting would leave the device idle

    def _generator(self, number: int, slot: int) -> torch.Generator:
        return torch.Generator().manual_seed(mix_seed(self.seed, number, 0, slot))

    def _order(self, epoch: int) -> list[list[int]]:
        if epoch not in self._orders:
            order = order_batches(self.actions, batch_size=self.batch_size, seed=self.seed, epoch=epoch)
            self._orders = {epoch: order}
        return self._orders[epoch]


def assign_rows(count: int, *, rank: int, world_size: int) -> tuple[int, ...]:
    """Return the rows of a batch of `count` that a process embeds: `rank`, `rank + world_size` and so on.

    Every process gets equally many. Past the end, the first rows are repeated; the repeats are dropped when
    the embeddings are gathered.
    """
    each = -(-count // world_size)
    return tuple((rank + turn * world_size) % count for turn in range(each))


def mix_seed(*parts: int) -> int:
    """Mix several numbers into one 63-bit seed; similar inputs give unrelated seeds (splitmix64)."""
    state = 0
    for part in parts:
        state = (state + part + 0x9E3779B97F4A7C15) & 0xFFFFFFFFFFFFFFFF
        state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & 0xFFFFFFFFFFFFFFFF
        state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & 0xFFFFFFFFFFFFFFFF
        state ^= state >> 31
    return state >> 1
