"""Tables of events that BORIS exports: aggregated (a row a state, with start and stop) or one row an end.

Both kinds are read, with whichever of the column names the versions of BORIS have used, and after whatever
lines stand before the header. Written is the aggregated kind.
"""

from collections.abc import Sequence
from typing import Any

from cycleback.annotations.annotation import Annotation, Event, Moment, Segment, sorted_out, video_name
from cycleback.annotations.boris import SURE
from cycleback.annotations.cursor import Cursor
from cycleback.annotations.format import Format
from cycleback.errors import DataError
from cycleback.tables import format_table, parse_table

MEDIA = ("media file name", "media file", "media file path", "source")
COMMENTS = ("comment start", "comment")
LENGTHS = ("total length", "media duration (s)")
COLUMNS = (
    "Observation id",
    "Media file name",
    "Total length",
    "FPS",
    "Subject",
    "Behavior",
    "Behavioral category",
    "Behavior type",
    "Start (s)",
    "Stop (s)",
    "Duration (s)",
    "Comment start",
    "Comment stop",
)


def read(text: str, place: str) -> list[Annotation]:
    """One annotation a media file."""
    rows = [Cursor(row, f"{place}, line {line}") for line, row in parse_table(text, place, ("behavior",))]
    by_file: dict[str, list[Cursor]] = {}
    for row in rows:
        by_file.setdefault(_first(row, MEDIA).text(), []).append(row)
    return [_annotation(file, found) for file, found in by_file.items()]


def _annotation(file: str, rows: list[Cursor]) -> Annotation:
    head = rows[0]
    length = next((head.optional(column) for column in LENGTHS if column in head.value), None)
    labels = _whole_rows(rows) if "start (s)" in head.value else _paired_rows(rows)
    return Annotation(
        video_name(file), *sorted_out(labels), file=file, fps=head.optional("fps"), duration=length
    )


def _whole_rows(rows: list[Cursor]) -> list[Event | Segment]:
    labels: list[Event | Segment] = []
    for row in rows:
        name, start = row.at("behavior").text(), Moment(row.at("start (s)").number())
        if row.at("behavior type").text().upper() == "POINT":
            labels.append(Event(name, start, _confidence(row)))
        else:
            labels.append(Segment(name, start, Moment(row.at("stop (s)").number()), _confidence(row)))
    return labels


def _paired_rows(rows: list[Cursor]) -> list[Event | Segment]:
    labels: list[Event | Segment] = []
    running: dict[tuple[str, str], tuple[float, Cursor]] = {}
    for row in rows:
        name, time = row.at("behavior").text(), _first(row, ("time", "time (s)")).number()
        status = _first(row, ("status", "behavior type")).text().upper()
        key = (str(row.value.get("subject", "")), name)
        if status == "POINT":
            labels.append(Event(name, Moment(time), _confidence(row)))
        elif key in running:
            start, _ = running.pop(key)
            labels.append(Segment(name, Moment(start), Moment(time), _confidence(row)))
        else:
            running[key] = (time, row)
    for (_, name), (_, row) in running.items():
        raise DataError(f"{row.place}: state {name!r} starts here and has no end")
    return labels


def _first(row: Cursor, columns: Sequence[str]) -> Cursor:
    for column in columns:
        if row.value.get(column):
            return row.at(column)
    raise DataError(f"{row.place}: no {columns[0]!r} here, only {','.join(row.value)}")


def _confidence(row: Cursor) -> float | None:
    comment = next((row.value[column] for column in COMMENTS if row.value.get(column)), "")
    return Cursor(comment.removeprefix(SURE), row.place).number() if comment.startswith(SURE) else None


def write(annotations: Sequence[Annotation]) -> str:
    """The aggregated table."""
    rows = [row for video in annotations for row in _rows(video)]
    return format_table(COLUMNS, [[row.get(column, "") for column in COLUMNS] for row in rows])


def _rows(video: Annotation) -> list[dict[str, Any]]:
    about = {"Observation id": video.video, "Media file name": video.media, "Subject": "No focal subject"}
    about |= {"Total length": "" if video.length_s is None else str(video.length_s)}
    about |= {"FPS": "" if video.fps is None else str(video.fps)}
    points = [
        about | _row(event, "POINT", video.seconds(event.at), video.seconds(event.at))
        for event in video.events
    ]
    return points + [
        about | _row(each, "STATE", video.seconds(each.start), video.seconds(each.end))
        for each in video.segments
    ]


def _row(label: Event | Segment, kind: str, start: float, stop: float) -> dict[str, Any]:
    return {
        "Behavior": label.name,
        "Behavior type": kind,
        "Start (s)": start,
        "Stop (s)": stop,
        "Duration (s)": stop - start if kind == "STATE" else "NA",
        "Comment start": "" if label.confidence is None else f"{SURE}{label.confidence}",
    }


FORMAT = Format("boris-events", (".csv", ".tsv"), read, write, marks=("Behavior type", "Behavioral category"))
