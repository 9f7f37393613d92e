"""A shell script of one ffmpeg command that cuts, retimes and joins videos; to read, change and run."""

import math
import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path

from cycleback.applications.segments import Segment
from cycleback.applications.sync import CELL_HEIGHT
from cycleback.errors import UserError
from cycleback.video import VideoInfo, probe
from cycleback.video.writer import exact_rate

SCRIPT_LAYOUTS = ("grid", "row", "overlay", "switch")
SLOWEST = 1e-3  # a stretch that stands still is written as one that nearly does
LONGEST_BYTES = 120_000  # Linux takes 128 kB in one argument
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


def ffmpeg_script(
    tracks: Sequence[Sequence[Segment]],
    videos: Sequence[Path],
    *,
    fps: float,
    layout: str = "grid",
    columns: int | None = None,
    height: int | None = None,
    sound: bool = True,
) -> str:
    """The text of the script: every segment trimmed and retimed, joined to tracks, the tracks laid out.

    Args:
        tracks: segments of each track, in order.
        videos: the files that `Segment.video` counts; the first gives the sound.
    """
    if layout not in SCRIPT_LAYOUTS:
        raise UserError(f"no ffmpeg script for layout {layout!r}: expected {', '.join(SCRIPT_LAYOUTS)}")
    infos = [probe(path) for path in videos]
    low, high = CELL_HEIGHT
    tall = 2 * ((height or min(high, max(low, infos[0].height))) // 2)
    wide = 2 * max(math.ceil(info.width * tall / info.height / 2) for info in infos)
    steps = [*_copies(tracks, size=(tall, wide)), *_parts(tracks, infos, rate=exact_rate(fps))]
    steps += _joined(tracks, rate=exact_rate(fps))
    steps.append(_laid_out(len(tracks), layout=layout, columns=columns, size=(tall, wide)))
    graph = ";\n".join(steps)
    if len(graph) > LONGEST_BYTES:
        raise UserError(
            f"an ffmpeg command for {len(videos)} videos has {len(graph)} letters, a shell takes "
            f"{LONGEST_BYTES}. Lower --most, or write the video itself."
        )
    return SCRIPT.format(
        count=len(videos),
        inputs="\n".join(f"  -i {shlex.quote(str(path.resolve()))} \\" for path in videos),
        graph=graph,
        sound="-map '0:a:0?' -c:a aac" if sound else "-an",
        rate=exact_rate(fps),
        seconds=(max(track[-1].end for track in tracks) - 0.5) / fps,  # past the last frame, before another
    )


def _copies(tracks: Sequence[Sequence[Segment]], *, size: tuple[int, int]) -> Iterator[str]:
    """Each video scaled whole into a cell of `size` (H, W), with a copy for each of its segments."""
    height, width = size
    fit = (
        f"scale={width}:{height}:force_original_aspect_ratio=decrease,"
        f"pad={width}:{height}:(ow-iw)/2:(oh-ih)/2,setsar=1"
    )
    uses = Counter(segment.video for track in tracks for segment in track)
    for video, count in sorted(uses.items()):
        copies = "".join(f"[v{video}c{copy}]" for copy in range(count))
        yield f"[{video}:v:0]setpts=PTS-STARTPTS,{fit},split={count}{copies}"


def _parts(
    tracks: Sequence[Sequence[Segment]], infos: Sequence[VideoInfo], *, rate: Fraction
) -> Iterator[str]:
    """Each segment: its frames, at its speed, as many as it shall show."""
    used: Counter[int] = Counter()
    for number, track in enumerate(tracks):
        for place, segment in enumerate(track):
            copy, used[segment.video] = used[segment.video], used[segment.video] + 1
            half = 0.5 / infos[segment.video].fps  # the frame nearest to a cut, on either side of it
            start, end = max(0.0, segment.source_start_s - half), segment.source_end_s + half
            stretch = 1 / max(SLOWEST, segment.speed(float(rate)))
            count = segment.end - segment.start
            yield (
                f"[v{segment.video}c{copy}]trim=start={start:.6f}:end={end:.6f},"
                f"setpts=max(0\\,(PTS-{segment.source_start_s:.6f}/TB)*{stretch:.6f}),"
                f"fps={rate}:start_time=0,tpad=stop_mode=clone:stop={count},trim=end_frame={count}"
                f"[t{number}p{place}]"
            )


def _joined(tracks: Sequence[Sequence[Segment]], *, rate: Fraction) -> Iterator[str]:
    """Each track: its segments one after another, and their frames counted anew."""
    for number, track in enumerate(tracks):
        parts = "".join(f"[t{number}p{place}]" for place in range(len(track)))
        yield f"{parts}concat=n={len(track)}:v=1:a=0,setpts=N/({rate})/TB[t{number}]"


def _laid_out(count: int, *, layout: str, columns: int | None, size: tuple[int, int]) -> str:
    """All tracks in one picture."""
    inputs = "".join(f"[t{number}]" for number in range(count))
    if count == 1:
        return f"{inputs}null[out]"
    if layout == "overlay":
        return f"{inputs}mix=inputs={count}[out]"
    across = columns or (count if count <= 3 or layout == "row" else math.ceil(math.sqrt(count)))
    if across >= count:
        return f"{inputs}hstack=inputs={count}[out]"
    height, width = size
    places = "|".join(f"{n % across * width}_{n // across * height}" for n in range(count))
    return f"{inputs}xstack=inputs={count}:layout={places}:fill=black[out]"
