"""How alike two frames are, and which videos are compared with which.

Shapes: T frames of one video, S of the other, D embedding size, P ordered pairs of videos.
"""

from typing import Literal, get_args

import torch
import torch.nn.functional as F
from torch import Tensor

from cycleback.losses.inputs import check_choice
from cycleback.losses.masks import hide_padding

Similarity = Literal["l2", "cosine"]
Scaling = Literal["dimension", "none"]


def squared_distances(u: Tensor, v: Tensor) -> Tensor:
    """Squared L2 distances (..., T, S) of the rows of `u` (..., T, D) and `v` (..., S, D).

    ||a||^2 + ||b||^2 - 2ab cancels badly when the rows lie far from zero. A shift changes no distance, so
    both sides are first moved to one of the rows. What rounding still leaves below zero becomes zero.
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
    """Logits (..., T, S): how alike each row of `u` (..., T, D) is to each row of `v` (..., S, D).

    Args:
        u: Embeddings (..., T, D).
        v: Embeddings (..., S, D).
        temperature: Small is strict: the softmax of the logits then takes the nearest row alone.
        scaling: "dimension" divides by D as well, since squared distances grow with D. Cosines, and distances
            of unit vectors, do not: with them take "none", or every softmax is almost flat.
        similarity: "l2" is minus the squared distance, "cosine" the cosine of the angle. (What the authors'
            program calls cosine is the plain dot product.)
    """
    check_choice("similarity", similarity, get_args(Similarity))
    check_choice("scaling", scaling, get_args(Scaling))
    scale = temperature * (u.shape[-1] if scaling == "dimension" else 1)
    if similarity == "cosine":
        return F.normalize(u, dim=-1) @ F.normalize(v, dim=-1).mT / scale
    return -squared_distances(u, v) / scale


def soft_matches(
    u: Tensor,
    v: Tensor,
    *,
    temperature: float = 0.1,
    scaling: Scaling = "dimension",
    similarity: Similarity = "l2",
    v_mask: Tensor | None = None,
) -> Tensor:
    """The paper's alpha (..., T, S): the share of each row of `v` (..., S, D) in the match of each of `u`.

    Rows of `v` that `v_mask` (..., S) hides have none. `u` is (..., T, D); options as in `scaled_similarity`.
    """
    logits = scaled_similarity(u, v, temperature=temperature, scaling=scaling, similarity=similarity)
    return hide_padding(logits, v_mask).softmax(dim=-1)


def ordered_pairs(num_videos: int, *, device: torch.device | str | None = None) -> tuple[Tensor, Tensor]:
    """Indices `start` (P,) and `other` (P,): each of the B * (B - 1) ordered pairs of different videos, once.

    Pure arithmetic on the device: listing the off-diagonal cells with `nonzero` would make a GPU wait.
    """
    others = max(1, num_videos - 1)
    pair = torch.arange(num_videos * (num_videos - 1), device=device)
    start, other = pair // others, pair % others
    return start, other + (other >= start)
