"""Open a video file, or say in one line why it cannot be read as video."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from cycleback.errors import MissingDependencyError, VideoError

VIDEO_SUFFIXES = frozenset(
    {".3gp", ".avi", ".flv", ".m2ts", ".m4v", ".mkv", ".mov", ".mp4", ".mpeg", ".mpg", ".mts", ".ogv"}
    | {".ts", ".webm", ".wmv"}
)

SEEKABLE = frozenset({"mp4", "matroska", "avi", "flv"})
PLAYLISTS = frozenset(  # formats of ffmpeg that open further files, or that are no files at all
    {"avisynth", "concat", "concatf", "dash", "hls", "image2", "imf", "lavfi", "mlv", "rtp", "rtsp", "sap"}
    | {"sdp", "vapoursynth", "vobsub"}
)
ATTACHED_PICTURE = 0x0400  # bit of a stream's disposition: the cover image of a song
ANIMATED_WEBP = 0x02  # bit of the flags of an extended .webp


def load_av(purpose: str) -> ModuleType:
    """Import PyAV on first use; `purpose` starts the error message if it is not installed."""
    try:
        return import_module("av")
    except ImportError as error:
        raise MissingDependencyError(f"{purpose} needs av: pip install av") from error


@dataclass(frozen=True)
class VideoSource:
    """An open file and its video stream."""

    path: Path
    container: Any  # av.container.InputContainer
    stream: Any  # av.video.VideoStream

    @property
    def rate(self) -> float:
        """Frames per second according to the file; 25 if it does not say."""
        return float(self.stream.guessed_rate or self.stream.average_rate or 25)

    @property
    def pixel_aspect(self) -> float:
        """Width of a stored pixel over its height; 1 if the file does not say."""
        return float(self.stream.sample_aspect_ratio or 1)

    @property
    def has_times(self) -> bool:
        """Whether time stamps are right. AVI stores none, so reordered frames get wrong ones."""
        return not (self.container.format.name == "avi" and self.stream.codec_context.has_b_frames)

    @property
    def can_seek(self) -> bool:
        """Whether every frame has a time stamp; other formats (.mpg, .ts) may guess wrongly after a seek."""
        return self.has_times and not SEEKABLE.isdisjoint(self.container.format.name.split(","))

    @property
    def canonical_codec(self) -> str:
        """Name of the format ("av1"), not of the program that decodes it ("libdav1d")."""
        codec = self.stream.codec_context.codec
        return str(getattr(codec, "canonical_name", codec.name))


def check_file(path: str | os.PathLike[str]) -> Path:
    """Return `path`, or raise if there is no regular file or it is empty."""
    file = Path(path)
    if not file.exists():
        raise VideoError(f"{file} does not exist; check the spelling of the path")
    if file.is_dir():
        raise VideoError(f"{file} is a folder, not a video; give a file inside it")
    if not file.is_file():
        raise VideoError(f"{file} is a pipe or a device, not a file; copy the video to a file first")
    if file.stat().st_size == 0:
        raise VideoError(f"{file} is empty (0 bytes); copy or record it again")
    return file


def is_animated(path: Path) -> bool:
    """Tell whether a .gif or .webp is a video: a .gif is taken for one, a .webp says so in its header."""
    if path.suffix.lower() != ".webp":
        return path.suffix.lower() == ".gif"
    try:
        with path.open("rb") as stream:
            header = stream.read(21)
    except OSError:
        return False
    return header[8:16] == b"WEBPVP8X" and bool(header[20:21]) and bool(header[20] & ANIMATED_WEBP)


def reading_options(av: ModuleType) -> dict[str, str]:
    """Return options with which ffmpeg reads the one file that it is given, and no address or other file."""
    formats = sorted(av.formats_available - PLAYLISTS)
    return {"protocol_whitelist": "file", "format_whitelist": ",".join(formats)}


@contextmanager
def open_container(path: Path) -> Iterator[Any]:
    """Open `path` as an av.container.InputContainer."""
    av = load_av("reading video")
    if path.suffix.lower() == ".webp" and is_animated(path):
        raise VideoError(f"{path} is an animated .webp, which cannot be decoded here; convert it to .mp4")
    try:
        container = av.open(f"file:{path}", options=reading_options(av), metadata_errors="replace")
    except av.error.ArgumentError as error:
        raise VideoError(f"{path} is a playlist or names other files; give the video itself") from error
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
    """Open the video stream of `path` for decoding; `threaded` uses all cores."""
    with open_container(path) as container:
        stream = find_video_stream(container)
        if stream is None:
            raise VideoError(f"{path} {_explain_no_video(container)}")
        stream.thread_type = "AUTO" if threaded else "NONE"
        if not threaded:
            stream.codec_context.thread_count = 1
        yield VideoSource(path, container, stream)


def find_video_stream(container: Any) -> Any | None:
    """Return the first video stream that is not a cover image and has a known format."""
    for stream in container.streams.video:
        disposition = getattr(stream, "disposition", None)  # not in older PyAV
        is_cover = disposition is not None and disposition.value & ATTACHED_PICTURE
        if not is_cover and stream.codec_context is not None:
            return stream
    return None


def _explain_no_video(container: Any) -> str:
    if container.streams.video and not container.streams.audio:
        return "holds a still cover image, or a video format that cannot be decoded here"
    if container.streams.audio:
        return "has sound but no pictures; give a video file"
    return "holds neither pictures nor sound; it is not a video, or it was cut off while being written"
