"""Next-frame loss: an embedding tells the embedding a few frames later, as a slow copy of the encoder has it.

The temporal term of PRISM (2026), with the slow copy of Grill et al., "Bootstrap Your Own Latent", NeurIPS
2020. It asks that embeddings carry where the movement goes, and needs no position in the video. Alone it may
collapse; it is made to be added to a loss that compares videos.

    L = 1 - cos(predictor(z_t), slow copy's z_t+ahead), mean over frames that have a later one

Shapes: B videos, T sampled frames per video, D embedding size.
"""

import torch.nn.functional as F
from torch import Tensor, nn

from cycleback.losses.base import (
    Loss,
    check_embeddings,
    check_per_frame,
    full_precision,
    without_autocast,
)


class NextFrameLoss(Loss):
    """One minus the cosine of predicted and actual embeddings; no gradient passes through the targets.

    Args:
        embedding_size: D of the embeddings.
        hidden_size: of the predictor's hidden layer.
    """

    needs = frozenset({"targets", "frames", "positive_frames"})

    def __init__(self, embedding_size: int, *, hidden_size: int = 128) -> None:
        super().__init__()
        self.embedding_size = embedding_size
        self.predictor = nn.Sequential(
            nn.Linear(embedding_size, hidden_size), nn.ReLU(), nn.Linear(hidden_size, embedding_size)
        )

    def forward(
        self,
        embeddings: Tensor,
        *,
        targets: Tensor | None = None,
        frames: Tensor | None = None,
        positive_frames: Tensor | None = None,
    ) -> Tensor:
        """Return a scalar in [0, 2], computed in float32 even under autocast (float64 stays float64).

        Args:
            embeddings: (B, T, D).
            targets: (B, T, D), the embeddings of later frames by the slow copy.
            frames: (B, T), frame numbers of `embeddings`.
            positive_frames: (B, T), those of `targets`; a frame that is not later does not count.
        """
        check_embeddings(embeddings, size=self.embedding_size)
        if targets is None or frames is None or positive_frames is None:
            raise ValueError(
                "the next-frame loss needs targets= (B, T, D), frames= and positive_frames= (B, T)"
            )
        check_embeddings(targets, size=self.embedding_size)
        check_per_frame("frames", frames, embeddings)
        check_per_frame("positive_frames", positive_frames, embeddings)
        with without_autocast(embeddings):
            predicted = self.predictor(full_precision(embeddings))
            cosines = F.cosine_similarity(predicted, full_precision(targets).detach(), dim=-1)  # (B, T)
            is_later = (positive_frames > frames).to(cosines)
            return ((1 - cosines) * is_later).sum() / is_later.sum().clamp_min(1)
