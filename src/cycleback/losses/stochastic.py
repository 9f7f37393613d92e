"""Temporal cycle-consistency over random cycles of any length: U -> V -> W -> ... -> U.

Paper: Dwibedi et al., "Temporal Cycle-Consistency Learning", CVPR 2019, arXiv:1904.07846, 3.4: losses "for
randomly selected frames". Longer cycles are in the authors' program only, which calls this stochastic
matching. It walks 0 -> 1 -> 0 whenever the number of cycles is a multiple of B; here each cycle draws its own
videos.

Shapes: B videos, T sampled frames per video, D embedding size, Q cycles, L videos in a cycle.
"""

from typing import NamedTuple, Unpack

import torch
from torch import Tensor

from cycleback.losses.base import Loss, check_positive, without_autocast
from cycleback.losses.similarity import SimilarityOptions, scaled_similarity
from cycleback.losses.tcc import TCCLoss


class Cycles(NamedTuple):
    """Walks through the videos of a batch; each returns to its first video at the end."""

    videos: Tensor  # (Q, L) int64, L different videos in the order in which they are visited
    starts: Tensor  # (Q,) int64, the frame of the first video from which the walk starts


def draw_cycles(
    num_videos: int,
    num_frames: int,
    *,
    num_cycles: int,
    cycle_length: int,
    generator: torch.Generator | None = None,
) -> Cycles:
    """Draw independent random cycles on the device of the generator (by default torch's own, on the CPU).

    A cycle starts from any frame of the batch, and all orders of the other videos are equally likely. So all
    frames count equally, as in `TCCLoss`, which is the expectation for `cycle_length` 2.

    `num_videos` is B, `num_frames` T, `num_cycles` Q, and `cycle_length` L, at most B.
    """
    if cycle_length > num_videos:
        raise ValueError(
            f"cycle_length {cycle_length} needs {cycle_length} different videos, the batch has {num_videos}"
        )
    device = torch.device("cpu") if generator is None else generator.device
    starts = torch.randint(num_videos * num_frames, (num_cycles,), generator=generator, device=device)
    keys = torch.rand(num_cycles, num_videos, generator=generator, device=device)
    keys.scatter_(1, starts[:, None] // num_frames, -1.0)  # the start frame's own video comes first
    return Cycles(videos=keys.argsort(dim=1)[:, :cycle_length], starts=starts % num_frames)


def walk_cycles(embeddings: Tensor, cycles: Cycles, **options: Unpack[SimilarityOptions]) -> Tensor:
    """Return logits (Q, T): where in its first video each cycle through `embeddings` (B, T, D) lands.

    Every step takes the soft nearest neighbour in the next video; options as in `scaled_similarity`. A step
    compares with all frames of the batch and hides those of other videos: one matrix product is many times
    faster than a copy of the video that each cycle visits.
    """
    num_videos, num_frames, _ = embeddings.shape
    frames = embeddings.flatten(0, 1)  # (B * T, D)
    video_of = torch.arange(num_videos, device=embeddings.device).repeat_interleave(num_frames)  # (B * T,)
    first = cycles.videos[:, 0]
    here = embeddings[first, cycles.starts][:, None]  # (Q, 1, D)
    for video in cycles.videos[:, 1:].unbind(dim=1):
        is_elsewhere = video_of != video[:, None]  # (Q, B * T)
        logits = scaled_similarity(here, frames, **options)  # (Q, 1, B * T)
        here = logits.masked_fill(is_elsewhere[:, None], -torch.inf).softmax(dim=-1) @ frames
    back = scaled_similarity(here, frames, **options).reshape(-1, num_videos, num_frames)  # (Q, B, T)
    return back.take_along_dim(first[:, None, None], dim=1).squeeze(1)


def _start_first(values: Tensor, starts: Tensor) -> Tensor:
    """Rotate `values` (Q, T) of the frames of a video so that frame `starts` (Q,) comes first."""
    frames = torch.arange(values.shape[1], device=values.device)
    return values.gather(1, (starts[:, None] + frames) % values.shape[1])


class StochasticTCCLoss(Loss):
    """The error of a `TCCLoss`, over random cycles instead of all pairs and all frames."""

    needs = frozenset({"times", "generator"})
    capturable = False  # not verified in a CUDA graph

    def __init__(
        self,
        tcc: TCCLoss | None = None,  # kind, similarity and all other options; TCCLoss() by default
        *,
        cycle_length: int = 2,  # as in the program: there and back
        fraction: float = 1.0,  # as in the program: as many cycles as the batch has frames
    ) -> None:
        super().__init__()
        if cycle_length < 2:
            raise ValueError(f"cycle_length must be at least 2, got {cycle_length!r}")
        check_positive("fraction", fraction)
        self.tcc = TCCLoss() if tcc is None else tcc
        self.cycle_length = cycle_length
        self.fraction = fraction

    def forward(
        self, embeddings: Tensor, *, times: Tensor | None = None, generator: torch.Generator | None = None
    ) -> Tensor:
        """Return the scalar mean over int(B * T * fraction) cycles, in float32 even under autocast.

        Args:
            embeddings: (B >= `cycle_length`, T, D).
            times: (B, T), as in `TCCLoss`.
            generator: Source of the cycles; without one, torch's global one.
        """
        with without_autocast(embeddings):
            embeddings, times = self.tcc.prepare(embeddings, times)
            num_videos, num_frames = times.shape
            num_cycles = int(num_videos * num_frames * self.fraction)
            if num_cycles < 1:
                size = f"{num_videos} x {num_frames}"
                raise ValueError(f"fraction {self.fraction} of {size} frames is not one cycle; raise it")
            cycles = draw_cycles(
                num_videos,
                num_frames,
                num_cycles=num_cycles,
                cycle_length=self.cycle_length,
                generator=generator,
            )
            cycles = Cycles(*(tensor.to(embeddings.device) for tensor in cycles))
            return self.over_cycles(embeddings, cycles, times)

    def over_cycles(self, embeddings: Tensor, cycles: Cycles, times: Tensor) -> Tensor:
        """Return the scalar mean over the given cycles; the rest (B, T, ...) as from `TCCLoss.prepare`."""
        logits = walk_cycles(embeddings, cycles, **self.tcc.options)  # (Q, T)
        return self.tcc.landing_error(
            _start_first(logits, cycles.starts)[:, None],  # (Q, 1, T): one walk from the first frame of each
            _start_first(times[cycles.videos[:, 0]], cycles.starts),
        )
