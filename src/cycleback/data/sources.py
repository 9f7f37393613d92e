"""Read the two kinds of videos that are not video files, and fingerprint all three.

A folder of numbered images is a video: 1.png, 2.png, … 10.png, in natural order. An .npz sequence holds poses
or other features of each frame. Letters: N frames, H W pixels, F features per frame.
"""

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cycleback.arrays import Archive, open_npz
from cycleback.data.records import IMAGE_SUFFIXES, VideoRecord, natural_key
from cycleback.errors import DataError
from cycleback.reading import Cursor, read_text
from cycleback.video import FrameChunk, iter_frames, probe
from cycleback.video.scaling import shrink_size

FPS_FILE = "fps.txt"
DEFAULT_FPS = 30.0
MIN_FPS, MAX_FPS = 1e-6, 1e6  # a frame in twelve days to a million in a second
CHUNK_FRAMES = 64  # images in memory at a time
NUMBERED = re.compile(r"[0-9]$")
WHOLE_FILE_BYTES = 64 * 2**20
PIECE_BYTES = 4 * 2**20


def is_frame(path: Path) -> bool:
    """Tell whether a file is a numbered image: its name ends in a digit before .jpg, .jpeg or .png."""
    is_image = path.suffix.lower() in IMAGE_SUFFIXES and not path.name.startswith(".")
    return is_image and NUMBERED.search(path.stem) is not None


def image_paths(folder: Path) -> list[Path]:
    """List the numbered images of a folder in natural order; two images with the same number are an error."""
    paths = sorted(filter(is_frame, folder.iterdir()), key=lambda path: natural_key(path.stem))
    for first, second in pairwise(paths):
        if first.stem == second.stem:
            raise DataError(f"{folder}: {first.name} and {second.name} are the same frame. Remove one.")
    if not paths:
        raise DataError(f"no numbered images in {folder}. Expected names such as 0001.jpg or frame_12.png.")
    return paths


def folder_fps(folder: Path) -> float:
    """Return the frames per second of a folder of images: the number in `fps.txt`, or 30."""
    path = folder / FPS_FILE
    if not path.exists():
        return DEFAULT_FPS
    text = read_text(path).strip()
    try:
        fps = Cursor(text, str(path)).number()
    except DataError:
        fps = 0.0
    if not MIN_FPS <= fps <= MAX_FPS:
        raise DataError(f"{path}: {text[:40]!r} is not a frame rate. Write one number above 0, such as 25.")
    return fps


def iter_images(
    folder: Path, *, size: tuple[int, int] | None = None, fit: str = "stretch"
) -> Iterator[FrameChunk]:
    """Yield the images of a folder in chunks, like `cycleback.video.iter_frames` for a video file.

    EXIF rotation is applied. `size` is (height, width), by default that of the first image. An image is
    stretched to it; with `fit` "crop" its centre is first cropped to these proportions.
    """
    paths = image_paths(folder)
    fps = folder_fps(folder)
    for start in range(0, len(paths), CHUNK_FRAMES):
        images = []
        for path in paths[start : start + CHUNK_FRAMES]:
            images.append(read_image(path, size=size, fit=fit))
            size = size or images[0].shape[:2]
        times = np.arange(start, start + len(images)) / fps
        yield FrameChunk(frames=np.stack(images), times=times, start=start)


def iter_chosen_frames(
    record: VideoRecord, numbers: NDArray[np.int64], *, max_side: int, chunk_frames: int = CHUNK_FRAMES
) -> Iterator[FrameChunk]:
    """Yield the frames of a video or image folder with these ascending `numbers`, at their proportions.

    Frames larger than `max_side` are shrunk.
    """
    if record.kind == "video":
        yield from iter_frames(record.path, max_side=max_side, numbers=numbers, chunk_frames=chunk_frames)
        return
    paths, fps = image_paths(record.path), folder_fps(record.path)
    height, width, _ = read_image(paths[0]).shape
    size = shrink_size((height, width), max_side)
    for start in range(0, len(numbers), chunk_frames):
        chosen = numbers[start : start + chunk_frames]
        frames = np.stack([read_image(paths[number], size=size) for number in chosen.tolist()])
        yield FrameChunk(frames=frames, times=chosen / fps, start=start)


def display_height(record: VideoRecord) -> int:
    """Return the height of a video or image folder in pixels, as displayed."""
    if record.kind == "video":
        return probe(record.path).height
    return len(read_image(image_paths(record.path)[0]))


def read_image(path: Path, *, size: tuple[int, int] | None = None, fit: str = "stretch") -> NDArray[np.uint8]:
    """Read an image file as RGB uint8 (H, W, 3), resized with antialiasing."""
    from PIL import Image, ImageOps

    try:
        with Image.open(path) as opened:
            image = ImageOps.exif_transpose(opened).convert("RGB")
    except (OSError, SyntaxError, ValueError) as error:  # Pillow raises all three for damaged files
        raise DataError(f"cannot read the image {path}: {error}. Remove or replace it.") from error
    if size is not None and (image.height, image.width) != size:
        box = crop_box((image.height, image.width), size) if fit == "crop" else None
        image = image.resize((size[1], size[0]), Image.Resampling.BILINEAR, box=box)
    return np.asarray(image, dtype=np.uint8)


def crop_box(source: tuple[int, int], size: tuple[int, int]) -> tuple[float, float, float, float]:
    """Return (left, top, right, bottom) of the largest centred box in `source` (H, W) shaped like `size`."""
    scale = min(source[0] / size[0], source[1] / size[1])
    height, width = size[0] * scale, size[1] * scale
    left, top = (source[1] - width) / 2, (source[0] - height) / 2
    return (left, top, left + width, top + height)


@dataclass(frozen=True)
class FeatureSequence:
    """`features` float32 (N, F), and `times` float64 (N,), the presentation time of each frame in seconds."""

    features: NDArray[np.float32]
    times: NDArray[np.float64]

    def explain_broken(self) -> str:
        """Say which frames have features that are not finite; "" if none have."""
        broken = np.flatnonzero(~np.isfinite(self.features).all(axis=1))
        if not broken.size:
            return ""
        which = f"{broken.size} of {len(self.features)} frames"
        return f"{which} contain NaN or infinity (first: {broken[0]}). Fill in or remove these frames."


def load_sequence(
    record: VideoRecord, *, width: int | None = None, check_finite: bool = True
) -> FeatureSequence:
    """Load the features of a record of kind "sequence".

    Features that are not finite are refused, and others than `width` per frame, if it is given.

    The .npz holds an array `features` (N, F), or a single two-dimensional array of any name. It may also hold
    `times` (N,) in seconds, or `fps`, one number. Without either, 30 frames per second are assumed.
    """
    if record.kind != "sequence":
        raise ValueError(f"{record.name} is of kind {record.kind!r}, not a sequence")
    with open_npz(record.path, explain=partial(_cannot_read, record.path)) as archive:
        name = _find_features(record.path, archive)
        with np.errstate(over="ignore"):  # too large a number becomes infinity, like one that was before
            features = archive.read(name).astype(np.float32)
        sequence = FeatureSequence(features, _find_times(record.path, archive, len(features)))
    found = sequence.features.shape[1]
    if width not in (None, found):
        raise DataError(
            f"{record.path}: {found} features per frame, but the encoder reads {width}. Recreate the file."
        )
    if check_finite and (problem := sequence.explain_broken()):
        raise DataError(f"{record.path}: {problem}")
    return sequence


def _cannot_read(path: Path, reason: str) -> DataError:
    return DataError(f"cannot read {path}: {reason}. Write it with numpy.savez(path, features=array).")


def _find_features(path: Path, archive: Archive) -> str:
    """Return the name of the array of features (N, F)."""
    headers = archive.headers
    tables = [name for name, header in headers.items() if len(header.shape) == 2]
    if "features" not in headers and len(tables) != 1:
        shapes = ", ".join(f"{name} {header.shape}" for name, header in list(headers.items())[:8])
        raise DataError(
            f"{path}: no array 'features', and {len(tables)} two-dimensional arrays among {shapes}. "
            "Name the one of shape (frames, features) 'features'."
        )
    name = "features" if "features" in headers else tables[0]
    header = headers[name]
    if len(header.shape) != 2 or 0 in header.shape or header.dtype.kind not in "fiub":
        raise DataError(f"{path}: {name!r} must be numbers of shape (frames, features), got {header}.")
    return name


def _find_times(path: Path, archive: Archive, num_frames: int) -> NDArray[np.float64]:
    """Return presentation times (N,) from `times`, `fps` or the default rate."""
    if "times" in archive.headers:
        shape = archive.headers["times"].shape
        times = archive.read("times").astype(np.float64) if shape == (num_frames,) else np.empty(0)
        if shape != (num_frames,) or not (np.isfinite(times).all() and (np.diff(times) > 0).all()):
            raise DataError(
                f"{path}: 'times' must be {num_frames} finite, increasing seconds, got shape {shape}."
            )
        return times
    fps = DEFAULT_FPS
    if "fps" in archive.headers:
        header = archive.headers["fps"]
        fps = float(archive.read("fps").reshape(())) if header.numbers == 1 else 0.0
        if not MIN_FPS <= fps <= MAX_FPS:
            got = f"{fps:g}" if header.numbers == 1 else f"shape {header.shape}"
            raise DataError(f"{path}: 'fps' must be one number from {MIN_FPS:g} to {MAX_FPS:g}, got {got}.")
    return np.arange(num_frames) / fps


def record_digest(record: VideoRecord) -> str:
    """Fingerprint the content of a video; for a folder, its images and frame rate."""
    if record.path.exists() and not (record.path.is_file() or record.path.is_dir()):
        raise DataError(f"{record.path} is a pipe or a device, not a file. Remove it.")
    try:
        return _folder_digest(record.path) if record.kind == "frames" else file_digest(record.path)
    except OSError as error:
        raise DataError(f"cannot read {record.path}: {error.strerror}.") from error


def file_digest(path: Path) -> str:
    """Return a SHA-256 in hex of a file's content.

    Of a file of 64 MiB or more, only the size, the modification time and three pieces of 4 MiB (start,
    middle, end) are hashed: reading all of it on every start would take longer than a cache saves. A copy of
    such a file is recognised only if it keeps the modification time.
    """
    status = path.stat()
    with path.open("rb") as stream:
        if status.st_size < WHOLE_FILE_BYTES:
            return hashlib.file_digest(stream, "sha256").hexdigest()
        digest = hashlib.sha256(f"{status.st_size}/{status.st_mtime_ns}/".encode())
        for start in (0, (status.st_size - PIECE_BYTES) // 2, status.st_size - PIECE_BYTES):
            stream.seek(start)
            digest.update(stream.read(PIECE_BYTES))
    return digest.hexdigest()


def _folder_digest(folder: Path) -> str:
    digest = hashlib.sha256()
    for path in [*image_paths(folder), folder / FPS_FILE]:
        content = file_digest(path) if path.exists() else "-"
        digest.update(f"{path.name}/{content}/".encode())
    return digest.hexdigest()
