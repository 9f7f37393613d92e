"""Differentiable dynamic time warping: the cost of the best path through a table, with a soft minimum.

Papers: Cuturi and Blondel, "Soft-DTW", ICML 2017, for `minimum="log"`; Hadji et al., "Representation Learning
via Global Temporal Alignment and Cycle-Consistency", CVPR 2021, for `minimum="mean"` (smoothDTW).

    R_ij = D_ij + min_g(R_i-1,j-1, R_i-1,j, R_i,j-1)

    "log"    min_g(a) = -g log sum_k exp(-a_k / g)                          never above the minimum
    "mean"   min_g(a) = sum_k a_k exp(-a_k / g) / sum_k exp(-a_k / g)       never below the minimum

The cells of an anti-diagonal need only the two before it, so a table of N x M cells takes N + M - 1 steps for
all pairs of videos at once. The backward pass walks the same way from the end. Both keep a few numbers per
cell, nothing that grows faster. On a GPU with Triton, all steps of all pairs are one kernel.

Shapes: P pairs of videos, N and M frames, K = N + M - 1 anti-diagonals.
"""

from functools import cache
from typing import Any, Literal, get_args

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from cycleback.compilation import load_kernels
from cycleback.losses.base import check_choice, check_positive

Minimum = Literal["log", "mean"]

MAX_KERNEL_CELLS = 2**30  # kernels index in 32 bits
UNREACHABLE = 1e12  # a finite cost, in units of the smoothing: 0 times infinity is not a number


def soft_dtw(costs: Tensor, *, smoothing: float = 0.1, minimum: Minimum = "log") -> Tensor:
    """Return the cost (...,) of the best path from the first to the last frames of `costs` (..., N, M)."""
    return warp_table(costs, smoothing=smoothing, minimum=minimum)[..., -1, -1]


def warp_table(costs: Tensor, *, smoothing: float = 0.1, minimum: Minimum = "log") -> Tensor:
    """Return the table R (..., N, M): the cost of the best path from the first frames to each cell.

    Args:
        costs: D, (..., N, M).
        smoothing: g; the smaller it is, the closer the soft minimum is to the minimum.
        minimum: which soft minimum, see above.
    """
    check_choice("minimum", minimum, get_args(Minimum))
    check_positive("smoothing", smoothing)
    if costs.ndim < 2 or 0 in costs.shape[-2:]:
        raise ValueError(f"costs must be (..., N >= 1, M >= 1), got {tuple(costs.shape)}")
    table: Tensor = _Warp.apply(costs.reshape(-1, *costs.shape[-2:]), smoothing, minimum)  # type: ignore[no-untyped-call]
    return table.reshape(costs.shape)


class _Warp(torch.autograd.Function):
    """Costs (P, N, M) to tables (P, N, M)."""

    @staticmethod
    def forward(context: Any, costs: Tensor, smoothing: float, minimum: Minimum) -> Tensor:
        found = _fill(skew(costs / smoothing, UNREACHABLE), minimum)
        context.save_for_backward(found)
        context.options = (minimum, costs.shape[-1])
        return unskew(found[2:, :, 1:], costs.shape[-1]) * -smoothing

    @staticmethod
    @once_differentiable
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        minimum, width = context.options
        shares = _shares(context.saved_tensors[0], minimum)
        return unskew(_walk_back(skew(gradient, 0.0), *shares), width), None, None


def skew(cells: Tensor, empty: float) -> Tensor:
    """Return the anti-diagonals (K, P, N) of `cells` (P, N, M): entry [k, p, i] is cell (i, k - i)."""
    pairs, rows, width = cells.shape
    count = rows + width - 1
    flat = F.pad(cells, (0, rows), value=empty).flatten(1)[:, : rows * count]
    return flat.reshape(pairs, rows, count).permute(2, 0, 1).contiguous()


def unskew(diagonals: Tensor, width: int) -> Tensor:
    """Undo `skew`: (K, P, N) to (P, N, M = `width`)."""
    count, pairs, rows = diagonals.shape
    flat = F.pad(diagonals.permute(1, 2, 0).reshape(pairs, rows * count), (0, rows))
    return flat.reshape(pairs, rows, count + 1)[..., :width]


def _fill(costs: Tensor, minimum: Minimum) -> Tensor:
    """Return -R / g on anti-diagonals (K + 2, P, N + 1), with two diagonals and one row in front.

    `costs` are D / g, (K, P, N).
    """
    count, pairs, rows = costs.shape
    found = costs.new_full((count + 2, pairs, rows + 1), -UNREACHABLE)
    found[0, :, 0] = 0.0  # every path starts here
    if (kernels := _find_kernels(costs)) is not None:
        with torch.cuda.device(costs.device):
            _run_fill(kernels, costs, found, minimum)
        return found
    for k in range(count):
        before, last = found[k], found[k + 1]
        diagonal, above, left = before[:, :-1], last[:, :-1], last[:, 1:]
        if minimum == "log":
            least = torch.logaddexp(torch.logaddexp(above, left), diagonal)
        else:
            stacked = torch.stack((diagonal, above, left))
            least = (stacked.softmax(dim=0) * stacked).sum(dim=0)
        torch.sub(least, costs[k], out=found[k + 2, :, 1:])
    return found


def _shares(found: Tensor, minimum: Minimum) -> tuple[Tensor, Tensor, Tensor]:
    """Return how much each cell moves with its three predecessors: diagonal, above, left, each (K, P, N)."""
    before = torch.stack([found[:-2, :, :-1], found[1:-1, :, :-1], found[1:-1, :, 1:]])  # (3, K, P, N)
    shares = before.softmax(dim=0)
    if minimum == "mean":
        shares = shares * (1 + before - (shares * before).sum(dim=0))
    return shares[0], shares[1], shares[2]


def _walk_back(gradient: Tensor, diagonal: Tensor, above: Tensor, left: Tensor) -> Tensor:
    """Return the gradient (K, P, N) for the costs from that for R; the shares are those of `_shares`."""
    total = gradient.clone()
    if (kernels := _find_kernels(total)) is not None:
        with torch.cuda.device(total.device):
            _run_walk_back(kernels, total, diagonal, above, left)
        return total
    for k in range(len(total) - 2, -1, -1):
        here, after = total[k], total[k + 1]
        here.addcmul_(after, left[k + 1])
        here[:, :-1].addcmul_(after[:, 1:], above[k + 1, :, 1:])
        if k + 2 < len(total):
            here[:, :-1].addcmul_(total[k + 2, :, 1:], diagonal[k + 2, :, 1:])
    return total


def _find_kernels(values: Tensor) -> Any:
    """Return the Triton kernels of the losses for values on a GPU, or None."""
    is_fit = values.is_cuda and values.numel() < MAX_KERNEL_CELLS
    return _kernels() if is_fit and not torch.compiler.is_compiling() else None


@cache
def _kernels() -> Any:
    purpose = "the Triton kernels for soft-DTW"
    return load_kernels("cycleback.losses._triton_kernels", _try_out, purpose=purpose)


def _try_out(kernels: Any) -> None:
    tiny = torch.zeros(3, 1, 2, device="cuda")
    _run_fill(kernels, tiny, torch.zeros(5, 1, 3, device="cuda"), "log")
    _run_walk_back(kernels, tiny, tiny, tiny, tiny)


def _run_fill(kernels: Any, costs: Tensor, found: Tensor, minimum: Minimum) -> None:
    count, pairs, rows = costs.shape
    kernels.fill[(pairs,)](
        costs, found, count, pairs, rows, is_mean=minimum == "mean", **_launch(rows), num_stages=1
    )


def _run_walk_back(kernels: Any, total: Tensor, diagonal: Tensor, above: Tensor, left: Tensor) -> None:
    count, pairs, rows = total.shape
    shares = (diagonal.contiguous(), above.contiguous(), left.contiguous())
    kernels.walk_back[(pairs,)](total, *shares, count, pairs, rows, **_launch(rows), num_stages=1)


def _launch(rows: int) -> dict[str, int]:
    """Return a thread for each frame, up to 256 threads."""
    lanes = max(32, 1 << (rows - 1).bit_length())
    return {"lanes": lanes, "num_warps": min(8, lanes // 32)}
