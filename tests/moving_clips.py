"""Clips of one action at different paces, small enough to train on in seconds."""

from pathlib import Path

import numpy as np

from cycleback.video import write_video


def make_clips(folder: Path, count: int = 3) -> Path:
    """Write clips in which a white square crosses a grey field, each at its own pace."""
    for n in range(count):
        images = []
        for share in np.linspace(0, 1, 24) ** (1 + 0.2 * n):
            image = np.full((64, 64, 3), 60, dtype=np.uint8)
            left = int(share * 48)
            image[24:40, left : left + 16] = 230
            images.append(image)
        write_video(folder / f"clip-{n}.mp4", images, fps=24)
    return folder
