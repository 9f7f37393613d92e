"""Random augmentation of training frames: one draw per clip, the same for all its frames.

The paper uses horizontal flip, brightness and contrast. Hue, saturation, random crop and noise are off by
default. `augment` is plain torch; `augment_on_gpu` gives the same result with a Triton kernel.

Letters: B clips, H W pixels; ... the frames of a clip, such as T sampled frames and C context frames.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import cache
from typing import Annotated, Any, Self

import torch
import torch.nn.functional as F
from torch import Tensor

from cycleback.compilation import load_kernels
from cycleback.ranges import Factor, Range, Share

PIXELS_PER_PROGRAM = 1024
# first column of each operation in the table of draws that the kernel reads
COLUMNS = {"crop": 0, "flip": 3, "brightness": 4, "contrast": 5, "hue": 6, "saturation": 7}


@dataclass(frozen=True)
class AugmentSettings:
    """Ranges to draw from for each clip; the defaults are the paper's. A range (1, 1) is off, and so is 0."""

    enabled: bool = True  # False leaves frames unchanged
    flip: Share = 0.5  # probability of a horizontal flip; set 0 if the side matters (text, a machine)
    brightness: Share = 32 / 255  # largest value added to or subtracted from all pixels, which are in [0, 1]
    contrast: tuple[Factor, Factor] = (0.5, 1.5)  # of the factor about the mean of each frame and channel
    hue: Annotated[float, Range(0, 0.5)] = 0.0  # largest shift, in turns of the colour circle; 0.2 is common
    saturation: tuple[Factor, Factor] = (1.0, 1.0)  # range of the factor; (0.5, 1.5) is common
    crop: tuple[Share, Share] = (1.0, 1.0)  # range of the side of a random crop, as a fraction of the frame
    noise: Share = 0.0  # standard deviation of Gaussian noise, one pattern per clip

    def __post_init__(self) -> None:
        for name, high in (("flip", 1.0), ("brightness", 1.0), ("hue", 0.5), ("noise", 1.0)):
            value = getattr(self, name)
            if not 0 <= value <= high:
                raise ValueError(f"augment.{name} must be in [0, {high:g}], got {value!r}")
        for name, limit in (("contrast", float("inf")), ("saturation", float("inf")), ("crop", 1.0)):
            low, high = getattr(self, name)
            if not 0 <= low <= high <= limit or high == 0:
                raise ValueError(
                    f"augment.{name} must be a range low <= high from 0 to {limit:g}, got {(low, high)!r}"
                )


@dataclass(frozen=True)
class Augmentation:
    """One draw for each of B clips; None if an operation is off."""

    flip: Tensor | None = None  # bool (B,)
    brightness: Tensor | None = None  # (B,) added
    contrast: Tensor | None = None  # (B,) factor
    hue: Tensor | None = None  # (B,) shift, as a fraction of the colour circle
    saturation: Tensor | None = None  # (B,) factor
    crop: Tensor | None = None  # (B, 3) side, top and left, as fractions of the frame
    noise: Tensor | None = None  # (B,) standard deviation
    noise_seed: int = 0  # of the noise pattern

    @property
    def tensors(self) -> dict[str, Tensor]:
        """The drawn values of each operation that is on."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in values.items() if isinstance(value, Tensor)}

    def map(self, change: Callable[[Tensor], Tensor]) -> Self:
        """Apply `change` to every tensor: to move or copy the draw, or to select clips."""
        changed: dict[str, Any] = {name: change(value) for name, value in self.tensors.items()}
        return replace(self, **changed)


def draw_augmentation(batch: int, *, settings: AugmentSettings, generator: torch.Generator) -> Augmentation:
    """Draw for `batch` clips. Turning one operation on or off does not change the draws of the others."""
    u = torch.rand(batch, 8, generator=generator)  # uniform in [0, 1), one column per operation
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


def _symmetric(u: Tensor, limit: float) -> Tensor | None:
    return _uniform(u, (-limit, limit)) if limit else None


def augment(frames: Tensor, augmentation: Augmentation) -> Tensor:
    """Apply one draw per clip to all frames of the clip, on the device of the frames.

    The order is that of the reference program: crop, flip, brightness, contrast, hue, saturation, then
    clipping to [0, 1]. Noise comes before the final clipping. Hue and saturation are defined only in [0, 1],
    so frames are also clipped before them. `frames` are float (B, ..., 3, H, W) in [0, 1]; they are returned
    unchanged if every operation is off.
    """
    _check(frames, augmentation)
    if not augmentation.tensors:
        return frames
    if augmentation.crop is not None:
        frames = crop_and_resize(frames, augmentation.crop)
    if augmentation.flip is not None:
        frames = torch.where(_column(augmentation.flip, frames), frames.flip(-1), frames)
    frames = adjust_light(frames, brightness=augmentation.brightness, contrast=augmentation.contrast)
    if augmentation.hue is not None or augmentation.saturation is not None:
        frames = _shift_colour(frames.clamp(0, 1), hue=augmentation.hue, saturation=augmentation.saturation)
    if augmentation.noise is not None:
        frames = frames + _column(augmentation.noise, frames) * _noise(frames, augmentation.noise_seed)
    return frames.clamp_(0, 1)  # in place: these are no longer the caller's frames


def crop_and_resize(frames: Tensor, crop: Tensor) -> Tensor:
    """Crop a box from all frames (B, ..., 3, H, W) of a clip and resize it bilinearly to the frame's size.

    `crop` (B, 3) is side, top and left of the box, as fractions of the frame, whose proportions it has.
    """
    height, width = frames.shape[-2:]
    crop = crop.to(device=frames.device, dtype=frames.dtype)
    rows = _box_grid(crop[:, 0], crop[:, 1], height)  # (B, H)
    columns = _box_grid(crop[:, 0], crop[:, 2], width)  # (B, W)
    grid = torch.stack(
        [columns[:, None, :].expand(-1, height, -1), rows[:, :, None].expand(-1, -1, width)], dim=-1
    )  # (B, H, W, 2) as x, y
    stacked = frames.reshape(len(frames), -1, height, width)  # all frames of a clip share its grid
    resized = F.grid_sample(stacked, grid, mode="bilinear", padding_mode="border", align_corners=False)
    return resized.reshape(frames.shape)


def _box_grid(side: Tensor, start: Tensor, pixels: int) -> Tensor:
    """Return the centres (B, pixels) of the box's pixels, where -1 and 1 are the edges of the frame."""
    centres = (torch.arange(pixels, device=side.device, dtype=side.dtype) + 0.5) / pixels
    return 2 * (start[:, None] + side[:, None] * centres) - 1


def adjust_light(frames: Tensor, *, brightness: Tensor | None, contrast: Tensor | None) -> Tensor:
    """Add `brightness` (B,), then scale by `contrast` (B,) about the mean of each frame and channel.

    In one step: c·(x + b - mean(x + b)) + mean(x + b) = c·x + (1 - c)·mean(x) + b.
    """
    if contrast is None:
        return frames if brightness is None else frames + _column(brightness, frames)
    factor = _column(contrast, frames)
    offset = (1 - factor) * frames.mean(dim=(-2, -1), keepdim=True)  # (B, ..., 3, 1, 1)
    if brightness is not None:
        offset = offset + _column(brightness, frames)
    return torch.addcmul(offset, factor, frames)


def _shift_colour(frames: Tensor, *, hue: Tensor | None = None, saturation: Tensor | None = None) -> Tensor:
    """Shift the hue and scale the saturation of RGB frames (B, ..., 3, H, W) in [0, 1].

    `hue` (B,) is a fraction of the colour circle, `saturation` (B,) a factor; the product is clipped to 1.
    """
    h, s, v = rgb_to_hsv(frames)
    shape = (-1, *[1] * (h.ndim - 1))
    if hue is not None:
        h = (h + hue.to(h).reshape(shape)) % 1.0
    if saturation is not None:
        s = (s * saturation.to(s).reshape(shape)).clamp(0, 1)
    return hsv_to_rgb(h, s, v)


def rgb_to_hsv(frames: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Convert RGB (..., 3, H, W) to hue, saturation and value, each (..., H, W), all in [0, 1]."""
    red, green, blue = frames.unbind(-3)
    value, strongest = frames.max(dim=-3)
    span = value - frames.amin(dim=-3)
    safe = torch.where(span > 0, span, torch.ones_like(span))  # grey has no hue; 0 is used
    sector = torch.stack([(green - blue) / safe, 2 + (blue - red) / safe, 4 + (red - green) / safe], dim=-3)
    hue = sector.gather(-3, strongest.unsqueeze(-3)).squeeze(-3) / 6 % 1.0
    saturation = span / torch.where(value > 0, value, torch.ones_like(value))
    return torch.where(span > 0, hue, torch.zeros_like(hue)), saturation, value


def hsv_to_rgb(hue: Tensor, saturation: Tensor, value: Tensor) -> Tensor:
    """Convert hue, saturation and value (..., H, W) to RGB (..., 3, H, W), all in [0, 1].

    Channel n (red 5, green 3, blue 1) is v - v·s·max(0, min(k, 4 - k, 1)) with k = (n + 6·hue) mod 6.
    """
    chroma = value * saturation
    channels = []
    for shift in (5, 3, 1):
        k = (shift + 6 * hue) % 6
        channels.append(value - chroma * torch.minimum(k, 4 - k).clamp(0, 1))
    return torch.stack(channels, dim=-3)


def _noise(frames: Tensor, seed: int) -> Tensor:
    """Draw standard normal noise, one pattern (3, H, W) per clip, that broadcasts against `frames`."""
    generator = torch.Generator(frames.device).manual_seed(seed)
    batch, pixels = frames.shape[0], frames.shape[-3:]
    noise = torch.randn(batch, *pixels, generator=generator, device=frames.device, dtype=frames.dtype)
    return noise.reshape(batch, *[1] * (frames.ndim - 4), *pixels)


def _column(values: Tensor, frames: Tensor) -> Tensor:
    """Move `values` (B,) to the device and rank of `frames`: (B, 1, ..., 1)."""
    dtype = values.dtype if values.dtype == torch.bool else frames.dtype
    return values.to(device=frames.device, dtype=dtype).reshape(-1, *[1] * (frames.ndim - 1))


def _check(frames: Tensor, augmentation: Augmentation) -> None:
    if frames.ndim < 4 or frames.shape[-3] != 3 or not frames.is_floating_point():
        raise ValueError(f"frames must be float (B, ..., 3, H, W), got {frames.dtype} {tuple(frames.shape)}")
    for values in augmentation.tensors.values():
        if len(values) != len(frames):
            raise ValueError(f"the augmentation is for {len(values)} clips, but frames hold {len(frames)}")


def augment_on_gpu(frames: Tensor, augmentation: Augmentation) -> Tensor | None:
    """Apply `augment` with a kernel that reads each pixel once; None if that is not possible.

    Takes frames uint8 (B, ..., H, W, 3) on a GPU and an augmentation without noise. Returns frames
    (B, ..., 3, H, W) in [0, 1], channels last in memory, as convolutions on a GPU want them.
    """
    can = frames.is_cuda and frames.is_contiguous() and frames.numel() < 2**31 and augmentation.noise is None
    kernels = _kernels() if can else None
    if kernels is None:
        return None
    with torch.cuda.device(frames.device):
        return _run_kernels(kernels, frames, augmentation)


@cache
def _kernels() -> Any:
    purpose = "the Triton kernel for augmentation"
    return load_kernels("cycleback.data._augment_kernels", _try_out, purpose=purpose)


def _try_out(kernels: Any) -> None:
    frames = torch.zeros(1, 1, 2, 2, 3, dtype=torch.uint8, device="cuda")
    one = torch.ones(1, device="cuda")
    _run_kernels(kernels, frames, Augmentation(contrast=one, hue=one, crop=torch.ones(1, 3, device="cuda")))


def _run_kernels(kernels: Any, frames: Tensor, augmentation: Augmentation) -> Tensor:
    clips, (height, width) = len(frames), frames.shape[-3:-1]
    count = frames.numel() // (3 * height * width)
    draws = draw_table(augmentation, clips, device=frames.device)
    means = torch.empty(count, 3, device=frames.device)
    output = torch.empty(frames.shape, device=frames.device)
    inputs, shape = (frames, draws, means), (count // clips, height, width)
    has_crop, has_contrast = augmentation.crop is not None, augmentation.contrast is not None
    if has_contrast:
        kernels.average_frame[(count,)](*inputs, *shape, has_crop=has_crop, pixels=PIXELS_PER_PROGRAM)
    kernels.augment_frame[(count, -(-height * width // PIXELS_PER_PROGRAM))](
        *inputs,
        output,
        *shape,
        has_crop=has_crop,
        has_contrast=has_contrast,
        has_colour=augmentation.hue is not None or augmentation.saturation is not None,
        pixels=PIXELS_PER_PROGRAM,
    )
    return output.movedim(-1, -3)


def draw_table(augmentation: Augmentation, clips: int, *, device: torch.device) -> Tensor:
    """Return the draw of each clip as a row (B, 8), with neutral values for operations that are off."""
    table = torch.zeros(clips, 8, device=device)
    for operation in ("crop", "contrast", "saturation"):
        table[:, COLUMNS[operation]] = 1.0
    for name, values in augmentation.tensors.items():
        columns = values.to(table).reshape(clips, -1)
        table[:, COLUMNS[name] : COLUMNS[name] + columns.shape[1]] = columns
    return table
