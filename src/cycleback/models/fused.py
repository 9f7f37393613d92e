"""The base of streams side by side: appearance by a network, motion and pose by their measurements.

Shapes: N frames of a video, n frames of a batch, F feature channels, h w feature map, V size of a vector.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from cycleback.models.base import Base
from cycleback.models.streams import (
    FORMULAS,
    MOTION_SIZE,
    POSE_SIZE,
    SCALES,
    STREAMS,
    Floats,
    fuse_streams,
)


class FusedBase(Base):
    """Streams side by side, as features (n, V, 1, 1). It needs whole videos.

    What a frozen network sees is normalised over the video, like the other streams. A network that is trained
    sees only the frames of a batch, so BatchNorm normalises its features.

    Args:
        streams: any of STREAMS; their order does not matter.
        appearance: the network of the stream "appearance"; None without that stream.
        is_frozen: whether the network is never trained.
    """

    needs_whole_videos = True
    weights: Tensor  # (number of streams,), of each stream in order

    def __init__(
        self, streams: Iterable[str], appearance: Base | None = None, *, is_frozen: bool = True
    ) -> None:
        super().__init__()
        wanted = set(streams)
        self.streams = tuple(stream for stream in STREAMS if stream in wanted)
        if not wanted or wanted - set(STREAMS):
            raise ValueError(f"streams must be some of {', '.join(STREAMS)}, got {sorted(wanted)}")
        if ("appearance" in wanted) != (appearance is not None):
            raise ValueError("the stream 'appearance' needs a network, and only that stream takes one")
        self.appearance = appearance
        self.is_frozen = is_frozen or appearance is None
        sizes = {"motion": MOTION_SIZE, "pose": POSE_SIZE}
        if appearance is not None:
            sizes["appearance"] = appearance.channels
        self.sizes: dict[str, int] = {stream: sizes[stream] for stream in self.streams}  # V of each
        self.channels, self.stride = sum(self.sizes.values()), 1
        self.register_buffer("weights", torch.tensor([SCALES[stream] for stream in self.streams]))
        self.norm = None
        if not self.is_frozen:
            self.norm = nn.BatchNorm1d(self.sizes["appearance"], affine=False)

    @property
    def stream_weights(self) -> dict[str, float]:
        """The weight of each stream, by name."""
        return dict(zip(self.streams, self.weights.tolist(), strict=True))

    def set_weights(self, weights: Mapping[str, float]) -> None:
        """Replace the weights of all streams; one that is not named gets the weight 0."""
        self.weights.copy_(torch.tensor([weights.get(stream, 0.0) for stream in self.streams]))

    @property
    def video_streams(self) -> tuple[str, ...]:
        """The streams that are normalised over whole videos: all, or all but a trained appearance."""
        return tuple(stream for stream in self.streams if self.is_frozen or stream != "appearance")

    def fuse(self, raw: Mapping[str, NDArray[Any]], times: NDArray[np.float64]) -> Floats:
        """Join the weighted vectors of the `video_streams` of a video: (N, V).

        Takes the raw measurements of streams with a positive weight, as their functions in VECTORS do, and
        the seconds (N,) of the frames. The other streams are zeros.
        """
        sizes = {stream: self.sizes[stream] for stream in self.video_streams}
        return fuse_streams(raw, times, sizes=sizes, weights=self.stream_weights)

    def join(self, maps: Tensor, side: Tensor) -> Tensor:
        """Join the maps (n, F, h, w) of a trained network and the other streams (n, V'): (n, V, 1, 1)."""
        if self.norm is None:
            raise ValueError("streams need whole videos; read their features with `open_features`")
        means = maps.to(side.dtype).mean(dim=(2, 3))
        scale = self.weights[0] / self.sizes["appearance"] ** 0.5  # so that the mean squared length is 1
        return torch.cat([scale * self.norm(means), side], dim=1)[:, :, None, None]

    def forward(self, images: Tensor, side: Tensor | None = None) -> Tensor:
        """Map images (n, 3, H, W) in [0, 1] and the other streams of these frames (n, V') to (n, V, 1, 1)."""
        if self.appearance is None or side is None:
            raise ValueError("streams need whole videos; read their features with `open_features`")
        return self.join(self.appearance(images), side)

    def feature_map(self, images: Tensor) -> Tensor:
        """Refuse images without the other streams."""
        return self.forward(images)

    @property
    def traits(self) -> dict[str, object]:
        """Everything besides the weights that changes the features."""
        network = self.appearance
        about = None if network is None else [type(network).__name__, network.traits]
        return {"streams": self.streams, "formulas": FORMULAS, "appearance": about}

    @property
    def blueprint(self) -> dict[str, Any]:
        """The blueprint of the network of the stream "appearance"."""
        return {} if self.appearance is None else self.appearance.blueprint

    def feature_map_size(self, height: int, width: int) -> tuple[int, int]:
        """Always 1 x 1."""
        return 1, 1
