"""The base for frames that are vectors: poses, or features that another program computed.

Shapes: N frames of a video, S size of a vector as given, V size with velocities (2 S, or S without).
"""

from collections.abc import Iterable

import torch
from torch import Tensor

from cycleback.models.base import Base

MIN_STD = 1e-6


class VectorBase(Base):
    """Standardise each component of vectors (N, V); `prepare` makes them of frames of size `in_features` (S).

    It has nothing to train.
    """

    input_kind = "vectors"
    mean: Tensor  # (V,), of each component, velocities last; 0 until `fit` sets it
    std: Tensor  # (V,), of each component; 1 until `fit` sets it

    def __init__(self, *, in_features: int, velocity: bool = False) -> None:
        super().__init__()
        if in_features < 1:
            raise ValueError(f"in_features must be at least 1, got {in_features}")
        self.in_features, self.velocity = in_features, velocity
        self.in_channels = self.channels = 2 * in_features if velocity else in_features
        self.stride = 1
        self.register_buffer("mean", torch.zeros(self.in_channels))
        self.register_buffer("std", torch.ones(self.in_channels))

    def prepare(self, video: Tensor) -> Tensor:
        """Append to each frame of a video (N, S) its difference to the previous one, if `velocity`: (N, V).

        A sampled frame has lost the one before it, so this comes before any sampling. The first velocity
        is 0.
        """
        if video.ndim != 2 or video.shape[1] != self.in_features or len(video) == 0:
            expected = f"(N >= 1, {self.in_features})"
            raise ValueError(f"a video of vectors must be {expected}, got {tuple(video.shape)}")
        if not self.velocity:
            return video
        return torch.cat([video, video.diff(dim=0, prepend=video[:1])], dim=1)

    @torch.no_grad()
    def fit(self, videos: Iterable[Tensor]) -> None:
        """Set mean and standard deviation of each component from all frames of `videos`, each (N, S).

        A component that never changes keeps the standard deviation 1.
        """
        frames = torch.cat([self.prepare(video) for video in videos]).double()
        std, mean = torch.std_mean(frames, dim=0, correction=0)
        self.mean.copy_(mean)
        self.std.copy_(torch.where(std > MIN_STD, std, 1.0))

    def feature_map_size(self, height: int, width: int) -> tuple[int, int]:
        """Always 1 x 1."""
        return 1, 1

    def to_float(self, frames: Tensor) -> Tensor:
        """Convert vectors (N, V) of any float type to float32."""
        if not frames.is_floating_point():
            raise TypeError(f"vectors must be float, got {frames.dtype}")
        return frames.to(self.mean.dtype)

    def normalize(self, images: Tensor) -> Tensor:
        """Subtract the mean from vectors (N, V) and divide by the standard deviation."""
        return (images - self.mean) / self.std

    def feature_map(self, images: Tensor) -> Tensor:
        """View standardised vectors (N, V) as features (N, V, 1, 1)."""
        return images[:, :, None, None]
