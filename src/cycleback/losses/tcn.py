"""Time-contrastive loss, single view: a frame is like its neighbour in time, unlike the rest of its video.

Papers: Sermanet et al., "Time-Contrastive Networks", arXiv:1704.06888, with the loss of Sohn, "Improved Deep
Metric Learning with Multi-class N-pair Loss Objective", NIPS 2016: the baseline TCN of Dwibedi et al., CVPR
2019, 5.1. Their program mixes the videos of a batch; here a frame is only compared with its own video.

Shapes: B videos, T sampled frames per video, D embedding size.
"""

from torch import Tensor

from cycleback.losses.base import Loss, check_embeddings, check_positive, full_precision, without_autocast


def n_pairs_loss(anchors: Tensor, positives: Tensor, *, temperature: float = 1.0) -> Tensor:
    """Return the cross-entropy (B,) of picking each anchor's positive among all positives of its video.

    `anchors` and `positives` are (B, T, D); they are compared by dot product.
    """
    logits = anchors @ positives.mT / temperature  # (B, T, T)
    own = logits.log_softmax(dim=-1).diagonal(dim1=-2, dim2=-1)  # (B, T)
    return -own.mean(dim=1)


def _mean_squared_norm(embeddings: Tensor) -> Tensor:
    """Return the mean (B,) of the squared norms of `embeddings` (B, T, D)."""
    return embeddings.square().sum(dim=-1).mean(dim=1)


class TCNLoss(Loss):
    """N-pairs loss of each video's anchors and positives, plus a penalty on their norms; mean over videos."""

    needs = frozenset({"positives"})

    def __init__(
        self,
        *,
        temperature: float = 1.0,  # plain dot products, as in the paper; raise it if training diverges
        l2_weight: float = 0.002,  # as in the authors' program; without it, larger norms lower the loss
    ) -> None:
        super().__init__()
        check_positive("temperature", temperature)
        self.temperature = temperature
        self.l2_weight = l2_weight

    def forward(self, embeddings: Tensor, *, positives: Tensor | None = None) -> Tensor:
        """Return a scalar, computed in float32 even under autocast (float64 stays float64).

        Args:
            embeddings: (B, T, D), the anchors.
            positives: (B, T, D), for each anchor a frame close to it in time.
        """
        check_embeddings(embeddings)
        if positives is None or positives.shape != embeddings.shape:
            got = None if positives is None else tuple(positives.shape)
            raise ValueError(f"positives must be {tuple(embeddings.shape)} like the embeddings, got {got}")
        with without_autocast(embeddings):
            anchors, positives = full_precision(embeddings), full_precision(positives)
            norms = _mean_squared_norm(anchors) + _mean_squared_norm(positives)  # (B,)
            pairs = n_pairs_loss(anchors, positives, temperature=self.temperature)  # (B,)
            return (pairs + 0.25 * self.l2_weight * norms).mean()
