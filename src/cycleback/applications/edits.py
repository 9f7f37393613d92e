"""Write a pace as edit decisions for other programs.

These are a table, CMX 3600 edit lists, OpenTimelineIO, Final Cut Pro XML, or an ffmpeg script.

Shapes: T output frames, V videos.
"""

import math
import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cycleback.applications.pace import Pace, take_turns
from cycleback.applications.segments import Segment, Tracks, fit_tracks
from cycleback.applications.sync import CELL_HEIGHT, count_columns
from cycleback.applications.timelines import format_fcpxml, format_otio
from cycleback.errors import UserError
from cycleback.files import atomic_files, check_output, write_text
from cycleback.tables import write_table
from cycleback.video import VideoInfo, probe
from cycleback.video.writer import exact_rate

EDIT_SUFFIXES = (".csv", ".edl", ".otio", ".fcpxml", ".sh")
TIMELINES = {".otio": format_otio, ".fcpxml": format_fcpxml}
FIRST_HOUR = 1  # by custom, an edited programme starts at 01:00:00:00
REEL = "AX"  # the source is a file, not a tape
SCRIPT_LAYOUTS = ("grid", "row", "overlay", "switch")
MIN_SPEED = 1e-3  # ffmpeg cannot hold a frame for ever: a still segment is written as a very slow one
MAX_GRAPH_BYTES = 120_000  # Linux allows 128 kB per argument
SCRIPT = """\
#!/bin/sh
# {count} videos in sync. Usage: sh THIS_FILE [OUTPUT.mp4]; FFMPEG names the program to use.
set -eu
"${{FFMPEG:-ffmpeg}}" -hide_banner -loglevel warning -y \\
{inputs}
  -filter_complex '
{graph}
' \\
  -map '[out]' {sound} -r {rate} -t {seconds:.6f} \\
  -c:v libx264 -crf 20 -pix_fmt yuv420p -movflags +faststart \\
  "${{1:-synced.mp4}}"
"""


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
    """Write the edit decisions of what `write_synced` would show, and return the files.

    Args:
        path: ends in .csv (one row per output frame: the second of each video), .edl (a CMX 3600 edit list
            with speed changes: one per video, or one for all with layout "switch"), .otio, .fcpxml
            (timelines with one track per video) or .sh (ffmpeg).
        videos: the files of `pace.names`.
        columns: videos per row (.sh).
        height: pixels of each video (.sh).
        sound: whether to keep the reference's sound (.sh).
    """
    path = check_output(path, overwrite=overwrite, suffixes=EDIT_SUFFIXES, inputs=videos)
    turns = take_turns(*pace.sources.shape, switch_every=switch_every) if layout == "switch" else None
    suffix = path.suffix.lower()
    if suffix == ".csv":
        return [write_table(path, _tabulate_edits(pace, turns), overwrite=overwrite)]
    tracks = fit_tracks(pace, turns)
    if suffix == ".edl":
        return _write_edit_lists(path, tracks, pace, videos, overwrite=overwrite)
    if suffix in TIMELINES:
        infos = [probe(video) for video in videos]
        text = TIMELINES[suffix](tracks, videos, infos, fps=pace.fps, title=path.stem)
        return [write_text(path, text, overwrite=overwrite)]
    script = _format_ffmpeg_script(
        tracks,
        videos,
        fps=pace.fps,
        layout=layout,
        columns=columns,
        height=height,
        sound=sound,
        sound_start_s=float(pace.sources[0, 0]),
    )
    write_text(path, script, overwrite=overwrite).chmod(0o755)
    return [path]


def _tabulate_edits(pace: Pace, turns: NDArray[np.int64] | None = None) -> list[dict[str, Any]]:
    """Make one row per output frame: its second, the second of each video, and the video shown in `turns`."""
    return [
        {"output_seconds": round(float(second), 6)}
        | ({} if turns is None else {"shown": pace.names[turns[step]]})
        | {name: round(float(pace.sources[number, step]), 6) for number, name in enumerate(pace.names)}
        for step, second in enumerate(pace.seconds)
    ]


def _write_edit_lists(
    path: Path, tracks: Tracks, pace: Pace, videos: Sequence[Path], *, overwrite: bool
) -> list[Path]:
    """Write one edit list per track, because the format holds only one video track."""
    names = [name.replace("/", "_") for name in pace.names]
    files = [path] if len(tracks) == 1 else [path.with_stem(f"{path.stem}-{name}") for name in names]
    for file in files:
        check_output(file, overwrite=overwrite, inputs=videos)
    with atomic_files(path.parent, [file.name for file in files], overwrite=overwrite) as drafts:
        for draft, file, track in zip(drafts, files, tracks, strict=True):
            draft.write_text(format_edit_list(track, videos, fps=pace.fps, title=file.stem), "utf-8")
    return files


def format_edit_list(segments: Sequence[Segment], videos: Sequence[Path], *, fps: float, title: str) -> str:
    """Format a CMX 3600 edit list: one event per segment, with a line `M2` where its speed is not 1.

    Args:
        videos: the files that `Segment.video` counts.
        fps: frames per second of all time codes.
    """
    lines = [f"TITLE: {' '.join(title.split())}", "FCM: NON-DROP FRAME", ""]
    for number, segment in enumerate(segments, start=1):
        source = round(segment.source_start_s * fps)
        used = max(1, round(segment.source_end_s * fps) - source)  # an event uses at least one frame
        start, end = (FIRST_HOUR * 3600 * _code_rate(fps) + frame for frame in (segment.start, segment.end))
        codes = " ".join(format_time_code(frame, fps) for frame in (source, source + used, start, end))
        lines.append(f"{number:03d}  {REEL:<8} V     C        {codes}")
        if used != segment.end - segment.start:
            speed = segment.speed(fps) * fps
            lines.append(f"M2   {REEL:<8}       {speed:05.1f}                {format_time_code(source, fps)}")
        lines.append(f"* FROM CLIP NAME: {videos[segment.video].name}")
    return "\n".join([*lines, ""])


def format_time_code(frame: int, fps: float) -> str:
    """Format `frame` as hours:minutes:seconds:frames, counted at the nearest whole rate without drops.

    Examples:
        >>> format_time_code(3661 * 25 + 7, 25)
        '01:01:01:07'
    """
    seconds, rest = divmod(frame, _code_rate(fps))
    return f"{seconds // 3600 % 24:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}:{rest:02d}"


def _code_rate(fps: float) -> int:
    """Frames per second of a time code: 30 for 29.97."""
    return max(1, round(fps))


def _format_ffmpeg_script(
    tracks: Tracks,
    videos: Sequence[Path],
    *,
    fps: float,
    layout: str = "grid",
    columns: int | None = None,
    height: int | None = None,
    sound: bool = True,
    sound_start_s: float = 0.0,
) -> str:
    """Format a script of one ffmpeg command: trim and retime every segment, join the tracks, lay them out.

    Args:
        tracks: segments of each track, in order.
        videos: the files that `Segment.video` counts; the first gives the sound, from `sound_start_s` on.
    """
    if layout not in SCRIPT_LAYOUTS:
        raise UserError(f"no ffmpeg script for layout {layout!r}: expected {', '.join(SCRIPT_LAYOUTS)}")
    infos = [probe(path) for path in videos]
    low, high = CELL_HEIGHT
    tall = 2 * ((height or min(high, max(low, infos[0].height))) // 2)
    wide = 2 * max(math.ceil(info.aspect * tall / 2) for info in infos)
    rate = exact_rate(fps)
    steps = [*_copy_inputs(tracks, infos, size=(tall, wide)), *_trim_segments(tracks, infos, rate=rate)]
    steps += _join_tracks(tracks, rate=rate)
    steps.append(_lay_out(len(tracks), layout=layout, columns=columns, size=(tall, wide)))
    graph = ";\n".join(steps)
    if len(graph) > MAX_GRAPH_BYTES:
        raise UserError(
            f"an ffmpeg command for {len(videos)} videos has {len(graph)} characters, a shell allows "
            f"{MAX_GRAPH_BYTES}. Lower --most, or write the video itself."
        )
    inputs = [f"-i {shlex.quote(str(path.resolve()))}" for path in videos]
    heard, start = 0, float(sound_start_s)
    if start > 0:  # the sound of a part of the reference is an input of its own
        heard, inputs = len(videos), [*inputs, f"-ss {start:.6f} {inputs[0]}"]
    return SCRIPT.format(
        count=len(videos),
        inputs="\n".join(f"  {each} \\" for each in inputs),
        graph=graph,
        sound=f"-map '{heard}:a:0?' -c:a aac" if sound else "-an",
        rate=rate,
        seconds=(max(track[-1].end for track in tracks) - 0.5) / fps,  # ends between two frames
    )


def _copy_inputs(tracks: Tracks, infos: Sequence[VideoInfo], *, size: tuple[int, int]) -> Iterator[str]:
    """Scale each video into a cell of `size` (H, W), and split it into one copy per segment."""
    height, width = size
    fit = (
        f"scale={width}:{height}:force_original_aspect_ratio=decrease,"
        f"pad={width}:{height}:(ow-iw)/2:(oh-ih)/2,setsar=1"
    )
    uses = Counter(segment.video for track in tracks for segment in track)
    for video, count in sorted(uses.items()):
        copies = "".join(f"[v{video}c{copy}]" for copy in range(count))
        square = "" if infos[video].pixel_aspect == 1 else "scale=iw*sar:ih,"
        yield f"[{video}:v:0]setpts=PTS-STARTPTS,{square}{fit},split={count}{copies}"


def _trim_segments(tracks: Tracks, infos: Sequence[VideoInfo], *, rate: Fraction) -> Iterator[str]:
    """Cut out each segment, change its speed and pad it to its number of output frames."""
    used: Counter[int] = Counter()
    for number, track in enumerate(tracks):
        for place, segment in enumerate(track):
            copy, used[segment.video] = used[segment.video], used[segment.video] + 1
            half = 0.5 / infos[segment.video].fps  # keeps the frame nearest to a cut, on either side of it
            start, end = max(0.0, segment.source_start_s - half), segment.source_end_s + half
            slowdown = 1 / max(MIN_SPEED, segment.speed(float(rate)))
            count = segment.end - segment.start
            yield (
                f"[v{segment.video}c{copy}]trim=start={start:.6f}:end={end:.6f},"
                f"setpts=max(0\\,(PTS-{segment.source_start_s:.6f}/TB)*{slowdown:.6f}),"
                f"fps={rate}:start_time=0,tpad=stop_mode=clone:stop={count},trim=end_frame={count}"
                f"[t{number}p{place}]"
            )


def _join_tracks(tracks: Tracks, *, rate: Fraction) -> Iterator[str]:
    """Concatenate the segments of each track and renumber their frames."""
    for number, track in enumerate(tracks):
        parts = "".join(f"[t{number}p{place}]" for place in range(len(track)))
        yield f"{parts}concat=n={len(track)}:v=1:a=0,setpts=N/({rate})/TB[t{number}]"


def _lay_out(count: int, *, layout: str, columns: int | None, size: tuple[int, int]) -> str:
    """Combine all tracks in one picture."""
    inputs = "".join(f"[t{number}]" for number in range(count))
    if count == 1:
        return f"{inputs}null[out]"
    if layout == "overlay":
        return f"{inputs}mix=inputs={count}[out]"
    across = columns or count_columns(count, layout=layout)
    if across >= count:
        return f"{inputs}hstack=inputs={count}[out]"
    height, width = size
    places = "|".join(f"{n % across * width}_{n // across * height}" for n in range(count))
    return f"{inputs}xstack=inputs={count}:layout={places}:fill=black[out]"
