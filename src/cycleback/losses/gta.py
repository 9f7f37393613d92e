"""GTA: the cost of warping one video onto another, and cycles through all paths at once.

Paper: Hadji et al., "Representation Learning via Global Temporal Alignment and Cycle-Consistency", CVPR 2021.
Written from its formulas. Its authors state that they filed a patent.

    D_ij = -log softmax over i of x_i . y_j / t        a frame of Y must tell its match from the rest of X
    R    = smoothDTW of D                              see `soft_dtw.py`
    P_xy = softmax over i of -R_xy                     where each frame of Y goes in X
    C    = P_xy P_yx                                   column i: where frame i of X lands after X -> Y -> X
    L    = -mean log C_ii + warp_weight (R_xy + R_yx)

C is computed as logarithms: tables of paths differ by so much that most of its entries underflow. The program
of the authors takes the probabilities C for logits, so that their softmax is nearly flat, and smooths labels.

Shapes: B videos, T sampled frames per video, D embedding size, P = B (B - 1) / 2 pairs (X, Y).
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from cycleback.losses.base import Loss, check_embeddings, check_positive, full_precision, without_autocast
from cycleback.losses.similarity import unordered_pairs
from cycleback.losses.soft_dtw import warp_table


def contrastive_costs(x: Tensor, y: Tensor, *, temperature: float = 0.1) -> Tensor:
    """Return D (..., N, M): minus the log of the share of each row of `x` (..., N, D) for a row of `y`.

    `y` is (..., M, D). The shares of one row of `y` sum to 1, so equal frames everywhere cost log N.
    """
    return -(x @ y.mT / temperature).log_softmax(dim=-2)


def global_cycles(forth: Tensor, back: Tensor) -> Tensor:
    """Return for each frame of X the log of the probability to land on itself, log C_ii: (..., N).

    `forth` is R of X and Y (..., N, M), `back` is R of Y and X (..., M, N).
    """
    both_ways = (-forth).log_softmax(dim=-2) + (-back).log_softmax(dim=-2).mT
    return both_ways.logsumexp(dim=-1)


class GTALoss(Loss):
    """Warping costs of every pair of videos, both ways, and cycles through their tables.

    Args:
        temperature: of the softmax in the costs.
        smoothing: of the soft minimum of smoothDTW.
        warp_weight: of the warping costs, which are sums over the path.
        cycle_weight: of the cycles; 0 leaves smoothDTW alone.
    """

    needs = frozenset()

    def __init__(
        self,
        *,
        temperature: float = 0.1,
        smoothing: float = 0.1,
        warp_weight: float = 0.1,
        cycle_weight: float = 1.0,
    ) -> None:
        super().__init__()
        check_positive("temperature", temperature)
        check_positive("smoothing", smoothing)
        self.temperature, self.smoothing = temperature, smoothing
        self.warp_weight, self.cycle_weight = warp_weight, cycle_weight

    def forward(self, embeddings: Tensor) -> Tensor:
        """Return a scalar, computed in float32 even under autocast; `embeddings` are (B >= 2, T, D)."""
        check_embeddings(embeddings, min_videos=2)
        with without_autocast(embeddings):
            values = F.normalize(full_precision(embeddings), dim=-1)
            first, second = unordered_pairs(len(values), device=values.device)  # (P,), (P,)
            x, y = values[torch.cat([first, second])], values[torch.cat([second, first])]  # both ways
            tables = warp_table(
                contrastive_costs(x, y, temperature=self.temperature),
                smoothing=self.smoothing,
                minimum="mean",
            )  # (2 P, T, T)
            forth, back = tables.chunk(2)
            warped = (forth[:, -1, -1] + back[:, -1, -1]).mean()
            return self.warp_weight * warped - self.cycle_weight * global_cycles(forth, back).mean()
