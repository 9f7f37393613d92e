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
def sinkhorn(
    log_kernel,
    log_plan,
    log_rows,
    log_columns,
    rows,
    columns,
    iterations,
    padded_rows: tl.constexpr,
    padded_columns: tl.constexpr,
):
    """Write the log of the plan (P, N, M): columns and rows in turn take their mass, rows last."""
    row, column = tl.arange(0, padded_rows), tl.arange(0, padded_columns)
    is_inside = (row < rows)[:, None] & (column < columns)[None, :]
    place = tl.program_id(0) * rows * columns + row[:, None] * columns + column[None, :]
    plan = tl.load(log_kernel + place, mask=is_inside, other=float("-inf"))
    of_rows = tl.load(log_rows + row, mask=row < rows, other=0.0)
    of_columns = tl.load(log_columns + column, mask=column < columns, other=0.0)
    for _ in range(iterations):
        largest = tl.max(plan, axis=0)
        largest = tl.where(column < columns, largest, 0.0)
        total = tl.where(column < columns, tl.sum(tl.exp(plan - largest[None, :]), axis=0), 1.0)
        plan += (of_columns - largest - tl.log(total))[None, :]
        largest = tl.max(plan, axis=1)
        largest = tl.where(row < rows, largest, 0.0)
        total = tl.where(row < rows, tl.sum(tl.exp(plan - largest[:, None]), axis=1), 1.0)
        plan += (of_rows - largest - tl.log(total))[:, None]
    tl.store(log_plan + place, plan, mask=is_inside)
