"""Turn and strengthen colours of whole batches, without a loop and without leaving the device.

Letters: B clips, H W pixels, ... frames of a clip.
"""

import torch
from torch import Tensor


def shift_colour(frames: Tensor, *, hue: Tensor | None = None, saturation: Tensor | None = None) -> Tensor:
    """Turn the hue by `hue` circles and multiply the saturation by `saturation`, both (B,), one value a clip.

    Args:
        frames: float (B, ..., 3, H, W) in [0, 1], RGB.
        hue: (B,) in circles; None leaves it.
        saturation: (B,) factors; the product is clipped to [0, 1]. None leaves it.
    """
    h, s, v = rgb_to_hsv(frames)
    shape = (-1, *[1] * (h.ndim - 1))
    if hue is not None:
        h = (h + hue.to(h).reshape(shape)) % 1.0
    if saturation is not None:
        s = (s * saturation.to(s).reshape(shape)).clamp(0, 1)
    return hsv_to_rgb(h, s, v)


def rgb_to_hsv(frames: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Hue, saturation and value, each (..., H, W) in [0, 1], of RGB frames (..., 3, H, W) in [0, 1]."""
    red, green, blue = frames.unbind(-3)
    value, strongest = frames.max(dim=-3)
    span = value - frames.amin(dim=-3)
    safe = torch.where(span > 0, span, torch.ones_like(span))  # grey has no hue: 0
    sector = torch.stack([(green - blue) / safe, 2 + (blue - red) / safe, 4 + (red - green) / safe], dim=-3)
    hue = sector.gather(-3, strongest.unsqueeze(-3)).squeeze(-3) / 6 % 1.0
    saturation = span / torch.where(value > 0, value, torch.ones_like(value))
    return torch.where(span > 0, hue, torch.zeros_like(hue)), saturation, value


def hsv_to_rgb(hue: Tensor, saturation: Tensor, value: Tensor) -> Tensor:
    """RGB (..., 3, H, W) in [0, 1] of hue, saturation and value (..., H, W).

    Channel n (red 5, green 3, blue 1) is v - v·s·max(0, min(k, 4 - k, 1)) with k = (n + 6·hue) mod 6.
    """
    chroma = value * saturation
    channels = []
    for shift in (5, 3, 1):
        k = (shift + 6 * hue) % 6
        channels.append(value - chroma * torch.minimum(k, 4 - k).clamp(0, 1))
    return torch.stack(channels, dim=-3)
