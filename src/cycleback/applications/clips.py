"""Cut parts of a video into clips, with their sound. Memory does not grow with the video."""

import os
from collections.abc import Generator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import islice, pairwise
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from cycleback.files import check_output
from cycleback.progress import Counter, ignore
from cycleback.video import iter_frames, probe, write_video
from cycleback.video.audio import iter_audio
from cycleback.video.shots import MAX_SIDE, ShotDetector

CHUNK_FRAMES = 16


class Part(Protocol):
    """Frames `start` to `stop` of a video, without the last, and their seconds."""

    @property
    def start(self) -> int:
        """The first frame."""

    @property
    def stop(self) -> int:
        """One past the last frame."""

    @property
    def start_s(self) -> float:
        """When the first frame is shown."""

    @property
    def end_s(self) -> float:
        """When the last frame ends."""


def cut_clips(
    video: str | os.PathLike[str],
    parts: Sequence[Part],
    folder: Path | str,
    *,
    name: str | None = None,
    overwrite: bool = False,
    only_own: bool = False,
    progress: Counter = ignore,
) -> list[Path]:
    """Write each part of a video, with its sound, to a clip `NAME-01.mp4` and so on, frame by frame.

    Args:
        parts: in order, without overlap.
        folder: made if it is not there.
        name: the beginning of the names; default: that of the video file.
        only_own: replace a file only if it is as this program wrote it.
        progress: called with (clips written, clips in total).
    """
    info, written = probe(video), list[Path]()
    digits = max(2, len(str(len(parts))))
    stem = name or Path(video).stem
    paths = [Path(folder) / f"{stem}-{number:0{digits}d}.mp4" for number in range(1, len(parts) + 1)]
    for path in paths:
        check_output(path, overwrite=overwrite, inputs=[Path(video)], only_own=only_own)
    sounds = iter_audio(video, [(part.start_s, part.end_s) for part in parts]) if info.has_audio else None
    numbers = np.concatenate([np.empty(0, np.int64), *(np.arange(part.start, part.stop) for part in parts)])
    with closing(_read_images(video, numbers)) as images:
        for path, part in zip(paths, parts, strict=True):
            count = part.stop - part.start
            fps = count / (part.end_s - part.start_s) if info.is_variable_rate else info.fps
            audio = None if sounds is None else next(sounds)
            write_video(path, islice(images, count), fps=fps, audio=audio, overwrite=overwrite)
            written.append(path)
            progress(len(written), len(parts))
    return written


@dataclass(frozen=True)
class Shot:
    """Frames `start` to `stop` of an edited video, without the last, between two cuts."""

    start: int
    stop: int
    start_s: float
    end_s: float


def list_shots(video: str | os.PathLike[str], *, progress: Counter = ignore) -> list[Shot]:
    """Return the shots of a video in order; one if it has no cut.

    Args:
        progress: called with (frames done, frames of the video).
    """
    info, detector = probe(video), ShotDetector()
    clocks, cuts = list[NDArray[np.float64]](), list[int]()
    for chunk in iter_frames(video, max_side=MAX_SIDE):
        cuts += detector.push(chunk.frames)
        clocks.append(chunk.times)
        done = chunk.start + len(chunk.frames)
        progress(min(done, info.num_frames), info.num_frames)
    times = np.concatenate(clocks)
    edges = [0, *cuts, len(times)]
    seconds = [*times[[0, *cuts]].tolist(), max(info.duration_s, float(times[-1]))]
    return [Shot(*span, *clock) for span, clock in zip(pairwise(edges), pairwise(seconds), strict=True)]


def _read_images(video: str | os.PathLike[str], numbers: NDArray[np.int64]) -> Generator[NDArray[np.uint8]]:
    """Yield the frames (H, W, 3) with these numbers; only they are converted."""
    if len(numbers):
        for chunk in iter_frames(video, chunk_frames=CHUNK_FRAMES, numbers=numbers):
            yield from chunk.frames
