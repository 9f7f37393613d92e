"""Matches run forward in time: what the cycle-back losses cannot see.

A walk to another video and back lands where it started just as well if the other video is matched from its
end to its beginning. Where videos come in kinds that look different, such as two camera views, the first
updates may match one kind with the other backwards, and no cycle will ever tell. This loss does: it costs
something only where a video is matched backwards. Ours, not in the paper.

Shapes: B videos, T sampled frames per video, S frames of the other video, D embedding size,
P = B * (B - 1) ordered pairs (U, V). A mask is True for real frames and False for padding.
"""

import torch.nn.functional as F
from torch import Tensor

from cycleback.losses.base import Loss
from cycleback.losses.inputs import (
    check_embeddings,
    check_mask,
    check_per_frame,
    check_positive,
    full_precision,
    without_autocast,
)
from cycleback.losses.masks import erase_padding, mean_of_real
from cycleback.losses.similarity import Scaling, Similarity, ordered_pairs, soft_matches

# Of the product of two variances of times. Matches that all point at one moment have none, and no order.
VARIANCE_FLOOR = 1e-8


def correlation(x: Tensor, y: Tensor, *, mask: Tensor | None = None) -> Tensor:
    """Pearson's correlation (P,) of `x` and `y` (P, T), over the places that `mask` (P, T) does not hide."""
    x, y = (erase_padding(z - mean_of_real(z, mask, dim=1)[:, None], mask) for z in (x, y))
    spread = (x.square().sum(dim=1) * y.square().sum(dim=1) + VARIANCE_FLOOR).sqrt()
    return (x * y).sum(dim=1) / spread


class OrderLoss(Loss):
    """How far matches run backwards: minus the correlation of times and matched times, where it is negative.

    The mean over every ordered pair of different videos; the match of a frame is the mean time of the other
    video's frames by nearness, as in `TCCLoss`, whose arguments these are.
    """

    needs = frozenset({"times", "mask"})

    def __init__(
        self, *, temperature: float = 0.1, scaling: Scaling = "dimension", similarity: Similarity = "l2"
    ) -> None:
        super().__init__()
        check_positive("temperature", temperature)
        self.temperature = temperature
        self.scaling: Scaling = scaling
        self.similarity: Similarity = similarity

    def forward(
        self, embeddings: Tensor, *, times: Tensor | None = None, mask: Tensor | None = None
    ) -> Tensor:
        """Scalar loss in [0, 1], computed in float32 even under autocast (float64 stays float64).

        Args:
            embeddings: (B >= 2, T, D).
            times: (B, T), when each frame is, as a fraction of its video.
            mask: (B, T) bool, True for real frames.
        """
        check_embeddings(embeddings, min_videos=2)
        if times is None:
            raise ValueError("the order of matches needs times= (B, T)")
        check_per_frame("times", times, embeddings)
        if mask is not None:
            check_mask(mask, embeddings)
        with without_autocast(embeddings):
            embeddings = erase_padding(full_precision(embeddings), mask)
            times = erase_padding(times.to(embeddings), mask)
            start, other = ordered_pairs(len(embeddings), device=embeddings.device)  # (P,), (P,)
            alpha = soft_matches(
                embeddings[start],
                embeddings[other],
                temperature=self.temperature,
                scaling=self.scaling,
                similarity=self.similarity,
                v_mask=None if mask is None else mask[other],
            )  # (P, T, S)
            matched = (alpha * times[other][:, None, :]).sum(dim=-1)  # (P, T)
            forward = correlation(times[start], matched, mask=None if mask is None else mask[start])  # (P,)
            return F.relu(-forward).mean()
