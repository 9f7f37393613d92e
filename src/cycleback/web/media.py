"""What a browser plays and shows: media files, presentation times, single frames, strips and sound peaks.

A browser gets the original file if it plays it, sees the same frames as `iter_frames`, and seeks fast.
Otherwise it gets a proxy (proxies.py).
"""

import io
import json
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
from fastapi import APIRouter, Header, Query
from fastapi.responses import FileResponse, JSONResponse, Response
from numpy.typing import NDArray
from pydantic import BaseModel

from cycleback.data.sources import image_paths, read_image
from cycleback.video import read_frames
from cycleback.video.source import load_av, open_video
from cycleback.web.project import IMAGES_CODEC, NotFound, ProjectVideo, Stamp
from cycleback.web.proxies import Proxies
from cycleback.web.sound import read_peaks

if TYPE_CHECKING:
    from cycleback.web.app import Studio

Kind = Literal["original", "proxy"]
Images = NDArray[np.uint8]

MP4, MATROSKA = "mov,mp4,m4a,3gp,3g2,mj2", "matroska,webm"
PLAYABLE = {MP4: {"h264", "vp9", "av1"}, MATROSKA: {"h264", "vp8", "vp9", "av1"}}  # codecs by container
PIXEL_FORMATS = {"yuv420p", "yuvj420p"}
MAX_KEYFRAME_GAP_S = 2.1  # a browser decodes at most this much to reach a frame of an original
MAX_PIXELS = 1280 * 720  # of an original; several larger ones are too slow to play together
PIXELS_PER_S = 6e7  # a cautious guess of how fast a proxy is made; decoding counts most
MAX_WAIT_S = 120.0  # a video that merely seeks slowly is not worth a longer wait for its proxy

JPEG_QUALITY = 85
MAX_CACHE_BYTES = 64 * 2**20
WAIT_S = 0.4  # how long a request waits for a proxy before it answers with the progress
SNAP_FRAMES = 30  # thumbnails further apart than this may be of the keyframe nearby


class VideoDetail(BaseModel):
    """One video, as its own route tells it."""

    id: str
    name: str
    action: str
    frames: int
    duration_s: float
    width: int
    height: int
    fps: float
    has_audio: bool
    codec: str
    is_variable_rate: bool
    media: Kind
    reason: str  # why a proxy is played instead of the original; "" if it is not
    warning: str  # what is wrong with the file though it can be played


@dataclass
class Media:
    """Serves the videos of a project to a browser."""

    proxies: Proxies
    _kept: "AnswerCache" = field(default_factory=lambda: AnswerCache(MAX_CACHE_BYTES))
    _reasons: dict[tuple[str, Stamp], str] = field(default_factory=dict)
    _decoders: threading.Semaphore = field(
        default_factory=lambda: threading.Semaphore(max(2, os.cpu_count() or 2))
    )

    def detail(self, video: ProjectVideo) -> VideoDetail:
        """Describe a video; reads all its packets once."""
        info, reason = video.info, self.reason(video)
        lost = video.index.promise.frames - info.num_frames
        return VideoDetail(
            id=video.id,
            name=video.name,
            action=video.record.action,
            frames=len(self.times(video)),
            duration_s=info.duration_s,
            width=info.width,
            height=info.height,
            fps=info.fps,
            has_audio=info.has_audio,
            codec=info.codec,
            is_variable_rate=info.is_variable_rate,
            media="proxy" if reason else "original",
            reason=reason,
            warning=f"the file is cut short: about {lost} frames are missing" if lost > 0 else "",
        )

    def reason(self, video: ProjectVideo) -> str:
        """Return why a browser should get a proxy of a video; "" if it gets the original."""
        key = (video.id, video.stamp)
        if key not in self._reasons:
            self._reasons[key] = explain_proxy(video)
        return self._reasons[key]

    def times(self, video: ProjectVideo, *, proxy: bool = False) -> NDArray[np.float64]:
        """Return the presentation time of each frame (N,) in the file that the browser plays."""
        made = self.proxies.times(video) if proxy or self.reason(video) else None
        return video.times if made is None else made

    def file(self, video: ProjectVideo, *, proxy: bool = False) -> Path | float:
        """Return the file to play, or the share of the proxy that is made so far."""
        if not proxy and not self.reason(video):
            return video.path
        return self.proxies.request(video, wait_s=WAIT_S)

    def frame(self, video: ProjectVideo, number: int, height: int) -> bytes:
        """Return one frame as a JPEG of this height."""
        if not 0 <= number < video.info.num_frames:
            last = video.info.num_frames - 1
            raise NotFound(f"{video.name} has no frame {number}: it has frames 0 to {last}")
        return self._draw(video, [number], height)

    def strip(self, video: ProjectVideo, count: int, height: int) -> bytes:
        """Return `count` frames spread evenly over a video, side by side, as a JPEG."""
        return self._draw(video, spread_frames(video, count), height)

    def _draw(self, video: ProjectVideo, numbers: list[int], height: int) -> bytes:
        key = (video.id, video.stamp, tuple(numbers), height)

        def draw() -> bytes:
            return encode_jpeg(np.concatenate(list(read_thumbnails(video, numbers, height)), axis=1))

        return self._answer(key, draw)

    def peaks(self, video: ProjectVideo, count: int) -> bytes:
        """Return the loudest sample of each of `count` equal parts of a video, as JSON; [] without sound."""
        key = (video.id, video.stamp, "peaks", count)
        return self._answer(key, lambda: json.dumps(read_peaks(video, count)).encode())

    def _answer(self, key: Hashable, make: Callable[[], bytes]) -> bytes:
        """Return an answer that is kept, or make it; only a few are made at a time."""
        answer = self._kept.find(key)
        if answer is None:
            with self._decoders:
                answer = make()
            self._kept.keep(key, answer)
        return answer


class AnswerCache:
    """The answers given last, up to a number of bytes."""

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self._answers: OrderedDict[Hashable, bytes] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def find(self, key: Hashable) -> bytes | None:
        """Return an answer that is kept, or None."""
        with self._lock:
            if key in self._answers:
                self._answers.move_to_end(key)
            return self._answers.get(key)

    def keep(self, key: Hashable, answer: bytes) -> None:
        """Keep an answer, and forget the ones used longest ago."""
        with self._lock:
            self._bytes += len(answer) - len(self._answers.pop(key, b""))
            self._answers[key] = answer
            while self._bytes > self.max_bytes:
                self._bytes -= len(self._answers.popitem(last=False)[1])


def explain_proxy(video: ProjectVideo) -> str:
    """Return why a browser should get a proxy of a video, in a few words; "" if the original is fine."""
    return _explain_unplayable(video) or _explain_slow(video)


def _explain_unplayable(video: ProjectVideo) -> str:
    """Return why a browser cannot play the file, or would number its frames differently."""
    info, index = video.info, video.index
    if info.codec == IMAGES_CODEC:
        return "a folder of images"
    if info.codec not in PLAYABLE.get(info.container, set()):
        return f"browsers do not play {info.codec} in {info.container.split(',')[0]}"
    if info.pixel_format not in PIXEL_FORMATS:
        return f"browsers do not play {info.pixel_format}"
    if index.is_damaged or not index.can_seek or index.num_hidden:
        return "the file is damaged, lacks time stamps or hides frames"
    return "" if _is_plain(video) else "the file has an edit list"


def _is_plain(video: ProjectVideo) -> bool:
    """Tell whether the file has the same frames, equally far apart, for a player that ignores edit lists."""
    if video.info.container != MP4:
        return True
    av = load_av("reading video")
    with open_video(video.path) as source:
        if not source.container.metadata.get("major_brand"):
            return False  # an old QuickTime file, which players in JavaScript do not recognise
        number = source.stream.index
    with av.open(str(video.path), metadata_errors="replace", options={"ignore_editlist": "1"}) as container:
        packets = container.demux(container.streams[number])
        stamps = [packet.pts for packet in packets if packet.size]
    pts = video.index.pts
    if len(stamps) != len(pts) or None in stamps:
        return False
    return bool(np.array_equal(np.sort(np.array(stamps)) - min(stamps), pts - pts[0]))


def _explain_slow(video: ProjectVideo) -> str:
    """Return why a browser would seek slowly in the file; "" also if a proxy would take too long."""
    info = video.info
    pixels = info.width * info.height
    if info.num_frames * pixels / PIXELS_PER_S > MAX_WAIT_S:
        return ""
    if pixels > MAX_PIXELS:
        return f"large frames ({info.width}x{info.height})"
    edges = np.append(video.times[video.index.key_numbers], info.duration_s)
    gap = float(np.diff(edges).max(initial=0.0))
    return f"a keyframe only every {gap:.1f} s" if gap > MAX_KEYFRAME_GAP_S else ""


def spread_frames(video: ProjectVideo, count: int) -> list[int]:
    """Return `count` frame numbers spread evenly over a video, in long videos of keyframes where possible."""
    total = video.info.num_frames
    numbers = np.floor((np.arange(count) + 0.5) * total / count).astype(np.int64)
    step = total / count
    if step > SNAP_FRAMES:
        keys = video.index.key_numbers
        places = np.clip(np.searchsorted(keys, numbers), 1, max(1, len(keys) - 1))
        before, after = keys[places - 1], keys[np.minimum(places, len(keys) - 1)]
        nearest = np.where(numbers - before <= np.abs(after - numbers), before, after)
        numbers = np.where(np.abs(nearest - numbers) < step / 2, nearest, numbers)
    return [int(number) for number in numbers]


def read_thumbnails(video: ProjectVideo, numbers: list[int], height: int) -> Images:
    """Read frames (T, height, W, 3) at the proportions of the video as displayed."""
    info = video.info
    width = max(1, round(info.width * info.pixel_aspect * height / info.height))
    size = (height, width)
    if video.is_images:
        paths = image_paths(video.path)
        return np.stack([read_image(paths[number], size=size) for number in numbers])
    return read_frames(video.path, numbers, size=size, index=video.index)


def encode_jpeg(image: Images) -> bytes:
    """Encode an image (H, W, 3) as JPEG."""
    from PIL import Image

    buffer = io.BytesIO()
    Image.fromarray(image).save(buffer, "JPEG", quality=JPEG_QUALITY)
    return buffer.getvalue()


def media_type(path: Path, video: ProjectVideo) -> str:
    """Return the type of the file in HTTP headers."""
    if path != video.path or video.info.container == MP4:
        return "video/mp4"
    return "video/x-matroska" if video.info.codec == "h264" else "video/webm"


Height = Annotated[int, Query(ge=8, le=1080)]


def routes(studio: "Studio") -> APIRouter:
    """Serve details, times, media, frames, strips and peaks of single videos."""
    router = APIRouter(prefix="/videos/{id}")
    media, find = studio.media, studio.project.video

    @router.get("")
    def show_video(id: str) -> VideoDetail:
        return media.detail(find(id))

    @router.get("/times")
    def send_times(id: str, proxy: bool = False) -> Response:
        times = media.times(find(id), proxy=proxy)
        return Response(times.astype("<f8").tobytes(), media_type="application/octet-stream")

    @router.head("/media", include_in_schema=False)
    @router.get("/media")
    def send_media(id: str, proxy: bool = False) -> Response:
        video = find(id)
        file = media.file(video, proxy=proxy)
        if isinstance(file, float):
            return JSONResponse({"progress": round(file, 3)}, status_code=202, headers={"Retry-After": "1"})
        return send_file(file, media_type(file, video))

    @router.get("/frames/{number}.jpg")
    def send_frame(
        id: str, number: int, height: Height = 120, if_none_match: Annotated[str, Header()] = ""
    ) -> Response:
        video = find(id)
        return send_jpeg(
            video, if_none_match, f"{number}-{height}", lambda: media.frame(video, number, height)
        )

    @router.get("/strip.jpg")
    def send_strip(
        id: str,
        count: Annotated[int, Query(ge=1, le=200)] = 20,
        height: Annotated[int, Query(ge=8, le=240)] = 60,
        if_none_match: Annotated[str, Header()] = "",
    ) -> Response:
        video = find(id)
        return send_jpeg(
            video, if_none_match, f"s{count}-{height}", lambda: media.strip(video, count, height)
        )

    @router.get("/peaks")
    def send_peaks(id: str, count: Annotated[int, Query(ge=1, le=100_000)] = 800) -> Response:
        return Response(media.peaks(find(id), count), media_type="application/json")

    return router


def send_file(path: Path, type: str) -> Response:
    """Answer with a file, or the part of it that a Range header names."""
    try:
        return FileResponse(path, media_type=type, stat_result=path.stat())
    except OSError as error:
        raise NotFound(f"cannot read {path}: {error.strerror}; reload the page") from error


def send_jpeg(video: ProjectVideo, known: str, what: str, draw: Callable[[], bytes]) -> Response:
    """Answer with a picture, or with 304 if the browser has it already."""
    tag = f'"{video.stamp[0]:x}-{video.stamp[1]:x}-{what}"'
    headers = {"ETag": tag, "Cache-Control": "private, no-cache"}
    if known == tag:
        return Response(status_code=304, headers=headers)
    return Response(draw(), media_type="image/jpeg", headers=headers)
