"""Random changes of the picture while training: one draw a clip, the same for all its frames.

The paper's: horizontal flip, brightness, contrast. Off unless asked for: hue, saturation, random crop, noise.

Letters: B clips, H W pixels; ... the frames of a clip, such as T sampled frames and C context frames.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, Self

import torch
import torch.nn.functional as F
from torch import Tensor

from cycleback.data.colour import shift_colour


@dataclass(frozen=True)
class AugmentSettings:
    """What is drawn for each clip; the defaults are the paper's.

    Attributes:
        enabled: False leaves frames as they are.
        flip: probability of mirroring left and right. Set 0 where the side matters (a text, a machine).
        brightness: largest value added to or taken from all pixels, of a range of 1.
        contrast: range of the factor about the mean of each frame and channel; (1, 1) is off.
        hue: largest turn of the colours, of a full circle of 1; 0 is off, usual is 0.2.
        saturation: range of the factor of the colours' strength; (1, 1) is off, usual is (0.5, 1.5).
        crop: range of the side of a random crop as a part of the frame's; (1, 1) is off, usual is (0.8, 1).
        noise: standard deviation of Gaussian noise, one pattern a clip; 0 is off.
    """

    enabled: bool = True
    flip: float = 0.5
    brightness: float = 32 / 255
    contrast: tuple[float, float] = (0.5, 1.5)
    hue: float = 0.0
    saturation: tuple[float, float] = (1.0, 1.0)
    crop: tuple[float, float] = (1.0, 1.0)
    noise: float = 0.0

    def __post_init__(self) -> None:
        for name, high in (("flip", 1.0), ("brightness", 1.0), ("hue", 0.5), ("noise", 1.0)):
            value = getattr(self, name)
            if not 0 <= value <= high:
                raise ValueError(f"augment.{name} must be in [0, {high:g}], got {value!r}")
        for name, most in (("contrast", float("inf")), ("saturation", float("inf")), ("crop", 1.0)):
            low, high = getattr(self, name)
            if not 0 <= low <= high <= most or high == 0:
                raise ValueError(
                    f"augment.{name} must be a range low <= high from 0 to {most:g}, got {(low, high)!r}"
                )


@dataclass(frozen=True)
class Augmentation:
    """One draw for each of B clips; None where an operation is off.

    Attributes:
        flip: bool (B,).
        brightness: (B,) added.
        contrast: (B,) factor.
        hue: (B,) turn in circles.
        saturation: (B,) factor.
        crop: (B, 3): side, and top and left, as parts of the frame.
        noise: (B,) standard deviation.
        noise_seed: seed of the pattern of the noise.
    """

    flip: Tensor | None = None
    brightness: Tensor | None = None
    contrast: Tensor | None = None
    hue: Tensor | None = None
    saturation: Tensor | None = None
    crop: Tensor | None = None
    noise: Tensor | None = None
    noise_seed: int = 0

    @property
    def tensors(self) -> dict[str, Tensor]:
        """What was drawn, by operation."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in values.items() if isinstance(value, Tensor)}

    def map(self, change: Callable[[Tensor], Tensor]) -> Self:
        """The same draw with every tensor changed: moved, copied, or some of its clips taken."""
        changed: dict[str, Any] = {name: change(value) for name, value in self.tensors.items()}
        return replace(self, **changed)

    @property
    def is_identity(self) -> bool:
        """Whether every operation is off."""
        return not self.tensors


def draw_augmentation(batch: int, *, settings: AugmentSettings, generator: torch.Generator) -> Augmentation:
    """Draw for `batch` clips. Turning one operation on or off leaves the draws of the others as they were."""
    u = torch.rand(batch, 8, generator=generator)  # uniform in [0, 1), a column an operation
    noise_seed = int(torch.randint(2**62, (1,), generator=generator))
    if not settings.enabled:
        return Augmentation()
    crop_side = _uniform(u[:, 5], settings.crop)
    corner = u[:, 6:8] * (1 - crop_side[:, None])  # (B, 2) top, left
    return Augmentation(
        flip=u[:, 0] < settings.flip if settings.flip else None,
        brightness=_symmetric(u[:, 1], settings.brightness),
        contrast=_uniform(u[:, 2], settings.contrast) if settings.contrast != (1, 1) else None,
        hue=_symmetric(u[:, 3], settings.hue),
        saturation=_uniform(u[:, 4], settings.saturation) if settings.saturation != (1, 1) else None,
        crop=torch.cat([crop_side[:, None], corner], dim=1) if settings.crop != (1, 1) else None,
        noise=torch.full((batch,), settings.noise) if settings.noise else None,
        noise_seed=noise_seed,
    )


def _uniform(u: Tensor, bounds: tuple[float, float]) -> Tensor:
    return bounds[0] + (bounds[1] - bounds[0]) * u


def _symmetric(u: Tensor, most: float) -> Tensor | None:
    return _uniform(u, (-most, most)) if most else None


def augment(frames: Tensor, augmentation: Augmentation) -> Tensor:
    """Apply one draw a clip to all frames of the clip, on the device of the frames.

    The order is the reference program's: crop, flip, brightness, contrast, hue, saturation, then clipping to
    [0, 1]. Noise comes before the clipping. Hue and saturation only exist in [0, 1], so it clips before them.

    Args:
        frames: float (B, ..., 3, H, W) in [0, 1].
        augmentation: from `draw_augmentation(B)`.

    Returns:
        Frames of the same shape and dtype in [0, 1]; `frames` itself when every operation is off.
    """
    _check(frames, augmentation)
    if augmentation.is_identity:
        return frames
    if augmentation.crop is not None:
        frames = crop_and_resize(frames, augmentation.crop)
    if augmentation.flip is not None:
        frames = torch.where(_column(augmentation.flip, frames), frames.flip(-1), frames)
    frames = adjust_light(frames, brightness=augmentation.brightness, contrast=augmentation.contrast)
    if augmentation.hue is not None or augmentation.saturation is not None:
        frames = shift_colour(frames.clamp(0, 1), hue=augmentation.hue, saturation=augmentation.saturation)
    if augmentation.noise is not None:
        frames = frames + _column(augmentation.noise, frames) * _noise(frames, augmentation.noise_seed)
    return frames.clamp_(0, 1)  # in place: by now these are not the caller's frames


def crop_and_resize(frames: Tensor, crop: Tensor) -> Tensor:
    """Cut a box out of all frames of a clip and resize it, bilinearly, to the size of the frame.

    Args:
        frames: (B, ..., 3, H, W).
        crop: (B, 3): side, top and left of the box as parts of the frame, whose proportions it has.
    """
    height, width = frames.shape[-2:]
    crop = crop.to(device=frames.device, dtype=frames.dtype)
    rows = _box_grid(crop[:, 0], crop[:, 1], height)  # (B, H)
    columns = _box_grid(crop[:, 0], crop[:, 2], width)  # (B, W)
    grid = torch.stack(
        [columns[:, None, :].expand(-1, height, -1), rows[:, :, None].expand(-1, -1, width)], dim=-1
    )  # (B, H, W, 2) as x, y
    stacked = frames.reshape(
        len(frames), -1, height, width
    )  # all frames and channels of a clip share its grid
    resized = F.grid_sample(stacked, grid, mode="bilinear", padding_mode="border", align_corners=False)
    return resized.reshape(frames.shape)


def _box_grid(side: Tensor, start: Tensor, pixels: int) -> Tensor:
    """Centres (B, pixels) of the box's pixels, where -1 and 1 are the edges of the frame."""
    centres = (torch.arange(pixels, device=side.device, dtype=side.dtype) + 0.5) / pixels
    return 2 * (start[:, None] + side[:, None] * centres) - 1


def adjust_light(frames: Tensor, *, brightness: Tensor | None, contrast: Tensor | None) -> Tensor:
    """Add `brightness` (B,), then scale by `contrast` (B,) about the mean of each frame and channel.

    Both in one go: c·(x + b - mean(x + b)) + mean(x + b) = c·x + (1 - c)·mean(x) + b.
    """
    if contrast is None:
        return frames if brightness is None else frames + _column(brightness, frames)
    factor = _column(contrast, frames)
    offset = (1 - factor) * frames.mean(dim=(-2, -1), keepdim=True)  # (B, ..., 3, 1, 1)
    if brightness is not None:
        offset = offset + _column(brightness, frames)
    return torch.addcmul(offset, factor, frames)


def _noise(frames: Tensor, seed: int) -> Tensor:
    """Standard normal numbers, one picture (3, H, W) a clip, which broadcast against `frames`."""
    generator = torch.Generator(frames.device).manual_seed(seed)
    batch, pixels = frames.shape[0], frames.shape[-3:]
    noise = torch.randn(batch, *pixels, generator=generator, device=frames.device, dtype=frames.dtype)
    return noise.reshape(batch, *[1] * (frames.ndim - 4), *pixels)


def _column(values: Tensor, frames: Tensor) -> Tensor:
    """`values` (B,) on the device and with the rank of `frames`: (B, 1, ..., 1)."""
    dtype = values.dtype if values.dtype == torch.bool else frames.dtype
    return values.to(device=frames.device, dtype=dtype).reshape(-1, *[1] * (frames.ndim - 1))


def _check(frames: Tensor, augmentation: Augmentation) -> None:
    if frames.ndim < 4 or frames.shape[-3] != 3 or not frames.is_floating_point():
        raise ValueError(f"frames must be float (B, ..., 3, H, W), got {frames.dtype} {tuple(frames.shape)}")
    for values in augmentation.tensors.values():
        if len(values) != len(frames):
            raise ValueError(f"the augmentation is drawn for {len(values)} clips, frames hold {len(frames)}")
