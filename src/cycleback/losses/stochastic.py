"""Temporal cycle-consistency over random cycles of any length: U -> V -> W -> ... -> U.

Paper: Dwibedi et al., "Temporal Cycle-Consistency Learning", CVPR 2019, arXiv:1904.07846, 3.4: losses "for
randomly selected frames". Longer cycles are in the authors' program only, which calls this stochastic
matching. It walks 0 -> 1 -> 0 whenever the number of cycles is a multiple of B; here each cycle draws its own
videos.

Shapes: B videos, T sampled frames per video, D embedding size, Q cycles, L videos in a cycle. A mask is True
for real frames and False for padding.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from cycleback.losses.base import Loss
from cycleback.losses.inputs import check_positive, without_autocast
from cycleback.losses.masks import hide_padding
from cycleback.losses.similarity import Scaling, Similarity, scaled_similarity
from cycleback.losses.tcc import TCCLoss, soft_nearest_neighbors


@dataclass(frozen=True)
class Cycles:
    """Walks through the videos of a batch; each goes back to its first video at the end.

    Attributes:
        videos: (Q, L) int64, L different videos in the order in which they are visited.
        starts: (Q,) int64, the frame of the first video from which the walk starts.
    """

    videos: Tensor
    starts: Tensor

    def to(self, device: torch.device) -> "Cycles":
        """The same cycles on another device."""
        return Cycles(self.videos.to(device), self.starts.to(device))


def draw_cycles(
    mask: Tensor, *, num_cycles: int, cycle_length: int, generator: torch.Generator | None = None
) -> Cycles:
    """Independent random cycles, on the device of the generator (without one, on the CPU).

    A cycle starts from any real frame of the batch, and all orders of the other videos are equally likely. So
    every frame counts the same, as in `TCCLoss`: with `cycle_length` 2, that is the expected loss.

    Args:
        mask: (B, T) bool.
        num_cycles: Q.
        cycle_length: L, at most B.
        generator: Source of randomness; without one, torch's global one.
    """
    num_videos, num_frames = mask.shape
    if cycle_length > num_videos:
        raise ValueError(
            f"cycle_length {cycle_length} needs {cycle_length} different videos, the batch has {num_videos}"
        )
    device = torch.device("cpu") if generator is None else generator.device
    real = mask.to(device).flatten().nonzero().flatten()
    starts = real[torch.randint(len(real), (num_cycles,), generator=generator, device=device)]
    keys = torch.rand(num_cycles, num_videos, generator=generator, device=device)
    keys.scatter_(1, starts[:, None] // num_frames, -1.0)  # the start frame's own video comes first
    return Cycles(videos=keys.argsort(dim=1)[:, :cycle_length], starts=starts % num_frames)


def walk_cycles(
    embeddings: Tensor,
    cycles: Cycles,
    *,
    temperature: float = 0.1,
    scaling: Scaling = "dimension",
    similarity: Similarity = "l2",
    mask: Tensor | None = None,
) -> Tensor:
    """Logits (Q, T): where in its first video each cycle through `embeddings` (B, T, D) lands.

    Every hop takes the soft nearest neighbour in the next video. Frames that `mask` (B, T) hides are never
    visited, and their logits are -inf. Other options as in `scaled_similarity`.

    A hop compares with all frames of the batch, and hides those of other videos: one matrix product is many
    times faster than copying out the video that each cycle is to visit.
    """
    num_videos, num_frames, _ = embeddings.shape
    frames = embeddings.flatten(0, 1)  # (B * T, D)
    video_of = torch.arange(num_videos, device=embeddings.device).repeat_interleave(num_frames)  # (B * T,)
    first = cycles.videos[:, 0]
    here = embeddings[first, cycles.starts][:, None]  # (Q, 1, D)
    for video in cycles.videos[:, 1:].unbind(dim=1):
        visible = video_of == video[:, None]  # (Q, B * T)
        here = soft_nearest_neighbors(
            here,
            frames,
            temperature=temperature,
            scaling=scaling,
            similarity=similarity,
            v_mask=visible if mask is None else visible & mask.flatten(),
        )
    back = scaled_similarity(here, frames, temperature=temperature, scaling=scaling, similarity=similarity)
    back = back.reshape(-1, num_videos, num_frames)  # (Q, B, T)
    home = back.take_along_dim(first[:, None, None], dim=1)  # (Q, 1, T)
    return hide_padding(home, None if mask is None else mask[first]).squeeze(1)


def start_first(values: Tensor, starts: Tensor) -> Tensor:
    """Values (Q, T) of the frames of a video, turned round so that frame `starts` (Q,) comes first."""
    frames = torch.arange(values.shape[1], device=values.device)
    return values.gather(1, (starts[:, None] + frames) % values.shape[1])


class StochasticTCCLoss(Loss):
    """The error of a `TCCLoss`, over random cycles instead of all pairs and all frames."""

    needs = frozenset({"times", "mask", "generator"})
    capturable = False  # the start frames are listed, which waits for the device

    def __init__(
        self,
        tcc: TCCLoss | None = None,  # kind, similarity and all other options; without it, TCCLoss()
        *,
        cycle_length: int = 2,  # the program's: there and back
        fraction: float = 1.0,  # the program's: as many cycles as the batch has frames
    ) -> None:
        super().__init__()
        if cycle_length < 2:
            raise ValueError(f"cycle_length must be at least 2, got {cycle_length!r}")
        check_positive("fraction", fraction)
        self.tcc = TCCLoss() if tcc is None else tcc
        self.cycle_length = cycle_length
        self.fraction = fraction

    def forward(
        self,
        embeddings: Tensor,
        *,
        times: Tensor | None = None,
        mask: Tensor | None = None,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """Scalar mean over int(B * T * fraction) cycles, computed in float32 even under autocast.

        Args:
            embeddings: (B >= `cycle_length`, T, D).
            times: (B, T), as in `TCCLoss`.
            mask: (B, T) bool, True for real frames.
            generator: Source of the cycles; without one, torch's global one.
        """
        with without_autocast(embeddings):
            embeddings, times = self.tcc.prepare(embeddings, times, mask)
            cycles = self._draw(times, mask, generator).to(embeddings.device)
            return self.over_cycles(embeddings, cycles, times, mask)

    def over_cycles(
        self, embeddings: Tensor, cycles: Cycles, times: Tensor, mask: Tensor | None = None
    ) -> Tensor:
        """Scalar mean over the given cycles; the rest (B, T, ...) as `TCCLoss.prepare` returns it."""
        first = cycles.videos[:, 0]
        logits = walk_cycles(
            embeddings,
            cycles,
            temperature=self.tcc.temperature,
            scaling=self.tcc.scaling,
            similarity=self.tcc.similarity,
            mask=mask,
        )  # (Q, T)
        return self.tcc.landing_error(
            start_first(logits, cycles.starts)[:, None],  # (Q, 1, T): one walk from the first frame of each
            start_first(times[first], cycles.starts),
            None if mask is None else start_first(mask[first], cycles.starts),
        )

    def _draw(self, times: Tensor, mask: Tensor | None, generator: torch.Generator | None) -> Cycles:
        """Cycles through videos of the shape of `times` (B, T)."""
        num_videos, num_frames = times.shape
        num_cycles = int(num_videos * num_frames * self.fraction)
        if num_cycles < 1:
            raise ValueError(
                f"fraction {self.fraction} of {num_videos} x {num_frames} frames is not one cycle; raise it"
            )
        real = torch.ones(num_videos, num_frames, dtype=torch.bool) if mask is None else mask
        return draw_cycles(real, num_cycles=num_cycles, cycle_length=self.cycle_length, generator=generator)
