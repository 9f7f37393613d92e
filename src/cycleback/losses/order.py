"""Order loss: matches must run forward in time, which the cycle-back losses cannot tell.

A walk to another video and back lands where it started just as well if the other video is matched from its
end to its beginning. Where videos come in kinds that look different, such as two camera views, the first
updates may match one kind with the other backwards, and no cycle-back loss corrects it. This loss is positive
only where a video is matched backwards. It is not in the paper.

Shapes: B videos, T sampled frames per video, S frames of the other video, D embedding size,
P = B * (B - 1) ordered pairs (U, V).
"""

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
from cycleback.losses.similarity import Scaling, Similarity, SimilarityOptions, ordered_pairs, soft_matches

# Added to the product of two variances of times. It is 0 where all matches are at one moment: no order.
VARIANCE_FLOOR = 1e-8


def correlation(x: Tensor, y: Tensor) -> Tensor:
    """Return Pearson's correlation (P,) of `x` and `y` (P, T)."""
    x, y = (z - z.mean(dim=1)[:, None] for z in (x, y))
    spread = (x.square().sum(dim=1) * y.square().sum(dim=1) + VARIANCE_FLOOR).sqrt()
    return (x * y).sum(dim=1) / spread


class OrderLoss(Loss):
    """Minus the correlation of times and matched times, where it is negative; mean over ordered pairs.

    The matched time of a frame is the mean time of the other video's frames, weighted by similarity as in
    `TCCLoss`, which has the same arguments.
    """

    needs = frozenset({"times"})

    def __init__(
        self,
        *,
        temperature: float = 0.1,
        scaling: Scaling = "dimension",
        similarity: Similarity = "l2",
        normalize: bool = False,
    ) -> None:
        super().__init__()
        check_positive("temperature", temperature)
        self.options = SimilarityOptions(temperature=temperature, scaling=scaling, similarity=similarity)
        self.normalize = normalize

    def forward(self, embeddings: Tensor, *, times: Tensor | None = None) -> Tensor:
        """Return a scalar in [0, 1], computed in float32 even under autocast (float64 stays float64).

        Args:
            embeddings: (B >= 2, T, D).
            times: (B, T), the time of each frame as a fraction of its video.
        """
        check_embeddings(embeddings, min_videos=2)
        if times is None:
            raise ValueError("the order of matches needs times= (B, T)")
        check_per_frame("times", times, embeddings)
        with without_autocast(embeddings):
            embeddings = full_precision(embeddings)
            if self.normalize:
                embeddings = F.normalize(embeddings, dim=-1)
            times = times.to(embeddings)
            start, other = ordered_pairs(len(embeddings), device=embeddings.device)  # (P,), (P,)
            alpha = soft_matches(embeddings[start], embeddings[other], **self.options)  # (P, T, S)
            matched = (alpha * times[other][:, None, :]).sum(dim=-1)  # (P, T)
            return F.relu(-correlation(times[start], matched)).mean()
