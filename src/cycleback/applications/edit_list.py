"""CMX 3600 edit lists: plain text that editing programs have read for forty years."""

from collections.abc import Sequence
from pathlib import Path

from cycleback.applications.segments import Segment

FIRST_HOUR = 1  # by custom, the edited programme starts at 01:00:00:00
REEL = "AX"  # a file, not a tape


def edit_list(segments: Sequence[Segment], videos: Sequence[Path], *, fps: float, title: str) -> str:
    """The text of an edit list: an event a segment, with a line `M2` where its speed is not 1.

    Args:
        videos: the files that `Segment.video` counts.
        fps: frames a second of the list, in which all its time codes count.
    """
    lines = [f"TITLE: {' '.join(title.split())}", "FCM: NON-DROP FRAME", ""]
    for number, segment in enumerate(segments, start=1):
        source = round(segment.source_start_s * fps)
        used = max(1, round(segment.source_end_s * fps) - source)  # an event uses a frame at least
        start, end = (FIRST_HOUR * 3600 * _base(fps) + frame for frame in (segment.start, segment.end))
        codes = " ".join(time_code(frame, fps) for frame in (source, source + used, start, end))
        lines.append(f"{number:03d}  {REEL:<8} V     C        {codes}")
        if used != segment.end - segment.start:
            speed = segment.speed(fps) * fps
            lines.append(f"M2   {REEL:<8}       {speed:05.1f}                {time_code(source, fps)}")
        lines.append(f"* FROM CLIP NAME: {videos[segment.video].name}")
    return "\n".join([*lines, ""])


def time_code(frame: int, fps: float) -> str:
    """`frame` as hours:minutes:seconds:frames, counted at the next whole rate without drops.

    Example:
        >>> time_code(3661 * 25 + 7, 25)
        '01:01:01:07'
    """
    seconds, rest = divmod(frame, _base(fps))
    return f"{seconds // 3600 % 24:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}:{rest:02d}"


def _base(fps: float) -> int:
    """Frames that a time code counts as a second: 30 for 29.97."""
    return max(1, round(fps))
