"""BORIS project (.boris, JSON): observations of media files with point and state events in seconds.

An event is [time, subject, behaviour, modifier, comment]. Whether a behaviour is a point or a state stands in
the project's ethogram; the two ends of a state are two events, paired by subject, behaviour and modifier. A
confidence is kept in the comment. An observation is of the one video in player 1; live ones are left out.
"""

from collections.abc import Sequence
from typing import Any

from cycleback.annotations.annotation import Annotation, Event, Moment, Segment, sorted_out, video_name
from cycleback.annotations.cursor import Cursor, dump_json, parse_json
from cycleback.annotations.format import Format
from cycleback.errors import DataError

POINT, STATE = "Point event", "State event"
SURE = "confidence "  # begins the comment
Key = tuple[str, str, str]


def read(text: str, place: str) -> list[Annotation]:
    """One annotation an observation of a media file."""
    root = parse_json(text, place)
    kinds = {each.at("code").text(): each.at("type").text() for _, each in root.at("behaviors_conf").items()}
    found = (_annotation(observation, kinds) for _, observation in root.at("observations").items())
    return [annotation for annotation in found if annotation is not None]


def _annotation(observation: Cursor, kinds: dict[str, str]) -> Annotation | None:
    players = observation.find("file")
    if players is None or not isinstance(players.value, dict) or not players.value.get("1"):
        return None
    files = [file.text() for file in players.each("1")]
    if len(files) > 1:
        raise DataError(
            f"{players.place}: {len(files)} videos in a row. Give each an observation of its own."
        )
    file = files[0]
    about = observation.find("media_info")
    fps, length = (about and about.find(key) for key in ("fps", "length"))
    return Annotation(
        video_name(file),
        *sorted_out(_labels(observation, kinds)),
        file=file,
        fps=fps.optional(file) if fps else None,
        duration=length.optional(file) if length else None,
    )


def _labels(observation: Cursor, kinds: dict[str, str]) -> list[Event | Segment]:
    labels: list[Event | Segment] = []
    running: dict[Key, tuple[float, Cursor]] = {}
    offset = observation.optional("time offset") or 0.0
    rows = [(list(event.each()), event) for event in observation.each("events")]
    for cells, event in rows:
        if len(cells) < 3:
            raise DataError(
                f"{event.place}: expected [time, subject, behaviour, ...], got {len(cells)} values"
            )
        time, name = cells[0].number() - offset, cells[2].text()
        if name not in kinds:
            raise DataError(f"{event.place}: behaviour {name!r} is not in the project's ethogram")
        key = (str(cells[1].value), name, str(cells[3].value) if len(cells) > 3 else "")
        if not kinds[name].lower().startswith("state"):
            labels.append(Event(name, Moment(time), _confidence(cells)))
        elif key in running:
            start, _ = running.pop(key)
            labels.append(Segment(name, Moment(start), Moment(time), _confidence(cells)))
        else:
            running[key] = (time, event)
    for (_, name, _), (_, event) in running.items():
        raise DataError(f"{event.place}: state {name!r} starts here and has no end")
    return labels


def _confidence(cells: Sequence[Cursor]) -> float | None:
    comment = str(cells[4].value) if len(cells) > 4 else ""
    return Cursor(comment.removeprefix(SURE), cells[4].place).number() if comment.startswith(SURE) else None


def write(annotations: Sequence[Annotation]) -> str:
    """A project with one observation a video, named like it."""
    points = {event.name: POINT for video in annotations for event in video.events}
    states = {each.name: STATE for video in annotations for each in video.segments}
    both = points.keys() & states.keys()
    if both:
        raise DataError(
            f"BORIS cannot have {min(both)!r} as a key event and as a segment: rename one of them"
        )
    behaviours = [_behaviour(name, kind) for name, kind in (points | states).items()]
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


def _behaviour(name: str, kind: str) -> dict[str, Any]:
    about = {"type": kind, "key": "", "code": name, "description": "", "category": ""}
    return about | {"modifiers": {}, "excluded": "", "coding map": ""}


def _observation(video: Annotation) -> dict[str, Any]:
    rows = [(video.seconds(event.at), event) for event in video.events]
    ends: list[tuple[float, Event | Segment]] = [*rows]
    for each in video.segments:
        ends += [(video.seconds(each.start), each), (video.seconds(each.end), each)]
    length = {} if video.length_s is None else {video.media: video.length_s}
    return {
        "file": {"1": [video.media]} | {str(player): [] for player in range(2, 9)},
        "type": "MEDIA",
        "date": "1970-01-01T00:00:00",
        "description": "",
        "time offset": 0.0,
        "events": [
            [time, "", label.name, "", _comment(label)]
            for time, label in sorted(ends, key=lambda end: end[0])
        ],
        "observation time interval": [0, 0],
        "independent_variables": {},
        "visualize_spectrogram": False,
        "visualize_waveform": False,
        "close_behaviors_between_videos": False,
        "media_info": {
            "length": length,
            "fps": {} if video.fps is None else {video.media: video.fps},
            "hasVideo": {video.media: True},
            "hasAudio": {video.media: False},
            "offset": {"1": 0.0},
        },
    }


def _comment(label: Event | Segment) -> str:
    return "" if label.confidence is None else f"{SURE}{label.confidence}"


FORMAT = Format("boris", (".boris", ".json"), read, write, marks=('"behaviors_conf"',))
