"""Time-contrastive loss, single view: a frame is like its neighbour in time, unlike the rest of its video.

Papers: Sermanet et al., "Time-Contrastive Networks", arXiv:1704.06888, with the loss of Sohn, "Improved Deep
Metric Learning with Multi-class N-pair Loss Objective", NIPS 2016: the baseline TCN of Dwibedi et al., CVPR
2019, 5.1. Their program mixes the videos of a batch; here a frame only ever meets frames of its own video.

Shapes: B videos, T sampled frames per video, D embedding size. A mask is True for real frames.
"""

from torch import Tensor

from cycleback.losses.base import Loss
from cycleback.losses.inputs import (
    check_embeddings,
    check_mask,
    check_positive,
    full_precision,
    without_autocast,
)
from cycleback.losses.masks import erase_padding, hide_padding, mean_of_real


def n_pairs_loss(
    anchors: Tensor, positives: Tensor, *, temperature: float = 1.0, mask: Tensor | None = None
) -> Tensor:
    """Cross-entropy (B,) of picking the own positive among all positives of the video, by dot product.

    `anchors` and `positives` are (B, T, D); pairs that `mask` (B, T) hides are never met and never counted.
    """
    logits = hide_padding(anchors @ positives.mT / temperature, mask)  # (B, T, T)
    own = logits.log_softmax(dim=-1).diagonal(dim1=-2, dim2=-1)  # (B, T)
    return -mean_of_real(own, mask, dim=1)


def mean_squared_norm(embeddings: Tensor, *, mask: Tensor | None = None) -> Tensor:
    """Mean (B,) of the squared norms of `embeddings` (B, T, D), over the real frames of each video."""
    return mean_of_real(embeddings.square().sum(dim=-1), mask, dim=1)


class TCNLoss(Loss):
    """N-pairs loss of each video's anchors and positives, plus a price on their norms; mean over videos."""

    needs = frozenset({"positives", "mask"})

    def __init__(
        self,
        *,
        temperature: float = 1.0,  # plain dot products, as in the paper; raise it if the first steps explode
        l2_weight: float = 0.002,  # the authors' program; without it, longer embeddings are a lower loss
    ) -> None:
        super().__init__()
        check_positive("temperature", temperature)
        self.temperature = temperature
        self.l2_weight = l2_weight

    def forward(
        self, embeddings: Tensor, *, positives: Tensor | None = None, mask: Tensor | None = None
    ) -> Tensor:
        """Scalar loss, computed in float32 even under autocast (float64 stays float64).

        Args:
            embeddings: (B, T, D), the anchors.
            positives: (B, T, D), for each anchor a frame close to it in time.
            mask: (B, T) bool, True where anchor and positive are real.
        """
        check_embeddings(embeddings, min_videos=1)
        if positives is None or positives.shape != embeddings.shape:
            got = None if positives is None else tuple(positives.shape)
            raise ValueError(f"positives must be {tuple(embeddings.shape)} like the embeddings, got {got}")
        if mask is not None:
            check_mask(mask, embeddings)
        with without_autocast(embeddings):
            anchors = erase_padding(full_precision(embeddings), mask)
            positives = erase_padding(full_precision(positives), mask)
            norms = mean_squared_norm(anchors, mask=mask) + mean_squared_norm(positives, mask=mask)  # (B,)
            pairs = n_pairs_loss(anchors, positives, temperature=self.temperature, mask=mask)  # (B,)
            return (pairs + 0.25 * self.l2_weight * norms).mean()
