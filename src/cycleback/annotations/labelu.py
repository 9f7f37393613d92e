"""LabelU JSON: one sample a video, whose `result` is JSON inside a text; times in seconds.

    {"duration": s, "annotations": [{"toolName": "videoFrameTool", "result": [{"time", "label"}]},
                                    {"toolName": "videoSegmentTool", "result": [{"start", "end", "label"}]}]}

A list and one sample a line (JSONL) are read. A confidence is kept among the attributes of a label.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from cycleback.annotations.annotation import Annotation, Event, Moment, Segment, sorted_out, video_name
from cycleback.annotations.cursor import Cursor, dump_json, parse_json
from cycleback.annotations.format import Format

EVENTS, SEGMENTS = "videoFrameTool", "videoSegmentTool"


def read(text: str, place: str) -> list[Annotation]:
    """One annotation a sample."""
    if text.lstrip().startswith("["):
        return [_annotation(sample) for sample in parse_json(text, place).each()]
    lines = [(number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    return [_annotation(parse_json(line, f"{place}, line {number}")) for number, line in lines]


def _annotation(sample: Cursor) -> Annotation:
    file = sample.at("fileName").text()
    result = sample.at("result").parsed()
    labels = [label for tool in result.each("annotations") for label in _labels(tool)]
    return Annotation(video_name(file), *sorted_out(labels), file=file, duration=result.optional("duration"))


def _labels(tool: Cursor) -> Iterator[Event | Segment]:
    kind = tool.at("toolName").text()
    for item in tool.each("result") if kind in (EVENTS, SEGMENTS) else ():
        name, attributes = item.at("label").text(), item.find("attributes")
        sure = attributes.optional("confidence") if attributes else None
        if kind == EVENTS:
            yield Event(name, Moment(item.at("time").number()), sure)
        else:
            start, end = (Moment(item.at(side).number()) for side in ("start", "end"))
            yield Segment(name, start, end, sure)


def write(annotations: Sequence[Annotation]) -> str:
    """A list of samples, which LabelU imports as labels to start from."""
    return dump_json([_sample(number, video) for number, video in enumerate(annotations, 1)])


def _sample(number: int, video: Annotation) -> dict[str, Any]:
    events = [_item(event, {"type": "frame", "time": video.seconds(event.at)}) for event in video.events]
    segments = [
        _item(each, {"type": "segment", "start": video.seconds(each.start), "end": video.seconds(each.end)})
        for each in video.segments
    ]
    tools = [
        {"toolName": EVENTS, "result": _ordered(events)},
        {"toolName": SEGMENTS, "result": _ordered(segments)},
    ]
    length = {} if video.length_s is None else {"duration": video.length_s}
    result = json.dumps({**length, "annotations": tools}, ensure_ascii=False)
    return {"id": number, "result": result, "url": video.media, "folder": "", "fileName": video.media}


def _item(label: Event | Segment, when: dict[str, Any]) -> dict[str, Any]:
    sure = {} if label.confidence is None else {"confidence": str(label.confidence)}
    return {**when, "label": label.name, "attributes": sure}


def _ordered(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"id": f"{item['type']}{order}", "order": order, **item} for order, item in enumerate(items, 1)]


FORMAT = Format("labelu", (".json", ".jsonl"), read, write, marks=(EVENTS, SEGMENTS))
