"""Write frames and sound to a video file that every browser plays.

Letters: H W pixels of a frame.
"""

import math
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from fractions import Fraction
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cycleback.errors import VideoError
from cycleback.files import atomic_file, check_output
from cycleback.video.audio import Audio, SoundTrack
from cycleback.video.scaling import converter_options
from cycleback.video.source import load_av

WRITE_SUFFIXES = (".mp4", ".mkv", ".mov")

KEYFRAME_SECONDS = 2  # a player or reader decodes at most this much to reach any frame
BT709 = 1  # ITU-T H.273 code of BT.709, for matrix, primaries and transfer alike
LIMITED_RANGE = 1  # luma 16..235, which players expect
REPEATABLE = "asm=MMX2,SSE2Fast,SSSE3,SSE4.2"  # with AVX-512, x264 reads uninitialised memory on small frames


def write_video(
    path: str | os.PathLike[str],
    frames: Iterable[NDArray[np.uint8]],
    *,
    fps: float,
    audio: Audio | None = None,
    crf: int = 20,
    repeatable: bool = False,
    overwrite: bool = False,
) -> Path:
    """Write `frames` as H.264 with `audio` as AAC, and return the path.

    Memory does not grow with the number of frames. The file appears only when it is complete.

    Args:
        path: File to write: .mp4, .mkv or .mov.
        frames: RGB images uint8 (H, W, 3), all of one size; an odd H or W is padded by repeating the edge.
        fps: Frames per second. 29.97 and other broadcast rates become exact fractions (30000/1001).
        audio: Sound that starts with the first frame; cut, or padded with silence, to the video's length.
        crf: Quality, 51 (worst) to 1 (best); 0 is lossless, which browsers do not play.
        repeatable: Always write the same bytes for the same frames; large frames take longer.
        overwrite: Overwrite an existing file.
    """
    target = check_output(Path(path), overwrite=overwrite, suffixes=WRITE_SUFFIXES)
    if target.is_dir():
        raise VideoError(f"cannot write {target}: it is a folder")
    rate = exact_rate(fps)
    if not 0 <= crf <= 51:
        raise ValueError(f"crf must be in 0..51, got {crf!r}")
    iterator = iter(frames)
    first = next(iterator, None)
    if first is None:
        raise VideoError(f"{target}: no frames to write; nothing was written")
    images = _pad_to_even(chain([first], iterator), shape=np.shape(first))
    options = {"crf": str(crf), **({"x264-params": REPEATABLE} if repeatable else {})}
    with atomic_file(target, overwrite=overwrite) as draft, _open_output(draft, target) as container:
        _encode(container, images, target=target, rate=rate, audio=audio, options=options)
    return target


def exact_rate(fps: float) -> Fraction:
    """Return the exact fraction for a rate: 25 → 25, 29.97 → 30000/1001, 12.5 → 25/2."""
    if not (math.isfinite(fps) and fps > 0):
        raise ValueError(f"fps must be a number above 0, got {fps!r}")
    broadcast = Fraction(round(fps * 1.001) * 1000, 1001)  # television: 0.1 % below a whole number
    if abs(fps - broadcast) < 2e-4 * fps:
        return broadcast
    return Fraction(float(fps)).limit_denominator(10_000)


@contextmanager
def _open_output(draft: Path, target: Path) -> Iterator[Any]:
    """Open `draft` as an av.container.OutputContainer; errors name `target`."""
    av = load_av("writing video")
    options = {} if draft.suffix.lower() == ".mkv" else {"movflags": "+faststart"}
    with _name_file_in_errors(target):
        container = av.open(f"file:{draft}", "w", options=options)
    try:
        yield container
    finally:  # after success the container is closed already, and closing it again does nothing
        with suppress(av.error.FFmpegError, OSError):
            container.close()


def _pad_to_even(
    frames: Iterable[NDArray[np.uint8]], *, shape: tuple[int, ...]
) -> Iterator[NDArray[np.uint8]]:
    """Yield each frame padded to even H and W; raise if it differs from the first one's `shape` (H, W, 3)."""
    for number, frame in enumerate(frames):
        image = np.asarray(frame)
        if image.dtype != np.uint8 or image.ndim != 3 or image.shape[2] != 3 or 0 in image.shape:
            raise ValueError(f"frame {number} must be uint8 (H, W, 3), got {image.dtype} {image.shape}")
        if image.shape != shape:
            raise ValueError(f"frame {number} is {image.shape}, the frames before it are {shape}")
        height, width = image.shape[:2]
        if height % 2 or width % 2:
            image = np.pad(image, ((0, height % 2), (0, width % 2), (0, 0)), mode="edge")
        yield np.ascontiguousarray(image)


@contextmanager
def _name_file_in_errors(path: Path) -> Iterator[None]:
    """Turn errors of the encoder or the disk into one line that names the file."""
    av = load_av("writing video")
    try:
        yield
    except (av.error.FFmpegError, OSError) as error:
        raise VideoError(f"cannot write {path}: {error.strerror or error}") from error


def _encode(
    container: Any,
    images: Iterator[NDArray[np.uint8]],
    *,
    target: Path,
    rate: Fraction,
    audio: Audio | None,
    options: dict[str, str],
) -> None:
    """Encode `images` (H, W, 3) one at a time, each followed by its sound."""
    av = load_av("writing video")
    first = next(images)
    with _name_file_in_errors(target):
        stream = _add_video_stream(container, first.shape, rate=rate, options=options)
        sound = None if audio is None else SoundTrack(container, audio)
    reformatter = av.video.reformatter.VideoReformatter()
    for number, image in enumerate(chain([first], images)):
        with _name_file_in_errors(target):
            container.mux(stream.encode(_to_yuv(av, reformatter, image, number)))
            if sound is not None:
                sound.write_until((number + 1) / rate)
    with _name_file_in_errors(target):
        container.mux(stream.encode(None))
        if sound is not None:
            sound.finish()
        container.close()


def _add_video_stream(
    container: Any, shape: tuple[int, ...], *, rate: Fraction, options: dict[str, str]
) -> Any:
    """Add an H.264 stream for images of `shape` (H, W, 3), tagged BT.709."""
    # compared to medium, veryfast is 2.5 times faster at the same file size and loses 0.4 dB
    stream = container.add_stream("libx264", rate=rate, options={"preset": "veryfast", **options})
    stream.height, stream.width = shape[:2]
    stream.pix_fmt = "yuv420p"
    stream.time_base = 1 / rate
    context = stream.codec_context
    context.thread_type = "AUTO"  # the default splits each picture into one slice per core
    context.time_base = 1 / rate
    context.gop_size = max(1, round(KEYFRAME_SECONDS * rate))
    context.colorspace = context.color_primaries = context.color_trc = BT709
    context.color_range = LIMITED_RANGE
    return stream


def _to_yuv(av: Any, reformatter: Any, image: NDArray[np.uint8], number: int) -> Any:
    """Convert an image (H, W, 3) to a frame for the encoder, with `number` as its time stamp."""
    frame = reformatter.reformat(
        av.VideoFrame.from_ndarray(image, format="rgb24"),
        format="yuv420p",
        dst_colorspace=BT709,
        dst_color_range=LIMITED_RANGE,
        **converter_options(av),
    )
    frame.pts = number
    return frame
