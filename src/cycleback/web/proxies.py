"""Proxies: copies of videos that every browser plays and that seek to any frame at once.

A proxy is H.264 in which every frame is a keyframe, at most 480 pixels high, upright, with AAC sound. Frame n
of the proxy is frame n of the video, at the same presentation time.
"""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cycleback.data.sources import iter_images, record_digest
from cycleback.errors import UserError, VideoError
from cycleback.files import atomic_file
from cycleback.video import frame_times
from cycleback.video.decoding import decode_in_order
from cycleback.video.scaling import FrameScaler, converter_options
from cycleback.video.source import VideoSource, load_av, open_video
from cycleback.video.writer import BT709, LIMITED_RANGE
from cycleback.web.project import ProjectVideo, Stamp
from cycleback.web.sound import iter_sound

MAX_HEIGHT = 480
MAX_AT_ONCE = 2  # proxies that are made at the same time
QUALITY = "23"  # crf of x264
VERSION = 1  # part of the name of a proxy; changes when proxies are made differently
SOUND_RATE = 48000
DEFAULT_TICK = Fraction(1, 90000)

Size = tuple[int, int]  # height, width
Seconds = NDArray[np.float64]


class Stopped(UserError):
    """The studio ends, and what it was making is not needed."""

    def __init__(self) -> None:
        super().__init__("the studio is closing; start it again")


@dataclass
class Making:
    """A proxy that is being made."""

    result: "Future[Path]"
    total: int
    done: int = 0

    @property
    def progress(self) -> float:
        """The share that is done, 0 to 1."""
        return min(1.0, self.done / max(1, self.total))


@dataclass
class Proxies:
    """The proxies of a project in a folder, each made once, a few at a time."""

    folder: Path
    _pool: ThreadPoolExecutor | None = None
    _making: dict[str, Making] = field(default_factory=dict)  # by id of the video
    _names: dict[tuple[Path, Stamp], str] = field(default_factory=dict)  # digests take a while
    _times: dict[Path, Seconds] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _stop: threading.Event = field(default_factory=threading.Event)

    def find(self, video: ProjectVideo) -> Path | None:
        """Return the proxy of a video if it is there already."""
        path = self._path(video)
        return path if path.is_file() else None

    def times(self, video: ProjectVideo) -> Seconds | None:
        """Return the presentation time of each frame (N,) of a proxy; None if it is not made yet.

        A broken video has fewer frames than packets; its proxy tells how many there are.
        """
        path = self.find(video)
        if path is not None and path not in self._times:
            self._times[path] = frame_times(path)
        return None if path is None else self._times[path]

    def request(self, video: ProjectVideo, *, wait_s: float = 0.0) -> Path | float:
        """Return the proxy of a video, or the share that is done while it is being made.

        A second request for the same video joins the first one. An error is raised once; the next request
        tries again.
        """
        if (path := self.find(video)) is not None:
            return path
        total = video.info.num_frames  # before the lock: reading a long file takes a while
        with self._lock:
            if video.id not in self._making:
                self._making[video.id] = self._start(video, total)
            making = self._making[video.id]
        with suppress(TimeoutError, CancelledError):
            making.result.exception(timeout=wait_s)
        if not making.result.done():
            return making.progress
        with self._lock:
            if self._making.get(video.id) is making:
                del self._making[video.id]
        try:
            return making.result.result()
        except CancelledError:  # it was still waiting when the studio closed
            raise Stopped from None

    def close(self) -> None:
        """Stop making proxies; a half-made one is removed."""
        self._stop.set()
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown(wait=True, cancel_futures=True)

    def _path(self, video: ProjectVideo) -> Path:
        key = (video.path, video.stamp)
        if key not in self._names:
            self._names[key] = record_digest(video.record)[:32]
        return self.folder / f"{self._names[key]}-v{VERSION}.mp4"

    def _start(self, video: ProjectVideo, total: int) -> Making:
        if self._stop.is_set():
            raise Stopped
        if self._pool is None:
            self._pool = ThreadPoolExecutor(MAX_AT_ONCE, thread_name_prefix="proxy")
        making = Making(Future(), total=total)
        making.result = self._pool.submit(self._make, video, making)
        return making

    def _make(self, video: ProjectVideo, making: Making) -> Path:
        path = self._path(video)

        def count() -> None:
            making.done += 1
            if self._stop.is_set():
                raise Stopped

        if not path.exists():
            with atomic_file(path, overwrite=True) as draft:
                write_proxy(draft, video, on_frame=count)
        return path


def write_proxy(path: Path, video: ProjectVideo, *, on_frame: Callable[[], None] = lambda: None) -> None:
    """Write the proxy of a video; calls `on_frame` after each frame."""
    av = load_av("writing video")
    try:
        with av.open(str(path), "w", options={"movflags": "+faststart"}) as container:
            _encode(container, video, on_frame)
    except av.error.FFmpegError as error:
        raise VideoError(f"cannot make a proxy of {video.path}: {error.strerror or error}") from error


def proxy_size(video: ProjectVideo) -> Size:
    """Return the even height and width of the proxy: the proportions of the video as displayed."""
    info = video.info
    height = min(MAX_HEIGHT, info.height)
    width = info.width * info.pixel_aspect * height / info.height
    return max(2, height // 2 * 2), max(2, round(width / 2) * 2)


def _encode(container: Any, video: ProjectVideo, on_frame: Callable[[], None]) -> None:
    """Encode all frames, each followed by the sound until then."""
    tick = _choose_tick(video)
    size = proxy_size(video)
    stream = _add_stream(container, size, tick=tick, rate=video.info.fps)
    sound = _Sound(container, video) if video.info.has_audio else None
    av = load_av("writing video")
    reformatter = av.video.reformatter.VideoReformatter()
    last = -1
    for image, seconds in iter_pictures(video, size):
        frame = _to_yuv(av, reformatter, image)
        frame.pts = last = max(last + 1, round(seconds / tick))
        container.mux(stream.encode(frame))
        if sound is not None:
            sound.write_until(seconds)
        on_frame()
    container.mux(stream.encode(None))
    if sound is not None:
        sound.finish()


def _choose_tick(video: ProjectVideo) -> Fraction:
    """Return a unit of time in which all presentation times of the video are whole numbers."""
    if video.is_images:
        return Fraction(1, 1_000_000)
    with open_video(video.path, threaded=False) as source:
        base = source.stream.time_base if source.has_times else None
    return Fraction(1, base.denominator) if base and base.denominator <= 1_000_000 else DEFAULT_TICK


def iter_pictures(video: ProjectVideo, size: Size) -> Iterator[tuple[NDArray[np.uint8], float]]:
    """Yield each frame of a video, upright RGB (H, W, 3) of `size`, and its presentation time."""
    if video.is_images:
        for chunk in iter_images(video.path, size=size):
            yield from zip(chunk.frames, chunk.times.tolist(), strict=True)
        return
    scaler: FrameScaler | None = None
    opened: VideoSource | None = None
    for source, frame, seconds in decode_in_order(video.path):
        if scaler is None or source is not opened:
            scaler, opened = FrameScaler(size, "stretch", aspect=source.pixel_aspect), source
        image = scaler.buffer(1, frame)[0]
        scaler.write(frame, image)
        yield image, seconds


def _add_stream(container: Any, size: Size, *, tick: Fraction, rate: float) -> Any:
    """Add a stream of H.264 in which every frame is a keyframe."""
    options = {"preset": "veryfast", "crf": QUALITY, "tune": "fastdecode"}
    stream = container.add_stream("libx264", rate=Fraction(rate).limit_denominator(1001), options=options)
    stream.height, stream.width = size
    stream.pix_fmt = "yuv420p"
    stream.time_base = tick
    context = stream.codec_context
    context.time_base = tick
    context.gop_size = 1
    context.max_b_frames = 0
    context.thread_type = "AUTO"
    context.colorspace = context.color_primaries = context.color_trc = BT709
    context.color_range = LIMITED_RANGE
    return stream


def _to_yuv(av: Any, reformatter: Any, image: NDArray[np.uint8]) -> Any:
    """Convert an image (H, W, 3) to a frame for the encoder."""
    return reformatter.reformat(
        av.VideoFrame.from_ndarray(image, format="rgb24"),
        format="yuv420p",
        dst_colorspace=BT709,
        dst_color_range=LIMITED_RANGE,
        **converter_options(av),
    )


class _Sound:
    """The sound of a video as an AAC stream of the container, heard with the same frames."""

    def __init__(self, container: Any, video: ProjectVideo) -> None:
        self.container = container
        self.channels = min(2, max(1, video.info.audio_channels))
        layout = "mono" if self.channels == 1 else "stereo"
        self.stream = container.add_stream("aac", rate=SOUND_RATE, layout=layout)
        self._blocks = iter_sound(video, rate=SOUND_RATE, channels=self.channels)
        self._position = 0  # samples written
        self._ended = False

    def write_until(self, seconds: float) -> None:
        """Encode the sound before `seconds` that is not encoded yet."""
        while not self._ended and self._position < seconds * SOUND_RATE:
            self._write_block()

    def finish(self) -> None:
        """Encode the rest of the sound."""
        while not self._ended:
            self._write_block()
        self.container.mux(self.stream.encode(None))

    def _write_block(self) -> None:
        block = next(self._blocks, None)
        if block is None:
            self._ended = True
            return
        av = load_av("writing sound")
        layout = "mono" if self.channels == 1 else "stereo"
        frame = av.AudioFrame.from_ndarray(np.ascontiguousarray(block), format="fltp", layout=layout)
        frame.sample_rate, frame.time_base = SOUND_RATE, Fraction(1, SOUND_RATE)
        frame.pts, self._position = self._position, self._position + block.shape[1]
        self.container.mux(self.stream.encode(frame))
