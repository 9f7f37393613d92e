"""Triton kernels of `ops`. This module needs Triton; only `ops` imports it.

Feature maps lie in memory as (N, h, w, O), channels last.
"""

# mypy: disable-error-code="no-untyped-def, untyped-decorator"

import triton
import triton.language as tl


@triton.jit
def max_pool(source, target, height, width, rows, columns, channels: tl.constexpr, places: tl.constexpr):
    """Write the maxima of 3x3 windows of stride 2 for `places` outputs of one row."""
    image, row = tl.program_id(0) // rows, tl.program_id(0) % rows
    column = tl.program_id(1) * places + tl.arange(0, places)
    channel = tl.arange(0, channels)
    largest = tl.full((places, channels), float("-inf"), tl.float32)
    for down in tl.static_range(3):
        y = 2 * row - 1 + down
        for right in tl.static_range(3):
            x = 2 * column - 1 + right
            is_inside = (y >= 0) & (y < height) & (x >= 0) & (x < width) & (column < columns)
            place = source + ((image * height + y) * width + x)[:, None] * channels + channel[None, :]
            values = tl.load(place, mask=is_inside[:, None], other=float("-inf"))
            largest = tl.maximum(largest, values.to(tl.float32))
    place = target + ((image * rows + row) * columns + column)[:, None] * channels + channel[None, :]
    tl.store(place, largest.to(target.dtype.element_ty), mask=(column < columns)[:, None])


@triton.jit
def relu_backward(
    gradient,
    output,
    before_relu,
    sums,
    places,
    channels,
    rows: tl.constexpr,
    columns: tl.constexpr,
    steps: tl.constexpr,
):
    """Write the gradient where the output is above 0, and its sums over `steps` times `rows` positions."""
    channel = tl.program_id(1) * columns + tl.arange(0, columns)
    total = tl.zeros((columns,), tl.float32)
    for step in range(steps):
        place = (tl.program_id(0) * steps + step) * rows + tl.arange(0, rows)
        at = place[:, None].to(tl.int64) * channels + channel[None, :]
        is_inside = (place < places)[:, None] & (channel < channels)[None, :]
        is_open = tl.load(output + at, mask=is_inside, other=0.0) > 0
        value = tl.where(is_open, tl.load(gradient + at, mask=is_inside, other=0.0), 0.0)
        tl.store(before_relu + at, value, mask=is_inside)
        total += tl.sum(value.to(tl.float32), axis=0)
    tl.store(sums + tl.program_id(0) * channels + channel, total, mask=channel < channels)
