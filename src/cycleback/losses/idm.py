"""Contrastive inverse difference moment: frames close in time are alike, frames far apart are not.

Paper: Haresh et al., "Learning by Aligning Videos in Time" (LAV), CVPR 2021, where it keeps the alignment
from collapsing. Bansal et al., "My View is the Best View" (CnC), ECCV 2022, add it to TCC.

With frame numbers s, times t = s / length and squared distances S between the frames of one video:

    |s_i - s_j| >  window    (1 + (t_i - t_j)^2) max(0, margin - S_ij)
    |s_i - s_j| <= window    S_ij

Shapes: B videos, T sampled frames per video, D embedding size.
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
from cycleback.losses.similarity import squared_distances


def contrastive_idm(
    embeddings: Tensor, *, times: Tensor, frames: Tensor, window: float = 10.0, margin: float = 2.0
) -> Tensor:
    """Return the mean (B,) over all pairs of frames of each video.

    `embeddings` are (B, T, D), `times` (B, T) fractions of the video, `frames` (B, T) frame numbers.
    """
    distances = squared_distances(embeddings, embeddings)  # (B, T, T)
    apart = times[:, :, None] - times[:, None, :]
    is_far = (frames[:, :, None] - frames[:, None, :]).abs() > window
    repelled = (1 + apart.square()) * F.relu(margin - distances)
    return torch.where(is_far, repelled, distances).mean(dim=(1, 2))


class IDMLoss(Loss):
    """The contrastive inverse difference moment, mean over pairs of frames and videos.

    The papers sum over pairs of frames. A mean weighs the same for any number of sampled frames.

    Args:
        window: frames up to which two frames should be alike; 10 in LAV, 15 in CnC.
        margin: squared distance from which far frames no longer repel; the largest on unit vectors is 4.
        normalize: compare unit vectors, as both papers do.
    """

    needs = frozenset({"times", "frames"})

    def __init__(self, *, window: float = 10.0, margin: float = 2.0, normalize: bool = True) -> None:
        super().__init__()
        check_positive("window", window)
        check_positive("margin", margin)
        self.window, self.margin, self.normalize = window, margin, normalize

    def forward(
        self, embeddings: Tensor, *, times: Tensor | None = None, frames: Tensor | None = None
    ) -> Tensor:
        """Return a scalar, computed in float32 even under autocast (float64 stays float64).

        Args:
            embeddings: (B, T, D).
            times: (B, T), as a fraction of the video.
            frames: (B, T), frame numbers.
        """
        check_embeddings(embeddings)
        if times is None or frames is None:
            raise ValueError("the inverse difference moment needs times= (B, T) and frames= (B, T)")
        check_per_frame("times", times, embeddings)
        check_per_frame("frames", frames, embeddings)
        with without_autocast(embeddings):
            values = full_precision(embeddings)
            values = F.normalize(values, dim=-1) if self.normalize else values
            return contrastive_idm(
                values, times=times.to(values), frames=frames, window=self.window, margin=self.margin
            ).mean()
