"""Make the pictures of the README from a finished demo.

Usage: python scripts/readme_images.py demo
"""

import shutil
import sys
from pathlib import Path

import numpy as np
from PIL import Image

from cycleback.video import iter_frames

IMAGES = Path(__file__).resolve().parents[1] / "docs" / "images"


def write_animation(video: Path, target: Path, *, every: int = 3, width: int = 560) -> None:
    """An animated WebP of every third frame, small enough for a README."""
    frames = [frame for chunk in iter_frames(video) for frame in chunk.frames][::every]
    pictures = [Image.fromarray(np.asarray(frame)) for frame in frames]
    height = round(pictures[0].height * width / pictures[0].width)
    small = [picture.resize((width, height), Image.Resampling.LANCZOS) for picture in pictures]
    small[0].save(
        target,
        save_all=True,
        append_images=small[1:],
        duration=every * 1000 // 30,
        loop=0,
        quality=55,
        method=6,
    )


def main() -> None:
    """Animate the before/after video and copy the similarity picture."""
    demo = Path(sys.argv[1])
    IMAGES.mkdir(parents=True, exist_ok=True)
    write_animation(demo / "before_after.mp4", IMAGES / "before_after.webp")
    for name in ("similarity.png", "tsne.png"):
        shutil.copyfile(demo / name, IMAGES / name)


if __name__ == "__main__":
    main()
