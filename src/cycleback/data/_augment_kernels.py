"""Triton kernels that augment frames in one read; `augment_on_gpu` calls them. Needs Triton.

Each program handles one frame, or a piece of one. A row of `draws` holds side, top and left of the crop,
flip, brightness, contrast, hue and saturation.
Shapes: n frames (n, H, W, 3) uint8, draws (B, 8), means (n, 3), output (n, H, W, 3) float32.
"""

# mypy: disable-error-code="no-untyped-def, untyped-decorator"

import triton
import triton.language as tl


@triton.jit
def load_pixel(frame, place, colour):
    """Load one channel of the pixel at `place`, in [0, 1]."""
    return tl.load(frame + place * 3 + colour).to(tl.float32) / 255


@triton.jit
def sample(frame, draw, y, x, colour, height, width, has_crop: tl.constexpr):
    """Sample one channel at y, x of the cropped and flipped frame."""
    x = tl.where(tl.load(draw + 3) > 0, width - 1 - x, x)
    if has_crop:
        side, top, left = tl.load(draw), tl.load(draw + 1), tl.load(draw + 2)
        down = (top + side * ((y.to(tl.float32) + 0.5) / height)) * height - 0.5
        right = (left + side * ((x.to(tl.float32) + 0.5) / width)) * width - 0.5
        down = tl.minimum(tl.maximum(down, 0.0), height - 1.0)
        right = tl.minimum(tl.maximum(right, 0.0), width - 1.0)
        y0, x0 = tl.floor(down).to(tl.int32), tl.floor(right).to(tl.int32)
        y1, x1 = tl.minimum(y0 + 1, height - 1), tl.minimum(x0 + 1, width - 1)
        below, beside = down - y0.to(tl.float32), right - x0.to(tl.float32)
        upper = load_pixel(frame, y0 * width + x0, colour) * (1 - beside)
        upper += load_pixel(frame, y0 * width + x1, colour) * beside
        lower = load_pixel(frame, y1 * width + x0, colour) * (1 - beside)
        lower += load_pixel(frame, y1 * width + x1, colour) * beside
        value = upper * (1 - below) + lower * below
    else:
        value = load_pixel(frame, y * width + x, colour)
    return value


@triton.jit
def average_frame(
    frames, draws, means, frames_per_clip, height, width, has_crop: tl.constexpr, pixels: tl.constexpr
):
    """Average each channel of a frame after the crop; contrast scales about this mean."""
    number = tl.program_id(0)
    frame, draw = frames + number * height * width * 3, draws + number // frames_per_clip * 8
    for colour in tl.static_range(3):
        total = tl.zeros((pixels,), tl.float32)
        for start in range(0, height * width, pixels):
            place = start + tl.arange(0, pixels)
            is_inside = place < height * width
            place = tl.minimum(place, height * width - 1)
            value = sample(frame, draw, place // width, place % width, colour, height, width, has_crop)
            total += tl.where(is_inside, value, 0.0)
        tl.store(means + number * 3 + colour, tl.sum(total) / (height * width))


@triton.jit
def adjust_light(value, mean, draw, has_contrast: tl.constexpr):
    """Apply contrast and brightness, clipped; see `augmentation.adjust_light`."""
    if has_contrast:
        factor = tl.load(draw + 5)
        value = factor * value + (1 - factor) * tl.load(mean)
    return tl.minimum(tl.maximum(value + tl.load(draw + 4), 0.0), 1.0)


@triton.jit
def mix_channel(shift, hue, value, chroma):
    """Return one channel from hue (on a circle of 6), value and chroma; see `augmentation.hsv_to_rgb`."""
    k = shift + hue
    k = k - 6 * tl.floor(k / 6)
    return value - chroma * tl.minimum(tl.maximum(tl.minimum(k, 4 - k), 0.0), 1.0)


@triton.jit
def augment_frame(
    frames,
    draws,
    means,
    output,
    frames_per_clip,
    height,
    width,
    has_crop: tl.constexpr,
    has_contrast: tl.constexpr,
    has_colour: tl.constexpr,
    pixels: tl.constexpr,
):
    """Apply all operations to one piece of a frame."""
    number = tl.program_id(0)
    frame, draw = frames + number * height * width * 3, draws + number // frames_per_clip * 8
    mean = means + number * 3
    place = tl.program_id(1) * pixels + tl.arange(0, pixels)
    is_inside = place < height * width
    safe = tl.minimum(place, height * width - 1)
    y, x = safe // width, safe % width
    red = adjust_light(sample(frame, draw, y, x, 0, height, width, has_crop), mean, draw, has_contrast)
    green = adjust_light(sample(frame, draw, y, x, 1, height, width, has_crop), mean + 1, draw, has_contrast)
    blue = adjust_light(sample(frame, draw, y, x, 2, height, width, has_crop), mean + 2, draw, has_contrast)
    if has_colour:
        value = tl.maximum(tl.maximum(red, green), blue)
        span = value - tl.minimum(tl.minimum(red, green), blue)
        safe_span = tl.where(span > 0, span, 1.0)
        sector = tl.where(green == value, 2 + (blue - red) / safe_span, 4 + (red - green) / safe_span)
        sector = tl.where(red == value, (green - blue) / safe_span, sector)
        hue = tl.where(span > 0, sector, 0.0) + 6 * tl.load(draw + 6)
        strength = span / tl.where(value > 0, value, 1.0) * tl.load(draw + 7)
        chroma = value * tl.minimum(tl.maximum(strength, 0.0), 1.0)
        red = mix_channel(5, hue, value, chroma)
        green = mix_channel(3, hue, value, chroma)
        blue = mix_channel(1, hue, value, chroma)
    target = output + (number * height * width + place) * 3
    tl.store(target, red, mask=is_inside)
    tl.store(target + 1, green, mask=is_inside)
    tl.store(target + 2, blue, mask=is_inside)
