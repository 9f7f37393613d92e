"""Videos of unequal length in one batch: padding is never a neighbour, never counted and never leaks.

A mask is True for real frames and False for padding; None means that every frame is real.
"""

import torch
from torch import Tensor


def hide_padding(logits: Tensor, mask: Tensor | None) -> Tensor:
    """Logits (..., T, S) with -inf, a softmax weight of exactly 0, where `mask` (..., S) is False."""
    return logits if mask is None else logits.masked_fill(~mask[..., None, :], -torch.inf)


def erase_padding(values: Tensor, mask: Tensor | None) -> Tensor:
    """Values (B, T, ...) with 0 where `mask` (B, T) is False: NaN times a weight of 0 would still be NaN."""
    if mask is None:
        return values
    return values.masked_fill(~mask.reshape(*mask.shape, *[1] * (values.ndim - mask.ndim)), 0)


def mean_of_real(values: Tensor, mask: Tensor | None, *, dim: int | None = None) -> Tensor:
    """Mean of `values` (P, T) where `mask` (P, T) is True, over everything or over `dim`."""
    if mask is None:
        return values.mean(dim)
    return values.masked_fill(~mask, 0).sum(dim) / mask.sum(dim)
