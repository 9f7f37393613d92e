"""A pace as decisions for other programs: which stretch of which video plays when, and how fast.

Shapes: T output frames, V videos.
"""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cycleback.applications.edit_list import edit_list
from cycleback.applications.ffmpeg_script import ffmpeg_script
from cycleback.applications.pace import Pace
from cycleback.applications.segments import Segment, fit_segments
from cycleback.applications.sync import shown_in_turns
from cycleback.files import check_output, write_table, write_text

EDIT_SUFFIXES = (".csv", ".edl", ".sh")


def write_edits(
    path: Path | str,
    pace: Pace,
    videos: Sequence[Path],
    *,
    layout: str = "grid",
    switch_every: int = 30,
    columns: int | None = None,
    height: int | None = None,
    sound: bool = True,
    overwrite: bool = False,
) -> list[Path]:
    """Write what `write_synced` would show as decisions only, and return the files.

    Args:
        path: ends in .csv (a row an output frame: the second of each video), .edl (a CMX 3600 edit list with
            speed changes: one for each video, or one for all with layout "switch") or .sh (ffmpeg).
        videos: the files of `pace.names`.
        columns: videos a row (.sh).
        height: pixels a video is tall (.sh).
        sound: whether the reference's sound is kept (.sh).
    """
    path = check_output(path, overwrite=overwrite, suffixes=EDIT_SUFFIXES)
    turns = shown_in_turns(*pace.sources.shape, switch_every=switch_every) if layout == "switch" else None
    suffix = path.suffix.lower()
    if suffix == ".csv":
        return [write_table(path, edit_rows(pace, turns), overwrite=overwrite)]
    tracks = edit_tracks(pace, turns)
    if suffix == ".edl":
        return _write_lists(path, tracks, pace, videos, overwrite=overwrite)
    script = ffmpeg_script(
        tracks, videos, fps=pace.fps, layout=layout, columns=columns, height=height, sound=sound
    )
    write_text(path, script, overwrite=overwrite).chmod(0o755)
    return [path]


def edit_rows(pace: Pace, turns: NDArray[np.int64] | None = None) -> list[dict[str, Any]]:
    """One row an output frame: its second, the second of each video, and whose turn it is."""
    return [
        {"output_seconds": round(float(second), 6)}
        | ({} if turns is None else {"shown": pace.names[turns[step]]})
        | {name: round(float(pace.sources[number, step]), 6) for number, name in enumerate(pace.names)}
        for step, second in enumerate(pace.seconds)
    ]


def edit_tracks(pace: Pace, turns: NDArray[np.int64] | None = None) -> list[list[Segment]]:
    """The stretches of each video; or, of videos shown in `turns` (T,), of all of them in one track."""
    if turns is None:
        return [
            fit_segments(source, video=number, fps=pace.fps) for number, source in enumerate(pace.sources)
        ]
    cuts = [0, *(np.flatnonzero(np.diff(turns)) + 1).tolist(), len(turns)]
    track: list[Segment] = []
    for start, end in pairwise(cuts):
        number = int(turns[start])
        track += fit_segments(pace.sources[number, start:end], video=number, fps=pace.fps, first=start)
    return [track]


def _write_lists(
    path: Path,
    tracks: Sequence[Sequence[Segment]],
    pace: Pace,
    videos: Sequence[Path],
    *,
    overwrite: bool,
) -> list[Path]:
    """One edit list a track: the format has room for one track of pictures."""
    names = [name.replace("/", "_") for name in pace.names]
    files = [path] if len(tracks) == 1 else [path.with_stem(f"{path.stem}-{name}") for name in names]
    for file in files:
        check_output(file, overwrite=overwrite)
    for file, track in zip(files, tracks, strict=True):
        write_text(file, edit_list(track, videos, fps=pace.fps, title=file.stem), overwrite=overwrite)
    return files
