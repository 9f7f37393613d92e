"""Reversal loss: two videos must warp onto each other more cheaply forwards than backwards.

Paper: Xue and Grauman, "Learning Fine-grained View-Invariant Representations from Unpaired Ego-Exo Videos via
Temporal Alignment" (AE2), NeurIPS 2023. `OrderLoss` asks for the same by the correlation of matched times.

    max(0, (R(X, Y) - R(X, reversed Y)) / T + margin)

with R the smoothDTW of squared distances of unit vectors. Dividing by T makes the margin one per frame.

Shapes: B videos, T sampled frames per video, D embedding size, P = B (B - 1) / 2 pairs (X, Y).
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from cycleback.losses.base import Loss, check_embeddings, check_positive, full_precision, without_autocast
from cycleback.losses.similarity import squared_distances, unordered_pairs
from cycleback.losses.soft_dtw import soft_dtw


class ReversalLoss(Loss):
    """Hinge between the warping cost of each pair and that with the second video reversed, mean over pairs.

    Args:
        margin: by how much cheaper forwards must be, per sampled frame.
        smoothing: of the soft minimum of smoothDTW.
        normalize: compare unit vectors.
    """

    needs = frozenset()

    def __init__(self, *, margin: float = 0.1, smoothing: float = 0.1, normalize: bool = True) -> None:
        super().__init__()
        check_positive("margin", margin)
        check_positive("smoothing", smoothing)
        self.margin, self.smoothing, self.normalize = margin, smoothing, normalize

    def forward(self, embeddings: Tensor) -> Tensor:
        """Return a scalar, computed in float32 even under autocast; `embeddings` are (B >= 2, T, D)."""
        check_embeddings(embeddings, min_videos=2)
        with without_autocast(embeddings):
            values = full_precision(embeddings)
            values = F.normalize(values, dim=-1) if self.normalize else values
            first, second = unordered_pairs(len(values), device=values.device)  # (P,), (P,)
            costs = squared_distances(values[first], values[second])  # (P, T, T)
            both = torch.cat([costs, costs.flip(-1)])
            warped = soft_dtw(both, smoothing=self.smoothing, minimum="mean") / values.shape[1]
            forwards, backwards = warped.chunk(2)
            return F.relu(forwards - backwards + self.margin).mean()
