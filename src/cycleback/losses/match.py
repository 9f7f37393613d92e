"""Match loss: a frame is nearest to the frame of another video that goes with it, by matches found before.

The matches come from warping the untrained inputs of the encoder. Those of one pair of videos are often a
few frames off. The errors of many pairs differ, and one network cannot follow them all, so it learns matches
that are more exact than those it is given.

Shapes: B videos, T sampled frames per video, D embedding size.
"""

import torch
from torch import Tensor

from cycleback.losses.base import (
    Loss,
    check_embeddings,
    check_per_frame,
    check_positive,
    full_precision,
    without_autocast,
)
from cycleback.losses.similarity import squared_distances


class MatchLoss(Loss):
    """Cross-entropy of picking the matched frame of another video, mean over frames and pairs of videos.

    The target is soft: exp(-(frames off)^2 / (2 sigma^2)), normalised over the sampled frames.

    Args:
        sigma: frames by which a match may be off.
        temperature: of the softmax over squared distances.
        l2_weight: penalty on the squared norms; without it, larger norms lower the loss.
    """

    needs = frozenset({"frames", "matches"})

    def __init__(self, *, sigma: float = 1.0, temperature: float = 1.0, l2_weight: float = 1e-3) -> None:
        super().__init__()
        check_positive("sigma", sigma)
        check_positive("temperature", temperature)
        self.sigma, self.temperature, self.l2_weight = sigma, temperature, l2_weight

    def forward(
        self, embeddings: Tensor, *, frames: Tensor | None = None, matches: Tensor | None = None
    ) -> Tensor:
        """Return a scalar, computed in float32 even under autocast (float64 stays float64).

        Args:
            embeddings: (B >= 2, T, D).
            frames: (B, T), the frame number of each embedding in its video.
            matches: (B, B, T), at [u, v, t] the frame of video v that goes with frame t of video u.
        """
        check_embeddings(embeddings, min_videos=2)
        if frames is None or matches is None:
            raise ValueError("the match loss needs frames= (B, T) and matches= (B, B, T)")
        check_per_frame("frames", frames, embeddings)
        videos, count = embeddings.shape[:2]
        if tuple(matches.shape) != (videos, videos, count):
            raise ValueError(f"matches must be {(videos, videos, count)}, got {tuple(matches.shape)}")
        with without_autocast(embeddings):
            values = full_precision(embeddings)
            flat = values.flatten(0, 1)
            distances = squared_distances(flat, flat)  # (B T, B T)
            logits = -torch.unflatten(
                torch.unflatten(distances, 0, (videos, count)), 2, (videos, count)
            )  # (B, T, B, T)
            log_picked = (logits.transpose(1, 2) / self.temperature).log_softmax(-1)  # (B, B, T, T)
            off = matches[..., None].to(values) - frames[None, :, None].to(values)  # (B, B, T, T)
            target = (off.square() / (-2 * self.sigma**2)).softmax(-1)
            costs = -(target * log_picked).sum(-1).mean(-1)  # (B, B)
            own = torch.eye(videos, dtype=torch.bool, device=costs.device)
            pairs = costs.masked_fill(own, 0.0).sum() / (videos * (videos - 1))
            return pairs + self.l2_weight * values.square().sum(-1).mean()
