"""Label formats of plain lines: the CSV table of a dataset, and one label per frame.

The table has one row per event or segment. A dataset reads the same file as its labels.csv:

    video,event,frame            or any of these columns:
    video,event,frame,seconds,end_frame,end_seconds,confidence

`event` is the name. `frame` (counted from 0) and `seconds` say when; one of them is enough. A row with an end
is a segment. An empty cell means unknown.

The format "frames" comes from action segmentation datasets: one line per frame, one file per video. Frames
without a label say "background". It cannot hold key events: if a video has events and no segments, each event
opens a segment that lasts until the next event.
"""

import warnings
from collections.abc import Sequence
from itertools import groupby, pairwise

from cycleback.annotations.annotation import (
    Annotation,
    Event,
    Moment,
    Segment,
    make_label,
    split_labels,
    video_name,
)
from cycleback.errors import DataError
from cycleback.reading import Cursor
from cycleback.tables import format_csv, parse_table

COLUMNS = ("video", "event", "frame", "seconds", "end_frame", "end_seconds", "confidence")
BACKGROUND = "background"


def read_rows(text: str, place: str) -> list[Cursor]:
    """Read the rows of a label table; each has a video, an event, and a frame or seconds.

    Numbers are not checked here, so unused columns may hold anything.
    """
    rows = [Cursor(row, f"{place}, line {line}") for line, row in parse_table(text, place, COLUMNS[:2])]
    for row in rows:
        row.at("video").text()
        row.at("event").text()
        if not row.value.get("frame") and not row.value.get("seconds"):
            raise DataError(
                f"{row.place}: no frame and no seconds, only {','.join(row.value)}. "
                "Expected columns video,event,frame or video,event,seconds."
            )
    return rows


def read_csv(text: str, place: str) -> list[Annotation]:
    """Read one annotation per video, in order of appearance."""
    labels: dict[str, list[Event | Segment]] = {}
    for row in read_rows(text, place):
        start, end = _moment(row, "frame", "seconds"), _moment(row, "end_frame", "end_seconds")
        assert start is not None  # read_rows has checked it
        label = make_label(row.value["event"], start, end, row.optional_number("confidence"))
        labels.setdefault(row.value["video"], []).append(label)
    return [Annotation(video, *split_labels(found)) for video, found in labels.items()]


def _moment(row: Cursor, frame: str, seconds: str) -> Moment | None:
    number, time = row.optional_integer(frame), row.optional_number(seconds)
    return None if number is None and time is None else Moment(time, number)


def write_csv(annotations: Sequence[Annotation]) -> str:
    """Write rows in order of time within each video; columns without any value are left out."""
    rows = []
    for video in annotations:
        cells = [_cells(video.video, label) for label in video.labels]
        rows += sorted(cells, key=lambda row: row.get("seconds", row.get("frame", 0)))
    used = {key for row in rows for key in row} | set(COLUMNS[:2])
    return format_csv(rows, columns=[column for column in COLUMNS if column in used])


def _cells(video: str, label: Event | Segment) -> dict[str, str | float]:
    """Return the cells of a row that have a value."""
    start, end = (label.at, None) if isinstance(label, Event) else (label.start, label.end)
    values = {
        "video": video,
        "event": label.name,
        "frame": start.frame,
        "seconds": start.seconds,
        "end_frame": end.frame if end else None,
        "end_seconds": end.seconds if end else None,
        "confidence": label.confidence,
    }
    return {column: value for column, value in values.items() if value is not None}


def read_frames(text: str, place: str) -> list[Annotation]:
    """Read runs of equal lines as segments; the video is named after the file."""
    lines = [line.strip() for line in text.removeprefix("\ufeff").rstrip().splitlines()]
    if "" in lines or not lines:
        raise DataError(f"{place}, line {lines.index('') + 1 if lines else 1}: empty, expected a label")
    segments, start = [], 0
    for name, run in groupby(lines):
        end = start + len(list(run))
        if name != BACKGROUND:
            segments.append(Segment(name, Moment(frame=start), Moment(frame=end)))
        start = end
    return [Annotation(video_name(place), segments=tuple(segments), num_frames=len(lines))]


def write_frames(annotations: Sequence[Annotation]) -> str:
    """Write the label of each frame of one video; where segments overlap, the later one counts."""
    (video,) = annotations
    if video.num_frames is None:
        raise DataError(f"{video.video}: one label per frame needs the number of frames, which is unknown")
    segments = [(each.name, video.frame(each.start), video.frame(each.end)) for each in video.segments]
    if not segments:
        events = sorted(video.events, key=lambda event: video.frame(event.at))
        edges = [*(video.frame(event.at) for event in events), video.num_frames]
        names = [event.name for event in events]
        for event, (start, end) in zip(events, pairwise(edges), strict=True):
            if start == end:
                warnings.warn(
                    f"{video.video}: {event.name!r} is left out, as another event is at its frame {start}, "
                    "and the format 'frames' has one label per frame",
                    stacklevel=2,
                )
        segments = [(name, *edge) for name, edge in zip(names, pairwise(edges), strict=True)]
    lines = [BACKGROUND] * video.num_frames
    for name, start, end in segments:
        lines[start:end] = [name] * len(lines[start:end])
    return "\n".join(lines) + "\n"
