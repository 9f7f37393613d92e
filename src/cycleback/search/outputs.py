"""Show what a search found: a contact sheet like the paper's retrieval figure, and a clip around each hit."""

import io
import re
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

import numpy as np
from numpy.typing import NDArray

from cycleback.data.records import SEQUENCE_SUFFIX
from cycleback.data.sources import image_paths, read_image
from cycleback.errors import DataError
from cycleback.files import atomic_files, check_output, write_bytes
from cycleback.search.hits import Hit
from cycleback.search.query import Query
from cycleback.video import fit_cell, frame_times, probe, read_frames, tile, write_video

Picture = NDArray[np.uint8]
SHEET_SUFFIXES = (".png", ".jpg", ".jpeg")
HEIGHT = 240
BORDER = 6
BORDER_COLOUR = (92, 190, 255)
MAX_NAME = 14  # letters
MAX_COLUMNS = 9  # the query and eight hits
CHUNK_FRAMES = 16


def write_sheet(path: Path | str, query: Query, hits: Sequence[Hit], *, overwrite: bool = False) -> Path:
    """Write a contact sheet as .png or .jpg."""
    from PIL import Image

    shown = [path for path in (query.path, *(hit.path for hit in hits)) if path is not None]
    path = check_output(path, overwrite=overwrite, suffixes=SHEET_SUFFIXES, inputs=shown)
    stream = io.BytesIO()
    kind = "PNG" if path.suffix.lower() == ".png" else "JPEG"
    Image.fromarray(draw_sheet(query, hits)).save(stream, kind)
    return write_bytes(path, stream.getvalue(), overwrite=overwrite)


def draw_sheet(query: Query, hits: Sequence[Hit]) -> Picture:
    """Draw a picture uint8 (H, W, 3): the query in a border, then each hit with video, time and distance."""
    pictures, captions = [], []
    if query.path is not None:
        first = _scale(_read_picture(query.path, query.frame)).copy()
        first[:BORDER] = first[-BORDER:] = BORDER_COLOUR
        first[:, :BORDER] = first[:, -BORDER:] = BORDER_COLOUR
        pictures.append(first)
        captions.append("query" if query.seconds is None else f"query, {query.seconds:.2f} s")
    for hit in hits:
        if hit.path is None:
            raise DataError(f"{hit.video}: cannot show it, because its video file is unknown")
        pictures.append(_scale(_read_picture(hit.path, hit.frame)))
        captions.append(f"{_shorten(hit.video)}, {hit.seconds:.2f} s, d {hit.distance:.2f}")
    return tile(pictures, captions=captions, columns=min(len(pictures), MAX_COLUMNS))


def _read_picture(path: Path, frame: int | None) -> Picture:
    """Read a frame (H, W, 3) of a video or of a folder of images, or an image file if `frame` is None."""
    if not path.exists():
        raise DataError(f"{path} no longer exists. Add the videos again from where they are now.")
    if path.suffix == SEQUENCE_SUFFIX:
        raise DataError(f"{path} is a sequence of features: it has no pictures")
    if frame is None:
        return read_image(path)
    if path.is_dir():
        return read_image(image_paths(path)[frame])
    size = (HEIGHT, max(1, round(probe(path).aspect * HEIGHT)))
    picture: Picture = read_frames(path, [frame], size=size)[0]
    return picture


def _scale(picture: Picture) -> Picture:
    width = max(1, round(picture.shape[1] * HEIGHT / picture.shape[0]))
    return fit_cell(picture, (HEIGHT, width))


def _shorten(name: str) -> str:
    """Shorten the last part of a video's name, so that time and distance fit beside it."""
    last = PurePosixPath(name).stem
    return last if len(last) <= MAX_NAME else last[: MAX_NAME - 1] + "…"


def write_clips(
    folder: Path | str,
    hits: Sequence[Hit],
    *,
    seconds: float = 2.0,
    overwrite: bool = False,
    only_own: bool = False,
) -> list[Path]:
    """Write one silent mp4 per hit, `seconds` long with the hit in the middle.

    A clip at the start or end of a video is shorter. The names sort like the hits: `01-swing-1.93s.mp4`.

    Args:
        only_own: replace a file only if it is as this program wrote it.
    """
    if not 0 < seconds < float("inf"):
        raise ValueError(f"seconds must be above 0, got {seconds}")
    paths: dict[Path, Hit] = {}
    inputs = [hit.path for hit in hits if hit.path is not None]
    for place, hit in enumerate(hits, start=1):
        name = re.sub(r"[^A-Za-z0-9._-]+", "_", hit.video)
        path = Path(folder) / f"{place:02d}-{name}-{hit.seconds:.2f}s.mp4"
        check_output(path, overwrite=overwrite, inputs=inputs, only_own=only_own)
        if hit.path is None or not hit.path.is_file():
            raise DataError(f"{hit.video}: cannot cut a clip, there is no video file at {hit.path}")
        paths[path] = hit
    with atomic_files(folder, [path.name for path in paths], overwrite=overwrite) as drafts:
        for draft, hit in zip(drafts, paths.values(), strict=True):
            _write_clip(draft, hit, seconds=seconds)
    return list(paths)


def _write_clip(path: Path, hit: Hit, *, seconds: float) -> None:
    assert hit.path is not None
    times = frame_times(hit.path)
    chosen = np.flatnonzero(np.abs(times - times[hit.frame]) <= seconds / 2)
    span = float(times[chosen[-1]] - times[chosen[0]])
    fps = (len(chosen) - 1) / span if span > 0 else 30.0
    write_video(path, _read_chunks(hit.path, chosen), fps=fps)


def _read_chunks(path: Path, chosen: NDArray[np.int64]) -> Iterator[Picture]:
    """Read a few frames at a time, so that memory does not grow with the clip."""
    for start in range(0, len(chosen), CHUNK_FRAMES):
        yield from read_frames(path, chosen[start : start + CHUNK_FRAMES])
