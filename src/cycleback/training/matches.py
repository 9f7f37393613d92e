"""Matches between training videos, found before training by warping the inputs of the encoder.

Shapes: N frames of a video, V size of its vectors.
"""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cycleback.alignment import align
from cycleback.alignment.bounds import price_ends
from cycleback.alignment.distances import pairwise_squared
from cycleback.alignment.dtw import match_frames, warp_cost

MAX_CELLS = 4_000_000  # pairs of frames; longer videos are warped coarse to fine


class Matches:
    """Finds for each frame of a video the frame of another that goes with it; each pair is warped once."""

    def __init__(self, videos: Sequence[Tensor]) -> None:
        self._videos = [video.flatten(1).double().cpu().numpy() for video in videos]
        self._found: dict[tuple[int, int], Tensor] = {}

    def __call__(self, u: int, v: int) -> Tensor:
        """Return for each frame of video `u` the frame of video `v`: (N,) float32."""
        if (u, v) not in self._found:
            self._found[u, v] = torch.from_numpy(self._warp(self._videos[u], self._videos[v])).float()
        return self._found[u, v]

    @staticmethod
    def _warp(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.int64]:
        if len(a) * len(b) > MAX_CELLS:
            return align(a, b, method="dtw").indices
        path, _ = warp_cost(pairwise_squared(a, b), ends=price_ends(len(a), len(b)))
        return match_frames(path)
