"""Triton kernels of `soft_dtw` and `transport`. This module needs Triton; only these two import it.

Each program works on one pair of videos from start to end, so a table takes one launch and not one per step.
Shapes as in `soft_dtw.py`: P pairs, N and M frames, K = N + M - 1 anti-diagonals.
"""

# mypy: disable-error-code="no-untyped-def, untyped-decorator"

import triton
import triton.language as tl


@triton.jit
def fill(costs, found, count, pairs, rows, is_mean: tl.constexpr, lanes: tl.constexpr):
    """Write the anti-diagonals `found` (K + 2, P, N + 1) from those of the costs (K, P, N)."""
    lane, pair = tl.arange(0, lanes), tl.program_id(0)
    is_row = lane < rows
    for k in range(count):
        before = found + (k * pairs + pair) * (rows + 1) + lane
        last = before + pairs * (rows + 1)
        diagonal = tl.load(before, mask=is_row, other=0.0)
        above = tl.load(last, mask=is_row, other=0.0)
        left = tl.load(last + 1, mask=is_row, other=0.0)
        largest = tl.maximum(tl.maximum(above, left), diagonal)
        of_diagonal, of_above = tl.exp(diagonal - largest), tl.exp(above - largest)
        of_left = tl.exp(left - largest)
        total = of_diagonal + of_above + of_left
        if is_mean:
            least = (of_diagonal * diagonal + of_above * above + of_left * left) / total
        else:
            least = largest + tl.log(total)
        cost = tl.load(costs + (k * pairs + pair) * rows + lane, mask=is_row, other=0.0)
        tl.store(last + pairs * (rows + 1) + 1, least - cost, mask=is_row)
        tl.debug_barrier()  # the next anti-diagonal reads what other threads wrote


@triton.jit
def walk_back(total, diagonal, above, left, count, pairs, rows, lanes: tl.constexpr):
    """Add to each cell of `total` (K, P, N) its share of the cells that follow; shares are (K, P, N)."""
    lane, pair = tl.arange(0, lanes), tl.program_id(0)
    is_row, has_below = lane < rows, lane + 1 < rows
    for step in range(1, count):
        here = ((count - 1 - step) * pairs + pair) * rows + lane
        after = here + pairs * rows
        second = after + pairs * rows
        has_second = has_below & (step > 1)
        value = tl.load(total + here, mask=is_row, other=0.0)
        value += tl.load(total + after, mask=is_row, other=0.0) * tl.load(
            left + after, mask=is_row, other=0.0
        )
        value += tl.load(total + after + 1, mask=has_below, other=0.0) * tl.load(
            above + after + 1, mask=has_below, other=0.0
        )
        value += tl.load(total + second + 1, mask=has_second, other=0.0) * tl.load(
            diagonal + second + 1, mask=has_second, other=0.0
        )
        tl.store(total + here, value, mask=is_row)
        tl.debug_barrier()


@triton.jit
def _balance(log_plan, log_rows, log_columns, is_row, is_column, iterations):
    """Give columns and rows in turn their mass, rows last."""
    for _ in range(iterations):
        largest = tl.where(is_column, tl.max(log_plan, axis=0), 0.0)
        total = tl.where(is_column, tl.sum(tl.exp(log_plan - largest[None, :]), axis=0), 1.0)
        log_plan += (log_columns - largest - tl.log(total))[None, :]
        largest = tl.where(is_row, tl.max(log_plan, axis=1), 0.0)
        total = tl.where(is_row, tl.sum(tl.exp(log_plan - largest[:, None]), axis=1), 1.0)
        log_plan += (log_rows - largest - tl.log(total))[:, None]
    return log_plan


@triton.jit
def transport(
    log_kernel,
    costs,
    log_plan,
    log_rows,
    log_columns,
    rows,
    columns,
    real_rows,
    real_columns,
    iterations,
    steps,
    weight,
    radius_rows,
    radius_columns,
    has_structure: tl.constexpr,
    padded_rows: tl.constexpr,
    padded_columns: tl.constexpr,
):
    """Write the log of the plan (P, N, M) of a kernel (P, N, M).

    With `has_structure`, the plan is improved `steps` times by its Gromov-Wasserstein costs, times `weight`;
    the kernel then has the virtual frame, and the costs (P, real N, real M) have none.
    """
    row, column = tl.arange(0, padded_rows), tl.arange(0, padded_columns)
    is_row, is_column = row < rows, column < columns
    is_inside = is_row[:, None] & is_column[None, :]
    place = tl.program_id(0) * rows * columns + row[:, None] * columns + column[None, :]
    kernel = tl.load(log_kernel + place, mask=is_inside, other=float("-inf"))
    of_rows = tl.load(log_rows + row, mask=is_row, other=0.0)
    of_columns = tl.load(log_columns + column, mask=is_column, other=0.0)
    plan = _balance(kernel, of_rows, of_columns, is_row, is_column, iterations)
    if has_structure:
        is_real = (row < real_rows)[:, None] & (column < real_columns)[None, :]
        real = tl.program_id(0) * real_rows * real_columns + row[:, None] * real_columns + column[None, :]
        cost = tl.load(costs + real, mask=is_real, other=0.0)
        apart_rows = tl.abs(row[:, None] - row[None, :])
        apart_columns = tl.abs(column[:, None] - column[None, :])
        far_rows = (apart_rows > radius_rows).to(kernel.dtype)
        far_columns = (apart_columns > radius_columns).to(kernel.dtype)
        beside_rows = (apart_rows > 0) & (apart_rows <= radius_rows) & (row < real_rows)[None, :]
        beside_columns = (apart_columns > 0) & (apart_columns <= radius_columns)
        beside_columns = beside_columns & (column < real_columns)[:, None]
        mean_rows, mean_columns = beside_rows.to(kernel.dtype), beside_columns.to(kernel.dtype)
        mean_rows *= (0.5 * real_rows / tl.maximum(tl.sum(mean_rows, axis=1), 1.0))[:, None]
        mean_columns *= (0.5 * real_columns / tl.maximum(tl.sum(mean_columns, axis=0), 1.0))[None, :]
        for _ in range(steps):
            found = tl.where(is_real, tl.exp(plan), 0.0)
            apart = tl.dot(
                tl.dot(mean_rows, found, input_precision="ieee"), far_columns, input_precision="ieee"
            )
            apart += tl.dot(
                tl.dot(far_rows, found, input_precision="ieee"), mean_columns, input_precision="ieee"
            )
            mixed = kernel + tl.where(is_real, weight * (cost - apart), 0.0)
            plan = _balance(mixed, of_rows, of_columns, is_row, is_column, iterations)
    tl.store(log_plan + place, plan, mask=is_inside)
