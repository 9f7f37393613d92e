"""Open a video file, and say in one line why a file is none."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cycleback.errors import VideoError
from cycleback.video.backend import load_av

VIDEO_SUFFIXES = frozenset(
    {".3gp", ".avi", ".flv", ".m2ts", ".m4v", ".mkv", ".mov", ".mp4", ".mpeg", ".mpg", ".mts", ".ogv"}
    | {".ts", ".webm", ".wmv"}
)

SEEKABLE = frozenset({"mp4", "matroska", "avi", "flv"})
ATTACHED_PICTURE = 0x0400  # bit of a stream's disposition: the cover image of a song


@dataclass(frozen=True)
class VideoSource:
    """An open file and its picture stream."""

    path: Path
    container: Any  # av.container.InputContainer
    stream: Any  # av.video.VideoStream

    @property
    def rate(self) -> float:
        """Frames a second as the file states them; 25 where it states nothing."""
        return float(self.stream.guessed_rate or self.stream.average_rate or 25)

    @property
    def pixel_aspect(self) -> float:
        """Width of a stored pixel over its height; 1 where the file does not say."""
        return float(self.stream.sample_aspect_ratio or 1)

    @property
    def has_times(self) -> bool:
        """Whether time stamps can be trusted; AVI has none of its own, so reordered frames get wrong ones."""
        return not (self.container.format.name == "avi" and self.stream.codec_context.has_b_frames)

    @property
    def can_seek(self) -> bool:
        """Whether every frame is stamped; other formats (.mpg, .ts) guess after a jump, at times wrongly."""
        return self.has_times and not SEEKABLE.isdisjoint(self.container.format.name.split(","))

    @property
    def canonical_codec(self) -> str:
        """Name of the format ("av1"), not of the program that decodes it ("libdav1d")."""
        codec = self.stream.codec_context.codec
        return str(getattr(codec, "canonical_name", codec.name))


def checked_file(path: str | os.PathLike[str]) -> Path:
    """`path`, if there is a file with something in it."""
    file = Path(path)
    if not file.exists():
        raise VideoError(f"{file} does not exist; check the spelling of the path")
    if file.is_dir():
        raise VideoError(f"{file} is a folder, not a video; give a file inside it")
    if file.stat().st_size == 0:
        raise VideoError(f"{file} is empty (0 bytes); copy or record it again")
    return file


def check_range(path: Path, numbers: NDArray[np.int64], num_frames: int) -> None:
    """Refuse frame `numbers` (T,), ascending, that a video of `num_frames` does not have."""
    if numbers[0] < 0 or numbers[-1] >= num_frames:
        bad = numbers[0] if numbers[0] < 0 else numbers[-1]
        raise VideoError(f"{path} has no frame {bad}: it has {num_frames} frames, 0 to {num_frames - 1}")


@contextmanager
def open_container(path: Path) -> Iterator[Any]:
    """An av.container.InputContainer for `path`."""
    av = load_av("reading video")
    try:
        container = av.open(str(path), metadata_errors="replace")
    except av.error.FFmpegError as error:
        reason = error.strerror or error
        message = f"{path} is not a video, or its header is damaged ({reason}); does it play in a player?"
        raise VideoError(message) from error
    try:
        yield container
    finally:
        container.close()


@contextmanager
def open_video(path: Path, *, threaded: bool = True) -> Iterator[VideoSource]:
    """The picture stream of `path`, ready to decode; `threaded` uses all cores."""
    with open_container(path) as container:
        stream = video_stream(container)
        if stream is None:
            raise VideoError(f"{path} {_without_pictures(container)}")
        stream.thread_type = "AUTO" if threaded else "NONE"
        if not threaded:
            stream.codec_context.thread_count = 1
        yield VideoSource(path, container, stream)


def video_stream(container: Any) -> Any | None:
    """The first stream of pictures that is not a cover image and whose format is known."""
    for stream in container.streams.video:
        disposition = getattr(stream, "disposition", None)  # not in older PyAV
        is_cover = disposition is not None and disposition.value & ATTACHED_PICTURE
        if not is_cover and stream.codec_context is not None:
            return stream
    return None


def _without_pictures(container: Any) -> str:
    if container.streams.video and not container.streams.audio:
        return "holds a still cover image, or a video format that cannot be decoded here"
    if container.streams.audio:
        return "has sound but no pictures; give a video file"
    return "holds neither pictures nor sound; it is no video, or was cut off while it was written"
