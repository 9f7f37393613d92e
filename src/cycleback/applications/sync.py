"""Play videos in sync: every video follows the pace of a reference.

Shapes: T output frames (the reference's own), N frames of a video.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from cycleback.alignment import align
from cycleback.embeddings import EmbeddingSet
from cycleback.errors import EmbeddingError
from cycleback.video import probe, read_audio, read_frames, tile, write_video

CHUNK_FRAMES = 32
Indices = NDArray[np.int64]


def reference_pace(
    embeddings: EmbeddingSet,
    names: Sequence[str],
    *,
    reference: str,
    method: Literal["nearest", "dtw"] = "dtw",
) -> list[Indices]:
    """For each named video, the frames (T,) to show beside the T frames of the reference."""
    length = len(embeddings[reference])
    return [
        np.arange(length)
        if name == reference
        else align(embeddings[reference], embeddings[name], method=method).indices
        for name in names
    ]


def own_pace(embeddings: EmbeddingSet, names: Sequence[str]) -> list[Indices]:
    """Each video as filmed, all started together; a shorter one holds its last frame."""
    longest = max(len(embeddings[name]) for name in names)
    return [np.minimum(np.arange(longest), len(embeddings[name]) - 1) for name in names]


def paths_of(embeddings: EmbeddingSet, names: Sequence[str]) -> list[Path]:
    """The video files of the named embeddings."""
    paths = {name: embeddings.path(name) for name in names}
    for name, path in paths.items():
        if path is None or not path.exists():
            raise EmbeddingError(
                f"the video of {name!r} is not at {path}. Embed the videos again where they are now."
            )
    return [path for path in paths.values() if path is not None]


def write_synced(
    output: Path | str,
    videos: Sequence[Path | str],
    indices: Sequence[Indices],
    *,
    captions: Sequence[str] | None = None,
    columns: int | None = None,
    height: int | None = None,
    fps: float | None = None,
    sound: bool = True,
    overwrite: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> Path:
    """Write one mp4 that shows frame `indices[k][t]` of `videos[k]` at output frame t.

    Args:
        videos: paths; the first is the reference, whose frame rate and sound the result keeps.
        indices: one array (T,) a video, all of one length.
        captions: a line under each video; default: the file names.
        columns: videos a row; default: a row for up to three, else a near-square grid.
        height: pixels a video is tall; default: the reference's height, at most 360.
        sound: keep the reference's sound track where it has one.
    """
    lengths = {len(chosen) for chosen in indices}
    if len(videos) != len(indices) or len(lengths) != 1:
        raise ValueError(
            f"{len(videos)} videos need {len(videos)} index arrays of one length, got {sorted(lengths)}"
        )
    paths = [Path(video) for video in videos]
    info = probe(paths[0])
    tall = height or min(info.height, 360)
    canvases = _canvases(
        paths, indices, captions=captions or [path.stem for path in paths], columns=columns, height=tall
    )
    audio = read_audio(paths[0]) if sound and info.has_audio else None
    return write_video(
        Path(output),
        _counted(canvases, lengths.pop(), progress),
        fps=fps or info.fps,
        audio=audio,
        overwrite=overwrite,
    )


def _canvases(
    paths: Sequence[Path],
    indices: Sequence[Indices],
    *,
    captions: Sequence[str],
    columns: int | None,
    height: int,
) -> Iterator[NDArray[np.uint8]]:
    sizes = [_cell_size(path, height) for path in paths]
    lasts = [max(1, probe(path).num_frames - 1) for path in paths]
    total = len(indices[0])
    for start in range(0, total, CHUNK_FRAMES):
        part = slice(start, start + CHUNK_FRAMES)
        clips = [
            read_frames(path, chosen[part], size=size)
            for path, chosen, size in zip(paths, indices, sizes, strict=True)
        ]
        for row in range(len(clips[0])):
            shown = [int(chosen[start + row]) for chosen in indices]
            yield tile(
                [clip[row] for clip in clips],
                columns=columns or _columns(len(paths)),
                captions=[f"{caption}  {frame}" for caption, frame in zip(captions, shown, strict=True)],
                progress=[frame / last for frame, last in zip(shown, lasts, strict=True)],
            )


def _cell_size(path: Path, height: int) -> tuple[int, int]:
    info = probe(path)
    return height, max(2, round(info.width * height / info.height))


def _columns(count: int) -> int:
    return count if count <= 3 else int(np.ceil(np.sqrt(count)))


def _counted(
    frames: Iterator[NDArray[np.uint8]], total: int, progress: Callable[[int, int], None] | None
) -> Iterator[NDArray[np.uint8]]:
    for done, frame in enumerate(frames, start=1):
        yield frame
        if progress is not None:
            progress(done, total)
