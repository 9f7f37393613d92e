"""One label a line, one line a frame, one file a video: the format of action segmentation data sets.

Frames without a label say "background". Key events have no place in it: where a video has events and no
segments, each event opens a stretch that bears its name and lasts until the next.
"""

from collections.abc import Sequence
from itertools import groupby

from cycleback.annotations.annotation import Annotation, Moment, Segment, video_name
from cycleback.annotations.format import Format
from cycleback.errors import DataError

BACKGROUND = "background"


def read(text: str, place: str) -> list[Annotation]:
    """The stretches of equal lines; the video has the name of the file."""
    lines = [line.strip() for line in text.lstrip("\ufeff").rstrip().splitlines()]
    if "" in lines or not lines:
        raise DataError(f"{place}, line {lines.index('') + 1 if lines else 1}: empty, expected a label")
    segments, start = [], 0
    for name, run in groupby(lines):
        end = start + len(list(run))
        if name != BACKGROUND:
            segments.append(Segment(name, Moment(frame=start), Moment(frame=end)))
        start = end
    return [Annotation(video_name(place), segments=tuple(segments), num_frames=len(lines))]


def write(annotations: Sequence[Annotation]) -> str:
    """The label of each frame of one video; where segments overlap, the later one counts."""
    (video,) = annotations
    if video.num_frames is None:
        raise DataError(f"{video.video}: one label a frame needs the number of frames, which is not known")
    lines = [BACKGROUND] * video.num_frames
    for name, start, end in _stretches(video, video.num_frames):
        lines[start:end] = [name] * len(lines[start:end])
    return "\n".join(lines) + "\n"


def _stretches(video: Annotation, num_frames: int) -> list[tuple[str, int, int]]:
    if video.segments:
        return [(each.name, video.frame(each.start), video.frame(each.end)) for each in video.segments]
    events = sorted(video.events, key=lambda event: video.frame(event.at))
    starts = [video.frame(event.at) for event in events]
    ends = [*starts[1:], num_frames]
    return [(event.name, start, end) for event, start, end in zip(events, starts, ends, strict=False)]


FORMAT = Format("frames", (".txt",), read, write, one_video=True)
