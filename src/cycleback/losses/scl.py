"""SCL: two views of one video agree on how close in time their frames are.

Paper: Chen et al., "Frame-wise Action Representations for Long Videos via Sequence Contrastive Learning"
(CARL), CVPR 2022. For frame i of one view and the frames j of the other, with frame numbers s:

    G_ij proportional to exp(-(s_i - s_j)^2 / (2 variance)), normalised over j
    p_ij = softmax over j of cos(z_i, z_j) / temperature
    L    = mean over i of KL(G_i, p_i), in both directions

z is a small network on the embedding, for training alone. The frames of other videos are no negatives. No
other video takes part at all: what different videos have in common must come from the base. The program of
the authors adds positions stretched to the clip to its embedder, from which the clock can be read; here,
embedders know no such positions.

Shapes: B videos, T sampled frames per view, D embedding size.
"""

import torch.nn.functional as F
from torch import Tensor, nn

from cycleback.losses.base import (
    Loss,
    check_embeddings,
    check_per_frame,
    check_positive,
    full_precision,
    without_autocast,
)


def sequence_contrast(
    logits: Tensor, frames: Tensor, other_frames: Tensor, *, variance: float = 10.0
) -> Tensor:
    """Return KL(G_i, p_i), mean over the rows: (B,).

    Args:
        logits: (B, T, S), the similarity of each frame of one view to those of the other over a temperature.
        frames: (B, T), frame numbers of the one view.
        other_frames: (B, S), those of the other.
        variance: of the Gaussian, in squared frames.
    """
    apart = (frames[:, :, None] - other_frames[:, None, :]).to(logits)  # (B, T, S)
    log_target = (apart.square() / (-2 * variance)).log_softmax(dim=-1)
    return (log_target.exp() * (log_target - logits.log_softmax(dim=-1))).sum(dim=-1).mean(dim=-1)


class SCLLoss(Loss):
    """Sequence contrast between the two views of each video, in both directions, mean over videos.

    Args:
        embedding_size: D of the embeddings.
        variance: of the Gaussian, in squared frames; 10 in the paper.
        temperature: of the softmax over cosines.
        hidden_size: of the network on the embeddings; 0 compares the embeddings themselves.
    """

    needs = frozenset({"positives", "frames", "positive_frames"})

    def __init__(
        self,
        embedding_size: int,
        *,
        variance: float = 10.0,
        temperature: float = 0.1,
        hidden_size: int = 512,
    ) -> None:
        super().__init__()
        check_positive("variance", variance)
        check_positive("temperature", temperature)
        self.embedding_size, self.variance, self.temperature = embedding_size, variance, temperature
        self.head: nn.Module = nn.Identity()
        if hidden_size:
            layers = (
                nn.Linear(embedding_size, hidden_size),
                nn.ReLU(),
                nn.Linear(hidden_size, embedding_size),
            )
            self.head = nn.Sequential(*layers)

    def forward(
        self,
        embeddings: Tensor,
        *,
        positives: Tensor | None = None,
        frames: Tensor | None = None,
        positive_frames: Tensor | None = None,
    ) -> Tensor:
        """Return a scalar, computed in float32 even under autocast (float64 stays float64).

        Args:
            embeddings: (B, T, D), one view.
            positives: (B, T, D), the other view.
            frames: (B, T), frame numbers of `embeddings`.
            positive_frames: (B, T), those of `positives`.
        """
        check_embeddings(embeddings, size=self.embedding_size)
        if positives is None or frames is None or positive_frames is None:
            raise ValueError("the SCL loss needs positives= (B, T, D), frames= and positive_frames= (B, T)")
        check_embeddings(positives, size=self.embedding_size)
        check_per_frame("frames", frames, embeddings)
        check_per_frame("positive_frames", positive_frames, positives)
        with without_autocast(embeddings):
            one, other = (
                F.normalize(self.head(full_precision(view)), dim=-1) for view in (embeddings, positives)
            )
            logits = one @ other.mT / self.temperature  # (B, T, T)
            forth = sequence_contrast(logits, frames, positive_frames, variance=self.variance)
            back = sequence_contrast(logits.mT, positive_frames, frames, variance=self.variance)
            return (forth + back).mean() / 2
