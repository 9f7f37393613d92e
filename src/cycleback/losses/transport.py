"""Optimal transport between the frames of two videos: soft matches that need not keep the order of time.

Sinkhorn's iterations run on logarithms, so no small regularisation can underflow. A virtual frame on each
side takes the frames that have no counterpart, at a fixed cost and up to a fixed share. With `structure`, the
plan also has a Gromov-Wasserstein cost: two frames close in time should not be matched to frames far apart.

Shapes: P pairs of videos, N and M frames.
"""

import math
from functools import cache
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from cycleback.compilation import load_kernels
from cycleback.losses.base import check_positive
from cycleback.losses.soft_dtw import MAX_KERNEL_CELLS

MAX_CELLS = 128 * 128  # of a plan that one program on a GPU holds whole
MAX_STRUCTURED_CELLS = 32 * 32  # the same with the tables of a structure, at four warps


class Structure(NamedTuple):
    """The Gromov-Wasserstein part of a plan."""

    weight: float = 0.3  # against the costs of the frames themselves
    radius: float = 0.02  # of a neighbourhood, as a fraction of the frames; never less than one frame
    steps: int = 5  # linearisations of the quadratic cost


class Virtual(NamedTuple):
    """What it costs to leave a frame without counterpart, and the share of frames that may be left."""

    cost: float = 0.5
    share: float = 0.2


def sinkhorn(log_kernel: Tensor, log_rows: Tensor, log_columns: Tensor, *, iterations: int = 20) -> Tensor:
    """Return the log of the plan (..., N, M) with the mass of each row and, nearly, of each column.

    Args:
        log_kernel: minus the costs over the regularisation, (..., N, M).
        log_rows: log of the mass of each row, (N,).
        log_columns: log of the mass of each column, (M,).
        iterations: of columns and rows in turn, rows last.
    """
    has_gradient = log_kernel.requires_grad and torch.is_grad_enabled()
    if not has_gradient and (kernels := _find_kernels(log_kernel, MAX_CELLS)) is not None:
        return _run(kernels, log_kernel, log_rows, log_columns, iterations)
    log_plan = log_kernel
    for _ in range(iterations):
        log_plan = log_plan.log_softmax(dim=-2) + log_columns
        log_plan = log_plan.log_softmax(dim=-1) + log_rows[:, None]
    return log_plan


@torch.no_grad()
def transport_plan(
    costs: Tensor,
    *,
    regularization: float = 0.07,
    iterations: int = 20,
    log_prior: Tensor | None = None,
    virtual: Virtual | None = None,
    structure: Structure | None = None,
) -> Tensor:
    """Return the plan T (P, N, M) of the real frames; a row sums to 1 / N less what the virtual frame takes.

    Args:
        costs: (P, N, M).
        regularization: weight of the entropy; the smaller, the sharper the plan.
        iterations: of Sinkhorn, for each linearisation.
        log_prior: (P, N, M), added to the log of the kernel.
        virtual: the virtual frame; None matches every frame.
        structure: the Gromov-Wasserstein part; None has only the costs of the frames.
    """
    check_positive("regularization", regularization)
    rows, columns = costs.shape[-2:]
    log_rows, log_columns = (costs.new_full((size,), -math.log(size)) for size in (rows, columns))
    log_kernel = costs / -regularization
    log_kernel = log_kernel if log_prior is None else log_kernel + log_prior
    if virtual is not None:
        share, price = math.log(virtual.share), virtual.cost / regularization
        log_rows, log_columns = F.pad(log_rows, (0, 1), value=share), F.pad(log_columns, (0, 1), value=share)
        log_kernel = F.pad(log_kernel, (0, 1, 0, 1), value=-price)
        log_kernel[:, -1:, -1:] = 0.0  # what nobody needs costs nothing

    if structure is None:
        log_plan = sinkhorn(log_kernel, log_rows, log_columns, iterations=iterations)
    else:
        scaled = structure._replace(weight=structure.weight / regularization)
        log_plan = _structured(log_kernel, costs, log_rows, log_columns, iterations, scaled)
    return log_plan[:, :rows, :columns].exp()


def _structured(
    log_kernel: Tensor,
    costs: Tensor,
    log_rows: Tensor,
    log_columns: Tensor,
    iterations: int,
    structure: Structure,
) -> Tensor:
    """Return the log of the plan (P, N', M') whose kernel follows the neighbours in the plan before it.

    `log_kernel` may have a virtual frame, `costs` (P, N, M) have none. The weight of the structure is divided
    by the regularisation already.
    """
    kernels = _find_kernels(log_kernel, MAX_STRUCTURED_CELLS)
    if kernels is not None and log_kernel.dtype == torch.float32:
        return _run(kernels, log_kernel, log_rows, log_columns, iterations, costs, structure)
    rows, columns = costs.shape[-2:]
    log_plan = sinkhorn(log_kernel, log_rows, log_columns, iterations=iterations)
    neighbours = _Neighbours.of(costs, structure.radius)
    for _ in range(structure.steps):
        gained = costs - neighbours.costs(log_plan[:, :rows, :columns].exp())
        mixed = log_kernel.clone()
        mixed[:, :rows, :columns].add_(gained, alpha=structure.weight)
        log_plan = sinkhorn(mixed, log_rows, log_columns, iterations=iterations)
    return log_plan


def _find_kernels(log_kernel: Tensor, most_cells: int) -> Any:
    """Return the Triton kernels for tables (P, N, M) on a GPU of at most so many cells, or None."""
    is_fit = log_kernel.is_cuda and log_kernel.ndim == 3 and log_kernel.numel() < MAX_KERNEL_CELLS
    is_fit = is_fit and math.prod(_padded(log_kernel)) <= most_cells
    return _kernels() if is_fit and not torch.compiler.is_compiling() else None


@cache
def _kernels() -> Any:
    purpose = "the Triton kernel for optimal transport"
    return load_kernels("cycleback.losses._triton_kernels", _try_out, purpose=purpose)


def _try_out(kernels: Any) -> None:
    tiny, mass = torch.zeros(1, 2, 2, device="cuda"), torch.zeros(2, device="cuda")
    _run(kernels, tiny, mass, mass, 1)
    _run(kernels, tiny, mass, mass, 1, tiny, Structure(steps=1))


def _padded(tables: Tensor) -> tuple[int, int]:
    """Return the powers of two that rows and columns of tables (P, N, M) fit into."""
    rows, columns = (max(16, 1 << (size - 1).bit_length()) for size in tables.shape[-2:])
    return rows, columns


def _run(
    kernels: Any,
    log_kernel: Tensor,
    log_rows: Tensor,
    log_columns: Tensor,
    iterations: int,
    costs: Tensor | None = None,
    structure: Structure | None = None,
) -> Tensor:
    """Find all plans (P, N, M) by one kernel, with the structure if there is one."""
    log_plan = torch.empty_like(log_kernel, memory_format=torch.contiguous_format)
    costs = log_kernel if costs is None else costs
    weight, radius, steps = structure or Structure(0.0, 0.0, 0)
    rows, columns = _padded(log_kernel)
    with torch.cuda.device(log_kernel.get_device()):
        kernels.transport[(len(log_kernel),)](
            log_kernel.contiguous(),
            costs.contiguous(),
            log_plan,
            log_rows.contiguous(),
            log_columns.contiguous(),
            *log_kernel.shape[1:],
            *costs.shape[1:],
            iterations,
            steps,
            weight,
            *(neighbourhood(size, radius) for size in costs.shape[1:]),
            has_structure=structure is not None,
            padded_rows=rows,
            padded_columns=columns,
            num_warps=4 if structure is not None else min(16, max(1, rows * columns // 1024)),
        )
    return log_plan


def structure_costs(plan: Tensor, *, radius: float) -> Tensor:
    """Return the Gromov-Wasserstein costs (P, N, M), in [0, 1], of matches beside a plan (P, N, M).

    The cost of matching i with j is the share of the neighbours of i that the plan matches with frames that
    are no neighbours of j, and the same seen from j, in equal parts.
    """
    return _Neighbours.of(plan, radius).costs(plan)


def neighbourhood(count: int, radius: float) -> int:
    """Return the radius in frames: a fraction of `count`, and at least one frame."""
    return max(1, round(count * radius))


def _near(count: int, radius: float, like: Tensor) -> Tensor:
    """Return (count, count): 1 for frames at most `radius` apart, which includes the frame itself."""
    place = torch.arange(count, device=like.device)
    return ((place[:, None] - place).abs() <= neighbourhood(count, radius)).to(like)


def _mean_weights(near: Tensor) -> Tensor:
    """Return weights (N, N) that average over the neighbours of a frame, without itself."""
    others = near - torch.eye(len(near), device=near.device, dtype=near.dtype)
    return others / others.sum(dim=-1, keepdim=True).clamp_min(1)


class _Neighbours(NamedTuple):
    """Which frames of two videos are neighbours, as matrices that a plan is multiplied with."""

    mean_rows: Tensor  # (N, N), times N / 2
    far_columns: Tensor  # (M, M)
    far_rows: Tensor  # (N, N)
    mean_columns: Tensor  # (M, M), times M / 2

    @classmethod
    def of(cls, plan: Tensor, radius: float) -> "_Neighbours":
        """Return those of plans (P, N, M)."""
        rows, columns = plan.shape[-2:]
        near_rows = _near(rows, radius, plan)
        near_columns = near_rows if rows == columns else _near(columns, radius, plan)
        of_rows, of_columns = _mean_weights(near_rows), _mean_weights(near_columns).mT
        return cls(of_rows * (rows / 2), 1 - near_columns, 1 - near_rows, of_columns * (columns / 2))

    def costs(self, plan: Tensor) -> Tensor:
        """Return the costs of `structure_costs`."""
        of_rows = self.mean_rows @ plan @ self.far_columns
        return of_rows + self.far_rows @ plan @ self.mean_columns
