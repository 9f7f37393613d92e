"""The CSV table of labels: one row per event or segment. A dataset reads the same file as its labels.csv.

    video,event,frame            or any of these columns:
    video,event,frame,seconds,end_frame,end_seconds,confidence

`event` is the name. `frame` (counted from 0) and `seconds` say when; one of them is enough. A row with an end
is a segment. An empty cell means unknown.
"""

from collections.abc import Mapping, Sequence

from cycleback.annotations.annotation import Annotation, Event, Moment, Segment, sorted_out
from cycleback.annotations.cursor import Cursor
from cycleback.annotations.format import Format
from cycleback.errors import DataError
from cycleback.tables import format_table, parse_table

COLUMNS = ("video", "event", "frame", "seconds", "end_frame", "end_seconds", "confidence")


def read_rows(text: str, place: str) -> list[Cursor]:
    """Read the rows of a label table; each has a video, an event, and a frame or seconds.

    Numbers are not checked here, so that columns nobody uses may hold anything.
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


def read(text: str, place: str) -> list[Annotation]:
    """Read one annotation per video, in order of appearance."""
    labels: dict[str, list[Event | Segment]] = {}
    for row in read_rows(text, place):
        labels.setdefault(row.value["video"], []).append(_label(row))
    return [Annotation(video, *sorted_out(found)) for video, found in labels.items()]


def _label(row: Cursor) -> Event | Segment:
    name, confidence = row.value["event"], row.optional("confidence")
    start = Moment(row.optional("seconds"), row.optional_whole("frame"))
    end_s, end_frame = row.optional("end_seconds"), row.optional_whole("end_frame")
    if end_s is None and end_frame is None:
        return Event(name, start, confidence)
    return Segment(name, start, Moment(end_s, end_frame), confidence)


def write(annotations: Sequence[Annotation]) -> str:
    """Write rows in order of time within each video; empty columns are left out."""
    videos = [[_row(each.video, label) for label in each.labels] for each in annotations]
    rows = [row for video in videos for row in sorted(video, key=_when)]
    used = [column for column in COLUMNS if column in COLUMNS[:2] or any(row[column] != "" for row in rows)]
    return format_table(used, [[row[column] for column in used] for row in rows])


def _row(video: str, label: Event | Segment) -> dict[str, object]:
    start = label.at if isinstance(label, Event) else label.start
    end = None if isinstance(label, Event) else label.end
    return {
        "video": video,
        "event": label.name,
        "frame": _cell(start.frame),
        "seconds": _cell(start.seconds),
        "end_frame": _cell(end.frame if end else None),
        "end_seconds": _cell(end.seconds if end else None),
        "confidence": _cell(label.confidence),
    }


def _cell(value: float | None) -> float | str:
    return "" if value is None else value


def _when(row: Mapping[str, object]) -> float:
    time = row["frame"] if row["seconds"] == "" else row["seconds"]
    return float(str(time))


FORMAT = Format("csv", (".csv", ".tsv"), read, write)
