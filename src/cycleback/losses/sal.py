"""Shuffle and learn: tell three frames in order from three frames out of order.

Papers: Misra et al., "Shuffle and Learn", ECCV 2016, arXiv:1603.08561: the baseline SaL of Dwibedi et al.,
CVPR 2019, 5.1. Of five frames a < b < c < d < e of one video, (b, c, d) are in order; (b, a, d) and (b, e, d)
are not.

Misra et al. take these where the video moves most, within a time window. Here they may be any five of the
sampled frames, as in the program of Dwibedi et al. That program reverses all triplets of a batch or none;
here each is reversed at random.

Shapes: B videos, T sampled frames per video, D embedding size, K triplets per video.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from cycleback.losses.base import Loss, check_embeddings, check_positive, without_autocast

FRAMES_DRAWN = 5


class Triplets(NamedTuple):
    """Triplets of frames of each video, and whether they are out of order."""

    frames: Tensor  # (B, K, 3) int64, positions among the T frames of the same video
    shuffled: Tensor  # (B, K) int64, the class to predict: 0 in order, forwards or backwards; 1 out of order


def draw_triplets(
    num_videos: int,
    num_frames: int,
    *,
    triplets_per_video: int = 8,
    shuffled_fraction: float = 0.75,
    generator: torch.Generator | None = None,
) -> Triplets:
    """Draw random triplets of each video on the device of the generator (by default torch's own, on the CPU).

    Args:
        num_videos: B.
        num_frames: T, at least 5, in order of time.
        triplets_per_video: K.
        shuffled_fraction: Share of the B * K triplets that is out of order, to the nearest whole number.
    """
    if num_frames < FRAMES_DRAWN:
        raise ValueError(
            f"a triplet is made of {FRAMES_DRAWN} different frames of a video, got {num_frames}; "
            "sample more frames per video"
        )
    device = torch.device("cpu") if generator is None else generator.device
    shape = (num_videos, triplets_per_video)
    keys = torch.rand(*shape, num_frames, generator=generator, device=device)  # (B, K, T)
    a, b, c, d, e = keys.topk(FRAMES_DRAWN).indices.sort().values.unbind(-1)  # (B, K) each
    coins = torch.rand(2, *shape, generator=generator, device=device) < 0.5
    order = torch.rand(shape[0] * shape[1], generator=generator, device=device).argsort()
    shuffled = (order < round(shuffled_fraction * len(order))).reshape(shape)
    middle = torch.where(shuffled, torch.where(coins[0], a, e), c)
    first, last = torch.where(coins[1], b, d), torch.where(coins[1], d, b)
    return Triplets(frames=torch.stack([first, middle, last], dim=-1), shuffled=shuffled.long())


def triplet_errors(embeddings: Tensor, triplets: Triplets, classifier: nn.Module) -> Tensor:
    """Return the cross-entropy (B, K) of whether each triplet of `embeddings` (B, T, D) is out of order.

    `classifier` maps the three embeddings side by side (B, K, 3 * D) to logits (B, K, 2).
    """
    videos = torch.arange(embeddings.shape[0], device=embeddings.device)[:, None, None]
    logits = classifier(embeddings[videos, triplets.frames].flatten(-2))  # (B, K, 2)
    return F.cross_entropy(logits.mT, triplets.shuffled, reduction="none")


def _build_classifier(sizes: Sequence[int]) -> nn.Sequential:
    """Build linear layers from each of `sizes` to the next, with ReLU between them."""
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(sizes):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


class SaLLoss(Loss):
    """Cross-entropy of a small classifier, trained with the encoder, on random triplets of each video."""

    needs = frozenset({"generator"})

    def __init__(
        self,
        embedding_size: int,
        *,
        triplets_per_video: int = 8,  # as in the program; the paper does not say
        shuffled_fraction: float = 0.75,  # as in the paper's table of hyperparameters
        hidden_sizes: Sequence[int] = (128, 64),  # as in the same table
    ) -> None:
        super().__init__()
        check_positive("triplets_per_video", triplets_per_video)
        if not 0 <= shuffled_fraction <= 1:
            raise ValueError(f"shuffled_fraction must be in [0, 1], got {shuffled_fraction!r}")
        self.embedding_size = embedding_size
        self.triplets_per_video = triplets_per_video
        self.shuffled_fraction = shuffled_fraction
        self.classifier = _build_classifier([3 * embedding_size, *hidden_sizes, 2])

    def forward(self, embeddings: Tensor, *, generator: torch.Generator | None = None) -> Tensor:
        """Return the mean over all triplets, a scalar in the precision of the classifier even under autocast.

        Args:
            embeddings: (B, T >= 5, D = `embedding_size`), in order of time.
            generator: Source of the triplets; without one, torch's global one.
        """
        check_embeddings(embeddings, size=self.embedding_size)
        triplets = draw_triplets(
            *embeddings.shape[:2],
            triplets_per_video=self.triplets_per_video,
            shuffled_fraction=self.shuffled_fraction,
            generator=generator,
        )
        with without_autocast(embeddings):
            embeddings = embeddings.to(next(self.classifier.parameters()).dtype)
            triplets = Triplets(*(tensor.to(embeddings.device) for tensor in triplets))
            return triplet_errors(embeddings, triplets, self.classifier).mean()
