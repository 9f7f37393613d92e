"""VAOT: pick the frame of another video that a plan of optimal transport matches with this frame.

Paper: Ali et al., "Joint Self-Supervised Video Alignment and Action Segmentation", ICCV 2025,
arXiv:2503.16832. For frames x_i of X and y_j of Y, with cosines and times as fractions of the video:

    C_ij = 1 - cos(x_i, y_j) + time_weight |t_i - t_j|
    T    = the plan of least cost, with an entropy, a Gromov-Wasserstein part and a virtual frame
    L    = -sum_ij T_ij log softmax over j of cos(x_i, y_j) / temperature

No gradient passes through T. Their program counts the radius of the Gromov-Wasserstein part in whole frames,
0.02 of 21 of them: it is 0, and that part does nothing. Here it is one frame at least. Both directions of a
pair share one plan. `time_weight` makes a frame go with the same share of the other video: what is learned
with it may be the clock.

Shapes: B videos, T sampled frames per video, D embedding size, P = B (B - 1) / 2 pairs (X, Y).
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
from cycleback.losses.similarity import unordered_pairs
from cycleback.losses.transport import Structure, Virtual, transport_plan


def plan_entropy(logits: Tensor, plan: Tensor) -> Tensor:
    """Return the cross-entropy (P,) of picking the columns that a plan gives each row.

    `logits` and `plan` are (P, N, M); what the virtual frame takes has no target.
    """
    picked = (plan * logits.log_softmax(dim=-1)).sum(dim=(-2, -1))
    return -picked / plan.sum(dim=(-2, -1)).clamp_min(1e-12)


class VAOTLoss(Loss):
    """Cross-entropy to the plan of every pair of videos, in both directions.

    Args:
        temperature: of the softmax over cosines.
        regularization: weight of the entropy of the plan.
        time_weight: cost of matching frames at different shares of their videos.
        structure_weight: of the Gromov-Wasserstein part, from 0 to 1.
        radius: of its neighbourhoods, as a fraction of the sampled frames; at least one frame.
        virtual_cost: cost of leaving a frame without counterpart.
        virtual_share: share of the frames that may be left; 0 matches all.
        steps: linearisations of the Gromov-Wasserstein part.
        iterations: of Sinkhorn, for each linearisation.
    """

    needs = frozenset({"times"})

    def __init__(
        self,
        *,
        temperature: float = 0.1,
        regularization: float = 0.07,
        time_weight: float = 0.35,
        structure_weight: float = 0.3,
        radius: float = 0.02,
        virtual_cost: float = 0.5,
        virtual_share: float = 0.2,
        steps: int = 5,
        iterations: int = 10,
    ) -> None:
        super().__init__()
        check_positive("temperature", temperature)
        check_positive("regularization", regularization)
        self.temperature, self.regularization, self.time_weight = temperature, regularization, time_weight
        self.virtual = Virtual(virtual_cost, virtual_share) if virtual_share > 0 else None
        self.structure = Structure(structure_weight, radius, steps) if structure_weight > 0 else None
        self.iterations = iterations

    def forward(self, embeddings: Tensor, *, times: Tensor | None = None) -> Tensor:
        """Return a scalar, computed in float32 even under autocast (float64 stays float64).

        Args:
            embeddings: (B >= 2, T, D).
            times: (B, T), as a fraction of the video.
        """
        check_embeddings(embeddings, min_videos=2)
        if times is None:
            raise ValueError("the VAOT loss needs times= (B, T)")
        check_per_frame("times", times, embeddings)
        with without_autocast(embeddings):
            values = F.normalize(full_precision(embeddings), dim=-1)
            times = times.to(values)
            first, second = unordered_pairs(len(values), device=values.device)  # (P,), (P,)
            cosines = values[first] @ values[second].mT  # (P, T, T)
            apart = (times[first][:, :, None] - times[second][:, None, :]).abs()
            plan = transport_plan(
                1 - cosines + self.time_weight * apart,
                regularization=self.regularization,
                iterations=self.iterations,
                virtual=self.virtual,
                structure=self.structure,
            )
            logits = cosines / self.temperature
            return (plan_entropy(logits, plan) + plan_entropy(logits.mT, plan.mT)).mean() / 2
