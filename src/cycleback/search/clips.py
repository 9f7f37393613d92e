"""Cut a short clip around each hit."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cycleback.errors import DataError, OutputExistsError
from cycleback.search.hits import Hit
from cycleback.video import frame_times, read_frames, write_video

CHUNK_FRAMES = 16


def write_clips(
    folder: Path | str, hits: Sequence[Hit], *, seconds: float = 2.0, overwrite: bool = False
) -> list[Path]:
    """Write one silent mp4 a hit, `seconds` long with the hit in the middle; shorter at the ends of a video.

    Their names sort as the hits do: `01-swing-1.93s.mp4`.
    """
    if not 0 < seconds < float("inf"):
        raise ValueError(f"seconds must be above 0, got {seconds}")
    folder = Path(folder)
    paths = [folder / _file_name(place, hit) for place, hit in enumerate(hits, start=1)]
    for path, hit in zip(paths, hits, strict=True):
        _check(path, hit, overwrite=overwrite)
    return [
        _write_clip(path, hit, seconds=seconds, overwrite=overwrite)
        for path, hit in zip(paths, hits, strict=True)
    ]


def _file_name(place: int, hit: Hit) -> str:
    return f"{place:02d}-{re.sub(r'[^A-Za-z0-9._-]+', '_', hit.video)}-{hit.seconds:.2f}s.mp4"


def _check(path: Path, hit: Hit, *, overwrite: bool) -> None:
    """All that can be known before the first clip is written."""
    if path.exists() and not overwrite:
        raise OutputExistsError(f"{path} exists. Add --overwrite, or give another folder.")
    if hit.path is None or not hit.path.is_file():
        raise DataError(f"{hit.video}: cannot cut a clip, there is no video file at {hit.path}")


def _write_clip(path: Path, hit: Hit, *, seconds: float, overwrite: bool) -> Path:
    assert hit.path is not None
    times = frame_times(hit.path)
    chosen = np.flatnonzero(np.abs(times - times[hit.frame]) <= seconds / 2)
    span = float(times[chosen[-1]] - times[chosen[0]])
    fps = (len(chosen) - 1) / span if span > 0 else 30.0
    return write_video(path, _frames(hit.path, chosen), fps=fps, overwrite=overwrite)


def _frames(path: Path, chosen: NDArray[np.int64]) -> Iterator[NDArray[np.uint8]]:
    for start in range(0, len(chosen), CHUNK_FRAMES):
        yield from read_frames(path, chosen[start : start + CHUNK_FRAMES])
