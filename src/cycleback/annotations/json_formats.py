"""Small JSON formats: our own, ActivityNet and LabelU.

Our own keeps everything an `Annotation` holds.

ActivityNet is the format of temporal action detection:

    {"database": {video: {"duration": s, "annotations": [{"segment": [start, end], "label": name}]}}}

Files without the outer object, with `duration_second` (as mmaction2 reads them), are read too. The format has
only segments: a key event is a segment that ends where it starts. `score` is the confidence.

LabelU has one sample per video; its `result` is JSON inside a text, with times in seconds:

    {"duration": s, "annotations": [{"toolName": "videoFrameTool", "result": [{"time", "label"}]},
                                    {"toolName": "videoSegmentTool", "result": [{"start", "end", "label"}]}]}

A list, and one sample per line (JSONL), are read. The confidence is one of the attributes of a label.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from cycleback.annotations.annotation import Annotation, Event, Moment, Segment, make_label, split_labels
from cycleback.errors import DataError
from cycleback.reading import Cursor, parse_json

FORMAT_NAME = "cycleback-annotations"
TOOLS = EVENT_TOOL, SEGMENT_TOOL = ("videoFrameTool", "videoSegmentTool")


def dump_json(value: Any, *, indent: int | None = 1) -> str:
    """Format a value as JSON; keys whose value is None are left out."""
    return json.dumps(_drop_unknown(value), indent=indent, ensure_ascii=False) + "\n" * bool(indent)


def _drop_unknown(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _drop_unknown(inside) for key, inside in value.items() if inside is not None}
    return [_drop_unknown(inside) for inside in value] if isinstance(value, list | tuple) else value


def read_json(text: str, place: str) -> list[Annotation]:
    """Read every video of one of our own files."""
    return [_video(video) for video in parse_json(text, place).each("videos")]


def _video(video: Cursor) -> Annotation:
    file = video.find("file")
    events = [
        Event(event.at("name").text(), _moment(event.at("at")), event.optional_number("confidence"))
        for event in video.each("events")
    ]
    segments = [
        Segment(
            segment.at("name").text(),
            _moment(segment.at("start")),
            _moment(segment.at("end")),
            segment.optional_number("confidence"),
        )
        for segment in video.each("segments")
    ]
    return Annotation(
        video.at("video").text(),
        tuple(events),
        tuple(segments),
        file=None if file is None else file.text(),
        fps=video.optional_positive("fps"),
        num_frames=video.optional_integer("num_frames", low=0),
        duration=video.optional_number("duration"),
    )


def _moment(value: Cursor) -> Moment:
    frame = value.optional_integer("frame", low=0)
    return Moment(value.at("seconds").number() if frame is None else value.optional_number("seconds"), frame)


def write_json(annotations: Sequence[Annotation]) -> str:
    """Write everything that is known."""
    return dump_json({"format": FORMAT_NAME, "version": 1, "videos": [asdict(each) for each in annotations]})


def read_activitynet(text: str, place: str) -> list[Annotation]:
    """Read every video of the database."""
    root = parse_json(text, place)
    annotations = []
    for name, video in (root.find("database") or root).items():
        labels = split_labels(_activity(item) for item in video.each("annotations"))
        duration = video.optional_number("duration") or video.optional_number("duration_second")
        annotations.append(Annotation(name, *labels, duration=duration))
    return annotations


def _activity(item: Cursor) -> Event | Segment:
    times = [time.number() for time in item.at("segment").each()]
    if len(times) != 2:
        raise DataError(f"{item.place}, segment: expected [start, end] in seconds, got {times}")
    end = None if times[0] == times[1] else Moment(times[1])
    return make_label(item.at("label").text(), Moment(times[0]), end, item.optional_number("score"))


def write_activitynet(annotations: Sequence[Annotation]) -> str:
    """Write a database with all videos in the subset "validation"."""
    videos = {}
    for video in annotations:
        items = [
            {"segment": [start, end], "label": label.name, "score": label.confidence}
            for label, start, end in video.spans()
        ]
        length = {"duration": video.length_s, "duration_second": video.length_s}
        videos[video.video] = {"subset": "validation", **length, "annotations": items}
    return dump_json({"version": "cycleback", "taxonomy": [], "database": videos})


def read_labelu(text: str, place: str) -> list[Annotation]:
    """Read one annotation per sample."""
    if text.lstrip().startswith("["):
        return [_sample(sample) for sample in parse_json(text, place).each()]
    lines = [(number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    return [_sample(parse_json(line, f"{place}, line {number}")) for number, line in lines]


def _sample(sample: Cursor) -> Annotation:
    file, result = sample.at("fileName").text(), sample.at("result")
    if isinstance(result.value, str):
        result = parse_json(result.value, result.place)
    labels = [label for tool in result.each("annotations") for label in _tool_labels(tool)]
    return Annotation.of_file(file, labels, duration=result.optional_number("duration"))


def _tool_labels(tool: Cursor) -> Iterator[Event | Segment]:
    kind = tool.at("toolName").text()
    for item in tool.each("result") if kind in TOOLS else ():
        name, attributes = item.at("label").text(), item.find("attributes")
        confidence = attributes.optional_number("confidence") if attributes else None
        keys = ("time",) if kind == EVENT_TOOL else ("start", "end")
        start, *end = (Moment(item.at(key).number()) for key in keys)
        yield make_label(name, start, end[0] if end else None, confidence)


def write_labelu(annotations: Sequence[Annotation]) -> str:
    """Write a list of samples that LabelU imports as pre-annotations."""
    samples = []
    for number, video in enumerate(annotations, 1):
        tools = [{"toolName": tool, "result": _tool_items(video, tool)} for tool in TOOLS]
        result = dump_json({"duration": video.length_s, "annotations": tools}, indent=None)
        place = {"url": video.media, "folder": "", "fileName": video.media}
        samples.append({"id": number, "result": result, **place})
    return dump_json(samples)


def _tool_items(video: Annotation, tool: str) -> list[dict[str, Any]]:
    wanted, kind = (Event, "frame") if tool == EVENT_TOOL else (Segment, "segment")
    items: list[dict[str, Any]] = []
    for label, start, end in video.spans():
        if isinstance(label, wanted):
            order = len(items) + 1
            when = {"time": start} if wanted is Event else {"start": start, "end": end}
            confidence = {} if label.confidence is None else {"confidence": str(label.confidence)}
            about = {"id": f"{kind}{order}", "order": order, "type": kind, **when}
            items.append({**about, "label": label.name, "attributes": confidence})
    return items
