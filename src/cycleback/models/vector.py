"""The base for frames that are not pictures: poses, or features another program computed.

Shapes: N frames of a video, S numbers of a frame as given, V numbers with velocities (2 S, or S without).
"""

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor

from cycleback.models.base import Base

SMALLEST_STD = 1e-6


class VectorBase(Base):
    """Vectors (N, V) standardised number by number, as a grid (N, V, 1, 1). It has nothing to train."""

    input_kind = "vectors"
    mean: Tensor
    std: Tensor

    def __init__(
        self,
        *,
        in_features: int,
        velocity: bool = False,
        mean: Sequence[float] | None = None,
        std: Sequence[float] | None = None,
    ) -> None:
        """Build the base.

        Args:
            in_features: numbers of a frame (S).
            velocity: append the difference to the previous frame (see `prepare`).
            mean: of each of the V numbers, velocities last; 0 unless given here or found by `fit`.
            std: likewise; 1 unless given.
        """
        super().__init__()
        if in_features < 1:
            raise ValueError(f"in_features must be at least 1, got {in_features}")
        self.in_features, self.velocity = in_features, velocity
        self.in_channels = self.channels = 2 * in_features if velocity else in_features
        self.stride = 1
        self.register_buffer("mean", self._statistic("mean", mean, default=0.0))
        self.register_buffer("std", self._statistic("std", std, default=1.0))
        if (self.std <= 0).any():
            raise ValueError(f"std must be above 0, got {self.std.min().item():g}")

    def _statistic(self, name: str, values: Sequence[float] | None, *, default: float) -> Tensor:
        if values is None:
            return torch.full((self.in_channels,), default)
        if len(values) != self.in_channels:
            raise ValueError(f"{name} must have {self.in_channels} numbers, got {len(values)}")
        return torch.tensor(values, dtype=torch.float32)

    def prepare(self, video: Tensor) -> Tensor:
        """A whole video (N, S) as (N, V): with `velocity`, each frame's difference to the one before it.

        A frame drawn from a video has lost the one before it, so this comes before any sampling or cutting
        into pieces. The first frame's velocity is 0.
        """
        if video.ndim != 2 or video.shape[1] != self.in_features or len(video) == 0:
            expected = f"(N >= 1, {self.in_features})"
            raise ValueError(f"a video of vectors must be {expected}, got {tuple(video.shape)}")
        if not self.velocity:
            return video
        return torch.cat([video, video.diff(dim=0, prepend=video[:1])], dim=1)

    @torch.no_grad()
    def fit(self, videos: Iterable[Tensor]) -> None:
        """Take mean and spread of each number from all frames of `videos`, each (N, S).

        A number that never changes keeps the spread 1.
        """
        frames = torch.cat([self.prepare(video) for video in videos]).double()
        std, mean = torch.std_mean(frames, dim=0, correction=0)
        self.mean.copy_(mean)
        self.std.copy_(torch.where(std > SMALLEST_STD, std, 1.0))

    def grid_size(self, height: int, width: int) -> tuple[int, int]:
        """One place, whatever the size of the pictures the vectors come from."""
        return 1, 1

    def as_float(self, frames: Tensor) -> Tensor:
        """Vectors (N, V) of any float type as float32."""
        if not frames.is_floating_point():
            raise TypeError(f"vectors must be float, got {frames.dtype}")
        return frames.to(self.mean.dtype)

    def normalize(self, images: Tensor) -> Tensor:
        """Vectors (N, V) less their mean, in units of their spread."""
        return (images - self.mean) / self.std

    def grid(self, images: Tensor) -> Tensor:
        """Standardised vectors (N, V) as features (N, V, 1, 1)."""
        return images[:, :, None, None]
