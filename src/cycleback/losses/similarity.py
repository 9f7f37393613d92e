"""Similarity of frames, soft matches, and the pairs of videos that are compared.

Shapes: T frames of one video, S of the other, D embedding size, P ordered pairs of videos.
"""

from typing import Literal, TypedDict, Unpack, get_args

import torch
import torch.nn.functional as F
from torch import Tensor

from cycleback.losses.base import check_choice

Similarity = Literal["l2", "cosine"]
Scaling = Literal["dimension", "none"]


class SimilarityOptions(TypedDict, total=False):
    """The options of `scaled_similarity`, for functions that pass them on."""

    temperature: float
    scaling: Scaling
    similarity: Similarity


def squared_distances(u: Tensor, v: Tensor) -> Tensor:
    """Return squared L2 distances (..., T, S) between the rows of `u` (..., T, D) and `v` (..., S, D).

    ||a||^2 + ||b||^2 - 2ab cancels badly when the rows lie far from zero. A shift changes no distance, so
    both sides are first shifted by one of the rows. Values that rounding leaves below zero become zero.
    """
    origin = v[..., :1, :].detach()
    u, v = u - origin, v - origin
    norms = u.square().sum(-1)[..., :, None] + v.square().sum(-1)[..., None, :]  # (..., T, S)
    return (norms - 2 * u @ v.mT).clamp_min(0)


def scaled_similarity(
    u: Tensor,
    v: Tensor,
    *,
    temperature: float = 0.1,
    scaling: Scaling = "dimension",
    similarity: Similarity = "l2",
) -> Tensor:
    """Return logits (..., T, S): the similarity of each row of `u` (..., T, D) to each of `v` (..., S, D).

    Args:
        temperature: The smaller it is, the more the softmax of the logits favours the nearest row.
        scaling: "dimension" divides by D as well, since squared distances grow with D. Cosines, and distances
            of unit vectors, do not: use "none" with them, or every softmax is almost flat.
        similarity: "l2" is minus the squared distance, "cosine" the cosine of the angle. (The "cosine" of the
            authors' program is the plain dot product.)
    """
    check_choice("similarity", similarity, get_args(Similarity))
    check_choice("scaling", scaling, get_args(Scaling))
    scale = temperature * (u.shape[-1] if scaling == "dimension" else 1)
    if similarity == "cosine":
        return F.normalize(u, dim=-1) @ F.normalize(v, dim=-1).mT / scale
    return -squared_distances(u, v) / scale


def soft_matches(u: Tensor, v: Tensor, **options: Unpack[SimilarityOptions]) -> Tensor:
    """Return the paper's alpha (..., T, S): the weight of each row of `v` in the match of each row of `u`.

    `u` is (..., T, D), `v` is (..., S, D); options as in `scaled_similarity`.
    """
    return scaled_similarity(u, v, **options).softmax(dim=-1)


def ordered_pairs(num_videos: int, *, device: torch.device | str | None = None) -> tuple[Tensor, Tensor]:
    """Return indices `start` (P,) and `other` (P,) of the B * (B - 1) ordered pairs of different videos.

    This is pure arithmetic on the device: listing the off-diagonal cells with `nonzero` would wait for it.
    """
    others = max(1, num_videos - 1)
    pair = torch.arange(num_videos * (num_videos - 1), device=device)
    start, other = pair // others, pair % others
    return start, other + (other >= start)


def unordered_pairs(num_videos: int, *, device: torch.device | str | None = None) -> tuple[Tensor, Tensor]:
    """Return indices `first` and `second` (P,) of the B (B - 1) / 2 pairs of different videos."""
    pairs = torch.triu_indices(num_videos, num_videos, offset=1, device=device)
    return pairs[0], pairs[1]
