"""LAV: the warping cost between two videos, kept from collapsing by contrast within each.

Paper: Haresh et al., "Learning by Aligning Videos in Time", CVPR 2021. For each pair of videos X and Y with T
sampled frames, on unit vectors:

    (softDTW(X, Y) + idm_weight (IDM(X) + IDM(Y))) / T,  with IDM summed over all pairs of frames

Shapes: B videos, T sampled frames per video, D embedding size, P = B (B - 1) / 2 pairs.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from cycleback.losses.base import (
    Loss,
    check_embeddings,
    check_per_frame,
    check_positive,
    full_precision,
    without_autocast,
)
from cycleback.losses.idm import contrastive_idm
from cycleback.losses.similarity import squared_distances, unordered_pairs
from cycleback.losses.soft_dtw import soft_dtw


class LAVLoss(Loss):
    """Soft-DTW of every pair of videos plus the contrastive inverse difference moment of each video.

    Args:
        smoothing: of the soft minimum of soft-DTW.
        idm_weight: of the contrast within videos: 1 in the paper, 0.5 in the authors' program, as here.
        window: frames up to which two frames of a video should be alike.
        margin: squared distance from which far frames no longer repel.
        normalize: compare unit vectors, as in the paper.
    """

    needs = frozenset({"times", "frames"})

    def __init__(
        self,
        *,
        smoothing: float = 0.1,
        idm_weight: float = 0.5,
        window: float = 10.0,
        margin: float = 2.0,
        normalize: bool = True,
    ) -> None:
        super().__init__()
        check_positive("smoothing", smoothing)
        check_positive("window", window)
        check_positive("margin", margin)
        self.smoothing, self.idm_weight, self.normalize = smoothing, idm_weight, normalize
        self.window, self.margin = window, margin

    def forward(
        self, embeddings: Tensor, *, times: Tensor | None = None, frames: Tensor | None = None
    ) -> Tensor:
        """Return a scalar, computed in float32 even under autocast (float64 stays float64).

        Args:
            embeddings: (B >= 2, T, D).
            times: (B, T), as a fraction of the video.
            frames: (B, T), frame numbers.
        """
        check_embeddings(embeddings, min_videos=2)
        if times is None or frames is None:
            raise ValueError("the LAV loss needs times= (B, T) and frames= (B, T)")
        check_per_frame("times", times, embeddings)
        check_per_frame("frames", frames, embeddings)
        with without_autocast(embeddings):
            values = full_precision(embeddings)
            values = F.normalize(values, dim=-1) if self.normalize else values
            videos, count = values.shape[:2]
            first, second = unordered_pairs(videos, device=values.device)  # (P,), (P,)
            warped = soft_dtw(squared_distances(values[first], values[second]), smoothing=self.smoothing)
            contrast = contrastive_idm(
                values, times=times.to(values), frames=frames, window=self.window, margin=self.margin
            )  # (B,), means over T^2 pairs of frames
            return torch.stack([warped.mean() / count, 2 * self.idm_weight * count * contrast.mean()]).sum()
