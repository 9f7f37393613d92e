"""Play videos in sync: one video file in which all of them follow one pace.

Shapes: T output frames, V videos, H W pixels.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cycleback.applications.footage import Images, frames_at
from cycleback.applications.layouts import LAYOUTS, LEAST_CAPTIONED, Shown, arrange
from cycleback.errors import DataError
from cycleback.video import Audio, VideoInfo, frame_times, probe, read_audio, write_video

CELL_HEIGHT = (240, 360)  # pixels, where the user names no height: legible, and not too large
CANVAS = (2160, 3840)  # pixels down and across that every player takes
MOST_OPEN = 9  # files read in order at once
CHUNK_BYTES = 256 << 20
Image = NDArray[np.uint8]
Positions = NDArray[np.float64]


@dataclass(frozen=True)
class _Source:
    """A video to show: its file, its frames' seconds (N,), the size of its picture and its name."""

    path: Path
    times: NDArray[np.float64]
    size: tuple[int, int]
    caption: str


def write_synced(
    output: Path | str,
    videos: Sequence[Path | str],
    positions: Sequence[ArrayLike],
    *,
    layout: str = "grid",
    switch_every: int = 30,
    blend: bool = False,
    captions: Sequence[str] | None = None,
    columns: int | None = None,
    height: int | None = None,
    fps: float | None = None,
    sound: bool | Audio = True,
    overwrite: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> Path:
    """Write one mp4 that shows frame `positions[k][t]` of `videos[k]` at output frame t.

    Args:
        videos: paths; the first is the reference, whose frame rate and sound the result keeps.
        positions: one array (T,) a video, all of one length: frame numbers, which may lie between frames
            (`Pace.positions`).
        layout: "grid", "row", "overlay", "tinted" or "switch", see `cycleback.applications.layouts.arrange`.
        switch_every: output frames until the layout "switch" cuts to the next video.
        blend: mix the two frames beside a position; otherwise the nearest is shown.
        captions: a name for each video; default: the file names. An empty list: no words and no bars.
        columns: videos a row; default: a row for up to three, else a near-square grid.
        height: pixels a video is tall; default: the reference's, within 240 and 360, less in a large grid.
        sound: keep the reference's sound track where it has one; or a sound of its own.
    """
    if layout not in LAYOUTS:
        raise ValueError(f"layout must be one of {', '.join(LAYOUTS)}, got {layout!r}")
    paths = [Path(video) for video in videos]
    wanted = _checked_positions(positions, len(paths))  # (V, T)
    info = probe(paths[0])
    names = [path.stem for path in paths] if captions is None else captions
    tall = height or _cell_height(info, len(paths), layout=layout, columns=columns)
    sources = [
        _source(path, tall, name) for path, name in zip(paths, names or [""] * len(paths), strict=True)
    ]
    turns = shown_in_turns(*wanted.shape, switch_every=switch_every) if layout == "switch" else None
    canvases = _canvases(
        sources, wanted, turns, layout=layout, columns=columns, blend=blend, words=bool(names)
    )
    audio = sound if isinstance(sound, Audio) else read_audio(paths[0]) if sound and info.has_audio else None
    with closing(canvases):
        frames = _counted(canvases, wanted.shape[1], progress)
        return write_video(output, frames, fps=fps or info.fps, audio=audio, overwrite=overwrite)


def shown_in_turns(count: int, length: int, *, switch_every: int) -> NDArray[np.int64]:
    """Which of `count` videos the layout "switch" shows at each of `length` output frames."""
    if switch_every < 1:
        raise ValueError(f"switch_every must be at least 1, got {switch_every!r}")
    return np.arange(length) // switch_every % count


def _canvases(
    sources: Sequence[_Source],
    positions: Positions,
    turns: NDArray[np.int64] | None,
    *,
    layout: str,
    columns: int | None,
    blend: bool,
    words: bool,
) -> Images:
    """The output frames; of videos that are shown in `turns` (T,), only what is shown is read."""
    with ExitStack() as files:
        streams = [
            files.enter_context(closing(stream))
            for stream in _streams(sources, positions, turns, blend=blend)
        ]
        for step in range(positions.shape[1]):
            numbers = range(len(sources)) if turns is None else [int(turns[step])]
            shown = [
                _shown(sources[number], next(streams[number]), positions[number, step]) for number in numbers
            ]
            yield arrange(shown, layout=layout, columns=columns, words=words)


def _streams(
    sources: Sequence[_Source], positions: Positions, turns: NDArray[np.int64] | None, *, blend: bool
) -> Iterator[Images]:
    """For each source, the images it shows."""
    cell_bytes = sum(3 * math.prod(source.size) for source in sources)
    for number, source in enumerate(sources):
        yield frames_at(
            source.path,
            positions[number] if turns is None else positions[number, turns == number],
            size=source.size,
            blend=blend,
            stay_open=len(sources) <= MOST_OPEN,
            chunk_frames=min(32, max(1, CHUNK_BYTES // cell_bytes)),
        )


def _shown(source: _Source, image: Image, position: float) -> Shown:
    second = float(np.interp(position, np.arange(len(source.times)), source.times))
    return Shown(image, source.caption, second, second / source.times[-1] if source.times[-1] > 0 else 1.0)


def _source(path: Path, height: int, caption: str) -> _Source:
    info = probe(path)
    return _Source(
        path, frame_times(path), (height, max(2, round(info.width * height / info.height))), caption
    )


def _cell_height(info: VideoInfo, count: int, *, layout: str, columns: int | None) -> int:
    """Pixels that suit the reference's picture and keep the canvas within what players take."""
    across, down = 1, 1
    if layout in ("grid", "row"):
        across = columns or (count if count <= 3 or layout == "row" else math.ceil(math.sqrt(count)))
        down = math.ceil(count / across)
    room = CANVAS[0] / down
    words = 26 if room > LEAST_CAPTIONED + 26 else 8  # pixels below and between the pictures
    fits = min(room - words, (CANVAS[1] / across - 4) * info.height / info.width)
    return max(16, min(int(np.clip(info.height, *CELL_HEIGHT)), int(fits)))


def _checked_positions(positions: Sequence[ArrayLike], count: int) -> Positions:
    """All positions as one array (V, T)."""
    arrays = [np.asarray(chosen, dtype=np.float64) for chosen in positions]
    lengths = {len(chosen) for chosen in arrays}
    if count != len(arrays) or len(lengths) != 1:
        raise ValueError(f"{count} videos need {count} index arrays of one length, got {sorted(lengths)}")
    if lengths == {0}:
        raise DataError("nothing to show: the pace has no frame")
    return np.stack(arrays)


def _counted(
    frames: Iterable[Image], total: int, progress: Callable[[int, int], None] | None
) -> Iterator[Image]:
    for done, frame in enumerate(frames, start=1):
        yield frame
        if progress is not None:
            progress(done, total)
