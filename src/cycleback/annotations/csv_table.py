"""The project's own table: one row an event or segment, which a data set reads as its labels.csv.

    video,event,frame            or any of these further columns:
    video,event,frame,seconds,end_frame,end_seconds,confidence

`event` is the name, `frame` (from 0) and `seconds` say when; one of them is enough. A row with an end is a
segment. An empty cell is not known.
"""

import csv
import io
from collections.abc import Mapping, Sequence

from cycleback.annotations.annotation import Annotation, Event, Moment, Segment, sorted_out
from cycleback.annotations.cursor import Cursor
from cycleback.annotations.format import Format
from cycleback.errors import DataError

COLUMNS = ("video", "event", "frame", "seconds", "end_frame", "end_seconds", "confidence")
DELIMITERS = ",;\t"  # a spreadsheet saves "csv" with semicolons in half of Europe

Row = Mapping[str, str]


def read(text: str, place: str) -> list[Annotation]:
    """One annotation a video, in order of appearance."""
    found: dict[str, list[Event | Segment]] = {}
    for where, row in table_rows(text, place, ("video", "event")):
        here = Cursor(row, where)
        found.setdefault(here.at("video").text(), []).append(_label(here))
    return [Annotation(video, *sorted_out(labels)) for video, labels in found.items()]


def _label(row: Cursor) -> Event | Segment:
    name, confidence = row.at("event").text(), row.optional("confidence")
    start, end = _moment(row, "frame", "seconds"), _moment(row, "end_frame", "end_seconds")
    if start is None:
        raise DataError(f"{row.place}: no frame and no seconds. Expected columns video,event,frame.")
    return Event(name, start, confidence) if end is None else Segment(name, start, end, confidence)


def _moment(row: Cursor, frame: str, seconds: str) -> Moment | None:
    number, time = row.optional_whole(frame), row.optional(seconds)
    return None if number is None and time is None else Moment(time, number)


def write(annotations: Sequence[Annotation]) -> str:
    """Rows in order of time within each video; columns that nobody uses are left out."""
    videos = [[_row(each.video, label) for label in each.labels] for each in annotations]
    rows = [row for video in videos for row in sorted(video, key=_when)]
    used = [column for column in COLUMNS if column in COLUMNS[:2] or any(row[column] != "" for row in rows)]
    return table_text(used, rows)


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


def table_rows(text: str, place: str, columns: Sequence[str]) -> list[tuple[str, Row]]:
    """Rows below the first line that has all `columns`: (file and line, {column in lower case: text})."""
    for delimiter in DELIMITERS:
        lines = _lines(text, place, delimiter)
        headers = [at for at, (_, cells) in enumerate(lines) if set(columns) <= set(map(str.lower, cells))]
        if headers:
            header = [cell.lower() for cell in lines[headers[0]][1]]
            return [_row_of(header, cells, where) for where, cells in lines[headers[0] + 1 :]]
    first = text.partition("\n")[0].strip()
    raise DataError(f"{place}, line 1: no columns {','.join(columns)} in {first[:80]!r}")


def _lines(text: str, place: str, delimiter: str) -> list[tuple[str, list[str]]]:
    """The cells of each line that is not empty, and the place of it."""
    reader = csv.reader(io.StringIO(text.lstrip("\ufeff"), newline=""), delimiter=delimiter)
    try:
        lines = [(f"{place}, line {reader.line_num}", [cell.strip() for cell in cells]) for cells in reader]
    except csv.Error as error:
        raise DataError(f"{place}, line {reader.line_num}: not a table ({error})") from error
    return [(where, cells) for where, cells in lines if any(cells)]


def _row_of(header: list[str], cells: list[str], where: str) -> tuple[str, Row]:
    if len(cells) < len(header):
        raise DataError(f"{where}: {len(cells)} cells, expected {len(header)} {tuple(header)}")
    return where, dict(zip(header, cells, strict=False))


def table_text(columns: Sequence[str], rows: Sequence[Mapping[str, object]]) -> str:
    """The text of a table with a header."""
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, columns, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


FORMAT = Format("csv", (".csv", ".tsv"), read, write)
