"""Frames as the encoder takes them while training: augmented images.

Shapes: B videos of a batch, b of them here, T frames, C context frames, H W pixels.
"""

import dataclasses

import torch
from torch import Tensor

from cycleback.data.augmentation import (
    Augmentation,
    AugmentSettings,
    augment,
    augment_on_gpu,
    draw_augmentation,
)
from cycleback.training.batches import Batch, mixed_seed


def draw_for(batch: Batch, *, settings: AugmentSettings | None, seed: int) -> Augmentation:
    """What to do to the clips of a batch; nothing without settings.

    What is drawn for a video depends on `seed` and its row in the batch, not on which process embeds it; only
    the pattern of the noise does.
    """
    if settings is None:
        return Augmentation()
    generator = torch.Generator().manual_seed(seed)
    draw = draw_augmentation(len(batch.videos), settings=settings, generator=generator)
    return draw if batch.rows is None else rows_of(draw, batch.rows)


def augmented_images(frames: Tensor, augmentation: Augmentation) -> Tensor:
    """Frames (b, T, C, H, W, 3) uint8 to images (b, T, C, 3, H, W) in [0, 1]."""
    fused = augment_on_gpu(frames, augmentation)
    return augment(frames.movedim(-1, -3).float() / 255, augmentation) if fused is None else fused


def shown_frames(batch: Batch) -> Tensor | None:
    """The anchors (B, T, H, W, 3) uint8 as they were drawn, before augmentation; None for other inputs."""
    if batch.inputs.is_floating_point():
        return None
    return batch.inputs[:, : batch.times.shape[1], -1]


def rows_of(draw: Augmentation, rows: tuple[int, ...]) -> Augmentation:
    """The draw of some of the clips, with another pattern of noise for other clips."""
    picked = draw.map(lambda values: values[list(rows)])
    return dataclasses.replace(picked, noise_seed=mixed_seed(draw.noise_seed, rows[0]))
