"""A folder of numbered images is a video: 1.png, 2.png, … 10.png, in natural order.

Letters: N images, H W pixels.
"""

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cycleback.data.names import IMAGE_SUFFIXES, natural_key
from cycleback.errors import DataError
from cycleback.video import FrameChunk

FPS_FILE = "fps.txt"
DEFAULT_FPS = 30.0
NUMBERED = re.compile(r"[0-9]$")


def is_frame(path: Path) -> bool:
    """Whether a file is a numbered image: its name ends in a digit before .jpg, .jpeg or .png."""
    is_image = path.suffix.lower() in IMAGE_SUFFIXES and not path.name.startswith(".")
    return is_image and NUMBERED.search(path.stem) is not None


def image_paths(folder: Path) -> list[Path]:
    """The numbered images of a folder in natural order; two images of one number are an error."""
    paths = sorted(
        (path for path in folder.iterdir() if is_frame(path)), key=lambda path: natural_key(path.stem)
    )
    for first, second in pairwise(paths):
        if first.stem == second.stem:
            raise DataError(f"{folder}: {first.name} and {second.name} are the same frame. Remove one.")
    if not paths:
        raise DataError(f"no numbered images in {folder}. Expected names such as 0001.jpg or frame_12.png.")
    return paths


def folder_fps(folder: Path) -> float:
    """Frames a second of a folder of images: the number in `fps.txt`, or 30."""
    path = folder / FPS_FILE
    if not path.exists():
        return DEFAULT_FPS
    text = path.read_text("utf-8-sig").strip()
    try:
        fps = float(text)
    except ValueError:
        fps = 0.0
    if not 0 < fps < float("inf"):
        raise DataError(f"{path}: {text[:40]!r} is not a frame rate. Write one number above 0, such as 25.")
    return fps


def iter_images(
    folder: Path, *, size: tuple[int, int] | None = None, chunk_frames: int = 64, fit: str = "stretch"
) -> Iterator[FrameChunk]:
    """The images of a folder as chunks of frames, as `cycleback.video.iter_frames` gives those of a file.

    Args:
        folder: holds numbered images; each image is turned upright as its EXIF note says.
        size: (height, width) of the frames; the size of the first image when left out.
        chunk_frames: images held in memory at a time.
        fit: "stretch" to the size, or "crop" the middle of the image to the proportions of the size.
    """
    paths = image_paths(folder)
    fps = folder_fps(folder)
    for start in range(0, len(paths), chunk_frames):
        images = []
        for path in paths[start : start + chunk_frames]:
            images.append(read_image(path, size=size, fit=fit))
            size = size or images[0].shape[:2]
        times = np.arange(start, start + len(images)) / fps
        yield FrameChunk(frames=np.stack(images), times=times, start=start)


def read_image(path: Path, *, size: tuple[int, int] | None = None, fit: str = "stretch") -> NDArray[np.uint8]:
    """One image file as RGB uint8 (H, W, 3), resized with antialiasing."""
    from PIL import Image, ImageOps

    try:
        with Image.open(path) as opened:
            image = ImageOps.exif_transpose(opened).convert("RGB")
    except (OSError, SyntaxError, ValueError) as error:  # Pillow raises all three for damaged files
        raise DataError(f"cannot read the image {path}: {error}. Remove it, or write it again.") from error
    if size is not None and (image.height, image.width) != size:
        box = crop_box((image.height, image.width), size) if fit == "crop" else None
        image = image.resize((size[1], size[0]), Image.Resampling.BILINEAR, box=box)
    return np.asarray(image, dtype=np.uint8)


def crop_box(source: tuple[int, int], size: tuple[int, int]) -> tuple[float, float, float, float]:
    """Left, top, right, bottom of the largest centred box of `source` (H, W) in the proportions of `size`."""
    scale = min(source[0] / size[0], source[1] / size[1])
    height, width = size[0] * scale, size[1] * scale
    left, top = (source[1] - width) / 2, (source[0] - height) / 2
    return (left, top, left + width, top + height)
