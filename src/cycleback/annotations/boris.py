"""BORIS: the project file (.boris, JSON) and the table of events that it exports (.csv, .tsv).

In a project, an event is [time, subject, behaviour, modifier, comment]. The project's ethogram says whether a
behaviour is a point or a state. The two ends of a state are two events, paired by subject, behaviour and
modifier. An observation must be of one video, in player 1; live observations are left out.

A table is aggregated (one row per state, with start and stop) or has one row per end of a state. Both kinds
are read, with all column names that versions of BORIS have used. The aggregated kind is written.

The confidence of a label is kept in its comment.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from cycleback.annotations.annotation import Annotation, Event, Moment, Segment, make_label
from cycleback.annotations.json_formats import dump_json
from cycleback.errors import DataError
from cycleback.reading import Cursor, parse_json
from cycleback.tables import format_csv, parse_table

POINT, STATE = "Point event", "State event"
CONFIDENCE = "confidence "  # starts the comment
MEDIA = ("media file name", "media file", "media file path", "source")
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


@dataclass(frozen=True)
class _Mark:
    """A point event, or one end of a state."""

    key: tuple[str, ...]  # equal for the two ends of a state
    name: str
    time: float
    is_state: bool
    comment: str
    place: str


def _pair_states(marks: Iterable[_Mark]) -> list[Event | Segment]:
    """Make a key event of every point, and a segment of the two ends of every state."""
    labels: list[Event | Segment] = []
    running: dict[tuple[str, ...], _Mark] = {}
    for mark in marks:
        if not mark.is_state:
            labels.append(
                make_label(mark.name, Moment(mark.time), None, _confidence(mark.comment, mark.place))
            )
        elif start := running.pop(mark.key, None):
            confidence = _confidence(mark.comment, mark.place)
            labels.append(Segment(mark.name, Moment(start.time), Moment(mark.time), confidence))
        else:
            running[mark.key] = mark
    for mark in running.values():
        raise DataError(f"{mark.place}: state {mark.name!r} starts here and has no end")
    return labels


def _confidence(comment: str, place: str) -> float | None:
    if not comment.startswith(CONFIDENCE):
        return None
    return Cursor(comment.removeprefix(CONFIDENCE), place).number()


def _comment(label: Event | Segment) -> str:
    return "" if label.confidence is None else f"{CONFIDENCE}{label.confidence}"


def read_project(text: str, place: str) -> list[Annotation]:
    """Read one annotation per observation of a media file."""
    root = parse_json(text, place)
    kinds = {each.at("code").text(): each.at("type").text() for _, each in root.at("behaviors_conf").items()}
    found = (_read_observation(observation, kinds) for _, observation in root.at("observations").items())
    return [annotation for annotation in found if annotation is not None]


def _read_observation(observation: Cursor, kinds: dict[str, str]) -> Annotation | None:
    players = observation.find("file")
    if players is None or not isinstance(players.value, dict) or not players.value.get("1"):
        return None
    files = [file.text() for file in players.each("1")]
    if len(files) > 1:
        raise DataError(f"{players.place}: {len(files)} videos in a row. Give each one its own observation.")
    info = observation.find("media_info")
    fps, length = (info and info.find(key) for key in ("fps", "length"))
    offset = observation.optional_number("time offset") or 0.0
    return Annotation.of_file(
        files[0],
        _pair_states(_read_mark(event, kinds, offset) for event in observation.each("events")),
        fps=fps.optional_positive(files[0]) if fps else None,
        duration=length.optional_number(files[0]) if length else None,
    )


def _read_mark(event: Cursor, kinds: dict[str, str], offset: float) -> _Mark:
    cells = list(event.each())
    if len(cells) < 3:
        raise DataError(f"{event.place}: expected [time, subject, behaviour, ...], got {len(cells)} values")
    time, name = cells[0].number() - offset, cells[2].text()
    if name not in kinds:
        raise DataError(f"{event.place}: behaviour {name!r} is not in the project's ethogram")
    subject, modifier, comment = (_word(cells[at]) if len(cells) > at else "" for at in (1, 3, 4))
    is_state = kinds[name].lower().startswith("state")
    return _Mark((subject, name, modifier), name, time, is_state, comment, event.place)


def _word(cell: Cursor) -> str:
    return "" if cell.value in (None, "") else cell.word()


def write_project(annotations: Sequence[Annotation]) -> str:
    """Write a project with one observation per video, named after it."""
    points = {event.name: POINT for video in annotations for event in video.events}
    states = {each.name: STATE for video in annotations for each in video.segments}
    if both := points.keys() & states.keys():
        raise DataError(
            f"BORIS cannot have {min(both)!r} as a key event and as a segment: rename one of them"
        )
    blank = {"description": "", "category": "", "modifiers": {}, "excluded": "", "coding map": ""}
    kinds = (points | states).items()
    behaviours = [{"type": kind, "key": "", "code": name, **blank} for name, kind in kinds]
    return dump_json(
        {
            "time_format": "hh:mm:ss",
            "project_date": "1970-01-01T00:00:00",
            "project_name": "cycleback",
            "project_description": "",
            "project_format_version": "7.0",
            "subjects_conf": {},
            "behaviors_conf": {str(number): each for number, each in enumerate(behaviours)},
            "observations": {video.video: _observation(video) for video in annotations},
            "behavioral_categories": [],
            "independent_variables": {},
            "coding_map": {},
            "behaviors_coding_map": [],
            "converters": {},
        }
    )


def _observation(video: Annotation) -> dict[str, Any]:
    marks = []
    for label, start, end in video.spans():
        times = (start,) if isinstance(label, Event) else (start, end)
        marks += [[time, "", label.name, "", _comment(label)] for time in times]
    return {
        "file": {"1": [video.media]} | {str(player): [] for player in range(2, 9)},
        "type": "MEDIA",
        "date": "1970-01-01T00:00:00",
        "description": "",
        "time offset": 0.0,
        "events": sorted(marks, key=lambda mark: mark[0]),
        "observation time interval": [0, 0],
        "independent_variables": {},
        "visualize_spectrogram": False,
        "visualize_waveform": False,
        "close_behaviors_between_videos": False,
        "media_info": {
            "length": {video.media: video.length_s},
            "fps": {video.media: video.fps},
            "hasVideo": {video.media: True},
            "hasAudio": {video.media: False},
            "offset": {"1": 0.0},
        },
    }


def read_events(text: str, place: str) -> list[Annotation]:
    """Read one annotation per media file of an exported table."""
    by_file: dict[str, list[Cursor]] = {}
    for line, cells in parse_table(text, place, ("behavior",)):
        row = Cursor(cells, f"{place}, line {line}")
        by_file.setdefault(_first(row, MEDIA).text(), []).append(row)
    annotations = []
    for file, rows in by_file.items():
        head = rows[0]
        is_aggregated = "start (s)" in head.value
        labels = [_read_row(row) for row in rows] if is_aggregated else _pair_states(map(_read_end, rows))
        length = "total length" if "total length" in head.value else "media duration (s)"
        duration = head.optional_number(length)
        annotations.append(
            Annotation.of_file(file, labels, fps=head.optional_positive("fps"), duration=duration)
        )
    return annotations


def _read_row(row: Cursor) -> Event | Segment:
    name, start = row.at("behavior").text(), Moment(row.at("start (s)").number())
    is_point = row.at("behavior type").text().upper() == "POINT"
    end = None if is_point else Moment(row.at("stop (s)").number())
    return make_label(name, start, end, _confidence(_row_comment(row), row.place))


def _read_end(row: Cursor) -> _Mark:
    name, time = row.at("behavior").text(), _first(row, ("time", "time (s)")).number()
    is_state = _first(row, ("status", "behavior type")).text().upper() != "POINT"
    return _Mark((row.value.get("subject", ""), name), name, time, is_state, _row_comment(row), row.place)


def _row_comment(row: Cursor) -> str:
    return row.value.get("comment start") or row.value.get("comment") or ""


def _first(row: Cursor, columns: Sequence[str]) -> Cursor:
    """Return the first cell of `columns` that is not empty."""
    for column in columns:
        if row.value.get(column):
            return row.at(column)
    raise DataError(f"{row.place}: no {columns[0]!r} here, only {','.join(row.value)}")


def write_events(annotations: Sequence[Annotation]) -> str:
    """Write the aggregated table."""
    rows = []
    for video in annotations:
        for label, start, end in video.spans():
            is_point = isinstance(label, Event)
            rows.append(
                {
                    "Observation id": video.video,
                    "Media file name": video.media,
                    "Total length": video.length_s,
                    "FPS": video.fps,
                    "Subject": "No focal subject",
                    "Behavior": label.name,
                    "Behavior type": "POINT" if is_point else "STATE",
                    "Start (s)": start,
                    "Stop (s)": end,
                    "Duration (s)": "NA" if is_point else end - start,
                    "Comment start": _comment(label),
                }
            )
    return format_csv(rows, columns=COLUMNS)
