"""All changes of a picture in one pass over its pixels: a kernel for a GPU.

Shapes: B clips, H W pixels; ... the frames of a clip, such as T sampled and C context ones.
"""

from functools import cache
from typing import Any

import torch
from torch import Tensor

from cycleback.data.augmentation import Augmentation

PIXELS = 1024  # of a frame, to one program
COLUMNS = 8  # numbers of a draw: side, top and left of the crop, flip, brightness, contrast, hue, saturation


def augmented_on_gpu(frames: Tensor, augmentation: Augmentation) -> Tensor | None:
    """What `augment` gives for frames (B, ..., H, W, 3) uint8: (B, ..., 3, H, W) in [0, 1]; None: it cannot.

    Colours of a pixel stay side by side in memory, as convolutions on a GPU want them.
    """
    can = frames.is_cuda and frames.is_contiguous() and frames.numel() < 2**31 and augmentation.noise is None
    kernels = _kernels() if can else None
    if kernels is None:
        return None
    with torch.cuda.device(frames.device):
        return run_kernels(kernels, frames, augmentation)


def run_kernels(kernels: Any, frames: Tensor, augmentation: Augmentation) -> Tensor:
    """The same with the kernels of `augment_kernels`."""
    clips, (height, width) = len(frames), frames.shape[-3:-1]
    count = frames.numel() // (3 * height * width)
    draws = draw_table(augmentation, clips, device=frames.device)
    means = torch.empty(count, 3, device=frames.device)
    output = torch.empty(frames.shape, device=frames.device)
    a_clip, has_crop = count // clips, augmentation.crop is not None
    if augmentation.contrast is not None:
        kernels.mean_of[(count,)](
            frames, draws, means, a_clip, height, width, has_crop=has_crop, pixels=PIXELS
        )
    kernels.change[(count, -(-height * width // PIXELS))](
        frames,
        draws,
        means,
        output,
        a_clip,
        height,
        width,
        has_crop=has_crop,
        has_contrast=augmentation.contrast is not None,
        has_colour=augmentation.hue is not None or augmentation.saturation is not None,
        pixels=PIXELS,
    )
    return output.movedim(-1, -3)


def draw_table(augmentation: Augmentation, clips: int, *, device: torch.device) -> Tensor:
    """What was drawn for each clip (B, 8), with values that change nothing where an operation is off."""
    table = torch.zeros(clips, COLUMNS, device=device)
    for factor in (0, 5, 7):
        table[:, factor] = 1.0
    first = {"crop": 0, "flip": 3, "brightness": 4, "contrast": 5, "hue": 6, "saturation": 7}
    for name, values in augmentation.tensors.items():
        columns = values.to(table).reshape(clips, -1)
        table[:, first[name] : first[name] + columns.shape[1]] = columns
    return table


@cache
def _kernels() -> Any:
    """The kernels, once they have run; None where Triton, or the compiler that it needs, is not there."""
    frames = torch.zeros(1, 1, 2, 2, 3, dtype=torch.uint8, device="cuda")
    one = torch.ones(1, device="cuda")
    draw = Augmentation(contrast=one, hue=one, crop=torch.ones(1, 3, device="cuda"))
    try:
        from cycleback.data import augment_kernels

        run_kernels(augment_kernels, frames, draw)
    except Exception:  # whatever a compiler may say: there is another way to augment
        return None
    return augment_kernels
