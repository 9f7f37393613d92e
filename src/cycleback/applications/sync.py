"""Write one video in which several play in sync: beside each other, on top of each other or in turns.

Shapes: T output frames, V videos, H W pixels.
"""

import colorsys
import io
import math
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cycleback.applications.pace import take_turns
from cycleback.errors import DataError
from cycleback.files import check_output, write_bytes
from cycleback.progress import Counter, ignore
from cycleback.video import (
    Audio,
    VideoInfo,
    fit_cell,
    frame_times,
    iter_frames,
    probe,
    read_audio,
    read_frames,
    tile,
    write_video,
)
from cycleback.video.canvas import Caption, Colour

LAYOUTS = ("grid", "row", "overlay", "tinted", "switch")
LAID_OVER = ("overlay", "tinted")  # on top of each other
STILL_SUFFIXES = (".png",)
CELL_HEIGHT = (240, 360)  # pixels; range of the default height: legible, and not too large
CANVAS = (2160, 3840)  # pixels down and across that every player can show
MAX_OPEN_FILES = 9  # more are read by seeking: an open decoder holds many frames
CHUNK_BYTES = 256 << 20
AHEAD_FRAMES = 8  # decoded at a time from a file that is read in order
MIN_CAPTIONED = 72  # pixels; a caption under a smaller picture is illegible
FIRST_TINT = 30 / 360  # orange; the second of two is blue, a pair that is safe for colour-blind viewers
LUMA = np.array([0.2126, 0.7152, 0.0722], dtype=np.float32)  # BT.709
Image = NDArray[np.uint8]
Images = Generator[Image, None, None]
Positions = NDArray[np.float64]


@dataclass(frozen=True)
class Cell:
    """One video at one moment: its image (H, W, 3), its caption, its second and its progress in [0, 1]."""

    image: Image
    caption: str
    second: float
    progress: float


@dataclass(frozen=True)
class _Source:
    """A video to show: its file, the seconds (N,) of its frames, the size (H, W) of its cell, its caption."""

    path: Path
    times: NDArray[np.float64]
    size: tuple[int, int]
    caption: str
    is_mirrored: bool = False  # whether it is shown flipped, left for right

    def cell(self, image: Image, position: float) -> Cell:
        second = float(np.interp(position, np.arange(len(self.times)), self.times))
        image = np.ascontiguousarray(image[:, ::-1]) if self.is_mirrored else image
        return Cell(image, self.caption, second, second / self.times[-1] if self.times[-1] > 0 else 1.0)


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
    mirrored: Sequence[bool] = (),
    overwrite: bool = False,
    progress: Counter = ignore,
) -> Path:
    """Write one mp4 that shows frame `positions[k][t]` of `videos[k]` at output frame t.

    Args:
        videos: paths; the result keeps the frame rate and the sound of the first, the reference.
        positions: one array (T,) per video, all of the same length: frame numbers, with fractions between
            frames (`Pace.positions`).
        layout: "grid", "row", "overlay", "tinted" or "switch", see `arrange`.
        switch_every: output frames until the layout "switch" cuts to the next video.
        blend: mix the two frames beside a position; otherwise show the nearest.
        captions: one per video; default: the file names. An empty list leaves out captions and bars.
        columns: videos per row; default: one row for up to three, else a near-square grid.
        height: pixels of each video; default: the reference's height, between 240 and 360, less in a large
            grid.
        sound: whether to keep the reference's sound track, from its first frame that is shown, or another
            sound.
        mirrored: whether each video is shown flipped, left for right; default: none.
    """
    if layout not in LAYOUTS:
        raise ValueError(f"layout must be one of {', '.join(LAYOUTS)}, got {layout!r}")
    paths = [Path(video) for video in videos]
    check_output(output, overwrite=overwrite, inputs=paths)
    wanted = _stack_positions(positions, len(paths))  # (V, T)
    info = probe(paths[0])
    names = [path.stem for path in paths] if captions is None else captions
    tall = height or _cell_height(info, len(paths), layout=layout, columns=columns)
    sources = _open_sources(paths, names, height=tall, mirrored=mirrored)
    turns = take_turns(*wanted.shape, switch_every=switch_every) if layout == "switch" else None
    canvases = _draw_canvases(
        sources, wanted, turns, layout=layout, columns=columns, blend=blend, words=bool(names)
    )
    audio = sound if isinstance(sound, Audio) else None
    if sound is True and info.has_audio:
        audio = _cut_sound(read_audio(paths[0]), sources[0].times, wanted[0])
    with closing(canvases):
        frames = _report_progress(canvases, wanted.shape[1], progress)
        return write_video(output, frames, fps=fps or info.fps, audio=audio, overwrite=overwrite)


def write_still(
    output: Path | str,
    videos: Sequence[Path | str],
    positions: ArrayLike,
    *,
    layout: str = "grid",
    captions: Sequence[str] | None = None,
    columns: int | None = None,
    height: int | None = None,
    mirrored: Sequence[bool] = (),
    overwrite: bool = False,
) -> Path:
    """Write one .png that shows frame `positions[k]` (V,) of `videos[k]`; the other arguments as above."""
    from PIL.Image import fromarray

    paths = [Path(video) for video in videos]
    path = check_output(output, overwrite=overwrite, suffixes=STILL_SUFFIXES, inputs=paths)
    names = [path.stem for path in paths] if captions is None else captions
    tall = height or _cell_height(probe(paths[0]), len(paths), layout=layout, columns=columns)
    cells = []
    sources = _open_sources(paths, names, height=tall, mirrored=mirrored)
    for source, position in zip(sources, np.asarray(positions, dtype=np.float64).tolist(), strict=True):
        number = min(max(round(position), 0), len(source.times) - 1)
        cells.append(source.cell(read_frames(source.path, [number], size=source.size)[0], number))
    stream = io.BytesIO()
    drawn = arrange(cells, layout=layout, columns=columns, words=bool(names))
    fromarray(drawn).save(stream, "PNG")
    return write_bytes(path, stream.getvalue(), overwrite=overwrite)


def _open_sources(
    paths: Sequence[Path], names: Sequence[str], *, height: int, mirrored: Sequence[bool]
) -> list[_Source]:
    """Return the videos to show, each `height` pixels tall at its own proportions."""
    flags = mirrored or [False] * len(paths)
    sources = []
    for path, name, flag in zip(paths, names or [""] * len(paths), flags, strict=True):
        size = (height, max(2, round(probe(path).aspect * height)))
        sources.append(_Source(path, frame_times(path), size, f"{name} (flipped)" if flag else name, flag))
    return sources


def _cut_sound(whole: Audio, times: NDArray[np.float64], positions: Positions) -> Audio:
    """Return the sound of a video from the first to the last of the `positions` (T,) that are shown."""
    first, last = np.interp(positions[[0, -1]], np.arange(len(times)), times)
    frame_s = float(times[-1] / max(len(times) - 1, 1))
    is_to_end = positions[-1] > len(times) - 2  # sound may outlast the last frame
    stop = whole.samples.shape[1] if is_to_end else round((last + frame_s) * whole.rate)
    return Audio(whole.samples[:, round(first * whole.rate) : stop], whole.rate)


def arrange(cells: Sequence[Cell], *, layout: str, columns: int | None = None, words: bool = True) -> Image:
    """Draw all cells in one picture.

    Args:
        layout: "grid" or "row": beside each other; "overlay": their mean; "tinted": each in its own colour,
            grey where they agree; "switch": the first alone.
        columns: cells per row of a grid; default: one row for up to three, else a near-square grid.
        words: draw captions, times and progress bars below the pictures.
    """
    if layout in ("grid", "row"):
        return _tile_cells(cells, columns=len(cells) if layout == "row" else columns, words=words)
    first, size = cells[0], cells[0].image.shape[:2]
    images = [fit_cell(cell.image, size) for cell in cells]
    image = images[0]
    caption: Caption = first.caption
    if layout == "overlay":
        image, caption = average_images(images), " + ".join(cell.caption for cell in cells)
    elif layout == "tinted":
        image = tint_images(images)
        colours = tint_colours(len(cells))
        caption = tuple((cell.caption, _brighten(c)) for cell, c in zip(cells, colours, strict=True))
    if not words:
        return image
    return tile([image], captions=[caption], notes=[_format_clock(first.second)], progress=[first.progress])


def average_images(images: Sequence[Image]) -> Image:
    """Average images (H, W, 3) of one size: an onion skin."""
    total = np.zeros(images[0].shape, dtype=np.float32)
    for image in images:
        total += image
    mean: Image = np.rint(total / len(images)).astype(np.uint8)
    return mean


def tint_images(images: Sequence[Image]) -> Image:
    """Add images (H, W, 3) of one size, each in grey times a colour; the colours sum to white."""
    total = np.zeros(images[0].shape, dtype=np.float32)
    for image, colour in zip(images, tint_colours(len(images)), strict=True):
        total += (image @ LUMA)[..., None] * colour
    picture: Image = np.rint(np.clip(total, 0, 255)).astype(np.uint8)
    return picture


def tint_colours(count: int) -> NDArray[np.float32]:
    """Return colours (count, 3) in [0, 1], evenly around the colour circle, that sum to white."""
    hues = [colorsys.hsv_to_rgb((FIRST_TINT + number / count) % 1, 0.9, 1) for number in range(count)]
    colours = np.array(hues, dtype=np.float32)
    shares: NDArray[np.float32] = colours / colours.sum(axis=0)
    return shares


def count_columns(count: int, *, layout: str) -> int:
    """Return the default number of columns: one row for up to three videos, else a near-square grid."""
    return count if count <= 3 or layout == "row" else math.ceil(math.sqrt(count))


def read_frames_at(
    path: Path,
    positions: Positions,
    *,
    size: tuple[int, int],
    blend: bool = False,
    stay_open: bool = True,
    chunk_frames: int = 32,
) -> Images:
    """Yield images (H, W, 3) of a video at `positions` (T,): frame numbers with fractions between frames.

    Memory does not grow with the length of the video.

    Args:
        size: (H, W) of the images.
        blend: mix the two frames beside a position; otherwise take the nearest.
        stay_open: keep one decoder open where positions never decrease. A decoder holds many frames, so
            with hundreds of videos it is better to seek to each chunk.
        chunk_frames: images read per seek.
    """
    wanted = positions if blend else np.rint(positions)
    if stay_open and (np.diff(wanted) >= 0).all():
        return _decode_in_order(path, wanted, size=size)
    return _seek_chunks(path, wanted, size=size, chunk_frames=chunk_frames)


def _decode_in_order(path: Path, positions: Positions, *, size: tuple[int, int]) -> Images:
    """Decode once from the start; a file shorter than expected holds its last frame."""

    def decode() -> Images:
        for chunk in iter_frames(path, size=size, chunk_frames=AHEAD_FRAMES):
            yield from chunk.frames

    with closing(decode()) as frames:
        number = 0
        before = current = next(frames)
        for position in positions.tolist():
            while number < position:
                before, current = current, next(frames, current)
                number += 1
            yield _blend(before, current, number - position)


def _seek_chunks(path: Path, positions: Positions, *, size: tuple[int, int], chunk_frames: int) -> Images:
    for start in range(0, len(positions), chunk_frames):
        part = positions[start : start + chunk_frames]
        after = np.ceil(part).astype(np.int64)
        befores = np.maximum(after - 1, 0) if (part != after).any() else after
        numbers, places = np.unique(np.concatenate([befores, after]), return_inverse=True)
        frames = read_frames(path, numbers, size=size)
        for row, position in enumerate(part.tolist()):
            before, current = frames[places[row]], frames[places[len(part) + row]]
            yield _blend(before, current, float(after[row]) - position)


def _blend(before: Image, current: Image, share_before: float) -> Image:
    """Mix the share `share_before` in [0, 1) of one frame into the next."""
    if share_before <= 0:
        return current
    mixed: Image = np.rint(before * share_before + current * (1 - share_before)).astype(np.uint8)
    return mixed


def _draw_canvases(
    sources: Sequence[_Source],
    positions: Positions,
    turns: NDArray[np.int64] | None,
    *,
    layout: str,
    columns: int | None,
    blend: bool,
    words: bool,
) -> Images:
    """Yield the output frames; of videos shown in `turns` (T,), only the frames shown are read."""
    with ExitStack() as files:
        streams = [
            files.enter_context(closing(stream))
            for stream in _open_streams(sources, positions, turns, blend=blend)
        ]
        for step in range(positions.shape[1]):
            numbers = range(len(sources)) if turns is None else [int(turns[step])]
            cells = [sources[n].cell(next(streams[n]), positions[n, step]) for n in numbers]
            yield arrange(cells, layout=layout, columns=columns, words=words)


def _open_streams(
    sources: Sequence[_Source], positions: Positions, turns: NDArray[np.int64] | None, *, blend: bool
) -> Iterator[Images]:
    cell_bytes = sum(3 * math.prod(source.size) for source in sources)
    for number, source in enumerate(sources):
        yield read_frames_at(
            source.path,
            positions[number] if turns is None else positions[number, turns == number],
            size=source.size,
            blend=blend,
            stay_open=len(sources) <= MAX_OPEN_FILES,
            chunk_frames=min(32, max(1, CHUNK_BYTES // cell_bytes)),
        )


def _cell_height(info: VideoInfo, count: int, *, layout: str, columns: int | None) -> int:
    """Pixels that suit the reference's picture and keep the canvas within the size players can show."""
    across, down = 1, 1
    if layout in ("grid", "row"):
        across = columns or count_columns(count, layout=layout)
        down = math.ceil(count / across)
    room = CANVAS[0] / down
    words = 26 if room > MIN_CAPTIONED + 26 else 8  # pixels below and between the pictures
    fits = min(room - words, (CANVAS[1] / across - 4) / info.aspect)
    return max(16, min(int(np.clip(info.height, *CELL_HEIGHT)), int(fits)))


def _stack_positions(positions: Sequence[ArrayLike], count: int) -> Positions:
    """Check all positions and stack them: (V, T)."""
    arrays = [np.asarray(chosen, dtype=np.float64) for chosen in positions]
    lengths = {len(chosen) for chosen in arrays}
    if count != len(arrays) or len(lengths) != 1:
        raise ValueError(f"{count} videos need {count} index arrays of one length, got {sorted(lengths)}")
    if lengths == {0}:
        raise DataError("nothing to show: the pace has no frames")
    return np.stack(arrays)


def _report_progress(frames: Iterable[Image], total: int, progress: Counter) -> Iterator[Image]:
    for done, frame in enumerate(frames, start=1):
        yield frame
        progress(done, total)


def _tile_cells(cells: Sequence[Cell], *, columns: int | None, words: bool) -> Image:
    legible = words and min(max(cell.image.shape[axis] for cell in cells) for axis in (0, 1)) >= MIN_CAPTIONED
    return tile(
        [cell.image for cell in cells],
        columns=columns,
        captions=[cell.caption for cell in cells] if legible else None,
        notes=[_format_clock(cell.second) for cell in cells] if legible else None,
        progress=[cell.progress for cell in cells] if words else None,
    )


def _format_clock(second: float) -> str:
    """Format seconds as 12.34 s, or as 1:02.34 from a minute on."""
    return f"{second:.2f} s" if second < 60 else f"{int(second // 60)}:{second % 60:05.2f}"


def _brighten(colour: NDArray[np.float32]) -> Colour:
    """Turn a tint into a colour for text."""
    red, green, blue = np.rint(255 * (0.25 + 0.75 * colour / colour.max())).astype(int).tolist()
    return red, green, blue
