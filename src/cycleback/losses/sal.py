"""Shuffle and learn: tell three frames in order from three frames out of order.

Papers: Misra et al., "Shuffle and Learn", ECCV 2016, arXiv:1603.08561: the baseline SaL of Dwibedi et al.,
CVPR 2019, 5.1. Of five frames a < b < c < d < e of one video, (b, c, d) are in order; (b, a, d) and (b, e, d)
are not.

Misra et al. take these where the video moves most, within a time window. As in the program of Dwibedi et al.,
any five of the sampled frames will do here. That program turns all triplets of a batch round, or none; here
each has a coin of its own.

Shapes: B videos, T sampled frames per video, D embedding size, K triplets per video. A mask is True for real
frames and False for padding.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from cycleback.losses.base import Loss
from cycleback.losses.inputs import can_look, check_embeddings, check_mask, check_positive, without_autocast

FRAMES_DRAWN = 5


@dataclass(frozen=True)
class Triplets:
    """Three frames at a time of each video, and whether they are out of order.

    Attributes:
        frames: (B, K, 3) int64, positions among the T frames of the same video.
        shuffled: (B, K) int64, the class to predict: 0 in order, forwards or backwards; 1 out of order.
    """

    frames: Tensor
    shuffled: Tensor

    def to(self, device: torch.device) -> "Triplets":
        """The same triplets on another device."""
        return Triplets(self.frames.to(device), self.shuffled.to(device))


def draw_triplets(
    mask: Tensor,
    *,
    triplets_per_video: int = 8,
    shuffled_fraction: float = 0.75,
    generator: torch.Generator | None = None,
) -> Triplets:
    """Random triplets of the real frames of each video, on the device of the generator (or else the CPU).

    Args:
        mask: (B, T) bool; frames are in order of time.
        triplets_per_video: K.
        shuffled_fraction: Share of the B * K triplets that is out of order, to the nearest whole number.
        generator: Source of randomness; without one, torch's global one.
    """
    check_enough_frames(mask)
    device = torch.device("cpu") if generator is None else generator.device
    shape = (mask.shape[0], triplets_per_video)
    keys = torch.rand(*shape, mask.shape[1], generator=generator, device=device)  # (B, K, T)
    keys.masked_fill_(~mask.to(device)[:, None], -1.0)
    a, b, c, d, e = keys.topk(FRAMES_DRAWN).indices.sort().values.unbind(-1)  # (B, K) each
    coins = torch.rand(2, *shape, generator=generator, device=device) < 0.5
    order = torch.rand(shape[0] * shape[1], generator=generator, device=device).argsort()
    shuffled = (order < round(shuffled_fraction * len(order))).reshape(shape)
    middle = torch.where(shuffled, torch.where(coins[0], a, e), c)
    first, last = torch.where(coins[1], b, d), torch.where(coins[1], d, b)
    return Triplets(frames=torch.stack([first, middle, last], dim=-1), shuffled=shuffled.long())


def check_enough_frames(mask: Tensor) -> None:
    """Refuse a video of fewer real frames, True in `mask` (B, T), than are drawn."""
    if not can_look(mask):
        return
    counts = mask.sum(dim=1).tolist()
    if min(counts) < FRAMES_DRAWN:
        raise ValueError(
            f"a triplet is made of {FRAMES_DRAWN} different frames of a video, got {min(counts)} in video "
            f"{counts.index(min(counts))} of the batch; sample more frames per video"
        )


def triplet_errors(embeddings: Tensor, triplets: Triplets, classifier: nn.Module) -> Tensor:
    """Cross-entropy (B, K) of telling whether each triplet of `embeddings` (B, T, D) is out of order.

    `classifier` maps the three embeddings side by side (B, K, 3 * D) to logits (B, K, 2).
    """
    videos = torch.arange(embeddings.shape[0], device=embeddings.device)[:, None, None]
    logits = classifier(embeddings[videos, triplets.frames].flatten(-2))  # (B, K, 2)
    return F.cross_entropy(logits.mT, triplets.shuffled, reduction="none")


def fully_connected(sizes: Sequence[int]) -> nn.Sequential:
    """Linear layers from each of `sizes` to the next, with ReLU between them."""
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(sizes):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


class SaLLoss(Loss):
    """Cross-entropy of a small classifier, trained along, on random triplets of each video; mean over all."""

    needs = frozenset({"mask", "generator"})

    def __init__(
        self,
        embedding_size: int,
        *,
        triplets_per_video: int = 8,  # the program's; the paper does not say
        shuffled_fraction: float = 0.75,  # the paper's table of hyperparameters
        hidden_sizes: Sequence[int] = (128, 64),  # the same
    ) -> None:
        super().__init__()
        check_positive("triplets_per_video", triplets_per_video)
        if not 0 <= shuffled_fraction <= 1:
            raise ValueError(f"shuffled_fraction must be in [0, 1], got {shuffled_fraction!r}")
        self.embedding_size = embedding_size
        self.triplets_per_video = triplets_per_video
        self.shuffled_fraction = shuffled_fraction
        self.classifier = fully_connected([3 * embedding_size, *hidden_sizes, 2])

    def forward(
        self, embeddings: Tensor, *, mask: Tensor | None = None, generator: torch.Generator | None = None
    ) -> Tensor:
        """Scalar loss, computed in the precision of the classifier's weights even under autocast.

        Args:
            embeddings: (B, T >= 5, D = `embedding_size`), in order of time.
            mask: (B, T) bool, True for real frames, at least 5 in each video.
            generator: Source of the triplets; without one, torch's global one.
        """
        check_embeddings(embeddings, min_videos=1)
        if embeddings.shape[-1] != self.embedding_size:
            shape = tuple(embeddings.shape)
            raise ValueError(f"embeddings must be (B, T, {self.embedding_size}) for this loss, got {shape}")
        if mask is None:
            device = None if generator is None else generator.device
            mask = torch.ones(embeddings.shape[:2], dtype=torch.bool, device=device)
        else:
            check_mask(mask, embeddings)
        triplets = draw_triplets(
            mask,
            triplets_per_video=self.triplets_per_video,
            shuffled_fraction=self.shuffled_fraction,
            generator=generator,
        )
        with without_autocast(embeddings):
            embeddings = embeddings.to(next(self.classifier.parameters()).dtype)
            return triplet_errors(embeddings, triplets.to(embeddings.device), self.classifier).mean()
