"""VAVA: the cost of transporting one video onto another, with a prior for the order of time.

Paper: Liu et al., "Learning to Align Sequential Actions in the Wild", CVPR 2022. With squared distances D of
unit vectors:

    prior    share * N(frames off the diagonal; 0, sigma) + (1 - share) * N(frames off the nearest; 0, sigma)
    T        the plan of least <T, D> with an entropy, relative to the prior, and a virtual frame
    L        <T, D> + idm_weight * contrast within each video

The gradient of the least cost is that of <T, D> with T fixed. In the paper the share of the diagonal falls
during training, slowly; here it is a constant. Its inter-video contrast, with a weight of 1e-4, is left out.
The released code uses variables before they are assigned and was written from memory, as its page says.

Shapes: B videos, T sampled frames per video, D embedding size, P = B (B - 1) / 2 pairs (X, Y).
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
from cycleback.losses.idm import contrastive_idm
from cycleback.losses.similarity import squared_distances, unordered_pairs
from cycleback.losses.transport import Virtual, transport_plan


def log_prior(distances: Tensor, apart: Tensor, *, share: float, sigma: float) -> Tensor:
    """Return the log of the prior (P, N, M).

    Args:
        distances: D, (P, N, M); its smallest entry of each row is the nearest frame.
        apart: (P, N, M), how far each cell is from the diagonal, in frames.
        share: of the diagonal, from 0 to 1.
        sigma: in frames.
    """
    place = torch.arange(distances.shape[-1], device=distances.device)
    off = (place - distances.argmin(dim=-1, keepdim=True)).to(distances)  # (P, N, M)
    parts = torch.stack([_bell(apart, share, sigma), _bell(off, 1 - share, sigma)])
    return parts.logsumexp(dim=0)


def _bell(off: Tensor, share: float, sigma: float) -> Tensor:
    """Return log(share) - off^2 / (2 sigma^2): the log of a Gaussian without its constant."""
    floor = 1e-6  # so that a share of 0 has a logarithm
    return off.square() / (-2 * sigma**2) + torch.as_tensor(max(share, floor)).log().item()


class VAVALoss(Loss):
    """Transport costs of every pair of videos plus the contrast within each video.

    Args:
        regularization: weight of the entropy of the plan.
        diagonal_share: share of the prior that is along the diagonal; the rest is at the nearest frame.
        sigma: of the prior, in sampled frames.
        virtual_cost: cost of leaving a frame without counterpart.
        virtual_share: share of the frames that may be left; 0 matches all.
        idm_weight: of the contrast within videos.
        window: frames up to which two frames of a video should be alike.
        margin: squared distance from which far frames no longer repel.
        iterations: of Sinkhorn.
    """

    needs = frozenset({"times", "frames"})

    def __init__(
        self,
        *,
        regularization: float = 0.1,
        diagonal_share: float = 0.9,
        sigma: float = 2.0,
        virtual_cost: float = 0.5,
        virtual_share: float = 0.2,
        idm_weight: float = 0.5,
        window: float = 15.0,
        margin: float = 2.0,
        iterations: int = 20,
    ) -> None:
        super().__init__()
        for name, value in (("regularization", regularization), ("sigma", sigma), ("window", window)):
            check_positive(name, value)
        self.regularization, self.diagonal_share, self.sigma = regularization, diagonal_share, sigma
        self.virtual = Virtual(virtual_cost, virtual_share) if virtual_share > 0 else None
        self.idm_weight, self.window, self.margin, self.iterations = idm_weight, window, margin, iterations

    def forward(
        self, embeddings: Tensor, *, times: Tensor | None = None, frames: Tensor | None = None
    ) -> Tensor:
        """Return a scalar, computed in float32 even under autocast (float64 stays float64).

        Args:
            embeddings: (B >= 2, T, D).
            times: (B, T), as a fraction of the video.
            frames: (B, T), frame numbers.
        """
        check_embeddings(embeddings, min_videos=2)
        if times is None or frames is None:
            raise ValueError("the VAVA loss needs times= (B, T) and frames= (B, T)")
        check_per_frame("times", times, embeddings)
        check_per_frame("frames", frames, embeddings)
        with without_autocast(embeddings):
            values = F.normalize(full_precision(embeddings), dim=-1)
            times, count = times.to(values), values.shape[1]
            first, second = unordered_pairs(len(values), device=values.device)  # (P,), (P,)
            distances = squared_distances(values[first], values[second])  # (P, T, T)
            apart = count * (times[first][:, :, None] - times[second][:, None, :])
            plan = transport_plan(
                distances,
                regularization=self.regularization,
                iterations=self.iterations,
                log_prior=log_prior(distances, apart, share=self.diagonal_share, sigma=self.sigma),
                virtual=self.virtual,
            )
            moved = (plan * distances).sum(dim=(1, 2)).mean()
            contrast = contrastive_idm(
                values, times=times, frames=frames, window=self.window, margin=self.margin
            ).mean()
            return moved + self.idm_weight * contrast
