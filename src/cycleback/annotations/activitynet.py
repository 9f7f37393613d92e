"""ActivityNet JSON: the format of temporal action detection.

    {"database": {video: {"duration": s, "annotations": [{"segment": [start, end], "label": name}]}}}

Files without the outer layer, with `duration_second` (as mmaction2 reads them), are read too. The format
knows stretches only: a key event is a segment that ends where it starts. `score`, from its result files, is
the confidence.
"""

from collections.abc import Sequence
from typing import Any

from cycleback.annotations.annotation import Annotation, Event, Moment, Segment, sorted_out
from cycleback.annotations.cursor import Cursor, dump_json, parse_json
from cycleback.annotations.format import Format
from cycleback.errors import DataError


def read(text: str, place: str) -> list[Annotation]:
    """Every video of the data base, or of the file."""
    root = parse_json(text, place)
    return [_annotation(name, video) for name, video in (root.find("database") or root).items()]


def _annotation(name: str, video: Cursor) -> Annotation:
    labels = [_label(item) for item in video.each("annotations")]
    duration = video.optional("duration") or video.optional("duration_second")
    return Annotation(name, *sorted_out(labels), duration=duration)


def _label(item: Cursor) -> Event | Segment:
    name, score = item.at("label").text(), item.optional("score")
    times = [time.number() for time in item.at("segment").each()]
    if len(times) != 2:
        raise DataError(f"{item.place}, segment: expected [start, end] in seconds, got {times}")
    start, end = Moment(times[0]), Moment(times[1])
    return Event(name, start, score) if times[0] == times[1] else Segment(name, start, end, score)


def write(annotations: Sequence[Annotation]) -> str:
    """A data base of all videos, all in the subset "validation"."""
    videos = {each.video: _entry(each) for each in annotations}
    return dump_json({"version": "cycleback", "taxonomy": [], "database": videos})


def _entry(video: Annotation) -> dict[str, Any]:
    items = [_item(event, video.seconds(event.at), video.seconds(event.at)) for event in video.events]
    items += [_item(each, video.seconds(each.start), video.seconds(each.end)) for each in video.segments]
    length = {} if video.length_s is None else {"duration": video.length_s, "duration_second": video.length_s}
    return {"subset": "validation", **length, "annotations": items}


def _item(label: Event | Segment, start: float, end: float) -> dict[str, Any]:
    score = {} if label.confidence is None else {"score": label.confidence}
    return {"segment": [start, end], "label": label.name, **score}


FORMAT = Format("activitynet", (".json",), read, write, marks=('"database"', '"segment"'))
